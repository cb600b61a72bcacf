"""CEL expressions with texts of the source."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from reconciler.adopt.expressions import format_expression, format_literal, generalize, is_valid, quote
from reconciler.cel import CelEnvironment
from tests.support.examples import examples

ENVIRONMENT = CelEnvironment(frozenset({"repository"}))
TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
CONTROL_CHARACTERS = "".join(map(chr, (*range(0x20), *range(0x7F, 0xA1), 0x2028, 0x2029, 0x200B, 0xFEFF)))
INTEGERS = st.integers(-(2**63), 2**63 - 1)
SCALARS = st.none() | st.booleans() | INTEGERS | st.floats(allow_nan=False, allow_infinity=False) | TEXTS
VALUES = st.recursive(SCALARS, lambda item: st.lists(item, max_size=4) | st.dictionaries(TEXTS, item, max_size=4))


def evaluate(text: str, **repository: Any) -> Any:
    return ENVIRONMENT.compile(text).evaluate({"repository": repository})


@settings(max_examples=examples(400))
@given(TEXTS)
@example(CONTROL_CHARACTERS)
@example("\r\n'\\r\\n\"")
def test_a_quoted_text_evaluates_to_the_text(text: str) -> None:
    literal = quote(text)

    assert evaluate(literal) == text
    assert literal.isprintable()


@pytest.mark.slow
@settings(max_examples=examples(400))
@given(VALUES)
def test_a_literal_evaluates_to_the_value(value: Any) -> None:
    assert evaluate(format_literal(value)) == value


@settings(max_examples=examples(400))
@given(TEXTS, TEXTS, TEXTS, TEXTS)
def test_a_general_text_evaluates_to_the_text_of_the_cluster(text: str, cluster: str, region: str, key: str) -> None:
    expression = format_expression(generalize(f"{text}{cluster}", cluster, {key: region}))

    assert evaluate(expression or "''", name=cluster, labels={key: region}) == f"{text}{cluster}"


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("'a' + repository.name", True),
        (format_literal(2**63), False),
        (format_literal(float("inf")), False),
        (quote("a" * 5000), False),
    ],
    ids=["valid", "large-integer", "infinity", "long-text"],
)
def test_expressions_outside_of_the_limits_are_not_valid(expression: str, expected: bool) -> None:
    assert is_valid(expression) is expected
