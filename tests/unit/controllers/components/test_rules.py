"""Tests of validation rules for effective values, also for components without bindings."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.controllers.components.component_builders import (
    FALSE,
    ONE_ENVIRONMENT,
    SIZED,
    TRUE,
    addon,
    allowed,
    annotate,
    binding,
    component,
    component_type,
    definition,
    find_finding,
    find_status,
    full_config,
    list_codes,
    list_findings,
    platform,
    read_ready,
    read_values,
    reconcile,
    schema,
)

LOW = {"name": "low", "expression": "spec.size < 3", "message": "size is ${spec.size}"}


def type_with_rules(*rules: Any) -> str:
    return component_type(validation={"rules": list(rules)})


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        pytest.param(LOW, 'the rule "low" at spec.validation.rules[0] is not met: size is 5', id="false"),
        pytest.param({"expression": "spec.size"}, '"spec.size" must return true or false, but returns 5', id="no-boolean"),
        pytest.param({"expression": "1 / 0 > 0"}, "division by zero", id="cannot-be-evaluated"),
        pytest.param({"expression": "spec.size < 3"}, '"spec.size < 3" must be true', id="no-message"),
        pytest.param({**LOW, "message": "${spec.size / 0}"}, 'rule "low" at spec', id="message-that-fails"),
        pytest.param({**LOW, "expression": "env.name != 'fair'"}, "is not met", id="of-the-environment"),
    ],
)  # fmt: skip
def test_rules_of_a_type(rule: Any, message: str) -> None:
    result = reconcile(full_config(SIZED, type_with_rules(rule), of=component({"size": 5})))

    output = find_finding(result, "ValidationRuleFailed")
    assert output.message.startswith("MarketStall square/bread in fair: the rule ")
    assert "at spec.validation.rules[0] is not met: " in output.message
    assert message in output.message
    assert result.variants == ()


def test_all_unmet_rules_are_reported() -> None:
    rules = [LOW, {"expression": "spec.size != 5"}, {"expression": "true"}]
    result = reconcile(full_config(SIZED, type_with_rules(*rules), of=component({"size": 5})))

    assert [item.message.partition(" is not met")[0][-8:] for item in list_findings(result)] == ["rules[0]", "rules[1]"]


@pytest.mark.parametrize(
    ("rule", "codes"),
    [
        pytest.param({"expression": "instanceId == 'x' && addon.name == 'lamp'"}, [], id="what-it-is"),
        pytest.param({"expression": "spec.watt == 7"}, [], id="its-own-values"),
        pytest.param({"expression": "parameters.watt == 7 && envOverrides.glow == 'dim'"}, [], id="in-sections"),
        pytest.param({"expression": "metadata.name == 'bread' && env.name == 'fair'"}, [], id="its-component"),
        pytest.param({"expression": "resources.exists(r, r.kind == 'ConfigMap')"}, [], id="what-was-rendered"),
        pytest.param({"expression": "spec.watt > 7"}, ["ValidationRuleFailed"], id="fails"),
    ],
)
@pytest.mark.parametrize("condition", [TRUE, FALSE])
def test_addon_rules_are_checked_before_its_condition(rule: Any, codes: list[str], condition: str) -> None:
    lamp = addon("lamp", {
        "schema": schema({"watt": "integer"}, {"glow": "string | default=dim"}), "condition": condition,
        "validation": {"rules": [rule]}, "patches": [annotate("x")],
    })  # fmt: skip
    result = reconcile(full_config(definition(), lamp, component_type(platform("lamp", "x", {"watt": 7}))))

    assert list_codes(result) == codes
    if codes:
        assert "in fair, addon lamp/x: the rule at spec.validation.rules[0]" in find_finding(result, codes[0]).message


def test_component_without_binding_is_validated_and_not_rendered() -> None:
    result = reconcile([SIZED, component_type(), component({"size": "big"})])

    assert list_codes(result) == ["SchemaValidation"]
    assert result.variants == ()
    assert read_ready(result, "MarketStall", "bread") == ("False", "SchemaValidation")


@pytest.mark.parametrize(
    ("rule", "codes"),
    [
        pytest.param(LOW, ["ValidationRuleFailed"], id="of-values"),
        pytest.param({"expression": "metadata.name == 'x'"}, ["ValidationRuleFailed"], id="of-its-name"),
        pytest.param({"expression": "env.name == 'x'"}, [], id="where-it-runs-is-not-known"),
        pytest.param({"expression": "build.image == 'x'"}, [], id="nor-what-was-built"),
        pytest.param({**LOW, "message": "in ${env.name}"}, [], id="nor-is-the-message"),
    ],
)
def test_rules_of_a_component_without_binding(rule: Any, codes: list[str]) -> None:
    assert list_codes(reconcile([SIZED, type_with_rules(rule), component({"size": 5})])) == codes


def test_addon_rules_of_a_component_without_binding() -> None:
    spec = {"schema": schema({"n": "integer"}), "validation": {"rules": [{"expression": "spec.n > 3"}]}}
    lamp = addon("lamp", {**spec, "patches": [annotate("x")]}, side="developer")

    result = reconcile([SIZED, lamp, component_type(allow=[allowed("lamp")]), component({"lamp": {"n": 3}})])

    assert find_finding(result, "ValidationRuleFailed").message.startswith(
        "MarketStall square/bread, addon lamp/default: "
    )


REQUIRED = definition(values=schema({}, {"host": "string | required=true"}))


def test_environment_can_set_a_required_value() -> None:
    """The effective values are validated."""
    result = reconcile(full_config(REQUIRED, component_type(), on=binding(overrides={"host": "a"})))

    assert list_codes(result) == []
    assert read_values(result) == {"host": "a"}
    assert read_ready(result, "MarketStall", "bread") == ("True", "Valid")
    assert [condition.reason for condition in find_status(result, "ComponentType", "market-stall").conditions] == [
        "Compiled",
        "Valid",
    ]


def test_required_value_that_an_environment_does_not_set() -> None:
    bindings = [binding(overrides={"host": "a"}), binding(name="other", environment="nowhere", overrides={})]
    also = [
        *ONE_ENVIRONMENT,
        *bindings,
        binding(environment="fair", name="x", component="cake"),
        component(name="cake"),
    ]
    result = reconcile([REQUIRED, component_type(), component(), *also])

    assert list_codes(result) == ["EnvironmentNotFound", "SchemaValidation"]
    assert read_ready(result, "MarketStall", "bread") == ("True", "Valid")
    assert read_ready(result, "MarketStall", "cake") == ("False", "SchemaValidation")
    valid = find_status(result, "ComponentType", "market-stall").conditions[1]
    assert (valid.type, valid.status, valid.reason) == ("InstancesValid", "False", "SchemaValidation")
    assert valid.message.startswith("1 of 2 components is not valid: MarketStall square/cake: ")
