"""The overriders `annotations` and `labels`, which change the annotations and labels of a resource."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from reconciler.controllers.nested_values import copy_with_value, copy_without_value, get_value
from reconciler.controllers.override_policies.codes import PolicyCodes
from reconciler.controllers.override_policies.model import MapItem, OverrideEffect
from reconciler.controllers.resource_findings import ResourceIssue
from reconciler.krm.merge3.rules import ABSENT


def apply_map(data: Any, item: MapItem, field: Literal["annotations", "labels"]) -> OverrideEffect:
    """Return the resource after a change of its labels or annotations. If no entry remains, the mapping is removed."""
    path = ("metadata", field)
    metadata, old = get_value(data, path[:1]), get_value(data, path)
    if not isinstance(metadata, dict):
        return OverrideEffect(data, (ResourceIssue(PolicyCodes.MAP_MALFORMED, "metadata must be a mapping", path[:1]),))
    if old is not ABSENT and old is not None and not _is_string_map(old):
        return OverrideEffect(
            data,
            (
                ResourceIssue(
                    PolicyCodes.MAP_MALFORMED,
                    f"metadata.{field} must be a mapping whose keys and values are strings",
                    path,
                ),
            ),
        )
    known: Mapping[str, str] = old if isinstance(old, dict) else {}
    if item.operator == "addIfAbsent" and (present := next((key for key in item.value if key in known), None)):
        return OverrideEffect(
            data,
            (
                ResourceIssue(
                    PolicyCodes.KEY_EXISTS,
                    f'addIfAbsent cannot add the key "{present}" to {field}, because the key already exists',
                    (*path, present),
                ),
            ),
        )
    new = _apply_operator(known, item)
    if new == known:
        return OverrideEffect(data)
    return OverrideEffect(copy_with_value(data, path, new) if new else copy_without_value(data, path))


def _is_string_map(value: object) -> bool:
    return isinstance(value, dict) and all(isinstance(text, str) for text in (*value, *value.values()))


def _apply_operator(known: Mapping[str, str], item: MapItem) -> dict[str, str]:
    match item.operator:
        case "addIfAbsent" | "set":
            return {**known, **item.value}
        case "overwrite":
            return {key: item.value.get(key, value) for key, value in known.items()}
        case "delete":
            return {key: value for key, value in known.items() if key not in item.value}
