"""Finds the chart values that affect one field of a rendered resource.

Chart templates are programs. Therefore, only renders can show on which values the field depends. For each candidate
value, this module changes the value and renders the chart in memory. If the field then differs, it depends on the
value.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from typing import Any

from reconciler.catalog.files import FileTree
from reconciler.controllers.nested_values import get_value
from reconciler.krm.merge3.rules import ABSENT
from reconciler.krm.yaml import DataPath
from reconciler.krm.yaml.compare import is_equal_data
from reconciler.lazy_dataclasses import dataclass
from reconciler.packages.charts.value_history import ValueHistory, trace_values
from reconciler.packages.charts.values import ValuesLayer, merge_layers
from reconciler.packages.package import Package

ValuesRenderer = Callable[[dict[str, Any]], FileTree | None]
"""Function that renders a chart with changed values. It returns None if the chart cannot be rendered with them."""


@dataclass(frozen=True)
class FieldReference:
    """A field of a rendered resource.

    Attributes:
        resource: The resource, as `Kind/namespace/name`.
    """

    resource: str
    path: DataPath

    def read(self, files: FileTree) -> Any:
        """Return the value of the field. Return ABSENT if the package has no such resource or field."""
        resources = (resource for resource in Package(files).resources if resource.key.reference == self.resource)
        resource = next(resources, None)
        return get_value(resource.data, self.path) if resource else ABSENT


@dataclass(frozen=True)
class ValueDependencies:
    """The values that a field depends on.

    Attributes:
        unknown: The values whose change made the render fail, so that their effect is unknown.
        unchecked_count: The number of values that were not checked, because of the limit.
    """

    found: tuple[ValueHistory, ...] = ()
    unknown: tuple[ValueHistory, ...] = ()
    unchecked_count: int = 0


def find_value_dependencies(
    layers: Sequence[ValuesLayer], template: str, reference: FieldReference, render: ValuesRenderer, limit: int
) -> ValueDependencies:
    """Return the values that a field depends on.

    Values from layers above the defaults of the chart are checked first, because `limit` can stop the search.

    Args:
        layers: All layers, from the lowest to the highest precedence, with the defaults of the chart.
        template: The text of the template that wrote the resource. Defaults whose path is not in this text are skipped.
        limit: The maximum number of renders.
    """
    values = merge_layers(layers).values
    original_files = render(values)
    if original_files is None:
        return ValueDependencies()
    original = reference.read(original_files)
    candidates = list(_iterate_candidates(layers, template))
    found, unknown = [], []
    for history in candidates[:limit]:
        files = render(_change_value(values, history.path))
        if files is None:
            unknown.append(history)
        elif not _is_same(reference.read(files), original):
            found.append(history)
    return ValueDependencies(tuple(found), tuple(unknown), max(0, len(candidates) - limit))


def _iterate_candidates(layers: Sequence[ValuesLayer], template: str) -> Iterator[ValueHistory]:
    histories = trace_values(layers)
    own = [history for history in histories if history.steps[-1].layer.kind != "chart-default"]
    yield from own
    for history in histories:
        if history.steps[-1].layer.kind == "chart-default" and _is_mentioned(history.path, template):
            yield history


def _is_mentioned(path: DataPath, template: str) -> bool:
    """Return whether a template contains the path of a value, or the path of a map that contains the value.

    For example, a template with `.Values.image` uses the value `image.tag`.
    """
    names = [str(step) for step in path]
    parents = (re.escape(".".join(names[:count])) for count in range(1, len(names)))
    patterns = (rf"{re.escape('.'.join(names))}(?![\w-])", *(rf"{parent}(?![\w.-])" for parent in parents))
    return re.search(rf"\.Values\.(?:{'|'.join(patterns)})", template) is not None


def _is_same(value: Any, other: Any) -> bool:
    if value is ABSENT or other is ABSENT:
        return value is other
    return is_equal_data(value, other)


def _change_value(values: dict[str, Any], path: DataPath) -> dict[str, Any]:
    """Return a copy of the values in which the value at a path is a different value of the same type."""
    changed = deepcopy(values)
    container: Any = changed
    for step in path[:-1]:
        container = container.setdefault(step, {}) if isinstance(container, dict) else container[step]
    container[path[-1]] = _create_other_value(container.get(path[-1]))
    return changed


def _create_other_value(value: Any) -> Any:
    match value:
        case bool():
            return not value
        case int() | float():
            return value + 1
        case str():
            return f"{value}x"
        case list():
            return value[:-1] if value else ["x"]
        case dict():
            return {"x": "x"}
        case _:
            return "x"
