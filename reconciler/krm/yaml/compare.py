"""Comparison of YAML data: strict equality, and pairing of the items of two lists.

Types are compared too, because True == 1 and 1 == 1.0 in Python. In YAML, these are different values.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from typing import Any, TypeAlias


def is_equal_data(left: Any, right: Any) -> bool:
    """Return whether two values are the same YAML data, including their types. The order of keys is ignored."""
    if left is right:
        return True
    kind = left.__class__
    if kind is dict:
        return right.__class__ is dict and left.keys() == right.keys() and _have_equal_values(left, right)
    if kind is list:
        return right.__class__ is list and len(left) == len(right) and all(map(is_equal_data, left, right))
    if kind is float:
        # Compare the text of floats, because NaN != NaN and -0.0 == 0.0 in Python.
        return right.__class__ is float and repr(left) == repr(right)
    if isinstance(left, str):
        return isinstance(right, str) and left == right
    return right.__class__ is kind and bool(left == right)


def _have_equal_values(left: dict[str, Any], right: dict[str, Any]) -> bool:
    # Compare the identity (`is`) first, because it is fast, and edited data shares its unchanged values with the old
    # data.
    for key, value in left.items():
        other = right[key]
        if value is not other and not is_equal_data(value, other):
            return False
    return True


IndexPair: TypeAlias = tuple[int | None, int | None]

_MAX_COMPARISONS = 250_000

# Fields that often identify a list item in Kubernetes objects. The most specific field is first.
_IDENTITY_FIELDS = (
    "name",
    "key",
    "id",
    "mountPath",
    "devicePath",
    "containerPort",
    "port",
    "ip",
    "topologyKey",
    "type",
)


def align_items(old: Sequence[Any], new: Sequence[Any]) -> list[IndexPair]:
    """Pair the items of two versions of a list, so that comments and formatting can follow the items.

    Equal items are paired first, then items with the same identifying field such as `name`, then items at the same
    index.

    Returns:
        Pairs (old index, new index) in the order of the new list. The new index of a removed item is None, and the old
        index of an added item is None.
    """
    old_keys, new_keys = [compute_fingerprint(item) for item in old], [compute_fingerprint(item) for item in new]
    front = _count_equal_at_front(old_keys, new_keys)
    back = _count_equal_at_front(old_keys[front:][::-1], new_keys[front:][::-1])
    middle = range(front, len(old) - back), range(front, len(new) - back)
    return [
        *zip(range(front), range(front), strict=True),
        *_pair_equal_items(*middle, old_keys, new_keys, _create_pairing_by_identity(old, new)),
        *zip(range(middle[0].stop, len(old)), range(middle[1].stop, len(new)), strict=True),
    ]


def _count_equal_at_front(left: Sequence[Any], right: Sequence[Any]) -> int:
    differences = (index for index, (old, new) in enumerate(zip(left, right, strict=False)) if old != new)
    return next(differences, min(len(left), len(right)))


PairingFallback: TypeAlias = Callable[[range, range], Iterator[IndexPair]]
_Keys: TypeAlias = Sequence[Any] | Mapping[int, Any]


def _pair_equal_items(
    old: range, new: range, old_keys: _Keys, new_keys: _Keys, fallback: PairingFallback
) -> Iterator[IndexPair]:
    """Pair items with equal keys. The indexes of both lists increase from pair to pair.

    Call `fallback` to pair the remaining items: the items before, between and after these pairs.
    """
    left, right = [old_keys[i] for i in old], [new_keys[j] for j in new]
    common = (
        _pair_unique_keys(left, right) if len(old) * len(new) > _MAX_COMPARISONS else _pair_longest_blocks(left, right)
    )
    next_old, next_new = old.start, new.start
    for i, j in common:
        i, j = i + old.start, j + new.start
        yield from fallback(range(next_old, i), range(next_new, j))
        yield i, j
        next_old, next_new = i + 1, j + 1
    yield from fallback(range(next_old, old.stop), range(next_new, new.stop))


def _pair_longest_blocks(left: Sequence[Any], right: Sequence[Any]) -> Iterator[tuple[int, int]]:
    for i, j, size in SequenceMatcher(None, left, right, autojunk=False).get_matching_blocks():
        yield from zip(range(i, i + size), range(j, j + size), strict=True)


def _pair_unique_keys(left: Sequence[Any], right: Sequence[Any]) -> list[tuple[int, int]]:
    """Return pairs of indexes of equal items. The indexes of both lists increase from pair to pair.

    The number of pairs is the maximum for items that occur exactly once in each list. Other items are not paired. Use
    this function for thousands of items, because the search of difflib for equal blocks would take quadratic time.
    """
    indexes = {key: i for i, key in enumerate(left)}
    left_counts, right_counts = Counter(left), Counter(right)
    pairs = [(indexes[key], j) for j, key in enumerate(right) if left_counts[key] == right_counts[key] == 1]
    # Find the longest sequence of pairs with increasing left indexes. The right indexes increase in `pairs` already.
    # `ends[n]` is the index in `pairs` of the last pair of a sequence with n + 1 pairs. If there are several such
    # sequences, use the sequence that ends with the smallest left index, because the most pairs can follow it.
    ends: list[int] = []
    predecessors: list[int] = []
    for number, (i, _) in enumerate(pairs):
        length = bisect_left(ends, i, key=lambda end: pairs[end][0])
        predecessors.append(ends[length - 1] if length else -1)
        ends[length : length + 1] = [number]
    return [pairs[number] for number in _follow_predecessors(ends[-1] if ends else -1, predecessors)][::-1]


def _follow_predecessors(number: int, predecessors: Sequence[int]) -> Iterator[int]:
    while number >= 0:
        yield number
        number = predecessors[number]


def _create_pairing_by_identity(old: Sequence[Any], new: Sequence[Any]) -> PairingFallback:
    def pair(old_range: range, new_range: range) -> Iterator[IndexPair]:
        if not old_range or not new_range:
            return _pair_by_position(old_range, new_range)
        # Use a unique object as the key of an item without an identifying field, so that it equals no other key.
        old_keys = {i: _find_identity(old[i]) or object() for i in old_range}
        new_keys = {j: _find_identity(new[j]) or object() for j in new_range}
        return _pair_equal_items(old_range, new_range, old_keys, new_keys, _pair_by_position)

    return pair


def _pair_by_position(old: range, new: range) -> Iterator[IndexPair]:
    shared = min(len(old), len(new))
    yield from zip(old[:shared], new[:shared], strict=True)
    yield from ((i, None) for i in old[shared:])
    yield from ((None, j) for j in new[shared:])


def _find_identity(item: Any) -> tuple[str, str] | None:
    if isinstance(item, dict):
        for field in _IDENTITY_FIELDS:
            if isinstance(item.get(field), str | int):
                return field, repr(item[field])
    return None


def compute_fingerprint(item: Any) -> str:
    """Return a text that is the same for equal data and different for different data."""
    try:
        return json.dumps(item, sort_keys=True)
    except (TypeError, ValueError):
        # Return a unique text for a value that YAML does not support. The error is raised later, when the value is
        # written.
        return f"{id(item)}"
