"""Tests of credentials in URLs: the daemon reports an error, writes the credentials nowhere, and deletes nothing."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support import prepared_worlds
from tests.support.git_repositories import git, read_refs
from tests.support.prepared_worlds import begin
from tests.support.world import World, catalog, package, repository, variant

pytestmark = pytest.mark.real_git

Capture = pytest.CaptureFixture[str]

URLS = [
    pytest.param("https://robot:ses/ame-canary@git.example/fleet.git", id="slash-in-password"),
    pytest.param("robot:ses/ame-canary@git.example/fleet.git", id="without-a-scheme"),
    pytest.param("ses-ame-canary@git.example/fleet.git", id="token-without-a-scheme"),
]


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Return a world in which all packages of Berlin and Lisbon are published."""
    return begin(tmp_path, prepared_worlds.published)


def read_all_output(world: World) -> bytes:
    """Return all names and contents below the world folder without the config. Packed objects are unpacked."""
    values = []
    for file in sorted(world.folder.rglob("*")):
        if not file.is_relative_to(world.config):
            values.append(str(file).encode())
            values += [file.read_bytes()] if file.is_file() else []
    for name in read_refs(world.fleet):
        values.append(git(world.fleet, "log", "-p", "-m", "--format=fuller", name, "--").encode())
    return b"\n".join(values)


@pytest.mark.quick_cases(every=6)
@pytest.mark.parametrize("url", URLS)
@pytest.mark.parametrize("name", ["berlin", "catalog"])
def test_repository_with_credentials_is_rejected_and_nothing_is_deleted(world: World, name: str, url: str) -> None:
    object_text = repository(name, url) if name == "berlin" else catalog().replace("./catalog.git", url)
    file = "clusters/berlin.yaml" if name == "berlin" else "catalog.yaml"
    world.write({file: object_text})
    before = read_refs(world.fleet)

    pass_result = world.sync()
    second_pass_result = world.sync()

    (finding,) = (item for item in pass_result.findings if item.code == "CredentialInUrl")
    assert (finding.location.file, finding.location.pointer) == (file, "/spec/git/repo")
    # Published, drafted and recorded content stays. Only the status branch contains the finding.
    assert {ref for ref in before if before[ref] != pass_result.after.get(ref)} <= {"refs/heads/reconciler/status"}
    assert not [ref for ref in pass_result.after if ref.startswith("refs/heads/removals/")]
    assert second_pass_result.before == second_pass_result.after
    assert b"ame-canary" not in read_all_output(world)


def test_draft_removes_credentials_from_a_locally_changed_kptfile(world: World, capsys: Capture) -> None:
    path = next(path for path in world.paths(world.fleet, "clusters/berlin") if path.endswith("/Kptfile"))
    text = world.text("clusters/berlin", path)
    secret = "https://robot:ses/ame-canary@h.example/x.git"
    world.commit("clusters/berlin", {path: re.sub(r"repo: \S+", f"repo: {secret}", text)})

    pass_result = world.sync()

    assert "ame-canary" not in world.text("drafts/berlin", path)
    assert "ame-canary" not in str(pass_result.findings) + "".join(capsys.readouterr())
    assert "ame-canary" not in git(world.fleet, "log", "--format=%B", "drafts/berlin")
    assert "ame-canary" not in git(world.fleet, "log", "-p", "--format=%B", "reconciler/status")


def test_subpackage_with_credentials_in_its_kptfile_is_rejected(world: World) -> None:
    upstream = (
        "upstream: {type: git, git: {repo: 'https://robot:ses/ame-canary@h.example/x.git', directory: /, ref: v1}}"
    )
    subpackage = {f"sub/{path}": text for path, text in package("sub").items()}
    subpackage["sub/Kptfile"] += f"{upstream}\n"
    world.release("metrics", "v2", {**package("metrics"), **subpackage})
    world.write({"metrics.yaml": variant("metrics-berlin", "berlin", "metrics", "v2")})
    head = world.head("clusters/berlin")

    pass_result = world.sync()

    (finding,) = (item for item in pass_result.findings if item.code == "CredentialInUrl")
    assert (finding.location.file, finding.location.pointer) == ("sub/Kptfile", "upstream.git.repo")
    assert (world.head("clusters/berlin"), world.head("drafts/berlin")) == (head, "")
    assert b"ame-canary" not in read_all_output(world).replace(git(world.catalog, "log", "-p").encode(), b"")
