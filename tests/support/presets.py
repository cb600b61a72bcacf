"""Worlds with plugin presets: Plugins that are made for clusters, and all that changes their options on the way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.support.policies import publish, written
from tests.support.world import World, repository

GREENHOUSE = "greenhouse.sap/v1alpha1"
TEAM = "acme"
CLUSTERS = ("berlin", "lisbon", "oslo")
TIERS = {"berlin": "edge", "lisbon": "core", "oslo": "edge"}
PRESET_LABEL = "greenhouse.sap/pluginpreset"
Options = Sequence[Mapping[str, object]]


def option(name: str, value: object) -> dict[str, object]:
    """Return an option as presets and overrides give it."""
    return {"name": name, "value": value}


def from_secret(name: str, secret: str, key: str) -> dict[str, object]:
    """Return an option that is kept in a Secret."""
    return {"name": name, "valueFrom": {"secret": {"name": secret, "key": key}}}


def definition(name: str = "logshipper", version: str = "2.4.0", **defaults: object) -> str:
    """Return a plugin definition of all organizations; `defaults` are those of the options size and storage."""
    chart = {"name": f"{name}-chart", "repository": "oci://charts.example.test/obs", "version": "1.9.3"}
    options = [
        {"name": "buffer.size", "type": "int", "required": False, "default": defaults.get("size", 64)},
        {"name": "storage", "type": "string", "required": False, "default": defaults.get("storage", "standard")},
        {"name": "token", "type": "secret", "required": False},
        {"name": "endpoint", "type": "string", "required": True},
    ]
    spec = {"version": version, "helmChart": chart, "options": options}
    return written("ClusterPluginDefinition", name, spec, api=GREENHOUSE)


def cluster(name: str, tier: str = "", overrides: Options = (), **labels: str) -> str:
    """Return a cluster of the organization; it has no tier where that is "-"."""
    mapping = {**labels, "tier": tier or TIERS.get(name, "core"), "metadata.greenhouse.sap/region": f"{name}-1"}
    spec = {"accessMode": "direct", **({"pluginOverrides": list(overrides)} if overrides else {})}
    return written("Cluster", name, spec, TEAM, GREENHOUSE, labels=mapping)


def preset(
    name: str = "logs",
    options: Options = (),
    overrides: Mapping[str, Options] | None = None,
    tiers: Sequence[str] = ("edge", "core"),
    marks: Mapping[str, Mapping[str, str]] | None = None,
    **spec: Any,
) -> str:
    """Return a preset of `logshipper`; `overrides` are by cluster, `marks` its labels and annotations."""
    endpoint = {"name": "endpoint", "expression": "https://${global.greenhouse.metadata.region}.example.test"}
    of_clusters = [{"clusterName": item, "overrides": list(entry)} for item, entry in (overrides or {}).items()]
    whole = {
        "plugin": {
            "pluginDefinitionRef": {"kind": "ClusterPluginDefinition", "name": "logshipper"},
            "optionValues": [endpoint, *options],
            **spec.pop("plugin", {}),
        },
        "clusterSelector": {"matchExpressions": [{"key": "tier", "operator": "In", "values": list(tiers)}]},
        "clusterOptionOverrides": of_clusters,
        **spec,
    }
    return written("PluginPreset", name, whole, TEAM, GREENHOUSE, **(marks or {}))


def override(name: str, options: Options, **spec: Any) -> str:
    """Return a PluginOverride of the organization."""
    return written("PluginOverride", name, {**spec, "overrides": list(options)}, TEAM, GREENHOUSE)


def organization(*options: Mapping[str, object]) -> str:
    """Return the organization, with what it says of all its Plugins."""
    return written("Organization", TEAM, {"pluginOverrides": list(options)}, api=GREENHOUSE)


def preset_world(folder: Path, **settings: object) -> World:
    """Return three clusters, Oslo without a Repository, with `logs` on all of them and `metrics` where the edge is."""
    world = World.new(folder, **settings)
    world.write(
        {
            **{f"repositories/{item}.yaml": repository(item) for item in CLUSTERS[:2]},
            **{f"clusters/{item}.yaml": cluster(item) for item in CLUSTERS},
            "acme.yaml": organization(option("storage", "fast")),
            "logshipper.yaml": definition(),
            "presets/logs.yaml": preset(
                options=[option("buffer.size", 128), from_secret("token", "logs", "token")],
                overrides={"berlin": [option("buffer.size", 32)]},
            ),
            "presets/metrics.yaml": preset("metrics", tiers=["edge"], plugin={"releaseName": "metrics"}),
            "overrides/edge.yaml": override("edge", [option("storage", "zfs")], clusterSelector=tier("edge")),
        }
    )
    return world


def tier(name: str) -> dict[str, object]:
    """Return the choice of the clusters of a tier."""
    return {"labelSelector": {"matchLabels": {"tier": name}}}


def presets_drafted(folder: Path) -> World:
    """Return the world with everything drafted, nothing published."""
    world = preset_world(folder)
    world.sync()
    return world


def presets_published(folder: Path) -> World:
    """Return the world with everything published."""
    world = presets_drafted(folder)
    publish(world, *CLUSTERS)
    return world
