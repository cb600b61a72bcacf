"""What presets are told of their Plugins on the status branch."""

from dataclasses import replace

import pytest

from reconciler.controllers.results import ConfigStatus, ControllerResult, PackageOwner, Variant
from reconciler.krm.objects import Condition
from reconciler.planning.model.outcomes import PackageOutcome
from tests.unit.output.world import blocked, destination_plan, draft, fleet, key, told_of, unchanged, variant

GROUP = "greenhouse.sap"
PRESET = key("PluginPreset", "logs", "org", GROUP)
PLUGIN = PackageOwner(key("Plugin", "logs-eu-1", "org", GROUP), f"{GROUP}/v1alpha1", PRESET)
WANTED: Variant = replace(variant(), owner=PLUGIN)
KNOWN = (Condition("PluginFailed", "False", "NoneFailed"), Condition("ClusterListEmpty", "False", "ClustersMatch"))
ROWS = {"pluginStatuses": [{"pluginName": "logs-eu-1", "clusterName": "eu-1", "state": "", "codes": []}]}


@pytest.mark.parametrize(
    ("outcome", "state", "ready"),
    [
        pytest.param(draft({}, {"a": "x"}, desired_variant=WANTED), "Draft", "False", id="drafted-now"),
        pytest.param(unchanged(WANTED, "drafted"), "Draft", "False", id="drafted-before"),
        pytest.param(unchanged(WANTED, "declined"), "Draft", "False", id="declined"),
        pytest.param(unchanged(WANTED), "UpToDate", "True", id="published"),
        pytest.param(unchanged(WANTED, "published with edits"), "UpToDate", "True", id="published-with-edits"),
        pytest.param(blocked(WANTED), "Failed", "False", id="blocked"),
    ],
)
def test_a_preset_is_ready_when_its_plugins_are_published(outcome: PackageOutcome, state: str, ready: str) -> None:
    status = ConfigStatus(PRESET, f"{GROUP}/v1alpha1", KNOWN, ROWS, children=(PLUGIN.key,))
    plan = fleet(destination_plan(outcome), room=ControllerResult((WANTED,), statuses=(status,)))

    object_status = told_of(plan)[PRESET]

    assert [row["state"] for row in object_status.fields["pluginStatuses"]] == [state]
    assert {condition.type: condition.status for condition in object_status.conditions}["Ready"] == ready
    assert "desired" not in object_status.fields
