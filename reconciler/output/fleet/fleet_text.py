"""The state of the fleet and its changes as text, from the JSON data of results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from reconciler.krm.numbers import format_count
from reconciler.output.findings.formats import format_location
from reconciler.output.text import format_names, shorten_id, to_one_line

_MAX_TARGETS = 10


def format_fleet_text(fleet: Mapping[str, Any], errors: Mapping[str, Any]) -> str:
    """Return the time of the last pass, the totals, and one line per error.

    Args:
        fleet: The JSON data of the result `Fleet`.
        errors: The JSON data of the result `FindingList` with a page of errors.

    Raises:
        LookupError: A field is missing.
    """
    summary = fleet["summary"]
    config = shorten_id(fleet["metadata"].get("config", ""))
    packages = ", ".join(f"{count} {state}" for state, count in summary["packages"].items()) or "none"
    targets, changes = format_count(summary["targets"], "target"), format_count(summary["changes"], "change")
    lines = [
        f"last pass: {summary['completedAt']}{f'; config {config}' if config else ''}",
        f"{targets}; packages: {packages}; {changes} for review",
        *_format_errors(errors["items"]),
    ]
    more = errors["summary"]["findings"] - len(errors["items"])
    return "\n".join(map(to_one_line, [*lines, *([f"and {format_count(more, 'more error')}"] if more > 0 else [])]))


def format_change_list_text(changes: Mapping[str, Any]) -> str:
    """Return a few lines per change: its risk, its title, and the targets of each variant.

    Args:
        changes: The JSON data of the result `ChangeList`.

    Raises:
        LookupError: A field is missing.
    """
    lines = [f"error: {finding['message']}" for finding in changes["findings"]]
    for change in changes["items"]:
        title = f"{change['title']} ({change['owner']})" if change["owner"] else change["title"]
        lines.append(
            f"{change['risk'].upper():6} {title}: {format_count(change['targets'], 'target')}, {change['state']}"
        )
        lines += [f"  {line}" for variant in change["variants"] for line in _format_variant(variant)]
    drafts = sum(change["targets"] for change in changes["items"])
    count = format_count(len(changes["items"]), "change")
    lines.append(f"{count} in {format_count(drafts, 'draft')}" if drafts else "no draft is open")
    return "\n".join(map(to_one_line, lines))


def _format_variant(variant: Mapping[str, Any]) -> Iterator[str]:
    targets = [draft["target"] for draft in variant["drafts"]]
    yield f"{format_count(len(targets), 'target')}: {format_names(targets, _MAX_TARGETS)}"
    yield from (f"  {reason}" for reason in variant.get("riskReasons", ()))


def _format_errors(items: list[Mapping[str, Any]]) -> Iterator[str]:
    for item in items:
        location = format_location(item)
        yield f"error      {f'{location}: ' if location else ''}{item['code']}: {item['message']}"
