"""What the seed's pseudo-code does wrong, each as what is done instead (openchoreo 18)."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.controllers.results import ControllerResult
from reconciler.krm.yaml import parse_yaml
from tests.unit.controllers.components.component_builders import (
    addon,
    allowed,
    binding,
    build,
    component,
    component_type,
    create,
    definition,
    finding,
    findings,
    made,
    market,
    note,
    objects,
    patch,
    patching,
    platform,
    pods,
    ready,
    resource,
    room,
    schema,
    status,
    told,
    values,
)

DEPLOYMENT: Any = {"resourceType": "Deployment"}
CONTAINERS = "/spec/template/spec/containers"


def compiled(*addons: str, allow: Any = (), **platform_configs: Any) -> ControllerResult:
    listed = [platform(name, "i", config) for name, config in platform_configs.items()]
    return room([definition(resource(pods("main"))), *addons, component_type(*listed, allow=allow)])


def run(*addons: str, base: Any = None, names: str = "") -> ControllerResult:
    """Return a component on which addons work, each once."""
    listed = names.split() or [f"a{number}" for number in range(len(addons))]
    kind = component_type(*(platform(name, "i") for name in listed))
    return room(market(definition(resource(base or pods("main"))), *addons, kind))


def workload(result: ControllerResult) -> Any:
    return objects(result)["deployment-bread.yaml"]


def test_one_target_that_fits_is_enough() -> None:
    """Two entries for two kinds would never both fit."""
    result = compiled(patching("a", targets=[DEPLOYMENT, {"resourceType": "StatefulSet"}]), a={})

    assert ready(result, "ComponentType", "market-stall") == ("True", "Compiled")


def test_an_addon_without_targets_is_not_checked() -> None:
    result = compiled(addon("a", {"creates": [made("Secret")]}), a={})

    assert ready(result, "ComponentType", "market-stall") == ("True", "Compiled")


def test_developer_addons_are_checked_as_well_as_permissions_and_oneself() -> None:
    requires = compiled(patching("a", "developer", requires=["b"]), allow=[allowed("a")])
    permission = compiled(patching("a", "developer"), a={})
    itself = compiled(patching("a", requires=["a"]), a={})

    assert [told(controller_result) for controller_result in (requires, permission, itself)] == [
        ["AddonRequirementMissing"], ["AddonNotAllowed"], ["AddonOrderCycle"],
    ]  # fmt: skip


def test_what_does_not_fit_is_told_whatever_the_target_asks_for() -> None:
    """Not `resourceType`, which a target by id does not have."""
    result = compiled(patching("a", targets=[{"resourceId": "side"}]), a={})

    assert "undefined" not in finding(result, "AddonIncompatible").message
    assert finding(result, "AddonIncompatible").location.pointer == "/spec/platformAddons/0"


def test_instances_of_one_addon_have_their_own_config() -> None:
    disk = addon("disk", {"schema": schema({"path": "string"}), "creates": [
        create(made(name="${instanceId}", data="${spec}")),
    ]})  # fmt: skip
    kind = component_type(platform("disk", "a", {"path": "/a"}), platform("disk", "b", {"path": "/b"}))
    result = room(market(definition(), disk, kind))

    assert objects(result)["configmap-a.yaml"]["data"] == {"path": "/a"}
    assert objects(result)["configmap-b.yaml"]["data"] == {"path": "/b"}


def test_platform_addons_know_the_component_its_build_and_its_environment() -> None:
    """They are rendered late, so that environments reach them."""
    mapping = {"who": "${metadata.name}", "what": "${build.image}", "where": "${env.name}", "own": "${spec.glow}"}
    fields = schema({}, {"glow": "string | default=dim"})
    lamp = addon("lamp", {"schema": fields, "creates": [create(made(name="seen", data=mapping))]})
    on = binding(platformAddonOverrides={"lamp": {"glow": "red"}})
    result = room(market(definition(), lamp, component_type(platform("lamp", "i")), build(), on=on))

    assert values(result, "configmap-seen.yaml") == {
        "who": "bread", "what": "registry.example.org/bread:1", "where": "fair", "own": "red",
    }  # fmt: skip


def test_platform_addons_have_loops_and_an_order() -> None:
    mapping = {"forEach": "${[1, 2]}"}
    first = addon("z", {"patches": [patch("add", "/data/z/-", "${item}", **mapping)]})
    later = addon("a", {"patches": [patch("add", "/data/z/-", "a")], "dependencies": {"loadOrder": {"after": ["z"]}}})
    result = run(first, later, base=made("Deployment"), names="a z")

    assert workload(result)["data"] == {"z": [1, 2, "a"]}


def test_the_schema_of_developers() -> None:
    """Sections are one, with defaults of the type, what is required, and schemas instead of shorthand."""
    lamp = addon(
        "desk-lamp",
        {
            "schema": schema({"watt": "integer | required=true"}, {"glow": "string | default=dim"}),
            "patches": [note("x")],
        },
        side="developer",
    )
    stall = definition(resource(pods("main")), values=schema({"size": "integer"}))
    kind = component_type(allow=[allowed("desk-lamp", {"glow": "red"})])
    files = status(room([stall, lamp, kind]), "ComponentType", "market-stall").files

    assert files is not None
    assert parse_yaml(files["schema.json"]).documents[0].data["properties"] == {
        "deskLamp": {
            "type": "object",
            "properties": {"glow": {"type": "string", "default": "red"}, "watt": {"type": "integer"}},
            "required": ["watt"],
            "additionalProperties": False,
        },
        "size": {"type": "integer"},
    }


def test_an_integer_is_no_number() -> None:
    stall = definition(values=schema({"replicas": "integer | default=1"}))

    assert told(room(market(stall, component_type(), of=component({"replicas": 1.5})))) == ["SchemaValidation"]


def test_a_field_that_a_binding_overrides_must_be_declared() -> None:
    """The seed's binding sets one that its schema does not have."""
    lamp = addon("lamp", {"schema": schema({}, {"glow": "string"}), "patches": [note("x")]}, side="developer")
    on = binding(addonOverrides={"lamp": {"glow": "red", "outputDestination": "x"}})
    kind = component_type(allow=[allowed("lamp")])
    result = room(market(definition(), lamp, kind, of=component({"lamp": {}}), on=on))

    assert told(result) == ["UnknownField"]


