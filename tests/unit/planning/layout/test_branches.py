"""Tests of draft branches: which commits each set of changes requires."""

from dataclasses import replace

import pytest

from reconciler.planning.layout.refs import (
    BranchAction,
    DeleteBranch,
    DraftChanges,
    DraftCommit,
    KeepBranch,
    PushCommits,
    TargetBranchMerge,
    plan_draft_branch,
)
from reconciler.planning.model.state import DraftBranch
from tests.unit.planning.builders import FakeRepository, build_commit_id, build_state, build_tree_id

HEAD, BASE, B = build_commit_id("d1"), build_commit_id("b0"), build_commit_id("b1")
OURS = DraftBranch(HEAD, BASE)
EDITED = DraftBranch(HEAD, BASE, is_edited=True)


def build_commit(package: str) -> DraftCommit:
    return DraftCommit(package, build_tree_id(f"{package}-tree"), None, f"{package}: change")


def build_changes(
    changed: str = "", withdrawn: str = "", standing: str = "", moved: str = "", edited: str = "", remaining: str = ""
) -> DraftChanges:
    """Return draft changes. Each letter is one package."""
    steps = ({package: build_commit(package) for package in packages} for packages in (changed, withdrawn, remaining))
    first, second, third = steps
    return DraftChanges(first, second, *(frozenset(packages) for packages in (standing, moved, edited)), third)


def plan_branch(draft_changes: DraftChanges, known: DraftBranch | None, more: bool = True) -> BranchAction:
    history = FakeRepository({}, commits=(build_commit("a"), build_commit("b")), more=more)
    drafts = {"d": known} if known else {}
    return plan_draft_branch("d", HEAD if known else None, build_state(drafts=drafts), B, draft_changes, history)


def build_push(start: str, base: str, packages: str, edited: bool = False, old: str | None = "d1") -> PushCommits:
    head = build_commit_id(old) if old else None
    return PushCommits(
        "d",
        head,
        build_commit_id(start),
        build_commit_id(base),
        tuple(build_commit(package) for package in packages),
        edited,
    )


def build_merged_push(packages: str) -> PushCommits:
    return replace(build_push("d1", "b1", packages, edited=True), merge=TargetBranchMerge(B, BASE))


@pytest.mark.parametrize(
    ("draft_changes", "known", "expected"),
    [
        pytest.param(build_changes(), None, KeepBranch("d"), id="no-changes-and-no-branch"),
        pytest.param(build_changes("ba"), None, build_push("b1", "b1", "ab", old=None), id="new-draft-in-order"),
        pytest.param(build_changes(standing="a"), OURS, KeepBranch("d"), id="stands"),
        pytest.param(build_changes("b", standing="a"), OURS, build_push("d1", "b0", "b"), id="appended"),
        pytest.param(build_changes(), OURS, DeleteBranch("d", HEAD), id="nothing-left"),
        pytest.param(
            build_changes(withdrawn="a", standing="a"), OURS, DeleteBranch("d", HEAD), id="the-last-is-withdrawn"
        ),
        pytest.param(
            build_changes(withdrawn="a", standing="ab"), OURS, build_push("b1", "b1", "b"), id="one-is-withdrawn"
        ),
        pytest.param(build_changes(standing="b", moved="a"), OURS, build_push("b1", "b1", "b"), id="one-was-published"),
        pytest.param(
            build_changes("b", standing="b", moved="b"), OURS, build_push("b1", "b1", "b"), id="changed-where-B-moved"
        ),
        pytest.param(
            build_changes(standing="ab", moved="a", edited="a"), OURS, KeepBranch("d"), id="a-hot-fix-below-an-offer"
        ),
        pytest.param(
            build_changes("c", standing="ab", moved="a", edited="a"),
            OURS,
            build_push("d1", "b0", "c"),
            id="beside-a-hot-fix",
        ),
        pytest.param(
            build_changes(withdrawn="b", standing="ab", moved="a", edited="a"),
            OURS,
            build_push("b0", "b0", "a"),
            id="withdrawn-beside-a-hot-fix",
        ),
        pytest.param(
            build_changes(standing="ab", moved="a"), OURS, build_push("b1", "b1", "ab"), id="rolled-back-below-an-offer"
        ),
        pytest.param(build_changes(standing="a"), EDITED, KeepBranch("d"), id="edited-stands"),
        pytest.param(build_changes("a", standing="a"), EDITED, build_push("d1", "b0", "a", True), id="edited-appended"),
        pytest.param(
            build_changes(withdrawn="a", standing="a"), EDITED, build_push("d1", "b0", "a", True), id="edited-taken-out"
        ),
        pytest.param(
            build_changes("a", standing="a", moved="a"), EDITED, build_merged_push("a"), id="edited-and-B-moved-there"
        ),
        pytest.param(
            build_changes("a", standing="ab", moved="ab", remaining="b"),
            EDITED,
            build_merged_push("ab"),
            id="edited-beside-one-that-stays",
        ),
        pytest.param(
            build_changes("a", standing="ab", moved="b", remaining="b"),
            EDITED,
            build_push("d1", "b0", "a", True),
            id="elsewhere",
        ),
        pytest.param(
            build_changes(withdrawn="a", standing="a", moved="a"),
            EDITED,
            build_merged_push("a"),
            id="edited-and-taken-out",
        ),
        pytest.param(build_changes(), EDITED, KeepBranch("d"), id="edited-with-only-people's-work"),
        pytest.param(build_changes(standing="b", moved="a"), EDITED, KeepBranch("d"), id="edited-is-never-rebuilt"),
    ],
)
def test_plan_of_a_draft_branch(draft_changes: DraftChanges, known: DraftBranch | None, expected: BranchAction) -> None:
    assert plan_branch(draft_changes, known) == expected


@pytest.mark.parametrize(
    ("draft_changes", "expected"),
    [
        pytest.param(build_changes(), DeleteBranch("d", HEAD), id="ends"),
        pytest.param(build_changes("a"), build_push("b1", "b1", "a"), id="begins-anew"),
    ],
)
def test_edited_draft_without_unpublished_changes(draft_changes: DraftChanges, expected: BranchAction) -> None:
    assert plan_branch(draft_changes, EDITED, more=False) == expected
