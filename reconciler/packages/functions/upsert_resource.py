"""upsert-resource: a resource replaced where it is, or added (kpt.md 16)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from reconciler.packages.functions.function import (
    Config,
    FunctionContext,
    Item,
    Output,
    failure,
    plain_copy,
    reports_faults,
)
from reconciler.packages.functions.limits import value_bytes

TARGET_PATH = "config.kubernetes.io/target-path"
_FUNCTION_MARKS = ("config.kubernetes.io/function", "config.k8s.io/function")


@reports_faults
def upsert_resource(items: Sequence[Item], config: Config | None, context: FunctionContext) -> Output:
    """Return the items with the configured resource, or each of a List, in place of all that are the same object.

    With a target path only the one in that file is replaced; what is not there yet is added, there or in a new file.
    """
    wanted = _wanted(config)
    if isinstance(wanted, str):
        return failure(items, wanted)
    current = list(items)
    for resource in wanted:
        context.budget.spend(len(current))
        matching = [number for number, item in enumerate(current) if _is_same(item, resource)]
        size = value_bytes(resource.data) * max(1, len(matching))
        context.budget.create(size, f"{resource.kind} {resource.name}")
        for number in matching:
            current[number] = current[number].with_data(_content(resource))
        current += [] if matching else [_added(resource)]
    return Output(tuple(current))


def _wanted(config: Config | None) -> list[Item] | str:
    """Return the resources to be there, or what is wrong with the configuration."""
    data: Mapping[str, Any] = config or {}
    entries = data.get("items") if data.get("kind") == "List" else [data]
    if entries is None:
        return []
    if not isinstance(entries, list) or not all(isinstance(entry, Mapping) for entry in entries):
        return "failed to upsert resource: items must be a list of resources"
    wanted = [Item("", "", -1, dict(entry)) for entry in entries]
    lacking = next((item.missing_krm_field for item in wanted if item.missing_krm_field), "")
    return f"failed to upsert resource: a resource must have `{lacking}`" if lacking else wanted


def _is_same(item: Item, wanted: Item) -> bool:
    if any(item.annotations.get(mark) for mark in _FUNCTION_MARKS):
        return False
    return item.key == wanted.key and _target_path(wanted) in ("", item.path)


def _target_path(resource: Item) -> str:
    path = resource.annotations.get(TARGET_PATH)
    return path if isinstance(path, str) else ""


def _content(resource: Item) -> Any:
    """Return the resource as it is written: without what only says where to."""
    data = plain_copy(resource.data)
    annotations = data["metadata"].get("annotations")
    if isinstance(annotations, dict):
        for name in (TARGET_PATH, *_FUNCTION_MARKS):
            annotations.pop(name, None)
        if not annotations:
            del data["metadata"]["annotations"]
    return data


def _added(resource: Item) -> Item:
    return Item("", _target_path(resource), -1, _content(resource))
