"""Builds the result of `reconciler impact` from the affected packages of a config change, with its risks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from reconciler.krm.findings import Finding, Severity
from reconciler.krm.numbers import format_count
from reconciler.output.changes.config_changes import ConfigChange
from reconciler.output.changes.data import FileDiff, build_diffs
from reconciler.output.entries import OwnerEntry, build_owner_entry
from reconciler.output.envelope import create_cli_metadata
from reconciler.output.findings.entries import build_finding_entries
from reconciler.output.findings.formats import format_findings
from reconciler.output.impact.consequences import CONSEQUENCE_LEVELS, Consequence, ConsequenceLevel
from reconciler.output.impact.models import (
    AffectedPackageEntry,
    ConfigChangeEntry,
    ConfigChangeItem,
    FindingStatus,
    ImpactChange,
    ImpactFinding,
    ImpactResult,
    ImpactSummary,
    RiskEntry,
    RiskKind,
)
from reconciler.output.impact.overview import AffectedPackage, FleetClusters, ImpactGroup, ImpactOverview
from reconciler.output.text import format_names, to_one_line

_MAX_RISK_NAMES = 3
_LEVEL_RISKS: dict[ConsequenceLevel, RiskKind] = {
    "destroys": "may destroy",
    "recreates": "needs recreation",
    "stops": "stops pods",
    "restarts": "restarts pods",
}


def build_impact_result(overview: ImpactOverview, max_diff_lines: int = 0) -> ImpactResult:
    """Return the result of a config change. Values of Secrets are masked.

    Args:
        max_diff_lines: The maximum number of diff lines per file. The value 0 omits the diffs.
    """
    return ImpactResult(
        metadata=create_cli_metadata(overview.head),
        items=(
            *find_risks(overview),
            *(
                ConfigChangeItem(**vars(_build_config_change(change)), type="configChange")
                for change in overview.config
            ),
            *(_build_change(group, overview.clusters, max_diff_lines) for group in overview.groups),
        ),
        findings=(
            *_build_findings(overview.new_findings, "new"),
            *_build_findings(overview.fixed_findings, "fixed"),
            *_build_findings(overview.unknown.findings, "unknown"),
        ),
        summary=_build_summary(overview),
    )


def _build_findings(findings: Iterable[Finding], status: FindingStatus) -> Iterator[ImpactFinding]:
    for entry in build_finding_entries(findings):
        yield ImpactFinding.model_validate({**vars(entry), "status": status})


def _build_summary(overview: ImpactOverview) -> ImpactSummary:
    affected = overview.affected
    kinds = Counter(package.kind for package in affected)
    levels = Counter(level for package in affected for level in {item.level for item in package.consequences})
    clusters = {package.cluster for package in affected if package.cluster}
    return ImpactSummary(
        base=overview.base,
        head=overview.head,
        packages=len(affected),
        install=kinds["new"],
        update=kinds["changed"] + kinds["unblocked"],
        delete=kinds["removed"],
        withdraw=kinds["unrendered"],
        orphan=kinds["orphaned"],
        blocked=kinds["blocked"],
        conflicts=sum(bool(package.conflicts) for package in affected),
        errors=len(overview.new_errors),
        targets=len(clusters),
        clusters=len(clusters),
        drafts=sum(package.effect.creates_draft for package in affected),
        unblocked=kinds["unblocked"],
        kept=kinds["kept"],
        removed_resources=sum(_count_removed(package) for package in affected),
        **{level: levels[level] for level in CONSEQUENCE_LEVELS},
        fixed_errors=sum(finding.severity is Severity.ERROR for finding in overview.fixed_findings),
        existing_errors=overview.existing_error_count,
        is_unknown=bool(overview.unknown),
        unknown_clusters=tuple(overview.unknown.clusters),
    )


def _count_removed(package: AffectedPackage) -> int:
    changes = package.changes.objects if package.changes else ()
    return sum(change.change_type == "removed" and not change.is_local_config for change in changes)


def find_risks(overview: ImpactOverview) -> tuple[RiskEntry, ...]:
    """Return all risks of a config change, the most severe kind first."""
    groups = [(format_group_location(group, overview.clusters), group[0]) for group in overview.groups]
    # Omit errors in packages, because such an error blocks its package, and blocked packages are listed as a separate
    # risk.
    config_errors = (error for error in overview.new_errors if not error.location.package)
    return (
        *(
            _build_risk("removes", packages, _format_removal(first))
            for packages, first in groups
            if first.kind == "removed"
        ),
        *(risk for packages, first in groups for risk in _find_removed_resources(packages, first)),
        *(risk for packages, first in groups for risk in _find_consequences(packages, first, "destroys")),
        *(_build_risk("conflict", packages, line) for packages, first in groups for line in first.conflicts),
        *(
            _build_risk("blocked", packages, to_one_line(first.blocked_reason))
            for packages, first in groups
            if first.kind == "blocked"
        ),
        *(_build_risk("new error", "config", line) for line in format_findings(config_errors)),
        *(
            risk
            for level in CONSEQUENCE_LEVELS[1:]
            for packages, first in groups
            for risk in _find_consequences(packages, first, level)
        ),
        *(
            _build_risk(_LEVEL_RISKS["restarts"], packages, line)
            for packages, first in groups
            for line in _list_template_risks(first)
        ),
    )


def format_group_location(group: ImpactGroup, clusters: FleetClusters) -> str:
    """Return the packages and clusters of a group, e.g. `gateway on all 40 clusters with region=eu`."""
    if len(group) == 1:
        return to_one_line(group[0].target)
    packages = list(dict.fromkeys(package.effect.package or package.owner for package in group))
    # Replace the cluster name in package names by "*", because the name of a Plugin contains the name of its cluster.
    masked = {package.effect.package.replace(package.cluster, "*") for package in group if package.cluster}
    packages = sorted(masked) if len(masked) == 1 and len(packages) > 1 else packages
    names = {package.cluster for package in group if package.cluster}
    if len(packages) == 1:
        text = to_one_line(packages[0])
    else:
        text = f"{format_count(len(group), 'package')} ({format_names(packages, _MAX_RISK_NAMES)})"
    return f"{text} on {clusters.format_clusters(names)}" if names else text


def _format_removal(package: AffectedPackage) -> str:
    return to_one_line(f"the package is proposed for removal: {package.effect.after.message}")


def _find_removed_resources(packages: str, package: AffectedPackage) -> Iterator[RiskEntry]:
    changes = package.changes.objects if package.changes and package.kind != "removed" else ()
    names = [change.name for change in changes if change.change_type == "removed" and not change.is_local_config]
    if names:
        yield _build_risk("removes", packages, format_names(names, _MAX_RISK_NAMES * 2))


def _find_consequences(packages: str, package: AffectedPackage, level: ConsequenceLevel) -> Iterator[RiskEntry]:
    by_reason: dict[str, list[Consequence]] = {}
    for consequence in package.consequences:
        if consequence.level == level:
            by_reason.setdefault(consequence.reason, []).append(consequence)
    for reason, consequences in by_reason.items():
        resources = format_names([consequence.resource for consequence in consequences], _MAX_RISK_NAMES)
        yield _build_risk(_LEVEL_RISKS[level], packages, f"{resources}: {to_one_line(reason)}")


def _list_template_risks(package: AffectedPackage) -> Iterator[str]:
    """Yield the lines about template changes that can restart pods."""
    if package.draft:
        changes = package.draft.draft.rendered.template_changes
        risky = sum(change.restarts_pods is not False or change.previous_parent is not None for change in changes)
        # The lines with the highest risk are first.
        yield from package.draft.templates[:risky]


def _build_risk(kind: RiskKind, packages: str, reason: str) -> RiskEntry:
    return RiskEntry(type="risk", kind=kind, packages=packages, reason=reason)


def _build_config_change(change: ConfigChange) -> ConfigChangeEntry:
    return ConfigChangeEntry(
        **change.key.as_data(), change=change.change_type, file=change.file, summary=change.summary
    )


def _build_change(group: ImpactGroup, clusters: FleetClusters, max_diff_lines: int) -> ImpactChange:
    first, draft = group[0], group[0].draft
    names = sorted({package.cluster for package in group if package.cluster})
    return ImpactChange(
        type="change",
        kind=first.kind,
        location=format_group_location(group, clusters),
        packages=tuple(_build_package(package, first) for package in group),
        clusters=tuple(names),
        label=clusters.find_common_label(names),
        blocked_reason=first.blocked_reason,
        changes=first.changes,
        consequences=first.consequences,
        conflicts=first.conflicts,
        unmet_gates=draft.waiting if draft else (),
        template_effects=draft.templates if draft else (),
        templates=draft.children if draft else (),
        overrides=draft.overrides if draft else (),
        causes=tuple(_list_causes(group)),
        diffs=_build_diffs(first, max_diff_lines),
    )


def _build_package(package: AffectedPackage, first: AffectedPackage) -> AffectedPackageEntry:
    # Include the changes of a package only if they differ from the changes of its group, for example in names.
    changes, group_changes = package.changes, first.changes
    has_own_changes = changes and group_changes and changes.comparison_key != group_changes.comparison_key
    effect = package.effect
    return AffectedPackageEntry(
        target=package.cluster,
        package=effect.package,
        owner=build_owner_entry(effect.owner) if effect.owner else OwnerEntry(),
        before=effect.before.kind,
        after=effect.after.kind,
        creates_draft=effect.creates_draft,
        reason=effect.after.reason,
        message=effect.after.message,
        config_changes=tuple(map(_build_config_change, package.config_changes)),
        causes=package.causes,
        changes=changes if has_own_changes else None,
    )


def _list_causes(group: ImpactGroup) -> list[str]:
    """Return the config changes that cause a group of changes. If there are no such config changes, return the causes
    of the draft.
    """
    changes = {change.key: change for package in group for change in package.config_changes}
    return [changes[key].summary for key in sorted(changes)] or list(group[0].causes)


def _build_diffs(package: AffectedPackage, max_lines: int) -> tuple[FileDiff, ...]:
    before, after, target = package.effect.files_before, package.effect.files_after, package.effect.target
    if before is None or after is None or target is None:
        return ()
    return build_diffs(before, after, target.get_package_path(package.effect.package), max_lines)