def test_created_objects_have_an_id_and_can_be_patched_in_both_shapes() -> None:
    to_own = {"resourceId": ["lamp-i-0", "named"]}
    lamp = addon("lamp", {
        "creates": [made(name="bare"), create(made(name="w-${item}"), id="named", forEach="${['a', 'b']}")],
        "patches": [{**note("seen"), "target": to_own}],
    })  # fmt: skip
    result = objects(run(lamp, names="lamp"))

    created = {name: item for name, item in result.items() if name.startswith("configmap")}
    assert list(created) == ["configmap-bare.yaml", "configmap-w-a.yaml", "configmap-w-b.yaml"]
    assert all(item["metadata"]["annotations"] == {"seen": "yes"} for item in created.values())


def test_path_and_value_see_the_same() -> None:
    """The metadata of the component, in both, and the target's by its own name; no item where nothing is walked."""
    lamp = addon("a0", {"patches": [
        patch("add", "/data/${metadata.name}-${target.metadata.name}", "${metadata.name}-${target.metadata.name}",
              {"resourceType": "Secret"}),
    ]})  # fmt: skip
    other = made("Secret", name="other")
    result = run(lamp, base=other)

    assert objects(result)["secret-other.yaml"]["data"] == {"bread-other": "bread-other"}
    assert told(run(addon("a0", {"patches": [note("x", "${item}")]}))) == [
        "AddonNotFound", "CelUndeclared", "ComponentTypeNotReady",
    ]  # fmt: skip


def test_paths_lead_into_the_object() -> None:
    """Not into the entry that wraps its template."""
    result = run(addon("a0", {"patches": [patch("add", "/template", "x", DEPLOYMENT)]}))

    assert workload(result)["template"] == "x"


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        pytest.param({}, ["a", "b"], id="names"),
        pytest.param({"after": ["b"]}, ["b", "a"], id="after"),
        pytest.param({"before": ["b"]}, ["a", "b"], id="before"),
    ],
)
def test_load_order_counts(order: Any, expected: list[str]) -> None:
    first = patching("a", dependencies={"loadOrder": order})
    applied: Any = status(compiled(first, patching("b"), a={}, b={}), "ComponentType", "market-stall").fields

    assert [applied_platform_addon["name"] for applied_platform_addon in applied["appliedPlatformAddons"]] == expected


def test_a_circle_is_an_error_and_what_is_missing_is_no_crash() -> None:
    circle = compiled(patching("a", requires=["b"]), patching("b", requires=["a"]), a={}, b={})
    missing = compiled(patching("a", requires=["gone"]), a={})

    assert told(circle) == ["AddonOrderCycle"]
    assert "a → b → a" in finding(circle, "AddonOrderCycle").message
    assert told(missing) == ["AddonRequirementMissing"]


