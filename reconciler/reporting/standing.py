"""How the fleet stands, from the summary that the last pass left on the status branch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from reconciler.krm.findings import Severity
from reconciler.reporting.findings import place_words
from reconciler.reporting.values import count, one_line

_MOST_LINES = 40
_FIRST = ("packages", "destinations")
_WORDS = {"notReady": "not ready"}


def not_well(summary: Mapping[str, Any]) -> bool:
    """Return whether anything needs somebody: an object that is not ready, a held deletion, an error finding."""
    errors = [one for one in summary.get("findings", ()) if one.get("severity") == Severity.ERROR.value]
    return bool(errors or summary.get("notReady") or summary.get("held"))


def status_text(summary: Mapping[str, Any]) -> str:
    """Return the summary in a few lines: totals first, then what is not well, each with its reason."""
    lines = [one_line(line) for line in _troubles(summary)]
    more = [f"… and {len(lines) - _MOST_LINES} more; -o json has them all"] if len(lines) > _MOST_LINES else []
    return "\n".join([totals_words(summary["totals"]), *lines[:_MOST_LINES], *more])


def totals_words(totals: Mapping[str, int]) -> str:
    """Return the totals of a summary on one line; what there is none of is left out."""
    first = f"{count(totals['packages'], 'package')} on {count(totals['destinations'], 'destination')}"
    rest = [_number(name, number) for name, number in totals.items() if number and name not in _FIRST]
    return ": ".join([first, ", ".join(rest)] if rest else [first])


def _number(name: str, number: int) -> str:
    return count(number, "finding") if name == "findings" else f"{number} {_WORDS.get(name, name)}"


def _troubles(summary: Mapping[str, Any]) -> Iterator[str]:
    for one in summary.get("notReady", ()):
        yield f"not ready  {one['object']}: {one.get('reason', '')}: {one.get('message', '')}"
    for one in summary.get("held", ()):
        yield f"held       {one['package']}: {one['reason']}: {one['message']}"
    for one in summary.get("leaving", ()):
        yield f"leaving    {one['package']}: {_why_leaving(one)}"
    for one in summary.get("gated", ()):
        yield f"gated      {one['object']}: {_why_gated(one)}"
    for one in summary.get("findings", ()):
        place = place_words(one)
        yield f"{one['severity']:<10} {f'{place}: ' if place else ''}{one['code']}: {one['message']}"


def _why_leaving(one: Mapping[str, Any]) -> str:
    stage = "its removal was declined" if one["state"] == "declined" else f"its removal waits on {one['branch']}"
    return f"{stage}: {one.get('reason', '')}"


def _why_gated(one: Mapping[str, Any]) -> str:
    gates = f"gates not met: {', '.join(one['unmetGates'])}" if "unmetGates" in one else ""
    return ": ".join(part for part in (one.get("reason", ""), one.get("message", ""), gates) if part)
