"""Overrides in words: one line for each place that policies have changed in a package (design 10.28)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reconciler.planning.outcome import Draft
from reconciler.reporting.values import one_line, show_both

_PARTS = ("resource", "pointer", "steps")


def override_lines(recorded: object, most: int) -> tuple[str, ...]:
    """Return what a status file records in words, which everybody may edit: what is no record is left out.

    There are at most `most` lines, and one that counts the rest.
    """
    listed = recorded if isinstance(recorded, list | tuple) else ()
    sound = [one for one in listed if _is_sound(one)]
    lines = [one_line(_words(one)) for one in sound[:most]]
    return (*lines, f"… and {len(sound) - most} more") if len(sound) > most else tuple(lines)


def news_of_overrides(draft: Draft, most: int) -> tuple[str, ...]:
    """Return these lines for a package that is new here; of any other, its changes tell what became different."""
    return () if draft.before else override_lines(draft.rendered.overrides, most)


def _is_sound(one: object) -> bool:
    if not isinstance(one, Mapping) or not all(part in one for part in _PARTS):
        return False
    steps = one["steps"]
    return isinstance(steps, list) and bool(steps) and all(isinstance(step, Mapping) for step in steps)


def _words(one: Mapping[str, Any]) -> str:
    steps = one["steps"]
    policies = ", ".join(dict.fromkeys(str(step.get("by", "a policy")) for step in steps))
    return f"{one['resource']} {one['pointer']}: {_change(steps[0], steps[-1])} by {policies}"


def _change(first: Mapping[str, Any], last: Mapping[str, Any]) -> str:
    old, new = show_both(first.get("before"), last.get("after"))
    if "before" not in first:
        return f"added, {new}" if "after" in last else "added and removed"
    return f"{old} → {new}" if "after" in last else f"removed, was {old}"
