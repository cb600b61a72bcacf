"""Signed commits and tags of passes and review commands."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from reconciler.git.errors import SigningFailedError
from tests.scenarios.test_rewritten_tags import GW, ConfigWorld
from tests.support.git_repositories import git, make_bare, read_refs
from tests.support.signing_keys import create_ssh_key, write_allowed_signers
from tests.support.world import World, catalog, package, repository, small_world


def with_key(world: World, key: Path) -> World:
    return world.with_settings(signing={"format": "ssh", "key_file": str(key)})


@pytest.fixture
def key(tmp_path: Path) -> Path:
    return create_ssh_key(tmp_path / "keys", "ed25519")


@pytest.fixture
def world(tmp_path: Path, key: Path) -> World:
    return with_key(small_world(tmp_path / "world", git={"revision_tags": "all"}), key)


def list_unsigned(repository: Path, key: Path) -> list[str]:
    """Return the subjects of all commits and tags of a repository without a valid signature by the key."""
    setting = f"gpg.ssh.allowedSignersFile={write_allowed_signers(key.parent, key, 'robot@example.com')}"
    lines = git(repository, "-c", setting, "log", "--all", "--format=%G? %GS %s").splitlines()
    unsigned = [line for line in lines if not line.startswith("G robot@example.com ")]
    for ref in git(repository, "for-each-ref", "--format=%(refname)", "refs/tags").splitlines():
        process = subprocess.run(
            ["git", "-c", setting, "verify-tag", ref.removeprefix("refs/tags/")], cwd=repository, check=False,
            env=os.environ, capture_output=True,
        )  # fmt: skip
        unsigned += [ref] if process.returncode else []
    return unsigned


@pytest.mark.slow
def test_every_commit_and_tag_is_signed(world: World, key: Path) -> None:
    world.sync()
    world.run_review_action("propose", "berlin")
    world.run_review_action("reject", "berlin", message="later")
    world.run_review_action("approve", "berlin", should_approve_unproposed=True)
    result = world.sync_until_unchanged()

    assert result.outcomes["berlin/metrics"] == "published"
    assert "refs/tags/berlin/metrics/v1" in read_refs(world.fleet)
    assert list_unsigned(world.fleet, key) == []
    author, committer = git(world.fleet, "log", "-1", "--format=%an%n%cn", "clusters/berlin").splitlines()
    assert (author, committer) == ("Grace", "reconciler")


def test_two_replicas_move_all_refs_to_equal_commits(world: World) -> None:
    before = read_refs(world.fleet)
    world.sync()
    first = read_refs(world.fleet)
    for ref in first.keys() - before.keys():
        git(world.fleet, "update-ref", "-d", ref)
    shutil.rmtree(world.folder / "cache")

    world.sync()

    assert read_refs(world.fleet) == first


def test_unchanged_content_is_not_signed_again(tmp_path: Path) -> None:
    world = small_world(tmp_path / "world", git={"revision_tags": "all"})
    world.sync()
    world.run_review_action("approve", "berlin", should_approve_unproposed=True)
    world.sync_until_unchanged()
    refs = read_refs(world.fleet)

    for name in ("first", "second"):
        signed = with_key(world, create_ssh_key(tmp_path / name, "ed25519"))
        shutil.rmtree(world.folder / "cache")
        assert signed.sync().is_unchanged
        assert signed.run_review_action("approve", "berlin", should_approve_unproposed=True)[0].outcome == "unchanged"
    assert read_refs(world.fleet) == refs


def test_a_config_proposal_is_not_signed_again(tmp_path: Path) -> None:
    world = ConfigWorld(tmp_path, config={"directory": "prod"})
    for name in ("catalog", "fleet", "config"):
        make_bare(tmp_path / f"{name}.git")
    for number in (1, 2):
        world.release("gateway", f"v{number}", package("gateway", image=str(number)), 1_000_000_000 + number)
    world.move_stable_tag("v2")
    world.commit_config({"catalog.yaml": catalog(), "berlin.yaml": repository("berlin"), "gw.yaml": GW})
    for name in ("first", "second"):
        signed = with_key(world, create_ssh_key(tmp_path / name, "ed25519"))
        signed.sync()
        refs = read_refs(world.repo)
        assert signed.sync().is_unchanged
        if name == "first":
            first_refs = refs
            assert "refs/heads/drafts/config" in refs
    assert refs == first_refs


@pytest.mark.emits("signing_failed")
def test_a_lost_key_stops_all_pushes_until_it_is_back(world: World, key: Path) -> None:
    service = world.service()
    refs = read_refs(world.fleet)
    text = key.read_text()
    key.unlink()

    with capture_logs() as events:
        assert not service.run()

    assert read_refs(world.fleet) == refs
    assert {event["remote"] for event in events if event["event"] == "signing_failed"} == {str(world.fleet)}
    assert {finding.code for finding in service.summary.findings} == {"PushFailed"}
    with pytest.raises(SigningFailedError, match=r"signing\.key_file"):
        world.sync()

    key.write_text(text)
    service.run()
    assert list_unsigned(world.fleet, key) == []
    assert "refs/heads/drafts/berlin" in read_refs(world.fleet)


def test_commands_that_push_nothing_need_no_key(world: World, key: Path) -> None:
    key.unlink()

    assert world.plan().outcomes["berlin/metrics"] == "draft"
