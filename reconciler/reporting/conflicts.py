"""Conflicts in words: one line each, for commit messages and plans (design 10.8)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from reconciler.krm.conflicts import Conflict
from reconciler.planning.conflicts import conflict_data
from reconciler.reporting.values import one_line, show

_NOTHING = "nothing"
_PARTS = frozenset({"kind", "chosen", "rule"})
_CHOICES = ("upstream", "local", "rule")


def conflict_lines(conflicts: Iterable[Conflict], most: int) -> tuple[str, ...]:
    """Return a line for each conflict, at most `most` and one that counts the rest."""
    return _first([_words(conflict_data(one)) for one in conflicts], most)


def recorded_conflict_lines(recorded: object, most: int) -> tuple[str, ...]:
    """Return the same lines for what a status file records, which everybody may edit: what is none is left out."""
    return _first([one_line(_words(one)) for one in recorded_conflicts(recorded)], most)


def recorded_conflicts(recorded: object) -> tuple[Mapping[str, Any], ...]:
    """Return what a status file records that is a conflict; what is none is left out."""
    listed = recorded if isinstance(recorded, list) else ()
    return tuple(one for one in listed if isinstance(one, dict) and one.keys() >= _PARTS and one["chosen"] in _CHOICES)


def _first(lines: list[str], most: int) -> tuple[str, ...]:
    more = [f"… and {len(lines) - most} more"] if len(lines) > most else []
    return (*lines[:most], *more)


def _words(conflict: Mapping[str, Any]) -> str:
    place = " ".join(str(conflict[part]) for part in ("file", "resource", "pointer") if part in conflict)
    local, other = (show(conflict[side]) if side in conflict else _NOTHING for side in ("local", "upstream"))
    if conflict["kind"] not in ("field", "element"):
        return f"{place}: {_whole(conflict)}"
    if conflict["chosen"] == "rule":
        return f"{place}: {other} by {conflict['rule']}, though people set {local}"
    ours, theirs = f"{local} here", f"{other} upstream"
    return (
        f"{place}: {theirs} wins over {ours}"
        if conflict["chosen"] == "upstream"
        else f"{place}: {ours} stays, not {theirs}"
    )


def _whole(conflict: Mapping[str, Any]) -> str:
    here = "changed here" if "local" in conflict else "removed here"
    upstream = "changed upstream" if "upstream" in conflict else "removed upstream"
    ends = {
        "upstream": "upstream's state was taken",
        "local": "what is here stays",
        "rule": f"{conflict['rule']} decides",
    }
    return f"{here} and {upstream}: {ends[conflict['chosen']]}"
