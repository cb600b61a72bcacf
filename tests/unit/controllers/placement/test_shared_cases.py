"""Tests with the shared cases of overrides: exactly the expected files are placed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from reconciler.krm.yaml import parse_yaml
from tests.unit.controllers.placement.controller_world import list_files, run_controller

FOLDER = Path(__file__).resolve().parents[4] / "../shared/cases/overrides"
CASES = sorted(FOLDER.glob("*.yaml"))


@pytest.mark.skipif(not CASES, reason="the shared cases are not beside this project")
@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_expected_files_are_placed(path: Path) -> None:
    case: Any = parse_yaml(path.read_bytes()).documents[0].data

    result = run_controller(case["config"], fleet={})

    values = {f"{cluster}/resources/{file}" for cluster, files in list_files(result).items() for file in files}
    assert values == {file for file in case["expect"].get("files", {}) if "/resources/" in file}
    assert result.findings == ()
