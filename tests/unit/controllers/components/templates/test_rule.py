"""Tests of validation rules for effective values."""

from __future__ import annotations

import pytest

from reconciler.cel import ExpressionBudget, ExpressionLimits
from reconciler.controllers.components.field_findings import FieldFinding
from reconciler.controllers.components.templates.directives import compile_rule
from tests.unit.controllers.components.templates.template_helpers import BINDINGS, IN_ADDON, LIMITS

AT = ("spec", "validation", "rules", 1)


def check_rule(
    expression: str, message: str = "", name: str = "enough", limits: ExpressionLimits = LIMITS
) -> FieldFinding | None:
    rule = compile_rule(name, expression, message, AT, IN_ADDON)
    assert rule.field_findings == ()
    return rule.check(BINDINGS, ExpressionBudget(limits))


@pytest.mark.parametrize(
    "expression",
    [
        pytest.param("spec.count > 2", id="comparison"),
        pytest.param("spec.doors.all(d, d.number > 1024)", id="macro"),
        pytest.param("has(spec.owner) || addon.name == 'gauge'", id="addon"),
    ],
)
def test_rule_that_is_met(expression: str) -> None:
    assert check_rule(expression, "whatever ${spec.count / 0}") is None


RULE = 'the rule "enough" at spec.validation.rules[1] is not met: '


@pytest.mark.parametrize(
    ("expression", "message", "text"),
    [
        pytest.param("spec.count > 5", "more than 5", "more than 5", id="message"),
        pytest.param("spec.count > 5", "more than 5, not ${spec.count}", "more than 5, not 3", id="rendered"),
        pytest.param("spec.count > 5", "${spec.count}", "3", id="rendered-to-a-number"),
        pytest.param("spec.count > 5", "", '"spec.count > 5" must be true', id="no-message"),
        pytest.param("spec.count > 5", "${omit()}", '"spec.count > 5" must be true', id="omitted-message"),
        pytest.param("spec.count", "say", 'say; "spec.count" must return true or false, but returns 3', id="no-bool"),
        pytest.param("null", "say", 'say; "null" must return true or false, but returns null', id="null"),
        pytest.param("'true'", "say", 'say; "\'true\'" must return true or false, but returns "true"', id="text"),
    ],
)
def test_rule_that_is_not_met(expression: str, message: str, text: str) -> None:
    finding = check_rule(expression, message)

    assert finding is not None
    assert (finding.code.name, finding.path, finding.message) == ("ValidationRuleFailed", AT, RULE + text)


@pytest.mark.parametrize(
    ("expression", "message", "parts"),
    [
        pytest.param(
            "1 / 0 == 1", "say", ("say; spec.validation.rules[1].expression ", "division by zero"), id="error"
        ),
        pytest.param("spec.owner == 'x'", "say", ("no such key: owner (line 1, column 6)",), id="missing"),
        pytest.param(
            "false",
            "x${null}",
            ("its message cannot be shown, because spec.validation.rules[1].message contains the expression",),
            id="message-too",
        ),
    ],
)
def test_rule_with_an_evaluation_error_is_not_met(expression: str, message: str, parts: tuple[str, ...]) -> None:
    finding = check_rule(expression, message)

    assert finding is not None
    assert finding.code.name == "ValidationRuleFailed"
    assert all(part in finding.message for part in parts)


def test_rule_that_exceeds_the_budget_is_not_met() -> None:
    finding = check_rule("spec.doors.all(d, true)", "say", limits=ExpressionLimits(steps=2))

    assert finding is not None
    assert "more than 2 steps" in finding.message


def test_rule_without_a_name() -> None:
    finding = check_rule("false", "say", name="")

    assert finding is not None
    assert finding.message == "the rule at spec.validation.rules[1] is not met: say"


@pytest.mark.parametrize(
    ("expression", "message", "values"),
    [
        pytest.param("${spec.count > 1}", "", [("CelSyntax", "expression")], id="with-signs-of-a-template"),
        pytest.param("spec.nope", "", [("CelUndefinedField", "expression")], id="field"),
        pytest.param("true", "${nope}", [("CelUndeclared", "message")], id="message"),
        pytest.param("1 +", "${", [("CelSyntax", "expression"), ("TemplateUnterminated", "message")], id="both"),
    ],
)
def test_invalid_rule_is_reported(expression: str, message: str, values: list[tuple[str, str]]) -> None:
    rule = compile_rule("enough", expression, message, AT, IN_ADDON)

    assert [(finding.code.name, finding.path) for finding in rule.field_findings] == [
        (code, (*AT, name)) for code, name in values
    ]


def test_rule_with_invalid_cel_is_never_met() -> None:
    rule = compile_rule("enough", "1 +", "", AT, IN_ADDON)

    assert rule.check(BINDINGS, ExpressionBudget(LIMITS)) == rule.field_findings[0]


def test_variables_of_a_rule() -> None:
    assert compile_rule("a", "spec.count > 1", "${env.name}", AT, IN_ADDON).variables == {"spec", "env"}
    assert compile_rule("a", "1 +", "${env.name}", AT, IN_ADDON).variables == {"env"}
