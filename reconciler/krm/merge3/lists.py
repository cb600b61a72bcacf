"""Merging of lists: keys and order of elements, lists of scalars, and the list merge of kpt.

`merge_keyed_list_like_kpt` has the same sequence of steps as kpt, because the order of the merged list depends on the
sequence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias, TypeVar

from reconciler.krm.json_pointer import format_pointer
from reconciler.krm.merge3.rules import ABSENT, MergeError, MergeRules
from reconciler.krm.schema.merge_schemas import MergeSchema
from reconciler.krm.yaml.compare import is_equal_data
from reconciler.krm.yaml.emit import format_non_string
from reconciler.lazy_dataclasses import dataclass, field

ElementIdentity: TypeAlias = tuple[str | None, ...]


@dataclass(frozen=True)
class ElementKeys:
    """The key fields that identify the elements of a list.

    If `fields` is empty, a scalar value identifies each element.
    """

    fields: tuple[str, ...] = ()
    defaults: Mapping[str, str] = field(default_factory=dict)

    def get_identity(self, element: Any) -> ElementIdentity | None:
        """Return the key values of an element. Return None if the element has no key values, or if one value is a
        collection.
        """
        if not self.fields:
            is_scalar = element is not None and not isinstance(element, dict | list)
            return (format_scalar(element),) if is_scalar else None
        if not isinstance(element, dict):
            return None
        values = [element.get(name) for name in self.fields]
        if all(value is None for value in values) or any(isinstance(value, dict | list) for value in values):
            return None
        return tuple(
            self.defaults.get(name) if value is None else format_scalar(value)
            for name, value in zip(self.fields, values, strict=True)
        )

    def index_by_identity(self, elements: Iterable[Any]) -> dict[ElementIdentity, Any]:
        """Return a mapping from key values to elements.

        If several elements have the same key values, use the first element.
        """
        elements_by_identity: dict[ElementIdentity, Any] = {}
        for element in elements:
            identity = self.get_identity(element)
            if identity is not None:
                elements_by_identity.setdefault(identity, element)
        return elements_by_identity

    def identifies_all(self, elements: Sequence[Any]) -> bool:
        """Return whether each element has key values that no other element has."""
        return len(self.index_by_identity(elements)) == len(elements)


_SCALAR_TYPES = (str, int, float)
_NAME_KEYS = ElementKeys(("name",))


def find_element_keys(
    sides: Iterable[Any], schema: MergeSchema, rules: MergeRules, path: Sequence[Any] = ()
) -> ElementKeys | None:
    """Return the key fields of the list at `path`.

    Return None if the list is atomic, and is therefore replaced as a whole.
    """
    if schema.keys is not None:
        return ElementKeys(schema.keys, schema.defaults if rules.strict_keys else {})
    if schema.is_closed:
        return None
    lists = [side for side in sides if isinstance(side, list) and side]
    if rules.requires_names:
        return _find_required_names(lists, path)
    has_names = rules.infers_names and lists and all(map(_have_names, lists))
    return _NAME_KEYS if has_names and all(map(_NAME_KEYS.identifies_all, lists)) else None


def _find_required_names(lists: Sequence[list[Any]], path: Sequence[Any]) -> ElementKeys | None:
    has_names = [_have_names(elements) for elements in lists]
    if any(has_names) and not all(has_names):
        reason = "conflicting merge keys: the elements have a `name` in only some of the merged lists"
        raise MergeError(f"{format_pointer(path)}: {reason}")
    return _NAME_KEYS if any(has_names) else None


def _have_names(elements: list[Any]) -> bool:
    return all(isinstance(element, dict) and "name" in element for element in elements)


def format_scalar(value: Any) -> str:
    """Return the text of a scalar. A comparison of these texts ignores types: 1 and "1" have the same text."""
    return value if isinstance(value, str) else format_non_string(value)


def is_equal_as_text(left: Any, right: Any) -> bool:
    """Return whether kpt considers two values equal. kpt compares scalars as text: 1 and "1" are equal."""
    if isinstance(left, _SCALAR_TYPES) and isinstance(right, _SCALAR_TYPES):
        return format_scalar(left) == format_scalar(right)
    return is_equal_data(left, right)


class _Change(NamedTuple):
    """One change of a side: `items` replaces the items of the origin from `start` to `end` (exclusive)."""

    start: int
    end: int
    items: tuple[tuple[str, Any], ...]


def merge_scalar_lists(local: Any, origin: Any, updated: Any) -> list[Any] | None:
    """Apply the changes of the local list and of the updated list to the list `origin`.

    Return None if both sides changed the same items, if both inserted items at the same position, or if a list contains
    a mapping or list.
    """
    if not all(_is_scalar_list(side) for side in (local, origin, updated)):
        return None
    base, ours, theirs = map(_add_types, (origin, local, updated))
    distinct = dict.fromkeys((*_find_changes(base, ours), *_find_changes(base, theirs)))
    changes = sorted(distinct, key=lambda change: (change.start, change.end))
    if any(_overlaps(change, following) for change, following in pairwise(changes)):
        return None
    for change in reversed(changes):
        base[change.start : change.end] = change.items
    return [value for _, value in base]


def _is_scalar_list(side: Any) -> bool:
    return isinstance(side, list) and not any(isinstance(item, dict | list) for item in side)


def _add_types(items: list[Any]) -> list[tuple[str, Any]]:
    # Compare types too, because True == 1 in Python.
    return [(type(item).__name__, item) for item in items]


def _find_changes(base: Sequence[tuple[str, Any]], side: Sequence[tuple[str, Any]]) -> Iterator[_Change]:
    for tag, start, end, first, last in SequenceMatcher(None, base, side, autojunk=False).get_opcodes():
        if tag != "equal":
            yield _Change(start, end, tuple(side[first:last]))


def _overlaps(change: _Change, following: _Change) -> bool:
    """Return whether two changes replace the same items, or both insert items at the same position."""
    is_same_position = change.start == following.start and bool(change.items and following.items)
    return following.start < change.end or is_same_position


K = TypeVar("K")


def interleave(existing: Mapping[K, Any], new: Mapping[K, Any], order: Iterable[K]) -> dict[K, Any]:
    """Insert the new keys between the existing keys, at positions that `order` determines.

    - Each new key follows the key that precedes it in `order`.
    - New keys that precede the first existing key in `order` are inserted before this existing key.
    - If `order` contains no existing key, the new keys are appended.
    """
    followers: dict[K | None, list[K]] = {}
    first: K | None = None
    predecessor: K | None = None
    for key in order:
        if key in existing:
            predecessor = key
            first = key if first is None else first
        elif key in new:
            followers.setdefault(predecessor, []).append(key)
    result: dict[K, Any] = {}
    leading = {key: new[key] for key in followers.pop(None, ())}
    for key, value in existing.items():
        if key == first:
            result |= leading
        result[key] = value
        result |= {follower: new[follower] for follower in followers.get(key, ())}
    return result | leading


def order_like_upstream(merged: Mapping[K, Any], local: Iterable[K], updated: Iterable[K]) -> list[K]:
    """Return the keys of `merged` in the order of `updated`.

    A key that `updated` does not contain follows the key that precedes it in `local`.
    """
    upstream_keys = {key: merged[key] for key in updated if key in merged}
    local_keys = {key: value for key, value in merged.items() if key not in upstream_keys}
    return list(interleave(upstream_keys, local_keys, local))


def order_like_local(merged: Mapping[K, Any], local: Iterable[K | None]) -> list[K | None]:
    """Return the keys of a merged list in the same order as kpt.

    The order is: None for each local element without a key, the keys of `local` that `merged` contains, and the other
    keys of `merged`.
    """
    local_keys = list(local)
    remaining_keys: list[K | None] = [key for key in local_keys if key is not None and key in merged]
    remaining_key_set = set(remaining_keys)
    return [None] * local_keys.count(None) + remaining_keys + [key for key in merged if key not in remaining_key_set]


# The value of each key field of an element, or "" for a field that the element does not contain.
_KeyValues = tuple[str, ...]


def merge_keyed_list_like_kpt(
    local: list[Any],
    origin: list[Any],
    updated: list[Any],
    fields: Sequence[str],
    merge: Callable[[Any, Any, Any], Any],
) -> list[Any]:
    """Merge lists element by element in the same way as kpt, and return the elements in the same order as kpt.

    Args:
        local: Elements of the local side. `origin` and `updated` are the elements of the other sides.
        fields: Names of the key fields.
        merge: Merges one element, and adds missing key fields. The arguments are the local, origin and updated values
            of the element. The result is ABSENT if no field remains.
    """
    result = list(local)
    identities = list(
        dict.fromkeys(_read_values(element, fields) for side in (local, origin, updated) for element in side)
    )
    if len(fields) > 1:
        identities = _fill_missing_values(identities)
    names_with_values = tuple(name for index, name in enumerate(fields) if any(values[index] for values in identities))
    key_fields = names_with_values or tuple(fields)
    changed: list[Any] = []
    for values in identities:
        pairs = [(name, value) for name, value in zip(fields, values, strict=True) if name in key_fields]
        pairs_with_value = [(name, value) for name, value in pairs if value]
        sides = [_find_element(side, pairs_with_value or pairs) for side in (result, origin, updated)]
        element = merge(*sides)
        if sides[0] is not ABSENT:
            replacement = {} if element is ABSENT else element
            result = [replacement if other is sides[0] else other for other in result]
        if element is ABSENT:
            result = _set_element(result, pairs, ABSENT)
        else:
            changed = _set_element(changed, pairs, element)
    return _apply_changed(result, changed, key_fields)


def _read_values(element: Any, fields: Sequence[str]) -> _KeyValues:
    return tuple(_format_value(element.get(name)) if isinstance(element, dict) else "" for name in fields)


def _format_value(value: Any) -> str:
    if value is None or isinstance(value, dict | list):
        return ""
    return value if isinstance(value, str) else format_non_string(value)


def _fill_missing_values(identities: list[_KeyValues]) -> list[_KeyValues]:
    """Fill in the missing key values of elements, e.g. ("80", "") and ("80", "TCP") become ("80", "TCP") twice.

    A missing key value is "". Two tuples identify the same element if at least one key value is equal, and if no key
    value is different. A missing value does not count as different.
    """
    filled = list(identities)
    for first in range(len(filled)):
        values = filled[first]
        for second, other_values in enumerate(filled):
            pairs = list(zip(values, other_values, strict=True))
            has_equal_value = any(value == other for value, other in pairs)
            if has_equal_value and all(value == other or not value or not other for value, other in pairs):
                filled[first] = filled[second] = tuple(value or other for value, other in pairs)
    return filled


def _find_element(elements: list[Any], pairs: Sequence[tuple[str, str]]) -> Any:
    return next((element for element in elements if isinstance(element, dict) and _has_values(element, pairs)), ABSENT)


def _has_values(element: dict[str, Any], pairs: Sequence[tuple[str, str]]) -> bool:
    return all(name in element and _format_value(element[name]) == value for name, value in pairs)


def _matches(element: dict[str, Any], pairs: Sequence[tuple[str, str]]) -> bool:
    """Return whether the element has these key values. The key value "" matches any value of an existing field."""
    return all(name in element and (not value or _format_value(element[name]) == value) for name, value in pairs)


def _set_element(elements: list[Any], pairs: Sequence[tuple[str, str]], element: Any) -> list[Any]:
    """Replace the elements with the key values in `pairs` by `element`. If there are none, append `element`.

    If `element` is ABSENT, remove the elements with these key values instead. Empty elements are always removed.
    """
    result: list[Any] = []
    has_match = False
    for existing in elements:
        if existing is None or existing == {} or not pairs:
            continue
        if not isinstance(existing, dict) or not _matches(existing, pairs):
            result.append(existing)
            continue
        has_match = True
        if element is not ABSENT:
            result.append(element)
    return result if has_match or element is ABSENT else [*result, element]


def _apply_changed(elements: list[Any], changed: list[Any], fields: Sequence[str]) -> list[Any]:
    """Return the list `elements` with the merged elements in `changed`.

    If there is one key field, a merged element replaces the element with the same key value. If there are several key
    fields, the element with the same key values is removed, and the merged element is appended to the list.
    """
    result = list(elements)
    for element in changed:
        values = [_format_value(element[name]) for name in fields if name in element]
        result += [element] * (len(fields) - len(values))
        pairs = list(zip(fields, values, strict=False))
        if len(fields) > 1:
            result = _set_element(result, pairs, ABSENT)
        result = _set_element(result, pairs, element)
    return result
