"""One PackageVariantSet: its variants, or why it is left as it was (porch 11, design 10.33)."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from reconciler.expressions import Limits
from reconciler.krm.conditions import Condition
from reconciler.krm.findings import Finding
from reconciler.krm.identity import ObjectKey, split_api_version
from reconciler.rules.codes import DEPRECATED
from reconciler.rules.guards import ACK_DELETIONS
from reconciler.rules.remembered import Same
from reconciler.rules.repository import Repository
from reconciler.rules.variant import ConfigStatus, Guard, Owner, Place, RoomResult, Stalled, Variant, sources_of
from reconciler.rules.variants import status
from reconciler.rules.variants.codes import BY_REASON, NO_MATCH, NOT_PORTABLE, VALIDATION_ERROR
from reconciler.rules.variants.field_places import field_finding, field_findings
from reconciler.rules.variants.guards import Deletions, guard_deletions, name_conflict
from reconciler.rules.variants.memory import Memory, Placed
from reconciler.rules.variants.model import Upstream
from reconciler.rules.variants.naming import TargetKey
from reconciler.rules.variants.portability import portability_notes
from reconciler.rules.variants.read_set import REVISION_SET_API_VERSION, read_package_variant_set
from reconciler.rules.variants.read_variant import VARIANT_API_VERSION
from reconciler.rules.variants.set_model import ObjectSelection, PackageVariantSetSpec
from reconciler.rules.variants.sets import (
    Expansion,
    GeneratedVariant,
    PackageVariantSet,
    SetFailure,
    SetWorld,
    SkippedTarget,
    expand_set,
)
from reconciler.rules.variants.singles import place_variant
from reconciler.rules.variants.surroundings import Surroundings, Upstreams
from reconciler.rules.variants.upstream import Resolved, Unresolved
from reconciler.snapshot.catalog import PORCH_GROUP, Catalog, ConfigObject


def result_of_set(
    one: ConfigObject, catalog: Catalog, around: Surroundings, upstreams: Upstreams, taken: Collection[str],
    memory: Memory,
) -> RoomResult:  # fmt: skip
    """Return what a PackageVariantSet asks for; one that fails is kept, and so are its variants.

    `taken` are the names of the PackageVariants of its namespace that are not its own.
    """
    spec, errors, warnings = read_package_variant_set(one.data, around.cel)
    if spec is None:
        result = _failed(one, status.set_invalid(errors), field_findings(one, errors, VALIDATION_ERROR))
    else:
        result = _result_of_sound_set(one, spec, _SetView(one.key.namespace, catalog, around, upstreams), taken, memory)
        notes = field_findings(one, portability_notes(spec, around.cel), NOT_PORTABLE)
        result = replace(result, findings=(*result.findings, *notes))
    return _noted(result, one, warnings) if warnings else result


def _result_of_sound_set(
    one: ConfigObject, spec: PackageVariantSetSpec, view: _SetView, taken: Collection[str], memory: Memory
) -> RoomResult:
    expansion = _expand(one, spec, view, taken, memory)
    if isinstance(expansion, SetFailure):
        return _failed(one, status.set_failed(expansion), (_failure(one, expansion),))
    return _reconciled(one, expansion, view, memory)


def _noted(result: RoomResult, one: ConfigObject, warnings: Sequence[str]) -> RoomResult:
    """Add what is written in a deprecated way to the findings, and to the set's own status, which is the last."""
    *children, own = result.statuses
    own = replace(own, conditions=(*own.conditions, *status.deprecated(warnings)))
    findings = (*field_findings(one, warnings, DEPRECATED), *result.findings)
    return replace(result, statuses=(*children, own), findings=findings)


def expansion_of(
    one: ConfigObject, spec: PackageVariantSetSpec, catalog: Catalog, around: Surroundings, upstreams: Upstreams
) -> Expansion | SetFailure:
    """Return what a sound set asks for, whether or not the names of its PackageVariants are free."""
    return _expanded(one, spec, _SetView(one.key.namespace, catalog, around, upstreams), around.cel)


def _expanded(one: ConfigObject, spec: PackageVariantSetSpec, world: SetWorld, cel: Limits) -> Expansion | SetFailure:
    wanted = PackageVariantSet(one.key, str(one.data["metadata"].get("uid") or one.key.uid), spec)
    return expand_set(wanted, world, cel)


