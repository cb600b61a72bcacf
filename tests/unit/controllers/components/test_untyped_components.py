"""Tests of components without a component type, which list their own addons."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.controllers.components.component_builders import (
    ONE_ENVIRONMENT,
    VALUES_TEMPLATE,
    addon,
    annotate,
    annotator,
    binding,
    component,
    component_type,
    create,
    definition,
    find_finding,
    find_stalled,
    full_config,
    list_codes,
    list_findings,
    manifest,
    patch,
    platform,
    read_objects,
    read_ready,
    read_values,
    reconcile,
    resource,
    schema,
    untyped_component,
)

LAMP = addon(
    "desk-lamp",
    {
        "schema": schema({"watt": "integer | default=3"}, {"glow": "string | default=dim"}),
        "creates": [create(manifest(name="${metadata.name}-${instanceId}", data="${spec}"))],
    },
    side="developer",
)
STALL = definition(values=schema({"size": "integer | default=1 maximum=9"}, {"most": "integer | default=5"}))


def test_component_without_type_is_rendered() -> None:
    output = untyped_component(platform("desk-lamp", "left", {"watt": 7}), parameters={"size": 2})
    result = reconcile(full_config(STALL, LAMP, of=output, on=binding(overrides={"most": 6})))

    assert list_codes(result) == []
    assert read_values(result) == {"size": 2, "most": 6}
    assert read_values(result, "configmap-bread-left.yaml") == {"watt": 7, "glow": "dim"}
    assert read_ready(result, "Component", "bread") == ("True", "Valid")


def test_component_without_addons_is_rendered() -> None:
    assert read_values(reconcile(full_config(STALL, of=untyped_component()))) == {"size": 1, "most": 5}


def test_instances_run_in_the_order_of_name_and_id() -> None:
    order = addon("desk-lamp", {"patches": [patch("add", "/data/order/-", "${instanceId}")]}, side="both")
    other = addon("awning", {"patches": [patch("add", "/data/order/-", "${addon.name}")]}, side="developer")
    output = untyped_component(platform("desk-lamp", "z"), platform("desk-lamp", "a"), platform("awning"))
    result = reconcile(full_config(definition(), order, other, of=output))

    assert read_values(result)["order"] == ["awning", "a", "z"]


@pytest.mark.parametrize(
    ("overrides", "left", "right", "codes"),
    [
        pytest.param({}, "dim", "dim", [], id="nothing"),
        pytest.param({"left": {"glow": "red"}}, "red", "dim", [], id="by-instance"),
        pytest.param({"left": {"glow": "red"}, "right": {"glow": "blue"}}, "red", "blue", [], id="each"),
        pytest.param(
            {"deskLamp": {"glow": "red"}}, "", "", ["OverrideTargetUnknown"], id="the-key-matches-several-instances"
        ),
        pytest.param({"desk-lamp": {"glow": "red"}}, "", "", ["OverrideTargetUnknown"], id="the-name"),
        pytest.param({"up": {"glow": "red"}}, "", "", ["OverrideTargetUnknown"], id="absent-addon"),
        pytest.param({"left": {"watt": 9}}, "", "", ["NotOverridable"], id="a-parameter"),
        pytest.param({"left": {"bulb": 9}}, "", "", ["UnknownField"], id="an-unknown-field"),
        pytest.param({"left": {"glow": 9}}, "", "", ["SchemaValidation"], id="a-wrong-type"),
    ],
)
def test_overrides_of_instances(overrides: Any, left: str, right: str, codes: list[str]) -> None:
    output = untyped_component(platform("desk-lamp", "left"), platform("desk-lamp", "right"))
    result = reconcile(full_config(STALL, LAMP, of=output, on=binding(addonOverrides=overrides)))

    assert list_codes(result) == codes
    if not codes:
        assert read_values(result, "configmap-bread-left.yaml")["glow"] == left
        assert read_values(result, "configmap-bread-right.yaml")["glow"] == right


@pytest.mark.parametrize(
    ("instance", "key", "codes"),
    [
        pytest.param("", "deskLamp", [], id="the-key-of-an-addon-without-an-id"),
        pytest.param("", "default", [], id="the-id-that-it-has-all-the-same"),
        pytest.param("left", "left", [], id="the-id"),
        pytest.param("left", "deskLamp", ["OverrideTargetUnknown"], id="the-key-of-an-addon-with-an-id"),
        pytest.param("left", "default", ["OverrideTargetUnknown"], id="an-id-that-it-does-not-have"),
    ],
)
def test_overrides_of_the_only_instance(instance: str, key: str, codes: list[str]) -> None:
    on = binding(addonOverrides={key: {"glow": "red"}})
    result = reconcile(full_config(STALL, LAMP, of=untyped_component(platform("desk-lamp", instance)), on=on))

    assert list_codes(result) == codes
    if not codes:
        assert read_values(result, f"configmap-bread-{instance or 'default'}.yaml")["glow"] == "red"


@pytest.mark.parametrize(
    ("key", "step"),
    [
        ("same", "set a different instanceId for each addon"),
        ("default", 'use one of the keys "deskLamp", "awning"'),
    ],
)
def test_override_of_an_ambiguous_instance_id(key: str, step: str) -> None:
    other = annotator("awning", "developer")
    instance = "" if key == "default" else key
    output = untyped_component(platform("desk-lamp", instance), platform("awning", instance))
    result = reconcile(full_config(STALL, LAMP, other, of=output, on=binding(addonOverrides={key: {}})))

    assert list_codes(result) == ["OverrideKeyAmbiguous"]
    message = find_finding(result, "OverrideKeyAmbiguous").message
    assert message == f'spec.addonOverrides.{key} matches several addons: "desk-lamp/{key}" and "awning/{key}"; {step}'


def test_platform_addon_overrides_are_refused() -> None:
    on = binding(platformAddonOverrides={"deskLamp": {"glow": "red"}})
    result = reconcile(full_config(STALL, LAMP, of=untyped_component(platform("desk-lamp")), on=on))

    assert list_codes(result) == ["OverrideTargetUnknown"]


@pytest.mark.parametrize(
    ("texts", "text", "code", "message"),
    [
        pytest.param(
            [],
            untyped_component(),
            "DefinitionNotFound",
            'no ComponentDefinition has the name "stall',
            id="no-definition",
        ),
        pytest.param(
            [STALL], untyped_component(platform("x")), "AddonNotFound", 'no Addon has the name "', id="no-addon"
        ),
        pytest.param(
            [STALL, annotator("x")],
            untyped_component(platform("x")),
            "AddonNotAllowed",
            "of Addon x does not allow developers",
            id="for-engineers-alone",
        ),
        pytest.param(
            [STALL, annotator("3x", "developer")],
            untyped_component(platform("3x")),
            "AddonKeyInvalid",
            'the name of the addon "3x" results in the key "3x", which is not a valid field name',
            id="key",
        ),
        pytest.param(
            [STALL, LAMP],
            untyped_component(platform("desk-lamp"), platform("desk-lamp", "a")),
            "InstanceIdMissing",
            'desk-lamp" has 2 instances, and each of them must set instanceId',
            id="one-without-an-id",
        ),
        pytest.param(
            [STALL, LAMP],
            untyped_component(platform("desk-lamp", "a"), platform("desk-lamp", "a")),
            "InstanceIdDuplicate",
            'desk-lamp/a" is declared twice',
            id="one-id-twice",
        ),
        pytest.param(
            [STALL, annotator("x", "developer", requires=["x"])],
            untyped_component(platform("x")),
            "AddonOrderCycle",
            "x → x",
            id="row-45-a-cycle",
        ),
        pytest.param(
            [STALL, annotator("x", "developer", requires=["y"])],
            untyped_component(platform("x")),
            "AddonRequirementMissing",
            '" requires the addon "y", but "y" is not in use',
            id="what-it-requires",
        ),
        pytest.param(
            [STALL, annotator("x", "developer", targets=[{"resourceType": "Job"}])],
            untyped_component(platform("x")),
            "AddonIncompatible",
            "Addon x is not compatible, because its spec.targets match no resource in ComponentDefinition stall",
            id="fit",
        ),
        pytest.param(
            [STALL],
            untyped_component(parameters={"size": 10}),
            "SchemaValidation",
            "spec.parameters.size must be at most 9",
            id="value",
        ),
        pytest.param(
            [STALL],
            untyped_component(parameters={"bogus": 10}),
            "UnknownField",
            "spec.parameters.bogus is an unknown",
            id="unknown",
        ),
        pytest.param(
            [STALL, LAMP],
            untyped_component(platform("desk-lamp", "a", {"watt": "x"})),
            "SchemaValidation",
            "spec.addons[0].config.watt must be an integer",
            id="config",
        ),
    ],
)
def test_errors_are_reported_with_and_without_binding(texts: list[str], text: str, code: str, message: str) -> None:
    for texts_of_config in ([*texts, text], full_config(*texts, of=text)):
        result = reconcile(texts_of_config)

        assert list_codes(result) == [code]
        assert message in find_finding(result, code).message
        assert find_finding(result, code).location.object == "Component/square/bread"
        assert read_ready(result, "Component", "bread") == ("False", code)
        assert result.variants == ()
    assert find_stalled(result).conditions[0].reason == code


def test_conflicting_addons_are_refused() -> None:
    conflict = {"conflictsWith": [{"addon": "x"}]}
    texts = [annotator("x", "developer"), annotator("y", "developer", dependencies=conflict)]
    result = reconcile(full_config(STALL, *texts, of=untyped_component(platform("x"), platform("y"))))

    assert list_codes(result) == ["AddonConflict"]
    assert result.variants == ()


def test_addon_config_is_not_evaluated() -> None:
    """Row 54: the config of an addon is a value of the developer."""
    lamp = addon("x", {"schema": schema({"a": "string"}), "patches": [annotate("said", "${spec.a}")]}, side="developer")
    result = reconcile(full_config(definition(), lamp, of=untyped_component(platform("x", "i", {"a": "${evil}"}))))

    assert read_objects(result)["configmap-bread.yaml"]["metadata"]["annotations"] == {"said": "${evil}"}


def test_setting_disables_components_without_type() -> None:
    result = reconcile(full_config(STALL, LAMP, of=untyped_component(platform("desk-lamp"))), runtime_composition=False)

    assert list_codes(result) == ["RuntimeCompositionDisabled"]
    assert read_ready(result, "Component", "bread") == ("False", "RuntimeCompositionDisabled")
    assert find_stalled(result).conditions[0].reason == "RuntimeCompositionDisabled"
    assert result.variants == ()


def test_component_with_and_without_type_cannot_share_a_name() -> None:
    result = reconcile([*ONE_ENVIRONMENT, STALL, component_type(), component(), untyped_component(), binding()])

    assert list_codes(result) == ["ComponentNameConflict", "EnvBindingOwnerUnresolved"]
    both = [item for item in list_findings(result) if item.code == "ComponentNameConflict"]
    assert [item.location.object for item in both] == ["Component/square/bread", "MarketStall/square/bread"]
    assert read_ready(result, "Component", "bread") == read_ready(result, "MarketStall", "bread")
    assert read_ready(result, "Component", "bread") == ("False", "ComponentNameConflict")


def test_components_in_two_namespaces_can_share_a_name() -> None:
    other = component({"componentDefinition": "stall"}, kind="Component", namespace="alley")
    result = reconcile(full_config(STALL, untyped_component(), of=other))

    assert list_codes(result) == []


def test_definition_renders_the_same_with_and_without_type() -> None:
    texts = [definition(resource(VALUES_TEMPLATE), values=schema({"size": "integer"})), component_type()]

    without = reconcile(full_config(texts[0], of=untyped_component(parameters={"size": 3})))
    of_type = reconcile(full_config(*texts, of=component({"size": 3})))

    assert read_objects(without) == read_objects(of_type)
