"""Tests that the committed data is equal to the output of the script for the published schemas."""

from __future__ import annotations

import importlib.util
import json
from importlib import metadata, resources
from pathlib import Path
from types import ModuleType

import pytest

from reconciler.krm.schema import find_kind_scope

SCRIPT = Path(__file__).resolve().parents[4] / "scripts/make_schema_data.py"
COMMITTED = resources.files("reconciler.krm.schema").joinpath("merge_schemas.json").read_text()
FIELD_NAMES = resources.files("reconciler.krm.schema").joinpath("field_names.json").read_text()
# Subresources, and kinds that are too new for a confirmed scope.
WITHOUT_A_SCOPE = {
    ("authentication.k8s.io", "TokenRequest"),
    ("autoscaling", "Scale"),
    ("lifecycle.k8s.io", "Eviction"),
    ("lifecycle.k8s.io", "EvictionRequest"),
    ("resource.k8s.io", "ResourcePoolStatusRequest"),
}


def load_script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_schema_data", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_committed_data_is_the_output_of_the_script() -> None:
    pytest.importorskip("kubernetes_validate", reason="the schemas are an extra: k8s-schemas")
    source = json.loads(COMMITTED)["source"]
    if source != f"kubernetes-validate {metadata.version('kubernetes-validate')}":
        pytest.skip(f"the data was made from {source}")
    make = load_script()

    assert make.text(make.make()) == COMMITTED


def test_committed_field_names_are_the_output_of_the_script() -> None:
    pytest.importorskip("kubernetes_validate", reason="the schemas are an extra: k8s-schemas")
    source = json.loads(FIELD_NAMES)["source"]
    if source != f"kubernetes-validate {metadata.version('kubernetes-validate')}":
        pytest.skip(f"the data was made from {source}")
    make = load_script()

    assert make.text(make.make_field_names()) == FIELD_NAMES


def test_every_definition_exists_and_is_reachable_from_a_kind() -> None:
    data = json.loads(COMMITTED)
    fields = [shape for shapes in data["fields"].values() for shape in shapes.values()]
    named = {shape if isinstance(shape, str) else shape.get("items") for shape in fields} - {None}
    kinds = {name for names in data["kinds"].values() for name in names.values()}

    assert named | kinds == set(data["fields"])


def test_every_kind_of_the_data_has_a_scope() -> None:
    kinds = {
        (api_version.rpartition("/")[0], kind)
        for api_version, names in json.loads(COMMITTED)["kinds"].items()
        for kind in names
    }

    assert {kind for kind in kinds if find_kind_scope(*kind) is None} == WITHOUT_A_SCOPE


def test_data_is_small() -> None:
    assert len(COMMITTED) < 32_000
