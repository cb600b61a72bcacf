"""Builds the index of the fleet from the branches of its targets. Entries of unchanged targets are used again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from reconciler.catalog.files import FileTree
from reconciler.krm.findings import Finding
from reconciler.krm.json_text import compute_digest, encode_canonical_json
from reconciler.output.changes.objects import is_kptfile, read_file_objects
from reconciler.output.changes.package_changes import KptfileChange, PackageChanges, compare_packages
from reconciler.output.entries import build_conflict_entries
from reconciler.output.fleet.model import (
    ChangeVariant,
    DraftMember,
    FleetIndex,
    IndexedDraft,
    PackageRow,
    ReviewChange,
    TargetEntry,
    VariantContent,
    shorten_digest,
)
from reconciler.output.fleet.risk import assess_risk
from reconciler.output.plan.overview import build_comparison_key
from reconciler.output.report.model import ReportCluster, ReportPackage, TargetNames
from reconciler.output.review.change_key import describe_change, format_owner
from reconciler.output.review.open_drafts import DraftDetails, DraftPackageDetails
from reconciler.output.status.package_sections import format_task, read_inputs, read_text
from reconciler.output.text import format_count, to_one_line
from reconciler.planning.lifecycle.open_drafts import CONFLICTS_NOT_ACCEPTED, TargetPackage

_ANY_TARGET = "*"


def index_target(cluster: ReportCluster) -> TargetEntry:
    """Return the entry of one target."""
    rows = tuple(_build_row(cluster, package) for package in cluster.packages)
    target = cluster.target
    return TargetEntry(
        target.name, cluster.labels, target.display_url, target.branch, target.directory,
        cluster.head, rows, cluster.seconds, cluster.read_error,
    )  # fmt: skip


def build_fleet_index(
    number: int, completed_at: int, config: str, targets: Iterable[TargetEntry], findings: Iterable[Finding]
) -> FleetIndex:
    """Return the index of these targets.

    Args:
        completed_at: The end of the pass, in seconds since 1970.
    """
    entries = tuple(sorted(targets, key=lambda target: target.name))
    changes = sorted(_group_drafts(entries), key=lambda change: change.sort_key)
    return FleetIndex(number, completed_at, config, entries, tuple(changes), tuple(findings))


def _group_drafts(targets: Iterable[TargetEntry]) -> Iterator[ReviewChange]:
    groups: dict[str, dict[str, list[IndexedDraft]]] = {}
    for target in targets:
        for draft in target.drafts:
            groups.setdefault(draft.change_key, {}).setdefault(draft.variant_digest, []).append(draft)
    for key, variants in groups.items():
        # Sort variants of equal size by their first target. Python sorts are stable.
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


def _build_row(cluster: ReportCluster, package: ReportPackage) -> PackageRow:
    state, target = package.package_state, cluster.target.name
    names = cluster.get_target_names(package)
    draft = cluster.drafts.get(state.draft.branch) if state.draft else None
    indexed = _index_draft(draft, package.details, state, names) if draft and package.details else None
    return PackageRow(
        target=target,
        package=state.package,
        column=TargetNames(target).replace_cluster(state.package, _ANY_TARGET),
        owner=format_owner(state.record.owner),
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
    return version.upstream if version else ""


def _index_draft(
    draft: DraftDetails, details: DraftPackageDetails, package: TargetPackage, names: TargetNames
) -> IndexedDraft:
    change = describe_change(package.record, package.package)
    conflicts = build_conflict_entries(list(details.package.conflicts))
    refusals = draft.draft.list_refusals((package.package,))
    reasons = [format_count(len(conflicts), "conflict")] if conflicts else []
    reasons += [to_one_line(reason.message) for reason in refusals if reason.reason != CONFLICTS_NOT_ACCEPTED]
    risk = assess_risk(details.changes, count_resources(details.before), reasons)
    content = VariantContent(
        action="remove" if details.package.is_removed else format_task(details.package.status) or "local changes",
        changes=details.changes,
        risk=risk,
        conflicts=conflicts,
        noise=tuple(_list_noise(details.changes)),
        causes=details.causes,
        template_effects=details.templates,
        config=read_text(read_inputs(details.package.status), "config"),
        is_removal=details.package.is_removed,
    )
    key = change.compute_key(names.cluster)
    digest = _compute_variant_digest(key, details, content, names, [names.mask_names(reason) for reason in reasons])
    rejection = draft.rejection.line if draft.rejection else ""
    member = DraftMember(
        names.cluster, package.package, draft.draft.branch, draft.draft.head, draft.draft.published_head,
        draft.draft.lifecycle, details.since, draft.draft.pull_request_number, draft.editors, rejection, refusals,
        package.record.tenant,
    )  # fmt: skip
    title = names.replace_cluster(str(change), _ANY_TARGET)
    return IndexedDraft(member, shorten_digest(key), title, change.owner, digest, content)


def _compute_variant_digest(
    key: str, details: DraftPackageDetails, content: VariantContent, names: TargetNames, reasons: list[str]
) -> str:
    """Return a digest that is equal for drafts with equal effects on their clusters.

    The names of targets, and changes that have no effect on a cluster, have no influence on the digest.
    """
    before, after = (names.mask_file_names(_select_changed(*sides)) for sides in _list_sides(details))
    changes = compare_packages(before, after)
    conflicts = [names.mask_names(encode_canonical_json(conflict.to_data()).decode()) for conflict in content.conflicts]
    effects = PackageChanges(
        tuple(change for change in changes.objects if not change.is_local_config),
        tuple(KptfileChange(change.path, change.change_type, pipeline=change.pipeline) for change in changes.kptfiles),
        tuple(file for file in changes.files if file.change_type != "reformatted"),
    )
    comparison_key = build_comparison_key(effects.comparison_key, names.owner)
    return compute_digest([key, comparison_key, conflicts, reasons, content.risk.risk_class])


def _list_sides(details: DraftPackageDetails) -> tuple[tuple[FileTree, FileTree], tuple[FileTree, FileTree]]:
    return (details.before, details.after), (details.after, details.before)


def _select_changed(files: FileTree, other_files: FileTree) -> FileTree:
    return FileTree({path: file for path, file in files.items() if other_files.get(path) != file})


def count_resources(files: FileTree) -> int:
    """Return the number of objects in the files of a package, without objects that only tools use."""
    return sum(
        not file_object.is_local_config
        for path, file in files.items()
        for file_object in read_file_objects(path, file.data).objects
    )


def _list_noise(changes: PackageChanges) -> Iterator[str]:
    """Yield the paths of changed files that contain no resource for a cluster, or only another format."""
    yield from (kptfile.path for kptfile in changes.kptfiles)
    yield from (file.path for file in changes.files if file.change_type == "reformatted")
    for change in changes.objects:
        if change.is_local_config:
            yield from (path for path in sorted(change.files) if not is_kptfile(path))
