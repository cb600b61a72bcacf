"""The jsonpatch overrider: one operation of a patch, by strict pointers (kubeadmiral 5.6).

RFC 6902 but for `replace`, which creates a member that is absent, with a warning: policies rely on it (D1).
"""

from __future__ import annotations

import re
from typing import Any

from reconciler.krm.pointer import format_pointer
from reconciler.krm.yaml import Path
from reconciler.rules.overrides.codes import (
    PATCH_DROPPED_KEYS,
    PATCH_INDEX_INVALID,
    PATCH_PARENT_MISSING,
    PATCH_TARGET_MISSING,
    REPLACE_CREATED_MEMBER,
)
from reconciler.rules.overrides.edits import ABSENT, value_at, with_item, with_value, without
from reconciler.rules.overrides.effect import Effect, Note
from reconciler.rules.overrides.model import PatchItem

FINALIZERS: Path = ("metadata", "finalizers")
_INDEX = re.compile(r"0|[1-9][0-9]{0,9}", re.ASCII)
_HINTS: dict[Path, str] = {
    ("metadata", "labels"): "; the labels overrider makes it",
    ("metadata", "annotations"): "; the annotations overrider makes it",
}


def apply_patch_item(data: Any, item: PatchItem) -> Effect:
    """Return the resource with one operation of a patch applied."""
    data = _with_finalizers(data, item.path)
    parent = _parent(data, item.path)
    if isinstance(parent, Note):
        return Effect(data, (parent,))
    if isinstance(value_at(data, parent), dict):
        return _in_mapping(data, (*parent, item.path[-1]), item)
    return _in_list(data, parent, item)


def tidy_finalizers(data: Any) -> Any:
    """Return the resource with each finalizer once, and without an empty list of them (D12)."""
    finalizers = value_at(data, FINALIZERS)
    if not isinstance(finalizers, list):
        return data
    kept = [one for index, one in enumerate(finalizers) if one not in finalizers[:index]]
    if not kept:
        return without(data, FINALIZERS)
    return data if len(kept) == len(finalizers) else with_value(data, FINALIZERS, kept)


def _with_finalizers(data: Any, path: tuple[str, ...]) -> Any:
    is_missing = path[:2] == FINALIZERS and value_at(data, FINALIZERS) in (ABSENT, None)
    return with_value(data, FINALIZERS, []) if is_missing and isinstance(value_at(data, FINALIZERS[:1]), dict) else data


def _parent(data: Any, path: tuple[str, ...]) -> Path | Note:
    """Return the path of the mapping or list that the operation is about, or what is missing on the way."""
    steps: list[str | int] = []
    for step in path[:-1]:
        if isinstance(data, list) and _INDEX.fullmatch(step) and int(step) < len(data):
            steps.append(int(step))
        elif isinstance(data, dict) and step in data:
            steps.append(step)
        else:
            return _missing((*steps, step))
        data = data[steps[-1]]
    return tuple(steps) if isinstance(data, dict | list) else _missing(tuple(steps))


def _missing(path: Path) -> Note:
    hint = _HINTS.get(path, "")
    return Note(PATCH_PARENT_MISSING, f"{format_pointer(path)} must be a mapping or a list that exists{hint}", path)


def _in_mapping(data: Any, path: Path, item: PatchItem) -> Effect:
    old = value_at(data, path)
    if item.operator == "remove":
        if old is ABSENT:
            return Effect(data, (Note(PATCH_TARGET_MISSING, "remove needs something to remove", path),))
        return Effect(without(data, path))
    created = item.operator == "replace" and old is ABSENT
    notes = (Note(REPLACE_CREATED_MEMBER, "replace found nothing there, and added it", path),) if created else ()
    return Effect(with_value(data, path, item.value), notes + _dropped(old, item.value, path))


def _in_list(data: Any, parent: Path, item: PatchItem) -> Effect:
    length, step = len(value_at(data, parent)), item.path[-1]
    if item.operator == "add" and step == "-":
        return Effect(with_item(data, (*parent, length), item.value))
    last = length if item.operator == "add" else length - 1
    if not _INDEX.fullmatch(step) or int(step) > last:
        message = f'the last step must be an index up to {last}, not "{step}"' if last >= 0 else "the list is empty"
        return Effect(data, (Note(PATCH_INDEX_INVALID, message, (*parent, step)),))
    path = (*parent, int(step))
    match item.operator:
        case "add":
            return Effect(with_item(data, path, item.value))
        case "remove":
            return Effect(without(data, path))
        case "replace":
            return Effect(with_value(data, path, item.value), _dropped(value_at(data, path), item.value, path))


def _dropped(old: Any, new: Any, path: Path) -> tuple[Note, ...]:
    if not (isinstance(old, dict) and isinstance(new, dict)):
        return ()
    gone = [key for key in old if key not in new]
    message = f"a patch replaces and does not merge: {', '.join(gone)} went"
    return (Note(PATCH_DROPPED_KEYS, message, path),) if gone else ()
