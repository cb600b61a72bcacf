"""Differences between trees, in a table: folders are dictionaries, and files are texts."""

import hashlib
import json
from typing import Any

import pytest

from reconciler.catalog.files import DIRECTORY_MODE, FILE_MODE, SUBMODULE_MODE, ObjectId, TreeId
from reconciler.git.object_reader import TreeEntry
from reconciler.reconcile.remotes.repository import has_conflicting_changes, list_drafted_files, list_tree_changes

Folder = dict[str, Any]


class Table:
    """Trees by an ID, which is a digest of their content."""

    def __init__(self) -> None:
        self._trees: dict[str, tuple[TreeEntry, ...]] = {}

    def put(self, folder: Folder) -> TreeId:
        entries = [self._entry(name, item) for name, item in sorted(folder.items())]
        tree = hashlib.sha1(json.dumps(folder, sort_keys=True).encode()).hexdigest()
        self._trees[tree] = tuple(entries)
        return TreeId(tree)

    def _entry(self, name: str, value: Any) -> TreeEntry:
        if isinstance(value, dict):
            return TreeEntry(DIRECTORY_MODE, name, ObjectId(self.put(value)))
        return TreeEntry(SUBMODULE_MODE if value == "submodule" else FILE_MODE, name, ObjectId(f"blob-{value}"))

    def read_tree(self, tree: TreeId) -> tuple[TreeEntry, ...]:
        return self._trees[tree]

    def find_entry(self, tree: TreeId, path: str) -> TreeEntry | None:
        tree_entry = TreeEntry(DIRECTORY_MODE, "", ObjectId(tree))
        for name in path.split("/"):
            inside = self.read_tree(TreeId(tree_entry.id)) if tree_entry.is_tree else ()
            step = next((entry for entry in inside if entry.name == name), None)
            if step is None:
                return None
            tree_entry = step
        return tree_entry


BASE: Folder = {"a": {"x": "1", "y": "1"}, "r": "1"}


@pytest.mark.parametrize(
    ("new", "expected"),
    [
        pytest.param(BASE, [], id="equal"),
        pytest.param({**BASE, "r": "2"}, ["r"], id="a-file"),
        pytest.param({**BASE, "a": {"x": "2", "y": "1"}}, ["a/x"], id="below-a-folder"),
        pytest.param({**BASE, "b": {"x": "1", "z": "1"}}, ["b"], id="a-new-folder-is-one"),
        pytest.param({"r": "1"}, ["a"], id="a-folder-gone"),
        pytest.param({**BASE, "a": "file"}, ["a"], id="a-file-for-a-folder"),
    ],
)
def test_moved_paths(new: Folder, expected: list[str]) -> None:
    table = Table()

    assert [path for path, _ in list_tree_changes(table, table.put(BASE), table.put(new))] == expected


@pytest.mark.parametrize(
    ("head", "new", "expected"),
    [
        pytest.param(BASE, {**BASE, "b": {"x": "1", "z": "1"}}, ["b"], id="that-it-does-not-have"),
        pytest.param({**BASE, "b": {"y": "1"}}, {**BASE, "b": {"x": "1"}}, ["b/x"], id="of-which-it-has-its-own"),
        pytest.param({**BASE, "b": {"x": "1"}}, {**BASE, "b": {"x": "1"}}, ["b"], id="that-it-has"),
        pytest.param({**BASE, "a": {**BASE["a"], "z": "1"}}, {"r": "1"}, ["a/x", "a/y"], id="gone-but-for-its-own"),
        pytest.param({**BASE, "b": "1"}, {**BASE, "b": {"x": "1"}}, ["b"], id="that-its-file-is-in-the-way-of"),
    ],
)
def test_a_folder_moves_file_by_file_beside_what_the_head_has_there(
    head: Folder, new: Folder, expected: list[str]
) -> None:
    table = Table()

    assert [path for path, _ in list_tree_changes(table, *map(table.put, (BASE, new, head)))] == expected


