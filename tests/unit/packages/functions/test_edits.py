"""Edits: the order of fields, and comments without a place."""

from __future__ import annotations

import pytest

from reconciler.packages.functions.edits import EditError, commented, visited_fields
from reconciler.packages.kptfile import field_path
from tests.unit.packages.builders import items


def test_the_lists_of_a_mapping_come_first() -> None:
    data = {"a": 1, "b": {"c": [{"d": 2}]}, "e": ["x"], "f": None}

    assert [field_path(path) for path, _ in visited_fields(data)] == ["e", "a", "b.c", "b.c[0].d", "e[0]", "f"]


def test_a_comment_without_a_place() -> None:
    item = items("apiVersion: v1\nl: [a, b]\n")[0]

    with pytest.raises(EditError, match="end of line"):
        commented(item, ("l", 0), "# x")
