"""Tests of local changes that a render loses: each has a conflict record, and kept changes have none."""

import pytest

from reconciler.catalog.files import File, FileTree
from reconciler.krm.merge3.rules import ABSENT, Conflict
from reconciler.planning.model.sources import NOT_KEPT_RULE, BranchPackage, RenderInputs
from reconciler.planning.render.local_changes import LostChanges, find_lost_changes

BEFORE = b"kind: A\ndata:\n  a: 1\n"


def build_tree(content: bytes | File | None, path: str = "a.yaml") -> FileTree:
    if content is None:
        return FileTree()
    return FileTree({path: content if isinstance(content, File) else File(content)})


def build_branch_package(before: FileTree, now: FileTree, *conflicts: Conflict) -> BranchPackage:
    return BranchPackage(now, before, before, before, before, conflicts)


def find_published_losses(
    now: bytes | File | None, result: FileTree, *known: Conflict, before: bytes | None = BEFORE
) -> LostChanges:
    return find_lost_changes(
        RenderInputs(FileTree(), build_branch_package(build_tree(before), build_tree(now))), result, known
    )


def build_field_conflict(local: object, file: str = "a.yaml") -> Conflict:
    return Conflict("field", "/data/a", 1, local, 3, "upstream", "D2", file=file)


KEPT = [
    pytest.param(BEFORE, BEFORE, id="nothing-changed"),
    pytest.param(BEFORE + b"# why\n", BEFORE + b"# why\n", id="same-bytes"),
    pytest.param(BEFORE + b"# why\n", BEFORE + b"  b: 2\n# why\n", id="comment-moved-down"),
    pytest.param(BEFORE + b"  b: 2 # new\n", BEFORE + b"  b: 2 # newer\n# new\n", id="value-and-comment-apart"),
    pytest.param(None, None, id="deletion"),
    pytest.param(File(BEFORE, executable=True), File(BEFORE + b"  b: 2\n", executable=True), id="executable"),
    pytest.param(b"data:\n  a: 1\nkind: A\n", b"data:\n  a: 2\nkind: A\n", id="order-with-another-value"),
    pytest.param(b"kind: A\n\ndata:\n  a: 1\n", b"kind: A\n\ndata:\n  a: 2\n", id="blank-line"),
    pytest.param(BEFORE.replace(b"\n", b"\r\n"), BEFORE.replace(b"\n", b"\r\n") + b"b: 2\r\n", id="CRLF"),
    pytest.param(b"kind: A\n", BEFORE, id="removed-lines-come-back-with-upstream"),
]
ITEMS = b"kind: A\nitems: [one, two]\n"


@pytest.mark.parametrize(("now", "result"), KEPT)
def test_kept_local_change_has_no_record(now: bytes | File | None, result: bytes | File | None) -> None:
    assert find_published_losses(now, build_tree(result)) == LostChanges()


LOST = [
    pytest.param(BEFORE + b"# why\n", BEFORE, id="trailing-comment"),
    pytest.param(b"# why\n---\n" + BEFORE, BEFORE, id="comment-before-the-document"),
    pytest.param(b"kind: 'A'\ndata:\n  a: 1\n", BEFORE, id="quotes"),
    pytest.param(b"kind: A\n\ndata:\n  a: 1\n", BEFORE, id="blank-line"),
    pytest.param(b"data:\n  a: 1\nkind: A\n", BEFORE, id="order"),
    pytest.param(b"\xef\xbb\xbf" + BEFORE, BEFORE, id="byte-order-mark"),
    pytest.param(BEFORE.replace(b"\n", b"\r\n"), BEFORE, id="CRLF"),
    pytest.param(File(BEFORE, executable=True), File(BEFORE), id="executable"),
    pytest.param(None, BEFORE, id="deletion"),
    pytest.param(b"\0\xff", BEFORE, id="binary"),
    pytest.param(BEFORE + b"# why\n", None, id="file-is-gone"),
]


