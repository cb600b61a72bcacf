"""What waits in a fleet, for whom, and how to go on; equal things told once (porch 1.1, 7; design 10.26)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, get_args

from reconciler.krm.digest import canonical_json
from reconciler.planning.cells import Cell
from reconciler.planning.conflicts import recorded_conflicts
from reconciler.planning.open_drafts import Reason
from reconciler.reporting.open_drafts import Sheet
from reconciler.reporting.package_status import task_words
from reconciler.reporting.report.alike import Own
from reconciler.reporting.report.fleet import Disputed, Kind, Place, ReadPackage, Waiting, earlier
from reconciler.reporting.values import count, one_line, show

KINDS: tuple[Kind, ...] = get_args(Kind)
_CONFIG, _GATES, _REVIEWER, _APPROVER = (
    "who keeps the config", "who meets the gate", "a reviewer", "an approver",
)  # fmt: skip
_NOBODY = "nobody: it comes back when it would be another"
_REVIEWED: tuple[Kind, ...] = ("conflict", "proposed", "draft")
_NOTHING = "nothing"
_LAST = 2**63


class Waits:
    """Gathers what waits; what is the same on many places is kept once."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, ...], Waiting] = {}
        self._places: dict[tuple[str, ...], list[Place]] = {}
        self._changes: dict[tuple[str, ...], dict[str, None]] = {}
        self._disputed: dict[bytes, Disputed] = {}
        self._disputes: dict[bytes, list[Place]] = {}

    def add(self, place: Place, one: ReadPackage, sheet: Sheet | None, own: Own, change: str) -> None:
        """Take a package in, if anything of it waits."""
        found = _waiting(one, sheet)
        if found is None:
            return
        # what is to be reviewed is alike where it changes the same, and what is in the way where it is told the same
        alike = change or place.package if found.kind in _REVIEWED else ""
        key = (found.kind, replace(own, package=place.package).apart(found.what), alike)
        known = self._found.setdefault(key, found)
        varies = known.varies or known.what != found.what
        self._found[key] = replace(known, since=earlier(known.since, found.since), varies=varies)
        self._places.setdefault(key, []).append(place)
        if change:
            self._changes.setdefault(key, {})[change] = None
        if one.cell.drafted:
            self._dispute(place, one.status)

    def _dispute(self, place: Place, status: Mapping[str, Any]) -> None:
        for one in recorded_conflicts(status.get("conflicts")):
            told = _disputed(place.package, one)
            key = canonical_json(vars(told) | {"places": ()})
            self._disputed.setdefault(key, told)
            self._disputes.setdefault(key, []).append(place)

    def waiting(self) -> tuple[Waiting, ...]:
        """Return what waits, by kind, and of one kind the oldest first."""
        found = [
            replace(one, places=tuple(self._places[key]), changes=tuple(self._changes.get(key, ())))
            for key, one in self._found.items()
        ]
        return tuple(sorted(found, key=_rank))

    def disputed(self) -> tuple[Disputed, ...]:
        """Return the conflicts of open drafts, by package and place in it."""
        found = [replace(one, places=tuple(self._disputes[key])) for key, one in self._disputed.items()]
        return tuple(sorted(found, key=lambda one: (one.package, one.file, one.resource, one.pointer, one.places)))


def _rank(one: Waiting) -> tuple[int, int, tuple[str, ...], tuple[Place, ...]]:
    return KINDS.index(one.kind), _LAST if one.since is None else one.since, one.packages, one.places


def _waiting(one: ReadPackage, sheet: Sheet | None) -> Waiting | None:
    cell = one.cell
    told = _standing(cell) if sheet is None else _drafted(one, sheet)
    if told is None:
        return None
    kind, who, what = told
    # what is on no draft has the date of what is published, and waits since nobody knows when
    return Waiting(kind, who, one_line(what), (), one.since if one.cell.drafted else None)


def _standing(cell: Cell) -> tuple[Kind, str, str] | None:
    """Return what waits though it is on no draft."""
    match cell.state:
        case "blocked" | "held" as state:
            return state, _CONFIG, _sentences(cell.reasons)
        case "declined":
            return "declined", _NOBODY, _sentences(cell.reasons) or "its last version was turned down"
    return None


def _drafted(one: ReadPackage, sheet: Sheet) -> tuple[Kind, str, str]:
    cell = one.cell
    if cell.state in ("blocked", "held"):
        return ("blocked" if cell.state == "blocked" else "held"), _CONFIG, _sentences(cell.reasons)
    if refusals := cell.refusals:
        return _refused(refusals)
    if conflicts := len(recorded_conflicts(one.status.get("conflicts"))):
        return "conflict", _REVIEWER, f"{_what(one)}; {count(conflicts, 'conflict')} to look at"
    if sheet.rejection:
        return "rejected", _CONFIG, sheet.rejection.words()
    return _ready(one, sheet)


def _refused(refusals: tuple[Reason, ...]) -> tuple[Kind, str, str]:
    reasons = {one.reason for one in refusals}
    if reasons == {"BranchMoved"}:
        return "clash", _REVIEWER, _sentences(refusals)
    return "gate", _GATES if reasons == {"GateNotMet"} else _CONFIG, _sentences(refusals)


def _ready(one: ReadPackage, sheet: Sheet) -> tuple[Kind, str, str]:
    cell, what = one.cell, _what(one)
    if cell.state == "removal":
        return "removal", _APPROVER, f"to be removed: {_sentences(cell.reasons)}" if cell.reasons else "to be removed"
    if cell.state == "proposed":
        waits = f"; its update waits: {_sentences(cell.reasons)}" if cell.reasons else ""
        return "proposed", _APPROVER, f"{what}, proposed{waits}"
    by = f" by {', '.join(sheet.people)}" if sheet.people else " by people"
    moved = ", moved on since it was proposed" if sheet.draft.lifecycle == "Stale" else ""
    return "draft", _REVIEWER, f"{what}{f', edited{by}' if cell.state == 'edited' else ''}{moved}"


def _what(one: ReadPackage) -> str:
    return task_words(one.status) or "changed by people"


def _sentences(reasons: tuple[Reason, ...]) -> str:
    return "; ".join(f"{one.reason}: {one.message}" for one in reasons)


def _disputed(package: str, one: Mapping[str, Any]) -> Disputed:
    file, resource, pointer = (one_line(str(one.get(name, ""))) for name in ("file", "resource", "pointer"))
    base, local, upstream = (show(one[side]) if side in one else _NOTHING for side in ("base", "local", "upstream"))
    return Disputed(
        package, file, resource, pointer, base, local, upstream, str(one["chosen"]), one_line(str(one["rule"])), ()
    )
