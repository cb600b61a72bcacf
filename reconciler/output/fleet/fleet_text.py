"""The state of the fleet as text, from the results of the API."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from reconciler.output.findings.formats import format_location
from reconciler.output.text import format_count, shorten_id, to_one_line


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


def _format_errors(items: list[Mapping[str, Any]]) -> Iterator[str]:
    for item in items:
        location = format_location(item)
        yield f"error      {f'{location}: ' if location else ''}{item['code']}: {item['message']}"
