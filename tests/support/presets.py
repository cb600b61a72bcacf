"""Test fleets with plugin presets, and with all sources of their option values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.support.policies import format_object, publish
from tests.support.world import World, repository

GREENHOUSE = "greenhouse.sap/v1alpha1"
TEAM = "acme"
CLUSTERS = ("berlin", "lisbon", "oslo")
TIERS = {"berlin": "edge", "lisbon": "core", "oslo": "edge"}
PRESET_LABEL = "greenhouse.sap/pluginpreset"
Options = Sequence[Mapping[str, object]]


def option(name: str, value: object) -> dict[str, object]:
    """Return an option of a preset or an override."""
    return {"name": name, "value": value}


def from_secret(name: str, secret: str, key: str) -> dict[str, object]:
    """Return an option with a reference to a Secret."""
    return {"name": name, "valueFrom": {"secret": {"name": secret, "key": key}}}


def definition(name: str = "logshipper", version: str = "2.4.0", **defaults: object) -> str:
    """Return a ClusterPluginDefinition. `defaults` are the defaults of the options size and storage."""
    chart = {"name": f"{name}-chart", "repository": "oci://charts.example.test/obs", "version": "1.9.3"}
    options = [
        {"name": "buffer.size", "type": "int", "required": False, "default": defaults.get("size", 64)},
        {"name": "storage", "type": "string", "required": False, "default": defaults.get("storage", "standard")},
        {"name": "token", "type": "secret", "required": False},
        {"name": "endpoint", "type": "string", "required": True},
    ]
    spec = {"version": version, "helmChart": chart, "options": options}
    return format_object("ClusterPluginDefinition", name, spec, api=GREENHOUSE)


def cluster(name: str, tier: str = "", overrides: Options = (), **labels: str) -> str:
    """Return a cluster of the organization. The tier "-" means no label."""
    mapping = {**labels, "tier": tier or TIERS.get(name, "core"), "metadata.greenhouse.sap/region": f"{name}-1"}
    spec = {"accessMode": "direct", **({"pluginOverrides": list(overrides)} if overrides else {})}
    return format_object("Cluster", name, spec, TEAM, GREENHOUSE, labels=mapping)


def preset(
    name: str = "logs",
    options: Options = (),
    overrides: Mapping[str, Options] | None = None,
    tiers: Sequence[str] = ("edge", "core"),
    marks: Mapping[str, Mapping[str, str]] | None = None,
    **spec: Any,
) -> str:
    """Return a preset of `logshipper`. `overrides` are by cluster; `marks` are its labels and annotations."""
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
    return format_object("PluginPreset", name, whole, TEAM, GREENHOUSE, **(marks or {}))


def override(name: str, options: Options, **spec: Any) -> str:
    """Return a PluginOverride of the organization."""
    return format_object("PluginOverride", name, {**spec, "overrides": list(options)}, TEAM, GREENHOUSE)


def organization(*options: Mapping[str, object]) -> str:
    """Return the organization with its defaults for all Plugins."""
    return format_object("Organization", TEAM, {"pluginOverrides": list(options)}, api=GREENHOUSE)


def preset_world(folder: Path, **settings: object) -> World:
    """Return three clusters: `logs` is on all of them, `metrics` on the edge clusters. Oslo has no Repository."""
    world = World.create(folder, **settings)
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
            "overrides/edge.yaml": override("edge", [option("storage", "zfs")], clusterSelector=tier_selector("edge")),
        }
    )
    return world


def tier_selector(name: str) -> dict[str, object]:
    """Return a selector for the clusters of a tier."""
    return {"labelSelector": {"matchLabels": {"tier": name}}}


def presets_drafted(folder: Path) -> World:
    """Return the fleet with a draft for each package. Nothing is published."""
    world = preset_world(folder)
    world.sync()
    return world


def presets_published(folder: Path) -> World:
    """Return the fleet with all packages published."""
    world = presets_drafted(folder)
    publish(world, *CLUSTERS)
    return world
