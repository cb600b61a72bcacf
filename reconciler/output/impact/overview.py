"""Computes the impact of a config change on packages. Packages with equal changes form groups.

The class `FleetClusters` describes a set of clusters by a label that the clusters have in common.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from functools import cached_property
from typing import Any, Literal

from reconciler.catalog.files import FileTree
from reconciler.krm.findings import Finding, Severity
from reconciler.krm.numbers import format_count
from reconciler.lazy_dataclasses import dataclass, field, replace
from reconciler.output.changes.config_changes import ConfigChange, ConfigChangeAttribution, compare_configs
from reconciler.output.changes.package_changes import PackageChanges, compare_packages
from reconciler.output.findings.entries import sort_findings
from reconciler.output.impact.consequences import Consequence, find_consequences
from reconciler.output.plan.overview import DraftOverview, build_comparison_key, build_draft_overview
from reconciler.output.status.package_sections import format_conflicts
from reconciler.output.text import to_one_line
from reconciler.planning.attribution.impact import BLOCKED_KINDS, TARGET_GONE, PackageImpact, UnknownImpact
from reconciler.planning.decide.fleet_plan import FleetPlan
from reconciler.planning.model.outcomes import Draft
from reconciler.planning.model.sources import locate_conflict

ClusterLabels = Mapping[str, Mapping[str, str]]
"""The labels of each cluster, by the name of the cluster."""
ImpactKind = Literal["new", "changed", "removed", "orphaned", "unrendered", "kept", "blocked", "unblocked"]
"""The kinds of impact on a package. The JSON output has these values.

