"""Expansion of a PackageVariantSet: the PackageVariants that its targets request, or the reason of a failure.

The module also contains the cache of the controller. The cache reuses an expansion if the data from which the expansion
was computed is unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain
from typing import Any, Protocol, TypeVar

from reconciler.api.base import read_model
from reconciler.api.helm_options import CONFIG_SOURCE, HelmOptions, split_values_file
from reconciler.api.manifest import read_manifest
from reconciler.api.porch.manifest import PORCH_API_VERSION
from reconciler.api.porch.messages import PORCH_TEMPLATES
from reconciler.api.porch.package_variant import PackageVariantSpec
from reconciler.api.porch.package_variant_set import PackageVariantSet, PackageVariantSetSpec
from reconciler.api.porch.sources import get_main_source
from reconciler.api.porch.upstream import UpstreamSpec
from reconciler.api.reconciler import PackageRevisionSet
from reconciler.catalog.catalog import ConfigObject
from reconciler.cel import ExpressionLimits
from reconciler.controllers.keyed_cache import ControllerCache, IdentityCache, KeyedCache
from reconciler.controllers.package_variants.set_targets import (
    DownstreamKey,
    ObjectMetadata,
    SelectableObjects,
    TargetContext,
    TemplateError,
    UnknownTargetKind,
    expand_targets,
    name_variants,
    render_spec,
    resolve_target,
)
from reconciler.controllers.package_variants.upstream_resolution import UnresolvedUpstream
from reconciler.controllers.results import ConfigStatus, ControllerResult, StalledVariant, Variant
from reconciler.krm.findings import Finding, join_messages
from reconciler.krm.objects import ObjectKey
from reconciler.krm.yaml import DataPath
from reconciler.lazy_dataclasses import dataclass, field, replace

SET_LABEL = "config.porch.kpt.dev/packagevariantset"
FINALIZER = "config.porch.kpt.dev/packagevariants"
_DescribedUpstream = tuple[UpstreamSpec, Mapping[str, Any]]


@dataclass(frozen=True)
class IdentifiedSet:
    """A valid PackageVariantSet with its identity. Each generated PackageVariant has a label with `uid`."""

    key: ObjectKey
    uid: str
    spec: PackageVariantSetSpec


class SetSnapshot(SelectableObjects, Protocol):
    """The objects that a PackageVariantSet can use. All these objects are in the namespace of the set."""

    def find_repository(self, name: str) -> ObjectMetadata | None:
        """Return the Repository with this name. Return None if the Repository does not exist."""
        ...

    def describe_upstream(self, upstream: UpstreamSpec) -> Mapping[str, Any] | UnresolvedUpstream:
        """Return the value of the variable `upstream` in CEL expressions: name, namespace, labels and annotations.

        Return the reason if the upstream cannot be resolved.
        """
        ...

    def find_revision_set(self, name: str) -> Mapping[str, Any] | None:
        """Return the manifest of the PackageRevisionSet with this name. Return None if this set does not exist."""
        ...


@dataclass(frozen=True)
class SetFailure:
    """Reason why a PackageVariantSet cannot be processed, or why its deletions are blocked."""

    reason: str
    message: str
    path: DataPath = ()


@dataclass(frozen=True)
class GeneratedVariant:
    """A PackageVariant that a PackageVariantSet requests.

    `target_indexes` are the indexes of all targets in `spec.targets` that request this PackageVariant. All these
    targets request the same spec.
    """

    key: DownstreamKey
    name: str
    namespace: str
    spec: PackageVariantSpec
    variant_set: IdentifiedSet
    target_indexes: tuple[int, ...]

    def as_data(self) -> dict[str, Any]:
        """Return the PackageVariant as a Kubernetes object, as it is written to the status branch."""
        owner = {
            "apiVersion": PackageVariantSet.api_versions[0],
            "kind": self.variant_set.key.kind,
            "name": self.variant_set.key.name,
            "uid": self.variant_set.uid,
            "controller": True,
            "blockOwnerDeletion": True,
        }
        metadata = {
            "name": self.name,
            "namespace": self.namespace,
            "labels": {SET_LABEL: self.variant_set.uid},
            "ownerReferences": [owner],
            "finalizers": [FINALIZER],
        }
        spec = self.spec.shared_data
        return {"apiVersion": PORCH_API_VERSION, "kind": "PackageVariant", "metadata": metadata, "spec": spec}


@dataclass(frozen=True)
class SkippedTarget:
    """A target that failed in a PackageVariantSet with `errorPolicy: skipTarget`. Its PackageVariant stays unchanged.

    `key` is None if it is unknown which package the target requests. Then no PackageVariant of the set may be deleted.
    """

    index: int
    reason: str
    message: str
    key: DownstreamKey | None = None

    @property
    def path(self) -> DataPath:
        """Path of the target."""
        return ("spec", "targets", self.index)


@dataclass(frozen=True)
class SetExpansion:
    """The PackageVariants that a PackageVariantSet requests, sorted by key, and the targets that failed."""

    variants: tuple[GeneratedVariant, ...]
    skipped: tuple[SkippedTarget, ...] = ()

    @cached_property
    def upstreams(self) -> tuple[UpstreamSpec, ...]:
        """The upstreams of the requested PackageVariants. Each upstream occurs once."""
        return tuple(dict.fromkeys(upstream for variant in self.variants for upstream in variant.spec.all_upstreams))

    @cached_property
    def repositories(self) -> tuple[str, ...]:
        """For each requested PackageVariant, the name of its downstream Repository. The order is as in `variants`."""
        return tuple(variant.spec.downstream.repo for variant in self.variants)

    @cached_property
    def values_objects(self) -> tuple[tuple[str, str, str], ...]:
        """The apiVersion, kind and name of each object with values of charts, sorted and without duplicates."""
        references = chain.from_iterable(options.values_from for options in self._chart_options)
        return tuple(sorted({(entry.api_version, entry.kind, entry.name) for entry in references}))

    @cached_property
    def values_files(self) -> tuple[str, ...]:
        """The config files with values of charts, sorted and without duplicates."""
        paths = map(split_values_file, chain.from_iterable(options.values_files for options in self._chart_options))
        return tuple(sorted({file for source, file in paths if source == CONFIG_SOURCE}))

    @property
    def has_charts(self) -> bool:
        """Whether a requested PackageVariant renders a chart."""
        return any(self._chart_options)

    @property
    def _chart_options(self) -> Iterator[HelmOptions]:
        return chain.from_iterable(variant.spec.all_helm_options for variant in self.variants)

    @cached_property
    def names(self) -> frozenset[str]:
        """The names of the requested PackageVariants."""
        return frozenset(variant.name for variant in self.variants)


@dataclass(frozen=True)
class _RenderedTarget:
    key: DownstreamKey
    spec: PackageVariantSpec
    index: int


def expand_set(
    variant_set: IdentifiedSet, snapshot: SetSnapshot, cel_limits: ExpressionLimits
) -> SetExpansion | SetFailure:
    """Return the PackageVariants that a set requests, or the failure. `cel_limits` limits each CEL expression."""
    upstreams = _describe_upstreams(variant_set.spec, snapshot)
    if isinstance(upstreams, SetFailure):
        return upstreams
    contexts = expand_targets(
        variant_set.spec, [upstream for upstream, _ in upstreams], snapshot, variant_set.key.namespace
    )
    if isinstance(contexts, UnknownTargetKind):
        return SetFailure("NoMatchingTargets", str(contexts), ("spec", "targets", contexts.index))
    rendered_targets = (
        _render(context, upstreams[context.upstream_index], variant_set, snapshot, cel_limits) for context in contexts
    )
    outcomes = [*_share_models(rendered_targets)]
    skipped = tuple(outcome for outcome in outcomes if isinstance(outcome, SkippedTarget))
    if skipped and variant_set.spec.error_policy == "stopAll":
        return SetFailure(skipped[0].reason, join_messages(target.message for target in skipped), skipped[0].path)
    rendered = [outcome for outcome in outcomes if isinstance(outcome, _RenderedTarget)]
    duplicates = _find_duplicates(rendered)
    return duplicates or SetExpansion(_build_variants(rendered, variant_set), skipped)


def _describe_upstreams(spec: PackageVariantSetSpec, snapshot: SetSnapshot) -> list[_DescribedUpstream] | SetFailure:
    upstreams = _collect_upstreams(spec, snapshot)
    if isinstance(upstreams, SetFailure):
        return upstreams
    if len(upstreams) > 1 and (
        indexes := [index for index, target in enumerate(spec.targets) if target.has_package_names]
    ):
        message = f"spec.targets[{indexes[0]}]: packageNames cannot be used with more than one upstream"
        return SetFailure("ValidationError", message, ("spec", "targets", indexes[0]))
    described: list[_DescribedUpstream] = []
    for upstream in upstreams:
        metadata = snapshot.describe_upstream(upstream)
        if isinstance(metadata, UnresolvedUpstream):
            # Use the path `spec.upstream` even if the set has several upstreams. The message shows which one failed.
            return SetFailure(metadata.reason, metadata.message, ("spec", "upstream"))
        described.append((upstream, metadata))
    return described


def _collect_upstreams(spec: PackageVariantSetSpec, snapshot: SetSnapshot) -> list[UpstreamSpec] | SetFailure:
    if spec.sources:
        # Return only one upstream, because all sources together become one package on each target.
        return [get_main_source(spec.sources).upstream]
    upstreams = list(spec.all_upstreams)
    for name in spec.upstream_sets:
        data = snapshot.find_revision_set(name)
        if data is None:
            return SetFailure("UpstreamNotFound", f'could not find PackageRevisionSet "{name}"', ("spec", "upstream"))
        revision_set = read_manifest(PackageRevisionSet, data)
        if revision_set.model is None:
            return SetFailure("ValidationError", f'PackageRevisionSet "{name}": {"; ".join(revision_set.error_texts)}')
        upstreams += revision_set.model.spec.upstreams
    return upstreams


def _render(
    context: TargetContext,
    upstream: _DescribedUpstream,
    variant_set: IdentifiedSet,
    snapshot: SetSnapshot,
    cel_limits: ExpressionLimits,
) -> _RenderedTarget | SkippedTarget:
    try:
        target = resolve_target(context, *upstream, snapshot.find_repository, variant_set.key.namespace, cel_limits)
    except TemplateError as error:
        return SkippedTarget(context.index, "RenderError", f"{context}: {error}")
    try:
        data = render_spec(target, variant_set.spec)
    except TemplateError as error:
        return SkippedTarget(context.index, "RenderError", f"{context}: {error}", target.key)
    variant = read_model(PackageVariantSpec, data, PORCH_TEMPLATES, ("spec",))
    if variant.model is None:
        message = f"{context}: {'; '.join(variant.error_texts)}"
        return SkippedTarget(context.index, "ValidationError", message, target.key)
    return _RenderedTarget(target.key, variant.model, context.index)


def _share_models(outcomes: Iterable[_RenderedTarget | SkippedTarget]) -> Iterator[_RenderedTarget | SkippedTarget]:
    """Yield the outcomes. Let the specs of successive outcomes share equal models, to save about 1 kB per model."""
    previous: PackageVariantSpec | None = None
    for outcome in outcomes:
        if isinstance(outcome, _RenderedTarget):
            if previous:
                outcome.spec.share_equal_values(previous)
            previous = outcome.spec
        yield outcome


def _find_duplicates(rendered: Sequence[_RenderedTarget]) -> SetFailure | None:
    messages, first_indexes = [], []
    for key, duplicates in sorted(_group_by_key(rendered).items()):
        if any(target.spec != duplicates[0].spec for target in duplicates):
            indexes = sorted({target.index for target in duplicates})
            first_indexes.append(indexes[0])
            messages.append(
                f"{key} is requested with different specs by {', '.join(f'spec.targets[{index}]' for index in indexes)}"
            )
    if not messages:
        return None
    return SetFailure("DuplicateTarget", join_messages(messages), ("spec", "targets", first_indexes[0]))


def _group_by_key(rendered: Iterable[_RenderedTarget]) -> dict[DownstreamKey, list[_RenderedTarget]]:
    targets_by_key: dict[DownstreamKey, list[_RenderedTarget]] = {}
    for target in rendered:
        targets_by_key.setdefault(target.key, []).append(target)
    return targets_by_key


def _build_variants(rendered: Sequence[_RenderedTarget], variant_set: IdentifiedSet) -> tuple[GeneratedVariant, ...]:
    targets_by_key = _group_by_key(rendered)
    names = name_variants(variant_set.key.name, targets_by_key)
    return tuple(
        GeneratedVariant(
            key,
            names[key],
            variant_set.key.namespace,
            targets[0].spec,
            variant_set,
            tuple(sorted({target.index for target in targets})),
        )
        for key, targets in sorted(targets_by_key.items())
    )


SetVariants = tuple[tuple[Variant | StalledVariant, ...], tuple[ConfigStatus, ...]]
"""The packages that a PackageVariantSet requests, and the statuses of the PackageVariant objects that it generates."""


class PackageVariantCache(ControllerCache):
    """Results for PackageVariants and PackageVariantSets that the next pass can use again.

    The expansion of a PackageVariantSet is reused if its manifest is unchanged, and each lookup of other objects gives
    the same result as before.
    """

    def __init__(self) -> None:
        super().__init__()
        self._expansions: dict[ObjectKey, _CachedExpansion] = {}
        self.set_variants = self.create(KeyedCache[SetVariants])
        self.set_results = self.create(IdentityCache[ControllerResult])
        self.target_properties = self.create(IdentityCache[tuple[Hashable, ...]])
        self.reference_warnings = self.create(IdentityCache[tuple[Finding, ...]])
        self.acyclic_inputs: tuple[object, ...] = ()

    def remove_expansions_except(self, set_keys: Iterable[ObjectKey]) -> None:
        """Remove the expansions of all PackageVariantSets that are not in `set_keys`."""
        kept_keys = {*set_keys}
        self._expansions = {key: cached for key, cached in self._expansions.items() if key in kept_keys}

    def get_expansion(
        self,
        manifest: ConfigObject,
        snapshot: SetSnapshot,
        cel_limits: ExpressionLimits,
        get_basis: Callable[[str], object | None],
        expand: Callable[[SetSnapshot], SetExpansion | SetFailure],
    ) -> SetExpansion | SetFailure:
        """Return the expansion of a set. Compute the expansion again if the manifest, limits or input data changed.

        `get_basis` returns the basis of a method of `SetSnapshot`: the object from which the method computes its
        results. The argument is the name of the method. If the basis is the same object as in the previous pass, the
        results of the method have not changed, and the method is not called.
        """
        cached = self._expansions.get(manifest.key)
        if (
            cached is None
            or cached.manifest is not manifest
            or cached.cel_limits != cel_limits
            or not cached.is_current(snapshot, get_basis)
        ):
            recorder = _RecordingSnapshot(snapshot)
            cached = _CachedExpansion(manifest, cel_limits, recorder.results, expand(recorder))
        bases = {name: get_basis(name) for name in cached.results}
        self._expansions[manifest.key] = replace(cached, bases=bases)
        return cached.outcome


_Result = TypeVar("_Result")
_QueryResults = Mapping[str, Mapping[tuple[Any, ...], Any]]
"""Results of a snapshot's methods, by method name and arguments."""


