"""Reads fleets in each format: packages on clusters, their expected content, and a function that generates a config."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from reconciler.adopt.argocd.applications import is_argocd
from reconciler.adopt.flux.reader import is_flux
from reconciler.adopt.folders import generate_from_folders, select_units
from reconciler.adopt.generated import GeneratedConfig
from reconciler.adopt.grouping import generate_from_requests
from reconciler.adopt.layout import Layout, read_fleet
from reconciler.adopt.requests import PackageRequest, ReadRequests
from reconciler.adopt.resources import ResourceId, read_content
from reconciler.adopt.units import Cluster, Fleet, NotImported, Unit
from reconciler.catalog.files import FileTree
from reconciler.lazy_dataclasses import dataclass, replace
from reconciler.output.adoption.result import SourceFormat
from reconciler.packages.charts.package_files import create_namespace_file

Labels = Mapping[str, Mapping[str, str]]


@dataclass(frozen=True)
class Import:
    """The fleet in the imported files, and the function that generates a config for this fleet.

    Attributes:
        basis: The origin of the expected content. The packages of the new config are compared with this content.
        generate: Returns the config objects for units. A unit is a package on a cluster.
    """

    format: SourceFormat
    fleet: Fleet
    basis: Literal["files", "rendered", "original"]
    generate: Callable[[Sequence[Unit], Sequence[Cluster]], GeneratedConfig]


def detect_format(files: FileTree) -> SourceFormat:
    """Return the format of the imported files: objects of Argo CD, objects of Flux, or folders with manifests."""
    if is_argocd(files):
        return "argocd"
    return "flux" if is_flux(files) else "folders"


def import_folders(files: FileTree, layout: Layout, labels: Labels) -> Import:
    """Return the import of folders with plain manifests."""
    fleet = read_fleet(files, layout, labels)
    fleet.check_limits()
    selected = select_units(fleet)
    found = replace(fleet, units=selected.units, not_imported=(*fleet.not_imported, *selected.not_imported))
    return Import("folders", found, "files", generate_from_folders)


def list_clusters(read: ReadRequests, labels: Labels) -> tuple[Cluster, ...]:
    """Return the clusters of the requests, with labels from the imported files and from the option --clusters."""
    names = sorted({request.cluster for request in read.requests})
    return tuple(Cluster(name, {**read.labels.get(name, {}), **labels.get(name, {})}) for name in names)


def import_requests(
    source_format: SourceFormat,
    read: ReadRequests,
    clusters: tuple[Cluster, ...],
    expected: Mapping[tuple[str, str], FileTree | str],
    *,
    is_rendered: bool,
) -> Import:
    """Return the import of package requests from Argo CD or Flux.

    Args:
        expected: Maps the cluster and package of each request to the expected content, or to the reason why the
            content is unknown.
        is_rendered: Whether the expected content comes from the option --rendered.
    """
    by_key = {(request.cluster, request.package): request for request in read.requests}
    units = tuple(_build_unit(request, expected[key]) for key, request in by_key.items())
    fleet = Fleet(clusters, units, read.not_imported)
    fleet.check_limits()

    def generate(selected: Sequence[Unit], found: Sequence[Cluster]) -> GeneratedConfig:
        return generate_from_requests([by_key[unit.cluster, unit.package] for unit in selected], found)

    return Import(source_format, fleet, "rendered" if is_rendered else "original", generate)


def _build_unit(request: PackageRequest, expected: FileTree | str) -> Unit:
    files, reason = (FileTree(), expected) if isinstance(expected, str) else (expected, "")
    return Unit(request.cluster, request.package, request.file, files, reason, request.namespace)


def select_rendered(read: ReadRequests, rendered: FileTree) -> Mapping[tuple[str, str], FileTree | str]:
    """Return the expected content of each package, which is read from the folder in the option --rendered.

    In this folder, `<cluster>/<package>` or `<cluster>/<name of the Application>` is the path of the content. The
    content is a folder, or a file with the suffix `.yaml`.
    """
    return {(request.cluster, request.package): _select_with_namespace(request, rendered) for request in read.requests}


def _select_with_namespace(request: PackageRequest, rendered: FileTree) -> FileTree | str:
    """Return the expected content of a package from the folder of `--rendered`, or the reason why it has no content.

    If Argo CD or Flux creates the Namespace on the cluster, the rendered manifests do not contain the Namespace. In
    this case, add the Namespace.
    """
    files = _select(request, rendered)
    if isinstance(files, str) or not (request.helm and request.helm.flags.get("createNamespace")):
        return files
    content = read_content(files)
    namespace = request.helm.namespace
    if isinstance(content, NotImported) or ResourceId("", "Namespace", "", namespace) in content.resources:
        return files
    return files.with_files(create_namespace_file(namespace))


def _select(request: PackageRequest, rendered: FileTree) -> FileTree | str:
    for name in (request.package, request.name):
        path = f"{request.cluster}/{name}"
        if file := rendered.get(f"{path}.yaml"):
            return FileTree({f"{name}.yaml": file})
        if folder := rendered.subtree(path):
            return folder
    return f"the folder of --rendered does not contain {request.cluster}/{request.package}.yaml"
