"""Expanding a set: from its targets to the PackageVariants it wants, or the reason why it wants none (porch 11)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

from reconciler.expressions import Limits
from reconciler.krm.identity import ObjectKey
from reconciler.krm.messages import join_messages
from reconciler.rules.variants.inputs import Described, TemplateError
from reconciler.rules.variants.model import PackageVariantSpec, Upstream
from reconciler.rules.variants.naming import TargetKey, name_variants
from reconciler.rules.variants.read_set import SET_API_VERSION, read_revision_set
from reconciler.rules.variants.read_variant import VARIANT_API_VERSION, read_variant_spec
from reconciler.rules.variants.set_model import PackageVariantSetSpec
from reconciler.rules.variants.template import place_target, render_spec
from reconciler.rules.variants.unroll import TargetContext, Targets, UnknownKind, unroll
from reconciler.rules.variants.upstream import Unresolved

SET_LABEL = "config.porch.kpt.dev/packagevariantset"
FINALIZER = "config.porch.kpt.dev/packagevariants"


@dataclass(frozen=True)
class PackageVariantSet:
    """A set with its identity; `uid` is what its variants are marked with (porch 1)."""

    key: ObjectKey
    uid: str
    spec: PackageVariantSetSpec


class SetWorld(Targets, Protocol):
    """What a set may look at, all of it in its own namespace."""

    def repository(self, name: str) -> Described | None:
        """Return a Repository."""
        ...

    def upstream(self, upstream: Upstream) -> Mapping[str, Any] | Unresolved:
        """Return what expressions see of an upstream revision: name, namespace, labels, annotations (porch 11.4)."""
        ...

    def revision_set(self, name: str) -> Mapping[str, Any] | None:
        """Return a PackageRevisionSet object as data (porch 14.3)."""
        ...


@dataclass(frozen=True)
class SetFailure:
    """Why a set is left as it was: nothing of it is created, updated or deleted."""

    reason: str
    message: str


@dataclass(frozen=True)
class GeneratedVariant:
    """A PackageVariant that a set wants. `target_indexes`: the targets that ask for it, several when they agree."""

    key: TargetKey
    name: str
    namespace: str
    spec: PackageVariantSpec
    set: PackageVariantSet
    target_indexes: tuple[int, ...]

    def as_data(self) -> dict[str, Any]:
        """Return the whole object, as the status branch shows it (porch 11.5)."""
        owner = {
            "apiVersion": SET_API_VERSION,
            "kind": self.set.key.kind,
            "name": self.set.key.name,
            "uid": self.set.uid,
            "controller": True,
            "blockOwnerDeletion": True,
        }
        metadata = {
            "name": self.name,
            "namespace": self.namespace,
            "labels": {SET_LABEL: self.set.uid},
            "ownerReferences": [owner],
            "finalizers": [FINALIZER],
        }
        spec = self.spec.as_data()
        return {"apiVersion": VARIANT_API_VERSION, "kind": "PackageVariant", "metadata": metadata, "spec": spec}


@dataclass(frozen=True)
class SkippedTarget:
    """A target that failed under `errorPolicy: skipTarget`; its variant stays as it is.

    `key` is None when not even the downstream could be worked out: then nothing of the set may be deleted.
    """

    index: int
    reason: str
    message: str
    key: TargetKey | None = None


@dataclass(frozen=True)
class Expansion:
    """What a set wants, sorted by key, and what it could not work out."""

    variants: tuple[GeneratedVariant, ...]
    skipped: tuple[SkippedTarget, ...] = ()

    @cached_property
    def upstreams(self) -> tuple[Upstream, ...]:
        """The upstreams that its variants have, each once."""
        return tuple(dict.fromkeys(one.spec.upstream for one in self.variants))

    @cached_property
    def repositories(self) -> tuple[str, ...]:
        """The names of the Repositories that its variants go to, in their order."""
        return tuple(one.spec.downstream.repo for one in self.variants)

    @cached_property
    def names(self) -> frozenset[str]:
        """The names of its variants."""
        return frozenset(one.name for one in self.variants)


@dataclass(frozen=True)
class _Rendered:
    key: TargetKey
    spec: PackageVariantSpec
    index: int


def expand_set(wanted: PackageVariantSet, world: SetWorld, cel: Limits) -> Expansion | SetFailure:
    """Return the PackageVariants of a set, or why there are none (porch 11.2 to 11.6); `cel` limits each expression."""
    upstreams = _load_upstreams(wanted.spec, world)
    if isinstance(upstreams, SetFailure):
        return upstreams
    contexts = unroll(wanted.spec.targets, [upstream for upstream, _ in upstreams], world, wanted.key.namespace)
    if isinstance(contexts, UnknownKind):
        return SetFailure("NoMatchingTargets", str(contexts))
    outcomes = [_render(context, upstreams[context.upstream_index], wanted, world, cel) for context in contexts]
    skipped = tuple(outcome for outcome in outcomes if isinstance(outcome, SkippedTarget))
    if skipped and wanted.spec.error_policy == "stopAll":
        return SetFailure(skipped[0].reason, join_messages(one.message for one in skipped))
    rendered = [outcome for outcome in outcomes if isinstance(outcome, _Rendered)]
    duplicates = _duplicates(rendered)
    return duplicates or Expansion(_name(rendered, wanted), skipped)


_Seen = tuple[Upstream, Mapping[str, Any]]


def _load_upstreams(spec: PackageVariantSetSpec, world: SetWorld) -> list[_Seen] | SetFailure:
    upstreams = _named_upstreams(spec, world)
    if isinstance(upstreams, SetFailure):
        return upstreams
    if len(upstreams) > 1 and (twofold := [i for i, target in enumerate(spec.targets) if target.names_packages]):
        message = f"spec.targets[{twofold[0]}]: packageNames cannot be used with more than one upstream"
        return SetFailure("ValidationError", message)
    seen: list[_Seen] = []
    for upstream in upstreams:
        found = world.upstream(upstream)
        if isinstance(found, Unresolved):
            return SetFailure(found.reason, found.message)
        seen.append((upstream, found))
    return seen


def _named_upstreams(spec: PackageVariantSetSpec, world: SetWorld) -> list[Upstream] | SetFailure:
    upstreams = list(spec.upstreams)
    for name in spec.upstream_sets:
        data = world.revision_set(name)
        if data is None:
            return SetFailure("UpstreamNotFound", f'could not find PackageRevisionSet "{name}"')
        read = read_revision_set(data)
        if read.errors:
            return SetFailure("ValidationError", f'PackageRevisionSet "{name}": {"; ".join(read.errors)}')
        upstreams += read.upstreams
    return upstreams


def _render(
    context: TargetContext, upstream: _Seen, wanted: PackageVariantSet, world: SetWorld, cel: Limits
) -> _Rendered | SkippedTarget:
    try:
        placed = place_target(context, *upstream, world.repository, wanted.key.namespace, cel)
    except TemplateError as error:
        return SkippedTarget(context.index, "RenderError", f"{context}: {error}")
    try:
        data = render_spec(placed)
    except TemplateError as error:
        return SkippedTarget(context.index, "RenderError", f"{context}: {error}", placed.key)
    read = read_variant_spec(data)
    if read.spec is None:
        message = f"{context}: {'; '.join(read.errors)}"
        return SkippedTarget(context.index, "ValidationError", message, placed.key)
    return _Rendered(placed.key, read.spec, context.index)


def _duplicates(rendered: Sequence[_Rendered]) -> SetFailure | None:
    messages = []
    for key, same in sorted(_by_key(rendered).items()):
        if any(one.spec != same[0].spec for one in same):
            indexes = sorted({one.index for one in same})
            messages.append(f"{key} is asked for differently by {', '.join(f'spec.targets[{i}]' for i in indexes)}")
    return SetFailure("DuplicateTarget", join_messages(messages)) if messages else None


def _by_key(rendered: Iterable[_Rendered]) -> dict[TargetKey, list[_Rendered]]:
    by_key: dict[TargetKey, list[_Rendered]] = {}
    for one in rendered:
        by_key.setdefault(one.key, []).append(one)
    return by_key


def _name(rendered: Sequence[_Rendered], wanted: PackageVariantSet) -> tuple[GeneratedVariant, ...]:
    by_key = _by_key(rendered)
    names = name_variants(wanted.key.name, by_key)
    return tuple(
        GeneratedVariant(
            key, names[key], wanted.key.namespace, same[0].spec, wanted, tuple(sorted({one.index for one in same}))
        )
        for key, same in sorted(by_key.items())
    )
