"""Construction of Helm values: set single values by their paths, and merge maps, with the rules of Helm.

If a list contains an item that is not a map, and the path of a value continues below this item, Helm silently drops the
item. In this module, this case is an error.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any, Final

from reconciler.krm.helm_paths import PathStep, format_option_name
from reconciler.lazy_dataclasses import dataclass, field

MAX_LIST_ITEMS: Final = 100_000
"""Maximum number of list items that the paths in one tree may create, to limit the memory use.

Helm fills missing items before a list index with null. These items count too.
"""

_MISSING: Final = object()


def merge_maps(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Return a map that contains the values of both maps. Values in `above` take precedence.

    Only maps are merged. A null in `above` stays in the result, so that Helm removes the default value of the chart.
    """
    merged = dict(below)
    for key, value in above.items():
        lower = merged.get(key)
        merged[key] = merge_maps(lower, value) if isinstance(lower, dict) and isinstance(value, dict) else value
    return merged


def is_free(values: Mapping[str, Any], steps: Sequence[PathStep]) -> bool:
    """Return whether a value at the path `steps` stays if Helm or Flux merges `values` over it.

    Helm and Flux merge only maps. Any other value in `values` replaces everything at its path.
    """
    container: Any = values
    for step in steps:
        if isinstance(step, int) or not isinstance(container, dict):
            # Helm and Flux would overwrite the value: `values` contains a list or a scalar on the path, and only maps
            # are merged.
            return False
        if step not in container:
            return True
        container = container[step]
    return False


class PlaceError(ValueError):
    """Raised if a value cannot be placed at its path in the Helm values."""

    def __init__(
        self, message: str, conflicting_name: str = "", required_kind: str = "", path: str = "", found_kind: str = ""
    ) -> None:
        super().__init__(message, conflicting_name)
        self.message = message
        self.conflicting_name = conflicting_name
        self.required_kind = required_kind
        self.path = path
        self.found_kind = found_kind


@dataclass
class ValuesTree:
    """Helm values that are built from options. `creators` maps each path to the name of the option that created it.

    The methods change the lists and maps in `values` in place.
    """

    values: dict[str, Any] = field(default_factory=dict)
    creators: dict[tuple[PathStep, ...], str] = field(default_factory=dict)
    list_item_count: int = 0

    def place(self, steps: tuple[PathStep, ...], name: str, value: Any) -> None:
        """Place a value at its path. Raise `PlaceError` and change nothing if the value cannot be placed."""
        container: Any = self.values
        for depth, step in enumerate(steps):
            if not isinstance(container, list if isinstance(step, int) else dict):
                raise self._create_error(steps[:depth], step, container)
            item = _get_item(container, step)
            if depth == len(steps) - 1 or item is _MISSING:
                self._count_list_items(container, steps[depth:])
                _set_item(container, step, _build_containers(steps[depth + 1 :], deepcopy(value)))
                self.creators |= {steps[:end]: name for end in range(depth + 1, len(steps) + 1)}
                return
            container = item

    def _create_error(self, steps: tuple[PathStep, ...], step: PathStep, value: Any) -> PlaceError:
        required_kind = "a list" if isinstance(step, int) else "a map"
        creators = (self.creators.get(steps[:end], "") for end in range(len(steps), 0, -1))
        creator = next(filter(None, creators), "")
        path, found_kind = format_option_name(steps), _format_kind(value)
        message = f"requires {required_kind} at {path}, where {creator or 'a lower layer'} sets {found_kind}"
        return PlaceError(message, creator, required_kind, path, found_kind)

    def _count_list_items(self, container: Any, steps: tuple[PathStep, ...]) -> None:
        new_items = sum(step + 1 for step in steps if isinstance(step, int))
        if isinstance(container, list):
            new_items -= min(len(container), int(steps[0]) + 1)
        if self.list_item_count + new_items > MAX_LIST_ITEMS:
            raise PlaceError(f"would increase the number of list items in all values to more than {MAX_LIST_ITEMS}")
        self.list_item_count += new_items


def _get_item(container: Any, step: Any) -> Any:
    if isinstance(container, dict):
        return container.get(step, _MISSING)
    # Treat a null in a list as a missing item, as Helm does. A null in a map is a value, and a longer path that
    # continues below it is an error.
    return _MISSING if step >= len(container) or container[step] is None else container[step]


def _set_item(container: Any, step: Any, value: Any) -> None:
    if isinstance(container, list):
        container.extend([None] * (step + 1 - len(container)))
    container[step] = value


def _build_containers(steps: tuple[PathStep, ...], value: Any) -> Any:
    for step in reversed(steps):
        value = [*[None] * step, value] if isinstance(step, int) else {step: value}
    return value


def _format_kind(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case str():
            return "a string"
        case list():
            return "a list"
        case dict():
            return "a map"
        case _:
            return "a number"
