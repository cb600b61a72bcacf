"""The files that fix what an image and a test run are built from."""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

PROJECT = Path(__file__).resolve().parents[2]
LOCKS = ("requirements.lock", "requirements-ci.lock", "requirements-build.lock")
PIN = re.compile(r"^(?P<name>[A-Za-z0-9_.-]+)(?:\[[^]]*\])?==(?P<version>[^ ;]+)(?P<rest>.*)$")


def pins(lock: str) -> dict[str, str]:
    """Return the version of each package that a lock names, by canonical name."""
    lines = (PROJECT / lock).read_text().splitlines()
    matches = [match for line in lines if (match := PIN.match(line))]
    return {canonicalize_name(match["name"]): match["version"] for match in matches}


@pytest.mark.parametrize("lock", LOCKS)
def test_every_locked_version_has_a_hash(lock: str) -> None:
    blocks = re.split(r"\n(?=[A-Za-z0-9])", (PROJECT / lock).read_text())
    locked = [block for block in blocks if PIN.match(block.splitlines()[0])]
    assert locked
    assert [block.splitlines()[0] for block in locked if "--hash=sha256:" not in block] == []


def test_the_runtime_lock_satisfies_the_dependencies() -> None:
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
    locked = pins("requirements.lock")
    requirements = [Requirement(dependency) for dependency in project["dependencies"]]
    unsatisfied = [
        str(requirement)
        for requirement in requirements
        if not requirement.specifier.contains(locked.get(canonicalize_name(requirement.name), "0"))
    ]
    assert unsatisfied == []


def test_the_image_has_no_default_base() -> None:
    lines = (PROJECT / "Dockerfile").read_text().splitlines()
    assert {"ARG BASE_DIGEST", "ARG GO_DIGEST"} <= {*lines}
    bases = [line for line in lines if line.startswith("FROM ")]
    assert bases
    assert [line for line in bases if not re.search(r"@\$\{(BASE|GO)_DIGEST\}( |$)", line)] == []


def test_the_image_installs_locked_versions_only() -> None:
    text = re.sub(r"\\\n", " ", (PROJECT / "Dockerfile").read_text())
    installs = re.findall(r"\bpip install [^&\n]*", text)
    assert installs
    assert [install for install in installs if "--require-hashes" not in install and "--no-deps" not in install] == []


def test_the_image_locks_the_extras_of_the_documentation() -> None:
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
    locked = pins("requirements.lock")
    requirements = [
        Requirement(text) for extra in ("forge-app", "otel") for text in project["optional-dependencies"][extra]
    ]
    missing = [
        each.name for each in requirements if not each.specifier.contains(locked.get(canonicalize_name(each.name), "0"))
    ]

    assert missing == []


@pytest.mark.slow
def test_two_builds_create_identical_files(tmp_path: Path) -> None:
    pytest.importorskip("uv", reason="the extra `lint` is not installed")
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=PROJECT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("the project is not a Git repository")
    digests = []
    for mask in (0o022, 0o077):
        source, target = tmp_path / f"source-{mask:o}", tmp_path / f"dist-{mask:o}"
        copy_with_mask([PROJECT / name for name in listed.stdout.split("\0") if name], source, mask)
        build = [
            sys.executable,
            "-m",
            "uv",
            "build",
            "--quiet",
            "--build-constraint",
            "requirements-build.lock",
            "--require-hashes",
        ]
        subprocess.run([*build, "--out-dir", str(target), str(source)], cwd=PROJECT, check=True, umask=mask)
        digests.append(
            {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in target.iterdir() if file.suffix != ""}
        )

    version = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]["version"]
    assert {f"reconciler-{version}-py3-none-any.whl", f"reconciler-{version}.tar.gz"} <= digests[0].keys()
    assert digests[0] == digests[1]


def copy_with_mask(files: Sequence[Path], target: Path, mask: int) -> None:
    """Copy files with other modification times, and with the modes of another umask."""
    for file in files:
        copy = target / file.relative_to(PROJECT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(file.read_bytes())
        copy.chmod(0o666 & ~mask)