@pytest.mark.parametrize(
    ("head", "branch", "expected"),
    [
        pytest.param({**BASE, "r": "2"}, {**BASE, "s": "1"}, False, id="different-paths"),
        pytest.param({**BASE, "r": "2"}, {**BASE, "r": "3"}, True, id="one-path"),
        pytest.param({**BASE, "r": "2"}, {**BASE, "r": "2"}, False, id="the-same-change"),
        pytest.param({**BASE, "r": "2"}, {"a": BASE["a"]}, True, id="changed-and-gone"),
        pytest.param(
            {**BASE, "a": {"x": "2", "y": "1"}}, {**BASE, "a": {"x": "3", "y": "1"}}, False, id="in-an-excluded-path"
        ),
        pytest.param({**BASE, "b": {"x": "1"}}, {**BASE, "b": {"y": "1"}}, False, id="two-new-folders"),
        pytest.param({**BASE, "b": {"x": "1"}}, {**BASE, "b": {"x": "2"}}, True, id="two-new-files"),
        pytest.param({**BASE, "b": {"x": "1"}}, {**BASE, "b": "1"}, True, id="a-file-in-a-new-folders-way"),
        pytest.param(BASE, {**BASE, "m": "submodule"}, False, id="a-submodule"),
        pytest.param(BASE, {**BASE, ".git": "1"}, True, id="forbidden-name"),
        pytest.param(BASE, {**BASE, "a": {**BASE["a"], "..": "1"}}, True, id="forbidden-name-in-an-excluded-path"),
    ],
)
def test_conflicting_changes(head: Folder, branch: Folder, expected: bool) -> None:
    table = Table()

    assert has_conflicting_changes(table, table.put(head), table.put(BASE), table.put(branch), ["a"]) is expected


@pytest.mark.parametrize(
    ("head", "branch", "expected"),
    [
        pytest.param(BASE, {**BASE, "s": "1"}, [], id="nothing"),
        pytest.param({**BASE, "r": "2"}, BASE, ["r 2"], id="a-file"),
        pytest.param({**BASE, "r": "2"}, {**BASE, "r": "2"}, [], id="there-already"),
        pytest.param({**BASE, "r": "2"}, {**BASE, "r": "3"}, ["!r 2"], id="both"),
        pytest.param({"a": BASE["a"]}, BASE, ["r gone"], id="a-file-gone"),
        pytest.param({"a": BASE["a"]}, {**BASE, "r": "3"}, ["!r gone"], id="gone-and-changed"),
        pytest.param({"r": "1"}, {**BASE, "a": {**BASE["a"], "z": "1"}}, ["a/x gone", "a/y gone"], id="a-folder-gone"),
        pytest.param(
            {**BASE, "b": {"x": "1", "c": {"z": "1"}}}, BASE, ["b/c/z 1", "b/x 1"], id="a-new-folder-by-files"
        ),
        pytest.param({**BASE, "b": {"x": "1"}}, {**BASE, "b": {"y": "1"}}, ["b/x 1"], id="two-new-folders"),
        pytest.param({**BASE, "b": {"x": "1"}}, {**BASE, "b": {"x": "2"}}, ["!b/x 1"], id="two-new-files"),
        pytest.param({**BASE, "b": {"x": "1"}}, {**BASE, "b": "1"}, ["!b gone", "b/x 1"], id="a-file-in-its-way"),
        pytest.param({**BASE, "r": {"x": "1"}}, BASE, ["r gone", "r/x 1"], id="a-folder-for-a-file"),
        pytest.param({**BASE, "a": "2"}, BASE, ["a 2", "a/x gone", "a/y gone"], id="a-file-for-a-folder"),
        pytest.param(
            {**BASE, "a": {"x": "2", "y": "1"}}, {"r": "1"}, ["!a/x 2"], id="changed-in-a-folder-that-is-gone"
        ),
        pytest.param({**BASE, ".git": "1"}, BASE, ["!.git 1"], id="forbidden-name"),
    ],
)
def test_proposed_changes(head: Folder, branch: Folder, expected: list[str]) -> None:
    table = Table()
    drafted_files = list_drafted_files(table, table.put(head), table.put(BASE), table.put(branch))

    assert [
        f"{'' if drafted_file.is_mergeable else '!'}{drafted_file.path} {(drafted_file.object_id or 'blob-gone')[5:]}"
        for drafted_file in drafted_files
    ] == expected
