"""Tests of edits: the order of fields, and comments that cannot be written."""

from __future__ import annotations

import pytest

from reconciler.krm.field_text import format_path
from reconciler.krm.yaml import Document
from reconciler.packages.functions.field_edits import EditError, require_line_comments, set_line_comments, walk_fields
from reconciler.packages.functions.limits import FunctionBudget
from tests.unit.packages.builders import parse_items


def test_lists_of_a_mapping_come_first() -> None:
    data = {"a": 1, "b": {"c": [{"d": 2}]}, "e": ["x"], "f": None}

    assert [format_path(path) for path, _ in walk_fields(data)] == ["e", "a", "b.c", "b.c[0].d", "e[0]", "f"]


def test_comment_that_cannot_be_written_has_an_error() -> None:
    item = parse_items("apiVersion: v1\nl: [a, b]\nm: c\n")[0]

    changed, faults = set_line_comments(item, {("l", 0): "# x", ("m",): "# y", ("l", 2): "# z"}, FunctionBudget())

    assert changed.document.text == "apiVersion: v1\nl: [a, b]\nm: c # y\n"
    assert {path: fault.partition(" at ")[0] for path, fault in faults.items()} == {
        ("l", 0): "the value", ("l", 2): "there is no value",
    }  # fmt: skip


def test_all_required_comments_are_written_or_none() -> None:
    item = parse_items("apiVersion: v1\nl: [a, b]\n")[0]

    with pytest.raises(EditError, match="other text follows on its line"):
        require_line_comments(item, {("apiVersion",): "# y", ("l", 0): "# x"}, FunctionBudget())


def test_many_comments_are_written_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """A scan of the whole document for each comment takes half a minute for a few thousand comments."""
    item = parse_items("data:\n" + "".join(f"  k{number}: x\n" for number in range(64)) + "l: [a]\n")[0]
    looks: list[object] = []
    look = Document._set_comments
    monkeypatch.setattr(Document, "_set_comments", lambda *values: looks.append(values) or look(*values))

    changed, faults = set_line_comments(
        item, {**{("data", f"k{number}"): "# y" for number in range(64)}, ("l", 0): "# x"}, FunctionBudget()
    )

    assert (changed.document.text.count("# y"), list(faults)) == (64, [("l", 0)])
    assert len(looks) < 20
