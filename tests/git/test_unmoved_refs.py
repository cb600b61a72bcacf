"""A fetch that brings nothing asks git for no refs again; one that brings something does."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from reconciler.git.command import GitCommand
from reconciler.git.local_repository import create_repository
from reconciler.git.mirror import Mirror
from tests.support.git_repositories import SECONDS, commit_files, git

pytestmark = pytest.mark.usefixtures("each_git")


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    values: list[str] = []
    run = GitCommand.run

    def counted(self: GitCommand, *arguments: str, **more: object) -> object:
        values.append(arguments[0])
        return run(self, *arguments, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(GitCommand, "run", counted)
    return values


def a_while_ago(mirror: Mirror) -> None:
    """Let everything in a mirror have been written some time ago."""
    for path in (mirror.folder, *mirror.folder.rglob("*")):
        os.utime(path, (SECONDS, SECONDS))


def test_what_was_written_just_now_is_read_again(tmp_path: Path, asked: list[str]) -> None:
    remote = tmp_path / "remote.git"
    create_repository(remote)
    commit_files(remote, "refs/heads/main", {"a": b"1"})
    mirror = Mirror.open(tmp_path / "cache", str(remote))
    mirror.fetch("target")
    asked.clear()

    mirror.fetch("target")

    assert asked == ["fetch", "for-each-ref"]


def test_refs_are_read_when_something_has_moved(tmp_path: Path, asked: list[str]) -> None:
    remote = tmp_path / "remote.git"
    create_repository(remote)
    first = commit_files(remote, "refs/heads/main", {"a": b"1"})
    mirror = Mirror.open(tmp_path / "cache", str(remote))
    mirror.fetch("target")
    mirror.maintain()
    a_while_ago(mirror)
    mirror.fetch("target")
    asked.clear()

    mirror.fetch("target")

    assert asked == ["fetch"]
    assert mirror.refs() == {"refs/heads/main": first}
    assert not mirror.has_new_objects

    second = commit_files(remote, "refs/heads/main", {"a": b"2"})
    mirror.fetch("target")
    assert mirror.refs() == {"refs/heads/main": second}
    assert mirror.has_new_objects

    git(remote, "update-ref", "-d", "refs/heads/main")
    mirror.fetch("target")
    assert mirror.refs() == {}


def test_what_another_process_has_fetched_is_seen(tmp_path: Path) -> None:
    remote = tmp_path / "remote.git"
    create_repository(remote)
    commit_files(remote, "refs/heads/main", {"a": b"1"})
    mirror, other = (Mirror.open(tmp_path / "cache", str(remote)) for _ in range(2))
    mirror.fetch("target")
    second = commit_files(remote, "refs/heads/main", {"a": b"2"})
    other.fetch("target")

    mirror.fetch("target")

    assert mirror.refs() == {"refs/heads/main": second}
