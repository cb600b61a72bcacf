"""Plugins that are left to people: retained, or labelled by hand (greenhouse 12)."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from reconciler.krm.identity import ObjectKey
from reconciler.rules.guards import Unit
from reconciler.rules.presets.model import CLUSTER, GROUP, PRESET_LABEL, Preset
from reconciler.rules.presets.plugin import string_map
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
    for cluster in ground.fleet.of(preset.key.namespace):
        own = catalog.get(ObjectKey(GROUP, CLUSTER, preset.key.namespace, cluster))
        let_go = is_retained(preset, own)
        of_preset = ((cluster, name) for name, one in ground.published(cluster).items() if _is_of(preset, one))
        found += (unit for unit in of_preset if unit not in known and (let_go or unit not in ground.owned))
    return tuple(found)


def _is_of(preset: Preset, plugin: Any) -> bool:
    # whoever has a label has metadata
    return (
        string_map(plugin, "labels").get(PRESET_LABEL) == preset.key.name
        and plugin["metadata"].get("namespace") == preset.key.namespace
    )
