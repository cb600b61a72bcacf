"""The files of an imported config."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from reconciler.adopt.generated import CATALOG, GeneratedConfig
from reconciler.adopt.units import Cluster
from reconciler.catalog.files import File, FileTree
from reconciler.output.scaffold.documents import (
    CONFIG_FOLDER,
    SETTINGS_FILE,
    build_catalog,
    build_cluster,
    format_documents,
    format_settings,
)

RESULT_PAGE = "ADOPT.md"
ClusterLocation = Callable[[Cluster], Mapping[str, str]]
"""Returns `spec.git` of the deployment Repository of a cluster."""


def build_config_files(
    generated: GeneratedConfig, clusters: Sequence[Cluster], catalog_url: str, locate: ClusterLocation
) -> FileTree:
    """Return the files of the config folder, with paths relative to this folder."""
    catalog = build_catalog(CATALOG, "git", catalog_url, "main")
    repositories = [*([catalog] if generated.catalog else []), *generated.repositories]
    cluster_documents = [build_cluster(cluster.name, cluster.labels, locate(cluster)) for cluster in clusters]
    texts = {"repositories.yaml": format_documents(repositories), "clusters.yaml": format_documents(cluster_documents)}
    for package in generated.packages:
        texts[f"packages/{package.name}.yaml"] = format_documents(package.documents)
    files = {path: File(text.encode()) for path, text in texts.items() if text}
    return FileTree(files).with_files(generated.config_files)


def build_output_files(config: FileTree, fleet_url: str, descriptions: Mapping[str, str], page: str) -> FileTree:
    """Return the files of the output folder: the config, the settings and the page about the import."""
    files = {f"{CONFIG_FOLDER}/{path}": file for path, file in config.items()}
    files[SETTINGS_FILE] = File(format_settings(fleet_url, descriptions).encode())
    files[RESULT_PAGE] = File(page.encode())
    return FileTree(files)
