"""Hypothesis strategies for schemas in shorthand and for values that are near to a schema."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from reconciler.controllers.components.schema.openapi import Schema
from reconciler.controllers.components.schema.sections import ComponentSchema
from reconciler.krm.findings import Severity
from tests.unit.controllers.components.schema.schema_readers import read_component_schema

AT = ("spec", "schema")
NAMES = ("a", "b", "c")
WORDS = ("", "a", "ab", "10Gi", "é")
PATTERNS = ("^a", "b$", "[0-9]+", "a|b")

DEFAULTS: dict[str, tuple[Any, ...]] = {
    "string": WORDS,
    "integer": (-1, 0, 3, 12),
    "number": (-1, 0, 0.5, 3),
    "boolean": (True, False),
    "object": ({}, {"a": 1}, {"a": {"b": [None]}}),
    "[]": ([], [{}], ["a"], ["a", "ab"], [1, 2], [{"a": 1}], [[]]),
    "map<": ({}, {"a": "a"}, {"b": 1}, {"a": {}}, {"c": ["a"]}),
}
MARKERS = {
    "string": (
        "minLength=1",
        "maxLength=3",
        *(f'pattern="{pattern}"' for pattern in PATTERNS),
        "enum=a,ab,é",
        "format=colour",
    ),
    "integer": ("minimum=0", "maximum=5", "multipleOf=3", "minimum=0 exclusiveMinimum=true", "enum=0,3,12"),
    "number": ("minimum=0", "maximum=2.5", "multipleOf=0.5", "maximum=3 exclusiveMaximum=true", "enum=0,0.5"),
    "boolean": (),
    "object": ("minProperties=1", "maxProperties=1"),
    "[]": ("minItems=1", "maxItems=1", "uniqueItems=true"),
    "map<": ("minProperties=1", "maxProperties=1"),
}


@st.composite
def types(draw: DrawFn, depth: int = 2) -> str:
    """Draw a type. The named types are T0, T1 and T2."""
    kinds = ["string", "integer", "number", "boolean", "object", "T0", "T1", "T2"]
    kind = draw(st.sampled_from([*kinds, "[]", "map<"] if depth else kinds))
    if kind == "[]":
        return f"[]{draw(types(depth - 1))}"
    return f"map<{draw(types(depth - 1))}>" if kind == "map<" else kind


@st.composite
def lines(draw: DrawFn) -> str:
    """Draw a shorthand line. Most lines are valid."""
    kind = draw(types())
    base = next((marker for marker in MARKERS if kind.startswith(marker)), "")
    chosen = draw(st.lists(st.sampled_from(("nullable=true", "required=true", *MARKERS.get(base, ()))), max_size=3))
    if base and draw(st.booleans()):
        chosen.append(f"default={_written(draw(st.sampled_from(DEFAULTS[base])))}")
    keys = {marker.split("=")[0]: marker for marker in chosen}
    return f"{kind} | {' '.join(keys[key] for key in sorted(keys))}"


def _written(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return "'" + text.replace("'", "''") + "'"


FIELDS = st.recursive(lines(), lambda inner: st.dictionaries(st.sampled_from(NAMES), inner, max_size=3), max_leaves=6)
OBJECTS = st.dictionaries(st.sampled_from(NAMES), FIELDS, max_size=3)


@st.composite
def components(draw: DrawFn) -> ComponentSchema:
    """Draw a valid schema. Invalid parts are removed."""
    named: dict[str, Any] = {}
    for name in ("T2", "T1", "T0"):
        wish = draw(FIELDS)
        if _is_valid(tried := {**named, name: wish}, {}):
            named = tried
        else:
            named[name] = "string"
    parameters, env_overrides = ({}, {}) if not named else (_kept(draw(OBJECTS), named), _kept(draw(OBJECTS), named))
    only = {name: field for name, field in env_overrides.items() if name not in parameters}
    return read_component_schema({"types": named, "parameters": parameters, "envOverrides": only}, AT)


def _kept(fields: dict[str, Any], named: dict[str, Any]) -> dict[str, Any]:
    return {name: field for name, field in fields.items() if _is_valid(named, {name: field})}


def _is_valid(named: dict[str, Any], parameters: dict[str, Any]) -> bool:
    read = read_component_schema({"types": named, "parameters": parameters}, AT)
    return not any(finding.code.severity is Severity.ERROR for finding in read.field_findings)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 13) | st.sampled_from((*WORDS, 0.5, 2.5, 3.0, 2**63, "zz")),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from((*NAMES, "z")), inner, max_size=3),
    max_leaves=5,
)


@st.composite
def values(draw: DrawFn, schema: Schema) -> Any:
    """Draw a value that matches a schema or is near to it."""
    if draw(st.integers(0, 11)) == 0:
        return draw(JSON)
    if "enum" in schema and draw(st.booleans()):
        return draw(st.sampled_from(schema["enum"]))
    match schema["type"]:
        case "object" if "properties" in schema:
            expected, names = set(schema.get("required", ())), sorted(schema["properties"])
            items = [name for name in names if name in expected or draw(st.booleans())]
            return {name: draw(values(schema["properties"][name])) for name in items}
        case "object" if "additionalProperties" in schema:
            return {
                name: draw(values(schema["additionalProperties"])) for name in draw(st.sets(st.sampled_from(NAMES)))
            }
        case "array":
            return [draw(values(schema["items"])) for _ in range(draw(st.integers(0, 3)))]
        case kind:
            return draw(st.sampled_from(DEFAULTS[kind]))
