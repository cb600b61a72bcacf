"""Worlds with Kafkas and their pools, which lie together or apart: what pools inherit crosses packages."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from reconciler.krm.yaml import parse_yaml
from tests.support.policies import PLACED_ON, publish
from tests.support.world import CLUSTERS, World, catalog, package, repository, variant

MARK, MODE = "reconciler.dev/materialised-template", "reconciler.dev/template-mode"
KAFKA = "kafka/kafka.yaml"
LABELLED = {"metadata": {"labels": {"tier": "streaming"}}}
URGENT = {"priorityClassName": "urgent"}


def kafka(
    template: Mapping[str, Any] | None, name: str = "orders", namespace: str = "shop", on: str = "", **spec: Any
) -> str:
    """Return a Kafka, without a template where that is None; it is placed on clusters that `on` names."""
    metadata = {"name": name, "namespace": namespace, **({"annotations": {PLACED_ON: on}} if on else {})}
    own = {**spec, **({} if template is None else {"template": template})}
    return _written("Kafka", metadata, {"kafka": own})


def pool(
    name: str, template: Mapping[str, Any] | None = None, of: str = "orders", namespace: str = "shop", on: str = "",
    **annotations: str,
) -> str:  # fmt: skip
    """Return a pool of a Kafka, which may be both broker and controller."""
    mapping = {**annotations, **({PLACED_ON: on} if on else {})}
    metadata = {"name": name, "namespace": namespace, "labels": {"strimzi.io/cluster": of}}
    metadata |= {"annotations": mapping} if mapping else {}
    spec = {"replicas": 3, "roles": ["controller", "broker"], "storage": {"type": "ephemeral"}}
    return _written("KafkaNodePool", metadata, spec | ({} if template is None else {"template": template}))


def _written(kind: str, metadata: object, spec: Mapping[str, Any]) -> str:
    lines = [f"apiVersion: kafka.strimzi.io/v1\nkind: {kind}\nmetadata: {json.dumps(metadata)}\nspec:\n"]
    return "".join([*lines, *(f"  {name}: {json.dumps(value)}\n" for name, value in spec.items())])


def bundle(name: str, **files: str) -> dict[str, str]:
    """Return an upstream package of these files, by stem."""
    return {"Kptfile": package(name)["Kptfile"], **{f"{stem}.yaml": text for stem, text in files.items()}}


def template(world: World, branch: str, path: str) -> Any:
    """Return the template of the pool in a file of a branch; None where it has none."""
    return parse_yaml(world.text(branch, path)).documents[0].data["spec"].get("template")


def is_marked(world: World, branch: str, path: str) -> bool:
    """Return whether the pool in a file of a branch says that its template was merged."""
    return MARK in world.text(branch, path)


def template_world(folder: Path, **settings: object) -> World:
    """Return two clusters with a Kafka in one package and two pools in others, of which one has a pod of its own.

    Lisbon has `metrics` as well, which has nothing to do with them.
    """
    world = World.new(folder, **settings)
    world.release("kafka", "v1", bundle("kafka", kafka=kafka({"podSet": LABELLED, "pod": URGENT})))
    world.release("brokers", "v1", bundle("brokers", pool=pool("brokers")))
    world.release("readers", "v1", bundle("readers", pool=pool("readers", {"pod": {}})))
    world.release("metrics", "v1", package("metrics"))
    world.write(
        {
            "catalog.yaml": catalog(),
            "metrics.yaml": variant("metrics-lisbon", "lisbon", "metrics"),
            **{f"clusters/{cluster}.yaml": repository(cluster) for cluster in CLUSTERS},
            **{
                f"{name}/{cluster}.yaml": variant(f"{name}-{cluster}", cluster, name)
                for name in ("kafka", "brokers", "readers")
                for cluster in CLUSTERS
            },
        }
    )
    return world


def templates_drafted(folder: Path) -> World:
    """Return the world with everything drafted, nothing published."""
    world = template_world(folder)
    world.sync()
    return world


def templates_published(folder: Path) -> World:
    """Return the world with everything published."""
    world = templates_drafted(folder)
    publish(world)
    return world
