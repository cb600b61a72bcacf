"""Pushes over the rate limit of a remote: complete units are postponed, and the longest-waiting units go first."""

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


class PacedMirror:
    """A mirror with a manual clock. Its remote accepts `per_minute` pushes of two refs each per minute."""

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
        """Push new units and return the names of those that were pushed."""
        report = self.mirror.push([self.unit(name) for name in names], leave)
        return [name for name in names if report[name] == PushDone()]

    @property
    def refs(self) -> set[str]:
        return set(read_refs(self.remote))


def test_units_over_the_limit_are_postponed(tmp_path: Path) -> None:
    paced = PacedMirror(tmp_path, 2)
    units = [paced.unit(name) for name in "abc"]
    paced.now = 5

    assert paced.mirror.push(units) == PushReport(
        {"a": PushDone(), "b": PushDone(), "c": PushPostponed(RATE_LIMIT_MESSAGE, 60)}
    )
    assert paced.refs == {update.ref for unit in units[:2] for update in unit.updates}


def test_those_that_waited_longest_go_first(tmp_path: Path) -> None:
    paced = PacedMirror(tmp_path, 1)
    values = [paced.push("b", "c", "d")]
    # "a" is created later than "c" and "d"
    for names in ("acd", "ad", "a"):
        paced.now += 60
        values.append(paced.push(*names))

    assert values == [["b"], ["c"], ["d"], ["a"]]


def test_some_pushes_are_left_for_later_ones(tmp_path: Path) -> None:
    paced = PacedMirror(tmp_path, 2)

    assert paced.push("a", "b", leave=1) == ["a"]
    assert paced.push("status") == ["status"]


@pytest.mark.quick_cases(every=6)
@pytest.mark.parametrize("per_minute", [1, 2, 3])
def test_without_atomic_pushes_no_unit_is_left_half_there(tmp_path: Path, per_minute: int) -> None:
    paced = PacedMirror(tmp_path, per_minute, receive__advertiseAtomic="false")
    left = ["a", "b", "c"]
    for _ in range(8):
        result = paced.push(*left)
        there = {ref.rpartition("/")[2] for ref in paced.refs}
        assert paced.refs == {
            ref for item in there for ref in (f"refs/heads/drafts/{item}", f"refs/reconciler/state/{item}")
        }
        left = [name for name in left if name not in result]
        paced.now += 60

    assert not left


def test_a_unit_whose_blocking_refs_were_deleted_is_not_postponed(tmp_path: Path) -> None:
    paced = PacedMirror(tmp_path, 1)
    paced.push("a/b")
    old = [RefUpdate(ref, None, commit) for ref, commit in paced.mirror.refs().items()]
    unit = PushUnit("a", (*old, *paced.unit("a").updates))
    paced.now += 60

    assert paced.mirror.push([unit])["a"] == PushDone()
    assert paced.refs == {"refs/heads/drafts/a", "refs/reconciler/state/a"}


def test_a_review_is_asked_for_at_the_same_pace(tmp_path: Path) -> None:
    paced = PacedMirror(tmp_path, 1)
    paced.push("a")

    outcome = paced.mirror.push_for_review(paced.commit("more"), "refs/for/main", [])

    assert outcome == PushPostponed(RATE_LIMIT_MESSAGE, 60)
