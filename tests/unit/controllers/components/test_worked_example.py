"""Tests of the worked example in the component specification, if the file is available: CRD, status and files."""

from __future__ import annotations

import re
from collections.abc import Callable
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from reconciler.controllers.components.names import to_camel_case
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
pytestmark = pytest.mark.skipif(not SPEC.exists(), reason="the specification is not on this machine")

STAGING, PRODUCTION = (f"east/components/{name}/shop/orders" for name in ("staging", "production"))
SURROUNDINGS = [
    cluster(),
    environment("staging"),
    environment("production"),
    build("orders", {"image": "registry.example.org/orders:1.4.2", "tag": "1.4.2"}, "shop"),
]
Objects = dict[str, Any]


def read_section(number: str) -> str:
    """Return a section of the specification."""
    text = SPEC.read_text()
    start = text.index(f"### {number} ")
    return text[start : text.index("\n#", start + 1)]


def read_code_blocks(number: str) -> list[str]:
    return re.findall(r"```yaml\n(.*?)```", read_section(number), re.DOTALL)


@cache
def _read_inputs() -> Objects:
    documents = [document for block in read_code_blocks("16.1") for document in parse_yaml(block.encode()).documents]
    return {f"{document.data['kind']}/{document.data['metadata']['name']}": document.data for document in documents}


def copy_inputs() -> Objects:
    """Return a copy of the objects of the example, which a test can change."""
    return deepcopy(_read_inputs())


def reconcile_example(change: Callable[[Objects], None] | None = None) -> ControllerResult:
    """Reconcile the example, with or without a change."""
    objects = copy_inputs()
    if change:
        change(objects)
    return reconcile([*SURROUNDINGS, *map(emit, objects.values())])


def test_example_has_no_findings() -> None:
    assert list_codes(reconcile_example()) == []


def test_crd_of_the_example() -> None:
    files = find_status(reconcile_example(), "ComponentType", "edge-api").files

    assert files is not None
    assert (
        parse_yaml(files["crd.yaml"]).documents[0].data
        == parse_yaml(read_code_blocks("16.2")[0].encode()).documents[0].data
    )


def test_status_of_the_example() -> None:
    expected = parse_yaml(read_code_blocks("16.2")[1].encode()).documents[0].data["status"]
    config_status = find_status(reconcile_example(), "ComponentType", "edge-api")

    fields: Any = config_status.fields
    conditions = [{"type": condition.type, "status": condition.status, "reason": condition.reason, "message": condition.message}
                  for condition in config_status.conditions]  # fmt: skip
    for name in ("appliedPlatformAddons", "developerAddons"):
        assert all(re.fullmatch(r"sha256:[0-9a-f]{64}", field["digest"]) for field in fields[name])
        assert [{**field, "digest": "sha256:…"} for field in fields[name]] == expected[name]
    assert fields["generatedCRD"] == expected["generatedCRD"]
    assert conditions[0] == expected["conditions"][0]


def test_files_of_staging() -> None:
    """The specification lists the content and the names of the files."""
    expected = [text if text.endswith("\n") else f"{text}\n" for text in read_code_blocks("16.4")[0].split("---\n")]
    names = re.findall(r"`([a-z-]+\.yaml)`", read_section("16.6"))

    written = {name: data for name, data in bytes_of(reconcile_example()).items() if name.startswith(STAGING)}

    assert [data.decode() for data in written.values()] == expected
    assert sorted(name.rpartition("/")[2] for name in written) == sorted(names)


def find_differences(entry: Any, other: Any, at: str = "") -> dict[str, Any]:
    """Return the value of the second argument at each location with a difference."""
    if isinstance(entry, dict) and isinstance(other, dict) and entry.keys() == other.keys():
        return {
            place: value
            for key in entry
            for place, value in find_differences(entry[key], other[key], f"{at}/{key}").items()
        }
    if isinstance(entry, list) and isinstance(other, list) and len(entry) == len(other):
        pairs = enumerate(zip(entry, other, strict=True))
        return {
            place: value for index, (a, b) in pairs for place, value in find_differences(a, b, f"{at}/{index}").items()
        }
    return {} if entry == other else {at: other}


