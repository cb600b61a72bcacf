"""Processing of one PackageVariantSet: its package variants, its deletion guard and its status."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from reconciler.api.base import ReadResult
from reconciler.api.porch.manifest import PORCH_API_VERSION
from reconciler.api.porch.package_variant_set import ObjectSelection, PackageVariantSetSpec
from reconciler.api.porch.upstream import UpstreamSpec
from reconciler.api.reconciler import PackageRevisionSet
from reconciler.catalog.catalog import Catalog, ConfigObject
from reconciler.catalog.known_kinds import PORCH_GROUP
from reconciler.cel import ExpressionLimits
from reconciler.controllers.codes import ControllerCodes
from reconciler.controllers.deletion_guards import (
    ACK_DELETIONS,
    compute_deletion_hash,
    count_existing,
    format_deletion_message,
    is_mass_deletion,
    read_acknowledged_hashes,
)
from reconciler.controllers.keyed_cache import IdentityKey
from reconciler.controllers.package_variants import status
from reconciler.controllers.package_variants.chart_requests import CLUSTER_ANNOTATIONS
from reconciler.controllers.package_variants.codes import BY_REASON, FIELD_CODES, VariantCodes
from reconciler.controllers.package_variants.inputs import PackageVariantInputs, UpstreamResolver
from reconciler.controllers.package_variants.package_variant import resolve_variant
from reconciler.controllers.package_variants.read_set import read_package_variant_set
from reconciler.controllers.package_variants.set_expansion import (
    GeneratedVariant,
    IdentifiedSet,
    PackageVariantCache,
    SetExpansion,
    SetFailure,
    SetSnapshot,
    SetVariants,
    SkippedTarget,
    expand_set,
)
from reconciler.controllers.package_variants.set_targets import DownstreamKey, find_nonstandard_expressions
from reconciler.controllers.package_variants.upstream_resolution import ResolvedRevision, UnresolvedUpstream
from reconciler.controllers.repositories import Repository
from reconciler.controllers.results import (
    ConfigStatus,
    ControllerResult,
    DeletionGuard,
    PackageOwner,
    PackageTarget,
    StalledVariant,
    Variant,
    collect_config_sources,
)
from reconciler.controllers.validation import create_field_findings
from reconciler.krm.findings import Finding
from reconciler.krm.objects import Condition, ObjectKey, split_api_version
from reconciler.lazy_dataclasses import dataclass, replace

ALLOW_EMPTY = "reconciler.dev/allow-empty"
_NO_COUNTS: Mapping[DownstreamKey, int] = {}


@dataclass(frozen=True)
class SetDeletions:
    """The existing PackageVariants that a set no longer requests: `allowed` may be deleted, and `blocked` may not.

    `existing_count` is the number of PackageVariants from which the limit was calculated. `is_confirmed` is True if a
    person has acknowledged exactly these deletions or has annotated the set with `reconciler.dev/allow-empty`.
    """

    allowed: tuple[DownstreamKey, ...] = ()
    blocked: tuple[DownstreamKey, ...] = ()
    failure: SetFailure | None = None
    existing_count: int = 0
    is_confirmed: bool = False


def guard_deletions(
    expansion: SetExpansion,
    existing: Iterable[DownstreamKey],
    annotations: Mapping[str, str],
    max_percent: int = 30,
    blocked_counts: Mapping[DownstreamKey, int] | None = None,
    set_name: str = "the set",
) -> SetDeletions:
    """Decide which existing PackageVariants of a set may be deleted.

    The guard blocks a deletion if it includes all PackageVariants of a set, or more than `max_percent` percent of them.
    An annotation of the set can allow such a deletion. The PackageVariants of a skipped target are never deleted.

    Args:
        max_percent: The limit in percent of the existing PackageVariants.
        blocked_counts: For each PackageVariant whose deletion an earlier pass blocked: the number of PackageVariants
            that the set had in that pass. The limit is a percentage of this number, so that new PackageVariants do not
            raise the limit.
        set_name: The name of the set for messages.
    """
    existing_keys = set(existing)
    deletions = _find_obsolete_keys(expansion, existing_keys)
    if not deletions:
        return SetDeletions()
    deletion_hash = compute_deletion_hash(deletions)
    if deletion_hash in read_acknowledged_hashes(annotations):
        return SetDeletions(allowed=deletions, is_confirmed=True)
    existing_count = count_existing(deletions, len(existing_keys), blocked_counts or {})
    if not expansion.variants:
        return _guard_empty_set(deletions, annotations, deletion_hash, existing_count, set_name)
    if is_mass_deletion(len(deletions), existing_count, max_percent):
        failure = SetFailure(
            "DeletionHeld", format_deletion_message(deletions, existing_count, "package variants", set_name)
        )
        return SetDeletions(blocked=deletions, failure=failure, existing_count=existing_count)
    return SetDeletions(allowed=deletions)


def find_name_conflict(expansion: SetExpansion, taken_names: Collection[str]) -> SetFailure | None:
    """Return a failure if the set requests a PackageVariant whose name another PackageVariant already has."""
    if expansion.names.isdisjoint(taken_names):
        return None
    conflicting_names = [variant.name for variant in expansion.variants if variant.name in taken_names]
    quoted = ", ".join(f'"{name}"' for name in conflicting_names)
    return SetFailure(
        "NameConflict",
        f"the set cannot create PackageVariants with names that other PackageVariants already have: {quoted}; rename or"
        " delete the other PackageVariants",
    )


def _find_obsolete_keys(expansion: SetExpansion, existing_keys: set[DownstreamKey]) -> tuple[DownstreamKey, ...]:
    if any(skipped.key is None for skipped in expansion.skipped):
        return ()
    kept_keys = {variant.key for variant in expansion.variants} | {skipped.key for skipped in expansion.skipped}
    return tuple(sorted(existing_keys - kept_keys))


def _guard_empty_set(
    deletions: tuple[DownstreamKey, ...],
    annotations: Mapping[str, str],
    deletion_hash: str,
    existing_count: int,
    set_name: str,
) -> SetDeletions:
    if annotations.get(ALLOW_EMPTY) == "true":
        return SetDeletions(allowed=deletions, is_confirmed=True)
    message = (
        f"no target of {set_name} matches an object, so all its package variants ({len(deletions)}) would be deleted. A"
        f" person must confirm this deletion. Next step: annotate {set_name} with"
        f' {ALLOW_EMPTY}: "true" or {ACK_DELETIONS}: "{deletion_hash}"'
    )
    return SetDeletions(blocked=deletions, failure=SetFailure("NoTargets", message), existing_count=existing_count)


def process_set(
    manifest: ConfigObject,
    catalog: Catalog,
    inputs: PackageVariantInputs,
    upstreams: UpstreamResolver,
    taken_names: Collection[str],
    cache: PackageVariantCache,
) -> ControllerResult:
    """Return the package variants of a PackageVariantSet. If the set fails, its existing packages stay unchanged.

    `taken_names` are the names of the other PackageVariants in the namespace.
    """
    read = read_package_variant_set(manifest.data, inputs.cel_limits)
    if read.model is None:
        result = _build_failed_result(
            manifest,
            status.build_invalid_set_conditions(read.error_texts),
            create_field_findings(manifest, read.errors, VariantCodes.VALIDATION_ERROR, FIELD_CODES),
        )
    else:
        spec = read.model.spec
        result = _process_valid_set(
            manifest, spec, _SetView(manifest.key.namespace, catalog, inputs, upstreams), taken_names, cache
        )
        portability_findings = create_field_findings(
            manifest, find_nonstandard_expressions(spec, inputs.cel_limits), VariantCodes.NOT_PORTABLE
        )
        result = replace(result, findings=(*result.findings, *portability_findings))
    return _add_deprecation_warnings(result, manifest, read) if read.warnings else result


def _process_valid_set(
    manifest: ConfigObject,
    spec: PackageVariantSetSpec,
    view: _SetView,
    taken_names: Collection[str],
    cache: PackageVariantCache,
) -> ControllerResult:
    expansion = _get_expansion(manifest, spec, view, taken_names, cache)
    if isinstance(expansion, SetFailure):
        return _build_failed_result(
            manifest, status.build_failed_set_conditions(expansion), (_create_failure_finding(manifest, expansion),)
        )
    return _get_result(manifest, expansion, view, cache)


def _add_deprecation_warnings(
    result: ControllerResult, manifest: ConfigObject, read: ReadResult[Any]
) -> ControllerResult:
    """Add warnings about deprecated fields to the findings and to the status of the set.

    The last status in `result` must be the status of the set.
    """
    *children, set_status = result.statuses
    set_status = replace(
        set_status, conditions=(*set_status.conditions, *status.build_deprecated_conditions(read.warning_texts))
    )
    findings = (*create_field_findings(manifest, read.warnings, ControllerCodes.DEPRECATED), *result.findings)
    return replace(result, statuses=(*children, set_status), findings=findings)


def expand_valid_set(
    manifest: ConfigObject,
    spec: PackageVariantSetSpec,
    catalog: Catalog,
    inputs: PackageVariantInputs,
    upstreams: UpstreamResolver,
) -> SetExpansion | SetFailure:
    """Return the PackageVariants that a valid set requests, or the failure.

    The function does not check whether the names of the PackageVariants are already used.
    """
    return _calculate_expansion(
        manifest, spec, _SetView(manifest.key.namespace, catalog, inputs, upstreams), inputs.cel_limits
    )


def _calculate_expansion(
    manifest: ConfigObject, spec: PackageVariantSetSpec, snapshot: SetSnapshot, cel_limits: ExpressionLimits
) -> SetExpansion | SetFailure:
    variant_set = IdentifiedSet(manifest.key, str(manifest.data["metadata"].get("uid") or manifest.key.uid), spec)
    return expand_set(variant_set, snapshot, cel_limits)


def _get_expansion(
    manifest: ConfigObject,
    spec: PackageVariantSetSpec,
    view: _SetView,
    taken_names: Collection[str],
    cache: PackageVariantCache,
) -> SetExpansion | SetFailure:
    cel_limits = view.inputs.cel_limits
    expansion = cache.get_expansion(
        manifest,
        view,
        cel_limits,
        view.get_basis,
        lambda snapshot: _calculate_expansion(manifest, spec, snapshot, cel_limits),
    )
    return expansion if isinstance(expansion, SetFailure) else find_name_conflict(expansion, taken_names) or expansion


def _build_failed_result(
    manifest: ConfigObject, conditions: tuple[Condition, ...], findings: tuple[Finding, ...]
) -> ControllerResult:
    set_status = ConfigStatus(manifest.key, manifest.api_version, conditions)
    return ControllerResult(statuses=(set_status,), findings=findings, kept_owners=frozenset({manifest.key}))


def _create_failure_finding(manifest: ConfigObject, failure: SetFailure | SkippedTarget) -> Finding:
    location = manifest.location_of(failure.path) if failure.path else manifest.location
    return BY_REASON[failure.reason].finding(failure.message, location)


def _get_result(
    manifest: ConfigObject, expansion: SetExpansion, view: _SetView, cache: PackageVariantCache
) -> ControllerResult:
    inputs = view.inputs
    properties = cache.target_properties.get_or_create(
        (expansion, inputs.repositories), lambda: view.list_target_properties(expansion)
    )
    key = (IdentityKey(expansion), *_iterate_inputs(manifest, expansion, view), properties)
    set_variants = cache.set_variants.get_or_create(key, lambda: _resolve_variants(manifest, expansion, view))
    parts = (
        manifest,
        expansion,
        set_variants,
        inputs.children.get(manifest.key, _NO_COUNTS),
        inputs.blocked_counts.get(manifest.key, _NO_COUNTS),
    )
    return cache.set_results.get_or_create(parts, lambda: _build_result(manifest, expansion, set_variants, inputs))


def _build_result(
    manifest: ConfigObject, expansion: SetExpansion, set_variants: SetVariants, inputs: PackageVariantInputs
) -> ControllerResult:
    deletions = guard_deletions(
        expansion, inputs.children.get(manifest.key, ()), manifest.annotations, inputs.max_delete_percent,
        inputs.blocked_counts.get(manifest.key, {}), str(manifest.key),
    )  # fmt: skip
    variants, statuses = set_variants
    return ControllerResult(
        tuple(variant for variant in variants if not isinstance(variant, StalledVariant)),
        tuple(stalled for stalled in variants if isinstance(stalled, StalledVariant)),
        (*statuses, _build_set_status(manifest, expansion, deletions.failure)),
        _create_findings(manifest, expansion, deletions.failure),
        frozenset({manifest.key} if expansion.skipped else ()),
        guards={manifest.key: _build_guard(manifest, deletions)},
    )


def _resolve_variants(manifest: ConfigObject, expansion: SetExpansion, view: _SetView) -> SetVariants:
    variants = tuple(
        _add_selected_source(_resolve_generated_variant(generated, manifest, view), generated, manifest, view)
        for generated in expansion.variants
    )
    return variants, tuple(map(_build_variant_status, expansion.variants))


def _add_selected_source(
    variant: Variant | StalledVariant, generated: GeneratedVariant, manifest: ConfigObject, view: _SetView
) -> Variant | StalledVariant:
    """Add the files of selected config objects to the field `sources` of a package variant.

    A target of the set can select config objects. It requests a package for each selected object. The downstream
    Repository of this package has the same name as the object.
    """
    targets = (generated.variant_set.spec.targets[index] for index in generated.target_indexes)
    kinds = {
        (selection.api_version, selection.kind)
        for target in targets
        if isinstance(selection := target.selection, ObjectSelection)
    }
    if isinstance(variant, StalledVariant) or not kinds:
        return variant
    object_names = ((*kind, view.namespace, generated.key.repo) for kind in sorted(kinds))
    selected_objects = [
        selected_object for name in object_names if (selected_object := view.catalog.objects_by_name.get(name))
    ]
    return (
        replace(variant, sources=collect_config_sources([manifest, *selected_objects])) if selected_objects else variant
    )


def _iterate_inputs(manifest: ConfigObject, expansion: SetExpansion, view: _SetView) -> Iterator[Hashable]:
    """Yield all data that affects the package variants of a set and is not part of the expansion of the set."""
    inputs, namespace = view.inputs, view.namespace
    yield inputs.engine
    yield inputs.now_seconds if any(upstream_spec.settle_seconds for upstream_spec in expansion.upstreams) else 0
    for upstream in expansion.upstreams:
        resolution = view.upstreams.resolve(namespace, upstream)
        yield resolution
        if isinstance(resolution, ResolvedRevision):
            repository = inputs.repositories[namespace, resolution.repository]
            if repository.artifacts:
                yield repository.artifacts
                continue
            seconds = inputs.upstreams.get_commit_seconds(repository, resolution.commit)
            yield (repository.url, inputs.upstreams.get_url(repository), seconds)
    for api_version, kind, name in expansion.values_objects:
        yield IdentityKey(view.catalog.objects_by_name.get((api_version, kind, namespace, name)))
    find_owner = view.catalog.tenants.find_owner
    for file in expansion.values_files:
        yield IdentityKey(view.catalog.documents(file)), find_owner(file), find_owner(manifest.file)


def _build_guard(manifest: ConfigObject, deletions: SetDeletions) -> DeletionGuard:
    allowed, blocked = (_build_targets(manifest, keys) for keys in (deletions.allowed, deletions.blocked))
    acknowledged_hashes = read_acknowledged_hashes(manifest.annotations)
    reason = deletions.failure.message if deletions.failure else ""
    confirmed = allowed if deletions.is_confirmed else frozenset[PackageTarget]()
    return DeletionGuard(allowed, reason, deletions.existing_count, blocked, acknowledged_hashes, confirmed)


def _build_targets(manifest: ConfigObject, keys: Iterable[DownstreamKey]) -> frozenset[PackageTarget]:
    return frozenset(PackageTarget(manifest.key.namespace, key.repo, key.package) for key in keys)


def _resolve_generated_variant(
    generated: GeneratedVariant, manifest: ConfigObject, view: _SetView
) -> Variant | StalledVariant:
    owner = PackageOwner(_build_variant_key(generated), PORCH_API_VERSION, manifest.key, generated.target_indexes)
    return resolve_variant(owner, generated.spec, manifest, view.catalog, view.inputs, view.upstreams)


def _create_findings(
    manifest: ConfigObject, expansion: SetExpansion, failure: SetFailure | None
) -> tuple[Finding, ...]:
    target_findings = tuple(_create_failure_finding(manifest, target) for target in expansion.skipped)
    if failure:
        return (*target_findings, BY_REASON[failure.reason].finding(failure.message, manifest.location))
    if expansion.variants or target_findings:
        return target_findings
    return (VariantCodes.NO_MATCH.finding(f"no target of {manifest.key} matches an object", manifest.location),)


def _build_variant_key(generated: GeneratedVariant) -> ObjectKey:
    return ObjectKey(PORCH_GROUP, "PackageVariant", generated.namespace, generated.name)


def _build_variant_status(generated: GeneratedVariant) -> ConfigStatus:
    data = generated.as_data()
    return ConfigStatus(_build_variant_key(generated), PORCH_API_VERSION, spec=data["spec"], metadata=data["metadata"])


def _build_set_status(manifest: ConfigObject, expansion: SetExpansion, failure: SetFailure | None) -> ConfigStatus:
    skipped_messages = [target.message for target in expansion.skipped]
    conditions = (
        status.build_failed_set_conditions(failure)
        if failure
        else status.build_reconciled_set_conditions((), skipped_messages)
    )
    fields = {
        "targets": [_format_target(generated) for generated in expansion.variants],
        "skipped": len(skipped_messages),
    }
    return ConfigStatus(
        manifest.key,
        manifest.api_version,
        conditions,
        fields,
        children=tuple(map(_build_variant_key, expansion.variants)),
    )


def _format_target(generated: GeneratedVariant) -> dict[str, object]:
    return {
        "repo": generated.key.repo,
        "package": generated.key.package,
        "packageVariant": generated.name,
        "targetIndex": generated.target_indexes[0],
    }


@dataclass(frozen=True)
class _SetView:
    """The objects that one PackageVariantSet can use. All these objects are in the namespace of the set."""

    namespace: str
    catalog: Catalog
    inputs: PackageVariantInputs
    upstreams: UpstreamResolver

    def get_basis(self, query: str) -> object | None:
        """Return the object from which a method of `SetSnapshot` computes its results.

        If a later pass returns the same object, the results of the method have not changed. Return None if the method
        must be called again in each pass.

        Args:
            query: The name of the method.
        """
        return self.inputs.repositories if query == "find_repository" else None

    def list_target_properties(self, expansion: SetExpansion) -> tuple[Hashable, ...]:
        """For each variant of the set, return the properties of the downstream Repository that affect the package.

        The result has the order of `expansion.variants`. An item is None if the Repository does not exist.
        """
        repositories = (self.inputs.repositories.get((self.namespace, name)) for name in expansion.repositories)
        if not expansion.has_charts:
            return tuple(repository.deployment if repository else None for repository in repositories)
        return tuple(
            (repository.deployment, *map(repository.annotations.get, CLUSTER_ANNOTATIONS)) if repository else None
            for repository in repositories
        )

    def find_repository(self, name: str) -> Repository | None:
        return self.inputs.repositories.get((self.namespace, name))

    def describe_upstream(self, upstream: UpstreamSpec) -> Mapping[str, Any] | UnresolvedUpstream:
        return self.upstreams.describe(self.namespace, upstream)

    def find_revision_set(self, name: str) -> Mapping[str, Any] | None:
        manifest = self.catalog.objects_by_name.get(
            (PackageRevisionSet.api_versions[0], "PackageRevisionSet", self.namespace, name)
        )
        return manifest.data if manifest else None

    def has_kind(self, api_version: str, kind: str) -> bool:
        has_objects = any(
            (api_version, kind) == (known_version, known_kind) for known_version, known_kind, _ in self.catalog.types
        )
        return has_objects or self._is_defined(api_version, kind)

    def _is_defined(self, api_version: str, kind: str) -> bool:
        group, _ = split_api_version(api_version)
        definitions = self.catalog.objects_of_kind("apiextensions.k8s.io", "CustomResourceDefinition")
        return any(_is_definition_of(definition.data.get("spec"), group, kind) for definition in definitions)

    def list_objects(self, api_version: str, kind: str) -> Sequence[ConfigObject]:
        return self.catalog.objects_of_type(api_version, kind, self.namespace)


def _is_definition_of(spec: object, group: str, kind: str) -> bool:
    if not isinstance(spec, dict):
        return False
    names = spec.get("names")
    return isinstance(names, dict) and spec.get("group") == group and names.get("kind") == kind
