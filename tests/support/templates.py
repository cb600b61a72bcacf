"""Test fleets with Kafkas and node pools in the same or in different packages."""

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
    """Return a Kafka, without a template if that is None. `on` lists its clusters."""
    metadata = {"name": name, "namespace": namespace, **({"annotations": {PLACED_ON: on}} if on else {})}
    own = {**spec, **({} if template is None else {"template": template})}
    return _format_object("Kafka", metadata, {"kafka": own})


def pool(
    name: str, template: Mapping[str, Any] | None = None, of: str = "orders", namespace: str = "shop", on: str = "",
    **annotations: str,
) -> str:  # fmt: skip
    """Return a node pool of a Kafka with the roles broker, controller or both."""
    mapping = {**annotations, **({PLACED_ON: on} if on else {})}
    metadata = {"name": name, "namespace": namespace, "labels": {"strimzi.io/cluster": of}}
    metadata |= {"annotations": mapping} if mapping else {}
    spec = {"replicas": 3, "roles": ["controller", "broker"], "storage": {"type": "ephemeral"}}
    return _format_object("KafkaNodePool", metadata, spec | ({} if template is None else {"template": template}))


def _format_object(kind: str, metadata: object, spec: Mapping[str, Any]) -> str:
    lines = [f"apiVersion: kafka.strimzi.io/v1\nkind: {kind}\nmetadata: {json.dumps(metadata)}\nspec:\n"]
    return "".join([*lines, *(f"  {name}: {json.dumps(value)}\n" for name, value in spec.items())])


def bundle(name: str, **files: str) -> dict[str, str]:
    """Return an upstream package with these files. Keys are file names without suffix."""
    return {"Kptfile": package(name)["Kptfile"], **{f"{stem}.yaml": text for stem, text in files.items()}}


def template(world: World, branch: str, path: str) -> Any:
    """Return the template of the node pool in a file of a branch, or None."""
    return parse_yaml(world.text(branch, path)).documents[0].data["spec"].get("template")


def is_marked(world: World, branch: str, path: str) -> bool:
    """Return whether the node pool in a file of a branch has the annotation of a merged template."""
    return MARK in world.text(branch, path)


def template_world(folder: Path, **settings: object) -> World:
    """Return two clusters with a Kafka in one package and two node pools in others. One pool has its own pod template.

    Lisbon also has `metrics`, which contains no Kafka resources.
    """
    world = World.create(folder, **settings)
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
    """Return the fleet with a draft for each package. Nothing is published."""
    world = template_world(folder)
    world.sync()
    return world


def templates_published(folder: Path) -> World:
    """Return the fleet with all packages published."""
    world = templates_drafted(folder)
    publish(world)
    return world