@dataclass(frozen=True)
class _CachedExpansion:
    manifest: ConfigObject
    cel_limits: ExpressionLimits
    results: _QueryResults
    outcome: SetExpansion | SetFailure
    bases: Mapping[str, object | None] = field(default_factory=dict)

    def is_current(self, snapshot: SetSnapshot, get_basis: Callable[[str], object | None]) -> bool:
        """Return whether all recorded queries have the same results in a new snapshot."""
        unchanged_queries = {
            name for name, basis in self.bases.items() if basis is not None and get_basis(name) is basis
        }
        return all(
            getattr(snapshot, name)(*arguments) == result
            for name, results in self.results.items()
            if name not in unchanged_queries
            for arguments, result in results.items()
        )


@dataclass
class _RecordingSnapshot:
    """Wrapper of a snapshot that records every query and its result."""

    snapshot: SetSnapshot
    results: dict[str, dict[tuple[Any, ...], Any]] = field(default_factory=dict)

    def find_repository(self, name: str) -> ObjectMetadata | None:
        return self._record("find_repository", self.snapshot.find_repository(name), name)

    def describe_upstream(self, upstream: UpstreamSpec) -> Mapping[str, Any] | UnresolvedUpstream:
        return self._record("describe_upstream", self.snapshot.describe_upstream(upstream), upstream)

    def find_revision_set(self, name: str) -> Mapping[str, Any] | None:
        return self._record("find_revision_set", self.snapshot.find_revision_set(name), name)

    def has_kind(self, api_version: str, kind: str) -> bool:
        return self._record("has_kind", self.snapshot.has_kind(api_version, kind), api_version, kind)

    def list_objects(self, api_version: str, kind: str) -> Sequence[ObjectMetadata]:
        return self._record("list_objects", self.snapshot.list_objects(api_version, kind), api_version, kind)

    def _record(self, name: str, result: _Result, *arguments: Any) -> _Result:
        self.results.setdefault(name, {})[arguments] = result
        return result
