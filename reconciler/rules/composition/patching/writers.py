"""Several addons writing one place: who set what in an object, and what becomes of who came first (openchoreo 9)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from reconciler.krm.conflicts import ABSENT
from reconciler.krm.findings import Code
from reconciler.krm.pointer import format_pointer
from reconciler.krm.yaml.same import same
from reconciler.rules.composition.codes import LAST_WRITER_WINS, MERGED_WRITE, OVERWRITTEN_WRITE
from reconciler.rules.composition.model import Instance
from reconciler.rules.composition.patching.allowance import Allowance
from reconciler.rules.composition.patching.apply import Write, WriteOp, apply
from reconciler.rules.composition.patching.locate import Location, Op
from reconciler.rules.composition.patching.operations import Operation
from reconciler.rules.edits import value_at
from reconciler.rules.notes import Note

IsOrdered = Callable[[Instance, Instance], bool]
_Told = tuple[Instance, Note]
_HOW = "requires or loadOrder of one of them would say that this is meant"


@dataclass(frozen=True)
class Patched:
    """What an operation did to an object, and what is to be said of it: each thing once, at its first place."""

    writes: tuple[Write, ...]
    notes: tuple[Note, ...]


class Writers:
    """Who set what in one object while it is rendered; a list's items keep their writers when they move.

    Whoever creates the object is asked for where nobody else set a place, but has no say in it: what was there from the
    beginning is replaced as RFC 6902 has it. The same goes for items that were appended (openchoreo 9).
    """

    def __init__(self, is_ordered: IsOrdered, creator: Instance | None = None) -> None:
        self._is_ordered = is_ordered
        self._root = _Mark(creator, is_own=True)

    def patch(
        self, document: Any, operation: Operation, by: Instance, allowance: Allowance, *, skip_missing: bool = False
    ) -> Patched:
        """Apply an operation of an addon to `document`, which is changed (openchoreo 8.3, 9).

        What another addon added to a map is merged with where both are maps or lists. Raises FaultError.
        """
        told: list[_Told] = []

        def merges(place: Location) -> bool:
            other = self._merged_with(document, operation, place, by)
            if other:
                message = f"{by} adds to what {other} set at {format_pointer(place)}: both are merged"
                told.extend(self._note(MERGED_WRITE, message, place, by, other))
            return other is not None

        writes = apply(document, operation, allowance, skip_missing=skip_missing, merges=merges)
        for write in writes:
            told.extend(self._overwriting(operation.op, write, by))
            self._root.take(write, by)
        return Patched(writes, tuple(_once(told)))

    def writer_of(self, place: Location) -> Instance | None:
        """Return who made what is at a place, None where that was the definition."""
        return self._root.nearest(place).by

    def _merged_with(self, document: Any, operation: Operation, place: Location, by: Instance) -> Instance | None:
        if operation.op != "add" or isinstance(place[-1], int):
            return None
        there, value = value_at(document, place), operation.value
        are_alike = isinstance(there, dict | list) and isinstance(value, dict | list) and type(there) is type(value)
        return self._setter(place, by) if are_alike else None

    def _setter(self, place: Location, by: Instance) -> Instance | None:
        """Return the other addon that set what is at a place, if any did."""
        mark = self._root.nearest(place)
        return mark.by if mark.is_set and mark.by != by else None

    def _overwriting(self, op: Op, write: Write, by: Instance) -> Iterator[_Told]:
        if write.before is ABSENT:
            return
        lost = self._lost(write, by)
        other = self._setter(write.location, by)
        if other and op in ("replace", "remove"):
            lost = {other: write.location} | {one: place for one, place in lost.items() if one != other}
        elif other and not same(write.before, write.after):
            lost.pop(other, None)
            place = format_pointer(write.location)
            message = f"{by} sets {place} to another value than {other} did: the last one wins; {_HOW}"
            yield from self._note(LAST_WRITER_WINS, message, write.location, by, other)
        done = "removes" if op == "remove" else "overwrites"
        for one, location in lost.items():
            message = f"{by} {done} what {one} set at {format_pointer(location)}; {_HOW}"
            yield from self._note(OVERWRITTEN_WRITE, message, location, by, one)

    def _lost(self, write: Write, by: Instance) -> dict[Instance, Location]:
        """Return the other addons that set something below what is replaced, and where the first of it is lost."""
        found: dict[Instance, Location] = {}
        for place, one in self._root.marked_below(write.location):
            inside = place[len(write.location) :]
            if one != by and not same(value_at(write.before, inside), value_at(write.after, inside)):
                found.setdefault(one, place)
        return found

    def _note(self, code: Code, message: str, place: Location, by: Instance, other: Instance) -> Iterator[_Told]:
        # who declared an order meant what comes of it
        if not self._is_ordered(by, other):
            yield other, Note(code, message, place)


def _once(told: list[_Told]) -> Iterator[Note]:
    """Yield what one operation has to say of each other addon, at its first place: a wildcard may have thousands."""
    places = Counter((other, note.code.name) for other, note in told)
    firsts = {(other, note.code.name): note for other, note in reversed(told)}
    for key, count in places.items():
        more = f" (as at {count - 1:,} more places)" if count > 1 else ""
        yield replace(firsts[key], message=f"{firsts[key].message}{more}")


@dataclass
class _Mark:
    """Who made the value at one place, and all below it that has no mark of its own; without `is_own` nobody did.

    Items are those of the list itself, as far as they are known, so that both move alike.
    """

    by: Instance | None = None
    is_own: bool = False
    is_set: bool = False
    fields: dict[str, _Mark] = field(default_factory=dict)
    items: list[_Mark | None] = field(default_factory=list)

    def nearest(self, place: Location) -> _Mark:
        """Return the mark that tells of a place: its own, or that of the nearest place above."""
        found = mark = self
        for step in place:
            below = mark.below(step)
            if below is None:
                break
            mark = below
            found = mark if mark.is_own else found
        return found

    def below(self, step: str | int) -> _Mark | None:
        """Return the mark one step down."""
        if isinstance(step, str):
            return self.fields.get(step)
        return self.items[step] if step < len(self.items) else None

    def take(self, write: Write, by: Instance) -> None:
        """Note a write that was made; what is below it is forgotten."""
        holder = self
        for step in write.location[:-1]:
            holder = holder.below(step) or holder.put("replace", step, _Mark())
        mark = _Mark(by, is_own=True, is_set=not write.is_appended)
        holder.put(write.op, write.location[-1], mark)

    def put(self, op: WriteOp, step: str | int, mark: _Mark) -> _Mark:
        """Do to the marks what was done to the values, and return the mark."""
        if isinstance(step, str):
            self.fields.pop(step, None) if op == "remove" else self.fields.update({step: mark})
            return mark
        self.items.extend([None] * (step - len(self.items)))
        # an item, none, or the place before the next: what replaces, inserts, and removes
        self.items[step : step + (op != "add")] = [] if op == "remove" else [mark]
        return mark

    def marked_below(self, place: Location) -> list[tuple[Location, Instance]]:
        """Return the places below one that addons set, in document order of lists and order of writing elsewhere."""
        mark: _Mark | None = self
        for step in place:
            mark = mark.below(step) if mark else None
        return list(mark.marked(place)) if mark else []

    def marked(self, at: Location) -> Iterator[tuple[Location, Instance]]:
        """Yield the places below this one, which is `at`, that addons set."""
        steps: list[tuple[str | int, _Mark | None]] = [*self.fields.items(), *enumerate(self.items)]
        for step, mark in steps:
            if mark and mark.is_set and mark.by:
                yield (*at, step), mark.by
            if mark:
                yield from mark.marked((*at, step))
