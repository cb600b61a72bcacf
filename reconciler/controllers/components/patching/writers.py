"""Tracking of writes: which addon set which value in a resource, and conflicts between addons."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from reconciler.controllers.components.codes import LAST_WRITER_WINS, MERGED_WRITE, OVERWRITTEN_WRITE
from reconciler.controllers.components.model import AddonInstance
from reconciler.controllers.components.patching.budget import PatchBudget
from reconciler.controllers.components.patching.locations import Location, PatchOp
from reconciler.controllers.components.patching.operations import PatchOperation, Write, WriteOp, apply_operation
from reconciler.controllers.nested_values import get_value
from reconciler.controllers.resource_findings import ResourceIssue
from reconciler.krm.findings import FindingCode
from reconciler.krm.json_pointer import format_pointer
from reconciler.krm.merge3.rules import ABSENT
from reconciler.krm.yaml.compare import is_equal_data

IsOrdered = Callable[[AddonInstance, AddonInstance], bool]
_AddonIssue = tuple[AddonInstance, ResourceIssue]
_HINT = "if this is intended, declare the order with requires or loadOrder"


@dataclass(frozen=True)
class PatchResult:
    """Changes that an operation made, and issues with other addons: one per addon and code."""

    writes: tuple[Write, ...]
    notes: tuple[ResourceIssue, ...]


class WriteTracker:
    """Tracks which addon set which value while one resource is rendered.

    The writers of list items move with the items. The creator of the resource is the writer of all other values, but it
    takes part in no conflict: initial values and appended items are replaced as in RFC 6902.
    """

    def __init__(self, is_ordered: IsOrdered, creator: AddonInstance | None = None) -> None:
        self._is_ordered = is_ordered
        self._root = _WriteMark(creator, is_own=True)

    def apply_patch(
        self,
        document: Any,
        operation: PatchOperation,
        instance: AddonInstance,
        budget: PatchBudget,
        *,
        skip_missing: bool = False,
    ) -> PatchResult:
        """Apply an operation of an addon to `document`, which is changed in place.

        An `add` to a map value that another addon added merges the two values if both are maps or both are lists.

        Raises:
            FieldFindingError: The operation failed.
        """
        issues: list[_AddonIssue] = []

        def should_merge(location: Location) -> bool:
            other = self._find_merge_partner(document, operation, location, instance)
            if other:
                pointer = format_pointer(location)
                message = f"{instance} adds to the value that {other} set at {pointer}; the values are merged"
                issues.extend(self._build_issue(MERGED_WRITE, message, location, instance, other))
            return other is not None

        writes = apply_operation(document, operation, budget, skip_missing=skip_missing, should_merge=should_merge)
        for write in writes:
            issues.extend(self._check_overwriting(operation.op, write, instance))
            self._root.record(write, instance)
        return PatchResult(writes, tuple(_deduplicate(issues)))

    def get_writer(self, location: Location) -> AddonInstance | None:
        """Return the addon that set the value at a location, or None for the definition."""
        return self._root.find_nearest(location).instance

    def _find_merge_partner(
        self, document: Any, operation: PatchOperation, location: Location, instance: AddonInstance
    ) -> AddonInstance | None:
        if operation.op != "add" or isinstance(location[-1], int):
            return None
        current, value = get_value(document, location), operation.value
        are_alike = isinstance(current, dict | list) and isinstance(value, dict | list) and type(current) is type(value)
        return self._find_setter(location, instance) if are_alike else None

    def _find_setter(self, location: Location, instance: AddonInstance) -> AddonInstance | None:
        """Return the other addon that set the value at a location, if any."""
        mark = self._root.find_nearest(location)
        return mark.instance if mark.is_set and mark.instance != instance else None

    def _check_overwriting(self, op: PatchOp, write: Write, instance: AddonInstance) -> Iterator[_AddonIssue]:
        if write.before is ABSENT:
            return
        lost_writes = self._find_lost_writes(write, instance)
        other = self._find_setter(write.location, instance)
        if other and op in ("replace", "remove"):
            lost_writes = {other: write.location} | {
                setter: location for setter, location in lost_writes.items() if setter != other
            }
        elif other and not is_equal_data(write.before, write.after):
            lost_writes.pop(other, None)
            pointer = format_pointer(write.location)
            message = (
                f"{instance} overwrites {pointer}, which {other} set to another value; the last addon wins; {_HINT}"
            )
            yield from self._build_issue(LAST_WRITER_WINS, message, write.location, instance, other)
        verb = "removes" if op == "remove" else "overwrites"
        for setter, location in lost_writes.items():
            message = f"{instance} {verb} the value that {setter} set at {format_pointer(location)}; {_HINT}"
            yield from self._build_issue(OVERWRITTEN_WRITE, message, location, instance, setter)

    def _find_lost_writes(self, write: Write, instance: AddonInstance) -> dict[AddonInstance, Location]:
        """Return the other addons that set values below a replaced value, with the first lost location."""
        lost_writes: dict[AddonInstance, Location] = {}
        for location, setter in self._root.list_marks(write.location):
            inside = location[len(write.location) :]
            if setter != instance and not is_equal_data(
                get_value(write.before, inside), get_value(write.after, inside)
            ):
                lost_writes.setdefault(setter, location)
        return lost_writes

    def _build_issue(
        self, code: FindingCode, message: str, location: Location, instance: AddonInstance, other: AddonInstance
    ) -> Iterator[_AddonIssue]:
        # With a declared order, the result is intended.
        if not self._is_ordered(instance, other):
            yield other, ResourceIssue(code, message, location)


def _deduplicate(issues: list[_AddonIssue]) -> Iterator[ResourceIssue]:
    """Yield one issue per other addon and code, at its first location. A wildcard can cause thousands."""
    counts = Counter((other, issue.code.name) for other, issue in issues)
    first_issues = {(other, issue.code.name): issue for other, issue in reversed(issues)}
    for key, count in counts.items():
        more = f" (and at {count - 1:,} more locations)" if count > 1 else ""
        yield replace(first_issues[key], message=f"{first_issues[key].message}{more}")


@dataclass
class _WriteMark:
    """Writer of the value at one location, and of everything below it without an own mark.

    Without `is_own`, the writer is that of the parent. `items` has the same indexes as the list in the resource.
    """

    instance: AddonInstance | None = None
    is_own: bool = False
    is_set: bool = False
    fields: dict[str, _WriteMark] = field(default_factory=dict)
    items: list[_WriteMark | None] = field(default_factory=list)

    def find_nearest(self, location: Location) -> _WriteMark:
        """Return the mark of a location or of its nearest marked parent."""
        own_mark = mark = self
        for step in location:
            child = mark.get_child(step)
            if child is None:
                break
            mark = child
            own_mark = mark if mark.is_own else own_mark
        return own_mark

    def get_child(self, step: str | int) -> _WriteMark | None:
        """Return the mark of a child."""
        if isinstance(step, str):
            return self.fields.get(step)
        return self.items[step] if step < len(self.items) else None

    def record(self, write: Write, instance: AddonInstance) -> None:
        """Record a write, and drop the marks below it."""
        parent = self
        for step in write.location[:-1]:
            parent = parent.get_child(step) or parent.set_child("replace", step, _WriteMark())
        mark = _WriteMark(instance, is_own=True, is_set=not write.is_appended)
        parent.set_child(write.op, write.location[-1], mark)

    def set_child(self, op: WriteOp, step: str | int, mark: _WriteMark) -> _WriteMark:
        """Apply the same change to the marks as to the values, and return the mark."""
        if isinstance(step, str):
            self.fields.pop(step, None) if op == "remove" else self.fields.update({step: mark})
            return mark
        self.items.extend([None] * (step - len(self.items)))
        # The slice contains the item for replace and remove, and is empty for an insertion.
        self.items[step : step + (op != "add")] = [] if op == "remove" else [mark]
        return mark

    def list_marks(self, location: Location) -> list[tuple[Location, AddonInstance]]:
        """Return the locations below `location` that addons set.

        List items are in document order, other values in the order of writing.
        """
        mark: _WriteMark | None = self
        for step in location:
            mark = mark.get_child(step) if mark else None
        return list(mark.iter_marks(location)) if mark else []

    def iter_marks(self, location: Location) -> Iterator[tuple[Location, AddonInstance]]:
        """Yield the locations below this mark, which is at `location`, that addons set."""
        steps: list[tuple[str | int, _WriteMark | None]] = [*self.fields.items(), *enumerate(self.items)]
        for step, mark in steps:
            if mark and mark.is_set and mark.instance:
                yield (*location, step), mark.instance
            if mark:
                yield from mark.iter_marks((*location, step))
