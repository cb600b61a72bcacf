from __future__ import annotations

from typing import Any

import pytest

from reconciler.output.schemas.json_schemas import expand

TEXT = {"type": "string"}
WORD_OR_NOTHING = [{"enum": ["yes", "no"]}, {"type": ["string", "null"], "maxLength": 0}]


@pytest.mark.parametrize(
    ("node", "schema"),
    [
        pytest.param(
            {"required": ["a"], "fields": {"a": TEXT}},
            {"required": ["a"], "type": "object", "properties": {"a": TEXT}, "additionalProperties": False},
            id="other-fields-are-not-allowed",
        ),
        pytest.param(
            {"open": True, "fields": {"a": TEXT}},
            {"type": "object", "properties": {"a": {"type": ["string", "null"]}}},
            id="open-allows-other-fields-and-optional-fields-can-be-null",
        ),
        pytest.param(
            {"extensible": True, "fields": {}},
            {"type": "object", "properties": {}, "patternProperties": {"^x-": {}}, "additionalProperties": False},
            id="extensible-allows-x-fields",
        ),
        pytest.param({"items": TEXT}, {"type": "array", "items": TEXT}, id="items-are-a-list"),
        pytest.param({"values": TEXT}, {"type": "object", "additionalProperties": TEXT}, id="values-have-any-key"),
        pytest.param(
            {"values": {**TEXT, "nullable": True}},
            {"type": "object", "additionalProperties": {"type": ["string", "null"]}},
            id="a-nullable-value",
        ),
        pytest.param(
            {"part": "word", "description": "Mine."},
            {"enum": ["yes", "no"], "description": "Mine."},
            id="keywords-beside-part-override-it",
        ),
        pytest.param(
            {"open": True, "fields": {"a": {"part": "word"}}},
            {"type": "object", "properties": {"a": {"description": "A word.", "anyOf": WORD_OR_NOTHING}}},
            id="an-optional-enum-can-be-empty-or-null",
        ),
        pytest.param(
            {"open": True, "fields": {"a": {"part": "word", "allowEmpty": False}}},
            {"type": "object", "properties": {"a": {"enum": ["yes", "no", None], "description": "A word."}}},
            id="an-enum-that-must-not-be-empty",
        ),
        pytest.param(
            {"open": True, "fields": {"a": {**TEXT, "nullable": False}}},
            {"type": "object", "properties": {"a": TEXT}},
            id="a-field-that-must-not-be-null",
        ),
        pytest.param(
            {"open": True, "fields": {"a": {"anyOf": [TEXT, {"items": TEXT}]}}},
            {
                "type": "object",
                "properties": {"a": {"anyOf": [TEXT, {"type": "array", "items": TEXT}, {"type": "null"}]}},
            },
            id="anyof-contains-the-notation",
        ),
        pytest.param(
            {"open": True, "fields": {"a": {"description": "Anything."}}},
            {"type": "object", "properties": {"a": {"description": "Anything."}}},
            id="a-field-of-any-type",
        ),
    ],
)
def test_expand_notation(node: dict[str, Any], schema: dict[str, Any]) -> None:
    expanded = expand(node, {"word": {"enum": ["yes", "no"], "description": "A word."}})

    assert expanded == schema
