"""Property tests of flattening: the flattened definition renders the same objects with any overrides."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, assume, event, given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from reconciler.controllers.components.flatten.definition import flatten_component_type
from reconciler.controllers.components.flatten.fields import ShorthandWriter
from reconciler.controllers.components.schema.openapi import Schema
from reconciler.controllers.components.schema.sections import ComponentSchema
from reconciler.controllers.components.schema.validation import validate_value
from reconciler.controllers.components.schema.values import apply_defaults, overlay_values
from reconciler.krm.findings import Severity
from tests.support.examples import examples
from tests.unit.controllers.components.flatten_helpers import FLATTENED_NAME, LIMITS, FlattenSetup, select_open_values
from tests.unit.controllers.components.schema.schema_readers import read_component_schema
from tests.unit.controllers.components.schema.schema_strategies import components, values

OWN: dict[str, Any] = {
    "schema": {"parameters": {"grain": "string | default=rye"}, "envOverrides": {"count": "integer | default=1"}},
    "resources": [
        {
            "id": "wheel",
            "template": {
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "metadata": {"name": "${metadata.name}", "labels": {"tier": "water", "grain": "${spec.grain}"}},
                "spec": {
                    "list": [{"name": "a", "size": 1}, {"name": "b", "held": ["${spec.grain}"]}],
                    "open": "${spec.count}",
                    "late": "${spec.count > 1 ? {'x': 1} : omit()}",
                    "items": [{"name": "${spec.grain}"}, "${spec.count > 1 ? {'name': 'c'} : omit()}"],
                    "null": None,
                },
            },
        },
        {
            "id": "door",
            "forEach": "${['front', 'back']}",
            "template": {
                "apiVersion": "v1",
                "kind": "Service",
                "metadata": {"name": "${metadata.name}-${item}", "labels": {"${item}": "open"}},
                "spec": {"list": [], "open": {"kept": "${item}"}},
            },
        },
    ],
}
PLACES = (
    "/spec/open", "/spec/late", "/spec/new", "/spec/new/deep", "/spec/list", "/spec/list/-", "/spec/list/0",
    "/spec/list/[*]/held", "/spec/list/[?(@.name=='a')]/held", "/spec/list/[?(@.name=='b')]/held/-", "/spec/items/-",
    "/spec/items/0", "/spec/null", "/spec/null/x", "/spec/new/-", "/metadata/labels", "/metadata/annotations/x",
)  # fmt: skip
TARGETS = (
    {"resourceType": "Deployment"}, {"resourceType": "*"}, {"resourceId": "door"}, {"resourceId": "made"},
    {"selector": {"matchLabels": {"tier": "water"}}}, {"selector": {"matchLabels": {"grain": "rye"}}},
)  # fmt: skip
MADE = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "${metadata.name}-made"}, "spec": {"list": [{}]}}


@st.composite
def draw_field_expression(draw: DrawFn, schema: Schema, root: str) -> str:
    """Draw an expression that reads a field, and one that reads a field that can be missing."""
    text, content = root, root
    while schema.get("properties") and draw(st.integers(0, 3)):
        name = draw(st.sampled_from(sorted(schema["properties"])))
        text, content, schema = f"{text}.{name}", f"{content}.?{name}", schema["properties"][name]
    if text == root:
        return text
    return draw(st.sampled_from((text, f"has({text})", f"(has({text}) ? {text} : 'none')", f"{content}.orValue([1])")))


@st.composite
def draw_expression(draw: DrawFn, schema: ComponentSchema) -> str:
    """Draw an expression of an addon."""
    roots = {"spec": schema.full, "parameters": schema.parameters, "envOverrides": schema.env_overrides}
    name = draw(st.sampled_from(("spec", "spec", "spec", *roots)))
    read = draw_field_expression(roots[name], name)
    result = st.sampled_from(("metadata.name", "instanceId", "1", "-2", "'a'", "omit()", "{'a': omit()}", "env.name"))
    output, other = draw(read | read | result), draw(read | result)
    return draw(
        st.sampled_from(
            (output, output, f"[{output}, {other}]", f"size({{'b': {output}}}) > 1 ? {output} : {other}",
             f"[1].map(spec, spec + 1).size() > 0 ? {output} : {other}", f"[{output}].filter(item, item == {other})")
        )
    )  # fmt: skip


def draw_template_text(schema: ComponentSchema) -> st.SearchStrategy[str]:
    """Draw a string of a template."""
    result = draw_expression(schema)
    return st.one_of(
        result.map("${{{}}}".format),
        result.map("${{string({})}}-x".format),
        result.map(" ${{{}}}${{''}}".format),
        st.just("plain"),
    )


def draw_value(schema: ComponentSchema) -> st.SearchStrategy[Any]:
    """Draw the value of an operation."""
    leaves = st.sampled_from((None, 1, "plain", '${"${HOME}"}')) | draw_template_text(schema)
    keys = st.sampled_from(("a", "b", "name")) | draw_template_text(schema)
    return st.recursive(
        leaves, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(keys, inner, max_size=2), max_leaves=4
    )


@st.composite
def draw_patch(draw: DrawFn, schema: ComponentSchema) -> dict[str, Any]:
    """Draw a patch."""
    op, place = draw(st.sampled_from(("add", "add", "merge", "replace", "remove"))), draw(st.sampled_from(PLACES))
    assume(op == "add" or not place.endswith("-"))
    written = {"op": op, "path": place} | ({} if op == "remove" else {"value": draw(draw_value(schema))})
    mapping = {"target": draw(st.sampled_from((*TARGETS[:1] * 6, *TARGETS))), "patch": written, "onMissing": "skip"}
    if draw(st.integers(0, 4)) == 0:
        mapping["condition"] = f"${{{draw(draw_expression(schema))} != 'b'}}"
    if draw(st.integers(0, 4)) == 0:
        mapping |= {"forEach": draw(st.sampled_from(("${[1, -2]}", "${['a']}"))), "var": "each"}
    return mapping


def draw_shorthand(schema: ComponentSchema) -> dict[str, Any]:
    """Draw the schema of an addon."""
    writer = ShorthandWriter(())
    sections = {"parameters": schema.parameters, "envOverrides": schema.env_overrides}
    return {**{name: writer.write_fields(section, name) for name, section in sections.items()}, "types": writer.types}


@st.composite
def draw_values(draw: DrawFn, schema: Schema) -> dict[str, Any]:
    """Draw valid values for some fields of a schema."""
    drawn = draw(values(schema))
    mapping = drawn if isinstance(drawn, dict) else {}
    known = {name: value for name, value in mapping.items() if name in schema["properties"] and draw(st.booleans())}
    return {
        name: value for name, value in known.items() if not validate_value({name: value}, schema, (), required=False)
    }


@st.composite
def draw_setup(draw: DrawFn) -> tuple[FlattenSetup, dict[str, Any]]:
    """Draw a definition with one or two addons, and the overrides of the first addon."""
    addons: dict[str, Any] = {}
    uses: list[dict[str, Any]] = []
    mapping: dict[str, Any] = {}
    for name in ("a", "b")[: draw(st.integers(1, 2))]:
        schema = draw(components())
        written = draw_shorthand(schema)
        read = read_component_schema(written, ("spec", "schema"))
        assert not [finding for finding in read.field_findings if finding.code.severity is Severity.ERROR]
        config = draw(draw_values(read.full))
        effective = apply_defaults(overlay_values(config, schema=read.full), read.full)
        assume(not validate_value(effective, read.full, ()))
        creates = [{"id": f"made{'' if name == 'a' else name}", "resource": {**MADE, "more": draw(draw_value(schema))}}]
        addons[name] = {
            "schema": written,
            "patches": draw(st.lists(draw_patch(schema), min_size=1, max_size=3)),
            "creates": creates if name == "a" and draw(st.booleans()) else [],
        }
        uses.append({"name": name, "config": config})
        mapping[name] = draw(draw_values(read.env_overrides))
    return FlattenSetup(OWN, addons, uses), mapping


@settings(max_examples=examples(25), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(draw_setup(), st.integers(0, 2))
def test_flattened_definition_renders_the_same_objects(drawn: tuple[FlattenSetup, dict[str, Any]], count: int) -> None:
    setup, mapping = drawn
    flattened = flatten_component_type(setup.build_plan(), FLATTENED_NAME, LIMITS)
    if isinstance(flattened, tuple):
        event(f"refused: {flattened[0].code}")
        return
    remaining = {name: select_open_values(flattened, name, fields) for name, fields in mapping.items()}
    below = {name: fields for name, fields in remaining.items() if fields}

    late = setup.render_with_addons({}, {"count": count}, remaining)

    early = setup.render_flattened({}, {"count": count, **below}, flattened)
    event("rendered" if isinstance(late, str) else "a render that fails")
    # An error can be in a value that a later addon removes. The flattened definition does not contain this value.
    assert early == late or not isinstance(late, str)
