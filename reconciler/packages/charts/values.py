"""The layers of chart values, and their merge with Helm's rules.

The layers are merged to one document. Helm merges this document over the defaults of the chart. Therefore, a null stays
in the document, because it removes a default.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import deepcopy
from typing import Any, Final, Literal

from reconciler.krm.helm_paths import PathStep, format_option_name
from reconciler.krm.json_pointer import PointerError, iterate_leaves, resolve_pointer
from reconciler.krm.json_text import format_canonical_json
from reconciler.krm.values_tree import PlaceError, ValuesTree, merge_maps
from reconciler.krm.yaml import DataPath
from reconciler.lazy_dataclasses import dataclass, field

LayerKind = Literal["chart-default", "values-file", "values-from", "values", "parameter"]
MAX_EXACT_INTEGER: Final = 2**53
"""Helm reads numbers as 64-bit floating point numbers. Greater integers lose digits."""


def _find_no_line(path: DataPath) -> int:
    return 0


@dataclass(frozen=True)
class ValuesLayer:
    """One layer of the values of a chart.

    Attributes:
        source: The object or file that contains the values: `Kind/namespace/name`, or the path of a values file.
        values: A map, or any value if `target` is not empty.
        target: Path at which the value is set. () for a map that is merged into all values.
        file: Path of the file.
        field_path: Path of the field of the object that contains the values. "" for a whole file.
        revision: Commit or digest of the file. "" for a file of the config, whose commit is the config commit.
        expression: CEL expression that returned the value.
        find_line: Returns the line in the file for a path in `values`. Returns 0 for an unknown line.
    """

    kind: LayerKind
    source: str
    values: Any
    target: tuple[PathStep, ...] = ()
    file: str = ""
    field_path: str = ""
    revision: str = ""
    expression: str = ""
    find_line: Callable[[DataPath], int] = field(default=_find_no_line, compare=False, repr=False)

    @property
    def name(self) -> str:
        """The layer for messages: the field of an object, or the file."""
        return f"{self.source} {self.field_path}".rstrip()


@dataclass(frozen=True)
class LayerProblem:
    """The reason why a layer cannot be merged."""

    layer: ValuesLayer
    message: str


@dataclass(frozen=True)
class MergedValues:
    """The merged values of all layers, and the layers that could not be merged."""

    values: dict[str, Any]
    problems: tuple[LayerProblem, ...] = ()

    @property
    def text(self) -> str:
        """The values as canonical JSON. Equal values have equal texts."""
        return format_canonical_json(self.values)


def merge_layers(layers: Iterable[ValuesLayer]) -> MergedValues:
    """Merge layers of values. The first layer has the lowest precedence.

    Maps are merged, and all other values are replaced. A layer of the kind `parameter` also replaces maps, as
    `helm --set-json` does.
    """
    values: dict[str, Any] = {}
    problems = []
    tree: ValuesTree | None = None
    for layer in layers:
        if not layer.target:
            values = merge_maps(values, layer.values)
            tree = None
            continue
        # Copy the merged values before they are changed in place, because they share lists and maps with the layers.
        tree = tree or ValuesTree(deepcopy(values))
        values = tree.values
        try:
            tree.place(layer.target, layer.name, _merge_into(values, layer))
        except PlaceError as error:
            problems.append(LayerProblem(layer, error.message))
    return MergedValues(values, tuple(problems))


def _merge_into(values: dict[str, Any], layer: ValuesLayer) -> Any:
    """Return the value to set at the target of a layer.

    If the layer and the lower layers have a map at this path, the two maps are merged. The layer takes precedence.
    """
    if layer.kind == "parameter" or not isinstance(layer.values, dict):
        return layer.values
    try:
        lower = resolve_pointer(values, layer.target)
    except PointerError:
        return layer.values
    return merge_maps(lower, layer.values) if isinstance(lower, dict) else layer.values


def find_imprecise_integers(layer: ValuesLayer) -> Iterator[tuple[DataPath, int]]:
    """Yield each integer in a layer that is too large for Helm, with its path. Helm would round it."""
    for path, value in iterate_leaves(layer.values):
        if isinstance(value, int) and abs(value) > MAX_EXACT_INTEGER:
            yield path, value


def find_layer(layers: Sequence[ValuesLayer], segments: Sequence[str]) -> tuple[ValuesLayer, DataPath] | None:
    """Return the highest layer that sets a value, and the path of the value in this layer.

    If no layer sets the value, return the layer of its nearest parent. Return None if no layer sets a parent either.

    Args:
        segments: The segments of the JSON pointer of the value. The index of a list item is a text.
    """
    for length in range(len(segments), 0, -1):
        for layer in reversed(layers):
            inner_path = _find_in_layer(layer, segments[:length])
            if inner_path is not None:
                return layer, inner_path
    return None


def _find_in_layer(layer: ValuesLayer, segments: Sequence[str]) -> DataPath | None:
    """Return the path in the values of a layer. Return None if the layer does not set the value."""
    target = [str(step) for step in layer.target]
    if any(segment != step for segment, step in zip(segments, target, strict=False)):
        return None
    value, path = layer.values, []
    for segment in segments[len(target) :]:
        step = int(segment) if isinstance(value, list) and segment.isdecimal() else segment
        try:
            value = resolve_pointer(value, [step])
        except PointerError:
            return None
        path.append(step)
    return tuple(path)


def format_values_path(path: DataPath) -> str:
    """Return a path of values in the syntax of `helm --set`, for messages."""
    return format_option_name([step if isinstance(step, int) else str(step) for step in path])
