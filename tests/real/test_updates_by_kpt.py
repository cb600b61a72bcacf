"""kpt itself updates the same packages to the same data as profile compat, if kpt is installed."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from reconciler.catalog.files import File, FileTree
from reconciler.packages.clone import ResolvedUpstream
from reconciler.packages.update.options import create_compat_options
from reconciler.packages.update.three_way import update_package
from tests.real.line_edits import applied, generate_edits
from tests.real.packages import DATA, package_files
from tests.support.git_environment import HERMETIC
from tests.support.git_repositories import commit_files, git, make_bare

KPT = shutil.which("kpt")
PACKAGES = sorted(file.parent.relative_to(DATA).as_posix() for file in DATA.rglob("Kptfile"))
pytestmark = [
    pytest.mark.skipif(KPT is None, reason="kpt is not installed"),
    pytest.mark.skipif(not PACKAGES, reason="the packages of other projects are not available"),
]


def kpt(folder: Path, *arguments: str) -> None:
    environment = {**HERMETIC, "HOME": str(folder), "KPT_CACHE_DIR": str(folder / "cache")}
    process = subprocess.run(
        [str(KPT), "pkg", *arguments], cwd=folder, env=environment, capture_output=True, check=False
    )

    assert process.returncode == 0, process.stderr.decode()


def release(repository: Path, tag: str, files: Mapping[str, str], before: Mapping[str, str]) -> str:
    fromkeys: dict[str, bytes | None] = dict.fromkeys(f"app/{path}" for path in before)
    changed = fromkeys | {f"app/{path}": text.encode() for path, text in files.items()}
    commit = commit_files(repository, "refs/heads/main", changed)
    git(repository, "update-ref", f"refs/tags/{tag}", commit)
    return commit


def write(folder: Path, files: Mapping[str, str]) -> None:
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)


def read(folder: Path) -> dict[str, str]:
    return {path.relative_to(folder).as_posix(): path.read_text() for path in folder.rglob("*") if path.is_file()}


def tree(files: Mapping[str, str]) -> FileTree:
    return FileTree({path: File(text.encode()) for path, text in files.items()})


def data(files: Mapping[str, str]) -> dict[str, Any]:
    """Return the data of resource files, and other files unchanged: kpt uses a YAML format of its own."""
    is_yaml = (".yaml", ".yml", "Kptfile")
    return {path: [*yaml.safe_load_all(text)] if path.endswith(is_yaml) else text for path, text in files.items()}


@pytest.mark.slow
@pytest.mark.parametrize("name", PACKAGES)
def test_kpt_comes_to_the_same(name: str, tmp_path: Path) -> None:
    first = {path: content.decode() for path, content in package_files(DATA / name).items()}
    edits = generate_edits(first, f"{name}#kpt")
    second = applied(first, edits.second)
    repository, local = make_bare(tmp_path / "up.git"), tmp_path / "site" / "app"
    release(repository, "v1", first, {})
    commit = release(repository, "v2", second, first)
    local.parent.mkdir()
    kpt(local.parent, "get", f"file://{repository}/app@v1", "app")
    kptfiles = {path: text for path, text in read(local).items() if path.endswith("Kptfile")}
    shutil.rmtree(local)
    edited = applied(first, edits.people) | kptfiles
    write(local, edited)
    for arguments in (("init", "-q"), ("add", "-A"), ("commit", "-qm", "by hand")):
        git(local.parent, *arguments)

    kpt(local.parent, "update", "app@v2", "--strategy", "resource-merge")
    theirs = read(local)
    # kpt does not remove the slash of the given directory
    theirs["Kptfile"] = theirs["Kptfile"].replace("directory: /app", "directory: app")
    lock = ResolvedUpstream(f"file://{repository}".removesuffix(".git"), "app", "v2", commit)
    ours = update_package(tree(first), tree(second), tree(edited), "resource-merge", create_compat_options(), lock)

    assert ours.findings == ()
    assert data({path: file.data.decode() for path, file in ours.files.items()}) == data(theirs)