- `removed`: the package is proposed for removal.
- `unrendered`: the package was never published and is no longer rendered.
- `orphaned`: the package stays, but the reconciler no longer manages it.
- `kept`: a removal is canceled.
- `blocked`: the package is blocked.
- `unblocked`: the package is no longer blocked.
"""
IMPACT_KINDS: tuple[ImpactKind, ...] = (
    "removed", "blocked", "changed", "new", "unrendered", "orphaned", "kept", "unblocked",
)  # fmt: skip
"""The kinds of impact, the riskiest first."""
_KINDS_OF_REMOVALS: Mapping[str, ImpactKind] = {
    "proposed": "removed",
    "orphaned": "orphaned",
    "declined": "kept",
    "recalled": "kept",
}
# Compare only the names of changed resources for these kinds, so that packages with different content form one group.
_KINDS_WITHOUT_CONTENT: frozenset[ImpactKind] = frozenset({"new", "removed", "unrendered"})
_MAX_LABEL_VALUES = 3
_MAX_CONFLICTS = 20
_MIN_MASKED_CHARACTERS = 3
_LINE_NUMBER = re.compile(r":\d+")


@dataclass(frozen=True)
class FleetClusters:
    """The clusters of a fleet with their labels."""

    labels: ClusterLabels

    @cached_property
    def _names_by_label(self) -> Mapping[str, Mapping[str, frozenset[str]]]:
        names_by_label: dict[str, dict[str, set[str]]] = {}
        for name, labels in self.labels.items():
            for key, value in labels.items():
                names_by_label.setdefault(key, {}).setdefault(value, set()).add(name)
        return {
            key: {value: frozenset(names) for value, names in names_by_label[key].items()}
            for key in sorted(names_by_label)
        }

    def find_common_label(self, names: Collection[str]) -> str:
        """Return a label that only these clusters have, such as `region=eu`. Return "" if there is no such label.

        A label with two or three values can also describe the clusters, such as `region=eu or region=us`.
        """
        selected = frozenset(names)
        labels = (self._describe(key, selected) for key in self._names_by_label) if len(selected) > 1 else iter(())
        return min((label for label in labels if label), key=lambda label: (label.count(" or "), label), default="")

    def _describe(self, key: str, selected: frozenset[str]) -> str:
        values = {self.labels[name].get(key) for name in selected if name in self.labels}
        # Reject a label with many different values, because it does not describe what the clusters have in common.
        if None in values or len(values) > min(_MAX_LABEL_VALUES, len(selected) // 2):
            return ""
        clusters = [self._names_by_label[key][value] for value in values if value is not None]
        label = " or ".join(f"{key}={value}" for value in sorted(filter(None, values)))
        return to_one_line(label) if frozenset().union(*clusters) == selected else ""

    def format_clusters(self, names: Collection[str]) -> str:
        """Return the number of clusters, and their common label if they have one: `all 40 clusters with region=eu`."""
        existing = {*names} & self.labels.keys()
        if len(existing) > 1 and existing == self.labels.keys() == {*names}:
            return _format_all(len(existing))
        label = self.find_common_label(names)
        return f"{_format_all(len({*names}))} with {label}" if label else format_count(len({*names}), "cluster")


def _format_all(number: int) -> str:
    return "both clusters" if number == 2 else f"all {number} clusters"


@dataclass(frozen=True)
class FleetImpact:
    """The plans of a fleet for two configs, and the packages that differ between these plans.

    Attributes:
        unknown: The clusters whose impact is unknown, with the reasons.
    """

    base: FleetPlan
    head: FleetPlan
    effects: tuple[PackageImpact, ...]
    labels: ClusterLabels = field(default_factory=dict)
    unknown: UnknownImpact = field(default_factory=UnknownImpact)


@dataclass(frozen=True)
class AffectedPackage:
    """One package that differs between the plans of the first and the second config.

    Attributes:
        changes: The differences of the package. None if the package is too large to compare.
        config_changes: The changed config objects that the package depends on.
        conflicts: The conflicts that only exist with the second config.
    """

    effect: PackageImpact
    kind: ImpactKind
    changes: PackageChanges | None
    consequences: tuple[Consequence, ...] = ()
    config_changes: tuple[ConfigChange, ...] = ()
    causes: tuple[str, ...] = ()
    conflicts: tuple[str, ...] = ()
    draft: DraftOverview | None = None

    @property
    def target(self) -> str:
        """The package as `<repository>/<package>`, or the name of the owner if the target is unknown."""
        return self.effect.target_name or self.owner

    @property
    def cluster(self) -> str:
        """The name of the cluster. "" if the target is unknown."""
        return self.effect.target.name if self.effect.target else ""

    @property
    def owner(self) -> str:
        """The name of the owner, as `Kind namespace/name`."""
        return str(self.effect.owner.key) if self.effect.owner else ""

    def mask_names(self, text: str) -> str:
        """Replace the names of the cluster, the package and its owner by "*"."""
        return self._names.sub("*", text) if self._names else text

    @cached_property
    def _names(self) -> re.Pattern[str] | None:
        owner, package = self.effect.owner, self.effect.package.rpartition("/")[2]
        names = {self.cluster, package, owner.key.name if owner else ""}
        # Do not replace short names and numbers, because they also occur in other texts. Replace longer names first.
        masked = [name for name in names if len(name) >= _MIN_MASKED_CHARACTERS and not name.isdigit()]
        alternatives = "|".join(map(re.escape, sorted(masked, key=len, reverse=True)))
        return re.compile(rf"(?<![0-9A-Za-z])(?:{alternatives})(?![0-9A-Za-z])") if masked else None

    @property
    def blocked_reason(self) -> str:
        """The reason and message if the second config blocks the package. "" if the package is not blocked."""
        after = self.effect.after
        return f"{after.reason}: {after.message}" if after.kind in BLOCKED_KINDS else ""


ImpactGroup = tuple[AffectedPackage, ...]


@dataclass(frozen=True)
class ImpactOverview:
    """The impact of a config change, as all output formats show it. Packages with equal changes form a group.

    Attributes:
        config: The config objects that differ.
        new_findings: The findings that only exist with the second config.
        fixed_findings: The findings that only exist with the first config.
        existing_error_count: The number of errors that exist with both configs.
        unknown: The clusters whose impact is unknown. Packages of these clusters can change although no group contains
            these packages.
    """

    base: str
    head: str
    config: tuple[ConfigChange, ...]
    groups: tuple[ImpactGroup, ...]
    new_findings: tuple[Finding, ...]
    fixed_findings: tuple[Finding, ...]
    existing_error_count: int
    clusters: FleetClusters
    unknown: UnknownImpact = field(default_factory=UnknownImpact)

    @cached_property
    def affected(self) -> tuple[AffectedPackage, ...]:
        """All affected packages, in the order of their groups."""
        return tuple(package for group in self.groups for package in group)

    @property
    def new_errors(self) -> tuple[Finding, ...]:
        """The new findings that are errors."""
        return tuple(finding for finding in self.new_findings if finding.severity is Severity.ERROR)


def build_impact_overview(impact: FleetImpact) -> ImpactOverview:
    """Return the overview of the impact of a config change."""
    config = compare_configs(impact.base.objects, impact.head.objects)
    attribution = ConfigChangeAttribution(config)
    affected = [_build_affected(effect, attribution) for effect in impact.effects]
    new, fixed, existing_errors = _compare_findings(impact.base.list_findings(), impact.head.list_findings())
    return ImpactOverview(
        impact.base.config_id, impact.head.config_id, config, _group_packages(affected), new, fixed, existing_errors,
        FleetClusters(impact.labels), impact.unknown,
    )  # fmt: skip


def _build_affected(effect: PackageImpact, attribution: ConfigChangeAttribution) -> AffectedPackage:
    before, after = effect.files_before, effect.files_after
    changes = compare_packages(before, after) if before is not None and after is not None else None
    draft = _build_draft(effect)
    return AffectedPackage(
        effect,
        _get_kind(effect),
        changes,
        consequences=find_consequences(changes) if changes else (),
        config_changes=attribution.find_causes(effect, changes),
        causes=draft.causes if draft else (),
        conflicts=_format_new_conflicts(effect),
        draft=draft,
    )


def _build_draft(effect: PackageImpact) -> DraftOverview | None:
    """Return the draft for the second config, compared with the package for the first config.

    Return None if the second config results in no draft.
    """
    draft = effect.after.outcome
    if not isinstance(draft, Draft) or effect.target is None:
        return None
    before = effect.files_before if effect.files_before is not None else FileTree()
    return build_draft_overview(replace(draft, previous_files=before, causes=effect.causes), effect.target)


def _get_kind(effect: PackageImpact) -> ImpactKind:
    before, after = effect.before, effect.after
    if after.reason == TARGET_GONE:
        return "orphaned"
    if after.kind in BLOCKED_KINDS:
        return "blocked"
    if after.kind == "removal":
        return _KINDS_OF_REMOVALS.get(after.reason, "unrendered")
    if after.kind == "none":
        return "unblocked" if before.kind in BLOCKED_KINDS else "unrendered"
    if before.kind == "removal":
        return "kept"
    if before.kind in BLOCKED_KINDS:
        return "unblocked"
    return "new" if before.kind == "none" else "changed"


def _format_new_conflicts(effect: PackageImpact) -> tuple[str, ...]:
    draft = effect.after.outcome
    conflicts = draft.rendered.conflicts if isinstance(draft, Draft) else ()
    new = (conflict for conflict in conflicts if locate_conflict(conflict) not in effect.known_conflicts)
    return format_conflicts(new, _MAX_CONFLICTS)


def _compare_findings(
    before: Iterable[Finding], after: Iterable[Finding]
) -> tuple[tuple[Finding, ...], tuple[Finding, ...], int]:
    """Return the new findings, the fixed findings, and the number of errors that exist in both configs.

    Differences in line numbers are ignored.
    """
    old, new = ({_build_identity(finding): finding for finding in sort_findings(side)} for side in (before, after))
    added = tuple(finding for identity, finding in new.items() if identity not in old)
    fixed = tuple(finding for identity, finding in old.items() if identity not in new)
    existing = (finding for identity, finding in new.items() if identity in old)
    return added, fixed, sum(finding.severity is Severity.ERROR for finding in existing)


def _build_identity(finding: Finding) -> tuple[Finding, str]:
    location = replace(finding.location, line=0)
    return replace(finding, location=location, message=""), _LINE_NUMBER.sub("", finding.message)


def _group_packages(affected: Iterable[AffectedPackage]) -> tuple[ImpactGroup, ...]:
    """Group packages with equal changes. Sort the groups by the risk of their kind, then by size."""
    groups: dict[str, list[AffectedPackage]] = {}
    for package in affected:
        groups.setdefault(_build_group_key(package), []).append(package)
    ranked = sorted(groups.values(), key=lambda group: (IMPACT_KINDS.index(group[0].kind), -len(group)))
    return tuple(tuple(group) for group in ranked)


def _build_group_key(package: AffectedPackage) -> str:
    """Return a key to group packages with equal changes. Names of the cluster, the package and the owner are masked."""
    draft = package.draft
    details = [draft.waiting, draft.overrides, draft.templates, draft.children] if draft else []
    has_content = package.kind not in _KINDS_WITHOUT_CONTENT
    changes = _build_changes_key(package.changes, has_content=has_content) if package.changes else []
    content = [package.kind, package.blocked_reason, package.conflicts, changes, *details]
    owner = package.effect.owner
    return package.mask_names(build_comparison_key(content, owner.key.name if owner else ""))


def _build_changes_key(changes: PackageChanges, *, has_content: bool) -> list[Any]:
    """Return data to compare the changes of packages. The former content of removed objects is ignored.

    If `has_content` is False, only the names of the objects and the types of their changes are compared.
    """
    objects = [
        [
            *change.key, change.change_type,
            change.digest if has_content and change.change_type != "removed" else "",
        ]
        for change in changes.objects
    ]  # fmt: skip
    return [objects, *(changes.comparison_key[1:] if has_content else [])]