@pytest.mark.parametrize("target", [{}, {"resourceType": None}, {"selector": {"matchLabels": {}}}])
def test_a_target_of_nothing_is_refused(target: Any) -> None:
    result = compiled(addon("a", {"patches": [{**note("x"), "target": target}]}))

    assert told(result) == ["TargetEmpty"]


def test_targets_look_at_objects_whoever_made_them() -> None:
    lamp = addon("a0", {"creates": [made("StatefulSet", "own")], "patches": [
        {**note("seen"), "target": {"resourceType": ["Deployment", "StatefulSet"]}},
    ]})  # fmt: skip
    result = objects(run(lamp))

    assert all(item["metadata"]["annotations"] == {"seen": "yes"} for item in result.values())
    assert len(result) == 2


THREE = pods("main", "side", "main2")


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        pytest.param(
            ("add", f"{CONTAINERS}/[?(@.name=='side')]/args/-", "x"),
            [{"name": "main"}, {"name": "side", "args": ["x"]}, {"name": "main2"}],
            id="a-filter-and-then-an-append",
        ),
        pytest.param(
            ("add", f"{CONTAINERS}/[?(@.name=='side')]/ports[0]", 1), "PathNotArray", id="an-index-behind-a-filter"
        ),
        pytest.param(
            ("add", f"{CONTAINERS}/[*]/tty", True),
            [{"name": "main", "tty": True}, {"name": "side", "tty": True}, {"name": "main2", "tty": True}],
            id="every-match",
        ),
        pytest.param(
            ("add", f"{CONTAINERS}/[?(@.name=='main')]/m['a[0]']", 1),
            [{"name": "main", "m": {"a[0]": 1}}, {"name": "side"}, {"name": "main2"}],
            id="brackets-behind-a-filter-are-their-own",
        ),
        pytest.param(("mov", "/spec", 1), "PatchOpUnsupported", id="an-unknown-operation"),
        pytest.param(("replace", f"{CONTAINERS}/-", 1), "PathDashOnlyAdd", id="appending-is-for-add"),
        pytest.param(("replace", f"{CONTAINERS}/[?(@.name=='z')]", 1), "PatchPathNotFound", id="no-match"),
        pytest.param(("replace", "/spec/none", 1), "PatchPathNotFound", id="replace-makes-nothing"),
        pytest.param(
            ("add", f"{CONTAINERS}/0", {"name": "first"}),
            [{"name": "first"}, {"name": "main"}, {"name": "side"}, {"name": "main2"}],
            id="add-inserts",
        ),
    ],
)
def test_operations(operation: Any, expected: Any) -> None:
    op, path, value = operation
    result = run(addon("a0", {"patches": [patch(op, path, value, DEPLOYMENT)]}), base=THREE)

    if isinstance(expected, str):
        assert expected in told(result)
    else:
        assert workload(result)["spec"]["template"]["spec"]["containers"] == expected


def test_targets_share_nothing() -> None:
    """One list in two objects would be filled twice."""
    shared = patch("add", "/data", {"list": []}, {"resourceType": "ConfigMap"})
    fill = patch("add", "/data/list/-", "x", {"resourceType": "ConfigMap"})
    stall = definition(*(resource(made(name=name), name) for name in ("one", "two")))
    kind = component_type(platform("lamp", "i"))
    result = objects(room(market(stall, addon("lamp", {"patches": [shared, fill]}), kind)))

    assert [item["data"] for item in result.values()] == [{"list": ["x"]}, {"list": ["x"]}]


def test_merging_starts_from_what_is_there_and_asks_what_both_are() -> None:
    base = made("Deployment", data={"map": {"a": 1}, "list": [1], "text": "x"})
    lamp = addon("a0", {"patches": [patch("merge", "/data", {"map": {"b": 2}, "list": [2, 3], "text": "y"})]})

    assert workload(run(lamp, base=base))["data"] == {"map": {"a": 1, "b": 2}, "list": [1, 2, 3], "text": "y"}


def test_instances_are_validated_again_when_their_type_changes() -> None:
    """The seed does not say what becomes of them."""
    narrower = definition(values=schema({"size": "integer | maximum=3"}))
    result = room(market(narrower, component_type(), of=component({"size": 5})))

    assert [condition.type for condition in status(result, "ComponentType", "market-stall").conditions] == [
        "Ready",
        "InstancesValid",
    ]
    assert status(result, "ComponentType", "market-stall").conditions[1].status == "False"
    assert {item.severity for item in findings(result)} == {"error"}
