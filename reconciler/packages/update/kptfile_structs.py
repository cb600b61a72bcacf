"""Merging Kptfiles as upstream's tool does: as structs, lists by inferred keys, under made-up names (kpt.md 10.2)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from reconciler.krm.conflicts import ABSENT, Conflict
from reconciler.krm.merge3 import MergeRules, merge_data
from reconciler.krm.shapes import UNKNOWN
from reconciler.packages.update.kptfile_values import Values

Data = Mapping[str, Any]

_SECTIONS = ("info", "pipeline", "inventory", "status")
_STRING_MAPS = ("labels", "annotations", "configMap")
_LISTS = ("mutators", "validators")
_MADE_UP = "_kpt-merge_"


def merge_structs(sides: Values, rules: MergeRules) -> tuple[Data, tuple[Conflict, ...]]:
    """Return the local data with labels, annotations, info, pipeline, inventory and status merged.

    Raises MergeError where a list has a key on one side and none on another.
    """
    parts = sides.each(_merged_parts)
    if _nobody_names_functions(parts):
        parts = parts.each(partial(_with_functions, change=_named))
    merged, conflicts = merge_data(*parts, UNKNOWN, replace(rules, demands_names=True))
    result = {} if merged is ABSENT else _with_functions(merged, change=_written)
    return _with_parts(sides.local, result), conflicts


def _merged_parts(data: Data) -> dict[str, Any]:
    """Return the parts of a Kptfile that are merged, without what its structs would not write."""
    metadata = data.get("metadata") or {}
    parts: dict[str, Any] = {name: _struct(data[name]) for name in _SECTIONS if isinstance(data.get(name), Mapping)}
    return parts | {"metadata": _struct({name: metadata.get(name) for name in ("labels", "annotations")})}


def _struct(value: Any) -> Any:
    if isinstance(value, list):
        return [_struct(entry) for entry in value]
    if not isinstance(value, Mapping):
        return value
    fields = {key: _texts(entry) if key in _STRING_MAPS else _struct(entry) for key, entry in value.items()}
    return {key: entry for key, entry in fields.items() if entry not in (None, "", [], {})}


def _texts(value: Any) -> Any:
    """Return a map of strings as it is decoded: null is the empty text, numbers and booleans are their text."""
    if not isinstance(value, Mapping):
        return value
    return {key: _text(entry) for key, entry in value.items()}


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)


def _nobody_names_functions(sides: Values) -> bool:
    """Tell whether no function on any side has a name, and no list would get the same made-up name twice."""
    for functions in (functions for side in sides for functions in _function_lists(side)):
        names = [_made_up_name(function) for function in functions]
        if any("name" in function for function in functions) or len(set(names)) < len(names):
            return False
    return True


def _function_lists(side: Data) -> Iterator[list[dict[str, Any]]]:
    pipeline = side.get("pipeline") or {}
    yield from (pipeline[name] for name in _LISTS if name in pipeline)


def _made_up_name(function: Data) -> str:
    return _MADE_UP + str(function.get("exec") or str(function.get("image", "")).split(":")[0])


def _with_functions(side: Data, change: Callable[[Data], Data]) -> Data:
    """Return the parts with every function changed; a list without any is not written."""
    if "pipeline" not in side:
        return side
    pipeline = side["pipeline"]
    lists = {name: [change(function) for function in pipeline[name]] for name in _LISTS if pipeline.get(name)}
    return {**side, "pipeline": {**{key: value for key, value in pipeline.items() if key not in _LISTS}, **lists}}


def _named(function: Data) -> Data:
    return {**function, "name": _made_up_name(function)}


def _unnamed(function: Data) -> Data:
    if not str(function.get("name", "")).startswith(_MADE_UP):
        return function
    return {key: value for key, value in function.items() if key != "name"}


def _written(function: Data) -> Data:
    return dict(_struct(_unnamed(function)))


def _with_parts(local: Data, merged: Data) -> dict[str, Any]:
    """Return the local data with the merged parts in place of its own."""
    mapped = {name: merged[name] for name in _SECTIONS if name in merged}
    kept = {key: value for key, value in local.items() if key not in _SECTIONS or key in mapped}
    metadata = local.get("metadata") or {}
    named = {key: value for key, value in metadata.items() if key not in ("labels", "annotations")}
    texts = {key: value for key, value in (merged.get("metadata") or {}).items() if value}
    described = {"metadata": {**named, **texts}} if named or texts or metadata else {}
    return {**kept, **mapped, **described}
