"""The annotations and labels overriders: the object's own metadata, key by key (kubeadmiral 5.5)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from reconciler.krm.conflicts import ABSENT
from reconciler.rules.edits import value_at, with_value, without
from reconciler.rules.notes import Note
from reconciler.rules.overrides.codes import KEY_EXISTS, MAP_MALFORMED
from reconciler.rules.overrides.effect import Effect
from reconciler.rules.overrides.model import MapItem


def apply_map(data: Any, item: MapItem, field: Literal["annotations", "labels"]) -> Effect:
    """Return the resource with its labels or annotations changed; a mapping left empty goes."""
    path = ("metadata", field)
    metadata, old = value_at(data, path[:1]), value_at(data, path)
    if not isinstance(metadata, dict):
        return Effect(data, (Note(MAP_MALFORMED, "metadata must be a mapping", path[:1]),))
    if old is not ABSENT and old is not None and not _is_string_map(old):
        return Effect(data, (Note(MAP_MALFORMED, f"{field} must map strings to strings", path),))
    known: Mapping[str, str] = old if isinstance(old, dict) else {}
    if item.operator == "addIfAbsent" and (present := next((key for key in item.value if key in known), None)):
        return Effect(data, (Note(KEY_EXISTS, f"addIfAbsent needs {field} without it", (*path, present)),))
    new = _changed(known, item)
    if new == known:
        return Effect(data)
    return Effect(with_value(data, path, new) if new else without(data, path))


def _is_string_map(value: object) -> bool:
    return isinstance(value, dict) and all(isinstance(one, str) for one in (*value, *value.values()))


def _changed(known: Mapping[str, str], item: MapItem) -> dict[str, str]:
    match item.operator:
        case "addIfAbsent" | "set":
            return {**known, **item.value}
        case "overwrite":
            return {key: item.value.get(key, value) for key, value in known.items()}
        case "delete":
            return {key: value for key, value in known.items() if key not in item.value}
