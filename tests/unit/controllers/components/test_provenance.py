"""Tests of the provenance of components: the layer of each value, its parameters and its final location."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from reconciler.krm.json_pointer import parse_pointer, resolve_pointer
from tests.unit.controllers.components.component_builders import (
    addon,
    allowed,
    binding,
    build,
    component,
    component_type,
    create,
    definition,
    environment,
    full_config,
    manifest,
    patch,
    platform,
    pod_manifest,
    read_objects,
    reconcile,
    resource,
    schema,
    untyped_component,
    variant_of,
)

FILE = "configmap-bread.yaml"
WORKLOAD = "deployment-bread.yaml"
PODS = "/spec/template/spec"
Entry = Mapping[str, Any]


def read_layers(*texts: str) -> dict[tuple[str, str], list[Entry]]:
    """Return the provenance steps of each location, by file and JSON pointer."""
    result = reconcile(list(texts))
    assert not result.stalled, result.stalled
    provenance = variant_of(result).provenance
    assert provenance
    return {(layer["file"], layer["pointer"]): layer["steps"] for layer in provenance.list_layers()}


def format_steps(steps: list[Entry]) -> list[tuple[Any, ...]]:
    """Return layer, field, value and expression of each step."""
    return [
        (step.get("instance", step["layer"]), step["where"], step.get("after"), step.get("expression"))
        for step in steps
    ]


def format_value_sources(steps: list[Entry]) -> list[str]:
    """Return the sources of the values that the last step reads."""
    return [
        " ".join(value[part] for part in ("name", "layer", "by", "where") if part in value)
        for value in steps[-1].get("values", ())
    ]


def test_object_has_its_template_and_value_has_its_expression() -> None:
    result = read_layers(
        *full_config(definition(resource(manifest(data={"a": "x", "b": "${metadata.name}!"}))), component_type())
    )

    assert sorted(pointer for _, pointer in result) == ["", "/data/b", "/metadata/name", "/metadata/namespace"]
    assert format_steps(result[FILE, ""]) == [("definition", "spec.resources[0].template", None, None)]
    assert format_steps(result[FILE, "/data/b"]) == [
        ("definition", "spec.resources[0].template.data.b", "bread!", "${metadata.name}!")
    ]


VALUES = schema(
    {"size": "integer | default=1", "free": "object", "crust": {"$default": {"kind": "dark"}, "kind": "string"}},
    {"oven": {"heat": "integer | default=200", "steam": "string | default=low"}},
)
SHOWN = definition(
    resource(
        manifest(
            data={
                "size": "${spec.size}",
                "kind": "${spec.crust.kind}",
                "heat": "${spec.oven.heat}",
                "oven": "${spec.oven}",
                "free": "${spec.free}",
                "maybe": "${has(spec.free) ? 1 : 0}",
                "all": "${spec}",
            }
        )
    ),
    values=VALUES,
)
BREAD, BINDING = "MarketStall/square/bread", "EnvBinding/square/bread-fair"
DEFINITION = "ComponentDefinition/_cluster/stall"


@pytest.mark.parametrize(
    ("spec", "overrides", "key", "expected"),
    [
        pytest.param({"free": {}}, {}, "size",
                     [f"spec.size default {DEFINITION} spec.schema.parameters.size"], id="default"),
        pytest.param({"free": {}, "size": 3}, {}, "size",
                     [f"spec.size component {BREAD} spec.size"], id="component"),
        pytest.param({"free": {}}, {}, "kind",
                     [f"spec.crust.kind default {DEFINITION} spec.schema.parameters.crust.$default"],
                     id="default-of-an-object"),
        pytest.param({"free": {}, "crust": {"kind": "pale"}}, {}, "kind",
                     [f"spec.crust.kind component {BREAD} spec.crust.kind"], id="object-that-is-given"),
        pytest.param({"free": {}}, {"oven": {"steam": "high"}}, "heat",
                     [f"spec.oven.heat default {DEFINITION} spec.schema.envOverrides.oven.heat"],
                     id="default-beside-a-field-that-is-overridden"),
        pytest.param({"free": {}, "oven": {"heat": 180}}, {"oven": {"steam": "high"}}, "oven",
                     [f"spec.oven.heat component {BREAD} spec.oven.heat",
                      f"spec.oven.steam environment {BINDING} spec.overrides.oven.steam"],
                     id="object-of-many-field-by-field"),
        pytest.param({"free": {}, "oven": {"heat": 180, "steam": "high"}}, {}, "oven",
                     [f"spec.oven component {BREAD} spec.oven"], id="object-of-one"),
        pytest.param({"free": {}, "oven": {"heat": 180}}, {"oven": {"heat": None}}, "heat",
                     [f"spec.oven.heat default {DEFINITION} spec.schema.envOverrides.oven.heat"],
                     id="null-removes-the-value-of-the-component"),
        pytest.param({"free": {"a": 1, "b": 2}}, {}, "free",
                     [f"spec.free component {BREAD} spec.free"], id="free-form"),
    ],
)  # fmt: skip
def test_source_of_a_parameter(spec: Any, overrides: Any, key: str, expected: list[str]) -> None:
    result = read_layers(*full_config(SHOWN, component_type(), of=component(spec), on=binding(overrides=overrides)))

    assert format_value_sources(result[FILE, f"/data/{key}"]) == expected


def test_missing_parameter_has_no_source() -> None:
    shown = definition(
        resource(manifest(data={"a": "${has(spec.a) ? spec.a : 'none'}"})), values=schema({"a": "string"})
    )

    assert format_value_sources(read_layers(*full_config(shown, component_type()))[FILE, "/data/a"]) == ["spec.a unset"]


def test_sources_of_all_values_are_listed_by_field() -> None:
    result = read_layers(*full_config(SHOWN, component_type(), of=component({"free": {}, "size": 2})))

    assert [giver.split()[:2] for giver in format_value_sources(result[FILE, "/data/all"])] == [
        ["spec.free", "component"], ["spec.size", "component"], ["spec.crust", "default"], ["spec.oven", "default"],
    ]  # fmt: skip


FACTS = manifest(
    data={
        "image": "${build.image}",
        "port": "${string(workload.port)}",
        "env": "${env.name}",
        "zone": "${env.zone}",
        "hosts": "${env.endpoints.map(e, e.host).join()}",
        "team": "${metadata.labels.team}",
    }
)


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        pytest.param("image", "build.image build Build/square/bread spec.image", id="build"),
        pytest.param("port", "workload.port build Build/square/bread spec.workload.port", id="workload"),
        pytest.param("env", f"env.name environment {BINDING} spec.environment", id="environment"),
        pytest.param("zone", "env.zone environment Environment/_cluster/fair spec.context.zone", id="context"),
        pytest.param("hosts", f"env.endpoints environment {BINDING} spec.endpoints", id="endpoints"),
        pytest.param("team", f"metadata.labels.team component {BREAD} metadata.labels.team", id="metadata"),
    ],
)
def test_source_of_an_injected_value(key: str, expected: str) -> None:
    texts = full_config(
        definition(resource(FACTS)), component_type(), build(spec={"image": "b:1", "workload": {"port": 80}}),
        of=component(labels={"team": "ovens"}), on=binding(endpoints=[{"name": "a", "host": "b"}]),
    )  # fmt: skip
    texts[1] = environment(context={"zone": "north"})

    assert format_value_sources(read_layers(*texts)[FILE, f"/data/{key}"]) == [expected]


LAMP = addon(
    "lamp",
    {
        "schema": schema({"colour": "string | default=white"}, {"watts": "integer | default=5"}),
        "creates": [
            create(
                manifest(
                    name="${metadata.name}-${instanceId}",
                    data={"colour": "${spec.colour}", "watts": "${string(spec.watts)}", "by": "${addon.name}"},
                )
            )
        ],
    },
    side="both",
)
TYPE = "ComponentType/_cluster/market-stall"


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        pytest.param("colour", f"spec.colour platform {TYPE} spec.platformAddons[0].config.colour", id="config"),
        pytest.param(
            "watts", f"spec.watts environment {BINDING} spec.platformAddonOverrides.lamp.watts", id="override"
        ),
        pytest.param("by", f"addon.name platform {TYPE} spec.platformAddons[0].name", id="its-name"),
    ],
)
def test_source_of_a_platform_addon_parameter(key: str, expected: str) -> None:
    of = component_type(platform(instance="left", config={"colour": "red"}))
    result = read_layers(
        *full_config(definition(), LAMP, of, on=binding(platformAddonOverrides={"lamp": {"watts": 9}}))
    )

    assert format_value_sources(result["configmap-bread-left.yaml", f"/data/{key}"]) == [expected]
    assert f"instanceId platform {TYPE} spec.platformAddons[0].instanceId" in format_value_sources(
        result["configmap-bread-left.yaml", "/metadata/name"]
    )


@pytest.mark.parametrize(
    ("lamp", "key", "expected"),
    [
        pytest.param({"colour": "red"}, "colour", f"spec.colour component {BREAD} spec.lamp.colour", id="component"),
        pytest.param({}, "colour", f"spec.colour defaults {TYPE} spec.developerAddons.allowed[0].defaults.colour",
                     id="default-of-the-type"),
        pytest.param({}, "watts", "spec.watts default Addon/_cluster/lamp spec.schema.envOverrides.watts",
                     id="default-of-the-addon"),
    ],
)  # fmt: skip
def test_source_of_a_developer_addon_parameter(lamp: Any, key: str, expected: str) -> None:
    of = component_type(allow=[allowed(defaults={"colour": "blue"})])
    result = read_layers(*full_config(definition(), LAMP, of, of=component({"lamp": lamp})))

    assert format_value_sources(result["configmap-bread-default.yaml", f"/data/{key}"]) == [expected]


def test_source_of_a_parameter_in_a_component_without_type() -> None:
    result = read_layers(
        *full_config(definition(), LAMP, of=untyped_component(platform(instance="left", config={"colour": "red"})))
    )

    assert format_value_sources(result["configmap-bread-left.yaml", "/data/colour"]) == [
        "spec.colour developer Component/square/bread spec.addons[0].config.colour"
    ]


def test_looped_object_has_the_source_of_its_items() -> None:
    shown = resource(manifest(name="${item.name}", data={"a": "${item.a}"}), forEach="${spec.items}")
    values = schema({"items": '[]object | default=[{"name":"x","a":1}]'})
    result = read_layers(*full_config(definition(shown, values=values), component_type()))

    expected = [f"spec.items default {DEFINITION} spec.schema.parameters.items"]
    assert format_value_sources(result["configmap-x.yaml", "/data/a"]) == expected
    assert (result["configmap-x.yaml", ""][0]["forEach"], format_value_sources(result["configmap-x.yaml", ""])) == (
        "${spec.items}",
        expected,
    )


# Patches.


def patch_workload(*patches: Any, containers: tuple[str, ...] = ("one",), values: Any = None, **spec: Any) -> Any:
    of = addon("lamp", {"schema": dict(values or {}), "patches": list(patches)})
    texts = full_config(
        definition(resource(pod_manifest(*containers))), of, component_type(platform(instance="left", **spec)),
    )  # fmt: skip
    return read_layers(*texts), read_objects(reconcile(texts))[WORKLOAD]


WHO = schema({"who": "string | default=me"})


def test_expression_inside_an_added_list_item() -> None:
    value, _ = patch_workload(patch("add", f"{PODS}/volumes/-", {"name": "${instanceId}", "mode": 1}))

    at = "spec.patches[0].patch"
    assert format_steps(value[WORKLOAD, f"{PODS}/volumes"]) == [("lamp/left", at, [{"name": "left", "mode": 1}], None)]
    assert format_steps(value[WORKLOAD, f"{PODS}/volumes/0/name"]) == [("lamp/left", at, "left", "${instanceId}")]


def test_merged_list_items_keep_their_expressions() -> None:
    value = {"containers": [{"name": "two"}, {"name": "${spec.who}"}]}
    entry, _ = patch_workload(patch("merge", PODS, value), containers=("zero", "one"), values=WHO)

    assert format_steps(entry[WORKLOAD, f"{PODS}/containers/2/name"])[0][2:] == ("two", None)
    assert format_steps(entry[WORKLOAD, f"{PODS}/containers/3/name"])[0][2:] == ("me", "${spec.who}")


def test_each_field_of_an_expression_has_the_expression() -> None:
    value, _ = patch_workload(patch("merge", "/metadata/labels", '${{"a": spec.who, "b": "x"}}'), values=WHO)

    for key in ("a", "b"):
        assert format_steps(value[WORKLOAD, f"/metadata/labels/{key}"])[0][3] == '${{"a": spec.who, "b": "x"}}'


@pytest.mark.parametrize(
    ("operation", "pointer"),
    [
        pytest.param(patch("add", f"{PODS}/containers/0", {"name": "zero"}), "2", id="inserted-before"),
        pytest.param(patch("add", f"{PODS}/containers/1", {"name": "zero"}), "2", id="inserted-right-there"),
        pytest.param(patch("add", f"{PODS}/containers/-", {"name": "zero"}), "1", id="appended"),
        pytest.param(patch("remove", f"{PODS}/containers/0"), "0", id="removed-before"),
        pytest.param(patch("replace", f"{PODS}/containers/0", {"name": "zero"}), "1", id="replaced-before"),
    ],
)
def test_value_has_its_final_location(operation: Any, pointer: str) -> None:
    image = patch("add", f"{PODS}/containers/1/image", "two:1")
    value, entry = patch_workload(image, operation, containers=("one", "two"))

    place = f"{PODS}/containers/{pointer}/image"
    assert format_steps(value[WORKLOAD, place]) == [("lamp/left", "spec.patches[0].patch", "two:1", None)]
    assert resolve_pointer(entry, parse_pointer(place)) == "two:1"


def test_removed_item_is_listed_after_the_last_item() -> None:
    deleted = patch("remove", f"{PODS}/containers/0")
    value, _ = patch_workload(patch("add", f"{PODS}/containers/0/image", "one:1"), deleted, containers=("one", "two"))

    (step,) = value[WORKLOAD, f"{PODS}/containers/-"]
    assert (step["op"], step["before"]) == ("removed", {"name": "one", "image": "one:1"})
    assert not [pointer for _, pointer in value if pointer.startswith(f"{PODS}/containers/0")]


def test_replaced_list_has_no_steps_of_the_old_items() -> None:
    first = patch("add", f"{PODS}/containers/0/image", "one:1")
    value, _ = patch_workload(first, patch("replace", f"{PODS}/containers", [{"name": "${spec.who}"}]), values=WHO)

    (step,) = value[WORKLOAD, f"{PODS}/containers"]
    assert (step["op"], step["before"], step["after"]) == (
        "replaced", [{"name": "one", "image": "one:1"}], [{"name": "me"}],
    )  # fmt: skip
    assert [pointer for _, pointer in value if pointer.startswith(f"{PODS}/containers/")] == [
        f"{PODS}/containers/0/name"
    ]


def test_steps_of_a_value_are_in_order() -> None:
    value, _ = patch_workload(
        patch("add", "/spec/replicas", 2), patch("replace", "/spec/replicas", 3), patch("remove", "/spec/replicas"),
    )  # fmt: skip

    assert [(item["op"], item.get("before"), item.get("after")) for item in value[WORKLOAD, "/spec/replicas"]] == [
        ("added", None, 2), ("replaced", 2, 3), ("removed", 3, None),
    ]  # fmt: skip


def test_each_pointer_resolves_to_its_final_value() -> None:
    value, entry = patch_workload(
        patch("add", f"{PODS}/containers/0", {"name": "${spec.who}", "env": [{"name": "a", "value": "${spec.who}"}]}),
        patch("remove", f"{PODS}/containers/[?(@.name=='two')]"),
        patch("add", f"{PODS}/containers/0/env/0", {"name": "${spec.who}"}),
        patch("merge", f"{PODS}/containers/0", {"env": [{"name": "z"}], "args": ["${spec.who}"]}),
        containers=("one", "two", "three"), values=WHO,
    )  # fmt: skip

    for (file, pointer), steps in value.items():
        if file == WORKLOAD and pointer and "after" in steps[-1] and not isinstance(steps[-1]["after"], dict | list):
            assert resolve_pointer(entry, parse_pointer(pointer)) == steps[-1]["after"], pointer


# Values that are not shown.


SECRET = manifest("Secret", stringData={"password": "pw-${spec.who}", "token": "${'geheim' + spec.who}", "plain": "p"})


def test_secret_values_and_their_expressions_are_masked() -> None:
    of = addon(
        "lamp",
        {
            "patches": [
                patch("replace", "/stringData/plain", "hunter-${metadata.name}", {"resourceType": "Secret"}),
                patch("add", "/data", {"key": "aHVudGVy"}, {"resourceType": "Secret"}),
                patch("remove", "/stringData/token", target={"resourceType": "Secret"}),
            ]
        },
    )
    secret = resource(SECRET, forEach="${['verdeckt']}")
    result = read_layers(*full_config(definition(secret, values=WHO), of, component_type(platform(instance="left"))))

    file = "secret-bread.yaml"
    assert not [text for text in ("pw-", "geheim", "hunter", "aHVudGVy", "verde") if text in repr(result)]
    assert result[file, "/stringData/password"][0]["expression"] == "*****"
    assert format_value_sources(result[file, "/stringData/password"]) == [
        f"spec.who default {DEFINITION} spec.schema.parameters.who"
    ]
    assert [item["after"] for item in result[file, "/metadata/name"]] == ["bread"]


def test_long_values_are_shortened() -> None:
    result = read_layers(*full_config(definition(resource(manifest(data={"a": "${'x'.replace('x', spec.who)}"})), values=schema(
        {"who": f"string | default={'y' * 5000}"})), component_type()))  # fmt: skip

    assert len(result[FILE, "/data/a"][0]["after"]) < 400


@pytest.mark.slow
def test_many_items_have_their_final_locations() -> None:
    insert = patch("add", f"{PODS}/containers/0", {"name": "c${string(item)}", "image": "${string(item)}"})
    of = addon("lamp", {"schema": schema({"n": "[]integer"}), "patches": [{**insert, "forEach": "${spec.n}"}]})
    numbers = platform(instance="left", config={"n": list(range(2000))})
    result = read_layers(*full_config(definition(resource(pod_manifest("one"))), of, component_type(numbers)))

    assert [result[WORKLOAD, f"{PODS}/containers/{index}/image"][0]["after"] for index in range(2000)] == [
        str(1999 - index) for index in range(2000)
    ]
