"""Tests of layered values and their defaults."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.controllers.components.schema.openapi import Schema
from reconciler.controllers.components.schema.values import apply_defaults, overlay_values
from tests.support.examples import examples
from tests.unit.controllers.components.schema.schema_readers import read_component_schema

AT = ("spec", "schema")


def parameters(text: str) -> Schema:
    read = read_component_schema({"types": yaml.safe_load(TYPES), "parameters": yaml.safe_load(text)}, AT)
    assert read.field_findings == ()
    return read.parameters


TYPES = "Item: {name: string, level: string | default=info}"
FIELDS = "{a: string, b: string | nullable=true, m: {x: string, y: string}, l: '[]string', free: object}"


@pytest.mark.parametrize(
    ("layers", "expected"),
    [
        pytest.param([], {}, id="no-layer"),
        pytest.param([{"a": "1"}, {"a": "2"}], {"a": "2"}, id="the-last-one-wins"),
        pytest.param([{"m": {"x": "1", "y": "1"}}, {"m": {"x": "2"}}], {"m": {"x": "2", "y": "1"}}, id="maps-merge"),
        pytest.param([{"l": ["1", "2"]}, {"l": ["3"]}], {"l": ["3"]}, id="lists-are-replaced"),
        pytest.param([{"m": "text"}, {"m": {"x": "1"}}], {"m": {"x": "1"}}, id="map-over-text"),
        pytest.param([{"m": {"x": "1"}}, {"m": "text"}], {"m": "text"}, id="text-over-a-map"),
        pytest.param([{"a": "1"}, {"a": None}], {}, id="null-takes-away"),
        pytest.param([{"a": "1"}, {"a": None}, {"a": "2"}], {"a": "2"}, id="and-is-forgotten"),
        pytest.param([{"m": {"x": "1", "y": "1"}}, {"m": {"x": None}}], {"m": {"y": "1"}}, id="null-deep-inside"),
        pytest.param([{"m": {"x": None}}], {"m": {}}, id="null-over-nothing"),
        pytest.param([{"b": "1"}, {"b": None}], {"b": None}, id="null-that-is-allowed"),
        pytest.param([{"free": {"k": 1, "n": 2}}, {"free": {"k": None}}], {"free": {"n": 2}}, id="null-in-free-form"),
        pytest.param([{"who": None}], {"who": None}, id="null-for-an-undeclared-field"),
    ],
)
def test_overlay(layers: list[dict[str, Any]], expected: dict[str, Any]) -> None:
    result = deepcopy(layers)

    assert overlay_values(*layers, schema=parameters(FIELDS)) == expected
    assert layers == result


@pytest.mark.parametrize(
    ("fields", "value", "expected"),
    [
        pytest.param("{a: string | default=x}", {}, {"a": "x"}, id="absent"),
        pytest.param("{a: string | default=x}", {"a": ""}, {"a": ""}, id="given"),
        pytest.param("{a: string | default=x}", {"a": None}, {"a": "x"}, id="row-11-null-is-absent"),
        pytest.param("{a: string}", {"a": None}, {}, id="row-11-null-without-a-default"),
        pytest.param("{a: string | default=x nullable=true}", {"a": None}, {"a": None}, id="null-that-is-allowed"),
        pytest.param("{a: boolean | default=true}", {"a": False}, {"a": False}, id="false-is-given"),
        pytest.param(
            "{a: {b: {c: string | default=x}}}", {}, {"a": {"b": {"c": "x"}}}, id="objects-that-fill-themselves"
        ),
        pytest.param("{a: {b: string | default=x, c: string | required=true}}", {}, {}, id="object-that-does-not"),
        pytest.param(
            "{a: {b: string | default=x, c: string}}",
            {"a": {"c": "y"}},
            {"a": {"b": "x", "c": "y"}},
            id="object-that-is-given",
        ),
        pytest.param(
            "{a: {b: string, c: string, $default: {b: x}}}",
            {"a": {"c": "y"}},
            {"a": {"c": "y"}},
            id="given-replaces-the-whole-default",
        ),
        pytest.param(
            '{a: \'[]Item | default=[{"name":"x"}]\'}',
            {},
            {"a": [{"name": "x", "level": "info"}]},
            id="row-7-default-of-a-list-is-filled",
        ),
        pytest.param("{a: '[]Item'}", {}, {}, id="row-8-no-list-out-of-nothing"),
        pytest.param(
            "{a: '[]Item'}",
            {"a": [{}, {"level": "warn"}]},
            {"a": [{"level": "info"}, {"level": "warn"}]},
            id="every-item",
        ),
        pytest.param("{a: 'map[string]Item'}", {"a": {"k": {}}}, {"a": {"k": {"level": "info"}}}, id="every-entry"),
        pytest.param("{a: '[][]Item'}", {"a": [[{}]]}, {"a": [[{"level": "info"}]]}, id="lists-in-lists"),
        pytest.param(
            "{a: 'map[string]integer'}", {"a": {"k": None, "n": 1}}, {"a": {"n": 1}}, id="null-entry-is-absent"
        ),
        pytest.param("{a: '[]string'}", {"a": [None]}, {"a": [None]}, id="null-item-stays"),
        pytest.param("{a: string}", {"who": {"x": None}}, {"who": {"x": None}}, id="nothing-is-pruned"),
        pytest.param("{a: object}", {"a": {"x": None}}, {"a": {"x": None}}, id="free-form-stays"),
        pytest.param("{a: {b: string | default=x}}", {"a": "text"}, {"a": "text"}, id="wrong-type-stays"),
        pytest.param("{a: '[]Item'}", {"a": {"x": 1}}, {"a": {"x": 1}}, id="map-for-a-list-stays"),
    ],
)
def test_defaults(fields: str, value: Any, expected: Any) -> None:
    schema, result = parameters(fields), deepcopy(value)

    assert apply_defaults(value, schema) == expected
    assert value == result


def test_default_is_a_copy() -> None:
    schema = parameters("{a: 'object | default={\"k\": [1]}'}")
    first = apply_defaults({}, schema)
    first["a"]["k"].append(2)

    assert apply_defaults({}, schema) == {"a": {"k": [1]}}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.text("ab", max_size=2),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abmxyl"), inner, max_size=3),
    max_leaves=12,
)
LAYER = st.dictionaries(st.sampled_from(["a", "b", "m", "l", "free", "who"]), JSON, max_size=4)


@settings(max_examples=examples(60), deadline=None)
@given(LAYER, LAYER, LAYER)
def test_layers_can_be_merged_in_steps(one: Any, two: Any, three: Any) -> None:
    schema = parameters(FIELDS)
    lower = overlay_values(one, two, schema=schema)

    assert overlay_values(one, two, three, schema=schema) == overlay_values(lower, three, schema=schema)
    assert overlay_values(lower, {}, schema=schema) == overlay_values({}, lower, schema=schema) == lower


@settings(max_examples=examples(60), deadline=None)
@given(LAYER)
def test_defaults_are_idempotent(value: Any) -> None:
    schema = parameters("{a: string | default=x, b: string | nullable=true, m: {x: string | default=y}, l: '[]Item'}")
    filled = apply_defaults(value, schema)

    assert apply_defaults(filled, schema) == filled
