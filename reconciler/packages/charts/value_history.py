"""The history of each value of a chart: the layers that set it, from the lowest to the highest precedence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from reconciler.krm.merge3.rules import ABSENT
from reconciler.krm.yaml import DataPath
from reconciler.lazy_dataclasses import dataclass
from reconciler.packages.charts.values import ValuesLayer, merge_layers
from reconciler.packages.functions.function import get_value_at


@dataclass(frozen=True)
class ValueStep:
    """One layer that sets, replaces or removes a value.

    Attributes:
        path: The path of the value. If the layer replaces or removes a parent of the value, the path of this parent. If
            a parameter changes an item of a list, the path of this item.
        inner_path: The same path, relative to the target of the layer.
        before: The value before the merge of the layer, or ABSENT.
        after: The value after the merge of the layer, or ABSENT.
    """

    layer: ValuesLayer
    path: DataPath
    inner_path: DataPath
    before: Any
    after: Any

    @property
    def line(self) -> int:
        """The line in the file of the layer. 0 if it is unknown."""
        return self.layer.find_line(self.inner_path)


@dataclass(frozen=True)
class ValueHistory:
    """The layers that set one value, from the lowest to the highest precedence.

    The value is a scalar, a list or an empty map.
    """

    path: DataPath
    steps: tuple[ValueStep, ...]


def trace_values(layers: Sequence[ValuesLayer]) -> tuple[ValueHistory, ...]:
    """Return the history of each value that at least one layer sets, sorted by path.

    A null removes the value of a lower layer. The field `after` of the last step is then ABSENT. Values of layers that
    cannot be merged are omitted.
    """
    stages = [merge_layers(layers[:count]).values for count in range(len(layers) + 1)]
    paths = {path: None for stage in stages for path in _iterate_values(stage)}
    histories = (
        ValueHistory(path, tuple(_list_steps(path, layers, stages)))
        for path in sorted(paths, key=_get_sort_key)
        if not _is_map(get_value_at(stages[-1], path, ABSENT))
    )
    return tuple(history for history in histories if history.steps)


def _iterate_values(values: Any, path: DataPath = ()) -> Iterator[DataPath]:
    """Yield the path of each scalar, list and empty map."""
    for key, value in values.items():
        if _is_map(value):
            yield from _iterate_values(value, (*path, key))
        else:
            yield (*path, key)


def _is_map(value: Any) -> bool:
    return isinstance(value, dict) and bool(value)


def _get_sort_key(path: DataPath) -> tuple[str, ...]:
    return tuple(map(str, path))


def _list_steps(path: DataPath, layers: Sequence[ValuesLayer], stages: Sequence[dict[str, Any]]) -> Iterator[ValueStep]:
    for index, layer in enumerate(layers):
        set_path = _find_set_path(layer, path)
        before, after = (get_value_at(stage, path, ABSENT) for stage in stages[index : index + 2])
        if after is None and before is not ABSENT:
            after = ABSENT
        if set_path is not None and not (before is ABSENT and after is ABSENT):
            yield ValueStep(layer, set_path, set_path[len(layer.target) :], before, after)


def _find_set_path(layer: ValuesLayer, path: DataPath) -> DataPath | None:
    """Return the path at which a layer sets or replaces the value at `path`. Return None if the layer does neither."""
    target: DataPath = layer.target
    if len(target) > len(path):
        return target if target[: len(path)] == path else None
    if path[: len(target)] != target:
        return None
    value = layer.values
    for depth in range(len(target), len(path)):
        if not isinstance(value, dict):
            return path[:depth]
        if path[depth] not in value:
            return path[:depth] if layer.kind == "parameter" else None
        value = value[path[depth]]
    return path
