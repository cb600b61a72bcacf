"""Applying operations: every place gets a value of its own, and every change is told (openchoreo 8.3, 8.4)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from reconciler.expressions import OMIT
from reconciler.krm.conflicts import ABSENT
from reconciler.krm.pointer import format_pointer
from reconciler.krm.yaml import Path
from reconciler.rules.composition.codes import MERGE_TYPE_MISMATCH
from reconciler.rules.composition.faults import FaultError, fault_of
from reconciler.rules.composition.patching.allowance import Allowance
from reconciler.rules.composition.patching.locate import Location, Op, locate
from reconciler.rules.composition.patching.operations import Operation

WriteOp = Literal["add", "replace", "remove"]


@dataclass(frozen=True)
class Write:
    """One change that an operation made, as RFC 6902 would make it: an `add` to a list inserts.

    `before` and `after` are ABSENT where there is nothing, and not to be changed. `is_appended` tells an item that went
    to the end of a list that was there. `part` leads to what was written in the operation's value, `inside` to where
    that begins in `after`, below the parents that were missing.
    """

    op: WriteOp
    location: Location
    before: Any
    after: Any
    is_appended: bool = False
    part: Location = ()
    inside: Location = ()


def _as_written(_: Location) -> bool:
    return False


def apply(
    document: Any,
    operation: Operation,
    allowance: Allowance,
    *,
    skip_missing: bool = False,
    merges: Callable[[Location], bool] = _as_written,
) -> tuple[Write, ...]:
    """Apply an operation to `document`, which is changed, at all the places of its path, and return what it did.

    `merges` tells of a place that is added to whether what is there is merged with, not replaced. Raises FaultError,
    and then some of the places may have been changed.
    """
    if operation.value is OMIT:
        return ()
    at = (*operation.at, "path")
    allowance.begin(at)
    places = locate(document, operation.path, operation.op, allowance, at, skip_missing=skip_missing)
    act = _Act(document, (*operation.at, "value"), allowance)
    # from the end, so that the places of a list stay what they are
    places = places[::-1] if operation.op == "remove" else places
    return tuple(
        write
        for place in places
        for write in act.at("merge" if merges(place) else operation.op, place, operation.value)
    )


@dataclass(frozen=True)
class _Act:
    """One operation on one document."""

    document: Any
    written: Path
    allowance: Allowance

    def at(self, op: Op, place: Location, value: Any) -> Iterator[Write]:
        """Change one place, and yield what that changed."""
        holder, depth = self._reach(place)
        step = place[depth]
        if depth < len(place) - 1:
            missing = place[depth + 1 :]
            yield self._set(holder, place[: depth + 1], _nested(missing, value), inside=missing)
        elif op == "remove":
            yield Write("remove", place, holder.pop(step), ABSENT)
        elif op == "merge":
            yield from self._merge(holder, place, value)
        elif op == "add" and isinstance(holder, list):
            yield self._insert(holder, place, value, is_appended=step == len(holder))
        else:
            yield self._set(holder, place, value)

    def _reach(self, place: Location) -> tuple[Any, int]:
        """Return the lowest container on the way that is there, and how many steps down it is."""
        holder = self.document
        for depth, step in enumerate(place[:-1]):
            below = holder.get(step) if isinstance(holder, dict) else holder[step]
            if below is None:
                return holder, depth
            holder = below
        return holder, len(place) - 1

    def _set(self, holder: Any, place: Location, value: Any, part: Location = (), *, inside: Location = ()) -> Write:
        step = place[-1]
        before = holder.get(step, ABSENT) if isinstance(holder, dict) else holder[step]
        holder[step] = self.allowance.copied(value, len(place), self.written)
        return Write("add" if before is ABSENT else "replace", place, before, value, False, part, inside)

    def _insert(
        self, holder: list[Any], place: Location, value: Any, part: Location = (), *, is_appended: bool
    ) -> Write:
        holder.insert(int(place[-1]), self.allowance.copied(value, len(place), self.written))
        return Write("add", place, ABSENT, value, is_appended, part)

    def _merge(self, holder: Any, place: Location, value: Any, part: Location = ()) -> Iterator[Write]:
        """Merge a value into what is at a place, the parent of which is there (openchoreo 8.4)."""
        old = holder.get(place[-1]) if isinstance(holder, dict) else holder[place[-1]]
        match old, value:
            case dict(), dict():
                for key, one in value.items():
                    yield from self._merge(old, (*place, key), one, (*part, key))
            case list(), list():
                for index, one in enumerate(value):
                    yield self._insert(old, (*place, len(old)), one, (*part, index), is_appended=True)
            case list(), _:
                yield self._insert(old, (*place, len(old)), value, part, is_appended=True)
            case (dict(), _) | (str() | int() | float(), dict() | list()):
                message = f"must be {_like(old)}, as what it is merged into, at {format_pointer(place)}"
                raise FaultError(fault_of(MERGE_TYPE_MISMATCH, self.written, message))
            case _:
                yield self._set(holder, place, value, part)


def _nested(steps: Location, value: Any) -> Any:
    """Return the value below the containers that are missing: a map for a key, a list for what is behind its end."""
    for step in reversed(steps):
        value = [value] if isinstance(step, int) else {step: value}
    return value


def _like(old: Any) -> str:
    return "a map" if isinstance(old, dict) else "a single value"
