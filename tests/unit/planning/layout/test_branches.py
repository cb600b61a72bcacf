"""From wishes to what becomes of one draft branch."""

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
from tests.unit.planning.values import Tables, commit, state, tree

HEAD, BASE, B = commit("d1"), commit("b0"), commit("b1")
OURS = DraftBranch(HEAD, BASE)
EDITED = DraftBranch(HEAD, BASE, is_edited=True)


def step(package: str) -> DraftCommit:
    return DraftCommit(package, tree(f"{package}-tree"), None, f"{package}: change")


def wishes(
    changed: str = "", withdrawn: str = "", standing: str = "", moved: str = "", edited: str = "", remaining: str = ""
) -> DraftChanges:
    """Wishes by one letter for each package."""
    steps = ({package: step(package) for package in packages} for packages in (changed, withdrawn, remaining))
    first, second, third = steps
    return DraftChanges(first, second, *(frozenset(packages) for packages in (standing, moved, edited)), third)


def laid_out(draft_changes: DraftChanges, known: DraftBranch | None, more: bool = True) -> BranchAction:
    history = Tables({}, commits=(step("a"), step("b")), more=more)
    drafts = {"d": known} if known else {}
    return plan_draft_branch("d", HEAD if known else None, state(drafts=drafts), B, draft_changes, history)


def grow(start: str, base: str, packages: str, edited: bool = False, old: str | None = "d1") -> PushCommits:
    head = commit(old) if old else None
    return PushCommits("d", head, commit(start), commit(base), tuple(step(package) for package in packages), edited)


def synced(packages: str) -> PushCommits:
    return replace(grow("d1", "b1", packages, edited=True), merge=TargetBranchMerge(B, BASE))


@pytest.mark.parametrize(
    ("draft_changes", "known", "expected"),
    [
        pytest.param(wishes(), None, KeepBranch("d"), id="nothing-wanted-nothing-there"),
        pytest.param(wishes("ba"), None, grow("b1", "b1", "ab", old=None), id="new-draft-in-order"),
        pytest.param(wishes(standing="a"), OURS, KeepBranch("d"), id="stands"),
        pytest.param(wishes("b", standing="a"), OURS, grow("d1", "b0", "b"), id="appended"),
        pytest.param(wishes(), OURS, DeleteBranch("d", HEAD), id="nothing-left"),
        pytest.param(wishes(withdrawn="a", standing="a"), OURS, DeleteBranch("d", HEAD), id="the-last-is-withdrawn"),
        pytest.param(wishes(withdrawn="a", standing="ab"), OURS, grow("b1", "b1", "b"), id="one-is-withdrawn"),
        pytest.param(wishes(standing="b", moved="a"), OURS, grow("b1", "b1", "b"), id="one-was-published"),
        pytest.param(wishes("b", standing="b", moved="b"), OURS, grow("b1", "b1", "b"), id="changed-where-B-moved"),
        pytest.param(
            wishes(standing="ab", moved="a", edited="a"), OURS, KeepBranch("d"), id="a-hot-fix-below-an-offer"
        ),
        pytest.param(
            wishes("c", standing="ab", moved="a", edited="a"), OURS, grow("d1", "b0", "c"), id="beside-a-hot-fix"
        ),
        pytest.param(
            wishes(withdrawn="b", standing="ab", moved="a", edited="a"),
            OURS,
            grow("b0", "b0", "a"),
            id="withdrawn-beside-a-hot-fix",
        ),
        pytest.param(wishes(standing="ab", moved="a"), OURS, grow("b1", "b1", "ab"), id="rolled-back-below-an-offer"),
        pytest.param(wishes(standing="a"), EDITED, KeepBranch("d"), id="edited-stands"),
        pytest.param(wishes("a", standing="a"), EDITED, grow("d1", "b0", "a", True), id="edited-appended"),
        pytest.param(wishes(withdrawn="a", standing="a"), EDITED, grow("d1", "b0", "a", True), id="edited-taken-out"),
        pytest.param(wishes("a", standing="a", moved="a"), EDITED, synced("a"), id="edited-and-B-moved-there"),
        pytest.param(
            wishes("a", standing="ab", moved="ab", remaining="b"),
            EDITED,
            synced("ab"),
            id="edited-beside-one-that-stays",
        ),
        pytest.param(
            wishes("a", standing="ab", moved="b", remaining="b"), EDITED, grow("d1", "b0", "a", True), id="elsewhere"
        ),
        pytest.param(wishes(withdrawn="a", standing="a", moved="a"), EDITED, synced("a"), id="edited-and-taken-out"),
        pytest.param(wishes(), EDITED, KeepBranch("d"), id="edited-with-only-people's-work"),
        pytest.param(wishes(standing="b", moved="a"), EDITED, KeepBranch("d"), id="edited-is-never-rebuilt"),
    ],
)
def test_one_draft_branch(draft_changes: DraftChanges, known: DraftBranch | None, expected: BranchAction) -> None:
    assert laid_out(draft_changes, known) == expected


@pytest.mark.parametrize(
    ("draft_changes", "expected"),
    [
        pytest.param(wishes(), DeleteBranch("d", HEAD), id="ends"),
        pytest.param(wishes("a"), grow("b1", "b1", "a"), id="begins-anew"),
    ],
)
def test_an_edited_draft_of_which_all_was_taken(draft_changes: DraftChanges, expected: BranchAction) -> None:
    assert laid_out(draft_changes, EDITED, more=False) == expected
