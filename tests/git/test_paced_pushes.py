"""Pushes over the pace of a remote: put off whole, never half, and those that waited longest go first."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.catalog.files import CommitId
from reconciler.git.mirror import Mirror
from reconciler.git.object_writer import NewCommit, PutFile
from reconciler.git.options import GitOptions, GitRemoteLimits
from reconciler.git.push_outcomes import RATE_LIMIT_MESSAGE, PushDone, PushPostponed, PushReport, PushUnit, RefUpdate
from reconciler.git.rate_limit import PushRateLimiters
from tests.support.git_repositories import make_bare, read_refs

pytestmark = pytest.mark.usefixtures("each_git")


class Desk:
    """A mirror of a remote that takes so many pushes a minute of two refs each, with a clock ticked by hand."""

    def __init__(self, folder: Path, per_minute: int, **config: str) -> None:
        self.now = 0.0
        self.remote = make_bare(folder / "remote.git", **config)
        limits = GitRemoteLimits(str(self.remote), 2, per_minute)
        paces = PushRateLimiters(max_wait_seconds=10, clock=lambda: self.now)
        self.mirror = Mirror.open(folder / "cache", str(self.remote), GitOptions(remotes=(limits,)), paces.get)
        self.mirror.fetch("target")

    def commit(self, text: str) -> CommitId:
        return self.mirror.write_commits(
            [NewCommit((), (PutFile("text", text.encode()),), text, 1, has_empty_base=True)]
        )[0]

    def unit(self, name: str) -> PushUnit:
        refs = (f"refs/heads/drafts/{name}", f"refs/reconciler/state/{name}")
        return PushUnit(name, tuple(RefUpdate(ref, self.commit(ref), None) for ref in refs))

    def push(self, *names: str, leave: int = 0) -> list[str]:
        """Push new units and return the names of those that are there now."""
        report = self.mirror.push([self.unit(name) for name in names], leave)
        return [name for name in names if report[name] == PushDone()]

    @property
    def refs(self) -> set[str]:
        return set(read_refs(self.remote))


def test_what_is_over_the_pace_is_put_off_until_there_is_room(tmp_path: Path) -> None:
    desk = Desk(tmp_path, 2)
    units = [desk.unit(name) for name in "abc"]
    desk.now = 5

    assert desk.mirror.push(units) == PushReport(
        {"a": PushDone(), "b": PushDone(), "c": PushPostponed(RATE_LIMIT_MESSAGE, 60)}
    )
    assert desk.refs == {update.ref for unit in units[:2] for update in unit.updates}


def test_those_that_waited_longest_go_first(tmp_path: Path) -> None:
    desk = Desk(tmp_path, 1)
    values = [desk.push("b", "c", "d")]
    # "a" comes later than "c" and "d", whatever its name
    for names in ("acd", "ad", "a"):
        desk.now += 60
        values.append(desk.push(*names))

    assert values == [["b"], ["c"], ["d"], ["a"]]


def test_some_pushes_are_left_for_later_ones(tmp_path: Path) -> None:
    desk = Desk(tmp_path, 2)

    assert desk.push("a", "b", leave=1) == ["a"]
    assert desk.push("status") == ["status"]


@pytest.mark.parametrize("per_minute", [1, 2, 3])
def test_without_atomic_pushes_no_unit_is_left_half_there(tmp_path: Path, per_minute: int) -> None:
    desk = Desk(tmp_path, per_minute, receive__advertiseAtomic="false")
    left = ["a", "b", "c"]
    for _ in range(8):
        result = desk.push(*left)
        there = {ref.rpartition("/")[2] for ref in desk.refs}
        assert desk.refs == {
            ref for item in there for ref in (f"refs/heads/drafts/{item}", f"refs/reconciler/state/{item}")
        }
        left = [name for name in left if name not in result]
        desk.now += 60

    assert not left


def test_what_has_made_room_is_not_put_off(tmp_path: Path) -> None:
    desk = Desk(tmp_path, 1)
    desk.push("a/b")
    old = [RefUpdate(ref, None, commit) for ref, commit in desk.mirror.refs().items()]
    unit = PushUnit("a", (*old, *desk.unit("a").updates))
    desk.now += 60

    assert desk.mirror.push([unit])["a"] == PushDone()
    assert desk.refs == {"refs/heads/drafts/a", "refs/reconciler/state/a"}


def test_a_review_is_asked_for_at_the_same_pace(tmp_path: Path) -> None:
    desk = Desk(tmp_path, 1)
    desk.push("a")

    outcome = desk.mirror.push_for_review(desk.commit("more"), "refs/for/main", [])

    assert outcome == PushPostponed(RATE_LIMIT_MESSAGE, 60)
