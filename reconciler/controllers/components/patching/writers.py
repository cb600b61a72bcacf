"""Records which addon wrote which value of a resource, and detects conflicts between addons."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from reconciler.api.openchoreo import PatchOp
from reconciler.controllers.components.codes import ComponentCodes
from reconciler.controllers.components.model import AddonInstance
from reconciler.controllers.components.patching.budget import PatchBudget
from reconciler.controllers.components.patching.locations import Location
from reconciler.controllers.components.patching.operations import PatchOperation, Write, WriteOp, apply_operation
from reconciler.controllers.nested_values import get_value
from reconciler.controllers.resource_findings import ResourceIssue
from reconciler.krm.findings import FindingCode
from reconciler.krm.json_pointer import format_pointer
from reconciler.krm.merge3.rules import ABSENT
from reconciler.krm.yaml.compare import is_equal_data
from reconciler.lazy_dataclasses import dataclass, field, replace

IsOrdered = Callable[[AddonInstance, AddonInstance], bool]
_AddonIssue = tuple[AddonInstance, ResourceIssue]
_HINT = "if this is intended, declare the order of the addons with requires or loadOrder"


@dataclass(frozen=True)
class PatchResult:
    """Changes that a patch operation made, and its conflicts with other addons.

    `notes` contains at most one issue for each pair of a conflicting addon and a finding code.
    """

    writes: tuple[Write, ...]
    notes: tuple[ResourceIssue, ...]


class WriteTracker:
    """Records which addon wrote which value while one resource is rendered.

    If a list item moves to another index, its writer moves with the item. At first, the creator of the resource is the
    writer of all values. An addon can change these initial values without a conflict. It can also change a list item
    that another addon appended.
    """

    def __init__(self, is_ordered: IsOrdered, creator: AddonInstance | None = None) -> None:
        self._is_ordered = is_ordered
        self._root = _WriterNode(creator, is_own=True)

    def apply_patch(
        self,
        document: Any,
        operation: PatchOperation,
        instance: AddonInstance,
        budget: PatchBudget,
        *,
        skip_missing: bool = False,
    ) -> PatchResult:
        """Apply a patch operation of an addon to `document`, which is changed in place.

        An `add` replaces the value of an existing map key. However, if another addon has set this value, two maps or
        two lists are merged.

        Raises:
            FieldFindingError: The operation failed.
        """
        issues: list[_AddonIssue] = []

        def should_merge(location: Location) -> bool:
            other = self._find_merge_partner(document, operation, location, instance)
            if other:
                pointer = format_pointer(location)
                message = (
                    f'the addon "{instance}" adds to the value that the addon "{other}" set at'
                    f" {pointer}; the values are merged"
                )
                issues.extend(self._build_issue(ComponentCodes.MERGED_WRITE, message, location, instance, other))
            return other is not None

        writes = apply_operation(document, operation, budget, skip_missing=skip_missing, should_merge=should_merge)
        for write in writes:
            issues.extend(self._check_overwriting(operation.op, write, instance))
            self._root.record(write, instance)
        return PatchResult(writes, tuple(_deduplicate(issues)))

    def get_writer(self, location: Location) -> AddonInstance | None:
        """Return the addon that wrote the value at a location. Return None if the definition wrote the value."""
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
        """Return the addon that set the value at a location.

        Return None if no addon set the value, or if `instance` itself set the value.
        """
        node = self._root.find_nearest(location)
        return node.instance if node.is_set and node.instance != instance else None

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
                f'the addon "{instance}" overwrites the value that the addon "{other}" set at {pointer}. The value of'
                f" the addon that runs last applies; {_HINT}"
            )
            yield from self._build_issue(ComponentCodes.LAST_WRITER_WINS, message, write.location, instance, other)
        verb = "removes" if op == "remove" else "overwrites"
        for setter, location in lost_writes.items():
            message = (
                f'the addon "{instance}" {verb} the value that the addon "{setter}" set at'
                f" {format_pointer(location)}; {_HINT}"
            )
            yield from self._build_issue(ComponentCodes.OVERWRITTEN_WRITE, message, location, instance, setter)

    def _find_lost_writes(self, write: Write, instance: AddonInstance) -> dict[AddonInstance, Location]:
        """Return the addons whose values a write of `instance` replaces or removes. `instance` itself is not included.

        The result maps each addon to the first location of such a value.
        """
        lost_writes: dict[AddonInstance, Location] = {}
        for location, setter in self._root.list_set_locations(write.location):
            inside = location[len(write.location) :]
            if setter != instance and not is_equal_data(
                get_value(write.before, inside), get_value(write.after, inside)
            ):
                lost_writes.setdefault(setter, location)
        return lost_writes

    def _build_issue(
        self, code: FindingCode, message: str, location: Location, instance: AddonInstance, other: AddonInstance
    ) -> Iterator[_AddonIssue]:
        # Report no issue if the addons declare an order, because then the result is intended.
        if not self._is_ordered(instance, other):
            yield other, ResourceIssue(code, message, location)


def _deduplicate(issues: list[_AddonIssue]) -> Iterator[ResourceIssue]:
    """Merge the issues that have the same finding code and refer to the same addon.

    A path with a wildcard can cause thousands of such issues.
    """
    counts = Counter((other, issue.code.name) for other, issue in issues)
    first_issues = {(other, issue.code.name): issue for other, issue in reversed(issues)}
    for key, count in counts.items():
        more = f" (and at {count - 1:,} more locations)" if count > 1 else ""
        yield replace(first_issues[key], message=f"{first_issues[key].message}{more}")


@dataclass
class _WriterNode:
    """Node in a tree of writers. The tree has the same structure as the resource.

    Attributes:
        instance: Addon that wrote the value. None for the component definition.
        is_own: Whether `instance` wrote the value of this node. If False, the nearest parent node with `is_own`
            contains the writer.
        is_set: Whether a patch set the value. False for a list item that a patch appended.
        fields: Nodes of the map keys.
        items: Nodes of the list items, at the same indexes as in the resource.
    """

    instance: AddonInstance | None = None
    is_own: bool = False
    is_set: bool = False
    fields: dict[str, _WriterNode] = field(default_factory=dict)
    items: list[_WriterNode | None] = field(default_factory=list)

    def find_nearest(self, location: Location) -> _WriterNode:
        """Return the node that contains the writer of the value at a location.

        This is the node of the location if it has a writer of its own. Otherwise, it is the node of the nearest parent
        with a writer.
        """
        nearest_node = node = self
        for step in location:
            child = node.get_child(step)
            if child is None:
                break
            node = child
            nearest_node = node if node.is_own else nearest_node
        return nearest_node

    def get_child(self, step: str | int) -> _WriterNode | None:
        """Return the node of a map key or list index. Return None if there is no such node."""
        if isinstance(step, str):
            return self.fields.get(step)
        return self.items[step] if step < len(self.items) else None

    def record(self, write: Write, instance: AddonInstance) -> None:
        """Record a write of an addon, and delete the nodes below the location of the write."""
        parent = self
        for step in write.location[:-1]:
            parent = parent.get_child(step) or parent.set_child("replace", step, _WriterNode())
        node = _WriterNode(instance, is_own=True, is_set=not write.is_appended)
        parent.set_child(write.op, write.location[-1], node)

    def set_child(self, op: WriteOp, step: str | int, node: _WriterNode) -> _WriterNode:
        """Add, replace or remove a child node. The patch changes the resource in the same way. Return `node`."""
        if isinstance(step, str):
            self.fields.pop(step, None) if op == "remove" else self.fields.update({step: node})
            return node
        self.items.extend([None] * (step - len(self.items)))
        # For `add`, the slice is empty, so that the node is inserted. For `replace` and `remove`, the slice contains
        # the old node.
        self.items[step : step + (op != "add")] = [] if op == "remove" else [node]
        return node

    def list_set_locations(self, location: Location) -> list[tuple[Location, AddonInstance]]:
        """Return each location below `location` that an addon set, with this addon.

        The items of a list are in document order. The keys of a map are in the order in which they were written.
        """
        node: _WriterNode | None = self
        for step in location:
            node = node.get_child(step) if node else None
        return list(node.iter_set_locations(location)) if node else []

    def iter_set_locations(self, location: Location) -> Iterator[tuple[Location, AddonInstance]]:
        """Yield the locations below this node that addons set, each with its addon.

        `location` is the location of this node.
        """
        steps: list[tuple[str | int, _WriterNode | None]] = [*self.fields.items(), *enumerate(self.items)]
        for step, node in steps:
            if node and node.is_set and node.instance:
                yield (*location, step), node.instance
            if node:
                yield from node.iter_set_locations((*location, step))
