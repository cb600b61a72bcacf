"""Tests with the shared cases of presets: exactly the expected Plugins are written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from reconciler.controllers.deletion_guards import PackageLocation
from reconciler.controllers.results import ControllerResult
from reconciler.krm.json_pointer import parse_pointer, resolve_pointer
from reconciler.krm.yaml import emit, parse_yaml
from tests.unit.controllers.plugin_presets.controller_world import (
    FakeBranches,
    list_findings,
    read_plugin,
    run_controller,
)

FOLDER = Path(__file__).resolve().parents[4] / "../shared/cases/presets"
CASES = sorted(FOLDER.glob("*.yaml"))


def read_branches(case: Any) -> FakeBranches:
    """Return the branches of a case. No Plugin on them has an owner."""
    plugins: dict[PackageLocation, Any] = {}
    for item in case["repos"].get("fleet", ()):
        for path, text in item["files"].items():
            cluster, package = item["branch"].removeprefix("clusters/"), path.removesuffix("/plugin.yaml")
            plugins[cluster, package] = parse_yaml(text.encode()).documents[0].data
    return FakeBranches({}, plugins)


def format_plugins(result: ControllerResult, branches: FakeBranches) -> dict[str, str]:
    units = {(variant.target.repository, variant.target.package): variant for variant in result.variants}
    return {
        f"{cluster}/{package}/plugin.yaml": emit(read_plugin(variant, branches.plugins.get((cluster, package))))
        for (cluster, package), variant in units.items()
    }


def list_expected_files(case: Any) -> set[str]:
    """Return the files of the Plugins that the controller must write. Unmanaged Plugins on a branch are not
    included.
    """
    files = {path for path in case["expect"]["files"] if "/plugins/" in path and path.endswith("/plugin.yaml")}
    return {path for path in files if "equalsText" not in str(case["expect"]["files"][path])}


def is_check_passed(text: str, mapping: dict[str, Any]) -> bool:
    """Return whether a Plugin passes a check of a case."""
    if "contains" in mapping:
        return mapping["contains"] in text
    if "notContains" in mapping:
        return mapping["notContains"] not in text
    *above, last = parse_pointer(mapping["path"])
    pointer = resolve_pointer(parse_yaml(text.encode()).documents[0].data, above)
    if mapping.get("absent"):
        return last not in pointer
    return bool(resolve_pointer(pointer, [last]) == mapping["equals"])


@pytest.mark.skipif(not CASES, reason="the shared cases are not beside this project")
@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_expected_plugins_are_written(path: Path) -> None:
    case: Any = parse_yaml(path.read_bytes()).documents[0].data

    result = run_controller(case["config"], read_branches(case))

    texts = format_plugins(result, read_branches(case))
    assert list_expected_files(case) <= texts.keys()
    failed = [
        item
        for file in list_expected_files(case)
        for item in case["expect"]["files"][file]
        if not is_check_passed(texts[file], item)
    ]
    assert failed == []
    assert not [text for absent in case["expect"].get("absent", ()) for text in texts if text.startswith(absent)]
    assert bool([finding for finding in list_findings(result) if finding.severity == "error"]) == bool(
        case["expect"]["exit"]
    )


@pytest.mark.skipif(not CASES, reason="the shared cases are not beside this project")
@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_expected_conditions_are_reported(path: Path) -> None:
    case: Any = parse_yaml(path.read_bytes()).documents[0].data

    result = run_controller(case["config"], read_branches(case))

    for condition in case["expect"].get("conditions", ()):
        kind, namespace, name = condition["object"].split("/")
        (status,) = (
            config_status
            for config_status in result.statuses
            if config_status.key.reference == f"{kind}/{namespace}/{name}"
        )
        (item,) = (entry for entry in status.conditions if entry.type == condition["type"])
        assert item.status == condition["status"]
        assert condition.get("reason", item.reason) == item.reason
        assert condition.get("messageContains", "") in item.message
