"""The impact of a config change as text, Markdown and JSON data, with its risks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from reconciler.krm.findings import Finding
from reconciler.lazy_dataclasses import dataclass
from reconciler.output.changes.diffs import format_file_diffs
from reconciler.output.changes.package_changes import build_changes_data
from reconciler.output.findings.formats import build_findings_data, format_findings
from reconciler.output.impact.consequences import CONSEQUENCE_LEVELS, Consequence, ConsequenceLevel
from reconciler.output.impact.overview import AffectedPackage, FleetClusters, ImpactGroup, ImpactKind, ImpactOverview
from reconciler.output.json_data import drop_empty
from reconciler.output.status.package_sections import format_children
from reconciler.output.text import format_code, format_count, format_folded_diffs, format_names, shorten, to_one_line

COMMENT_MARKER = "<!-- reconciler impact -->"
"""The first line of the Markdown. A pipeline finds its own comment by this invisible line."""
MAX_COMMENT_CHARACTERS = 65_000
"""The maximum length of the Markdown. A comment on GitHub has at most 65,536 characters."""
_MAX_RISK_NAMES = 3
_MAX_LINES = 20
_MAX_ROWS = 30
_MAX_LINE_CHARACTERS = 400
_MAX_TARGETS = 10
_MAX_CLUSTERS = 5
_MAX_CAUSES = 5
_MAX_FINDINGS_PER_CODE = 3
_CONFIG_CHARACTERS = 12
_LEVEL_LABELS: dict[ConsequenceLevel, str] = {
    "destroys": "may destroy",
    "recreates": "needs recreation",
    "stops": "stops pods",
    "restarts": "restarts pods",
}
# Use a clearer label in text for this kind of risk. The JSON output has the kind itself.
_RISK_LABELS = {"holds up": "blocked"}
_KIND_LABELS: dict[ImpactKind, str] = {
    "removed": "proposed for removal",
    "heldUp": "blocked",
    "changed": "changed",
    "new": "new",
    "unmade": "no longer rendered",
    "orphaned": "orphaned",
    "kept": "removal canceled",
    "mended": "no longer blocked",
}
_COUNT_LABELS = (
    ("conflicts", "conflict", ""),
    ("newErrors", "new error", ""),
    ("standingErrors", "error", " that existed before"),
)
_LINE_LABELS = frozenset({"conflict", "templates", "child", "overridden", "blocks publication", "why", "on"})


@dataclass(frozen=True)
class Risk:
    """One risk of a config change: the kind, the packages and the reason."""

    kind: str
    packages: str
    reason: str

    def as_data(self) -> dict[str, Any]:
        """Return the risk as JSON data."""
        return {"kind": self.kind, "where": self.packages, "what": self.reason}


def find_risks(overview: ImpactOverview) -> tuple[Risk, ...]:
    """Return all risks of a config change, the most severe kind first."""
    groups = [(format_group_location(group, overview.clusters), group[0]) for group in overview.groups]
    # Omit errors in packages, because an error in a package blocks the package, and this is a separate risk.
    config_errors = (error for error in overview.new_errors if not error.location.package)
    return (
        *(Risk("removes", packages, _format_removal(first)) for packages, first in groups if first.kind == "removed"),
        *(risk for packages, first in groups for risk in _find_removed_resources(packages, first)),
        *(risk for packages, first in groups for risk in _find_consequences(packages, first, "destroys")),
        *(Risk("conflict", packages, line) for packages, first in groups for line in first.conflicts),
        *(
            Risk("holds up", packages, to_one_line(first.blocked_reason))
            for packages, first in groups
            if first.kind == "heldUp"
        ),
        *(Risk("new error", "config", line) for line in format_findings(config_errors)),
        *(
            risk
            for level in CONSEQUENCE_LEVELS[1:]
            for packages, first in groups
            for risk in _find_consequences(packages, first, level)
        ),
        *(
            Risk(_LEVEL_LABELS["restarts"], packages, line)
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


def _find_removed_resources(packages: str, package: AffectedPackage) -> Iterator[Risk]:
    changes = package.changes.objects if package.changes and package.kind != "removed" else ()
    names = [change.name for change in changes if change.change_type == "removed" and not change.is_local_config]
    if names:
        yield Risk("removes", packages, format_names(names, _MAX_RISK_NAMES * 2))


def _find_consequences(packages: str, package: AffectedPackage, level: ConsequenceLevel) -> Iterator[Risk]:
    by_reason: dict[str, list[Consequence]] = {}
    for consequence in package.consequences:
        if consequence.level == level:
            by_reason.setdefault(consequence.reason, []).append(consequence)
    for reason, consequences in by_reason.items():
        resources = format_names([consequence.resource for consequence in consequences], _MAX_RISK_NAMES)
        yield Risk(_LEVEL_LABELS[level], packages, f"{resources}: {to_one_line(reason)}")


def _list_template_risks(package: AffectedPackage) -> Iterator[str]:
    """Yield the lines about template changes that can restart pods."""
    if package.draft:
        changes = package.draft.draft.rendered.template_changes
        risky = sum(change.restarts_pods is not False or change.previous_parent is not None for change in changes)
        # Take the first lines, because the lines are sorted by risk.
        yield from package.draft.templates[:risky]


def format_impact_text(overview: ImpactOverview, max_diff_lines: int = 0) -> str:
    """Return the impact as plain text: counts, risks, findings, config changes and changes of packages.

    Equal changes of several packages are shown once.

    Args:
        overview: The overview of the impact.
        max_diff_lines: The maximum number of diff lines per file. The value 0 omits the diffs.
    """
    risks = (f"{_format_risk_kind(risk)}: {risk.packages}: {risk.reason}" for risk in find_risks(overview))
    sections = [
        _format_headline(overview),
        _format_section("Unknown", _format_unknown(overview)),
        _format_section("Risks", risks),
        _format_section("New warnings", _format_by_code(overview.new_non_errors)),
        _format_section("Fixed findings", _format_by_code(overview.fixed_findings)),
        _format_section("Config changes", (change.summary for change in overview.config)),
        *(_format_group_text(group, overview, max_diff_lines) for group in overview.groups),
    ]
    return "\n\n".join(section.rstrip("\n") for section in sections if section) + "\n"


def format_impact_markdown(overview: ImpactOverview, max_diff_lines: int = 0) -> str:
    """Return the impact as Markdown for a comment. The Markdown begins with `COMMENT_MARKER`.

    User input is formatted as code. If the comment is too long, groups of changes are replaced by their number.
    """
    sections = [
        f"{COMMENT_MARKER}\n# {_format_headline(overview)}",
        _format_list("Unknown", _format_unknown(overview)),
        _format_risk_table(find_risks(overview)),
        _format_list("New warnings", _format_by_code(overview.new_non_errors)),
        _format_list("Fixed findings", _format_by_code(overview.fixed_findings)),
        _format_list("Config changes", [change.summary for change in overview.config]),
    ]
    groups = [_format_group_markdown(group, overview, max_diff_lines) for group in overview.groups]
    return _join_within_limit([section for section in sections if section], groups)


def build_impact_data(overview: ImpactOverview, max_diff_lines: int = 0) -> dict[str, Any]:
    """Return the complete impact as JSON data. Values of Secrets are masked.

    Each entry of `packages` has the index of its group in `groups`. The group contains the changes. An entry has its
    own changes if names in its changes differ from the group.
    """
    return {
        "base": overview.base,
        "head": overview.head,
        "counts": overview.counts,
        "risks": [risk.as_data() for risk in find_risks(overview)],
        "config": [change.as_data() for change in overview.config],
        "packages": [
            _build_package_data(package, index, group[0])
            for index, group in enumerate(overview.groups)
            for package in group
        ],
        "groups": [_build_group_data(group, overview, max_diff_lines) for group in overview.groups],
        "findings": {
            "new": build_findings_data(overview.new_findings),
            "mended": build_findings_data(overview.fixed_findings),
        },
        "unknown": {
            "clusters": list(overview.unknown.clusters),
            "findings": build_findings_data(overview.unknown.findings),
        },
    }


def _format_headline(overview: ImpactOverview) -> str:
    counts = overview.counts
    packages = f"{format_count(counts['packages'], 'package')} on {format_count(counts['clusters'], 'cluster')}"
    parts = [packages] if counts["packages"] else [] if overview.unknown else ["no effect on any package"]
    parts += [_format_unknown_clusters(overview)] if overview.unknown else []
    parts += [f"{counts[kind]} {label}" for kind, label in _KIND_LABELS.items() if counts[kind] and kind != "changed"]
    parts += [f"{format_count(counts[name], noun)}{suffix}" for name, noun, suffix in _COUNT_LABELS if counts[name]]
    return f"Impact of {_shorten_config(overview.base)} → {_shorten_config(overview.head)}: {', '.join(parts)}"


def _format_unknown_clusters(overview: ImpactOverview) -> str:
    names = overview.unknown.clusters
    if not names:
        return "the impact is unknown for objects without a cluster"
    count = format_count(len(names), "cluster")
    return f"the impact is unknown on {count} ({format_names(names, _MAX_CLUSTERS)})"


def _format_unknown(overview: ImpactOverview) -> list[str]:
    """Return the reasons why the impact is unknown, and the next step."""
    if not overview.unknown:
        return []
    next_step = "next step: fix these findings, and run the command again"
    return [*format_findings(overview.unknown.findings), next_step]


def _shorten_config(config: str) -> str:
    kind, colon, digits = config.rpartition(":")
    return f"{kind}{colon}{digits[:_CONFIG_CHARACTERS]}"


def _format_risk_kind(risk: Risk) -> str:
    return _RISK_LABELS.get(risk.kind, risk.kind)


def _format_group_text(group: ImpactGroup, overview: ImpactOverview, max_diff_lines: int) -> str:
    title = f"{_KIND_LABELS[group[0].kind]}: {format_group_location(group, overview.clusters)}"
    lines = "\n".join([title, *(f"  {line}" for line in _format_details(group))])
    return "".join([lines, "\n", *(diff for _, diff in _format_diffs(group[0], max_diff_lines))])


def _format_group_markdown(group: ImpactGroup, overview: ImpactOverview, max_diff_lines: int) -> str:
    location = format_code(format_group_location(group, overview.clusters))
    title = f"## {_KIND_LABELS[group[0].kind].capitalize()}: {location}"
    items = [_format_item(line) for line in _format_details(group)]
    return "\n".join([title, "", *items, *format_folded_diffs(_format_diffs(group[0], max_diff_lines))])


def _format_item(line: str) -> str:
    """Return a line as a Markdown list item. A known label at its start is plain text, and the rest is code."""
    label, colon, text = line.partition(": ")
    if colon and label in _LINE_LABELS:
        return f"- {label}: {format_code(shorten(text, _MAX_LINE_CHARACTERS))}"
    return f"- {format_code(shorten(line, _MAX_LINE_CHARACTERS))}"


def _format_details(group: ImpactGroup) -> Iterator[str]:
    first, draft = group[0], group[0].draft
    if first.blocked_reason:
        yield to_one_line(first.blocked_reason)
    yield from (f"conflict: {line}" for line in first.conflicts)
    if first.changes is None:
        yield "too large to compare"
    elif first.changes:
        yield from first.changes.format_summary_lines(_MAX_LINES)
        yield from first.changes.format_file_lines(_MAX_LINES)
    elif first.kind in ("changed", "new"):
        yield "no file differs"
    if draft:
        yield from (f"templates: {line}" for line in draft.templates)
        yield from (f"child: {line}" for line in format_children(draft.children, _MAX_LINES))
        yield from (f"overridden: {line}" for line in draft.overrides)
        yield from (f"blocks publication: {condition}" for condition in draft.waiting)
    yield from (f"why: {line}" for line in _limit(_list_causes(group), _MAX_CAUSES))
    if len(group) > 1:
        yield f"on: {format_names(_list_names(group), _MAX_TARGETS)}"


def _format_by_code(findings: Iterable[Finding]) -> list[str]:
    """Return the first lines per finding code, because a fleet can have thousands of equal findings."""
    by_code: dict[str, list[Finding]] = {}
    for finding in findings:
        by_code.setdefault(finding.code, []).append(finding)
    lines: list[str] = []
    for code, same_code in by_code.items():
        code_lines = format_findings(same_code)
        rest = len(code_lines) - _MAX_FINDINGS_PER_CODE
        lines += [*code_lines[:_MAX_FINDINGS_PER_CODE], *([f"and {rest} more of {code}"] if rest > 0 else [])]
    return lines


def _list_causes(group: ImpactGroup) -> list[str]:
    """Return the config changes that cause a group of changes. If there are none, return the causes of the draft."""
    changes = {change.key: change for package in group for change in package.config_changes}
    return [changes[key].summary for key in sorted(changes)] or list(group[0].causes)


def _list_names(group: ImpactGroup) -> Sequence[str]:
    is_one_package = len({package.effect.package for package in group}) == 1
    return [package.cluster or package.target if is_one_package else package.target for package in group]


def _limit(lines: Sequence[str], limit: int) -> tuple[str, ...]:
    rest = len(lines) - limit
    return (*lines[:limit], f"and {rest} more") if rest > 0 else tuple(lines)


def _format_diffs(package: AffectedPackage, max_lines: int) -> Iterator[tuple[str, str]]:
    before, after, target = package.effect.files_before, package.effect.files_after, package.effect.target
    if not max_lines or before is None or after is None or target is None:
        return iter(())
    return format_file_diffs(before, after, target.get_package_path(package.effect.package), max_lines)


def _format_section(title: str, lines: Iterable[str]) -> str:
    indented = [f"  {line}" for line in lines]
    return "\n".join([title, *indented]) if indented else ""


def _format_list(title: str, lines: Sequence[str]) -> str:
    items = [f"- {format_code(shorten(line, _MAX_LINE_CHARACTERS))}" for line in lines[:_MAX_ROWS]]
    more = [f"- and {len(lines) - _MAX_ROWS} more"] if len(lines) > _MAX_ROWS else []
    return "\n".join([f"## {title}", "", *items, *more]) if items else ""


def _format_risk_table(risks: Sequence[Risk]) -> str:
    if not risks:
        return ""
    rows = [
        f"| {_format_risk_kind(risk)} | {_format_cell(risk.packages)} | {_format_cell(risk.reason)} |"
        for risk in risks[:_MAX_ROWS]
    ]
    more = [f"\nand {len(risks) - _MAX_ROWS} more"] if len(risks) > _MAX_ROWS else []
    return "\n".join(["## Risks", "", "| risk | where | reason |", "|---|---|---|", *rows, *more])


def _format_cell(text: str) -> str:
    # Escape vertical bars, because a vertical bar ends a table cell, even inside code.
    return format_code(shorten(text, _MAX_LINE_CHARACTERS)).replace("|", "\\|")


def _join_within_limit(sections: Sequence[str], groups: Sequence[str]) -> str:
    """Return the sections and as many groups as a comment can contain, with the number of the omitted groups."""
    space = MAX_COMMENT_CHARACTERS - sum(len(section) + 2 for section in sections) - _MAX_LINE_CHARACTERS
    included: list[str] = []
    for group in groups:
        space -= len(group) + 2
        if space < 0:
            break
        included.append(group)
    dropped = len(groups) - len(included)
    count = format_count(dropped, "more group")
    note = f"{count} of equal changes did not fit into this comment. Text and JSON output have all groups."
    return "\n\n".join([*sections, *included, *([note] if dropped else [])]) + "\n"


def _build_package_data(package: AffectedPackage, group: int, first: AffectedPackage) -> dict[str, Any]:
    # Include the changes of a package only if they differ from the changes of its group, for example in names.
    changes, group_changes = package.changes, first.changes
    has_own_changes = changes and group_changes and changes.comparison_key != group_changes.comparison_key
    effect, owner = package.effect, package.effect.owner
    return drop_empty({
        "repository": package.cluster, "package": effect.package, "owner": owner.as_data() if owner else None,
        "change": package.kind, "before": effect.before.kind, "after": effect.after.kind,
        "draft": effect.creates_draft, "group": group, "reason": effect.after.reason, "message": effect.after.message,
        "config": [change.as_data() for change in package.config_changes], "causes": list(package.causes),
        "changes": build_changes_data(changes) if changes and has_own_changes else None,
    })  # fmt: skip


def _build_group_data(group: ImpactGroup, overview: ImpactOverview, max_diff_lines: int) -> dict[str, Any]:
    first, draft = group[0], group[0].draft
    clusters = sorted({package.cluster for package in group if package.cluster})
    return {
        "change": first.kind,
        "packages": [package.target for package in group],
        "clusters": clusters,
        "label": overview.clusters.find_common_label(clusters),
        "changes": build_changes_data(first.changes) if first.changes is not None else None,
        "consequences": [consequence.as_data() for consequence in first.consequences],
        **drop_empty({
            "conflicts": list(first.conflicts), "waitingFor": list(draft.waiting) if draft else [],
            "templates": list(draft.templates) if draft else [], "overridden": list(draft.overrides) if draft else [],
            "why": _list_causes(group),
            "diffs": [{"path": path, "diff": diff} for path, diff in _format_diffs(first, max_diff_lines)],
        }),
    }  # fmt: skip
