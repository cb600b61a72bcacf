"""A pass of this version on a fleet of an earlier version moves no ref.

`fixtures/upgrade` contains fleets that earlier versions have written. The slow test also runs the code of the last
release, before and after this version. RECONCILER_PREVIOUS_RELEASE names another revision than the last release tag.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from reconciler.planning.model.state import STATE_FORMAT
from tests.support.command_line import CommandResult, run_in
from tests.support.git_repositories import git, read_refs
from tests.support.page_commands import build_environment

PROJECT = Path(__file__).resolve().parents[2]
STORED = PROJECT / "fixtures/upgrade"
VERSIONS = sorted(folder.name for folder in STORED.iterdir() if folder.is_dir())
UNCHANGED = "Sync: no changes; 14 unchanged\n"
SYNC = ("sync", "config", "--fleet", "fleet.git")


def run_this_version(folder: Path, *arguments: str) -> CommandResult:
    return run_in(folder, build_environment(folder), *arguments)


def read_formats(repository: Path) -> dict[str, int]:
    """Return the format of the state of each target."""
    states = [ref for ref in read_refs(repository) if ref.startswith("refs/reconciler/state/")]
    texts = {ref: git(repository, "show", f"{ref}:destination.json") for ref in states}
    return {ref.rpartition("/")[2]: json.loads(text)["format"] for ref, text in texts.items()}


@pytest.fixture(params=VERSIONS)
def stored_fleet(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """The folder of a fleet that an earlier version has written."""
    stored = STORED / request.param
    for name in ("fleet", "catalog"):
        git(tmp_path, "clone", "--quiet", "--mirror", str(stored / f"{name}.bundle"), f"{name}.git")
    shutil.copytree(stored / "config", tmp_path / "config")
    return tmp_path


def test_an_upgrade_moves_no_ref(stored_fleet: Path) -> None:
    before = read_refs(stored_fleet / "fleet.git")

    passes = [run_this_version(stored_fleet, *SYNC) for _ in range(2)]

    assert [(result.returncode, result.stdout) for result in passes] == [(0, UNCHANGED)] * 2
    assert read_refs(stored_fleet / "fleet.git") == before


def test_a_change_after_an_upgrade_writes_the_current_format_only_where_it_is_needed(stored_fleet: Path) -> None:
    before = read_formats(stored_fleet / "fleet.git")
    regions = stored_fleet / "config/regions.yaml"
    text = regions.read_text()
    assert "auth.us-east" in text
    regions.write_text(text.replace("auth.us-east", "login.us-east"))

    result = run_this_version(stored_fleet, *SYNC)

    assert result.returncode == 0, result.stdout
    formats = read_formats(stored_fleet / "fleet.git")
    assert {formats["boston"], formats["chicago"]} == {STATE_FORMAT}
    assert {name: formats[name] for name in ("berlin", "lisbon")} == {
        name: before[name] for name in ("berlin", "lisbon")
    }


def find_previous_release() -> str:
    """Return the revision of the previous release, or skip the test."""
    if revision := os.environ.get("RECONCILER_PREVIOUS_RELEASE"):
        return revision
    command = ["git", "describe", "--tags", "--abbrev=0", "--match", "v[0-9]*", "HEAD^"]
    process = subprocess.run(command, cwd=PROJECT, text=True, capture_output=True, check=False)
    if process.returncode:
        pytest.skip("no tag of a previous release: set RECONCILER_PREVIOUS_RELEASE to a revision")
    return process.stdout.strip()


@pytest.mark.slow
def test_the_previous_release_and_this_version_move_no_ref(tmp_path: Path) -> None:
    release, archive = tmp_path / "release", tmp_path / "release.tar"
    release.mkdir()
    subprocess.run(["git", "archive", "--output", archive, find_previous_release()], cwd=PROJECT, check=True)
    shutil.unpack_archive(archive, release, filter="data")

    def run_previous(folder: Path, *arguments: str) -> None:
        environment = {**build_environment(folder), "PYTHONPATH": str(release)}
        subprocess.run([sys.executable, "-m", "reconciler", *arguments], cwd=folder, env=environment, check=True)

    run_previous(tmp_path, "demo")
    demo = tmp_path / "demo"
    run_previous(demo, "approve", "lisbon", "--propose", "--config", "config", "--fleet", "fleet.git")
    run_previous(demo, *SYNC)
    before = read_refs(demo / "fleet.git")

    result = run_this_version(demo, *SYNC)
    assert result.returncode == 0, result.stdout
    assert read_refs(demo / "fleet.git") == before

    run_previous(demo, *SYNC)
    assert read_refs(demo / "fleet.git") == before
