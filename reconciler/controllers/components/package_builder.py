"""Packages of rendered components: files, recorded dependencies, and one variant per cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

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
from reconciler.controllers.file_names import assign_file_names
from reconciler.controllers.results import (
    AdoptionPolicy,
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


@dataclass(frozen=True)
class IdentityMutation:
    """Mutation that returns the files unchanged, because the controller already rendered the package."""

    def __call__(self, files: FileTree, view: CatalogView, earlier: PreviousRender | None = None) -> MutationResult:
        """Return the files unchanged."""
        return MutationResult(files)


def name_resource_files(resources: Sequence[RenderedResource]) -> Mapping[str, RenderedResource]:
    """Return the resources by their file name."""
    keys = {ObjectKey(resource.key.group, resource.key.kind, "", resource.key.name): resource for resource in resources}
    names = assign_file_names(keys)
    return {names[key]: resource for key, resource in keys.items()}


def build_file_tree(files: Mapping[str, RenderedResource]) -> FileTree:
    """Return the package: one resource per file, with the keys in template order."""
    return FileTree({name: File(emit(resource.data, WIDE_INDENT_STYLE).encode()) for name, resource in files.items()})


def iter_input_manifests(
    resolved: ResolvedBinding, plan: ComponentPlan, build: Build | None, rendered: RenderedComponent
) -> Iterator[ConfigObject]:
    """Yield the objects that a component is rendered from, including the addons that it uses."""
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
    """Return the recorded dependencies of a package: digests of its input objects by key, and the engine."""
    return {**{str(manifest.key): digest_manifest(manifest) for manifest in manifests}, "engine": engine}


def compute_manifest_digest(manifest: ConfigObject) -> str:
    """Return the digest of everything in an object that a render can use."""
    metadata = manifest.data["metadata"]
    selected = {name: metadata.get(name) for name in ("labels", "annotations")}
    return compute_digest({"spec": manifest.data.get("spec"), "metadata": selected})


ADOPT_ANNOTATION = "reconciler.dev/adopt"


@dataclass(frozen=True, eq=False)
class ComponentPackages:
    """A rendered component in one environment, and its package on each cluster."""

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
        """Return the target of the package on each cluster of the environment."""
        target_keys = self.inventory.target_keys
        return tuple(
            PackageTarget(target_keys[cluster].namespace, cluster, resolved.package) for cluster in resolved.clusters
        )

    def build(
        self, resolved: ResolvedBinding, plan: ComponentPlan, build: Build | None, rendered: RenderedComponent
    ) -> ComponentPackages:
        """Build the packages of a component. Their owner is the EnvBinding."""
        binding = resolved.binding.manifest
        files, manifests = (
            name_resource_files(rendered.resources),
            tuple(iter_input_manifests(resolved, plan, build, rendered)),
        )
        dependencies = compute_dependencies(manifests, self.digest_manifest, self.engine)
        digests = {manifest: dependencies[str(manifest.key)] for manifest in manifests}
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
