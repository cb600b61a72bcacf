"""The overrider `jsonpatch`, which applies one operation of a JSON patch.

The operations follow RFC 6902, with these differences:

- `replace` adds a missing field and causes a warning, because existing policies rely on this behavior.
- `set` adds or replaces a value, and creates missing parent mappings.
- A path step that selects a list item may be a filter such as `[name=api]`. In a mapping, every step is a key.
"""

from __future__ import annotations

import re
from typing import Any, Literal

from reconciler.controllers.nested_values import copy_with_value, copy_without_value, get_value
from reconciler.controllers.override_policies.codes import PolicyCodes
from reconciler.controllers.override_policies.model import OverrideEffect, PatchItem
from reconciler.controllers.resource_findings import ResourceIssue
from reconciler.krm.field_text import format_list, quote_list, suggest_name
from reconciler.krm.json_patch import apply_to_container
from reconciler.krm.json_pointer import format_pointer
from reconciler.krm.merge3.rules import ABSENT
from reconciler.krm.numbers import format_count
from reconciler.krm.schema.kubernetes_apis import find_unknown_field
from reconciler.krm.yaml import DataPath
from reconciler.lazy_dataclasses import dataclass

_INDEX = re.compile(r"0|[1-9][0-9]{0,9}", re.ASCII)
_CONDITION = re.compile(r"\[([^\[\]=]+)=([^\[\]]*)\]")
_FILTER = re.compile(rf"(?:{_CONDITION.pattern})+")
_BOOLEAN_TEXTS = {True: "true", False: "false"}
FINALIZERS: DataPath = ("metadata", "finalizers")
_MISSING_PARENT_HINTS: dict[DataPath, str] = {
    ("metadata", "labels"): "; use the overrider labels to add labels",
    ("metadata", "annotations"): "; use the overrider annotations to add annotations",
}


def apply_patch_item(data: Any, item: PatchItem) -> OverrideEffect:
    """Return the resource after one patch operation. An operation that creates an unknown field is an error."""
    effect = apply_patch_operation(_add_finalizers(data, item.path), item)
    unknown = None if effect.has_errors else _find_unknown_field(data, item)
    return OverrideEffect(data, (unknown,)) if unknown else effect


def apply_patch_operation(data: Any, item: PatchItem) -> OverrideEffect:
    """Return data after one patch operation. The data can be any YAML or JSON value, and not only a resource."""
    if item.operator == "set":
        data = _add_parents(data, item.path)
    parent = _resolve_parent(data, item)
    if isinstance(parent, ResourceIssue):
        return OverrideEffect(data, (parent,))
    if isinstance(get_value(data, parent), dict):
        return _apply_to_mapping(data, (*parent, item.path[-1]), item)
    return _apply_to_list(data, parent, item)


def normalize_finalizers(data: Any) -> Any:
    """Return the resource after duplicate finalizers and an empty list of finalizers are removed."""
    finalizers = get_value(data, FINALIZERS)
    if not isinstance(finalizers, list):
        return data
    unique = [finalizer for index, finalizer in enumerate(finalizers) if finalizer not in finalizers[:index]]
    if not unique:
        return copy_without_value(data, FINALIZERS)
    return data if len(unique) == len(finalizers) else copy_with_value(data, FINALIZERS, unique)


def _find_unknown_field(data: Any, item: PatchItem) -> ResourceIssue | None:
    """Return an error if the patch creates a field that the schema of a built-in Kubernetes kind does not have.

    Return None for a path into a field that the resource already has, even if the schema does not have this field.
    Return None for the operation `remove`, because another check reports missing fields.
    """
    if (
        item.operator == "remove"
        or not isinstance(resolve_path(data, item.path), MissingPath)
        or not isinstance(data, dict)
    ):
        return None
    api_version, kind = str(data.get("apiVersion", "")), str(data.get("kind", ""))
    unknown = find_unknown_field(api_version, kind, item.path)
    if unknown is None or not isinstance(resolve_path(data, item.path[: unknown.step_index + 1]), MissingPath):
        return None
    name, path = item.path[unknown.step_index], item.path[: unknown.step_index + 1]
    hint = suggest_name(name, unknown.allowed_fields) or f"; allowed fields: {format_list(unknown.allowed_fields)}"
    message = (
        f'the patch must not add {format_pointer(path)}, because {api_version} {kind} has no field "{name}" there{hint}'
    )
    return ResourceIssue(PolicyCodes.PATCH_FIELD_UNKNOWN, message, path)


