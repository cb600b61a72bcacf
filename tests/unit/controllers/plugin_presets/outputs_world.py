"""A preset whose Plugins have all outputs: what the room makes of it, and what Flux makes of that."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import jsonschema

from reconciler.controllers.plugin_presets.helm_values import build_values
from reconciler.controllers.results import ControllerResult, GeneratedSource, Variant
from reconciler.krm.yaml import parse_yaml
from tests.unit.controllers.plugin_presets.presets_world import EAST, Data, definition, preset, room

# the facts of the CRD in fluxcd/helm-controller v1.4.0 on the fields that are written; others are refused here
SCHEMA = json.loads(Path(__file__).with_name("helm_release_schema.json").read_text())
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
BOTH = frozenset({"values", "helmrelease"})
INJECTED = {"greenhouse": {"clusterName": "east", "organizationName": "acme"}}


def made(options: Iterable[Data], outputs: Iterable[str] = BOTH, **more: Any) -> ControllerResult:
    """Return what the room makes of a preset with these options on one cluster; `more` is more of the preset."""
    return room([EAST, definition(), preset(options, **more)], output_names=frozenset(outputs))


def files_of(variant: Variant) -> dict[str, str]:
    assert isinstance(variant.source, GeneratedSource)
    return {path: file.data.decode() for path, file in variant.source.files.items()}


def file_data(result: ControllerResult, path: str) -> dict[str, Any]:
    """Return a file of the only Plugin, as data."""
    (variant,) = result.variants
    data: dict[str, Any] = parse_yaml(files_of(variant)[path].encode()).documents[0].data
    return data


def release(result: ControllerResult) -> dict[str, Any]:
    """Return the HelmRelease of the only Plugin, which Flux takes."""
    data = file_data(result, "helmrelease.yaml")
    VALIDATOR.validate(data)
    return data


def spec(options: Iterable[Data] = (), **more: Any) -> dict[str, Any]:
    value: dict[str, Any] = release(made(options, **more))["spec"]
    return value


def own_values(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of a HelmRelease without what is injected."""
    values: dict[str, Any] = dict(spec["values"])
    rest = {name: value for name, value in values.pop("global").items() if name != "greenhouse"}
    return {**values, **({"global": rest} if rest else {})}


def targets(spec: Mapping[str, Any]) -> list[str]:
    return [item["targetPath"] for item in spec.get("valuesFrom", ())]


def token(name: str) -> str:
    """Return what a Secret holds in these tests."""
    return f"secret of {name}"


def flux_values(spec: Mapping[str, Any], *, secrets_last: bool) -> dict[str, Any]:
    """Return the values that Flux makes of a HelmRelease: maps are merged, and of all else one side counts.

    Which side that is depends on how deep a value lies, because of how Flux goes about it.
    """
    secrets = build_values((name, token(name)) for name in targets(spec)).values
    written = spec.get("values", {})
    return merged(written, secrets) if secrets_last else merged(secrets, written)


def merged(under: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    result = dict(under)
    for name, value in over.items():
        below = result.get(name)
        result[name] = merged(below, value) if isinstance(below, dict) and isinstance(value, dict) else value
    return result
