"""Conflicts in words: one line each, for commit messages and plans (design 10.8)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from reconciler.krm.conflicts import Conflict
from reconciler.planning.conflicts import conflict_data, recorded_conflicts
from reconciler.reporting.values import count, one_line, show

_NOTHING = "nothing"


def conflict_lines(conflicts: Iterable[Conflict], most: int | None = None) -> tuple[str, ...]:
    """Return a line for each conflict; with `most` only so many, and one line that counts the rest."""
    return _first([_words(conflict_data(one)) for one in conflicts], most)


def recorded_conflict_lines(recorded: object, most: int | None = None) -> tuple[str, ...]:
    """Return the same lines for the conflicts that a status file records, which everybody may edit."""
    return _first([one_line(_words(one)) for one in recorded_conflicts(recorded)], most)


def conflict_summary(chosen: Iterable[str]) -> str:
    """Return how many conflicts there are by the sides that were chosen, in a few words; "" without conflicts.

    Where the local side was chosen, a change of the upstream was not applied.
    """
    sides = list(chosen)
    kept = sides.count("local")
    parts = [f"{count(kept, 'upstream change')} not applied"] if kept else []
    parts += [count(len(sides) - kept, "conflict")] if len(sides) > kept else []
    return ", ".join(parts)


def _first(lines: list[str], most: int | None) -> tuple[str, ...]:
    more = [f"… and {len(lines) - most} more"] if most is not None and len(lines) > most else []
    return (*lines[:most], *more)


def _words(conflict: Mapping[str, Any]) -> str:
    place = " ".join(str(conflict[part]) for part in ("file", "resource", "pointer") if part in conflict)
    local, other = (show(conflict[side]) if side in conflict else _NOTHING for side in ("local", "upstream"))
    if conflict["kind"] == "package" and not place:
        return "the whole package: deleted on the cluster branch, and contained in this draft again"
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
