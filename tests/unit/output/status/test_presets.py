"""Tests of the status of presets, which depends on their Plugins."""

from dataclasses import replace

import pytest

from reconciler.controllers.results import ConfigStatus, ControllerResult, PackageOwner, Variant
from reconciler.krm.objects import Condition
from reconciler.planning.model.outcomes import PackageOutcome
from tests.unit.output.builders import (
    build_blocked,
    build_draft,
    build_fleet_plan,
    build_key,
    build_target_plan,
    build_unchanged,
    build_variant,
    list_object_statuses,
)

GROUP = "greenhouse.sap"
PRESET = build_key("PluginPreset", "logs", "org", GROUP)
PLUGIN = PackageOwner(build_key("Plugin", "logs-eu-1", "org", GROUP), f"{GROUP}/v1alpha1", PRESET)
WANTED: Variant = replace(build_variant(), owner=PLUGIN)
KNOWN = (Condition("PluginFailed", "False", "NoneFailed"), Condition("ClusterListEmpty", "False", "ClustersMatch"))
ROWS = {"pluginStatuses": [{"pluginName": "logs-eu-1", "clusterName": "eu-1", "state": "", "codes": []}]}


@pytest.mark.parametrize(
    ("outcome", "state", "ready"),
    [
        pytest.param(build_draft({}, {"a": "x"}, desired_variant=WANTED), "Draft", "False", id="drafted-now"),
        pytest.param(build_unchanged(WANTED, "drafted"), "Draft", "False", id="drafted-before"),
        pytest.param(build_unchanged(WANTED, "declined"), "Draft", "False", id="declined"),
        pytest.param(build_unchanged(WANTED), "UpToDate", "True", id="published"),
        pytest.param(build_unchanged(WANTED, "published with edits"), "UpToDate", "True", id="published-with-edits"),
        pytest.param(build_blocked(WANTED), "Failed", "False", id="blocked"),
    ],
)
def test_preset_is_ready_when_its_plugins_are_published(outcome: PackageOutcome, state: str, ready: str) -> None:
    status = ConfigStatus(PRESET, f"{GROUP}/v1alpha1", KNOWN, ROWS, children=(PLUGIN.key,))
    plan = build_fleet_plan(
        build_target_plan(outcome), controller_result=ControllerResult((WANTED,), statuses=(status,))
    )

    object_status = list_object_statuses(plan)[PRESET]

    assert [row["state"] for row in object_status.fields["pluginStatuses"]] == [state]
    assert {condition.type: condition.status for condition in object_status.conditions}["Ready"] == ready
    assert "desired" not in object_status.fields
