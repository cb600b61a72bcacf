"""Test fleets with policies: packages with differences between clusters, and placed resources."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from reconciler.krm.yaml import parse_yaml
from tests.support.world import CLUSTERS, World, catalog, deployment, package, repository, variant

KUBEADMIRAL = "core.kubeadmiral.io/v1alpha1"
ATTACHED = "kubeadmiral.io/cluster-override-policy-name"
PLACED_BY = "kubeadmiral.io/cluster-propagation-policy-name"
PLACED_ON = "reconciler.dev/clusters"
Rules = Sequence[Mapping[str, object]]


def metadata_of(name: str, namespace: str = "", **more: Mapping[str, str]) -> str:
    """Return the metadata of an object. `more` contains its labels and annotations."""
    mapping = {
        "name": name,
        **({"namespace": namespace} if namespace else {}),
        **{key: dict(item) for key, item in more.items()},
    }
    return "metadata: " + json.dumps(mapping) + "\n"


def format_object(
    kind: str, name: str, spec: object, namespace: str = "", api: str = KUBEADMIRAL, **more: Mapping[str, str]
) -> str:
    """Return an object of any kind with its spec in JSON."""
    return f"apiVersion: {api}\nkind: {kind}\n{metadata_of(name, namespace, **more)}spec: {json.dumps(spec)}\n"


def policy(name: str, rules: Rules, namespace: str = "", **spec: Any) -> str:
    """Return an OverridePolicy, or a ClusterOverridePolicy if it has no namespace."""
    kind = "OverridePolicy" if namespace else "ClusterOverridePolicy"
    return format_object(kind, name, {**spec, "overrideRules": list(rules)}, namespace)


def patch(path: str, value: object, clusters: Mapping[str, object] | None = None, **rule: object) -> dict[str, object]:
    """Return a rule that sets one field, on all clusters or on `clusters`."""
    target = {"targetClusters": clusters} if clusters else {}
    return {**rule, **target, "overriders": {"jsonpatch": [{"operator": "set", "path": path, "value": value}]}}


def replicas(count: object, clusters: Mapping[str, object] | None = None, **rule: object) -> dict[str, object]:
    """Return a rule that sets the number of replicas."""
    return patch("/spec/replicas", count, clusters, **rule)


def propagation(name: str, spec: object, namespace: str = "", **annotations: str) -> str:
    """Return a PropagationPolicy, or a ClusterPropagationPolicy if it has no namespace."""
    kind = "PropagationPolicy" if namespace else "ClusterPropagationPolicy"
    return format_object(kind, name, spec, namespace, annotations=annotations)


def labelled(name: str, policy: str, replicas: int = 2, image: str = "1.0") -> str:
    """Return a Deployment with the label of a policy."""
    text = deployment(name, replicas, image)
    return text.replace(f"  name: {name}\n", f"  name: {name}\n  labels: {{{ATTACHED}: {policy}}}\n", 1)


def labelled_package(name: str, policy: str, replicas: int = 2, image: str = "1.0", **more: str) -> dict[str, str]:
    """Return an upstream package whose Deployment has the label of a policy."""
    return {**package(name, 2, "1.0", **more), "deployment.yaml": labelled(name, policy, replicas, image)}


def policy_world(folder: Path, **settings: object) -> World:
    """Return two clusters with `web`, which refers to the policy `site`. Berlin also has `metrics` without a policy."""
    world = World.create(folder, **settings)
    world.release("web", "v1", labelled_package("web", "site"))
    world.release("metrics", "v1", package("metrics"))
    world.write(
        {
            "catalog.yaml": catalog(),
            **{f"clusters/{cluster}.yaml": repository(cluster) for cluster in CLUSTERS},
            **{f"web/{cluster}.yaml": variant(f"web-{cluster}", cluster, "web") for cluster in CLUSTERS},
            "metrics.yaml": variant("metrics-berlin", "berlin", "metrics"),
            "policies/site.yaml": policy("site", [replicas(5, {"clusters": ["berlin"]})]),
        }
    )
    return world


def policies_drafted(folder: Path) -> World:
    """Return the fleet with a draft for each package. Nothing is published."""
    world = policy_world(folder)
    world.sync()
    return world


def policies_published(folder: Path) -> World:
    """Return the fleet with all packages published."""
    world = policies_drafted(folder)
    publish(world)
    return world


def ready_reason(world: World, path: str, namespace: str = "_cluster") -> str:
    """Return the reason of an object's Ready condition on the status branch. `path` is its kind and name."""
    text = world.text("reconciler/status", f"objects/{namespace}/{path}.yaml")
    conditions: list[dict[str, str]] = parse_yaml(text).documents[0].data["status"]["conditions"]
    return {condition["type"]: condition["reason"] for condition in conditions}["Ready"]


