"""Tests of cached edits, which are never confused with each other."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.krm.yaml import parse_yaml
from reconciler.packages.parsing import edit_document

TEXT = "# the site's\na: 1 # one\nb:\n  c: x\n"
FOUND = {"a": 1, "b": {"c": "x"}}


def test_edit_of_an_equal_document_is_cached() -> None:
    document, other = (parse_yaml(TEXT).documents[0] for _ in range(2))

    assert edit_document(document, {**FOUND, "a": 2}) is edit_document(other, {**FOUND, "a": 2})


@pytest.mark.parametrize(
    ("data", "text"),
    [
        pytest.param({**FOUND, "a": 2}, "a: 2 # one\n", id="an-integer"),
        pytest.param({**FOUND, "a": 2.0}, "a: 2.0 # one\n", id="a-float-that-equals-it"),
        pytest.param({**FOUND, "a": True}, "a: true # one\n", id="a-boolean-that-equals-what-stood-there"),
        pytest.param({**FOUND, "a": "2"}, 'a: "2" # one\n', id="its-text"),
        pytest.param({**FOUND, "v": 1, "u": 2}, "v: 1\nu: 2\n", id="new-keys-in-one-order"),
        pytest.param({**FOUND, "u": 2, "v": 1}, "u: 2\nv: 1\n", id="new-keys-in-the-other"),
    ],
)
def test_equal_values_of_other_types_or_order_are_other_edits(data: dict[str, Any], text: str) -> None:
    document = parse_yaml(TEXT).documents[0]

    assert text in edit_document(document, data).text
    assert edit_document(document, data).text == document.with_data(data).text


def test_document_at_another_position_keeps_its_line() -> None:
    below = parse_yaml(f"x: 1\n---\n{TEXT}").documents[1]
    edit_document(parse_yaml(TEXT).documents[0], {**FOUND, "a": 3})

    assert edit_document(below, {**FOUND, "a": 3}).line == below.line
