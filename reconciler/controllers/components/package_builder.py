"""Packages of rendered components: their files, their recorded dependencies, and one variant for each cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from reconciler.api.porch.policies import AdoptionPolicy
from reconciler.catalog.catalog import ConfigObject
from reconciler.catalog.files import File, FileTree
from reconciler.catalog.trace import CatalogView
from reconciler.controllers.clusters.inventory import ClusterInventory
from reconciler.controllers.components.bindings import ResolvedBinding
from reconciler.controllers.components.component_plan import ComponentPlan
from reconciler.controllers.components.component_renderer import RenderedComponent
from reconciler.controllers.components.model import Build
from reconciler.controllers.components.provenance import ComponentProvenance, ValueSources
from reconciler.controllers.components.resource_renderer import RenderedResource
from reconciler.controllers.results import (
    GeneratedSource,
    MutationResult,
    PackageOwner,
    PackageTarget,
    PreviousRender,
    Variant,
    collect_config_sources,
)
from reconciler.krm.json_text import compute_digest
from reconciler.krm.objects import ObjectKey
from reconciler.krm.yaml import WIDE_INDENT_STYLE, emit
from reconciler.lazy_dataclasses import dataclass, replace
from reconciler.packages.file_names import assign_file_names


@dataclass(frozen=True)
class IdentityMutation:
    """Mutation that changes nothing, because the component controller has already rendered the files of the package."""

    def __call__(self, files: FileTree, view: CatalogView, earlier: PreviousRender | None = None) -> MutationResult:
        """Return the files unchanged."""
        return MutationResult(files)


def name_resource_files(resources: Sequence[RenderedResource]) -> Mapping[str, RenderedResource]:
    """Return the resources by their file names."""
    keys = {ObjectKey(resource.key.group, resource.key.kind, "", resource.key.name): resource for resource in resources}
    names = assign_file_names(keys)
    return {names[key]: resource for key, resource in keys.items()}


def build_file_tree(files: Mapping[str, RenderedResource]) -> FileTree:
    """Return a package with one file for each resource. The map keys in a file have the order of the template."""
    return FileTree({name: File(emit(resource.data, WIDE_INDENT_STYLE).encode()) for name, resource in files.items()})


def iter_input_manifests(
    resolved: ResolvedBinding, plan: ComponentPlan, build: Build | None, rendered: RenderedComponent
) -> Iterator[ConfigObject]:
    """Yield the config objects that a component is rendered from. Only active addons are included."""
    yield from (
        resolved.binding.manifest,
        resolved.component.manifest,
        resolved.environment.manifest,
        plan.definition.manifest,
    )
    if plan.manifest is not resolved.component.manifest:
        yield plan.manifest
    if build:
        yield build.manifest
    addons = {use.instance: use.addon.manifest for use in plan.uses if use.instance in rendered.values}
    yield from dict.fromkeys(addons.values())


def compute_dependencies(
    manifests: Sequence[ConfigObject], digest_manifest: Callable[[ConfigObject], str], engine: str
) -> dict[str, str]:
    """Return the dependencies of a package: the digest of each input object, and the version of the render logic."""
    return {**{manifest.key.reference: digest_manifest(manifest) for manifest in manifests}, "engine": engine}


def compute_manifest_digest(manifest: ConfigObject) -> str:
    """Return the digest of the parts of an object that a render can use: spec, labels and annotations."""
    metadata = manifest.data["metadata"]
    selected = {name: metadata.get(name) for name in ("labels", "annotations")}
    return compute_digest({"spec": manifest.data.get("spec"), "metadata": selected})


ADOPT_ANNOTATION = "reconciler.dev/adopt"


@dataclass(frozen=True, eq=False)
class ComponentPackages:
    """Component that is rendered for one environment, and its package variant for each cluster."""

    resolved_binding: ResolvedBinding
    plan: ComponentPlan
    rendered: RenderedComponent
    variants: tuple[Variant, ...]


@dataclass(frozen=True, eq=False)
class PackageBuilder:
    """Builds the packages of rendered components."""

    inventory: ClusterInventory
    digest_manifest: Callable[[ConfigObject], str]
    engine: str

    def list_targets(self, resolved: ResolvedBinding) -> tuple[PackageTarget, ...]:
        """Return the location of the component's package on each cluster of the environment."""
        target_keys = self.inventory.target_keys
        return tuple(
            PackageTarget(target_keys[cluster].namespace, cluster, resolved.package) for cluster in resolved.clusters
        )

    def build(
        self, resolved: ResolvedBinding, plan: ComponentPlan, build: Build | None, rendered: RenderedComponent
    ) -> ComponentPackages:
        """Build the packages of a rendered component. The owner of the packages is the EnvBinding."""
        binding = resolved.binding.manifest
        files, manifests = (
            name_resource_files(rendered.resources),
            tuple(iter_input_manifests(resolved, plan, build, rendered)),
        )
        dependencies = compute_dependencies(manifests, self.digest_manifest, self.engine)
        digests = {manifest: dependencies[manifest.key.reference] for manifest in manifests}
        provenance = ComponentProvenance(ValueSources(resolved, plan, build, rendered), files, digests)
        owner = PackageOwner(binding.key, binding.api_version)
        adoption: AdoptionPolicy = (
            "adoptExisting" if binding.annotations.get(ADOPT_ANNOTATION) == "true" else "adoptNone"
        )
        first = Variant(
            owner, PackageTarget("", "", resolved.package), GeneratedSource(build_file_tree(files)), IdentityMutation(),
            dependencies, adoption=adoption,
            findings=rendered.findings, is_per_cluster=True, provenance=provenance,
            sources=collect_config_sources((binding, resolved.component.manifest, resolved.environment.manifest)),
        )  # fmt: skip
        return ComponentPackages(
            resolved, plan, rendered, tuple(replace(first, target=target) for target in self.list_targets(resolved))
        )
