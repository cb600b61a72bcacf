"""Tests of conditions in templates."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.cel import ExpressionBudget
from reconciler.controllers.components.field_findings import FieldFindingError
from reconciler.controllers.components.templates.directives import compile_condition
from tests.unit.controllers.components.templates.template_helpers import BINDINGS, IN_ADDON, LIMITS

AT = ("spec", "condition")


@pytest.mark.parametrize(
    ("data", "holds"),
    [
        pytest.param(None, True, id="none-is-written"),
        pytest.param(True, True, id="true"),
        pytest.param(False, False, id="false"),
        pytest.param("${spec.count > 2}", True, id="expression"),
        pytest.param("${spec.idle.enabled}\n", False, id="field"),
    ],
)
def test_conditions(data: Any, holds: bool) -> None:
    condition = compile_condition(data, AT, IN_ADDON)

    assert condition.field_findings == ()
    assert condition.is_met(BINDINGS, ExpressionBudget(LIMITS)) is holds


@pytest.mark.parametrize(
    ("data", "message"),
    [
        pytest.param("true", 'but is "true"', id="text"),
        pytest.param("x${true}", 'but is "x${true}"', id="text-with-an-expression"),
        pytest.param("${true}${true}", 'but is "${true}${true}"', id="two-expressions"),
        pytest.param(1, "but is 1", id="number"),
        pytest.param(["${true}"], "but is a list", id="list"),
        pytest.param({"a": True}, "but is a mapping", id="mapping"),
    ],
)
def test_constant_that_is_no_boolean_is_reported_before_rendering(data: Any, message: str) -> None:
    condition = compile_condition(data, AT, IN_ADDON)

    (finding,) = condition.field_findings
    assert (finding.code.name, finding.path) == ("ConditionType", AT)
    assert (
        finding.message == f"spec.condition must be true, false, or an expression that returns one of them, {message}"
    )
    with pytest.raises(FieldFindingError):
        condition.is_met(BINDINGS, ExpressionBudget(LIMITS))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("${spec.count}", "but is 3", id="number"),
        pytest.param("${'true'}", 'but is "true"', id="text"),
        pytest.param("${null}", "but is null", id="null"),
        pytest.param("${omit()}", "but is omit()", id="omit"),
        pytest.param("${spec.doors}", "but is a list", id="list"),
    ],
)
def test_result_that_is_no_boolean_is_reported(text: str, message: str) -> None:
    condition = compile_condition(text, AT, IN_ADDON)

    with pytest.raises(FieldFindingError) as caught:
        condition.is_met(BINDINGS, ExpressionBudget(LIMITS))

    assert caught.value.field_finding.code.name == "ConditionType"
    assert caught.value.field_finding.message.endswith(message)


def test_variables_of_a_condition() -> None:
    assert compile_condition("${spec.count > 2 && env.name == 'a'}", AT, IN_ADDON).variables == {"spec", "env"}


def test_invalid_condition_is_reported_once() -> None:
    condition = compile_condition("${spec.count >}", AT, IN_ADDON)

    assert [finding.code.name for finding in condition.field_findings] == ["CelSyntax"]