def _add_finalizers(data: Any, path: tuple[str, ...]) -> Any:
    is_missing = path[:2] == FINALIZERS and get_value(data, FINALIZERS) in (ABSENT, None)
    return (
        copy_with_value(data, FINALIZERS, [])
        if is_missing and isinstance(get_value(data, FINALIZERS[:1]), dict)
        else data
    )


def _add_parents(data: Any, path: tuple[str, ...]) -> Any:
    """Return the data after missing parents of a path are created.

    A missing parent becomes an empty list if the next step of the path is "-". Otherwise, it becomes a mapping.
    """
    for number, step in enumerate(path[:-1]):
        resolved = resolve_path(data, path[: number + 1])
        if isinstance(resolved, MissingPath) or get_value(data, resolved) is None:
            parent = resolve_path(data, path[:number])
            if isinstance(parent, MissingPath) or not isinstance(get_value(data, parent), dict):
                return data
            data = _apply_to_copy(data, "add", (*parent, step), [] if path[number + 1] == "-" else {})
    return data


def _resolve_parent(data: Any, item: PatchItem) -> DataPath | ResourceIssue:
    """Return the path of the mapping or list that the patch changes. Return an issue if the path does not exist."""
    resolved = resolve_path(data, item.path[:-1])
    if isinstance(resolved, MissingPath):
        return ResourceIssue(
            PolicyCodes.PATCH_PARENT_MISSING,
            f"{resolved.reason}{_MISSING_PARENT_HINTS.get(resolved.path) or _suggest_set(data, resolved.path, item)}",
            resolved.path,
        )
    if not isinstance(get_value(data, resolved), dict | list):
        hint = _MISSING_PARENT_HINTS.get(resolved, "")
        return ResourceIssue(
            PolicyCodes.PATCH_PARENT_MISSING,
            f"{_format_location(resolved)} must be a mapping or a list{hint}",
            resolved,
        )
    return resolved


def _suggest_set(data: Any, missing: DataPath, item: PatchItem) -> str:
    """Return a hint if the operator `set` can create the missing parents. Return "" if a list or its item is missing.

    `missing` is the path of the first missing parent.
    """
    has_list_step = any(is_filter(step) or _INDEX.fullmatch(step) for step in item.path[len(missing) - 1 :])
    if item.operator == "remove" or has_list_step or not isinstance(get_value(data, missing[:-1]), dict):
        return ""
    return "; to create missing parent fields, use the operator set"


def _format_location(path: DataPath) -> str:
    return format_pointer(path) or "the root"


def _apply_to_mapping(data: Any, path: DataPath, item: PatchItem) -> OverrideEffect:
    old = get_value(data, path)
    if item.operator == "remove":
        if old is ABSENT:
            message = f"the operator remove requires an existing field, but {format_pointer(path)} does not exist"
            return OverrideEffect(data, (ResourceIssue(PolicyCodes.PATCH_TARGET_MISSING, message, path),))
        return OverrideEffect(_apply_to_copy(data, "remove", path))
    created = item.operator == "replace" and old is ABSENT
    issues = (
        (
            ResourceIssue(
                PolicyCodes.REPLACE_CREATED_MEMBER,
                f"the operator replace adds {format_pointer(path)}, because this field does not exist; if this is"
                " intended, use the operator add",
                path,
            ),
        )
        if created
        else ()
    )
    # Use `add`, because `add` also replaces an existing value of a mapping.
    changed = _apply_to_copy(data, "add", path, item.value)
    return OverrideEffect(changed, issues + _check_dropped_keys(old, item.value, path))


def _apply_to_list(data: Any, parent: DataPath, item: PatchItem) -> OverrideEffect:
    items, step = get_value(data, parent), item.path[-1]
    if item.operator in ("add", "set") and step in ("-", str(len(items))):
        return OverrideEffect(_apply_to_copy(data, "add", (*parent, len(items)), item.value))
    if item.operator == "set" and is_filter(step) and not count_matches(items, step):
        return OverrideEffect(_apply_to_copy(data, "add", (*parent, len(items)), item.value))
    index = find_item_index(items, step)
    if isinstance(index, str) or (item.operator == "add" and is_filter(step)):
        return OverrideEffect(data, (_describe_missing_item(items, (*parent, step), item),))
    path = (*parent, index)
    match item.operator:
        case "add":
            return OverrideEffect(_apply_to_copy(data, "add", path, item.value))
        case "remove":
            return OverrideEffect(_apply_to_copy(data, "remove", path))
        case "replace" | "set":
            changed = _apply_to_copy(data, "replace", path, item.value)
            return OverrideEffect(changed, _check_dropped_keys(items[index], item.value, path))