def _expand(
    one: ConfigObject, spec: PackageVariantSetSpec, view: _SetView, taken: Collection[str], memory: Memory
) -> Expansion | SetFailure:
    cel = view.around.cel
    expansion = memory.expansion(one, view, cel, view.ground, lambda world: _expanded(one, spec, world, cel))
    return expansion if isinstance(expansion, SetFailure) else name_conflict(expansion, taken) or expansion


def _failed(one: ConfigObject, conditions: tuple[Condition, ...], findings: tuple[Finding, ...]) -> RoomResult:
    told = ConfigStatus(one.key, one.api_version, conditions)
    return RoomResult(statuses=(told,), findings=findings, kept=frozenset({one.key}))


def _failure(one: ConfigObject, failure: SetFailure | SkippedTarget) -> Finding:
    # which of several upstreams a target failed at is told by the message only
    field = "spec.upstream" if failure.reason.startswith("Upstream") else ""
    return field_finding(one, failure.message, BY_REASON[failure.reason], field)


def _reconciled(one: ConfigObject, expansion: Expansion, view: _SetView, memory: Memory) -> RoomResult:
    around = view.around
    deployments = memory.deployments.of((expansion, around.repositories), lambda: view.deployments(expansion))
    key = (Same(expansion), *_made_of(expansion, view), deployments)
    placed = memory.placed.of(key, lambda: _placed(one, expansion, view))
    parts = (one, expansion, placed, around.children.get(one.key, _NOTHING), around.held.get(one.key, _NOTHING))
    return memory.results.of(parts, lambda: _told(one, expansion, placed, around))


def _told(one: ConfigObject, expansion: Expansion, made: Placed, around: Surroundings) -> RoomResult:
    guarded = guard_deletions(
        expansion, around.children.get(one.key, ()), one.annotations, around.max_delete_percent,
        around.held.get(one.key, {}),
    )  # fmt: skip
    placed, statuses = made
    return RoomResult(
        tuple(variant for variant in placed if not isinstance(variant, Stalled)),
        tuple(stalled for stalled in placed if isinstance(stalled, Stalled)),
        (*statuses, _set_status(one, expansion, guarded.why)),
        _findings(one, expansion, guarded.why),
        frozenset({one.key} if expansion.skipped else ()),
        guards={one.key: _guard(one, guarded)},
    )


def _placed(one: ConfigObject, expansion: Expansion, view: _SetView) -> Placed:
    placed = tuple(
        _with_selected(_place(each, one, view.around, view.upstreams), each, one, view) for each in expansion.variants
    )
    return placed, tuple(map(_generated_status, expansion.variants))


def _with_selected(
    placed: Variant | Stalled, made: GeneratedVariant, one: ConfigObject, view: _SetView
) -> Variant | Stalled:
    """Return a variant with the file of the object that selects its Repository, where that has its name."""
    targets = (made.set.spec.targets[index] for index in made.target_indexes)
    kinds = {
        (each.api_version, each.kind) for target in targets if isinstance(each := target.selection, ObjectSelection)
    }
    if isinstance(placed, Stalled) or not kinds:
        return placed
    named = ((*kind, view.namespace, made.key.repo) for kind in sorted(kinds))
    selected = [found for name in named if (found := view.catalog.named.get(name))]
    return replace(placed, sources=sources_of([one, *selected])) if selected else placed


def _made_of(expansion: Expansion, view: _SetView) -> Iterator[Hashable]:
    """Yield what the variants of a set are made of beside what it says of them."""
    around, namespace = view.around, view.namespace
    yield around.engine
    yield around.now if any(one.settle_seconds for one in expansion.upstreams) else 0
    for upstream in expansion.upstreams:
        found = view.upstreams.resolve(namespace, upstream)
        yield found
        if isinstance(found, Resolved):
            repository = around.repositories[namespace, found.repository]
            seconds = around.upstreams.seconds(repository, found.commit)
            yield (repository.url, around.upstreams.url(repository), seconds)


def _guard(one: ConfigObject, guarded: Deletions) -> Guard:
    now, held = (_places(one, keys) for keys in (guarded.now, guarded.held))
    acknowledged = frozenset({one.annotations.get(ACK_DELETIONS, "")} - {""})
    why, confirmed = guarded.why.message if guarded.why else "", now if guarded.is_confirmed else frozenset[Place]()
    return Guard(now, why, guarded.existing, held, acknowledged, confirmed)


