"""Aligning the items of two lists, so that comments and formatting stay with the item they were written for."""

from __future__ import annotations

import json
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from typing import Any, TypeAlias

Pair: TypeAlias = tuple[int | None, int | None]

_LARGE = 250_000

# what tells list items apart in Kubernetes objects, the most telling first
_IDENTITIES = ("name", "key", "id", "mountPath", "devicePath", "containerPort", "port", "ip", "topologyKey", "type")


def align(old: Sequence[Any], new: Sequence[Any]) -> list[Pair]:
    """Return (old index or None, new index or None) in the order of the new list; None is an added or removed item.

    Equal items meet first, then those of the same name, then those at the same position.
    """
    old_keys, new_keys = [fingerprint(item) for item in old], [fingerprint(item) for item in new]
    front = _shared_front(old_keys, new_keys)
    back = _shared_front(old_keys[front:][::-1], new_keys[front:][::-1])
    middle = range(front, len(old) - back), range(front, len(new) - back)
    return [
        *zip(range(front), range(front), strict=True),
        *_matched(*middle, old_keys, new_keys, _by_identity(old, new)),
        *zip(range(middle[0].stop, len(old)), range(middle[1].stop, len(new)), strict=True),
    ]


def _shared_front(left: Sequence[Any], right: Sequence[Any]) -> int:
    differences = (index for index, (one, other) in enumerate(zip(left, right, strict=False)) if one != other)
    return next(differences, min(len(left), len(right)))


Fallback: TypeAlias = Callable[[range, range], Iterator[Pair]]
_Keys: TypeAlias = Sequence[Any] | Mapping[int, Any]


def _matched(old: range, new: range, old_keys: _Keys, new_keys: _Keys, fallback: Fallback) -> Iterator[Pair]:
    """Pair items whose keys are equal, in order; hand what lies between the pairs to `fallback`."""
    left, right = [old_keys[i] for i in old], [new_keys[j] for j in new]
    common = _unique_in_order(left, right) if len(old) * len(new) > _LARGE else _longest_blocks(left, right)
    done_old, done_new = old.start, new.start
    for i, j in common:
        i, j = i + old.start, j + new.start
        yield from fallback(range(done_old, i), range(done_new, j))
        yield i, j
        done_old, done_new = i + 1, j + 1
    yield from fallback(range(done_old, old.stop), range(done_new, new.stop))


def _longest_blocks(left: Sequence[Any], right: Sequence[Any]) -> Iterator[tuple[int, int]]:
    for i, j, size in SequenceMatcher(None, left, right, autojunk=False).get_matching_blocks():
        yield from zip(range(i, i + size), range(j, j + size), strict=True)


def _unique_in_order(left: Sequence[Any], right: Sequence[Any]) -> list[tuple[int, int]]:
    """Return the most pairs in order of keys that stand once on both sides.

    For thousands of items, where time for the longest blocks would grow with the square of their number.
    """
    places = {key: i for i, key in enumerate(left)}
    once, again = Counter(left), Counter(right)
    pairs = [(places[key], j) for j, key in enumerate(right) if once[key] == again[key] == 1]
    # by the length of a rising run: the pair that ends it, of several the one that leaves most room behind it
    ends: list[int] = []
    before: list[int] = []
    for number, (i, _) in enumerate(pairs):
        length = bisect_left(ends, i, key=lambda end: pairs[end][0])
        before.append(ends[length - 1] if length else -1)
        ends[length : length + 1] = [number]
    return [pairs[number] for number in _walked(ends[-1] if ends else -1, before)][::-1]


def _walked(number: int, before: Sequence[int]) -> Iterator[int]:
    while number >= 0:
        yield number
        number = before[number]


def _by_identity(old: Sequence[Any], new: Sequence[Any]) -> Fallback:
    def pair(old_range: range, new_range: range) -> Iterator[Pair]:
        if not old_range or not new_range:
            return _by_position(old_range, new_range)
        # an item without identity gets a key that equals nothing
        old_keys = {i: _identity(old[i]) or object() for i in old_range}
        new_keys = {j: _identity(new[j]) or object() for j in new_range}
        return _matched(old_range, new_range, old_keys, new_keys, _by_position)

    return pair


def _by_position(old: range, new: range) -> Iterator[Pair]:
    shared = min(len(old), len(new))
    yield from zip(old[:shared], new[:shared], strict=True)
    yield from ((i, None) for i in old[shared:])
    yield from ((None, j) for j in new[shared:])


def _identity(item: Any) -> tuple[str, str] | None:
    if isinstance(item, dict):
        for field in _IDENTITIES:
            if isinstance(item.get(field), str | int):
                return field, repr(item[field])
    return None


def fingerprint(item: Any) -> str:
    """Return a text that two items share only if they are the same data."""
    try:
        return json.dumps(item, sort_keys=True)
    except (TypeError, ValueError):
        # not YAML data; the writer will say so
        return f"{id(item)}"