def _apply_to_copy(data: Any, op: Literal["add", "replace", "remove"], path: DataPath, value: Any = None) -> Any:
    """Apply an operation of RFC 6902 to a copy of the data. Values outside of the path are not copied, but shared."""
    container = get_value(data, path[:-1]).copy()
    apply_to_container(container, op, path[-1], value)
    return copy_with_value(data, path[:-1], container)


def _describe_missing_item(items: list[Any], path: DataPath, item: PatchItem) -> ResourceIssue:
    step, location = item.path[-1], _format_location(path[:-1])
    if is_filter(step) and item.operator != "add":
        if count := count_matches(items, step):
            message = f'the filter "{step}" must match one item of the list at {location}, but matches {count} items'
            return ResourceIssue(PolicyCodes.PATCH_INDEX_INVALID, message, path)
        message = f'the operator {item.operator} requires an item that matches "{step}" in the list at {location}'
        return ResourceIssue(PolicyCodes.PATCH_TARGET_MISSING, message, path)
    last = len(items) - (item.operator in ("remove", "replace"))
    allowed = f"an index from 0 to {last}" if last else "the index 0"
    message = f'the last step of the path must be {allowed} of the list at {location}, but is "{step}"'
    if last < 0:
        message = f"the last step of the path must be an index of the list at {location}, but the list is empty"
    return ResourceIssue(PolicyCodes.PATCH_INDEX_INVALID, message, path)


def _check_dropped_keys(old: Any, new: Any, path: DataPath) -> tuple[ResourceIssue, ...]:
    if not (isinstance(old, dict) and isinstance(new, dict)):
        return ()
    dropped_keys = [key for key in old if key not in new]
    keys = f"{'key' if len(dropped_keys) == 1 else 'keys'} {quote_list(dropped_keys)}"
    message = (
        f"the patch replaces the whole mapping {format_pointer(path)} and removes the {keys}. To keep a key, add the"
        " key to the value of the patch"
    )
    return (ResourceIssue(PolicyCodes.PATCH_DROPPED_KEYS, message, path),) if dropped_keys else ()


@dataclass(frozen=True)
class MissingPath:
    """The path of the first field or list item that does not exist, and a message about it."""

    path: DataPath
    reason: str


def resolve_path(data: Any, path: tuple[str, ...]) -> DataPath | MissingPath:
    """Return the path in which list indexes replace all filters. Return a `MissingPath` if a step does not exist."""
    steps: list[str | int] = []
    for step in path:
        index_or_reason = find_item_index(data, step) if isinstance(data, list) else step
        if isinstance(index_or_reason, int):
            steps.append(index_or_reason)
        elif isinstance(data, dict) and step in data:
            steps.append(step)
        else:
            reason = index_or_reason if isinstance(data, list) else "does not exist"
            return MissingPath((*steps, step), f"{format_pointer((*steps, step))} {reason}")
        data = data[steps[-1]]
    return tuple(steps)


def find_item_index(items: list[Any], step: str) -> int | str:
    """Return the index of the list item that a step selects. Return an error message if no or several items match."""
    if _INDEX.fullmatch(step) and int(step) < len(items):
        return int(step)
    if _INDEX.fullmatch(step):
        size = f"has only {format_count(len(items), 'item')}" if items else "is empty"
        return f"does not exist, because the list {size}"
    if not is_filter(step):
        return f'does not exist, because "{step}" is not an index of the list'
    matches = [number for number, item in enumerate(items) if _matches_filter(item, step)]
    if len(matches) == 1:
        return matches[0]
    return (
        f"matches {len(matches)} items of the list instead of exactly one" if matches else "matches no item of the list"
    )


def is_filter(step: str) -> bool:
    """Return whether a path step is a filter that selects a list item by its fields, e.g. `[name=api]`."""
    return _FILTER.fullmatch(step) is not None


def count_matches(items: list[Any], step: str) -> int:
    """Return the number of list items that match a filter."""
    return sum(_matches_filter(item, step) for item in items)


def _matches_filter(item: Any, step: str) -> bool:
    conditions = _CONDITION.findall(step)
    return isinstance(item, dict) and all(
        key in item and _format_scalar(item[key]) == value for key, value in conditions
    )


def _format_scalar(value: Any) -> str | None:
    if isinstance(value, bool):
        return _BOOLEAN_TEXTS[value]
    return str(value) if isinstance(value, str | int) else None
