"""The impact for people and programs: as text, as Markdown that fits into a comment, and as data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from reconciler.krm.findings import Finding
from reconciler.reporting.cluster_names import some
from reconciler.reporting.diffs import file_diffs
from reconciler.reporting.findings import finding_lines, findings_data
from reconciler.reporting.impact import Affected, Group, How, ImpactReview
from reconciler.reporting.impact_risks import Risk, risks, where_words
from reconciler.reporting.markdown import code, folded
from reconciler.reporting.plan import changes_data
from reconciler.reporting.status_file import told
from reconciler.reporting.templates import child_lines
from reconciler.reporting.values import count, one_line, shorten

MARKER = "<!-- reconciler impact -->"
"""The first line of the Markdown, by which a pipeline finds its own comment again; nobody sees it."""
MOST_CHARACTERS = 65_000
"""How long the Markdown gets: a comment on GitHub has at most 65,536 characters."""
_LINES = 20
_ROWS = 30
_WIDTH = 400
_NAMED = 10
_EXAMPLES = 5
_WHYS = 5
_FINDINGS = 3
_HOWS: dict[How, str] = {
    "removed": "put up for removal",
    "heldUp": "held up",
    "changed": "changed",
    "new": "new",
    "unmade": "not made any more",
    "orphaned": "left to people",
    "kept": "not removed after all",
    "mended": "mended",
}


def impact_text(seen: ImpactReview, max_diff_lines: int = 0) -> str:
    """Return the impact as plain text: counts, the risks, what is different in the config, each change once.

    `max_diff_lines` is per file; 0 leaves the diffs out.
    """
    sections = [
        _headline(seen),
        _listed("Unknown", _unknown_lines(seen)),
        _listed("Risks", (f"{one.kind}: {one.where}: {one.what}" for one in risks(seen))),
        _listed("New besides", _by_code(seen.news_besides)),
        _listed("Mended", _by_code(seen.mended)),
        _listed("Different in the config", (one.words for one in seen.config)),
        *(_group_text(group, seen, max_diff_lines) for group in seen.groups),
    ]
    return "\n\n".join(section.rstrip("\n") for section in sections if section) + "\n"


def impact_markdown(seen: ImpactReview, max_diff_lines: int = 0) -> str:
    """Return the impact as Markdown for a comment: whatever people wrote stands as code, what does not fit is counted.

    It begins with `MARKER`.
    """
    found = risks(seen)
    sections = [
        f"{MARKER}\n# {_headline(seen)}",
        _items("Unknown", _unknown_lines(seen)),
        _table(found),
        _items("New besides", _by_code(seen.news_besides)),
        _items("Mended", _by_code(seen.mended)),
        _items("Different in the config", [one.words for one in seen.config]),
    ]
    groups = [_group_markdown(group, seen, max_diff_lines) for group in seen.groups]
    return _fitting([one for one in sections if one], groups)


def impact_json(seen: ImpactReview, max_diff_lines: int = 0) -> dict[str, Any]:
    """Return the impact as JSON data: `packages` (each names its group), `groups` with changes, `risks`, `findings`.

    Everything is there, whatever its length; a package whose changes have other names than its group's has its own.
    Values of Secrets are masked as everywhere.
    """
    return {
        "base": seen.base,
        "head": seen.head,
        "counts": seen.counts,
        "risks": [one.as_data() for one in risks(seen)],
        "config": [one.as_data() for one in seen.config],
        "packages": [_package_data(one, index, group[0]) for index, group in enumerate(seen.groups) for one in group],
        "groups": [_group_data(group, seen, max_diff_lines) for group in seen.groups],
        "findings": {"new": findings_data(seen.news), "mended": findings_data(seen.mended)},
        "unknown": {"clusters": list(seen.unknown.clusters), "findings": findings_data(seen.unknown.findings)},
    }


def _headline(seen: ImpactReview) -> str:
    counts = seen.counts
    packages = f"{count(counts['packages'], 'package')} on {count(counts['clusters'], 'cluster')}"
    first = [packages] if counts["packages"] else [] if seen.unknown else ["no effect on any package"]
    first += [_unknown_words(seen)] if seen.unknown else []
    hows = [f"{counts[how]} {words}" for how, words in _HOWS.items() if counts[how] and how != "changed"]
    more = [f"{count(counts[name], noun)}{when}" for name, noun, when in _COUNTED if counts[name]]
    return f"Impact of {_short(seen.base)} → {_short(seen.head)}: {', '.join([*first, *hows, *more])}"


def _unknown_words(seen: ImpactReview) -> str:
    names = seen.unknown.clusters
    where = (
        f"on {count(len(names), 'cluster')} ({some(names, _EXAMPLES)})" if names else "for objects without a cluster"
    )
    return f"the impact is unknown {where}"


def _unknown_lines(seen: ImpactReview) -> list[str]:
    """Return why the impact is unknown, and what to do about it."""
    if not seen.unknown:
        return []
    step = "next step: make readable what the lines above name, and run the command again"
    return [*finding_lines(seen.unknown.findings), step]


_COUNTED = (
    ("conflicts", "conflict", ""),
    ("newErrors", "new error", ""),
    ("standingErrors", "error", " that was there before"),
)


def _short(config: str) -> str:
    kind, colon, digits = config.rpartition(":")
    return f"{kind}{colon}{digits[:12]}"


def _group_text(group: Group, seen: ImpactReview, max_diff_lines: int) -> str:
    lines = "\n".join([_title(group, seen), *(f"  {line}" for line in _lines(group))])
    return "".join([lines, "\n", *(diff for _, diff in _diffs(group[0], max_diff_lines))])


def _group_markdown(group: Group, seen: ImpactReview, max_diff_lines: int) -> str:
    items = [_item(line) for line in _lines(group)]
    title = f"## {_HOWS[group[0].how].capitalize()}: {code(where_words(group, seen.clusters))}"
    return "\n".join([title, "", *items, *folded(_diffs(group[0], max_diff_lines))])


def _item(line: str) -> str:
    """Return a line of a group as an item: what people wrote in it is code, our own words before it are not."""
    label, colon, told_of = line.partition(": ")
    if colon and label in _LABELS:
        return f"- {label}: {code(shorten(told_of, _WIDTH))}"
    return f"- {code(shorten(line, _WIDTH))}"


_LABELS = frozenset({"conflict", "templates", "child", "overridden", "not to be published before", "why", "on"})


def _title(group: Group, seen: ImpactReview) -> str:
    return f"{_HOWS[group[0].how]}: {where_words(group, seen.clusters)}"


def _lines(group: Group) -> Iterator[str]:
    one, draft = group[0], group[0].draft
    if one.trouble:
        yield one_line(one.trouble)
    yield from (f"conflict: {line}" for line in one.conflicts)
    if one.changes is None:
        yield "too large to be compared"
    elif one.changes:
        yield from one.changes.summary_lines(_LINES)
        yield from one.changes.file_lines(_LINES)
    elif one.how in ("changed", "new"):
        yield "no file is different"
    if draft:
        yield from (f"templates: {line}" for line in draft.templates)
        yield from (f"child: {line}" for line in child_lines(draft.children, _LINES))
        yield from (f"overridden: {line}" for line in draft.overrides)
        yield from (f"not to be published before: {waiting}" for waiting in draft.waiting)
    yield from (f"why: {line}" for line in _first(_whys(group), _WHYS))
    if len(group) > 1:
        yield f"on: {some(_names(group), _NAMED)}"


def _by_code(findings: Iterable[Finding]) -> list[str]:
    """Return lines for findings, of one kind the first few: a fleet may have a thousand of it."""
    kinds: dict[str, list[Finding]] = {}
    for one in findings:
        kinds.setdefault(one.code, []).append(one)
    return [line for code_, same in kinds.items() for line in _few(finding_lines(same), code_)]


def _few(lines: Sequence[str], code_: str) -> list[str]:
    rest = len(lines) - _FINDINGS
    return [*lines[:_FINDINGS], f"and {rest} more of {code_}"] if rest > 0 else [*lines]


def _whys(group: Group) -> list[str]:
    """Return the changes of the config that a group is different for; where none tells, what moved."""
    culprits = {one.key: one for each in group for one in each.culprits}
    return [culprits[key].words for key in sorted(culprits)] or list(group[0].causes)


def _names(group: Group) -> Sequence[str]:
    is_one = len({one.effect.package for one in group}) == 1
    return [one.cluster or one.place for one in group] if is_one else [one.place for one in group]


def _first(lines: Sequence[str], most: int) -> tuple[str, ...]:
    rest = len(lines) - most
    return (*lines[:most], f"and {rest} more") if rest > 0 else tuple(lines)


def _diffs(one: Affected, max_lines: int) -> Iterator[tuple[str, str]]:
    had, has, where = one.effect.had, one.effect.has, one.effect.destination
    if not max_lines or had is None or has is None or where is None:
        return iter(())
    return file_diffs(had, has, where.path(one.effect.package), max_lines)


def _listed(title: str, lines: Iterable[str]) -> str:
    found = [f"  {line}" for line in lines]
    return "\n".join([title, *found]) if found else ""


def _items(title: str, lines: Sequence[str]) -> str:
    items = [f"- {code(shorten(line, _WIDTH))}" for line in lines[:_ROWS]]
    more = [f"- and {len(lines) - _ROWS} more"] if len(lines) > _ROWS else []
    return "\n".join([f"## {title}", "", *items, *more]) if items else ""


def _table(found: Sequence[Risk]) -> str:
    if not found:
        return ""
    rows = [f"| {one.kind} | {_cell(one.where)} | {_cell(one.what)} |" for one in found[:_ROWS]]
    more = [f"\nand {len(found) - _ROWS} more"] if len(found) > _ROWS else []
    return "\n".join(["## Risks", "", "| risk | where | what |", "|---|---|---|", *rows, *more])


def _cell(text: str) -> str:
    # a bar ends a cell even in code
    return code(shorten(text, _WIDTH)).replace("|", "\\|")


def _fitting(sections: Sequence[str], groups: Sequence[str]) -> str:
    """Return as many groups as there is room for, and how many are left out."""
    room = MOST_CHARACTERS - sum(len(one) + 2 for one in sections) - _WIDTH
    taken: list[str] = []
    for one in groups:
        room -= len(one) + 2
        if room < 0:
            break
        taken.append(one)
    left = len(groups) - len(taken)
    rest = (
        f"{count(left, 'more group')} of equal changes did not fit here; the command's text and JSON have all of them."
    )
    return "\n\n".join([*sections, *taken, *([rest] if left else [])]) + "\n"


def _package_data(one: Affected, group: int, first: Affected) -> dict[str, Any]:
    # what is alike but for names is told whole, too
    own = one.changes if one.changes and first.changes and one.changes.sameness != first.changes.sameness else None
    owner, after, before = one.effect.owner, one.effect.after, one.effect.before
    return told({
        "repository": one.cluster, "package": one.effect.package, "owner": owner.as_data() if owner else None,
        "change": one.how, "before": before.kind, "after": after.kind, "draft": one.effect.drafts, "group": group,
        "reason": after.reason, "message": after.message, "config": [each.as_data() for each in one.culprits],
        "causes": list(one.causes), "changes": changes_data(own) if own else None,
    })  # fmt: skip


def _group_data(group: Group, seen: ImpactReview, max_diff_lines: int) -> dict[str, Any]:
    one, draft = group[0], group[0].draft
    diffs = [{"path": path, "diff": diff} for path, diff in _diffs(one, max_diff_lines)]
    names = sorted({each.cluster for each in group if each.cluster})
    return {
        "change": one.how,
        "packages": [each.place for each in group],
        "clusters": names,
        "label": seen.clusters.label_of(names),
        "changes": changes_data(one.changes) if one.changes is not None else None,
        "consequences": [dict(vars(each)) for each in one.consequences],
        **told({
            "conflicts": list(one.conflicts), "waitingFor": list(draft.waiting) if draft else [],
            "templates": list(draft.templates) if draft else [], "overridden": list(draft.overrides) if draft else [],
            "why": _whys(group), "diffs": diffs,
        }),
    }  # fmt: skip
