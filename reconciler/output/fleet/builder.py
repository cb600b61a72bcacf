"""Builds the index of the fleet from the branches of its targets. The caller can reuse entries of unchanged targets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from sys import intern

from reconciler.krm.findings import Finding, SourceLocation
from reconciler.krm.numbers import format_count
from reconciler.lazy_dataclasses import replace
from reconciler.output.entries import build_conflict_entries
from reconciler.output.fleet.change_key import ANY_TARGET, describe_change, format_owner
from reconciler.output.fleet.model import (
    ChangeVariant,
    DraftMember,
    FleetIndex,
    IndexedDraft,
    PackageRow,
    ReviewChange,
    TargetEntry,
    shorten_digest,
)
from reconciler.output.fleet.rollouts import Rollout
from reconciler.output.fleet.target_data import PackageData, TargetData
from reconciler.output.fleet.target_names import TargetNames
from reconciler.output.fleet.variants import DraftEffect, VariantPool
from reconciler.output.review.open_drafts import DraftDetails, DraftPackageDetails
from reconciler.output.text import to_one_line
from reconciler.planning.lifecycle.open_drafts import TargetPackage


def index_target(cluster: TargetData, pool: VariantPool) -> TargetEntry:
    """Return the index entry of one target. The caller must pass the same `pool` for all targets of an index."""
    rows = tuple(_build_row(cluster, package, pool) for package in cluster.packages)
    target = cluster.target
    return TargetEntry(
        target.name, cluster.labels, target.display_url, target.branch, target.directory,
        cluster.head, rows, cluster.seconds, cluster.read_error,
        str(target.key), SourceLocation(target.location.file, target.location.line),
    )  # fmt: skip


def build_fleet_index(
    number: int,
    completed_at: int,
    config: str,
    targets: Iterable[TargetEntry],
    findings: Iterable[Finding],
    rollouts: Iterable[Rollout] = (),
    owner_places: Mapping[str, SourceLocation] | None = None,
    finding_tenants: Mapping[str, str] | None = None,
) -> FleetIndex:
    """Return the index of these targets.

    Args:
        completed_at: The end of the pass, in seconds since 1970.
        owner_places: The places of the owners in the config. See `FleetIndex`.
        finding_tenants: The tenants of the findings. See `FleetIndex`.
    """
    entries = tuple(sorted(targets, key=lambda target: target.name))
    changes = sorted(_group_drafts(entries), key=lambda change: change.sort_key)
    return FleetIndex(
        number, completed_at, config, entries, tuple(changes), tuple(findings), tuple(rollouts), owner_places or {},
        finding_tenants or {},
    )  # fmt: skip


def _group_drafts(targets: Iterable[TargetEntry]) -> Iterator[ReviewChange]:
    groups: dict[str, dict[str, list[IndexedDraft]]] = {}
    for target in targets:
        for draft in target.drafts:
            groups.setdefault(draft.change_key, {}).setdefault(draft.variant_digest, []).append(draft)
    for key, variants in groups.items():
        # Python sorts are stable. Therefore, variants of equal size stay in the order of their first targets.
        ordered = sorted(variants.items(), key=lambda item: -len(item[1]))
        first = ordered[0][1][0]
        yield ReviewChange(
            key,
            first.title,
            first.owner,
            tuple(
                ChangeVariant(digest, drafts[0].content, tuple(draft.member for draft in drafts))
                for digest, drafts in ordered
            ),
        )


def _build_row(cluster: TargetData, package: PackageData, pool: VariantPool) -> PackageRow:
    state, target = package.package_state, cluster.target.name
    names = cluster.get_target_names(package)
    draft = cluster.drafts.get(state.draft.branch) if state.draft else None
    indexed = _index_draft(draft, package.details, state, names, pool) if draft and package.details else None
    return PackageRow(
        target=target,
        package=state.package,
        column=intern(names.replace_cluster(state.package, ANY_TARGET)),
        owner=intern(format_owner(state.record.owner)),
        state=state.state,
        version=state.revision.number if state.revision else 0,
        upstream=_format_upstream(state),
        since=package.since,
        is_edited=state.is_edited,
        reasons=state.reasons,
        draft=indexed,
        publication=package.publication,
        tenant=state.record.tenant,
    )


def _format_upstream(package: TargetPackage) -> str:
    record = package.record
    version = record.published_version or record.draft_version
    return intern(version.upstream) if version else ""


def _index_draft(
    draft: DraftDetails, details: DraftPackageDetails, package: TargetPackage, names: TargetNames, pool: VariantPool
) -> IndexedDraft:
    change = describe_change(package.record, package.package)
    conflicts = build_conflict_entries(list(details.package.conflicts))
    refusals = draft.draft.list_refusals((package.package,))
    reasons = [format_count(len(conflicts), "conflict")] if conflicts else []
    reasons += [to_one_line(reason.message) for reason in refusals]
    key, parent = change.compute_key(names.cluster), package.record.owner.parent
    masked_names = replace(names, common=parent.name) if parent else names
    effect = DraftEffect(key, masked_names, details, conflicts, tuple(reasons))
    digest, content = pool.find_variant(effect)
    rejection = draft.rejection.line if draft.rejection else ""
    member = DraftMember(
        names.cluster, package.package, draft.draft.branch, draft.draft.head, draft.draft.published_head,
        draft.draft.lifecycle, details.since, draft.draft.pull_request_number, draft.editors, rejection, refusals,
        package.record.tenant, draft.approved_by, draft.behind_count,
    )  # fmt: skip
    title = intern(str(replace(change, package=names.replace_cluster(package.package, ANY_TARGET))))
    return IndexedDraft(member, intern(shorten_digest(key)), title, intern(change.owner), digest, content)
