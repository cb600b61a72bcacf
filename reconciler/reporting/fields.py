"""Fields: where two versions of one object's data differ, field by field."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from reconciler.reporting.values import one_line, shorten, show, show_both


class Absence(Enum):
    """The value of a field that is not there; null is a value of its own."""

    ABSENT = "absent"


ABSENT = Absence.ABSENT
FieldPath = tuple[str, ...]
_PATH_WIDTH = 200
_PLAIN_KEY = re.compile(r"[A-Za-z0-9_-]+")
# what makes items of a list the same item in Kubernetes' lists and in Kptfiles
_IDENTITIES = ("name", "type", "conditionType")


@dataclass(frozen=True)
class FieldChange:
    """One field with its values before and after; ABSENT where it is not there.

    A step of `path` is a key, or `[identity]` or `[index]` of a list item.
    """

    path: FieldPath
    before: Any = ABSENT
    after: Any = ABSENT

    @property
    def where(self) -> str:
        """The path as text, e.g. `spec.template.spec.containers[web].image`."""
        steps = [step if step.startswith("[") else f".{step}" if _PLAIN_KEY.fullmatch(step) else f"[{step}]"
                 for step in self.path]  # fmt: skip
        return "".join(steps).removeprefix(".")

    def words(self) -> str:
        """Return the change in words on one line, path and values shortened."""
        where = shorten(one_line(self.where), _PATH_WIDTH)
        if self.before is ABSENT:
            return f"{where} added ({show(self.after)})"
        if self.after is ABSENT:
            return f"{where} removed (was {show(self.before)})"
        if type(self.before) is type(self.after) and self.before == self.after:
            # both values are masked
            return f"{where} changed ({show(self.after)})"
        old, new = show_both(self.before, self.after)
        return f"{where} {old} → {new}"


def field_changes(before: Any, after: Any, path: FieldPath = ()) -> Iterator[FieldChange]:
    """Yield the differences between two pieces of data, in the order of the fields.

    1 differs from 1.0 and from True: types are part of the value.
    """
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        yield from _by_key(before, after, path)
    elif isinstance(before, list) and isinstance(after, list):
        yield from _by_item(before, after, path)
    elif type(before) is not type(after) or before != after:
        yield FieldChange(path, before, after)


def _by_key(before: Mapping[str, Any], after: Mapping[str, Any], path: FieldPath) -> Iterator[FieldChange]:
    for key in dict.fromkeys((*before, *after)):
        yield from field_changes(before.get(key, ABSENT), after.get(key, ABSENT), (*path, str(key)))


def _by_item(before: list[Any], after: list[Any], path: FieldPath) -> Iterator[FieldChange]:
    identity = next((name for name in _IDENTITIES if _identifies(name, before) and _identifies(name, after)), None)
    if identity and (before or after):
        old, new = ({f"[{item[identity]}]": item for item in items} for items in (before, after))
        yield from _by_key(old, new, path)
        if (order := _order(old, new)) != (wanted := _order(new, old)):
            yield FieldChange(path, order, wanted)
    elif len(before) == len(after):
        for index, (one, other) in enumerate(zip(before, after, strict=True)):
            yield from field_changes(one, other, (*path, f"[{index}]"))
    else:
        yield FieldChange(path, before, after)


def _identifies(name: str, items: Sequence[Any]) -> bool:
    names = [item.get(name) if isinstance(item, Mapping) else None for item in items]
    return all(isinstance(one, str) for one in names) and len(set(names)) == len(names)


def _order(items: Mapping[str, Any], others: Mapping[str, Any]) -> list[str]:
    return [name[1:-1] for name in items if name in others]
