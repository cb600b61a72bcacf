"""Test environment of the additional outputs: a preset whose Plugins have all outputs, and the values that Flux
computes from them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from jsonschema_rs import Draft202012Validator

from reconciler.controllers.plugin_presets.helm_values import build_values
from reconciler.controllers.results import ControllerResult, GeneratedSource, Variant
from reconciler.krm.yaml import parse_yaml
from tests.unit.controllers.plugin_presets.controller_world import (
    EAST,
    Data,
    build_definition,
    build_preset,
    run_controller,
)

# Excerpt of the CRD in fluxcd/helm-controller v1.4.0 with the fields that are written. Other fields are refused here.
SCHEMA = json.loads(Path(__file__).with_name("helm_release_schema.json").read_text())
VALIDATOR = Draft202012Validator(SCHEMA)
BOTH = frozenset({"values", "helmrelease"})
INJECTED = {"greenhouse": {"clusterName": "east", "organizationName": "acme"}}


def run_preset(options: Iterable[Data], outputs: Iterable[str] = BOTH, **more: Any) -> ControllerResult:
    """Run the controller on a preset with these options on one cluster. `more` contains other fields of the preset."""
    return run_controller([EAST, build_definition(), build_preset(options, **more)], output_names=frozenset(outputs))


def read_files(variant: Variant) -> dict[str, str]:
    assert isinstance(variant.source, GeneratedSource)
    return {path: file.data.decode() for path, file in variant.source.files.items()}


def read_file_data(result: ControllerResult, path: str) -> dict[str, Any]:
    """Return a file of the only Plugin, as data."""
    (variant,) = result.variants
    data: dict[str, Any] = parse_yaml(read_files(variant)[path].encode()).documents[0].data
    return data


def read_helm_release(result: ControllerResult) -> dict[str, Any]:
    """Return the HelmRelease of the only Plugin, after a check against the CRD of Flux."""
    data = read_file_data(result, "helmrelease.yaml")
    VALIDATOR.validate(data)
    return data


def read_release_spec(options: Iterable[Data] = (), **more: Any) -> dict[str, Any]:
    value: dict[str, Any] = read_helm_release(run_preset(options, **more))["spec"]
    return value


def list_own_values(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of a HelmRelease without the injected options."""
    values: dict[str, Any] = dict(spec["values"])
    rest = {name: value for name, value in values.pop("global").items() if name != "greenhouse"}
    return {**values, **({"global": rest} if rest else {})}


def list_target_paths(spec: Mapping[str, Any]) -> list[str]:
    return [item["targetPath"] for item in spec.get("valuesFrom", ())]


def format_token(name: str) -> str:
    """Return the content of a Secret in these tests."""
    return f"secret of {name}"


def compute_flux_values(spec: Mapping[str, Any], *, secrets_last: bool) -> dict[str, Any]:
    """Return the values that Flux computes from a HelmRelease: maps are merged, and one side wins for all other values.

    Flux merges in two places, so the winning side depends on the depth of a value.
    """
    secrets = build_values((name, format_token(name)) for name in list_target_paths(spec)).values
    written = spec.get("values", {})
    return merge_values(written, secrets) if secrets_last else merge_values(secrets, written)


def merge_values(low: Mapping[str, Any], high: Mapping[str, Any]) -> dict[str, Any]:
    result = dict(low)
    for name, value in high.items():
        low_value = result.get(name)
        result[name] = (
            merge_values(low_value, value) if isinstance(low_value, dict) and isinstance(value, dict) else value
        )
    return result
