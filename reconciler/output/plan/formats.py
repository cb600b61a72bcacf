"""The plan as text, Markdown and JSON data, with the proposal of config changes in the plan."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from reconciler.output.changes.diffs import MAX_DIFF_LINES, format_file_diffs
from reconciler.output.changes.package_changes import build_changes_data
from reconciler.output.findings.formats import build_cause_data, build_findings_data, group_root_causes
from reconciler.output.json_data import drop_empty, to_json_data
from reconciler.output.plan.overview import BlockedItem, DraftOverview, PlanOverview, build_plan_overview
from reconciler.output.status.package_sections import format_children, format_folded_settings, format_settings_to_repeat
from reconciler.output.text import (
    format_code,
    format_count,
    format_folded_diffs,
    format_names,
    format_object,
    shorten,
    to_one_line,
)
from reconciler.planning.attribution.impact import UNREADABLE_CODES
from reconciler.planning.decide.fleet_plan import FleetPlan
from reconciler.planning.layout.config_proposal import ConfigProposal, RevisionEdit
from reconciler.planning.model.sources import serialize_conflict

_MAX_SUBJECT_CHARACTERS = 72
_MAX_EDIT_LINES = 100
_LINES_PER_DRAFT = 20
_MAX_TARGETS = 5

DraftGroup = tuple[DraftOverview, ...]


def format_proposal_message(proposal: ConfigProposal, config: str) -> str:
    """Return the message of the commit that proposes new package revisions in the config.

    Args:
        proposal: The proposed config changes.
        config: The ID of the config commit before the proposed commit.
    """
    lines = [f"- {line}" for line in format_edits(proposal)]
    more = [f"- and {len(lines) - _MAX_EDIT_LINES} more"] if len(lines) > _MAX_EDIT_LINES else []
    body = "\n".join(["Tags moved to other revisions. This commit updates:", *lines[:_MAX_EDIT_LINES], *more])
    trailers = f"Reconciler-Task: rewrite\nReconciler-Config-Commit: {config}"
    return f"{_format_subject(proposal.edits)}\n\n{body}\n\n{trailers}\n"


def format_config_state_message() -> str:
    """Return the message of the commit with the state of proposals. Equal states must have equal commits."""
    return "state: record proposals to the config\n"


def format_edits(proposal: ConfigProposal) -> Iterator[str]:
    """Yield `file:line: Kind namespace/name: package v1 → v2 (tag stable)` for each proposed revision."""
    for edit in proposal.edits:
        pin = edit.pin
        location = f"{pin.location.file}:{pin.location.line}"
        revision = f"{pin.package} {_format_revision(edit)} (tag {pin.tag})"
        yield to_one_line(f"{location}: {format_object(pin.key)}: {revision}")


def build_proposal_data(proposal: ConfigProposal, max_diff_lines: int) -> dict[str, Any] | None:
    """Return the proposal as JSON data. Return None if this pass has no new proposal."""
    if proposal.action == "keep":
        return None
    return {
        "branch": proposal.branch,
        "change": proposal.action,
        "edits": [_build_edit_data(edit) for edit in proposal.edits],
        "diffs": [{"path": path, "diff": diff} for path, diff in format_proposal_diffs(proposal, max_diff_lines)],
    }


def format_proposal_title(proposal: ConfigProposal) -> str:
    """Return the title of a new proposal. Return "" if this pass has no new proposal."""
    place = (
        f" on {proposal.branch}" if proposal.branch else " (apply it manually, because the config is a plain folder)"
    )
    match proposal.action:
        case "write":
            return f"propose a config change{place}: {_format_edit_summary(proposal.edits)}"
        case "end":
            return f"delete {proposal.branch}: the config already contains the revisions that the tags point to"
        case "keep":
            return ""


def format_proposal_diffs(proposal: ConfigProposal, max_lines: int) -> Iterator[tuple[str, str]]:
    """Yield the path and the unified diff of each config file that the proposal changes."""
    return format_file_diffs(proposal.files_before, proposal.files_after, "", max_lines) if max_lines else iter(())


def _format_subject(edits: tuple[RevisionEdit, ...]) -> str:
    return shorten(to_one_line(f"rewrite(config): {_format_edit_summary(edits)}"), _MAX_SUBJECT_CHARACTERS)


def _format_edit_summary(edits: tuple[RevisionEdit, ...]) -> str:
    revisions = {(edit.pin.package, _format_revision(edit)) for edit in edits}
    if len(revisions) > 1:
        packages = {package for package, _ in revisions}
        return f"{format_count(len(edits), 'revision')} of {format_count(len(packages), 'package')} with moved tags"
    edit = edits[0]
    objects = f", {len(edits)} objects" if len(edits) > 1 else ""
    return f"{edit.pin.package} {_format_revision(edit)} (tag {edit.pin.tag}{objects})"


def _format_revision(edit: RevisionEdit) -> str:
    pin = edit.pin
    if pin.written_revision is None:
        return f"at {edit.revision}"
    return f"{'downgrade ' if pin.is_downgrade else ''}{pin.written_revision} → {edit.revision}"


def _build_edit_data(edit: RevisionEdit) -> Mapping[str, Any]:
    pin = edit.pin
    return {
        "object": str(pin.key), "file": pin.location.file, "line": pin.location.line, "package": pin.package,
        "tag": pin.tag, "before": pin.written_revision, "after": edit.revision, "backwards": pin.is_downgrade,
    }  # fmt: skip


def format_plan_text(plan: FleetPlan, max_diff_lines: int = MAX_DIFF_LINES) -> str:
    """Return the plan as plain text: counts, findings, blocked items, removals, and changes with their diffs.

    Equal changes of several targets are shown once.

    Args:
        plan: The plan.
        max_diff_lines: The maximum number of diff lines per file. The value 0 omits the diffs.
    """
    overview = build_plan_overview(plan)
    sections = [
        _format_headline(overview),
        "\n".join(_format_findings(overview)),
        _format_proposal_text(plan.proposal, max_diff_lines),
        "\n".join(
            line
            for removal in overview.removals
            for line in (removal.title, f"  why: {to_one_line(removal.removal.reason)}")
        ),
        *(_format_group_text(group, max_diff_lines) for group in overview.groups),
    ]
    return "\n\n".join(section.rstrip("\n") for section in sections if section) + "\n"


def format_plan_markdown(plan: FleetPlan, max_diff_lines: int = MAX_DIFF_LINES) -> str:
    """Return the plan as Markdown. User input is formatted as code."""
    overview = build_plan_overview(plan)
    removals = (f"{removal.title}: {to_one_line(removal.removal.reason)}" for removal in overview.removals)
    sections = [
        f"# {_format_headline(overview)}",
        _format_list("Findings", _format_findings(overview)),
        _format_proposal_markdown(plan.proposal, max_diff_lines),
        _format_list("Removals", removals),
        *(_format_group_markdown(group, max_diff_lines) for group in overview.groups),
    ]
    return "\n\n".join(section for section in sections if section) + "\n"


def build_plan_data(plan: FleetPlan, max_diff_lines: int = MAX_DIFF_LINES) -> dict[str, Any]:
    """Return the plan as JSON data. Values of Secrets are masked.

    Each entry of `drafts` has the index of its group in `groups`. A group contains changes and diffs. `removals` lists
    the packages that no object requests any more. `proposal` is the new proposal of config changes, or null.
    """
    overview = build_plan_overview(plan)
    return {
        "config": overview.config,
        "counts": overview.counts,
        "drafts": [_build_draft_data(draft, index) for index, group in enumerate(overview.groups) for draft in group],
        "groups": [_build_group_data(group, max_diff_lines) for group in overview.groups],
        "removals": [removal.as_data() for removal in overview.all_removals],
        "proposal": build_proposal_data(plan.proposal, max_diff_lines),
        "troubles": [_build_blocked_data(item) for item in overview.blocked_items],
        "findings": build_findings_data(overview.findings),
    }


def _format_proposal_text(proposal: ConfigProposal, max_diff_lines: int) -> str:
    if proposal.action == "keep":
        return ""
    lines = "\n".join([format_proposal_title(proposal), *(f"  {line}" for line in format_edits(proposal))])
    return "".join([lines, "\n", *(diff for _, diff in format_proposal_diffs(proposal, max_diff_lines))])


def _format_proposal_markdown(proposal: ConfigProposal, max_diff_lines: int) -> str:
    if proposal.action == "keep":
        return ""
    title = f"## {format_code(format_proposal_title(proposal))}"
    items = [f"- {format_code(line)}" for line in format_edits(proposal)]
    return "\n".join([title, "", *items, *format_folded_diffs(format_proposal_diffs(proposal, max_diff_lines))])


def _format_headline(overview: PlanOverview) -> str:
    counts = overview.counts
    drafts = f"{format_count(counts['drafts'], 'draft')} for {format_count(counts['destinations'], 'target')}"
    is_complete = not any(finding.code in UNREADABLE_CODES for finding in overview.findings)
    nothing = (
        "nothing to draft" if is_complete else "nothing to draft, but some files or repositories could not be read"
    )
    parts = [drafts if counts["drafts"] else nothing]
    parts += [format_count(counts["removals"], "removal")] if counts["removals"] else []
    parts += [f"{counts[kind]} {kind}" for kind in ("unchanged", "blocked", "stalled", "held") if counts[kind]]
    parts += [format_count(counts["errors"], "error")] if counts["errors"] else []
    return f"Plan for {overview.config}: {', '.join(parts)}"


def _format_findings(overview: PlanOverview) -> Iterator[str]:
    """Yield each root cause. Indent the other findings and the blocked items of a root cause below it.

    Blocked items without an error come last, for example a package that cannot change because its draft is proposed.
    """
    causes = group_root_causes(overview.findings)
    index_by_finding = {finding: index for index, cause in enumerate(causes) for finding in cause.findings}
    blocked: dict[int, list[BlockedItem]] = {}
    without_finding = []
    for item in overview.blocked_items:
        if item.findings:
            blocked.setdefault(index_by_finding[item.findings[0]], []).append(item)
        else:
            without_finding.append(item)
    for index, cause in enumerate(causes):
        yield from cause.lines
        yield from (f"  {line}" for line in _format_blocked_items(blocked.get(index, ())))
    yield from map(_format_blocked_item, without_finding)


def _format_blocked_items(items: Sequence[BlockedItem]) -> Iterator[str]:
    for kind in dict.fromkeys(item.kind for item in items):
        names = [" ".join(filter(None, (item.place, f"({item.owner})"))) for item in items if item.kind == kind]
        yield to_one_line(f"{kind}: {format_names(names, _MAX_TARGETS)}")


def _build_blocked_data(item: BlockedItem) -> dict[str, Any]:
    causes = [build_cause_data(finding)["causedBy"] for finding in item.findings]
    fields = {name: value for name, value in vars(item).items() if name != "findings"}
    return drop_empty({**fields, "causedBy": causes})


def _format_blocked_item(item: BlockedItem) -> str:
    place = f" {item.place}" if item.place else ""
    return to_one_line(f"{item.kind}{place} ({item.owner}): {item.reason}: {item.message}")


def _format_group_text(group: DraftGroup, max_diff_lines: int) -> str:
    details = [*_format_details(group), *format_settings_to_repeat(group[0].children)]
    lines = "\n".join([_format_title(group[0]), *(f"  {line}" for line in details)])
    return "".join([lines, "\n", *(diff for _, diff in _format_diffs(group[0], max_diff_lines))])


def _format_title(draft: DraftOverview) -> str:
    return to_one_line(f"{draft.draft.task} {draft.target_name} ({draft.owner})")


def _format_details(group: DraftGroup) -> Iterator[str]:
    first = group[0]
    yield from (f"conflict: {conflict}" for conflict in first.conflicts)
    yield from (f"templates: {line}" for line in first.templates)
    yield from first.changes.format_summary_lines(_LINES_PER_DRAFT)
    yield from first.changes.format_file_lines(_LINES_PER_DRAFT)
    yield from (f"child: {line}" for line in format_children(first.children, _LINES_PER_DRAFT))
    yield from (f"overridden: {line}" for line in first.overrides)
    yield from (f"why: {cause}" for cause in first.causes)
    yield from (f"blocks publication: {condition}" for condition in first.waiting)
    if others := [draft.target_name for draft in group[1:]]:
        yield f"same change on {format_count(len(others), 'other target')}: {format_names(others, _MAX_TARGETS)}"


def _format_diffs(draft: DraftOverview, max_lines: int) -> Iterator[tuple[str, str]]:
    if not max_lines:
        return iter(())
    folder = draft.target.get_package_path(draft.draft.variant.target.package)
    return format_file_diffs(draft.draft.previous_files, draft.draft.rendered.files, folder, max_lines)


def _format_list(title: str, lines: Iterable[str]) -> str:
    items = [_format_item(line) for line in lines]
    return "\n".join((f"## {title}", "", *items)) if items else ""


def _format_item(line: str) -> str:
    """Return a line as a Markdown list item. An indented line becomes an item of a nested list."""
    text = line.lstrip(" ")
    return f"{' ' * (len(line) - len(text))}- {format_code(text)}"


def _format_group_markdown(group: DraftGroup, max_diff_lines: int) -> str:
    items = [f"- {format_code(line)}" for line in _format_details(group)]
    diffs = format_folded_diffs(_format_diffs(group[0], max_diff_lines))
    title = f"## {format_code(_format_title(group[0]))}"
    return "\n".join([title, "", *items, *format_folded_settings(group[0].children), *diffs])


def _build_draft_data(draft: DraftOverview, group: int) -> dict[str, Any]:
    target = draft.draft.variant.target
    return drop_empty({
        "repository": target.repository, "package": target.package, "owner": draft.draft.variant.owner.as_data(),
        "task": draft.draft.task, "causes": list(draft.causes), "waitingFor": list(draft.waiting), "group": group,
        "conflicts": [serialize_conflict(conflict) for conflict in draft.draft.rendered.conflicts],
    })  # fmt: skip


def _build_group_data(group: DraftGroup, max_diff_lines: int) -> dict[str, Any]:
    first = group[0]
    template_changes = [change.as_data() for change in first.draft.rendered.template_changes]
    details = {"overridden": first.overrides, "templates": first.children, "templateChanges": template_changes}
    return {
        "packages": [draft.target_name for draft in group],
        "changes": build_changes_data(first.changes),
        **{name: to_json_data(list(entries)) for name, entries in details.items() if entries},
        "diffs": [{"path": path, "diff": diff} for path, diff in _format_diffs(first, max_diff_lines)],
    }
