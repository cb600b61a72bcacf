"""The fleet of the fleet benchmark: a catalog with one package, a config folder, and bare fleet repositories."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from reconciler.git.local_repository import create_repository
from reconciler.git.mirror import Mirror
from reconciler.git.object_writer import NewCommit, PutFile
from reconciler.git.push_outcomes import PushUnit, RefUpdate

SECONDS = 1_767_225_600
CHANGED = 7


@dataclass(frozen=True)
class Sizes:
    """Size of the fleet. `files` includes the Kptfile and is at least five."""

    clusters: int
    regions: int
    files: int
    repositories: int


@contextmanager
def open_folder(folder: Path | None) -> Iterator[Path]:
    """Create the given folder, or a temporary folder."""
    if folder:
        folder.mkdir(parents=True)
        yield folder
        return
    with tempfile.TemporaryDirectory(prefix="fleet-") as temporary:
        yield Path(temporary)


def build_world(folder: Path, sizes: Sizes) -> None:
    """Build the fleet in a new folder: `config/`, `catalog.git`, `fleet-0.git` and so on."""
    config = folder / "config"
    (config / "regions").mkdir(parents=True)
    _build_catalog(folder, sizes)
    for index in range(sizes.repositories):
        create_repository(folder / f"fleet-{index}.git")
    (config / "catalog.yaml").write_text(repository("catalog", "./catalog.git", "deployment: false", "main"))
    (config / "clusters.yaml").write_text("---\n".join(_clusters(sizes)))
    (config / "set.yaml").write_text(SET)
    for region in range(sizes.regions):
        _region_file(folder, region).write_text(_region(region, "auth"))


def change_a_region(folder: Path, value: str = "login") -> None:
    """Change the injected values of one region."""
    _region_file(folder, CHANGED).write_text(_region(CHANGED, value))


def _region_file(folder: Path, region: int) -> Path:
    return folder / "config" / "regions" / f"region-{region:02}.yaml"


def _build_catalog(folder: Path, sizes: Sizes) -> None:
    create_repository(folder / "catalog.git")
    mirror = Mirror.open(folder / "cache", str(folder / "catalog.git"))
    puts = tuple(PutFile(f"gateway/{path}", text.encode()) for path, text in _package(sizes).items())
    (commit,) = mirror.write_commits([NewCommit((), puts, "gateway: first release", SECONDS)])
    updates = tuple(RefUpdate(ref, commit, None) for ref in ("refs/heads/main", "refs/tags/gateway/v1"))
    assert mirror.push([PushUnit("catalog", updates)]).is_complete


def _package(sizes: Sizes) -> dict[str, str]:
    fixed = {
        "Kptfile": KPTFILE,
        "endpoints.yaml": ENDPOINTS,
        "replacements.yaml": REPLACEMENTS,
        "service.yaml": SERVICE,
    }
    count = sizes.files - len(fixed)
    return fixed | {f"part-{index}.yaml": PART.replace("INDEX", str(index)) for index in range(count)}


def _clusters(sizes: Sizes) -> Iterator[str]:
    for index in range(sizes.clusters):
        labels = f"role: edge, region: region-{index % sizes.regions:02}"
        url = f"./fleet-{index % sizes.repositories}.git"
        yield repository(f"cluster-{index:04}", url, "deployment: true", "", labels)


def repository(name: str, url: str, deployment: str, branch: str, labels: str = "") -> str:
    """Return a Repository."""
    return (
        f"apiVersion: config.porch.kpt.dev/v1alpha1\nkind: Repository\nmetadata:\n  name: {name}\n"
        f"  labels: {{{labels}}}\nspec:\n  type: git\n  {deployment}\n  git:\n    repo: {url}\n"
        + (f"    branch: {branch}\n" if branch else "")
    )


def _region(region: int, door: str) -> str:
    name = f"region-{region:02}"
    return (
        f"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: endpoints-{name}\n  namespace: default\n"
        f"data:\n  api: https://api.{name}.example.com\n  auth: https://{door}.{name}.example.com\n"
    )


SET = """\
apiVersion: config.porch.kpt.dev/v1alpha2
kind: PackageVariantSet
metadata:
  name: gateway
spec:
  upstream: {repo: catalog, package: gateway, revision: v1}
  targets:
    - repositorySelector:
        matchLabels: {role: edge}
      template:
        packageContext:
          dataExprs:
            - {key: cluster, valueExpr: repository.name}
        injectors:
          - kind: ConfigMap
            nameExpr: "'endpoints-' + repository.labels['region']"
        pipeline:
          mutators:
            - image: set-namespace:v0.4.1
              name: place
              configMap: {namespace: edge}
"""
KPTFILE = """\
apiVersion: kpt.dev/v1
kind: Kptfile
metadata:
  name: gateway
info:
  description: The way into an edge cluster.
pipeline:
  mutators:
    - image: ghcr.io/kptdev/krm-functions-catalog/apply-replacements:v0.1.1
      configPath: replacements.yaml
    - image: ghcr.io/kptdev/krm-functions-catalog/set-labels:v0.2.0
      configMap:
        app.kubernetes.io/part-of: gateway
"""
ENDPOINTS = """\
# What the gateway talks to; each region fills in its own.
apiVersion: v1
kind: ConfigMap
metadata:
  name: endpoints
  annotations:
    kpt.dev/config-injection: required
data:
  api: https://api.example.com
  auth: https://auth.example.com
"""
REPLACEMENTS = """\
apiVersion: fn.kpt.dev/v1alpha1
kind: ApplyReplacements
metadata:
  name: replacements
  annotations:
    config.kubernetes.io/local-config: "true"
replacements:
  - source:
      kind: ConfigMap
      name: endpoints
      fieldPath: data.auth
    targets:
      - select:
          kind: Deployment
        fieldPaths:
          - spec.template.spec.containers.0.env.[name=AUTH].value
"""
SERVICE = """\
apiVersion: v1
kind: Service
metadata:
  name: gateway
spec:
  selector:
    app: gateway
  ports:
    - name: https
      port: 443
      targetPort: 8443
"""
PART = """\
# Part INDEX of the gateway.
apiVersion: apps/v1
kind: Deployment
metadata:
  name: gateway-INDEX
  labels:
    app: gateway
spec:
  replicas: 2 # enough for a small site
  selector:
    matchLabels:
      app: gateway
  template:
    metadata:
      labels:
        app: gateway
    spec:
      containers:
        - name: gateway
          image: registry.example.com/gateway:1.4.2
          ports:
            - containerPort: 8443
          env:
            - name: AUTH
              value: https://auth.example.com
            - name: PART
              value: "INDEX"
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
