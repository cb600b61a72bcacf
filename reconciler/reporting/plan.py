"""The plan for people: what would be drafted and what is in the way, as text, as Markdown and as data."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from reconciler.planning.conflicts import conflict_data
from reconciler.planning.fleet import FleetPlan
from reconciler.planning.impact import NOT_READ
from reconciler.planning.proposal import Proposal
from reconciler.reporting.changes import Changes
from reconciler.reporting.diffs import MAX_LINES, file_diffs
from reconciler.reporting.fields import ABSENT, FieldChange
from reconciler.reporting.findings import cause_data, cause_groups, findings_data
from reconciler.reporting.kptfile_changes import KptfileChange
from reconciler.reporting.markdown import code, folded
from reconciler.reporting.object_changes import ObjectChange
from reconciler.reporting.proposal import edit_lines, proposal_data, proposal_diffs, proposal_title
from reconciler.reporting.review import Review, ReviewedDraft, Trouble, review
from reconciler.reporting.status_file import told
from reconciler.reporting.templates import child_lines, folded_repeats, repeat_lines
from reconciler.reporting.values import count, one_line

_LINES_PER_DRAFT = 20
_NAMED_PLACES = 5

Group = tuple[ReviewedDraft, ...]


def plan_text(plan: FleetPlan, max_diff_lines: int = MAX_LINES) -> str:
    """Return the plan as plain text: counts, what is in the way, then each change once with its diffs.

    `max_diff_lines` is per file; 0 leaves the diffs out.
    """
    seen = review(plan)
    sections = [
        _headline(seen),
        "\n".join(_finding_lines(seen)),
        _proposal_text(plan.proposal, max_diff_lines),
        "\n".join(line for one in seen.removals for line in (one.title, f"  why: {one_line(one.leaving.why)}")),
        *(_group_text(group, max_diff_lines) for group in seen.groups),
    ]
    return "\n\n".join(section.rstrip("\n") for section in sections if section) + "\n"


def plan_markdown(plan: FleetPlan, max_diff_lines: int = MAX_LINES) -> str:
    """Return the plan as Markdown, for a pull request or a page; whatever people wrote stands as code."""
    seen = review(plan)
    sections = [
        f"# {_headline(seen)}",
        _list("Findings", _finding_lines(seen)),
        _proposal_markdown(plan.proposal, max_diff_lines),
        _list("Not wanted any more", (f"{one.title}: {one_line(one.leaving.why)}" for one in seen.removals)),
        *(_group_markdown(group, max_diff_lines) for group in seen.groups),
    ]
    return "\n\n".join(section for section in sections if section) + "\n"


def plan_json(plan: FleetPlan, max_diff_lines: int = MAX_LINES) -> dict[str, Any]:
    """Return the plan as JSON data: `counts`, `drafts` (each names its group), `groups` with changes and diffs.

    `removals` are packages that nothing wants any more: how far each is on its way out.

    `proposal` is what would be proposed to the config anew, or null. Values of Secrets are masked in it as everywhere.
    """
    seen = review(plan)
    return {
        "config": seen.config,
        "counts": seen.counts,
        "drafts": [_draft_data(one, index) for index, group in enumerate(seen.groups) for one in group],
        "groups": [_group_data(group, max_diff_lines) for group in seen.groups],
        "removals": [one.as_data() for one in seen.departures],
        "proposal": proposal_data(plan.proposal, max_diff_lines),
        "troubles": [_blocked_data(trouble) for trouble in seen.troubles],
        "findings": findings_data(seen.findings),
    }


def _proposal_text(proposal: Proposal, max_diff_lines: int) -> str:
    if proposal.layout == "keep":
        return ""
    lines = "\n".join([proposal_title(proposal), *(f"  {line}" for line in edit_lines(proposal))])
    return "".join([lines, "\n", *(diff for _, diff in proposal_diffs(proposal, max_diff_lines))])


def _proposal_markdown(proposal: Proposal, max_diff_lines: int) -> str:
    if proposal.layout == "keep":
        return ""
    items = [f"- {code(line)}" for line in edit_lines(proposal)]
    return "\n".join(
        [f"## {code(proposal_title(proposal))}", "", *items, *folded(proposal_diffs(proposal, max_diff_lines))]
    )


def _headline(seen: Review) -> str:
    counts = seen.counts
    drafts = f"{count(counts['drafts'], 'draft')} for {count(counts['destinations'], 'destination')}"
    removals = [count(counts["removals"], "removal")] if counts["removals"] else []
    rest = [f"{counts[kind]} {kind}" for kind in ("unchanged", "blocked", "stalled", "held") if counts[kind]]
    errors = [count(counts["errors"], "error")] if counts["errors"] else []
    is_known = not any(one.code in NOT_READ for one in seen.findings)
    first = drafts if counts["drafts"] else "nothing to draft" if is_known else "nothing to draft in what could be read"
    return f"Plan for {seen.config}: {', '.join([first, *removals, *rest, *errors])}"


def _finding_lines(seen: Review) -> Iterator[str]:
    """Yield each root cause once, and below it its consequences: other findings, and what it blocks.

    What is blocked without an error finding, such as a package whose draft is proposed, comes last.
    """
    causes = cause_groups(seen.findings)
    group_of = {finding: number for number, one in enumerate(causes) for finding in one.findings}
    blocked: dict[int, list[Trouble]] = {}
    alone = []
    for trouble in seen.troubles:
        if trouble.findings:
            blocked.setdefault(group_of[trouble.findings[0]], []).append(trouble)
        else:
            alone.append(trouble)
    for number, one in enumerate(causes):
        yield from one.lines
        yield from (f"  {line}" for line in _blocked_lines(blocked.get(number, ())))
    yield from map(_trouble, alone)


def _blocked_lines(blocked: Sequence[Trouble]) -> Iterator[str]:
    for kind in dict.fromkeys(one.kind for one in blocked):
        same = [one for one in blocked if one.kind == kind]
        named = [" ".join(filter(None, (one.place, f"({one.owner})"))) for one in same[:_NAMED_PLACES]]
        more = f" and {len(same) - len(named)} more" if len(same) > len(named) else ""
        yield one_line(f"{kind}: {', '.join(named)}{more}")


def _blocked_data(one: Trouble) -> dict[str, Any]:
    causes = [cause_data(each)["causedBy"] for each in one.findings]
    return told({**{name: value for name, value in vars(one).items() if name != "findings"}, "causedBy": causes})


def _trouble(trouble: Trouble) -> str:
    place = f" {trouble.place}" if trouble.place else ""
    return one_line(f"{trouble.kind}{place} ({trouble.owner}): {trouble.reason}: {trouble.message}")


def _group_text(group: Group, max_diff_lines: int) -> str:
    told = [*_lines(group), *repeat_lines(group[0].children)]
    lines = "\n".join([_title(group[0]), *(f"  {line}" for line in told)])
    return "".join([lines, "\n", *(diff for _, diff in _diffs(group[0], max_diff_lines))])


def _title(one: ReviewedDraft) -> str:
    return one_line(f"{one.draft.task} {one.place} ({one.owner})")


def _lines(group: Group) -> Iterator[str]:
    one = group[0]
    yield from (f"conflict: {conflict}" for conflict in one.conflicts)
    yield from (f"templates: {line}" for line in one.templates)
    yield from one.changes.summary_lines(_LINES_PER_DRAFT)
    yield from one.changes.file_lines(_LINES_PER_DRAFT)
    yield from (f"child: {line}" for line in child_lines(one.children, _LINES_PER_DRAFT))
    yield from (f"overridden: {line}" for line in one.overrides)
    yield from (f"why: {cause}" for cause in one.causes)
    yield from (f"not to be published before: {waiting}" for waiting in one.waiting)
    if others := [other.place for other in group[1:]]:
        more = f" and {len(others) - _NAMED_PLACES} more" if len(others) > _NAMED_PLACES else ""
        yield f"the same change on {len(others)} more: {', '.join(others[:_NAMED_PLACES])}{more}"


def _diffs(one: ReviewedDraft, max_lines: int) -> Iterator[tuple[str, str]]:
    folder = one.destination.path(one.draft.variant.place.package)
    return file_diffs(one.draft.before, one.draft.rendered.files, folder, max_lines) if max_lines else iter(())


def _list(title: str, lines: Iterable[str]) -> str:
    items = [_item(line) for line in lines]
    return "\n".join((f"## {title}", "", *items)) if items else ""


def _item(line: str) -> str:
    """Return a line as an item of a list; an indented line as an item of a list in the one above."""
    text = line.lstrip(" ")
    return f"{' ' * (len(line) - len(text))}- {code(text)}"


def _group_markdown(group: Group, max_diff_lines: int) -> str:
    items = [f"- {code(line)}" for line in _lines(group)]
    more = [*folded_repeats(group[0].children), *folded(_diffs(group[0], max_diff_lines))]
    return "\n".join([f"## {code(_title(group[0]))}", "", *items, *more])


def _draft_data(one: ReviewedDraft, group: int) -> dict[str, Any]:
    place = one.draft.variant.place
    return told({
        "repository": place.repository, "package": place.package, "owner": one.draft.variant.owner.as_data(),
        "task": one.draft.task, "causes": list(one.causes), "waitingFor": list(one.waiting), "group": group,
        "conflicts": [conflict_data(each) for each in one.draft.rendered.conflicts],
    })  # fmt: skip


def _group_data(group: Group, max_diff_lines: int) -> dict[str, Any]:
    diffs = [{"path": path, "diff": diff} for path, diff in _diffs(group[0], max_diff_lines)]
    places, first = [one.place for one in group], group[0]
    more = {"overridden": first.overrides, "templates": first.children, "templateChanges": _templates_data(first)}
    told_more = {name: _as_json(list(some)) for name, some in more.items() if some}
    return {"packages": places, "changes": changes_data(first.changes), **told_more, "diffs": diffs}


def _templates_data(one: ReviewedDraft) -> list[dict[str, Any]]:
    return [change.as_data() for change in one.draft.rendered.template_changes]


def changes_data(changes: Changes) -> dict[str, Any]:
    """Return what differs between two versions of a package as JSON data."""
    files = [told({"path": one.path, "change": one.how, "was": one.was}) for one in changes.files]
    return {
        "objects": [_object_data(one) for one in changes.objects],
        "kptfiles": [_kptfile_data(one) for one in changes.kptfiles],
        "files": files,
    }


def _object_data(one: ObjectChange) -> dict[str, Any]:
    fields = [_field_data(change) for change in one.fields]
    return {**one.key.as_data(), "change": one.how, "files": sorted(one.files), "fields": fields}


def _kptfile_data(one: KptfileChange) -> dict[str, Any]:
    upstream = {"before": one.upstream[0], "after": one.upstream[1]} if one.upstream else None
    fields = [_field_data(change) for change in one.fields]
    return told({"path": one.path, "change": one.how, "upstream": upstream, "fields": fields})


def _field_data(change: FieldChange) -> dict[str, Any]:
    values = {"before": change.before, "after": change.after}
    return {"path": change.where, **{k: _as_json(v) for k, v in values.items() if v is not ABSENT}}


def _as_json(value: object) -> Any:
    """Return what JSON can hold of whatever YAML could."""
    return json.loads(json.dumps(value, default=str))
