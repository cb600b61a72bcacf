"""The event about a published removal has the commit that removed the package, and the author of this commit."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest

from reconciler.catalog.files import CommitId, TreeId
from reconciler.git.errors import GitError
from reconciler.git.object_reader import Commit, GitIdentity
from reconciler.inspect.published_removals import ObservedRemoval, read_removal_event
from reconciler.reconcile.remotes.targets import DraftReader
from tests.unit.planning.builders import build_target

TARGET = build_target("berlin", directory="clusters/berlin")
PATH = "clusters/berlin/web"
NOW = 900


def create_reader(commits: Sequence[str], message: str = "remove web\n") -> DraftReader:
    """Return a reader of a branch. `+` and `-` in the name of a commit: it contains the package, or it does not."""

    def list_first_parents(old: str, _new: str) -> Sequence[str] | None:
        return commits if old == "base+" else None

    def find_tree_at(commit: str, path: str) -> TreeId | None:
        return TreeId("tree") if path == PATH and commit.endswith("+") else None

    def read_commit(commit: str) -> Commit:
        author = GitIdentity(f"author of {commit}", "a@example.com", 100)
        return Commit(CommitId(commit), TreeId(""), (), author, GitIdentity("host", "h@example.com", 200), message)

    remote = SimpleNamespace(
        list_first_parents=list_first_parents, find_tree_at=find_tree_at, read_commit=read_commit
    )  # fmt: skip
    return cast("DraftReader", SimpleNamespace(read_target=lambda _: None, get_remote=lambda _: remote))


def create_removal(since: str | None = "base+", until: str = "c3-") -> ObservedRemoval:
    return ObservedRemoval(TARGET, "web", "it is gone", CommitId(since) if since else None, CommitId(until))


@pytest.mark.parametrize(
    ("commits", "removal", "expected"),
    [
        pytest.param(["c1+", "c2-", "c3-"], create_removal(), "c2-", id="commit-between"),
        pytest.param(["c1-", "c2+", "c3-"], create_removal(), "c3-", id="removed-twice"),
        pytest.param(["c1-", "c2-", "c3-"], create_removal(), "c1-", id="first-commit"),
        pytest.param(["c1-"], create_removal(since=None), "c3-", id="unknown-earlier-head"),
        pytest.param(["c1-"], create_removal(since="rewritten"), "c3-", id="rewritten-history"),
    ],
)
def test_the_event_names_the_commit(commits: list[str], removal: ObservedRemoval, expected: str) -> None:
    event = read_removal_event(removal, create_reader(commits), NOW)

    assert (event.actions, event.target, event.package) == (("removed",), "berlin", "web")
    assert (event.commit, event.person) == (expected, f"author of {expected}")
    assert (event.seconds, event.recorded_at, event.message) == (200, NOW, "it is gone")


def test_an_approved_removal_has_its_reason() -> None:
    message = "remove web\n\nobsolete\n\nReconciler-Approved-Via: console\n"
    event = read_removal_event(create_removal(), create_reader(["c3-"], message), NOW)

    assert (event.actions, event.reason) == (("approved", "removed"), "obsolete")


def test_without_its_commit_a_removal_has_no_author() -> None:
    def fail(_: Any) -> None:
        raise GitError("the repository cannot be read")

    event = read_removal_event(create_removal(), cast("DraftReader", SimpleNamespace(read_target=fail)), NOW)

    assert (event.actions, event.person, event.commit, event.seconds) == (("removed",), "", "", NOW)
