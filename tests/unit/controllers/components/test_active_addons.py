"""Addons at work: which of them do, in which order, with what they need, and what they see (openchoreo 6, 10, 12)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.controllers.components.component_builders import (
    FALSE,
    SIZED,
    TRUE,
    addon,
    allowed,
    binding,
    component,
    component_type,
    create,
    definition,
    finding,
    findings,
    made,
    market,
    objects,
    patch,
    patching,
    platform,
    pods,
    rendering,
    resource,
    room,
    schema,
    status,
    told,
    values,
    variant_of,
)


def active(result: Any) -> list[str]:
    """Return the addons that left their names."""
    return sorted(objects(result)["configmap-bread.yaml"]["metadata"].get("annotations", {}))


ENABLED = {"schema": schema({"enabled": "boolean | default=true"})}


@pytest.mark.parametrize(
    ("fields", "config", "works"),
    [
        pytest.param({}, {}, True, id="nothing-said"),
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
def test_when_a_platform_addon_works(fields: Any, config: Any, works: bool) -> None:
    result = room(market(definition(), patching("lamp", **fields), component_type(platform("lamp", "x", config))))

    assert told(result) == []
    assert active(result) == (["lamp"] if works else [])


@pytest.mark.parametrize(
    ("condition", "works"),
    [
        pytest.param(FALSE, False, id="false"),
        pytest.param("${spec.size > 3}", True, id="values-of-the-component"),
        pytest.param("${metadata.labels.team == 'oven'}", True, id="labels-of-the-component"),
        pytest.param("${env.name == 'daily'}", False, id="the-environment"),
    ],
)
def test_a_type_says_when_its_addon_works(condition: str, works: bool) -> None:
    of = component({"size": 5}, labels={"team": "oven"})
    result = room(market(SIZED, patching("lamp"), component_type(platform("lamp", "x", condition=condition)), of=of))

    assert active(result) == (["lamp"] if works else [])


@pytest.mark.parametrize(
    ("condition", "code"),
    [
        pytest.param("${1}", "ConditionType", id="no-boolean"),
        pytest.param("${metadata.labels.none}", "CelNoSuchKey", id="no-such-key"),
    ],
)
def test_a_condition_that_fails(condition: str, code: str) -> None:
    of_type = room(market(SIZED, patching("lamp"), component_type(platform("lamp", "x", condition=condition))))
    of_addon = room(market(SIZED, patching("lamp", condition=condition), component_type(platform("lamp", "x"))))

    for result, where in ((of_type, "ComponentType/_cluster/market-stall"), (of_addon, "Addon/_cluster/lamp")):
        assert told(result) == [code]
        assert finding(result, code).location.object == where
        assert finding(result, code).message.startswith("MarketStall/square/bread in fair: lamp/x: ")


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
def test_opting_in(value: Any, works: bool, codes: list[str]) -> None:
    """openchoreo 6.1."""
    lamp, kind = patching("desk-lamp", "developer", **ENABLED), component_type(allow=[allowed("desk-lamp")])
    result = room(market(definition(), lamp, kind, of=component({"deskLamp": value})))

    assert told(result) == codes
    if codes:
        assert "spec.deskLamp must be a mapping" in finding(result, codes[0]).message
    else:
        assert active(result) == (["desk-lamp"] if works else [])


def test_what_nobody_opts_into_does_not_work() -> None:
    lamp, kind = patching("desk-lamp", "developer"), component_type(allow=[allowed("desk-lamp")])

    assert active(room(market(definition(), lamp, kind))) == []


def test_platform_addons_come_first_then_those_of_developers_each_by_name() -> None:
    """openchoreo 10, 12.4, 12.5."""
    order = [patch("add", "/data/order/-", "${addon.name}")]
    addons = [addon(name, {"patches": order}, side=side) for name, side in (
        ("d", ""), ("b", ""), ("c", "developer"), ("a", "developer"),
    )]  # fmt: skip
    kind = component_type(platform("d", "x"), platform("b", "x"), allow=[allowed("c"), allowed("a")])
    result = room(market(definition(), *addons, kind, of=component({"c": {}, "a": {}})))

    assert values(result)["order"] == ["b", "d", "a", "c"]
    fields = status(result, "EnvBinding", "bread-fair").fields
    assert fields["addons"] == ["b/x", "d/x", "a/default", "c/default"]


def test_developers_addons_are_ordered_by_what_they_declare() -> None:
    order = [patch("add", "/data/order/-", "${addon.name}")]
    after = {"loadOrder": {"after": ["c"]}}
    addons = [
        addon("a", {"patches": order, "dependencies": after}, side="developer"),
        addon("c", {"patches": order}, side="developer"),
    ]
    kind = component_type(allow=[allowed("a"), allowed("c")])

    assert values(room(market(definition(), *addons, kind, of=component({"c": {}, "a": {}}))))["order"] == ["c", "a"]
    assert values(room(market(definition(), *addons, kind, of=component({"a": {}}))))["order"] == ["a"]


@pytest.mark.parametrize(
    ("opted", "codes"),
    [
        pytest.param({"a": {}, "b": {}}, [], id="both-are-there"),
        pytest.param({"a": {}}, ["AddonRequirementMissing"], id="not-opted-into"),
        pytest.param({"a": {}, "b": {"enabled": False}}, ["AddonRequirementMissing"], id="opted-into-and-not-enabled"),
        pytest.param({"b": {}}, [], id="nobody-requires-it"),
    ],
)
def test_what_developers_addons_require_must_work(opted: Any, codes: list[str]) -> None:
    addons = [patching("a", "developer", requires=["b"]), patching("b", "developer", **ENABLED)]
    kind = component_type(allow=[allowed("a"), allowed("b")])
    result = room(market(definition(), *addons, kind, of=component(opted)))

    assert told(result) == codes
    if codes:
        message = finding(result, codes[0]).message
        assert message == "MarketStall/square/bread in fair: a requires b, which is not in use"


@pytest.mark.parametrize(("condition", "codes"), [(TRUE, []), (FALSE, ["AddonRequirementMissing"])])
@pytest.mark.parametrize("side", ["platform-engineer", "developer"])
def test_a_platform_addon_that_does_not_work_is_required_in_vain(side: str, condition: str, codes: list[str]) -> None:
    base, needs = patching("base", condition=condition), patching("needs", side, requires=["base"])
    listed = [platform("base", "x"), *([platform("needs", "x")] if side == "platform-engineer" else [])]
    kind = component_type(*listed, allow=[allowed("needs")] if side == "developer" else [])

    result = room(market(definition(), base, needs, kind, of=component({"needs": {}} if side == "developer" else {})))

    assert told(result) == codes


@pytest.mark.parametrize(
    ("opted", "codes"),
    [
        pytest.param({"a": {}, "b": {}}, ["AddonConflict"], id="both"),
        pytest.param({"a": {}}, ["AddonConflict"], id="the-one"),
        pytest.param({"b": {}}, ["AddonConflict"], id="the-other"),
        pytest.param({"a": {"enabled": False}, "b": {}}, ["AddonConflict"], id="one-does-not-work"),
    ],
)
def test_allowed_addons_that_exclude_each_other_are_told_and_only_both_are_refused(
    opted: Any, codes: list[str]
) -> None:
    """Row 48: it is enough that one of them says so."""
    conflict = {"conflictsWith": [{"addon": "b", "reason": "one light is enough"}]}
    addons = [patching("a", "developer", dependencies=conflict, **ENABLED), patching("b", "developer")]
    kind = component_type(allow=[allowed("a"), allowed("b")])
    result = room(market(definition(), *addons, kind, of=component(opted)))

    assert told(result) == codes
    both_work = len(opted) == 2 and opted["a"] == {}
    assert bool(result.variants) == (not both_work)
    refused = [item for item in findings(result) if item.severity == "error"]
    assert [item.message for item in refused] == (
        ["MarketStall/square/bread in fair: a excludes b, but both are in use (one light is enough)"]
        if both_work
        else []
    )


def test_one_addon_for_both_sides_is_two_whatever_they_are_called() -> None:
    """Both are called lamp/default, and each has its own values and its own overrides."""
    lamp = addon(
        "lamp",
        {"schema": schema({"who": "string"}, {"glow": "string | default=dim"}),
         "creates": [create(made(name="${spec.who}", data="${spec}"))]},
        side="both",
    )  # fmt: skip
    kind = component_type(platform("lamp", config={"who": "engineer"}), allow=[allowed("lamp")])
    on = binding(platformAddonOverrides={"lamp": {"glow": "red"}}, addonOverrides={"lamp": {"glow": "blue"}})
    result = room(market(definition(), lamp, kind, on=on, of=component({"lamp": {"who": "developer"}})))

    assert told(result) == []
    assert objects(result)["configmap-engineer.yaml"]["data"] == {"who": "engineer", "glow": "red"}
    assert objects(result)["configmap-developer.yaml"]["data"] == {"who": "developer", "glow": "blue"}


def test_what_is_said_to_developers_does_not_reach_the_engineers_addon_of_that_name() -> None:
    lamp = addon(
        "lamp",
        {"schema": schema({}, {"glow": "string | default=dim"}), "creates": [create(made(name="l", data="${spec}"))]},
        side="both",
    )
    kind = component_type(platform("lamp"), allow=[allowed("lamp")])
    result = room(market(definition(), lamp, kind, on=binding(addonOverrides={"lamp": {"glow": "blue"}})))

    assert told(result) == ["OverrideUnused"]
    assert objects(result)["configmap-l.yaml"]["data"] == {"glow": "dim"}


def test_what_addons_see_of_objects_is_theirs_alone() -> None:
    """openchoreo 5.4, 6.3: copies, taken when an addon starts, and for each operation."""
    first = addon("a0", {"patches": [
        patch("add", "/data", {"seen": "${resources[0].metadata}"}),
        patch("add", "/metadata/labels", {"late": "${string(has(target.data))}${string(has(resources[0].data))}"}),
    ]})  # fmt: skip
    second = addon("a1", {"patches": [patch("add", "/data/labels", "${resources[0].metadata.labels.late}")]})
    result = room(rendering(made(), addons=[first, second]))

    value = objects(result)["configmap-bread.yaml"]
    assert value["data"] == {"seen": {"name": "bread", "namespace": "square"}, "labels": "truefalse"}
    assert value["metadata"]["labels"] == {"late": "truefalse"}


def test_a_list_that_two_addons_fill_twice() -> None:
    """Row 41."""
    volume = {"name": "shared", "emptyDir": {}}
    lamp = addon("a0", {"patches": [patch("add", "/spec/template/spec/volumes/-", volume)]})
    kind = component_type(platform("a0", "x"), platform("a0", "y"))
    result = room(market(definition(resource(pods("main"))), lamp, kind))

    assert told(result) == ["ListKeyDuplicate"]
    message = finding(result, "ListKeyDuplicate").message
    assert "(set by a0/x)" in message
    assert "(set by a0/y)" in message


def test_environment_variables_that_are_there_twice_are_a_warning() -> None:
    variables = [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]
    lamp = addon("a0", {"patches": [patch("add", "/spec/template/spec/containers/0/env", variables)]})
    result = room(market(definition(resource(pods("main"))), lamp, component_type(platform("a0", "x"))))

    assert told(result) == ["DuplicateEnvName"]
    assert variant_of(result).findings[-1].severity == "warning"
