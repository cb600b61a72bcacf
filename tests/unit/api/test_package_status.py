"""Tests that the model of PackageStatus files declares every field that the reconciler writes."""

from __future__ import annotations

from pathlib import Path

from reconciler.api.manifest import read_manifest
from reconciler.api.package_status import PackageStatus
from reconciler.krm.yaml import parse_yaml

FIXTURES = Path(__file__).resolve().parents[3] / "fixtures"


def test_expected_status_files_match_the_model() -> None:
    files = [file for file in FIXTURES.rglob(".reconciler/**/*.yaml") if "expected" in file.parts]
    statuses = {file: document.data for file in files for document in parse_yaml(file.read_bytes()).documents}

    assert len(statuses) > 200
    assert {data["kind"] for data in statuses.values()} == {"PackageStatus"}
    assert {
        file: result for file, data in statuses.items() if (result := read_manifest(PackageStatus, data).errors)
    } == {}
