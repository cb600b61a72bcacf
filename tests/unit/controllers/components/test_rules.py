"""Rules on values, and components that run nowhere, of which no more is looked at (openchoreo 4.4, 12)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.controllers.components.component_builders import (
    FALSE,
    PLACE,
    SIZED,
    TRUE,
    addon,
    allowed,
    binding,
    component,
    component_type,
    definition,
    finding,
    findings,
    market,
    note,
    platform,
    ready,
    room,
    schema,
    status,
    told,
    values,
)

LOW = {"name": "low", "expression": "spec.size < 3", "message": "size is ${spec.size}"}


def ruled(*rules: Any) -> str:
    return component_type(validation={"rules": list(rules)})


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        pytest.param(LOW, "the rule low is not met: size is 5", id="false"),
        pytest.param({"expression": "spec.size"}, 'it returns 5, neither true nor false', id="no-boolean"),
        pytest.param({"expression": "1 / 0 > 0"}, "division by zero", id="cannot-be-evaluated"),
        pytest.param({"expression": "spec.size < 3"}, '"spec.size < 3" must be true', id="no-message"),
        pytest.param({**LOW, "message": "${spec.size / 0}"}, "the rule low is not met", id="message-that-fails"),
        pytest.param({**LOW, "expression": "env.name != 'fair'"}, "is not met", id="of-the-environment"),
    ],
)  # fmt: skip
def test_rules_of_a_type(rule: Any, message: str) -> None:
    result = room(market(SIZED, ruled(rule), of=component({"size": 5})))

    output = finding(result, "ValidationRuleFailed")
    assert output.message.startswith("MarketStall/square/bread in fair: spec.validation.rules[0]: the rule")
    assert message in output.message
    assert result.variants == ()


def test_all_rules_are_told_at_once() -> None:
    rules = [LOW, {"expression": "spec.size != 5"}, {"expression": "true"}]
    result = room(market(SIZED, ruled(*rules), of=component({"size": 5})))

    assert [item.message.partition(": the rule")[0][-8:] for item in findings(result)] == ["rules[0]", "rules[1]"]


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
def test_rules_of_an_addon_come_before_its_condition(rule: Any, codes: list[str], condition: str) -> None:
    lamp = addon("lamp", {
        "schema": schema({"watt": "integer"}, {"glow": "string | default=dim"}), "condition": condition,
        "validation": {"rules": [rule]}, "patches": [note("x")],
    })  # fmt: skip
    result = room(market(definition(), lamp, component_type(platform("lamp", "x", {"watt": 7}))))

    assert told(result) == codes
    if codes:
        assert "in fair: lamp/x: spec.validation.rules[0]" in finding(result, codes[0]).message


def test_a_component_that_runs_nowhere_is_validated_and_rendered_nowhere() -> None:
    """openchoreo 12.7."""
    result = room([SIZED, component_type(), component({"size": "big"})])

    assert told(result) == ["SchemaValidation"]
    assert result.variants == ()
    assert ready(result, "MarketStall", "bread") == ("False", "SchemaValidation")


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
def test_rules_of_a_component_that_runs_nowhere(rule: Any, codes: list[str]) -> None:
    assert told(room([SIZED, ruled(rule), component({"size": 5})])) == codes


def test_rules_of_addons_of_a_component_that_runs_nowhere() -> None:
    spec = {"schema": schema({"n": "integer"}), "validation": {"rules": [{"expression": "spec.n > 3"}]}}
    lamp = addon("lamp", {**spec, "patches": [note("x")]}, side="developer")

    result = room([SIZED, lamp, component_type(allow=[allowed("lamp")]), component({"lamp": {"n": 3}})])

    assert finding(result, "ValidationRuleFailed").message.startswith("MarketStall/square/bread: lamp/default: ")


REQUIRED = definition(values=schema({}, {"host": "string | required=true"}))


def test_what_a_component_lacks_its_environments_may_give() -> None:
    """openchoreo 4.4: the values that are in effect are validated."""
    result = room(market(REQUIRED, component_type(), on=binding(overrides={"host": "a"})))

    assert told(result) == []
    assert values(result) == {"host": "a"}
    assert ready(result, "MarketStall", "bread") == ("True", "Valid")
    assert [condition.reason for condition in status(result, "ComponentType", "market-stall").conditions] == [
        "Compiled",
        "Valid",
    ]


def test_what_one_of_its_environments_does_not_give() -> None:
    bindings = [binding(overrides={"host": "a"}), binding(name="other", environment="nowhere", overrides={})]
    also = [*PLACE, *bindings, binding(environment="fair", name="x", component="cake"), component(name="cake")]
    result = room([REQUIRED, component_type(), component(), *also])

    assert told(result) == ["EnvironmentNotFound", "SchemaValidation"]
    assert ready(result, "MarketStall", "bread") == ("True", "Valid")
    assert ready(result, "MarketStall", "cake") == ("False", "SchemaValidation")
    valid = status(result, "ComponentType", "market-stall").conditions[1]
    assert (valid.type, valid.status, valid.reason) == ("InstancesValid", "False", "SchemaValidation")
    assert valid.message.startswith("1 of 2 components are not valid: MarketStall/square/cake: ")
