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
            id="fields-are-all-there-are",
        ),
        pytest.param(
            {"open": True, "fields": {"a": TEXT}},
            {"type": "object", "properties": {"a": {"type": ["string", "null"]}}},
            id="an-open-mapping-has-others-and-what-is-not-required-may-be-null",
        ),
        pytest.param(
            {"own": True, "fields": {}},
            {"type": "object", "properties": {}, "patternProperties": {"^x-": {}}, "additionalProperties": False},
            id="people-may-have-their-own",
        ),
        pytest.param({"each": TEXT}, {"type": "array", "items": TEXT}, id="each-is-an-item"),
        pytest.param({"values": TEXT}, {"type": "object", "additionalProperties": TEXT}, id="values-have-any-key"),
        pytest.param(
            {"values": {**TEXT, "nullable": True}},
            {"type": "object", "additionalProperties": {"type": ["string", "null"]}},
            id="a-value-may-be-null-where-that-is-said",
        ),
        pytest.param(
            {"use": "word", "description": "Mine."},
            {"enum": ["yes", "no"], "description": "Mine."},
            id="what-stands-beside-use-is-laid-over-it",
        ),
        pytest.param(
            {"open": True, "fields": {"a": {"use": "word"}}},
            {"type": "object", "properties": {"a": {"description": "A word.", "anyOf": WORD_OR_NOTHING}}},
            id="an-optional-word-may-be-empty-or-null",
        ),
        pytest.param(
            {"open": True, "fields": {"a": {"use": "word", "blank": False}}},
            {"type": "object", "properties": {"a": {"enum": ["yes", "no", None], "description": "A word."}}},
            id="unless-it-may-not-be-empty",
        ),
        pytest.param(
            {"open": True, "fields": {"a": {**TEXT, "nullable": False}}},
            {"type": "object", "properties": {"a": TEXT}},
            id="or-not-null",
        ),
        pytest.param(
            {"open": True, "fields": {"a": {"anyOf": [TEXT, {"each": TEXT}]}}},
            {
                "type": "object",
                "properties": {"a": {"anyOf": [TEXT, {"type": "array", "items": TEXT}, {"type": "null"}]}},
            },
            id="choices-are-of-the-notation-too",
        ),
        pytest.param(
            {"open": True, "fields": {"a": {"description": "Anything."}}},
            {"type": "object", "properties": {"a": {"description": "Anything."}}},
            id="what-may-be-anything-may-be-null",
        ),
    ],
)
def test_expand(node: dict[str, Any], schema: dict[str, Any]) -> None:
    expanded = expand(node, {"word": {"enum": ["yes", "no"], "description": "A word."}})

    assert expanded == schema
