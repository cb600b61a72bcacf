"""The jsonpatch overrider: one operation of a patch, by strict pointers (kubeadmiral 5.6).

RFC 6902 but for `replace`, which creates a member that is absent, with a warning: policies rely on it (D1); and for
`set`, which puts a value in its place whatever is there, and makes the mappings that are missing above it.
"""

from __future__ import annotations

from typing import Any

from reconciler.krm.conflicts import ABSENT
from reconciler.krm.pointer import format_pointer
from reconciler.krm.schema.field_names import unknown_field
from reconciler.krm.yaml import Path
from reconciler.rules.edits import value_at, with_item, with_value, without
from reconciler.rules.fields import listed, meant
from reconciler.rules.notes import Note
from reconciler.rules.overrides.codes import (
    PATCH_DROPPED_KEYS,
    PATCH_FIELD_UNKNOWN,
    PATCH_INDEX_INVALID,
    PATCH_PARENT_MISSING,
    PATCH_TARGET_MISSING,
    REPLACE_CREATED_MEMBER,
)
from reconciler.rules.overrides.effect import Effect
from reconciler.rules.overrides.model import PatchItem
from reconciler.rules.overrides.paths import Lost, count_matches, follow, index_of, is_filter

FINALIZERS: Path = ("metadata", "finalizers")
_HINTS: dict[Path, str] = {
    ("metadata", "labels"): "; the labels overrider makes it",
    ("metadata", "annotations"): "; the annotations overrider makes it",
}


def apply_patch_item(data: Any, item: PatchItem) -> Effect:
    """Return the resource with one operation of a patch applied; it must not create an unknown field."""
    effect = patched(_with_finalizers(data, item.path), item)
    unknown = None if effect.failed else _unknown_field(data, item)
    return Effect(data, (unknown,)) if unknown else effect


def patched(data: Any, item: PatchItem) -> Effect:
    """Return any data with one operation of a patch applied."""
    if item.operator == "set":
        data = _with_parents(data, item.path)
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


def _unknown_field(data: Any, item: PatchItem) -> Note | None:
    """Return an error if the patch creates a field that a built-in Kubernetes kind does not have.

    A path that leads into a field that the resource has is followed, whether or not a schema has that field. To remove
    what does not exist is an error of its own.
    """
    if item.operator == "remove" or not isinstance(follow(data, item.path), Lost) or not isinstance(data, dict):
        return None
    api_version, kind = str(data.get("apiVersion", "")), str(data.get("kind", ""))
    unknown = unknown_field(api_version, kind, item.path)
    if unknown is None or not isinstance(follow(data, item.path[: unknown.number + 1]), Lost):
        return None
    name, path = item.path[unknown.number], item.path[: unknown.number + 1]
    hint = meant(name, unknown.allowed) or f"; allowed are {listed(unknown.allowed)}"
    message = f'{format_pointer(path)}: {api_version} {kind} has no field "{name}" there{hint}'
    return Note(PATCH_FIELD_UNKNOWN, message, path)


def _with_finalizers(data: Any, path: tuple[str, ...]) -> Any:
    is_missing = path[:2] == FINALIZERS and value_at(data, FINALIZERS) in (ABSENT, None)
    return with_value(data, FINALIZERS, []) if is_missing and isinstance(value_at(data, FINALIZERS[:1]), dict) else data


def _with_parents(data: Any, path: tuple[str, ...]) -> Any:
    """Return the data with the mappings made that are missing on the way, and with a list where an item is to go."""
    for number, step in enumerate(path[:-1]):
        found = follow(data, path[: number + 1])
        if isinstance(found, Lost) or value_at(data, found) is None:
            above = follow(data, path[:number])
            if isinstance(above, Lost) or not isinstance(value_at(data, above), dict):
                return data
            data = with_value(data, (*above, step), [] if path[number + 1] == "-" else {})
    return data


def _parent(data: Any, path: tuple[str, ...]) -> Path | Note:
    """Return the path of the mapping or list that the operation is about, or what is missing on the way."""
    found = follow(data, path[:-1])
    if isinstance(found, Lost):
        return Note(PATCH_PARENT_MISSING, f"{found.why}{_HINTS.get(found.path, '')}", found.path)
    if not isinstance(value_at(data, found), dict | list):
        hint = _HINTS.get(found, "")
        return Note(PATCH_PARENT_MISSING, f"{format_pointer(found)} must be a mapping or a list{hint}", found)
    return found


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
    items, step = value_at(data, parent), item.path[-1]
    if item.operator in ("add", "set") and step in ("-", str(len(items))):
        return Effect(with_item(data, (*parent, len(items)), item.value))
    if item.operator == "set" and is_filter(step) and not count_matches(items, step):
        return Effect(with_item(data, (*parent, len(items)), item.value))
    found = index_of(items, step)
    if isinstance(found, str) or (item.operator == "add" and is_filter(step)):
        return Effect(data, (_no_item(items, (*parent, step), item),))
    path = (*parent, found)
    match item.operator:
        case "add":
            return Effect(with_item(data, path, item.value))
        case "remove":
            return Effect(without(data, path))
        case "replace" | "set":
            return Effect(with_value(data, path, item.value), _dropped(items[found], item.value, path))


def _no_item(items: list[Any], path: Path, item: PatchItem) -> Note:
    step = item.path[-1]
    if is_filter(step) and item.operator != "add":
        if count := count_matches(items, step):
            return Note(PATCH_INDEX_INVALID, f"the filter {step} must be met by one item, and {count} meet it", path)
        return Note(PATCH_TARGET_MISSING, f"{item.operator} needs an item that meets {step}", path)
    last = len(items) - (item.operator in ("remove", "replace"))
    allowed = f"an index up to {last}" if last >= 0 else "an index, and the list is empty"
    return Note(PATCH_INDEX_INVALID, f'the last step must be {allowed}, not "{step}"', path)


def _dropped(old: Any, new: Any, path: Path) -> tuple[Note, ...]:
    if not (isinstance(old, dict) and isinstance(new, dict)):
        return ()
    gone = [key for key in old if key not in new]
    message = f"a patch replaces and does not merge: {', '.join(gone)} went"
    return (Note(PATCH_DROPPED_KEYS, message, path),) if gone else ()
