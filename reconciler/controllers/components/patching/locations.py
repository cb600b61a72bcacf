"""Search for the locations that a patch path addresses in a resource, before the patch changes the resource."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from reconciler.api.openchoreo import PatchOp
from reconciler.controllers.components.codes import ComponentCodes
from reconciler.controllers.components.field_findings import FieldFindingError, build_field_finding
from reconciler.controllers.components.patching.budget import PatchBudget
from reconciler.controllers.components.patching.paths import (
    AppendStep,
    FilterStep,
    IndexStep,
    KeyStep,
    NumericStep,
    PatchPath,
    PathStep,
    WildcardStep,
)
from reconciler.controllers.components.template_syntax import render_literal
from reconciler.krm.field_text import quote_value
from reconciler.krm.findings import FindingCode
from reconciler.krm.json_pointer import format_pointer
from reconciler.krm.merge3.rules import ABSENT
from reconciler.krm.numbers import format_count
from reconciler.krm.yaml import DataPath
from reconciler.lazy_dataclasses import dataclass

Location = tuple[str | int, ...]

MAX_LOCATIONS = 10_000
# A path step subtracts this number of characters from the budget for each location that it matches. For each list
# item that it inspects, it subtracts 1.
_LOCATION_COST = 16
_OPS_CREATING_PARENTS = ("add", "merge")


def find_locations(
    document: Any,
    path: PatchPath,
    op: PatchOp,
    budget: PatchBudget,
    field_path: DataPath,
    *,
    skip_missing: bool = False,
) -> tuple[Location, ...]:
    """Return every location that a patch path addresses, in document order.

    For `add` and `merge`, the location and its parents can be missing in the document. For `remove`, missing locations
    are omitted. In the result, the index after the last list item replaces the step `-`.

    Raises:
        FieldFindingError: The path does not match the document, or matches too many values. If `skip_missing` is true,
            a missing key is not an error, and a filter or wildcard can have no match.
    """
    walk = _PathWalk(path, op, budget, field_path, skip_missing)
    start = _find_start(document, path)
    nodes = [start]
    for number, step in enumerate(path.steps[len(start.location) :], len(start.location) + 1):
        is_last = number == len(path.steps)
        nodes = walk.advance(nodes, step, is_last=is_last)
    return tuple(node.location for node in nodes)


def _find_start(document: Any, path: PatchPath) -> _Node:
    """Follow the map keys at the start of the path as far as they exist, and return the last node, e.g. `/spec`.

    The last step of the path is not followed. This function is faster than the search of `_PathWalk`.
    """
    names: list[str] = []
    for step in path.steps[:-1]:
        if not (isinstance(step, KeyStep) and isinstance(document, dict)):
            break
        child = document.get(step.name)
        if child is None:
            break
        names.append(step.name)
        document = child
    return _Node(tuple(names), document)


class _Node(NamedTuple):
    """Location in a resource, and the value at this location. The value is ABSENT if the location does not exist."""

    location: Location
    value: Any

    @property
    def is_missing(self) -> bool:
        """Whether the value of the node is absent or null."""
        return self.value is ABSENT or self.value is None

    def make_child(self, step: str | int, value: Any) -> _Node:
        return _Node((*self.location, step), value)

    def __str__(self) -> str:
        return format_pointer(self.location) or "the resource"


@dataclass(frozen=True)
class _PathWalk:
    """Search for the locations of one patch path in one resource."""

    path: PatchPath
    op: PatchOp
    budget: PatchBudget
    field_path: DataPath
    skip_missing: bool

    def advance(self, nodes: list[_Node], step: PathStep, *, is_last: bool) -> list[_Node]:
        """Return the child nodes that one path step addresses below the given nodes."""
        matches: list[_Node] = []
        for node in nodes:
            for match in self._resolve_step(node, step, is_last=is_last):
                if len(matches) == MAX_LOCATIONS:
                    raise self._build_error(
                        ComponentCodes.PATH_TOO_MANY, f"must match at most {MAX_LOCATIONS:,} values, but matches more"
                    )
                matches.append(match)
        self.budget.charge(_LOCATION_COST * len(matches), self.field_path)
        if nodes and not matches and isinstance(step, WildcardStep | FilterStep) and not self.skip_missing:
            raise self._build_error(
                ComponentCodes.PATCH_PATH_NOT_FOUND, f"must match an item in {nodes[0]}, but no item matches"
            )
        return matches

    def _resolve_step(self, node: _Node, step: PathStep, *, is_last: bool) -> Iterator[_Node]:
        match step:
            case KeyStep(name):
                return self._resolve_key(node, name, is_last=is_last)
            case NumericStep(name, number):
                return self._resolve_numeric(node, name, number, is_last=is_last)
            case IndexStep(number):
                return self._resolve_index(node, number, is_last=is_last)
            case AppendStep():
                return iter(
                    (node.make_child(0 if node.is_missing else len(self._get_list(node, or_none=True)), ABSENT),)
                )
            case WildcardStep():
                return (node.make_child(number, item) for number, item in self._get_items(node))
            case FilterStep():
                return (
                    node.make_child(number, item)
                    for number, item in self._get_items(node)
                    if _is_filter_match(item, step)
                )

    def _get_items(self, node: _Node) -> Iterator[tuple[int, Any]]:
        items = self._get_list(node)
        self.budget.charge(len(items), self.field_path)
        return enumerate(items)

    def _resolve_key(self, node: _Node, name: str, *, is_last: bool) -> Iterator[_Node]:
        if not node.is_missing and not isinstance(node.value, dict):
            raise self._build_error(
                ComponentCodes.PATH_NOT_OBJECT,
                f"requires a map at {node}, but the value is {_describe_type(node.value)}",
            )
        value = ABSENT if node.is_missing else node.value.get(name, ABSENT)
        if self.op in _OPS_CREATING_PARENTS or value is not ABSENT or not (is_last or node.is_missing):
            yield node.make_child(name, value)
        elif self.op == "replace" and not self.skip_missing:
            raise self._build_error(
                ComponentCodes.PATCH_PATH_NOT_FOUND,
                f"must address an existing value, but {node.make_child(name, None)} does not exist",
            )

    def _resolve_numeric(self, node: _Node, name: str, number: int, *, is_last: bool) -> Iterator[_Node]:
        if isinstance(node.value, list):
            return self._resolve_index(node, number, is_last=is_last)
        if node.is_missing and self.op in _OPS_CREATING_PARENTS:
            raise self._build_error(
                ComponentCodes.PATH_AMBIGUOUS_CONTAINER,
                f"is ambiguous, because {node} does not exist; write ['{name}'] for a map key, or - for a new "
                "list item",
            )
        return self._resolve_key(node, name, is_last=is_last)

    def _resolve_index(self, node: _Node, number: int, *, is_last: bool) -> Iterator[_Node]:
        items = self._get_list(node)
        if number < len(items):
            yield node.make_child(number, items[number])
        elif number == len(items) and is_last and self.op == "add":
            yield node.make_child(number, ABSENT)
        else:
            size = f"has only {format_count(len(items), 'item')}" if items else "is empty"
            raise self._build_error(
                ComponentCodes.PATH_INDEX_OUT_OF_RANGE,
                f"points to index {number} of {node}, but the list {size}",
            )

    def _get_list(self, node: _Node, *, or_none: bool = False) -> list[Any]:
        if isinstance(node.value, list):
            return node.value
        expected = "a list or no value" if or_none else "a list"
        raise self._build_error(
            ComponentCodes.PATH_NOT_ARRAY,
            f"requires {expected} at {node}, but the value is {_describe_type(node.value)}",
        )

    def _build_error(self, code: FindingCode, message: str) -> FieldFindingError:
        return FieldFindingError(
            build_field_finding(code, self.field_path, f"{message}; the path is {quote_value(self.path.text)}")
        )


def _is_filter_match(item: Any, step: FilterStep) -> bool:
    for field in step.fields:
        if not isinstance(item, dict) or field not in item:
            return False
        item = item[field]
    if isinstance(item, dict | list):
        return False
    if step.is_quoted:
        return ("" if item is None else render_literal(item)) == step.literal
    # Compare the types as well, because True == 1 in Python.
    return item == step.literal and isinstance(item, bool) == isinstance(step.literal, bool)


def _describe_type(value: Any) -> str:
    match value:
        case dict():
            return "a map"
        case list():
            return "a list"
        case None:
            return "null"
        case _ if value is ABSENT:
            return "missing"
        case _:
            return "a scalar"
