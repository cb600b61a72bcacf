"""Rewriting expressions for a definition that an addon is baked into (openchoreo 13.3)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.expressions import Budget
from reconciler.rules.composition.faults import FaultError
from reconciler.rules.composition.text import (
    Renaming,
    as_template,
    compile_template,
    literal,
    rewrite_expression,
    rewrite_template,
)
from reconciler.rules.composition.text.template import DEEPEST
from tests.unit.rules.composition.text.text_world import AT, BINDINGS, IN_BASE, IN_PATCH, LIMITS, VALUES, rendered

BAKED = Renaming(
    {
        "spec": "spec.gauge",
        "parameters": "parameters.gauge",
        "envOverrides": "envOverrides.gauge",
        "instanceId": literal('a "wheel"'),
    },
    ("target", "resources", "addon"),
)

NESTED = {**BINDINGS, **{name: {"gauge": BINDINGS[name]} for name in ("spec", "parameters", "envOverrides")}}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("spec.count", "spec.gauge.count", id="field"),
        pytest.param("spec", "spec.gauge", id="alone"),
        pytest.param("[spec, {spec.owner: spec}]", "[spec.gauge, {spec.gauge.owner: spec.gauge}]", id="every-place"),
        pytest.param("spec['count'] + 1", "spec.gauge['count'] + 1", id="index"),
        pytest.param("has(spec.owner) ? 1 : 2", "has(spec.gauge.owner) ? 1 : 2", id="has"),
        pytest.param("spec.?owner.orValue('')", "spec.gauge.?owner.orValue('')", id="optional"),
        pytest.param("target2.spec", "target2.spec", id="after-a-dot"),
        pytest.param("'spec' + \"spec.count\"", "'spec' + \"spec.count\"", id="in-strings"),
        pytest.param("spec.extra.spec // spec", "spec.gauge.extra.spec // spec", id="in-a-comment"),
        pytest.param("[1].map(spec, spec)", "[1].map(spec, spec)", id="bound-by-a-macro"),
        pytest.param(
            "spec.doors.map(spec, spec.name)", "spec.gauge.doors.map(spec, spec.name)", id="bound-after-the-range"
        ),
        pytest.param("[1].map(i, [i, spec])", "[1].map(i, [i, spec.gauge])", id="free-in-a-macro"),
        pytest.param(
            "cel.bind(spec, spec.count, spec + 1)", "cel.bind(spec, spec.gauge.count, spec + 1)", id="bound-by-hand"
        ),
        pytest.param(".spec.count", ".spec.gauge.count", id="absolute"),
        pytest.param("specs", "specs", id="only-begins-alike"),
        pytest.param("parameters.owner", "parameters.gauge.owner", id="section"),
        pytest.param("envOverrides.count", "envOverrides.gauge.count", id="other-section"),
        pytest.param("instanceId + '-x'", '"a \\"wheel\\"" + \'-x\'', id="literal"),
        pytest.param(" . instanceId", ' "a \\"wheel\\""', id="absolute-literal"),
        pytest.param("instanceId.size()", '"a \\"wheel\\"".size()', id="literal-with-a-method"),
        pytest.param("metadata.name + env.name", "metadata.name + env.name", id="others-stay"),
        pytest.param("spec\n  .count +\nspec.count", "spec.gauge\n  .count +\nspec.gauge.count", id="lines"),
    ],
)
def test_expressions(text: str, expected: str) -> None:
    scope = IN_PATCH.including("target2").including("specs")

    assert rewrite_expression(text, AT, scope, BAKED) == expected


@pytest.mark.parametrize("name", ["target", "resources", "addon"])
def test_what_is_known_only_in_a_render_cannot_be_baked_in(name: str) -> None:
    with pytest.raises(FaultError) as caught:
        rewrite_expression(f"spec.count > 1 ? {name} : 1", AT, IN_PATCH, BAKED)

    fault = caught.value.fault
    assert (fault.code.name, fault.path) == ("NotBakeable", AT)
    assert f"must not use {name}, which is known only in a render" in fault.message
    assert rewrite_expression(f"'{name}' + spec.extra.{name}", AT, IN_PATCH, BAKED).startswith(f"'{name}' + spec.gauge")


def test_templates() -> None:
    data = {
        "plain": ["spec", 1, None, {8080: "spec"}],
        "${spec.owner}-x": "${spec.count} of ${instanceId}",
        "literal": '${"${spec.count}"}',
    }

    rewritten = rewrite_template(data, AT, IN_PATCH, BAKED)

    assert rewritten.faults == ()
    assert rewritten.data == {
        "plain": ["spec", 1, None, {8080: "spec"}],
        "${spec.gauge.owner}-x": '${spec.gauge.count} of ${"a \\"wheel\\""}',
        "literal": '${"${spec.count}"}',
    }


def test_everything_that_is_in_the_way_is_told_at_once() -> None:
    data = {"a": "${target.kind} ${addon.name}", "${": 1, "b": ["${spec.nope}", "${spec.count}"]}

    rewritten = rewrite_template(data, AT, IN_PATCH, BAKED)

    assert [(fault.path[len(AT) :], fault.code.name) for fault in rewritten.faults] == [
        (("a",), "NotBakeable"),
        (("${",), "TemplateUnterminated"),
        (("b", 0), "CelUndefinedField"),
    ]
    assert rewritten.data["b"][1] == "${spec.gauge.count}"


def test_keys_that_become_one() -> None:
    data = {'${"a \\"wheel\\""}': 1, "${instanceId}": 2}

    assert [fault.code.name for fault in rewrite_template(data, AT, IN_PATCH, BAKED).faults] == ["TemplateDuplicateKey"]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("${spec.doors.map(d, {'n': d.name, 'c': spec.count})}", id="macros"),
        pytest.param("${has(spec.owner) ? spec.owner : instanceId}-${metadata.name}", id="choice"),
        pytest.param("${spec.notes.transformMapEntry(k, v, {v: k + string(envOverrides.count)})}", id="entries"),
        pytest.param("${cel.bind(spec, spec.notes, spec.a + instanceId)} ${parameters.pages[0].name}", id="bind"),
    ],
)
def test_what_is_baked_in_renders_to_the_same(text: str) -> None:
    rewritten = rewrite_template(text, AT, IN_PATCH, BAKED)
    scope = IN_BASE.including("spec").including("parameters").including("envOverrides")

    baked = compile_template(rewritten.data, AT, scope)

    plain = compile_template(text, AT, IN_PATCH).render({**BINDINGS, "instanceId": 'a "wheel"'}, Budget(LIMITS))
    assert baked.render(NESTED, Budget(LIMITS)) == plain


PARTS = st.recursive(
    st.sampled_from(
        ["spec", "spec.count", "spec.notes['a']", "instanceId", "parameters", "'spec ${x}'", "has(spec.owner)", "1"]
    ),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map("[{0[0]}, {0[1]}]".format),
        st.tuples(inner, inner).map("[{0[0]}].map(i, {0[1]})".format),
        st.tuples(inner, inner).map("[{0[0]}].map(spec, {{'count': {0[1]}}})".format),
        st.tuples(inner, inner).map("cel.bind(instanceId, {0[0]}, {0[1]})".format),
        st.tuples(inner, inner).map("(spec.count > 2 ? {0[0]} : {0[1]})".format),
        inner.map("{{'spec': {0}}}.spec".format),
    ),
    max_leaves=8,
)


@given(PARTS)
def test_whatever_is_baked_in_renders_to_the_same(text: str) -> None:
    assert outcome(rewrite_expression(text, AT, IN_PATCH, BAKED), NESTED) == outcome(text, BINDINGS)


def outcome(text: str, values: Mapping[str, Any]) -> Any:
    scope = IN_PATCH.including("spec").including("parameters")
    try:
        return compile_template(f"${{{text}}}", AT, scope).render({**values, "instanceId": 'a "wheel"'}, Budget(LIMITS))
    except FaultError as error:
        return error.fault.code


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
    | st.text(st.sampled_from("${}'\"\\a\n")),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(st.sampled_from("${}a'\"")), inner, max_size=3),
)


@given(JSON)
def test_any_value_has_a_template(value: Any) -> None:
    assert rendered(as_template(value)) == value


@given(JSON)
def test_any_value_is_written_as_cel(value: Any) -> None:
    made = rendered(f"${{{literal(value)}}}")

    assert (made, type(made)) == (value, type(value))


def test_text_without_expressions_is_its_own_template() -> None:
    assert as_template({"a": ["{}$", VALUES["count"]]}) == {"a": ["{}$", 3]}


def test_values_of_any_depth_are_rewritten_as_deep_as_templates_may_be() -> None:
    data: Any = "${spec.count}"
    for _ in range(DEEPEST):
        data = [data]

    rewritten = rewrite_template(data, AT, IN_PATCH, BAKED)

    assert "${spec.gauge.count}" in str(rewritten.data)
