"""The worked example of the spec, read where the spec is: compiled, rendered to the byte, varied (openchoreo 16)."""

from __future__ import annotations

import re
from collections.abc import Callable
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from reconciler.controllers.components.model import to_camel_case
from reconciler.controllers.results import ControllerResult
from reconciler.krm.json_pointer import parse_pointer, resolve_pointer
from reconciler.krm.yaml import emit, parse_yaml
from tests.unit.controllers.components.component_builders import (
    build,
    bytes_of,
    cluster,
    environment,
    find_finding,
    find_status,
    list_codes,
    list_findings,
    read_objects,
    reconcile,
)

SPEC = Path(__file__).resolve().parents[4] / "../shared/specs/openchoreo.md"
pytestmark = pytest.mark.skipif(not SPEC.exists(), reason="the specification is not beside this project")

STAGING, PRODUCTION = (f"east/components/{name}/shop/orders" for name in ("staging", "production"))
SURROUNDINGS = [
    cluster(),
    environment("staging"),
    environment("production"),
    build("orders", {"image": "registry.example.org/orders:1.4.2", "tag": "1.4.2"}, "shop"),
]
Objects = dict[str, Any]


def section(number: str) -> str:
    """Return a section of the spec."""
    text = SPEC.read_text()
    start = text.index(f"### {number} ")
    return text[start : text.index("\n#", start + 1)]


def blocks(number: str) -> list[str]:
    return re.findall(r"```yaml\n(.*?)```", section(number), re.DOTALL)


@cache
def _inputs() -> Objects:
    documents = [document for block in blocks("16.1") for document in parse_yaml(block.encode()).documents]
    return {f"{document.data['kind']}/{document.data['metadata']['name']}": document.data for document in documents}


def inputs() -> Objects:
    """Return the objects of the example, to be changed at will."""
    return deepcopy(_inputs())


def example(change: Callable[[Objects], None] | None = None) -> ControllerResult:
    """Return what the room makes of the example, changed or as it is."""
    objects = inputs()
    if change:
        change(objects)
    return reconcile([*SURROUNDINGS, *map(emit, objects.values())])


def test_nothing_is_wrong_with_it() -> None:
    assert list_codes(example()) == []


def test_its_crd() -> None:
    files = find_status(example(), "ComponentType", "edge-api").files

    assert files is not None
    assert parse_yaml(files["crd.yaml"]).documents[0].data == parse_yaml(blocks("16.2")[0].encode()).documents[0].data


def test_its_status() -> None:
    expected = parse_yaml(blocks("16.2")[1].encode()).documents[0].data["status"]
    config_status = find_status(example(), "ComponentType", "edge-api")

    fields: Any = config_status.fields
    conditions = [{"type": condition.type, "status": condition.status, "reason": condition.reason, "message": condition.message}
                  for condition in config_status.conditions]  # fmt: skip
    for name in ("appliedPlatformAddons", "developerAddons"):
        assert all(re.fullmatch(r"sha256:[0-9a-f]{64}", field["digest"]) for field in fields[name])
        assert [{**field, "digest": "sha256:…"} for field in fields[name]] == expected[name]
    assert fields["generatedCRD"] == expected["generatedCRD"]
    assert conditions[0] == expected["conditions"][0]


def test_the_bytes_of_staging() -> None:
    """16.4, and the names of 16.6."""
    expected = [text if text.endswith("\n") else f"{text}\n" for text in blocks("16.4")[0].split("---\n")]
    names = re.findall(r"`([a-z-]+\.yaml)`", section("16.6"))

    written = {name: data for name, data in bytes_of(example()).items() if name.startswith(STAGING)}

    assert [data.decode() for data in written.values()] == expected
    assert sorted(name.rpartition("/")[2] for name in written) == sorted(names)


def differences(entry: Any, other: Any, at: str = "") -> dict[str, Any]:
    """Return what the other has at each place that is not the same."""
    if isinstance(entry, dict) and isinstance(other, dict) and entry.keys() == other.keys():
        return {
            place: value for key in entry for place, value in differences(entry[key], other[key], f"{at}/{key}").items()
        }
    if isinstance(entry, list) and isinstance(other, list) and len(entry) == len(other):
        pairs = enumerate(zip(entry, other, strict=True))
        return {place: value for index, (a, b) in pairs for place, value in differences(a, b, f"{at}/{index}").items()}
    return {} if entry == other else {at: other}


def rows(number: str) -> list[list[str]]:
    """Return the rows of the table of a section, its first two lines aside."""
    lines = [line for line in section(number).splitlines() if line.startswith("|")][2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_what_differs_in_production() -> None:
    """16.5, a table of places; one of them is an item that staging does not have."""
    result = example()
    staging, production = read_objects(result, STAGING), read_objects(result, PRODUCTION)

    changed = {file: differences(staging[file], production[file]) for file in staging}
    listed = 0
    subject = ""
    for item, place, value in rows("16.5"):
        subject = item or subject
        kind, name = subject.split()
        data = production[f"{kind.lower()}-{name}.yaml"]
        steps = parse_pointer(place)
        pointer = resolve_pointer(data, [int(step) if step.isdigit() else step for step in steps])
        if value.startswith("namespaceSelector"):
            assert pointer == {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "billing"}}}
        else:
            assert str(pointer) == value
        listed += 1
    assert sum(map(len, changed.values())) == listed == 9
    assert staging.keys() == production.keys()


