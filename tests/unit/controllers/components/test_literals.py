"""Tests of values as templates and as CEL literals."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from reconciler.controllers.components.template_syntax import escape_template, format_cel_literal
from tests.unit.controllers.components.templates.template_helpers import VALUES, render_patch_template

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
    assert render_patch_template(escape_template(value)) == value


@given(JSON)
def test_any_value_has_a_cel_literal(value: Any) -> None:
    result = render_patch_template(f"${{{format_cel_literal(value)}}}")

    assert (result, type(result)) == (value, type(value))


def test_text_without_expressions_is_its_own_template() -> None:
    assert escape_template({"a": ["{}$", VALUES["count"]]}) == {"a": ["{}$", 3]}
