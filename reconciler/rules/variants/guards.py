"""Guards on what a set no longer wants: too much at once is held until somebody says so (porch 11.6, design 10.15)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from reconciler.rules.guards import ACK_DELETIONS, deletion_hash, existing_before, held_message, is_too_much
from reconciler.rules.variants.naming import TargetKey
from reconciler.rules.variants.sets import Expansion, SetFailure

ALLOW_EMPTY = "reconciler.dev/allow-empty"


@dataclass(frozen=True)
class Deletions:
    """Which existing variants go now, and which would but are held, with the reason; `existing` is how many count.

    `is_confirmed`: a person has acknowledged exactly those that go now.
    """

    now: tuple[TargetKey, ...] = ()
    held: tuple[TargetKey, ...] = ()
    why: SetFailure | None = None
    existing: int = 0
    is_confirmed: bool = False


def guard_deletions(
    expansion: Expansion,
    existing: Iterable[TargetKey],
    annotations: Mapping[str, str],
    max_percent: int = 30,
    held: Mapping[TargetKey, int] | None = None,
) -> Deletions:
    """Decide about the existing variants that are not wanted any more.

    Held are all of a set's variants at once, and more than `max_percent` of them (one of two is 50 %), unless the
    set's `annotations` allow it. What a skipped target may stand for is not deleted at all. `held` says of those that
    were held before how many existed then: what the set has made since is no reason to let them go.
    """
    before = set(existing)
    doomed = _doomed(expansion, before)
    if not doomed:
        return Deletions()
    token = deletion_hash(doomed)
    if annotations.get(ACK_DELETIONS) == token:
        return Deletions(now=doomed, is_confirmed=True)
    total = existing_before(doomed, len(before), held or {})
    if not expansion.variants:
        return _empty(doomed, annotations, token, total)
    if is_too_much(len(doomed), total, max_percent):
        why = SetFailure("DeletionHeld", held_message(doomed, total, "package variants", "the set"))
        return Deletions(held=doomed, why=why, existing=total)
    return Deletions(now=doomed)


def name_conflict(expansion: Expansion, foreign_names: Collection[str]) -> SetFailure | None:
    """Tell which wanted variants have the names of PackageVariants that are not this set's (porch 11.6)."""
    if expansion.names.isdisjoint(foreign_names):
        return None
    taken = [variant.name for variant in expansion.variants if variant.name in foreign_names]
    quoted = ", ".join(f'"{name}"' for name in taken)
    return SetFailure("NameConflict", f"package variants with these names exist and are not owned by the set: {quoted}")


def _doomed(expansion: Expansion, before: set[TargetKey]) -> tuple[TargetKey, ...]:
    if any(skipped.key is None for skipped in expansion.skipped):
        return ()
    kept = {variant.key for variant in expansion.variants} | {skipped.key for skipped in expansion.skipped}
    return tuple(sorted(before - kept))


def _empty(doomed: tuple[TargetKey, ...], annotations: Mapping[str, str], token: str, total: int) -> Deletions:
    if annotations.get(ALLOW_EMPTY) == "true":
        return Deletions(now=doomed, is_confirmed=True)
    message = (
        f"no target matches, and all {len(doomed)} package variants would be deleted; to confirm, annotate the set "
        f'with {ALLOW_EMPTY}: "true" or {ACK_DELETIONS}: "{token}"'
    )
    return Deletions(held=doomed, why=SetFailure("NoTargets", message), existing=total)