def test_the_order_of_its_addons() -> None:
    fields: Any = find_status(example(), "EnvBinding", "orders-prod").fields

    assert fields["addons"] == ["net-guard/default", "scratch-volume/buffer", "log-shipper/default"]


def overriding(**overrides: Any) -> Callable[[Objects], None]:
    def change(objects: Objects) -> None:
        objects["EnvBinding/orders-prod"]["spec"]["overrides"] = overrides

    return change


def of_buffer(**fields: Any) -> Callable[[Objects], None]:
    def change(objects: Objects) -> None:
        objects["EnvBinding/orders-prod"]["spec"]["platformAddonOverrides"]["scratchVolume"]["buffer"] = fields

    return change


@pytest.mark.parametrize(
    ("change", "code", "message"),
    [
        pytest.param(overriding(pullPolicy="Always"), "NotOverridable", "declared in parameters", id="16.7-1"),
        pytest.param(overriding(replicas=50), "SchemaValidation", "replicas must be at most 20, not 50", id="16.7-2"),
        pytest.param(of_buffer(mountPath="/x"), "NotOverridable", "mountPath is declared in parameters", id="16.7-4"),
    ],
)
def test_variations_that_stop_production_alone(change: Callable[[Objects], None], code: str, message: str) -> None:
    result = example(change)

    assert list_codes(result) == [code]
    assert message in find_finding(result, code).message
    assert [variant.target.package for variant in result.variants] == ["components/staging/shop/orders"]


def test_16_7_3_null_drops_what_the_instance_says_as_well() -> None:
    result = example(overriding(replicas=None))

    assert read_objects(result, PRODUCTION)["deployment-orders.yaml"]["spec"]["replicas"] == 1
    assert read_objects(result, STAGING)["deployment-orders.yaml"]["spec"]["replicas"] == 2


@pytest.mark.parametrize("shipper", [None, {"enabled": False}], ids=["16.7-5-absent", "16.7-5-not-enabled"])
def test_16_7_5_without_its_developer_addon(shipper: Any) -> None:
    def change(objects: Objects) -> None:
        spec = objects["EdgeApi/orders"]["spec"]
        if shipper is None:
            del spec["logShipper"]
        else:
            spec["logShipper"] |= shipper

    result = example(change)

    assert list_codes(result) == ["OverrideUnused"]
    for place in (STAGING, PRODUCTION):
        output = read_objects(result, place)
        pod = output["deployment-orders.yaml"]["spec"]["template"]
        assert [container["name"] for container in pod["spec"]["containers"]] == ["main"]
        assert pod["metadata"]["annotations"] == {"guard.platform/mode": "strict"}
        assert "configmap-orders-log-shipper.yaml" not in output
    warned = [item.location.object for item in list_findings(result) if item.code == "OverrideUnused"]
    assert warned == ["EnvBinding/shop/orders-prod"]


def test_16_7_6_with_its_developer_addon_as_it_is() -> None:
    def change(objects: Objects) -> None:
        objects["EdgeApi/orders"]["spec"]["logShipper"] = {}

    result = example(change)

    assert list_codes(result) == []
    output = read_objects(result, STAGING)
    pod = output["deployment-orders.yaml"]["spec"]["template"]["spec"]
    sidecar = pod["containers"][1]
    assert sidecar["name"] == "log-shipper"
    assert "volumeMounts" not in sidecar
    assert [volume["name"] for volume in pod["volumes"]] == ["buffer"]
    assert "configmap-orders-log-shipper.yaml" not in output


def test_16_7_7_an_unknown_field() -> None:
    def change(objects: Objects) -> None:
        objects["EdgeApi/orders"]["spec"]["bogus"] = 1

    result = example(change)

    assert list_codes(result) == ["UnknownField"]
    assert "spec.bogus is unknown" in find_finding(result, "UnknownField").message
    assert result.variants == ()


def test_16_7_8_a_type_without_what_its_developer_addon_requires() -> None:
    def change(objects: Objects) -> None:
        objects["ComponentType/edge-api"]["spec"]["platformAddons"].pop(0)

    result = example(change)

    assert list_codes(result) == ["AddonRequirementMissing", "ComponentTypeNotReady"]
    message = find_finding(result, "AddonRequirementMissing").message
    assert "log-shipper requires scratch-volume" in message
    assert result.variants == ()


def test_the_variations_are_all_there() -> None:
    assert len(rows("16.7")) == 8


def test_names_of_its_addons_as_keys() -> None:
    names = [key.partition("/")[2] for key in inputs() if key.startswith("Addon/")]

    assert list(map(to_camel_case, names)) == ["scratchVolume", "netGuard", "logShipper"]
