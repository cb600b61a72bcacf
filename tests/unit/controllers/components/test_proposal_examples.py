"""Tests of the examples in the original proposal, if the file is available: both stages, order and expressions."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from reconciler.controllers.components.addon_order import AddonOrderConstraints, order_instances
from reconciler.controllers.components.model import AddonInstance
from reconciler.controllers.results import ControllerResult
from reconciler.krm.yaml import emit, parse_yaml
from tests.unit.controllers.components.component_builders import (
    GLUE,
    addon,
    annotate,
    annotator,
    build,
    cluster,
    component_type,
    create,
    definition,
    environment,
    find_finding,
    find_status,
    list_codes,
    manifest,
    patch,
    platform,
    read_objects,
    reconcile,
    resource,
    schema,
    write_object,
)

FOLDER = Path(__file__).resolve().parents[4] / "../shared/seeds"
PROPOSALS = sorted(FOLDER.glob("002_*.txt"))
pytestmark = pytest.mark.skipif(not PROPOSALS, reason="the proposal is not on this machine")

VOLUMES = "/spec/template/spec/volumes/-"
MOUNTS = "/spec/template/spec/containers/[?(@.name=='app')]/volumeMounts/-"
DISK = addon(
    "persistent-volume",
    {
        "schema": schema(
            {"volumeName": "string | required=true", "mountPath": "string | required=true"},
            {"size": "string | default=10Gi", "storageClass": "string | default=standard"},
        ),
        "creates": [
            create(
                manifest("PersistentVolumeClaim", "${metadata.name}-${spec.volumeName}", spec={
                    "storageClassName": "${spec.storageClass}", "resources": {"requests": {"storage": "${spec.size}"}},
                }),
                id="pvc",
            )
        ],
        "patches": [
            {"target": {"resourceType": "Deployment"}, "operations": [
                {"op": "add", "path": VOLUMES, "value": {"name": "${spec.volumeName}"}},
                {"op": "add", "path": MOUNTS,
                 "value": {"name": "${spec.volumeName}", "mountPath": "${spec.mountPath}"}},
            ]}
        ],
    },
    side="both",
    labels={"version": "1.0"},
)  # fmt: skip
POLICY = addon(
    "network-policy",
    {
        "schema": schema({"denyAll": "boolean | default=false", "allowIngress": "[]object | default=[]"}),
        "creates": [manifest("NetworkPolicy", "${metadata.name}-policy", spec={"ingress": "${spec.allowIngress}"})],
    },
    labels={"version": "1.0"},
)
FILES = addon(
    "config-files",
    {
        "description": "Mount ConfigMaps/Secrets",
        "schema": schema({"configs": "[]object | default=[]"}),
        "creates": [create(manifest(name="${metadata.name}-${item.name}"), forEach="${spec.configs}")],
    },
    side="developer",
)
SIDECAR = addon(
    "logging-sidecar",
    {
        "description": "Logging sidecar",
        "schema": schema(
            {"enabled": "boolean | default=true"},
            {"logLevel": "string | default=info", "outputDestination": "string | default=stdout"},
        ),
        "patches": [patch("add", "/spec/template/spec/containers/-", {
            "name": "fluent-bit", "args": ["${spec.logLevel}", "${spec.outputDestination}"],
        }, {"resourceType": "Deployment"})],
    },
    side="developer",
)  # fmt: skip


def read_code_blocks(heading: str, language: str = "yaml") -> list[str]:
    """Return the code blocks between a heading of the proposal and the next heading."""
    (proposal,) = PROPOSALS
    text = proposal.read_text()
    after = text[text.index(f"\n{heading}\n") + len(heading) + 1 :]
    end = re.search(r"^##+ ", after[1:], re.MULTILINE)
    return re.findall(rf"```{language}\n(.*?)```", after[: end.start() if end else None], re.DOTALL)


def read_example(heading: str, number: int = 0) -> dict[str, Any]:
    data: dict[str, Any] = parse_yaml(read_code_blocks(heading)[number].encode()).documents[0].data
    return data


def add_namespace(data: dict[str, Any]) -> str:
    """Return an object of the proposal as YAML, with a namespace."""
    return emit({**data, "metadata": {**data["metadata"], "namespace": "shop"}})


def complete_definition(data: dict[str, Any]) -> str:
    """Return a definition of the proposal with a complete template."""
    data["spec"]["resources"][0]["template"] = manifest("Deployment", spec={
        "replicas": "${spec.replicas}",
        "template": {"spec": {"containers": [{"name": "app", "image": "${build.image}"}]}},
    })  # fmt: skip
    return emit(data)


def binding_to_production(name: str) -> str:
    """Return the binding of a component to the environment of the proposal."""
    spec = {"owner": {"componentName": name}, "environment": "production"}
    return write_object("EnvBinding", f"{name}-here", spec, namespace="shop")


def reconcile_both_stages() -> ControllerResult:
    return reconcile([
        cluster(), environment("production"), build("customer-portal", {"image": "portal:1"}, "shop"),
        complete_definition(read_example("#### 2. Load ComponentDefinition")), DISK, POLICY, FILES, SIDECAR,
        emit(read_example("#### 1. PE Defines ComponentType")),
        add_namespace(read_example("## Stage 2: Component Instance Creation")), add_namespace(read_example("## EnvBinding Overrides")),
    ])  # fmt: skip


def test_incomplete_definition_is_an_error() -> None:
    """The definition in the proposal has no complete template, so its objects cannot be rendered."""
    short = read_example("#### 2. Load ComponentDefinition")
    of = write_object("ProductionWebApp", "portal", {}, namespace="shop")
    kind = component_type(name="production-web-app", definition="web-app")
    result = reconcile([cluster(), environment("production"), emit(short), kind, of, binding_to_production("portal")])

    assert list_codes(result) == ["RenderedObjectInvalid"]
    assert result.variants == ()


def test_stage_1_compiles_the_type() -> None:
    result = reconcile_both_stages()

    config_status = find_status(result, "ComponentType", "production-web-app")
    expected = read_example("#### 7. Generate ComponentType")["status"]
    assert config_status.fields["generatedCRD"] == expected["generatedCRD"]
    # The proposal lists addons in the order of the type, and the status lists them in the order of execution.
    applied: Any = config_status.fields["appliedPlatformAddons"]
    listed = [{"name": item["name"], "version": item["version"]} for item in applied]
    assert listed == sorted(expected["appliedPlatformAddons"], key=lambda value: str(value["name"]))
    ready = config_status.conditions[0]
    assert [{"type": ready.type, "status": ready.status}] == expected["conditions"]


def test_developer_schema() -> None:
    files = find_status(reconcile_both_stages(), "ComponentType", "production-web-app").files

    assert files is not None
    properties = parse_yaml(files["schema.json"]).documents[0].data["properties"]
    (shown,) = read_code_blocks("#### 6. Merge Developer Addon Schemas", "json")
    # The type `number` of the proposal is an integer here, and the JSON of the proposal contains a comment.
    expected = parse_yaml(re.sub(r"^ *//.*\n", "", shown, flags=re.MULTILINE).replace("number", "integer").encode())
    for name, item in expected.documents[0].data["properties"].items():
        assert properties[name]["type"] == item["type"]
        assert properties[name].get("description") == item.get("description")
        assert properties[name].get("default") == item.get("default")
        for field, of_field in item.get("properties", {}).items():
            assert properties[name]["properties"][field]["type"] == of_field["type"]
            assert properties[name]["properties"][field].get("default") == of_field.get("default", [])
    assert not {"persistentVolume", "networkPolicy"} & properties.keys()


def test_stage_2_renders_the_component_with_overrides() -> None:
    """The binding names no owner, so the component is derived from its name."""
    result = reconcile_both_stages()

    assert list_codes(result) == ["EnvBindingOwnerGuessed"]
    output = read_objects(result, "east/components/production/shop/customer-portal")
    deployment = output["deployment-customer-portal.yaml"]["spec"]
    assert deployment["replicas"] == 3
    app, sidecar = deployment["template"]["spec"]["containers"]
    assert app["volumeMounts"] == [{"name": "app-data", "mountPath": "/app/data"}]
    assert sidecar["args"] == ["warn", "elasticsearch.prod.svc:9200"]
    claim = output["persistentvolumeclaim-customer-portal-app-data.yaml"]["spec"]
    assert claim == {"storageClassName": "premium", "resources": {"requests": {"storage": "200Gi"}}}
    assert output["networkpolicy-customer-portal-policy.yaml"]["spec"] == {"ingress": [{"from": "namespace:ingress"}]}
    assert "configmap-customer-portal-app-config.yaml" in output


def test_two_instances_of_one_addon() -> None:
    """Both instances of the addon patch the workload."""
    listed = read_example("#### 1. PE Defines ComponentType", 1)["platformAddons"]
    stall = complete_definition(read_example("#### 2. Load ComponentDefinition"))
    of = write_object("ProductionWebApp", "portal", {}, namespace="shop")
    result = reconcile([
        cluster(), environment("production"), build("portal", {"image": "a"}, "shop"), stall, DISK, of,
        component_type(*listed, name="production-web-app", definition="web-app"),
        binding_to_production("portal"),
    ])  # fmt: skip

    assert list_codes(result) == []
    pod = read_objects(result, "east/components/production/shop/portal")["deployment-portal.yaml"]["spec"]["template"][
        "spec"
    ]
    assert pod["volumes"] == [{"name": "app-data"}, {"name": "cache-data"}]


def test_component_without_type() -> None:
    output = read_example("### Strategy 2: Runtime Composition (Optional)")
    result = reconcile([
        cluster(), environment("production"), build("my-app", {"image": "a"}, "shop"), DISK, add_namespace(output),
        complete_definition(read_example("#### 2. Load ComponentDefinition")), binding_to_production("my-app"),
    ])  # fmt: skip

    assert list_codes(result) == []
    found = read_objects(result, "east/components/production/shop/my-app")
    assert found["persistentvolumeclaim-my-app-data.yaml"]["spec"]["resources"]["requests"] == {"storage": "50Gi"}


def test_order_of_dependencies() -> None:
    """The order is the one that the proposal describes next to its example."""
    declared = read_example("### Dependency Declaration")["spec"]["dependencies"]
    text = read_code_blocks("### Dependency Declaration")[0]
    init = addon("database-init", {"patches": [annotate("x")], "dependencies": declared})
    assert "database-init" in text
    names = ["tls-certificate", "persistent-volume", "database-init"]
    values = [annotator("tls-certificate"), annotator("persistent-volume")]
    result = reconcile([definition(), init, *values, component_type(*(platform(name, "x") for name in names))])

    applied: Any = find_status(result, "ComponentType", "market-stall").fields["appliedPlatformAddons"]
    assert [item["name"] for item in applied] == ["persistent-volume", "database-init", "tls-certificate"]
    constraints = {"database-init": AddonOrderConstraints(("persistent-volume",), tuple(declared["loadOrder"]["after"]),
                                      tuple(declared["loadOrder"]["before"]))}  # fmt: skip
    with_monitoring = order_instances(map(AddonInstance, [*names, "monitoring"]), constraints, ())
    assert isinstance(with_monitoring, tuple)
    assert [addon_instance.addon for addon_instance in with_monitoring] == [
        "persistent-volume", "database-init", "monitoring", "tls-certificate",
    ]  # fmt: skip


SPEC = {
    "endpoints": [
        {"name": "api", "port": 8080, "visibility": "public"},
        {"name": "admin", "port": 9090, "visibility": ""},
    ],
    "scaleToZero": {"enabled": True},
    "files": [{"name": "file1", "content": "content1"}, {"name": "file2", "content": "content2"}],
}


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        pytest.param(0, "my-app-pvc", id="interpolation"),
        pytest.param(1, "CelUndeclared", id="keys-of-maps-need-quotes"),
        pytest.param(2, [SPEC["endpoints"][0]], id="filter"),  # type: ignore[index]
        pytest.param(3, 0, id="conditional"),
        pytest.param(4, "CelArrowFunction", id="reduce-is-no-cel"),
    ],
)
def test_example_expressions(number: int, expected: Any) -> None:
    """Two of the example expressions are not valid CEL."""
    (text,) = read_code_blocks("### Example Evaluations", "javascript")
    template = re.findall(r'^"(\$\{.*)";$', text, re.MULTILINE)[number]
    types = {
        "Endpoint": {"name": "string", "port": "integer", "visibility": "string"},
        "File": {"name": "string", "content": "string"},
    }
    fields = {"endpoints": "[]Endpoint", "scaleToZero": {"enabled": "boolean"}, "files": "[]File"}
    result = reconcile([
        cluster(), environment("production"), component_type(),
        definition(resource(manifest(data=template)), values=schema(fields, types=types)),
        write_object("MarketStall", "my-app", SPEC, namespace="shop"),
        binding_to_production("my-app"),
    ])  # fmt: skip

    if isinstance(expected, str) and expected.startswith("Cel"):
        assert expected in list_codes(result)
        if expected == "CelArrowFunction":
            assert "transformMapEntry" in find_finding(result, expected).message
    else:
        shown = read_objects(result, "east/components/production/shop/my-app")["configmap-my-app.yaml"]["data"]
        assert shown == expected


def test_complete_composition() -> None:
    """The addons produce the same resources as the definition that the proposal generates."""
    stall = read_example("### Input")
    stall["spec"]["resources"][0]["template"] |= {
        "apiVersion": "apps/v1", "metadata": {"name": "${metadata.name}", "namespace": "${metadata.namespace}"},
    }  # fmt: skip
    addons = [platform("persistent-volume", config={"volumeName": "data", "size": "50Gi", "mountPath": "/app/data"}),
              platform("logging-sidecar")]  # fmt: skip
    output = write_object("Component", "my-app", {"componentDefinition": "web-app", "addons": addons}, namespace="shop")
    result = reconcile([
        cluster(), environment("production"), emit(stall), DISK, SIDECAR, output,
        write_object("Build", "my-app", {"image": "registry.example.org/my-app:1"}, namespace="shop", api=GLUE),
        binding_to_production("my-app"),
    ])  # fmt: skip

    assert list_codes(result) == []
    found = read_objects(result, "east/components/production/shop/my-app")
    spec = found["deployment-my-app.yaml"]["spec"]
    assert spec["replicas"] == 1
    app, sidecar = spec["template"]["spec"]["containers"]
    assert app["image"] == "registry.example.org/my-app:1"
    assert app["volumeMounts"] == [{"name": "data", "mountPath": "/app/data"}]
    assert sidecar["name"] == "fluent-bit"
    assert found["persistentvolumeclaim-my-app-data.yaml"]["spec"]["resources"] == {"requests": {"storage": "50Gi"}}
