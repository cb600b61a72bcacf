"""Tests of the JSON pointers of the lines of a document."""

from __future__ import annotations

import pytest

from reconciler.output.fleet.line_pointers import find_line_pointers


@pytest.mark.parametrize(
    ("text", "pointers"),
    [
        pytest.param("spec:\n  replicas: 3\n", {2: "/spec/replicas"}, id="field"),
        pytest.param("# head\na: 1\n\nb: 2\n", {2: "/a", 4: "/b"}, id="comment-and-blank-line"),
        pytest.param("a:\n- x: 1\n  y: 2\n- z\n", {2: "/a/0/x", 3: "/a/0/y", 4: "/a/1"}, id="list"),
        pytest.param("a: {b: 1, c: 2}\nd: {}\n", {1: "/a/b", 2: "/d"}, id="first-value-of-a-line"),
        pytest.param(
            "data:\n  f.yaml: |\n    x: 1\n    y: 2\nb: 1\n",
            {2: "/data/f.yaml", 3: "/data/f.yaml", 4: "/data/f.yaml", 5: "/b"},
            id="text-on-several-lines",
        ),
        pytest.param("a/b: 1\n", {1: "/a~1b"}, id="escaped"),
        pytest.param("a: [\n", {}, id="not-valid"),
        pytest.param("", {}, id="empty"),
    ],
)
def test_pointers(text: str, pointers: dict[int, str]) -> None:
    assert find_line_pointers(text) == pointers
