"""Packages of placed resources: one package for each namespace and cluster.

The mutation of such a package changes no files. It only records the dependencies of the package.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from reconciler.api.porch.policies import AdoptionPolicy
from reconciler.catalog.files import File, FileTree
from reconciler.catalog.manifests import DEFAULT_NAMESPACE
from reconciler.catalog.trace import CatalogView
from reconciler.controllers.clusters.inventory import ClusterInventory
from reconciler.controllers.placement.deletion_protection import RetainedFiles
from reconciler.controllers.placement.model import PlacementResource, build_package_path, build_placement_owner
from reconciler.controllers.results import (
    GeneratedSource,
    MutationResult,
    PackageTarget,
    PreviousRender,
    Variant,
    collect_config_sources,
)
from reconciler.krm.objects import ObjectKey
from reconciler.lazy_dataclasses import dataclass, replace
from reconciler.packages.file_names import assign_file_names

NamedObject = tuple[str, str, str, str]
ADOPT_ANNOTATION = "reconciler.dev/adopt"
ResourceFiles = Mapping[ObjectKey, File]


@dataclass(frozen=True)
class RecordDependencies:
    """Mutation that only records the objects of a package as dependencies. It changes no files."""

    objects: tuple[NamedObject, ...]

    def __call__(self, files: FileTree, view: CatalogView, earlier: PreviousRender | None = None) -> MutationResult:
        """Read the objects, and return the files unchanged."""
        for object_reference in self.objects:
            view.find_object(*object_reference)
        return MutationResult(files)


def build_dependency_recorder(resources: Iterable[PlacementResource]) -> RecordDependencies:
    """Return the mutation that records the given resources as dependencies.

    The mutation looks up a resource without a namespace in the default namespace, as `CatalogView` does.
    """
    keys = ((resource.config_object.api_version, resource.key) for resource in resources)
    references = ((api_version, key.kind, key.namespace or DEFAULT_NAMESPACE, key.name) for api_version, key in keys)
    return RecordDependencies(tuple(references))


def build_packages(
    namespace: str,
    resources: Sequence[PlacementResource],
    retained: RetainedFiles,
    inventory: ClusterInventory,
    engine: str,
) -> list[Variant]:
    """Return one package of a namespace for each cluster. Omit clusters whose package is kept unchanged."""
    resources_by_cluster: dict[str, list[PlacementResource]] = {cluster: [] for cluster in retained.files}
    # Collect the resources with an uncertain placement, because their files may be on more clusters than the placement
    # selects.
    uncertain = [resource for resource in resources if resource.clusters is None or resource.unknown_clusters]
    for resource in resources:
        for cluster in resource.clusters or ():
            resources_by_cluster.setdefault(cluster, []).append(resource)
    # Build each package content only once, because most clusters have the same content.
    packages_by_content: dict[tuple[object, ...], Variant] = {}
    packages = []
    for cluster in sorted(resources_by_cluster.keys() - retained.unreadable_clusters):
        cluster_resources, retained_files = resources_by_cluster[cluster], retained.files.get(cluster, {})
        target = PackageTarget(inventory.target_keys[cluster].namespace, cluster, build_package_path(namespace))
        content = (*map(id, cluster_resources), *((key, file.id) for key, file in retained_files.items()))
        if content not in packages_by_content:
            # Include resources whose placement is uncertain and whose files are kept, because the package depends on
            # these resources.
            inputs = [
                *cluster_resources,
                *(
                    resource
                    for resource in uncertain
                    if resource.key in retained_files and resource not in cluster_resources
                ),
            ]
            packages_by_content[content] = _build_package(namespace, target, inputs, retained_files, engine)
        packages.append(replace(packages_by_content[content], target=target))
    return packages


def _build_package(
    namespace: str,
    target: PackageTarget,
    resources: Sequence[PlacementResource],
    retained_files: ResourceFiles,
    engine: str,
) -> Variant:
    files = {**{resource.key: resource.file for resource in resources}, **retained_files}
    names = assign_file_names(sorted(files))
    source = GeneratedSource(FileTree({names[key]: file for key, file in files.items()}))
    facts = {"resources": source.fingerprint, "engine": engine}
    mutation, adoption = build_dependency_recorder(resources), _get_adoption_policy(resources)
    sources = collect_config_sources(resource.config_object for resource in resources)
    return Variant(
        build_placement_owner(namespace),
        target,
        source,
        mutation,
        facts,
        adoption=adoption,
        is_per_cluster=True,
        sources=sources,
    )


def _get_adoption_policy(resources: Sequence[PlacementResource]) -> AdoptionPolicy:
    """Return `adoptExisting` only if all resources have the annotation `reconciler.dev/adopt` with the value "true"."""
    annotated = [resource.config_object.annotations.get(ADOPT_ANNOTATION) == "true" for resource in resources]
    return "adoptExisting" if annotated and all(annotated) else "adoptNone"