def _places(one: ConfigObject, keys: Iterable[TargetKey]) -> frozenset[Place]:
    return frozenset(Place(one.key.namespace, key.repo, key.package) for key in keys)


def _place(
    generated: GeneratedVariant, one: ConfigObject, around: Surroundings, upstreams: Upstreams
) -> Variant | Stalled:
    owner = Owner(_key(generated), VARIANT_API_VERSION, one.key, generated.target_indexes)
    return place_variant(owner, generated.spec, one, around, upstreams)


def _findings(one: ConfigObject, expansion: Expansion, held: SetFailure | None) -> tuple[Finding, ...]:
    skipped = tuple(_failure(one, target) for target in expansion.skipped)
    if held:
        return (*skipped, BY_REASON[held.reason].finding(held.message, one.where))
    if expansion.variants or skipped:
        return skipped
    return (NO_MATCH.finding(f"no target of {one.key} matches anything", one.where),)


def _key(generated: GeneratedVariant) -> ObjectKey:
    return ObjectKey(PORCH_GROUP, "PackageVariant", generated.namespace, generated.name)


def _generated_status(generated: GeneratedVariant) -> ConfigStatus:
    data = generated.as_data()
    return ConfigStatus(_key(generated), VARIANT_API_VERSION, spec=data["spec"], metadata=data["metadata"])


def _set_status(one: ConfigObject, expansion: Expansion, held: SetFailure | None) -> ConfigStatus:
    skipped = [target.message for target in expansion.skipped]
    conditions = status.set_failed(held) if held else status.set_reconciled((), skipped)
    fields = {"targets": [_target_entry(made) for made in expansion.variants], "skipped": len(skipped)}
    return ConfigStatus(one.key, one.api_version, conditions, fields, children=tuple(map(_key, expansion.variants)))


def _target_entry(made: GeneratedVariant) -> dict[str, object]:
    return {
        "repo": made.key.repo,
        "package": made.key.package,
        "packageVariant": made.name,
        "targetIndex": made.target_indexes[0],
    }


_NOTHING: Mapping[TargetKey, int] = {}


@dataclass(frozen=True)
class _SetView:
    """What one set may look at: its own namespace only."""

    namespace: str
    catalog: Catalog
    around: Surroundings
    upstreams: Upstreams

    def ground(self, question: str) -> object | None:
        """Return what all answers to a question follow from: while it is the same object, they are the same."""
        return self.around.repositories if question == "repository" else None

    def deployments(self, expansion: Expansion) -> tuple[bool | None, ...]:
        """Return for each variant whether it goes to a cluster; None without its Repository."""
        known = (self.around.repositories.get((self.namespace, name)) for name in expansion.repositories)
        return tuple(one.deployment if one else None for one in known)

    def repository(self, name: str) -> Repository | None:
        return self.around.repositories.get((self.namespace, name))

    def upstream(self, upstream: Upstream) -> Mapping[str, Any] | Unresolved:
        return self.upstreams.described(self.namespace, upstream)

    def revision_set(self, name: str) -> Mapping[str, Any] | None:
        found = self.catalog.named.get((REVISION_SET_API_VERSION, "PackageRevisionSet", self.namespace, name))
        return found.data if found else None

    def knows_kind(self, api_version: str, kind: str) -> bool:
        written = any((api_version, kind) == (known, of) for known, of, _ in self.catalog.types)
        return written or self._is_defined(api_version, kind)

    def _is_defined(self, api_version: str, kind: str) -> bool:
        group, _ = split_api_version(api_version)
        definitions = self.catalog.of_kind("apiextensions.k8s.io", "CustomResourceDefinition")
        return any(_defines(definition.data.get("spec"), group, kind) for definition in definitions)

    def select(self, api_version: str, kind: str) -> Sequence[ConfigObject]:
        return self.catalog.of_type(api_version, kind, self.namespace)


def _defines(spec: object, group: str, kind: str) -> bool:
    if not isinstance(spec, dict):
        return False
    names = spec.get("names")
    return isinstance(names, dict) and spec.get("group") == group and names.get("kind") == kind
