"""Secrets: what of an object nobody may read in a message, a status or a diff (design 10.29)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reconciler.krm.secrets import LAST_APPLIED, MASK, VALUE_FIELDS, is_secret, writes_secret
from reconciler.snapshot.trace import ABSENT, Trace


def mask(data: Any, other: Any = None, *, compared: bool = False) -> Any:
    """Return the data with the values of every Secret in it masked.

    `compared`: what differs from `other`, the same data at another time, is said to be changed.
    """
    if isinstance(data, str):
        return _star(data, other, compared) if writes_secret(data) else data
    if isinstance(data, list):
        items = other if isinstance(other, list) else []
        return [mask(one, _item(items, index), compared=compared) for index, one in enumerate(data)]
    if not isinstance(data, Mapping):
        return data
    known = other if isinstance(other, Mapping) else {}
    hide = _mask_secret if is_secret(data) else _mask_inside
    return {key: hide(key, value, known.get(key), compared) for key, value in data.items()}


def mask_trace(trace: Trace) -> dict[str, str]:
    """Return the trace without hashes of Secrets: the hash of a short value tells the value."""
    return {
        question: MASK if question.startswith("object v1 Secret ") and answer != ABSENT else answer
        for question, answer in trace.items()
    }


def _mask_inside(_key: str, value: Any, other: Any, compared: bool) -> Any:
    return mask(value, other, compared=compared)


def _mask_secret(key: str, value: Any, other: Any, compared: bool) -> Any:
    known = other if isinstance(other, Mapping) else {}
    if key in VALUE_FIELDS and isinstance(value, Mapping):
        return {name: _star(one, known.get(name), compared) for name, one in value.items()}
    if key == "metadata" and isinstance(value, Mapping) and isinstance(value.get("annotations"), Mapping):
        shown = {name: MASK if name == LAST_APPLIED else one for name, one in value["annotations"].items()}
        return {**value, "annotations": shown}
    return _star(value, other, compared) if key in VALUE_FIELDS else value


def _star(value: object, other: object, compared: bool) -> str:
    return f"{MASK} (changed)" if compared and other is not None and value != other else MASK


def _item(items: list[Any], index: int) -> Any:
    return items[index] if index < len(items) else None
