"""Tests with all small cases of the shared table."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from reconciler.controllers.override_policies.image import parse_reference
from reconciler.krm.json_pointer import format_pointer
from tests.unit.controllers.override_policies.override_world import apply_overriders, is_same_json

TABLE = Path(__file__).resolve().parents[4] / "../shared/cases/overrides/table.json"
pytestmark = pytest.mark.skipif(not TABLE.is_file(), reason="the shared cases are not on this machine")
MARKS = ("reconciler.dev/clusters", "internal.kpt.dev/upstream-identifier")


def read_table() -> dict[str, Any]:
    loads: dict[str, Any] = json.loads(TABLE.read_text()) if TABLE.is_file() else {}
    return loads or {"override": [], "imageParse": [], "jsonPatch": {"cases": []}}


def build_parameters(rows: list[dict[str, Any]], field: str) -> list[Any]:
    return [pytest.param(row, id=f"{number}-{row[field][:60]}") for number, row in enumerate(rows)]


def check(value: Any, expected: Any) -> None:
    if "error" in expected:
        assert isinstance(value, list)
        assert set(value) <= {expected["error"], "PolicyInvalid"}
        assert value
    else:
        assert is_same_json(value, expected["result"])


@pytest.mark.parametrize("row", build_parameters(read_table()["override"], "name"))
def test_override(row: dict[str, Any]) -> None:
    expected = row["upstream"] if row["expect"] == "same" else row["expect"]

    check(apply_overriders(row["object"], *row["rules"]), expected)


@pytest.mark.parametrize("row", build_parameters(read_table()["imageParse"], "image"))
def test_image(row: dict[str, Any]) -> None:
    image_reference = parse_reference(row["image"])

    assert ("error" in row) == (image_reference is None)
    if image_reference:
        assert vars(image_reference) == {name: row[name] for name in ("registry", "repository", "tag", "digest")}
        assert str(image_reference) == row["image"]


@pytest.mark.parametrize("row", build_parameters(read_table()["jsonPatch"]["cases"], "name"))
def test_patch(row: dict[str, Any]) -> None:
    document = {"apiVersion": "cases.example/v1", "kind": "Case", "metadata": {"name": "one"}}
    spec = read_table()["jsonPatch"]["document"]
    operations = [_below_spec(operation) for operation in row["ops"]]
    expected = row["expect"]
    if "result" in expected:
        expected = {"result": {**document, "spec": expected["result"]}}

    check(apply_overriders({**document, "spec": spec}, {"jsonpatch": operations}), expected)


def _below_spec(operation: dict[str, Any]) -> dict[str, Any]:
    path = operation["path"]
    moved = format_pointer(("spec",)) + path if path.startswith("/") else path
    return {"operator": operation["op"], "path": moved, **{k: v for k, v in operation.items() if k == "value"}}
