"""What a propagation policy is told of itself: where it placed how much, or why it did not (design 10.27)."""

from __future__ import annotations

from collections.abc import Collection

from reconciler.krm.conditions import Condition
from reconciler.krm.findings import Finding
from reconciler.krm.messages import join_messages
from reconciler.rules.codes import DELETION_HELD
from reconciler.rules.variant import ConfigStatus
from reconciler.snapshot.catalog import ConfigObject

_LISTED = 20


def invalid_status(one: ConfigObject, fault: Finding) -> ConfigStatus:
    """Return the status of a policy that cannot be read; the first of its faults is told."""
    return ConfigStatus(one.key, one.api_version, (Condition("Ready", "False", fault.code, fault.message),))


def placed_status(one: ConfigObject, clusters: Collection[str], resources: int, held: Collection[str]) -> ConfigStatus:
    """Return the status of a sound policy: the clusters that it chooses, and how many resources it places."""
    fields = {"clusters": sorted(clusters)[:_LISTED], "clusterCount": len(clusters), "resources": resources}
    message = f"places {resources} resource(s) on {len(clusters)} cluster(s)"
    ready = Condition("Ready", "True", "Placed", message)
    if held:
        ready = Condition("Ready", "False", DELETION_HELD.name, join_messages(held))
    return ConfigStatus(one.key, one.api_version, (ready,), fields)
