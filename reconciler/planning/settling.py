"""Settling: until a moved reference has stood long enough, its package stays at the last upstream (porch 14.1)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from reconciler.krm.findings import Finding, Where
from reconciler.planning.outcome import Blocked
from reconciler.planning.state import PackageRecord, Seen
from reconciler.rules.variant import Settling, Upstream, Variant
from reconciler.rules.variants.codes import UPSTREAM_SETTLING
from reconciler.rules.variants.status import variant_stalled
from reconciler.snapshot.objects import CommitId, TreeId


def hold(variant: Variant, record: PackageRecord | None, seen: Seen) -> Variant | Blocked:
    """Return the variant as it is to be decided on: at its last upstream while a move of it has not settled.

    `record` is what is remembered of the variant's own package. Without a last upstream there is nothing to stay at,
    so that nothing is made. A floating reference that leads to the content that is there already has not moved, and
    the lock keeps what it says (porch 5, needs_upstream_update).
    """
    upstream = variant.upstream
    if upstream is None:
        return variant
    known = record.outcome.get("upstream", {}) if record and record.owned else {}
    last = _at(upstream, known) if known.get("tree") else None
    is_here = last is not None and _is_of(upstream, last)
    if last and is_here and last.tree == upstream.tree:
        return _staying(variant, last, None) if upstream.floating else replace(variant, settling=None)
    if variant.settling is None:
        return variant
    if last and is_here:
        return _staying(variant, last, variant.settling)
    # a last upstream in another place cannot be read from here, and must not be forgotten; and one that was never
    # acted on must not be remembered as the last
    return _stalled(replace(variant, source=last or _none(upstream)), record, seen)


def _none(upstream: Upstream) -> Upstream:
    return replace(upstream, ref="", commit=CommitId(""), tree=TreeId(""))


def _staying(variant: Variant, last: Upstream, settling: Settling | None) -> Variant:
    return replace(variant, source=last, facts={**variant.facts, "upstream": last.fact}, settling=settling)


def _at(upstream: Upstream, known: Mapping[str, Any]) -> Upstream:
    return replace(
        upstream, repo=known["repo"], directory=known["directory"], ref=known["ref"], commit=known["commit"],
        tree=known["tree"], committer_seconds=known["seconds"],
    )  # fmt: skip


def _is_of(upstream: Upstream, last: Upstream) -> bool:
    return (upstream.repo, upstream.directory) == (last.repo, last.directory)


def _stalled(variant: Variant, record: PackageRecord | None, seen: Seen) -> Blocked:
    # what waits for a time, and not for anybody, is no error
    assert variant.settling
    conditions = variant_stalled(UPSTREAM_SETTLING.name, variant.settling.message)
    return Blocked(variant, record, conditions, settling_findings(variant), seen)


def settling_findings(variant: Variant) -> tuple[Finding, ...]:
    """Return what is to be told of a move that waits; it is told anew in every pass, and never remembered."""
    if variant.settling is None:
        return ()
    return (UPSTREAM_SETTLING.finding(variant.settling.message, Where(object=str(variant.owner.key))),)
