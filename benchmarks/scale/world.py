"""The fleet of the scale benchmark: ten real packages on every cluster, with small differences per cluster.

Each of ten sets creates one package on all clusters, sets the name of the cluster in its context, and labels its
resources. Two packages have an injection point, and each region has one object for both. A region has a hundred
clusters and one fleet repository, so that one object of a region affects one package in a hundred.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from reconciler.git.local_repository import create_repository
from reconciler.git.mirror import Mirror
from reconciler.git.object_writer import NewCommit, PutFile
from reconciler.git.push_outcomes import PushUnit, RefUpdate

PROJECT = Path(__file__).resolve().parents[2]
PACKAGES_FOLDER = PROJECT.parent / "shared" / "data" / "packages"
PACKAGES = {
    "ghost": "kpt/ghost",
    "guestbook": "kpt/guestbook",
    "tenant": "kpt/tenant",
    "ingress": "kpt/ingress-nginx",
    "wordpress": "kpt/wordpress",
    "operator": "nephio/workloads/free5gc/free5gc-operator",
    "repository": "nephio/distros/sandbox/repository",
    "workload": "nephio/infra/capi/nephio-workload-cluster",
    "gke": "nephio/infra/gcp/nephio-workload-cluster-gke",
    "kind": "nephio/infra/capi/cluster-capi-kind",
}
"""Ten packages with 103 files, by the name that they have on clusters."""
INJECTED = {"gke": ("ConfigMap", "", "gcp"), "kind": ("WorkloadCluster", "infra.nephio.org", "site")}
RELEASED = "operator"
"""The package that gets a new version."""
CHANGED_REGION = 3
"""The first of those whose object changes."""
SECONDS = 1_767_225_600


@dataclass(frozen=True)
class Sizes:
    """The number of clusters, and the number of clusters per region. Each region has one fleet repository."""

    clusters: int = 1_000
    region: int = 100

    @property
    def regions(self) -> int:
        """The number of regions."""
        return -(-self.clusters // self.region)

    @property
    def variants(self) -> int:
        """The number of packages on all clusters."""
        return self.clusters * len(PACKAGES)

    @property
    def regions_of_one_percent(self) -> int:
        """The regions whose objects affect one package in a hundred: one package of each of their clusters."""
        return max(1, self.variants // 100 // self.region)


def build_world(folder: Path, sizes: Sizes, packages: Path = PACKAGES_FOLDER) -> None:
    """Build the fleet in a new folder: `config/`, `catalog.git`, and `fleet-0.git` and so on."""
    config = folder / "config"
    (config / "regions").mkdir(parents=True)
    _build_catalog(folder, packages)
    for index in range(sizes.regions):
        create_repository(folder / f"fleet-{index}.git")
        (config / "regions" / f"region-{index:03}.yaml").write_text(_region(index, "first"))
        (config / "regions" / f"clusters-{index:03}.yaml").write_text("---\n".join(_clusters(index, sizes)))
    (config / "catalog.yaml").write_text(_repository("catalog", "catalog", "deployment: false", branch="main"))
    for name in PACKAGES:
        _set_file(folder, name).write_text(_set(name, "v1"))


def change_objects(folder: Path, word: str, regions: int = 1) -> None:
    """Change the injected object of one package on the clusters of this number of regions."""
    for region in range(CHANGED_REGION, CHANGED_REGION + regions):
        (folder / "config" / "regions" / f"region-{region:03}.yaml").write_text(_region(region, word))


def release(folder: Path) -> None:
    """Release a new version of one package for all clusters."""
    _set_file(folder, RELEASED).write_text(_set(RELEASED, "v2"))


def change_unused_object(folder: Path, number: int) -> None:
    """Change an object that no package uses."""
    (folder / "config" / "note.yaml").write_text(_object("ConfigMap", "v1", "note", {"number": str(number)}))


def _set_file(folder: Path, name: str) -> Path:
    return folder / "config" / f"set-{name}.yaml"


def _build_catalog(folder: Path, packages: Path) -> None:
    create_repository(folder / "catalog.git")
    mirror = Mirror.open(folder / "cache", str(folder / "catalog.git"))
    first = [PutFile(f"{name}/{path}", data) for name in PACKAGES for path, data in _files(packages / PACKAGES[name])]
    changed = [put for put in first if put.path.startswith(f"{RELEASED}/operator/deployment")]
    assert len(changed) == 1, f"the package {RELEASED} has no deployment any more"
    second = PutFile(changed[0].path, changed[0].data.replace(b"replicas: 1", b"replicas: 2"))
    assert second != changed[0], f"the deployment of {RELEASED} has no replica any more"
    commit_id, other = mirror.write_commits(
        [NewCommit((), tuple(first), "first release", SECONDS), NewCommit((0,), (second,), "second release", SECONDS)]
    )
    updates = [RefUpdate("refs/heads/main", other, None), RefUpdate(f"refs/tags/{RELEASED}/v2", other, None)]
    updates += [RefUpdate(f"refs/tags/{name}/v1", commit_id, None) for name in PACKAGES]
    assert mirror.push([PushUnit("catalog", tuple(updates))]).is_complete


def _files(folder: Path) -> Iterator[tuple[str, bytes]]:
    for file in sorted(folder.rglob("*")):
        if file.is_file():
            yield file.relative_to(folder).as_posix(), file.read_bytes()


def _clusters(region: int, sizes: Sizes) -> Iterator[str]:
    for index in range(region * sizes.region, min((region + 1) * sizes.region, sizes.clusters)):
        labels = f"{{role: edge, region: r{region:03}}}"
        yield _repository(f"cluster-{index:05}", f"fleet-{region}", "deployment: true", labels=labels)


def _repository(name: str, url: str, kind: str, *, labels: str = "{}", branch: str = "") -> str:
    git = f"    branch: {branch}\n" if branch else ""
    return (
        f"apiVersion: config.porch.kpt.dev/v1alpha1\nkind: Repository\nmetadata:\n  name: {name}\n"
        f"  labels: {labels}\nspec:\n  type: git\n  {kind}\n  git:\n    repo: ./{url}.git\n{git}"
    )


def _region(region: int, word: str) -> str:
    values = {"project-id": f"edge-{word}", "location": f"zone-{region:03}"}
    context = _object("ConfigMap", "v1", f"gcp-r{region:03}", values)
    site = _object("WorkloadCluster", "infra.nephio.org/v1alpha1", f"site-r{region:03}", {})
    return f"{context}---\n{site}spec:\n  clusterName: site-{region:03}\n"


def _object(kind: str, version: str, name: str, data: Mapping[str, str]) -> str:
    lines = "".join(f"  {key}: {value!r}\n" for key, value in data.items())
    head = f"apiVersion: {version}\nkind: {kind}\nmetadata:\n  name: {name}\n  namespace: default\n"
    return head + (f"data:\n{lines}" if data else "")


def _set(name: str, revision: str) -> str:
    return SET.format(name=name, revision=revision) + _injectors(name)


def _injectors(name: str) -> str:
    if name not in INJECTED:
        return ""
    kind, group, start = INJECTED[name]
    return f"""\
        injectors:
          - group: {group or '""'}
            kind: {kind}
            nameExpr: "'{start}-' + repository.labels['region']"
"""


SET = """\
apiVersion: config.porch.kpt.dev/v1alpha2
kind: PackageVariantSet
metadata:
  name: {name}
spec:
  upstream: {{repo: catalog, package: {name}, revision: {revision}}}
  targets:
    - repositorySelector:
        matchLabels: {{role: edge}}
      template:
        packageContext:
          dataExprs:
            - {{key: cluster, valueExpr: repository.name}}
        pipeline:
          mutators:
            - image: set-labels:v0.2.0
              name: fleet
              configMap: {{example.com/fleet: edge}}
"""