@pytest.mark.parametrize(("now", "result"), LOST)
def test_lost_local_change_has_a_record(now: bytes | File | None, result: bytes | File | None) -> None:
    (conflict,) = find_published_losses(now, build_tree(result)).published_conflicts

    assert (conflict.kind, conflict.file, conflict.chosen, conflict.rule) == (
        "file",
        "a.yaml",
        "upstream",
        NOT_KEPT_RULE,
    )
    assert (conflict.local is ABSENT, conflict.upstream is ABSENT) == (now is None, result is None)


@pytest.mark.parametrize(
    ("result", "is_kept"),
    [
        pytest.param(b"items: [two, three, four]\n", True, id="with-an-item-of-upstream"),
        pytest.param(b"items: [two, four]\n", False, id="without-the-added-item"),
        pytest.param(b"items: [one, two, three]\n", False, id="with-the-removed-item"),
        pytest.param(b"others: [two, three, four]\n", False, id="of-another-field"),
    ],
)
def test_flow_list_is_kept_only_with_all_changes_of_its_items(result: bytes, is_kept: bool) -> None:
    lost_changes = find_published_losses(
        b"kind: A\nitems: [two, three]\n", build_tree(b"kind: A\n" + result), before=ITEMS
    )

    assert (lost_changes == LostChanges()) == is_kept


def test_content_in_another_file_is_kept() -> None:
    assert find_published_losses(BEFORE + b"# why\n", build_tree(BEFORE + b"# why\n", "b.yaml")) == LostChanges()


def test_renamed_file_that_an_update_changes_is_kept() -> None:
    ours = build_branch_package(build_tree(BEFORE), build_tree(BEFORE, "b.yaml"))

    assert (
        find_lost_changes(RenderInputs(FileTree(), ours), build_tree(b"kind: A\ndata:\n  a: 2\n", "b.yaml"), ())
        == LostChanges()
    )


def test_value_with_a_conflict_has_no_second_record() -> None:
    now, result = b"kind: A\ndata:\n  a: 2\n", build_tree(b"kind: A\ndata:\n  a: 3\n")

    assert find_published_losses(now, result, build_field_conflict(2)) == LostChanges()
    assert find_published_losses(now, result).published_conflicts
    assert find_published_losses(now + b"# why\n", result, build_field_conflict(2)).published_conflicts


def test_file_with_a_conflict_has_no_second_record() -> None:
    conflict = Conflict("file", "", 1, 2, 3, "upstream", "D17", file="a.yaml")

    assert find_published_losses(BEFORE + b"# why\n", build_tree(BEFORE), conflict) == LostChanges()


def test_only_changes_of_the_draft_are_checked_and_recorded_conflicts_are_kept() -> None:
    ours = build_branch_package(build_tree(BEFORE), build_tree(BEFORE + b"# published\n"))
    edited = build_branch_package(build_tree(BEFORE), build_tree(BEFORE + b"# drafted\n"))
    lost_changes = find_lost_changes(RenderInputs(FileTree(), ours, edited), build_tree(BEFORE), ())
    assert (len(lost_changes.published_conflicts), len(lost_changes.draft_conflicts)) == (0, 1)

    unedited = build_branch_package(build_tree(BEFORE), build_tree(BEFORE), *lost_changes.draft_conflicts)
    later = find_lost_changes(RenderInputs(FileTree(), None, unedited), build_tree(BEFORE), ())
    assert later.draft_conflicts == lost_changes.draft_conflicts

    settled = build_branch_package(
        build_tree(BEFORE), build_tree(BEFORE + b"# drafted\n"), *lost_changes.draft_conflicts
    )
    assert (
        find_lost_changes(RenderInputs(FileTree(), None, settled), build_tree(BEFORE + b"# drafted\n"), ())
        == LostChanges()
    )
    assert find_lost_changes(RenderInputs(FileTree(), None, unedited), FileTree(), ()) == LostChanges()
