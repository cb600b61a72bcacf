"""Paths into a resource: pointers; a step into a list may be a filter such as `[name=api]` (kubeadmiral 12).

What a step means the data tells: below a mapping every text is a key.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from reconciler.krm.pointer import format_pointer
from reconciler.krm.yaml import Path

_INDEX = re.compile(r"0|[1-9][0-9]{0,9}", re.ASCII)
_CONDITION = re.compile(r"\[([^\[\]=]+)=([^\[\]]*)\]")
_FILTER = re.compile(rf"(?:{_CONDITION.pattern})+")
_WORDS = {True: "true", False: "false"}


@dataclass(frozen=True)
class Lost:
    """Where a path leads nowhere, and why."""

    path: Path
    why: str


def follow(data: Any, path: tuple[str, ...]) -> Path | Lost:
    """Return a path that exists, with the numbers of list items in the place of indices and filters."""
    steps: list[str | int] = []
    for step in path:
        found = index_of(data, step) if isinstance(data, list) else step
        if isinstance(found, int):
            steps.append(found)
        elif isinstance(data, dict) and step in data:
            steps.append(step)
        else:
            why = found if isinstance(data, list) else "does not exist"
            return Lost((*steps, step), f"{format_pointer((*steps, step))} {why}")
        data = data[steps[-1]]
    return tuple(steps)


def index_of(items: list[Any], step: str) -> int | str:
    """Return the number of the item that a step leads to, or why it leads to none."""
    if _INDEX.fullmatch(step) and int(step) < len(items):
        return int(step)
    if not is_filter(step):
        return f"is not one of the {len(items)} items of the list"
    found = [number for number, item in enumerate(items) if _meets(item, step)]
    return found[0] if len(found) == 1 else f"is met by {len(found)} of the {len(items)} items of the list"


def is_filter(step: str) -> bool:
    """Tell whether a step names a list item by what it holds."""
    return _FILTER.fullmatch(step) is not None


def count_matches(items: list[Any], step: str) -> int:
    """Return how many items meet a filter."""
    return sum(_meets(item, step) for item in items)


def _meets(item: Any, step: str) -> bool:
    conditions = _CONDITION.findall(step)
    return isinstance(item, dict) and all(key in item and _text(item[key]) == value for key, value in conditions)


def _text(value: Any) -> str | None:
    if isinstance(value, bool):
        return _WORDS[value]
    return str(value) if isinstance(value, str | int) else None
