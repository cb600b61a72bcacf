"""Differences between the fields of two versions of an object."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from typing import Annotated, Any

from pydantic import PlainSerializer

from reconciler.lazy_dataclasses import dataclass
from reconciler.output.text import format_both_values, format_path_text, format_value, shorten, to_one_line


class FieldAbsence(Enum):
    """The value of an absent field, which is different from the value null."""

    ABSENT = "absent"


ABSENT_FIELD = FieldAbsence.ABSENT
FieldPath = tuple[str, ...]
_MAX_PATH_CHARACTERS = 200
VERSION_LABELS = ("helm.sh/chart", "app.kubernetes.io/version")
"""The labels that a chart usually changes in all its objects with each version."""

_LABELS_PATH = ("metadata", "labels")
_VERSION_LABEL_PATHS = frozenset((label,) for label in VERSION_LABELS)
# The fields that identify the items of a list, in Kubernetes objects and in Kptfiles.
_IDENTITY_FIELDS = ("name", "type", "conditionType")


@dataclass(frozen=True)
class FieldChange:
    """One changed field. The value of an absent field is `ABSENT_FIELD`.

    Attributes:
        path: The keys of mappings, and list items as `[identity]` or `[index]`, e.g. `("spec", "containers", "[web]")`.
    """

    path: Annotated[FieldPath, PlainSerializer(format_path_text, return_type=str)]
    before: Any = ABSENT_FIELD
    after: Any = ABSENT_FIELD

    @property
    def path_text(self) -> str:
        """The path as text, such as `spec.template.spec.containers[web].image`."""
        return format_path_text(self.path)

    @property
    def is_version_label(self) -> bool:
        """Whether the field is a label of the object that contains the version of its chart or application.

        Labels of pod templates are not such fields, because their change restarts pods.
        """
        return self.path[:2] == _LABELS_PATH and self.path[2:] in _VERSION_LABEL_PATHS

    def format_line(self) -> str:
        """Return the change on one line. Shorten long paths and values."""
        return f"{shorten(to_one_line(self.path_text), _MAX_PATH_CHARACTERS)} {self.format_values()}"

    def format_values(self) -> str:
        """Return both values on one line, such as `2 → 3`. Shorten long values."""
        if self.before is ABSENT_FIELD:
            return f"added ({format_value(self.after)})"
        if self.after is ABSENT_FIELD:
            return f"removed (was {format_value(self.before)})"
        if type(self.before) is type(self.after) and self.before == self.after:
            # Show one value only, because both values are masked.
            return f"changed ({format_value(self.after)})"
        old, new = format_both_values(self.before, self.after)
        return f"{old} → {new}"


def find_field_changes(before: Any, after: Any, path: FieldPath = ()) -> Iterator[FieldChange]:
    """Yield the differences between two values, in the order of the fields.

    Values of different types are different. For example, 1, 1.0 and True are three different values.
    """
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        yield from _compare_mappings(before, after, path)
    elif isinstance(before, list) and isinstance(after, list):
        yield from _compare_lists(before, after, path)
    elif type(before) is not type(after) or before != after:
        yield FieldChange(path, before, after)


def _compare_mappings(before: Mapping[str, Any], after: Mapping[str, Any], path: FieldPath) -> Iterator[FieldChange]:
    for key in dict.fromkeys((*before, *after)):
        yield from find_field_changes(before.get(key, ABSENT_FIELD), after.get(key, ABSENT_FIELD), (*path, str(key)))


def _compare_lists(before: list[Any], after: list[Any], path: FieldPath) -> Iterator[FieldChange]:
    identity = next((name for name in _IDENTITY_FIELDS if _identifies(name, before) and _identifies(name, after)), None)
    if identity and (before or after):
        old, new = ({f"[{item[identity]}]": item for item in items} for items in (before, after))
        yield from _compare_mappings(old, new, path)
        if (old_order := _list_common(old, new)) != (new_order := _list_common(new, old)):
            yield FieldChange(path, old_order, new_order)
    elif len(before) == len(after):
        for index, (old_item, new_item) in enumerate(zip(before, after, strict=True)):
            yield from find_field_changes(old_item, new_item, (*path, f"[{index}]"))
    else:
        yield FieldChange(path, before, after)


def _identifies(field: str, items: Sequence[Any]) -> bool:
    names = [item.get(field) if isinstance(item, Mapping) else None for item in items]
    return all(isinstance(name, str) for name in names) and len(set(names)) == len(names)


def _list_common(items: Mapping[str, Any], others: Mapping[str, Any]) -> list[str]:
    """Return the names of the items in both mappings, in the order of `items`. The keys have the form `[name]`."""
    return [name[1:-1] for name in items if name in others]
