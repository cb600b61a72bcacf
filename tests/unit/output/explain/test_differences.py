"""Tests of the first difference between two versions of a package."""

from __future__ import annotations

import pytest

from reconciler.catalog.files import File, FileTree
from reconciler.krm.yaml import DataPath
from reconciler.output.explain.first_difference import FirstDifference, find_first_change, find_first_difference

WEB = "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web\nspec:\n  replicas: 2\n  paused: false\n"
SECRET = "apiVersion: v1\nkind: Secret\nmetadata:\n  name: s\nstringData:\n  key: {}\n"


def build_files(**contents: str) -> FileTree:
    return FileTree({f"{name}.yaml": File(text.encode()) for name, text in contents.items()})


def find_difference(before: FileTree, after: FileTree) -> FirstDifference:
    first_difference = find_first_difference(before, after)
    assert first_difference
    return first_difference


def test_equal_packages_do_not_differ() -> None:
    assert find_first_difference(build_files(web=WEB), build_files(web=WEB)) is None


WITHOUT = WEB.replace("  replicas: 2\n", "")
LAST = len(WEB) - 1


@pytest.mark.parametrize(
    ("after", "byte", "line", "field"),
    [
        pytest.param(
            build_files(web=WEB.replace("2", "13")), WEB.index("2"), 6, "/spec/replicas 2 → 13", id="another-value"
        ),
        pytest.param(
            build_files(web=WITHOUT),
            WEB.index("replicas"),
            6,
            "/spec/replicas removed (was 2)",
            id="a-field-that-is-gone",
        ),
        pytest.param(build_files(web=WEB + "# why\n"), LAST + 1, 8, " ", id="a-comment-at-the-end"),
        pytest.param(build_files(web=WEB[:-1]), LAST, 7, " ", id="the-last-line-break"),
        pytest.param(build_files(), 0, 1, " removed", id="a-file-that-is-gone"),
        pytest.param(FileTree({"web.yaml": File(WEB.encode(), executable=True)}), 0, 1, " ", id="another-mode"),
    ],
)
def test_first_difference_has_file_byte_line_and_field(after: FileTree, byte: int, line: int, field: str) -> None:
    first_difference = find_difference(build_files(web=WEB), after)

    assert (
        first_difference.file,
        first_difference.byte,
        first_difference.line,
        f"{first_difference.pointer} {first_difference.change}",
    ) == ("web.yaml", byte, line, field)


def test_new_file_is_a_difference() -> None:
    first_difference = find_difference(build_files(web=WEB), build_files(web=WEB, also=WEB.replace("web", "also")))

    assert (first_difference.file, first_difference.resource, first_difference.change) == (
        "also.yaml",
        "Deployment/_cluster/also",
        "added",
    )


def test_byte_position_counts_bytes_and_not_characters() -> None:
    first_difference = find_difference(build_files(a="# größe\nb: 1\n"), build_files(a="# größe\nb: 2\n"))

    assert (first_difference.byte, first_difference.line) == (len("# größe\nb: ".encode()), 2)


def test_secret_values_are_masked() -> None:
    first_difference = find_difference(build_files(s=SECRET.format("hunter1")), build_files(s=SECRET.format("hunter2")))

    assert (first_difference.resource, first_difference.pointer, "hunter" in first_difference.change + first_difference.diff) == (
        "Secret/_cluster/s", "/stringData/key", False,
    )  # fmt: skip


def test_all_different_files_are_counted() -> None:
    first_difference = find_difference(
        build_files(a="a: 1\n", b="b: 1\n", c="c: 1\n"), build_files(a="a: 2\n", b="b: 2\n", c="c: 1\n")
    )

    assert (first_difference.file, first_difference.files) == ("a.yaml", 2)


@pytest.mark.parametrize(
    ("before", "after", "path"),
    [
        pytest.param({"a": 1}, {"a": 1}, None, id="the-same"),
        pytest.param({"a": 1}, {"a": True}, ("a",), id="types-count"),
        pytest.param({"a": [1, 2]}, {"a": [1, 3]}, ("a", 1), id="an-item"),
        pytest.param({"a": [1]}, {"a": [1, 3]}, ("a", 1), id="one-more-item"),
        pytest.param({"a": {"b": 1}}, {"a": [1]}, ("a",), id="another-shape"),
        pytest.param({}, {"a": None}, ("a",), id="null-is-a-value"),
    ],
)
def test_path_of_the_first_change(before: object, after: object, path: DataPath | None) -> None:
    change = find_first_change(before, after)

    assert (change and change[0]) == path
