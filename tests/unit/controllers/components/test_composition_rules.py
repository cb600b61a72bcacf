"""Tests of composition rules that a simple implementation of addons easily violates."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.controllers.results import ControllerResult
from reconciler.krm.yaml import parse_yaml
from tests.unit.controllers.components.component_builders import (
    addon,
    allowed,
    annotate,
    annotator,
    binding,
    build,
    component,
    component_type,
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
    read_ready,
    read_values,
    reconcile,
    resource,
    schema,
)

DEPLOYMENT: Any = {"resourceType": "Deployment"}
CONTAINERS = "/spec/template/spec/containers"


def reconcile_type(*addons: str, allow: Any = (), **platform_configs: Any) -> ControllerResult:
    listed = [platform(name, "i", config) for name, config in platform_configs.items()]
    return reconcile([definition(resource(pod_manifest("main"))), *addons, component_type(*listed, allow=allow)])


def reconcile_component(*addons: str, base: Any = None, names: str = "") -> ControllerResult:
    """Reconcile a component with these addons. Each addon has one instance."""
    listed = names.split() or [f"a{number}" for number in range(len(addons))]
    kind = component_type(*(platform(name, "i") for name in listed))
    return reconcile(full_config(definition(resource(base or pod_manifest("main"))), *addons, kind))


def read_workload(result: ControllerResult) -> Any:
    return read_objects(result)["deployment-bread.yaml"]


def test_one_matching_target_is_sufficient() -> None:
    """Two entries with different kinds never match the same object."""
    result = reconcile_type(annotator("a", targets=[DEPLOYMENT, {"resourceType": "StatefulSet"}]), a={})

    assert read_ready(result, "ComponentType", "market-stall") == ("True", "Compiled")


def test_addon_without_targets_is_compatible() -> None:
    result = reconcile_type(addon("a", {"creates": [manifest("Secret")]}), a={})

    assert read_ready(result, "ComponentType", "market-stall") == ("True", "Compiled")


def test_requirements_permissions_and_cycles_are_checked() -> None:
    requires = reconcile_type(annotator("a", "developer", requires=["b"]), allow=[allowed("a")])
    permission = reconcile_type(annotator("a", "developer"), a={})
    itself = reconcile_type(annotator("a", requires=["a"]), a={})

    assert [list_codes(controller_result) for controller_result in (requires, permission, itself)] == [
        ["AddonRequirementMissing"], ["AddonNotAllowed"], ["AddonOrderCycle"],
    ]  # fmt: skip


def test_incompatible_target_without_resource_type_is_reported() -> None:
    """The message does not depend on `resourceType`, which a target by ID does not have."""
    result = reconcile_type(annotator("a", targets=[{"resourceId": "side"}]), a={})

    assert "undefined" not in find_finding(result, "AddonIncompatible").message
    assert find_finding(result, "AddonIncompatible").location.pointer == "/spec/platformAddons/0"


def test_instances_of_one_addon_have_their_own_config() -> None:
    disk = addon("disk", {"schema": schema({"path": "string"}), "creates": [
        create(manifest(name="${instanceId}", data="${spec}")),
    ]})  # fmt: skip
    kind = component_type(platform("disk", "a", {"path": "/a"}), platform("disk", "b", {"path": "/b"}))
    result = reconcile(full_config(definition(), disk, kind))

    assert read_objects(result)["configmap-a.yaml"]["data"] == {"path": "/a"}
    assert read_objects(result)["configmap-b.yaml"]["data"] == {"path": "/b"}


def test_platform_addons_read_component_build_and_environment() -> None:
    """Platform addons are rendered for each environment, so that overrides apply to them."""
    mapping = {"who": "${metadata.name}", "what": "${build.image}", "where": "${env.name}", "own": "${spec.glow}"}
    fields = schema({}, {"glow": "string | default=dim"})
    lamp = addon("lamp", {"schema": fields, "creates": [create(manifest(name="seen", data=mapping))]})
    on = binding(platformAddonOverrides={"lamp": {"glow": "red"}})
    result = reconcile(full_config(definition(), lamp, component_type(platform("lamp", "i")), build(), on=on))

    assert read_values(result, "configmap-seen.yaml") == {
        "who": "bread", "what": "registry.example.org/bread:1", "where": "fair", "own": "red",
    }  # fmt: skip


def test_platform_addons_support_loops_and_order() -> None:
    mapping = {"forEach": "${[1, 2]}"}
    first = addon("z", {"patches": [patch("add", "/data/z/-", "${item}", **mapping)]})
    later = addon("a", {"patches": [patch("add", "/data/z/-", "a")], "dependencies": {"loadOrder": {"after": ["z"]}}})
    result = reconcile_component(first, later, base=manifest("Deployment"), names="a z")

    assert read_workload(result)["data"] == {"z": [1, 2, "a"]}


def test_developer_schema_merges_sections_and_defaults() -> None:
    """Both sections are merged, with the defaults of the type and with required fields."""
    lamp = addon(
        "desk-lamp",
        {
            "schema": schema({"watt": "integer | required=true"}, {"glow": "string | default=dim"}),
            "patches": [annotate("x")],
        },
        side="developer",
    )
    stall = definition(resource(pod_manifest("main")), values=schema({"size": "integer"}))
    kind = component_type(allow=[allowed("desk-lamp", {"glow": "red"})])
    files = find_status(reconcile([stall, lamp, kind]), "ComponentType", "market-stall").files

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


def test_integer_field_refuses_a_fraction() -> None:
    stall = definition(values=schema({"replicas": "integer | default=1"}))

    assert list_codes(reconcile(full_config(stall, component_type(), of=component({"replicas": 1.5})))) == [
        "SchemaValidation"
    ]


def test_override_of_an_undeclared_field_is_refused() -> None:
    lamp = addon("lamp", {"schema": schema({}, {"glow": "string"}), "patches": [annotate("x")]}, side="developer")
    on = binding(addonOverrides={"lamp": {"glow": "red", "outputDestination": "x"}})
    kind = component_type(allow=[allowed("lamp")])
    result = reconcile(full_config(definition(), lamp, kind, of=component({"lamp": {}}), on=on))

    assert list_codes(result) == ["UnknownField"]


def test_created_objects_can_be_patched_by_id() -> None:
    to_own = {"resourceId": ["lamp-i-0", "named"]}
    lamp = addon("lamp", {
        "creates": [manifest(name="bare"), create(manifest(name="w-${item}"), id="named", forEach="${['a', 'b']}")],
        "patches": [{**annotate("seen"), "target": to_own}],
    })  # fmt: skip
    result = read_objects(reconcile_component(lamp, names="lamp"))

    created = {name: item for name, item in result.items() if name.startswith("configmap")}
    assert list(created) == ["configmap-bare.yaml", "configmap-w-a.yaml", "configmap-w-b.yaml"]
    assert all(item["metadata"]["annotations"] == {"seen": "yes"} for item in created.values())


def test_path_and_value_have_the_same_variables() -> None:
    """`metadata` is that of the component. `item` exists only in a loop."""
    lamp = addon("a0", {"patches": [
        patch("add", "/data/${metadata.name}-${target.metadata.name}", "${metadata.name}-${target.metadata.name}",
              {"resourceType": "Secret"}),
    ]})  # fmt: skip
    other = manifest("Secret", name="other")
    result = reconcile_component(lamp, base=other)

    assert read_objects(result)["secret-other.yaml"]["data"] == {"bread-other": "bread-other"}
    assert list_codes(reconcile_component(addon("a0", {"patches": [annotate("x", "${item}")]}))) == [
        "AddonNotFound", "CelUndeclared", "ComponentTypeNotReady",
    ]  # fmt: skip


def test_path_starts_at_the_object() -> None:
    """It does not start at the entry that contains the template."""
    result = reconcile_component(addon("a0", {"patches": [patch("add", "/template", "x", DEPLOYMENT)]}))

    assert read_workload(result)["template"] == "x"


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        pytest.param({}, ["a", "b"], id="names"),
        pytest.param({"after": ["b"]}, ["b", "a"], id="after"),
        pytest.param({"before": ["b"]}, ["a", "b"], id="before"),
    ],
)
def test_load_order_is_applied(order: Any, expected: list[str]) -> None:
    first = annotator("a", dependencies={"loadOrder": order})
    applied: Any = find_status(
        reconcile_type(first, annotator("b"), a={}, b={}), "ComponentType", "market-stall"
    ).fields

    assert [applied_platform_addon["name"] for applied_platform_addon in applied["appliedPlatformAddons"]] == expected


def test_cycle_and_missing_requirement_are_reported() -> None:
    circle = reconcile_type(annotator("a", requires=["b"]), annotator("b", requires=["a"]), a={}, b={})
    missing = reconcile_type(annotator("a", requires=["gone"]), a={})

    assert list_codes(circle) == ["AddonOrderCycle"]
    assert "a → b → a" in find_finding(circle, "AddonOrderCycle").message
    assert list_codes(missing) == ["AddonRequirementMissing"]


@pytest.mark.parametrize("target", [{}, {"resourceType": None}, {"selector": {"matchLabels": {}}}])
def test_empty_target_is_refused(target: Any) -> None:
    result = reconcile_type(addon("a", {"patches": [{**annotate("x"), "target": target}]}))

    assert list_codes(result) == ["TargetEmpty"]


def test_targets_match_objects_of_definition_and_addons() -> None:
    lamp = addon("a0", {"creates": [manifest("StatefulSet", "own")], "patches": [
        {**annotate("seen"), "target": {"resourceType": ["Deployment", "StatefulSet"]}},
    ]})  # fmt: skip
    result = read_objects(reconcile_component(lamp))

    assert all(item["metadata"]["annotations"] == {"seen": "yes"} for item in result.values())
    assert len(result) == 2


THREE = pod_manifest("main", "side", "main2")


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
    result = reconcile_component(addon("a0", {"patches": [patch(op, path, value, DEPLOYMENT)]}), base=THREE)

    if isinstance(expected, str):
        assert expected in list_codes(result)
    else:
        assert read_workload(result)["spec"]["template"]["spec"]["containers"] == expected


def test_targets_share_no_values() -> None:
    """A shared list would receive each item twice."""
    shared = patch("add", "/data", {"list": []}, {"resourceType": "ConfigMap"})
    fill = patch("add", "/data/list/-", "x", {"resourceType": "ConfigMap"})
    stall = definition(*(resource(manifest(name=name), name) for name in ("one", "two")))
    kind = component_type(platform("lamp", "i"))
    result = read_objects(reconcile(full_config(stall, addon("lamp", {"patches": [shared, fill]}), kind)))

    assert [item["data"] for item in result.values()] == [{"list": ["x"]}, {"list": ["x"]}]


def test_merge_depends_on_the_type_of_both_values() -> None:
    base = manifest("Deployment", data={"map": {"a": 1}, "list": [1], "text": "x"})
    lamp = addon("a0", {"patches": [patch("merge", "/data", {"map": {"b": 2}, "list": [2, 3], "text": "y"})]})

    assert read_workload(reconcile_component(lamp, base=base))["data"] == {
        "map": {"a": 1, "b": 2},
        "list": [1, 2, 3],
        "text": "y",
    }


def test_components_are_validated_when_their_type_changes() -> None:
    narrower = definition(values=schema({"size": "integer | maximum=3"}))
    result = reconcile(full_config(narrower, component_type(), of=component({"size": 5})))

    assert [condition.type for condition in find_status(result, "ComponentType", "market-stall").conditions] == [
        "Ready",
        "InstancesValid",
    ]
    assert find_status(result, "ComponentType", "market-stall").conditions[1].status == "False"
    assert {item.severity for item in list_findings(result)} == {"error"}
