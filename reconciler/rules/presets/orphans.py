"""Plugins that are left to people: retained, or labelled by hand (greenhouse 12)."""

from __future__ import annotations

from collections.abc import Collection

from reconciler.krm.identity import ObjectKey
from reconciler.rules.guards import Unit
from reconciler.rules.presets.model import CLUSTER, GROUP, Preset
from reconciler.rules.presets.wishes import Ground
from reconciler.snapshot.catalog import Catalog, ConfigObject

CLUSTER_RETAINS = f"{GROUP}/plugin-deletion"


def is_retained(preset: Preset | None, cluster: ConfigObject | None) -> bool:
    """Tell whether a Plugin stays where it is when it is not wanted any more: its cluster or its preset says so."""
    if cluster and cluster.annotations.get(CLUSTER_RETAINS, "").lower() == "retain":
        return True
    return preset is not None and preset.deletion_policy == "Retain"


def orphans_of(preset: Preset, known: Collection[Unit], ground: Ground, catalog: Catalog) -> tuple[Unit, ...]:
    """Return the published Plugins that carry the label of a preset and are nobody's, or are so from now on.

    `known` are those that somebody wants, and those that are held. The others are told, and stay (greenhouse 12).
    """
    found: list[Unit] = []
    for unit in ground.labelled.get(preset.key, ()):
        own = catalog.get(ObjectKey(GROUP, CLUSTER, preset.key.namespace, unit[0]))
        if unit not in known and (unit not in ground.owned or is_retained(preset, own)):
            found.append(unit)
    return tuple(found)
