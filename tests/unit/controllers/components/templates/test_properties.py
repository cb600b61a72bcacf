"""Property tests of templates: plain text is unchanged, values are not evaluated, and no input causes a crash."""

from __future__ import annotations

import copy
import json
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from reconciler.cel import OMIT, ExpressionBudget
from reconciler.controllers.components.field_findings import FieldFinding, FieldFindingError
from reconciler.controllers.components.templates.template import compile_template
from tests.unit.controllers.components.templates.template_helpers import (
    AT,
    BINDINGS,
    IN_PATCH,
    LIMITS,
    compile_patch_template,
    render_patch_template,
)

PLAIN = st.text().filter(lambda text: "${" not in text)
TRICKY = st.text(st.sampled_from("${}'\"\\aspec.0+,:[]()?!=/rb \n"), max_size=30)


def build_json(texts: st.SearchStrategy[str]) -> st.SearchStrategy[Any]:
    scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts
    return st.recursive(
        scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4), max_leaves=12
    )


EXPRESSIONS = st.sampled_from(
    [
        "spec.count", "spec.extra", "spec.notes", "metadata.name", "spec.doors.map(d, d.name)", "omit()", "null",
        "spec.extra.text", "'${'", "target.metadata", "1.5", "spec.owner", "{'a': spec.extra}", "true", "[omit()]",
    ]
)  # fmt: skip
TEMPLATES = build_json(
    st.lists(PLAIN | EXPRESSIONS.map(lambda text: f"${{{text}}}"), min_size=1, max_size=3).map("".join) | PLAIN
)


@given(PLAIN)
def test_text_without_expressions_is_unchanged(text: str) -> None:
    template = compile_patch_template({text: [text]})

    assert template.is_static
    assert template.render({}, ExpressionBudget(LIMITS)) == {text: [text]}


@given(build_json(PLAIN))
def test_data_without_expressions_is_unchanged(data: Any) -> None:
    result = compile_patch_template(data).render({}, ExpressionBudget(LIMITS))

    assert json.dumps(result) == json.dumps(data), "order and types as well"


@given(st.text() | TRICKY)
@example("${spec.count}")
@example('${"${evil}"}')
def test_values_are_never_evaluated(text: str) -> None:
    data = {"whole": "${spec.extra.text}", "part": "<${spec.extra.text}>", "in": "${spec.extra}", "${spec.owner}": 1}

    extra = {"text": text, "inner": {text: [text]}}

    result = render_patch_template(data, extra=extra, owner=f"-{text}")

    assert result == {"whole": text, "part": f"<{text}>", "in": extra, f"-{text}": 1}


def render_or_finding(data: Any) -> Any:
    template = compile_template(data, AT, IN_PATCH)
    try:
        return template.render(BINDINGS, ExpressionBudget(LIMITS))
    except FieldFindingError as error:
        return error.field_finding


@given(TEMPLATES)
def test_repeated_renders_are_equal(data: Any) -> None:
    before, values = copy.deepcopy(data), copy.deepcopy(BINDINGS)
    template = compile_template(data, AT, IN_PATCH)
    outcomes = []

    for _ in range(3):
        try:
            outcomes.append(template.render(BINDINGS, ExpressionBudget(LIMITS)))
        except FieldFindingError as error:
            outcomes.append(error.field_finding)

    assert outcomes == [render_or_finding(data)] * 3
    assert (data, BINDINGS) == (before, values), "nothing that is given is changed"


@given(TEMPLATES)
def test_render_with_origins_gives_the_same_value(data: Any) -> None:
    template = compile_template(data, AT, IN_PATCH)
    expected = render_or_finding(data)
    if isinstance(expected, FieldFinding):
        return

    value, origins = template.render_with_origins(BINDINGS, ExpressionBudget(LIMITS))

    assert value == expected
    for path, origin in origins.items():
        assert "${" in origin.text
        assert read_template_text(data, origin.path[len(AT) :]).strip() == origin.text.strip()
        assert_path_exists(value, path)


def read_template_text(data: Any, path: tuple[str | int, ...]) -> str:
    """Return the text at a path of a template. The last step can be a key that contains the text."""
    for step in path[:-1]:
        data = data[step]
    if path and isinstance(path[-1], str) and not isinstance(data[path[-1]], str):
        return path[-1]
    value = data[path[-1]] if path else data
    return value if "${" in value else str(path[-1])


def assert_path_exists(value: Any, path: tuple[str | int, ...]) -> None:
    for step in path:
        value = value[step]


@given(build_json(st.text() | TRICKY | TRICKY.map(lambda text: f"${{{text}}}")))
@example({"${": {"}": "${'"}})
@example("${1 + \n")
@example("${[" + "[" * 99)
def test_any_data_is_a_template_or_has_findings(data: Any) -> None:
    template = compile_template(data, AT, IN_PATCH)
    result = render_or_finding(data)

    assert bool(template.field_findings) <= isinstance(result, FieldFinding)
    for finding in (*template.field_findings, *((result,) if isinstance(result, FieldFinding) else ())):
        assert finding.path[: len(AT)] == AT
        assert finding.message.startswith("spec.resources[0].template")
    if not isinstance(result, FieldFinding) and result is not OMIT:
        json.dumps(result, allow_nan=False)
