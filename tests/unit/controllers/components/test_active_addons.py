"""Tests of active addons: conditions, order, requirements, and the objects that addons read."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.controllers.components.component_builders import (
    FALSE,
    SIZED,
    TRUE,
    addon,
    allowed,
    annotator,
    binding,
    component,
    component_type,
    config_of_templates,
    create,
    definition,
    find_finding,
    find_status,
    full_config,
    list_codes,
    list_findings,
    manifest,
    patch,
    platform,
    pod_manifest,
    read_objects,
    read_values,
    reconcile,
    resource,
    schema,
    variant_of,
)


def list_active_addons(result: Any) -> list[str]:
    """Return the addons that annotated the object."""
    return sorted(read_objects(result)["configmap-bread.yaml"]["metadata"].get("annotations", {}))


ENABLED = {"schema": schema({"enabled": "boolean | default=true"})}


@pytest.mark.parametrize(
    ("fields", "config", "works"),
    [
        pytest.param({}, {}, True, id="no-condition"),
        pytest.param({"condition": FALSE}, {}, False, id="its-own-condition"),
        pytest.param({"condition": False}, {}, False, id="as-a-boolean"),
        pytest.param(ENABLED, {}, True, id="enabled-by-default"),
        pytest.param(ENABLED, {"enabled": False}, False, id="not-enabled"),
        pytest.param({**ENABLED, "condition": TRUE}, {"enabled": False}, True, id="a-condition-is-instead-of-enabled"),
        pytest.param({"schema": schema({"enabled": "string"})}, {"enabled": "false"}, True, id="enabled-is-no-boolean"),
        pytest.param({"schema": schema({"enabled": "boolean"})}, {"enabled": True}, True, id="without-a-default"),
        pytest.param({"condition": "${env.name == 'fair'}"}, {}, True, id="of-the-environment"),
        pytest.param({"condition": "${size(resources) == 2}"}, {}, False, id="of-what-was-rendered"),
    ],
)
def test_platform_addon_is_active_by_its_condition(fields: Any, config: Any, works: bool) -> None:
    result = reconcile(
        full_config(definition(), annotator("lamp", **fields), component_type(platform("lamp", "x", config)))
    )

    assert list_codes(result) == []
    assert list_active_addons(result) == (["lamp"] if works else [])


@pytest.mark.parametrize(
    ("condition", "works"),
    [
        pytest.param(FALSE, False, id="false"),
        pytest.param("${spec.size > 3}", True, id="values-of-the-component"),
        pytest.param("${metadata.labels.team == 'oven'}", True, id="labels-of-the-component"),
        pytest.param("${env.name == 'daily'}", False, id="the-environment"),
    ],
)
def test_condition_of_the_component_type_applies(condition: str, works: bool) -> None:
    of = component({"size": 5}, labels={"team": "oven"})
    result = reconcile(
        full_config(SIZED, annotator("lamp"), component_type(platform("lamp", "x", condition=condition)), of=of)
    )

    assert list_active_addons(result) == (["lamp"] if works else [])


@pytest.mark.parametrize(
    ("condition", "code"),
    [
        pytest.param("${1}", "ConditionType", id="no-boolean"),
        pytest.param("${metadata.labels.none}", "CelNoSuchKey", id="no-such-key"),
    ],
)
def test_error_in_a_condition_is_reported(condition: str, code: str) -> None:
    of_type = reconcile(
        full_config(SIZED, annotator("lamp"), component_type(platform("lamp", "x", condition=condition)))
    )
    of_addon = reconcile(
        full_config(SIZED, annotator("lamp", condition=condition), component_type(platform("lamp", "x")))
    )

    for result, where in ((of_type, "ComponentType/_cluster/market-stall"), (of_addon, "Addon/_cluster/lamp")):
        assert list_codes(result) == [code]
        assert find_finding(result, code).location.object == where
        assert find_finding(result, code).message.startswith("MarketStall square/bread in fair, addon lamp/x: ")


@pytest.mark.parametrize(
    ("value", "works", "codes"),
    [
        pytest.param({}, True, [], id="empty"),
        pytest.param(None, False, [], id="null"),
        pytest.param({"enabled": False}, False, [], id="not-enabled"),
        pytest.param({"enabled": True}, True, [], id="enabled"),
        pytest.param(True, False, ["SchemaValidation"], id="boolean"),
        pytest.param(False, False, ["SchemaValidation"], id="no"),
        pytest.param([], False, ["SchemaValidation"], id="list"),
        pytest.param("", False, ["SchemaValidation"], id="text"),
    ],
)
def test_developer_addon_is_active_if_the_component_has_its_field(value: Any, works: bool, codes: list[str]) -> None:
    lamp, kind = annotator("desk-lamp", "developer", **ENABLED), component_type(allow=[allowed("desk-lamp")])
    result = reconcile(full_config(definition(), lamp, kind, of=component({"deskLamp": value})))

    assert list_codes(result) == codes
    if codes:
        assert "spec.deskLamp must be a mapping" in find_finding(result, codes[0]).message
    else:
        assert list_active_addons(result) == (["desk-lamp"] if works else [])


def test_unused_developer_addon_is_inactive() -> None:
    lamp, kind = annotator("desk-lamp", "developer"), component_type(allow=[allowed("desk-lamp")])

    assert list_active_addons(reconcile(full_config(definition(), lamp, kind))) == []


def test_platform_addons_run_before_developer_addons() -> None:
    order = [patch("add", "/data/order/-", "${addon.name}")]
    addons = [addon(name, {"patches": order}, side=side) for name, side in (
        ("d", ""), ("b", ""), ("c", "developer"), ("a", "developer"),
    )]  # fmt: skip
    kind = component_type(platform("d", "x"), platform("b", "x"), allow=[allowed("c"), allowed("a")])
    result = reconcile(full_config(definition(), *addons, kind, of=component({"c": {}, "a": {}})))

    assert read_values(result)["order"] == ["b", "d", "a", "c"]
    fields = find_status(result, "EnvBinding", "bread-fair").fields
    assert fields["addons"] == ["b/x", "d/x", "a/default", "c/default"]


def test_developer_addons_have_the_declared_order() -> None:
    order = [patch("add", "/data/order/-", "${addon.name}")]
    after = {"loadOrder": {"after": ["c"]}}
    addons = [
        addon("a", {"patches": order, "dependencies": after}, side="developer"),
        addon("c", {"patches": order}, side="developer"),
    ]
    kind = component_type(allow=[allowed("a"), allowed("c")])

    assert read_values(reconcile(full_config(definition(), *addons, kind, of=component({"c": {}, "a": {}}))))[
        "order"
    ] == ["c", "a"]
    assert read_values(reconcile(full_config(definition(), *addons, kind, of=component({"a": {}}))))["order"] == ["a"]


@pytest.mark.parametrize(
    ("opted", "codes"),
    [
        pytest.param({"a": {}, "b": {}}, [], id="both-are-there"),
        pytest.param({"a": {}}, ["AddonRequirementMissing"], id="not-opted-into"),
        pytest.param({"a": {}, "b": {"enabled": False}}, ["AddonRequirementMissing"], id="opted-into-and-not-enabled"),
        pytest.param({"b": {}}, [], id="no-active-addon-requires-it"),
    ],
)
def test_required_developer_addon_must_be_active(opted: Any, codes: list[str]) -> None:
    addons = [annotator("a", "developer", requires=["b"]), annotator("b", "developer", **ENABLED)]
    kind = component_type(allow=[allowed("a"), allowed("b")])
    result = reconcile(full_config(definition(), *addons, kind, of=component(opted)))

    assert list_codes(result) == codes
    if codes:
        message = find_finding(result, codes[0]).message
        assert (
            message == 'MarketStall square/bread in fair: the addon "a" requires the addon "b", but "b" is not in use'
        )


@pytest.mark.parametrize(("condition", "codes"), [(TRUE, []), (FALSE, ["AddonRequirementMissing"])])
@pytest.mark.parametrize("side", ["platform-engineer", "developer"])
def test_inactive_platform_addon_does_not_meet_a_requirement(side: str, condition: str, codes: list[str]) -> None:
    base, needs = annotator("base", condition=condition), annotator("needs", side, requires=["base"])
    listed = [platform("base", "x"), *([platform("needs", "x")] if side == "platform-engineer" else [])]
    kind = component_type(*listed, allow=[allowed("needs")] if side == "developer" else [])

    result = reconcile(
        full_config(definition(), base, needs, kind, of=component({"needs": {}} if side == "developer" else {}))
    )

    assert list_codes(result) == codes


@pytest.mark.parametrize(
    ("opted", "codes"),
    [
        pytest.param({"a": {}, "b": {}}, ["AddonConflict"], id="both"),
        pytest.param({"a": {}}, ["AddonConflict"], id="the-one"),
        pytest.param({"b": {}}, ["AddonConflict"], id="the-other"),
        pytest.param({"a": {"enabled": False}, "b": {}}, ["AddonConflict"], id="one-does-not-work"),
    ],
)
def test_conflicting_addons_are_refused_only_if_both_are_active(opted: Any, codes: list[str]) -> None:
    """Row 48: one declaration of the conflict is sufficient."""
    conflict = {"conflictsWith": [{"addon": "b", "reason": "one light is enough"}]}
    addons = [annotator("a", "developer", dependencies=conflict, **ENABLED), annotator("b", "developer")]
    kind = component_type(allow=[allowed("a"), allowed("b")])
    result = reconcile(full_config(definition(), *addons, kind, of=component(opted)))

    assert list_codes(result) == codes
    both_work = len(opted) == 2 and opted["a"] == {}
    assert bool(result.variants) == (not both_work)
    refused = [item for item in list_findings(result) if item.severity == "error"]
    assert [item.message for item in refused] == (
        [
            'MarketStall square/bread in fair: the addon "a" excludes the addon "b" (reason: "one light is enough"), but both addons are in use; remove one of the two addons'
        ]
        if both_work
        else []
    )


def test_one_addon_for_both_roles_has_two_instances() -> None:
    """Both instances have the name lamp/default. Each one has its own values and overrides."""
    lamp = addon(
        "lamp",
        {"schema": schema({"who": "string"}, {"glow": "string | default=dim"}),
         "creates": [create(manifest(name="${spec.who}", data="${spec}"))]},
        side="both",
    )  # fmt: skip
    kind = component_type(platform("lamp", config={"who": "engineer"}), allow=[allowed("lamp")])
    on = binding(platformAddonOverrides={"lamp": {"glow": "red"}}, addonOverrides={"lamp": {"glow": "blue"}})
    result = reconcile(full_config(definition(), lamp, kind, on=on, of=component({"lamp": {"who": "developer"}})))

    assert list_codes(result) == []
    assert read_objects(result)["configmap-engineer.yaml"]["data"] == {"who": "engineer", "glow": "red"}
    assert read_objects(result)["configmap-developer.yaml"]["data"] == {"who": "developer", "glow": "blue"}


def test_developer_override_does_not_change_the_platform_instance() -> None:
    lamp = addon(
        "lamp",
        {
            "schema": schema({}, {"glow": "string | default=dim"}),
            "creates": [create(manifest(name="l", data="${spec}"))],
        },
        side="both",
    )
    kind = component_type(platform("lamp"), allow=[allowed("lamp")])
    result = reconcile(full_config(definition(), lamp, kind, on=binding(addonOverrides={"lamp": {"glow": "blue"}})))

    assert list_codes(result) == ["OverrideUnused"]
    assert read_objects(result)["configmap-l.yaml"]["data"] == {"glow": "dim"}


def test_addons_read_copies_of_objects() -> None:
    """`resources` is copied before an addon runs. `target` is copied before each operation."""
    first = addon("a0", {"patches": [
        patch("add", "/data", {"seen": "${resources[0].metadata}"}),
        patch("add", "/metadata/labels", {"late": "${string(has(target.data))}${string(has(resources[0].data))}"}),
    ]})  # fmt: skip
    second = addon("a1", {"patches": [patch("add", "/data/labels", "${resources[0].metadata.labels.late}")]})
    result = reconcile(config_of_templates(manifest(), addons=[first, second]))

    value = read_objects(result)["configmap-bread.yaml"]
    assert value["data"] == {"seen": {"name": "bread", "namespace": "square"}, "labels": "truefalse"}
    assert value["metadata"]["labels"] == {"late": "truefalse"}


def test_duplicate_list_item_of_two_addons_is_reported() -> None:
    """Row 41: both addon instances are named."""
    volume = {"name": "shared", "emptyDir": {}}
    lamp = addon("a0", {"patches": [patch("add", "/spec/template/spec/volumes/-", volume)]})
    kind = component_type(platform("a0", "x"), platform("a0", "y"))
    result = reconcile(full_config(definition(resource(pod_manifest("main"))), lamp, kind))

    assert list_codes(result) == ["ListKeyDuplicate"]
    message = find_finding(result, "ListKeyDuplicate").message
    assert '(set by the addon "a0/x")' in message
    assert '(set by the addon "a0/y")' in message


def test_duplicate_environment_variable_is_a_warning() -> None:
    variables = [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]
    lamp = addon("a0", {"patches": [patch("add", "/spec/template/spec/containers/0/env", variables)]})
    result = reconcile(
        full_config(definition(resource(pod_manifest("main"))), lamp, component_type(platform("a0", "x")))
    )

    assert list_codes(result) == ["DuplicateEnvName"]
    assert variant_of(result).findings[-1].severity == "warning"
