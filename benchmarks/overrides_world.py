"""The fleet of the override benchmark: resources on many clusters with two policies each, in Git and on disk."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.fleet_world import repository
from reconciler.git.local_repository import create_repository
from reconciler.git.mirror import Mirror
from reconciler.git.object_writer import NewCommit, PutFile
from reconciler.git.push_outcomes import PushUnit, RefUpdate

SECONDS = 1_767_225_600
SHARED = 5
_ATTACHED = (
    "    kubeadmiral.io/cluster-override-policy-name: fleet-{shared}\n"
    "    kubeadmiral.io/override-policy-name: shop-{number:02}\n"
)


@dataclass(frozen=True)
class Sizes:
    """Size of the fleet. Half of the resources are placed directly, half are in one package.

    A rule of every policy selects the first `early` clusters. Without `policies` no resource refers to a policy.
    """

    clusters: int
    resources: int
    early: int
    regions: int
    policies: bool = True

    @property
    def placed(self) -> range:
        """The numbers of the resources that a propagation policy places."""
        return range(self.resources // 2)

    @property
    def packaged(self) -> range:
        """The numbers of the resources in the package."""
        return range(self.resources // 2, self.resources)


def build_world(folder: Path, sizes: Sizes) -> None:
    """Build the fleet in a new folder: `config/`, `catalog.git`, and `fleet.git` with a branch for each cluster."""
    config = folder / "config"
    config.mkdir(parents=True)
    create_repository(folder / "fleet.git")
    _build_catalog(folder, sizes)
    (config / "catalog.yaml").write_text(repository("catalog", "./catalog.git", "deployment: false", "main"))
    (config / "clusters.yaml").write_text("---\n".join(cluster(sizes, index) for index in range(sizes.clusters)))
    (config / "shop.yaml").write_text("---\n".join(deployment(sizes, index, PLACED_BY) for index in sizes.placed))
    (config / "placement.yaml").write_text(PLACEMENT)
    (config / "set.yaml").write_text(SET)
    for name, text in _policies(sizes) if sizes.policies else ():
        (config / f"{name}.yaml").write_text(text)


def _build_catalog(folder: Path, sizes: Sizes) -> None:
    create_repository(folder / "catalog.git")
    mirror = Mirror.open(folder / "cache", str(folder / "catalog.git"))
    files = {f"part-{index:02}.yaml": deployment(sizes, index) for index in sizes.packaged} | {"Kptfile": KPTFILE}
    puts = tuple(PutFile(f"shop/{path}", text.encode()) for path, text in files.items())
    (commit,) = mirror.write_commits([NewCommit((), puts, "shop: first release", SECONDS)])
    updates = tuple(RefUpdate(ref, commit, None) for ref in ("refs/heads/main", "refs/tags/shop/v1"))
    assert mirror.push([PushUnit("catalog", updates)]).is_complete


def cluster(sizes: Sizes, index: int) -> str:
    """Return the Repository of one cluster."""
    ring = "early" if index < sizes.early else "wide"
    labels = f"role: edge, ring: {ring}, region: region-{index % sizes.regions:02}, site: site-{index:04}"
    return repository(f"cluster-{index:04}", "./fleet.git", "deployment: true", "", labels)


def deployment(sizes: Sizes, number: int, more: str = "") -> str:
    """Return one resource with the labels of its policies, if any."""
    attached = _ATTACHED.format(shared=number % SHARED, number=number) if sizes.policies else ""
    return DEPLOYMENT.replace("NUMBER", f"{number:02}").replace("    LABELS\n", more + attached)


def _policies(sizes: Sizes) -> Iterator[tuple[str, str]]:
    for number in range(SHARED):
        regions = "".join(
            REGION_RULE.replace("REGION", f"region-{region:02}") for region in range(number, sizes.regions, SHARED)
        )
        yield f"fleet-{number}", _policy("ClusterOverridePolicy", f"fleet-{number}", REGISTRY_RULE + regions)
    for number in range(sizes.resources):
        name = f"shop-{number:02}"
        yield name, _policy("OverridePolicy", name, EARLY_RULE + WIDE_RULE, "  namespace: shop\n")


def _policy(kind: str, name: str, rules: str, namespace: str = "") -> str:
    return (
        f"apiVersion: core.kubeadmiral.io/v1alpha1\nkind: {kind}\nmetadata:\n  name: {name}\n{namespace}"
        f"spec:\n  overrideRules:\n{rules}"
    )


PLACED_BY = "    kubeadmiral.io/propagation-policy-name: everywhere\n"
PLACEMENT = """\
apiVersion: core.kubeadmiral.io/v1alpha1
kind: PropagationPolicy
metadata:
  name: everywhere
  namespace: shop
spec:
  clusterSelector: {role: edge}
"""
SET = """\
apiVersion: config.porch.kpt.dev/v1alpha2
kind: PackageVariantSet
metadata:
  name: shop
spec:
  upstream: {repo: catalog, package: shop, revision: v1}
  targets:
    - repositorySelector:
        matchLabels: {role: edge}
"""
KPTFILE = """\
apiVersion: kpt.dev/v1
kind: Kptfile
metadata:
  name: shop
"""
REGISTRY_RULE = """\
  - overriders:
      image:
      - operations:
        - {imageComponent: Registry, value: mirror.example:5000}
"""
REGION_RULE = """\
  - targetClusters:
      clusterSelector: {region: REGION}
    overriders:
      envs:
      - {containerName: api, operator: set, value: [{name: REGION, value: REGION}]}
"""
EARLY_RULE = """\
  - targetClusters:
      clusterSelector: {ring: early}
    overriders:
      args:
      - {containerName: api, operator: append, value: [--log=debug]}
"""
WIDE_RULE = """\
  - overriders:
      annotations:
      - {operator: set, value: {team: checkout}}
      jsonpatch:
      - {path: /spec/replicas, value: 3}
"""
DEPLOYMENT = """\
# Part NUMBER of the shop.
apiVersion: apps/v1
kind: Deployment
metadata:
  name: shop-NUMBER
  namespace: shop
  labels:
    app: shop
    LABELS
spec:
  replicas: 2 # enough for a small site
  selector:
    matchLabels:
      app: shop
  template:
    metadata:
      labels:
        app: shop
    spec:
      containers:
        - name: api
          image: registry.example.com/shop:1.4.2
          args: [--log=info]
          ports:
            - containerPort: 8443
          env:
            - name: PART
              value: "NUMBER"
          resources:
            requests:
              cpu: 100m
              memory: 128Mi
            limits:
              memory: 256Mi
          readinessProbe:
            httpGet:
              path: /healthz
              port: 8443
"""
