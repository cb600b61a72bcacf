"""The files of a new config as text. Equal content gives equal bytes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reconciler.catalog.files import File, FileTree
from reconciler.krm.numbers import format_count
from reconciler.output.scaffold.documents import (
    CLUSTER_LABEL,
    CONFIG_FOLDER,
    SETTINGS_FILE,
    build_catalog,
    build_cluster,
    build_set,
    format_documents,
    format_settings,
)
from reconciler.output.scaffold.entries import CatalogEntry, ClusterEntry, PackageEntry, Scaffold, build_upstream

_README = """\
# Config of the fleet

This folder contains the config of the fleet `{fleet}`: {contents}.

| file | content |
|---|---|
{rows}

Run these commands in this folder:

```sh
reconciler validate
reconciler plan
reconciler sync
reconciler show {cluster}
reconciler propose {cluster} && reconciler approve {cluster}
```

1. `validate` lists all errors of the config.
2. `plan` shows the drafts that `sync` creates. It pushes nothing.
3. `sync` pushes one draft branch per cluster to the fleet repository.
4. `show` prints the draft of a cluster with its reasons.
5. `propose` and `approve` publish the draft on the branch `clusters/{cluster}`, which Argo CD or Flux applies.
"""


def build_files(scaffold: Scaffold, setting_descriptions: Mapping[str, str]) -> FileTree:
    """Return the files of a new config.

    Args:
        setting_descriptions: Maps the path of each setting in the settings file to its description.
    """
    texts = {
        f"{CONFIG_FOLDER}/repositories.yaml": format_documents(map(_build_catalog, scaffold.catalogs)),
        f"{CONFIG_FOLDER}/clusters.yaml": format_documents(
            _build_cluster(cluster, scaffold.fleet_url) for cluster in scaffold.clusters
        ),
        SETTINGS_FILE: format_settings(scaffold.fleet_url, setting_descriptions),
        "README.md": _format_readme(scaffold),
    }
    catalogs = {catalog.name: catalog for catalog in scaffold.catalogs}
    for package in scaffold.packages:
        document = _build_set(package, catalogs[package.catalog], scaffold.selector)
        texts[f"{CONFIG_FOLDER}/{package.name}.yaml"] = format_documents([document])
    return FileTree({path: File(text.encode()) for path, text in texts.items()})


def _build_catalog(catalog: CatalogEntry) -> dict[str, Any]:
    return build_catalog(catalog.name, catalog.type, catalog.url, catalog.branch or "main")


def _build_cluster(cluster: ClusterEntry, fleet_url: str) -> dict[str, Any]:
    return build_cluster(cluster.name, cluster.labels, {"repo": fleet_url, "branch": f"clusters/{cluster.name}"})


def _build_set(package: PackageEntry, catalog: CatalogEntry, selector: Mapping[str, str]) -> dict[str, Any]:
    target: dict[str, Any] = {"repositorySelector": {"matchLabels": dict(selector) or {CLUSTER_LABEL: "true"}}}
    if catalog.type == "helm":
        target["template"] = {"helm": {"namespace": package.name}}
    return build_set(package.name, {"upstream": build_upstream(package, catalog), "targets": [target]})


def _format_readme(scaffold: Scaffold) -> str:
    counts = (("catalog", len(scaffold.catalogs)), ("cluster", len(scaffold.clusters)))
    contents = [format_count(count, noun) for noun, count in counts]
    contents += [f"the package {package.path}" for package in scaffold.packages]
    rows = {
        f"{CONFIG_FOLDER}/repositories.yaml": "the repositories with packages",
        f"{CONFIG_FOLDER}/clusters.yaml": "the clusters with their labels",
        **{f"{CONFIG_FOLDER}/{package.name}.yaml": f"the package {package.path}" for package in scaffold.packages},
        SETTINGS_FILE: "the settings that differ from the defaults",
    }
    return _README.format(
        fleet=scaffold.fleet_url,
        contents=", ".join(contents),
        rows="\n".join(f"| `{path}` | {meaning} |" for path, meaning in rows.items()),
        cluster=scaffold.selected_clusters[0].name,
    )