def read_table_rows(number: str) -> list[list[str]]:
    """Return the rows of the table in a section without its header."""
    lines = [line for line in read_section(number).splitlines() if line.startswith("|")][2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_differences_of_production() -> None:
    """The specification lists the differences in a table. One of them is an additional list item."""
    result = reconcile_example()
    staging, production = read_objects(result, STAGING), read_objects(result, PRODUCTION)

    changed = {file: find_differences(staging[file], production[file]) for file in staging}
    listed = 0
    subject = ""
    for item, place, value in read_table_rows("16.5"):
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


def test_order_of_addons() -> None:
    fields: Any = find_status(reconcile_example(), "EnvBinding", "orders-prod").fields

    assert fields["addons"] == ["net-guard/default", "scratch-volume/buffer", "log-shipper/default"]


def set_overrides(**overrides: Any) -> Callable[[Objects], None]:
    def change(objects: Objects) -> None:
        objects["EnvBinding/orders-prod"]["spec"]["overrides"] = overrides

    return change


def set_buffer_overrides(**fields: Any) -> Callable[[Objects], None]:
    def change(objects: Objects) -> None:
        objects["EnvBinding/orders-prod"]["spec"]["platformAddonOverrides"]["scratchVolume"]["buffer"] = fields

    return change


@pytest.mark.parametrize(
    ("change", "code", "message"),
    [
        pytest.param(set_overrides(pullPolicy="Always"), "NotOverridable", "declared in parameters", id="parameter"),
        pytest.param(
            set_overrides(replicas=50), "SchemaValidation", "replicas must be at most 20, but is 50", id="above-maximum"
        ),
        pytest.param(
            set_buffer_overrides(mountPath="/x"),
            "NotOverridable",
            "mountPath is declared in parameters",
            id="addon-parameter",
        ),
    ],
)
def test_invalid_override_stops_only_production(change: Callable[[Objects], None], code: str, message: str) -> None:
    result = reconcile_example(change)

    assert list_codes(result) == [code]
    assert message in find_finding(result, code).message
    assert [variant.target.package for variant in result.variants] == ["components/staging/shop/orders"]


def test_null_override_removes_the_component_value() -> None:
    result = reconcile_example(set_overrides(replicas=None))

    assert read_objects(result, PRODUCTION)["deployment-orders.yaml"]["spec"]["replicas"] == 1
    assert read_objects(result, STAGING)["deployment-orders.yaml"]["spec"]["replicas"] == 2


@pytest.mark.parametrize("shipper", [None, {"enabled": False}], ids=["absent", "not-enabled"])
def test_inactive_developer_addon_is_not_rendered(shipper: Any) -> None:
    def change(objects: Objects) -> None:
        spec = objects["EdgeApi/orders"]["spec"]
        if shipper is None:
            del spec["logShipper"]
        else:
            spec["logShipper"] |= shipper

    result = reconcile_example(change)

    assert list_codes(result) == ["OverrideUnused"]
    for place in (STAGING, PRODUCTION):
        output = read_objects(result, place)
        pod = output["deployment-orders.yaml"]["spec"]["template"]
        assert [container["name"] for container in pod["spec"]["containers"]] == ["main"]
        assert pod["metadata"]["annotations"] == {"guard.platform/mode": "strict"}
        assert "configmap-orders-log-shipper.yaml" not in output
    warned = [item.location.object for item in list_findings(result) if item.code == "OverrideUnused"]
    assert warned == ["EnvBinding/shop/orders-prod"]


def test_developer_addon_with_default_values() -> None:
    def change(objects: Objects) -> None:
        objects["EdgeApi/orders"]["spec"]["logShipper"] = {}

    result = reconcile_example(change)

    assert list_codes(result) == []
    output = read_objects(result, STAGING)
    pod = output["deployment-orders.yaml"]["spec"]["template"]["spec"]
    sidecar = pod["containers"][1]
    assert sidecar["name"] == "log-shipper"
    assert "volumeMounts" not in sidecar
    assert [volume["name"] for volume in pod["volumes"]] == ["buffer"]
    assert "configmap-orders-log-shipper.yaml" not in output


def test_unknown_field_stops_all_environments() -> None:
    def change(objects: Objects) -> None:
        objects["EdgeApi/orders"]["spec"]["bogus"] = 1

    result = reconcile_example(change)

    assert list_codes(result) == ["UnknownField"]
    assert "spec.bogus is an unknown" in find_finding(result, "UnknownField").message
    assert result.variants == ()


def test_type_without_the_required_addon_is_not_ready() -> None:
    def change(objects: Objects) -> None:
        objects["ComponentType/edge-api"]["spec"]["platformAddons"].pop(0)

    result = reconcile_example(change)

    assert list_codes(result) == ["AddonRequirementMissing", "ComponentTypeNotReady"]
    message = find_finding(result, "AddonRequirementMissing").message
    assert 'log-shipper" requires the addon "scratch-volume' in message
    assert result.variants == ()


def test_number_of_variations() -> None:
    assert len(read_table_rows("16.7")) == 8


def test_addon_keys() -> None:
    names = [key.partition("/")[2] for key in copy_inputs() if key.startswith("Addon/")]

    assert list(map(to_camel_case, names)) == ["scratchVolume", "netGuard", "logShipper"]
