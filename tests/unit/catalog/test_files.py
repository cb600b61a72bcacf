"""Tests of file trees: their IDs are equal to those of Git, and they are immutable."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.catalog.files import EMPTY_TREE, File, FileTree
from tests.support.examples import examples
from tests.support.git_repositories import git, make_bare

SEGMENTS = st.sampled_from(["a", "a-b", "a.b", "a0", "ab", "B", "é", "with space", "日本"])
FILES = st.builds(File, st.sampled_from([b"", b"x", b"\x00\xff\n"]), st.booleans())
TREES = st.dictionaries(st.lists(SEGMENTS, min_size=1, max_size=3).map("/".join), FILES, min_size=1, max_size=12)


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_bare(tmp_path_factory.mktemp("objects") / "ids.git")


def compute_tree_with_git(repository: Path, files: dict[str, File]) -> str:
    """Return the ID of the tree that Git computes for these files."""
    stream = [b"commit refs/heads/x\ncommitter A <a@example.com> 0 +0000\ndata 0\ndeleteall\n"]
    for path, file in files.items():
        stream.append(b"M %s inline %s\ndata %d\n%s\n" % (file.mode.encode(), path.encode(), len(file.data), file.data))
    git(repository, "fast-import", "--quiet", "--force", stdin=b"".join(stream))
    return git(repository, "rev-parse", "refs/heads/x^{tree}")


@settings(max_examples=examples(40))
@given(drawn=TREES)
def test_tree_ids_are_equal_to_those_of_git(repository: Path, drawn: dict[str, File]) -> None:
    # A path cannot be a file and a folder.
    files = {path: file for path, file in drawn.items() if not any(other.startswith(f"{path}/") for other in drawn)}

    assert FileTree(files).id == compute_tree_with_git(repository, files)


@given(drawn=TREES, order=st.randoms(use_true_random=False))
def test_order_of_files_does_not_change_the_tree(drawn: dict[str, File], order: object) -> None:
    shuffled = sorted(drawn.items(), key=lambda _: order.random())  # type: ignore[attr-defined]

    tree = FileTree(dict(shuffled))

    assert (list(tree), tree) == (sorted(drawn), FileTree(drawn))
    assert (tree.id, hash(tree)) == (FileTree(drawn).id, hash(FileTree(drawn)))


TREE = FileTree({"a": File(b"1", True), "b/c": File(b"2"), "b/d/e": File(b"3"), "bb": File(b"4")})


@pytest.mark.parametrize(
    ("tree", "expected"),
    [
        pytest.param(TREE.with_files({"a": b"9"}), {"a": (b"9", True)}, id="bytes-keep-the-mode"),
        pytest.param(TREE.with_files({"b/c": b"9"}), {"b/c": (b"9", False)}, id="whichever-it-is"),
        pytest.param(TREE.with_files({"a": File(b"9")}), {"a": (b"9", False)}, id="a-file-brings-its-own"),
        pytest.param(TREE.with_files({"new": b"9"}), {"new": (b"9", False)}, id="a-new-file-is-not-executable"),
    ],
)
def test_added_and_removed_files(tree: FileTree, expected: dict[str, tuple[bytes, bool]]) -> None:
    assert {path: (file.data, file.executable) for path, file in tree.items() if file != TREE.get(path)} == expected


@pytest.mark.parametrize(
    ("tree", "paths"),
    [
        pytest.param(TREE.without_files("a", "b/c"), ["b/d/e", "bb"], id="without-some"),
        pytest.param(TREE.without_files("b", "none"), list(TREE), id="a-folder-is-no-file"),
        pytest.param(TREE.subtree("b"), ["c", "d/e"], id="below-a-folder"),
        pytest.param(TREE.subtree("b/"), ["c", "d/e"], id="its-slash-means-nothing"),
        pytest.param(TREE.subtree("b/d"), ["e"], id="below-a-deeper-one"),
        pytest.param(TREE.subtree(""), list(TREE), id="below-the-root"),
        pytest.param(TREE.subtree("none"), [], id="below-nothing"),
    ],
)
def test_subtrees(tree: FileTree, paths: list[str]) -> None:
    assert list(tree) == paths


def test_changes_to_equal_files_return_the_same_tree() -> None:
    assert TREE.with_files({"a": b"1", "b/c": File(b"2")}) is TREE
    assert TREE.with_files({"a": File(b"1")}) is not TREE, "the mode changes"


def test_tree_is_immutable() -> None:
    before = TREE.id

    TREE.with_files({"a": b"9"}).without_files("b/c").subtree("b")

    assert (TREE.id, FileTree(dict(TREE)).id, len(TREE)) == (before, before, 4)


@pytest.mark.parametrize(
    ("file_tree", "other", "equal"),
    [
        pytest.param(FileTree({"a": File(b"1")}), FileTree({"a": File(b"1")}), True, id="equal"),
        pytest.param(FileTree({"a": File(b"1")}), FileTree({"a": File(b"2")}), False, id="another-content"),
        pytest.param(FileTree({"a": File(b"1")}), FileTree({"a": File(b"1", True)}), False, id="another-mode"),
        pytest.param(FileTree({"a": File(b"1")}), FileTree({"b": File(b"1")}), False, id="another-name"),
        pytest.param(FileTree(), FileTree({}), True, id="empty"),
    ],
)
def test_equal_trees_have_equal_ids(file_tree: FileTree, other: FileTree, equal: bool) -> None:
    assert (file_tree == other, file_tree.id == other.id) == (equal, equal)


def test_empty_tree() -> None:
    assert FileTree().id == EMPTY_TREE
    assert FileTree() != {}


def test_pickled_tree_contains_no_hash() -> None:
    """A process computes the hash of a received tree itself, because hashes of strings differ between processes."""
    tree = FileTree({"a": File(b"one")})
    assert hash(tree) == hash(FileTree({"a": File(b"one")}))

    received = pickle.loads(pickle.dumps(tree))
    assert "_hash" not in vars(received)
    assert (received, hash(received)) == (tree, hash(tree))