def publish(world: World, *clusters: str) -> None:
    """Merge the drafts of clusters, by default all, and run passes until nothing changes."""
    for item in clusters or CLUSTERS:
        if world.head(f"drafts/{item}"):
            world.merge(item, "squash")
    world.sync_until_unchanged()


def resource(
    kind: str, name: str, namespace: str = "shop", on: str = "", by: str = "", adopt: bool = False, **data: str
) -> str:
    """Return a resource with its placement: `on` lists clusters by annotation, `by` names a
    ClusterPropagationPolicy.
    """
    annotations = {**({PLACED_ON: on} if on else {}), **({"reconciler.dev/adopt": "true"} if adopt else {})}
    marks = {**({"labels": {PLACED_BY: by}} if by else {}), **({"annotations": annotations} if annotations else {})}
    lines = "".join(f"  {key}: {value}  # as agreed\n" for key, value in data.items())
    return f"apiVersion: v1\nkind: {kind}\n{metadata_of(name, namespace, **marks)}" + (
        f"data:\n{lines}" if lines else ""
    )


def placement_world(folder: Path, **settings: object) -> World:
    """Return two clusters: `limits` and the namespace are on both, a policy selects the clusters of `banner`."""
    world = World.create(folder, **settings)
    world.write(
        {
            **{f"clusters/{cluster}.yaml": repository(cluster) for cluster in CLUSTERS},
            "placed/limits.yaml": resource("ConfigMap", "limits", on="berlin, lisbon", cpu="2", memory="4Gi"),
            "placed/banner.yaml": resource("ConfigMap", "banner", by="north", text="hello"),
            "placed/namespace.yaml": resource("Namespace", "shop", namespace="", on="*"),
            "policies/north.yaml": propagation("north", {"clusterSelector": {"region": "north"}}),
        }
    )
    return world


def placements_drafted(folder: Path) -> World:
    """Return the fleet with a draft for each package. Nothing is published."""
    world = placement_world(folder)
    world.sync()
    return world


def placements_published(folder: Path) -> World:
    """Return the fleet with all packages published."""
    world = placements_drafted(folder)
    publish(world)
    return world


def federated_cluster(name: str, **labels: str) -> str:
    """Return a cluster of KubeAdmiral."""
    return format_object("FederatedCluster", name, {}, labels=labels)


def greenhouse_cluster(name: str, **labels: str) -> str:
    """Return a cluster of Greenhouse."""
    return format_object("Cluster", name, {}, namespace="team", api="greenhouse.sap/v1alpha1", labels=labels)


def world_with_missing_repositories(folder: Path, **settings: object) -> World:
    """Return Oslo and Rome, which have no Repository, and Berlin, which has two Cluster objects."""
    world = World.create(folder, **settings)
    world.write(
        {
            "clusters/oslo.yaml": federated_cluster("oslo", region="north"),
            "clusters/rome.yaml": greenhouse_cluster("rome", region="south"),
            "clusters/berlin.yaml": repository("berlin"),
            "clusters/federated-berlin.yaml": federated_cluster("berlin", ring="early"),
            "placed/limits.yaml": resource("ConfigMap", "limits", on="*", cpu="two"),
            "placed/banner.yaml": resource("ConfigMap", "banner", by="early-north", text="hello"),
            "policies/early.yaml": propagation(
                "early-north", {"clusterSelector": {"region": "north", "ring": "early"}}
            ),
            "policies/south.yaml": policy(
                "south",
                [patch("/data/cpu", "three", {"clusterSelector": {"region": "south"}})],
                resourceSelectors=[{"apiVersion": "v1", "kind": "ConfigMap", "name": "limits"}],
            ),
        }
    )
    return world


RINGS = {"amsterdam": "canary", "berlin": "early", "lisbon": "late"}
HOUR = 3_600


def rollout_rule(count: object, soak: str = "1h") -> dict[str, object]:
    """Return a rule that sets replicas, first on the canary ring, then on the early ring, then on all others."""
    waves = [{"clusterSelector": {"ring": "canary"}}, {"clusterSelector": {"ring": "early"}}]
    return replicas(count, name="count", rollout={"waves": waves, **({"soak": soak} if soak else {})})


def ring_of(cluster: str, ring: str) -> str:
    """Return the Repository of a cluster, with its ring as label."""
    return repository(cluster).replace("labels: {", f"labels: {{ring: {ring}, ")


def rollout_world(folder: Path, **settings: object) -> World:
    """Return one cluster for each of three rings with `web` published. Its policy has no rules."""
    world = World.create(folder, **settings)
    world.now = 1_200_000_000
    world.release("web", "v1", labelled_package("web", "site"))
    world.write(
        {
            "catalog.yaml": catalog(),
            **{f"clusters/{item}.yaml": ring_of(item, ring) for item, ring in RINGS.items()},
            **{f"web/{ring}.yaml": variant(f"web-{ring}", ring, "web") for ring in RINGS},
            "policies/site.yaml": policy("site", []),
        }
    )
    world.sync()
    publish(world, *RINGS)
    return world
