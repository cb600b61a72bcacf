"""Which function of one pipeline is which of another: by name, else by image, the most alike first (kpt.md D23)."""

from __future__ import annotations

import re
from collections.abc import Container, Mapping, Sequence
from itertools import count
from typing import Any, TypeAlias

from reconciler.krm.yaml.align import Pair, align

Function: TypeAlias = Mapping[str, Any]
Numbered: TypeAlias = dict[int, Function]

# porch.md 8.2: PackageVariant.<variant>.<function, or nothing>.<index>
_OF_A_VARIANT = re.compile(r"PackageVariant\..+\.[^.]*\.[0-9]+")
# beyond this many pairs of one image in one list, order alone tells them apart
_MOST_COMPARISONS = 10_000


def numbered(
    origin: Sequence[Function], updated: Sequence[Function], local: Sequence[Function]
) -> tuple[Numbered, Numbered, Numbered]:
    """Return the three lists by number, each in its own order; the same function has the same number everywhere."""
    free = count(len(origin))
    known = {side: pair_functions(origin, functions) for side, functions in (("up", updated), ("here", local))}
    here = [known["here"][index] if index in known["here"] else next(free) for index in range(len(local))]
    new = [index for index in range(len(updated)) if index not in known["up"]]
    own = [index for index in range(len(local)) if index not in known["here"]]
    both = pair_functions([local[index] for index in own], [updated[index] for index in new])
    added = {index: here[own[both[at]]] if at in both else next(free) for at, index in enumerate(new)}
    up = [known["up"][index] if index in known["up"] else added[index] for index in range(len(updated))]
    return dict(enumerate(origin)), dict(zip(up, updated, strict=True)), dict(zip(here, local, strict=True))


def aligned_functions(before: Sequence[Any], after: Sequence[Any]) -> list[Pair]:
    """Return the pairs of two lists, functions as `pair_functions` tells, anything else as `align` does."""
    if not all(isinstance(entry, Mapping) and ("image" in entry or "exec" in entry) for entry in (*before, *after)):
        return align(before, after)
    pairs = pair_functions(before, after)
    return [(pairs.get(index), index) for index in range(len(after))]


def pair_functions(before: Sequence[Function], after: Sequence[Function]) -> dict[int, int]:
    """Return, by its index in `after`, the index that each function had in `before`.

    The first function of a name is told by that name. The others are told by their image without registry, tag and
    digest, or by their command: of several, the most alike are paired first, then by their order. A function may get or
    lose a name; two different names are two functions, and what a variant put there is told by its name alone.
    """
    old, new = _first_of_name(before), _first_of_name(after)
    pairs = {index: old[name] for name, index in new.items() if name in old}
    taken = set(pairs.values())
    lefts, rights = _by_base(before, taken), _by_base(after, pairs)
    for base, candidates in rights.items():
        pairs |= _most_alike(before, after, lefts.get(base, []), candidates)
    return pairs


def is_of_a_variant(function: Function) -> bool:
    """Tell whether a PackageVariant put the function there, whichever (porch.md 8.2)."""
    return _OF_A_VARIANT.fullmatch(_text(function.get("name"))) is not None


def base_name(function: Function) -> tuple[str, str]:
    """Return what a function is called for: ("image", its last segment) or ("exec", the command's first word)."""
    if image := _text(function.get("image")):
        return "image", image.partition("@")[0].rpartition("/")[2].partition(":")[0]
    words = _text(function.get("exec")).split(maxsplit=1)
    return "exec", words[0] if words else ""


def _first_of_name(functions: Sequence[Function]) -> dict[str, int]:
    names: dict[str, int] = {}
    for index, function in enumerate(functions):
        if name := _text(function.get("name")):
            names.setdefault(name, index)
    return names


def _by_base(functions: Sequence[Function], told: Container[int]) -> dict[tuple[str, str], list[int]]:
    groups: dict[tuple[str, str], list[int]] = {}
    for index, function in enumerate(functions):
        if index not in told and not is_of_a_variant(function):
            groups.setdefault(base_name(function), []).append(index)
    return groups


def _most_alike(
    before: Sequence[Function], after: Sequence[Function], lefts: list[int], rights: list[int]
) -> dict[int, int]:
    if len(lefts) * len(rights) > _MOST_COMPARISONS:
        possible = [(right, left) for left, right in zip(lefts, rights, strict=False)]
        return {right: left for right, left in possible if _may_be_one(before[left], after[right])}
    old, new = {left: _facts(before[left]) for left in lefts}, {right: _facts(after[right]) for right in rights}
    ranked = sorted(
        (-_likeness(old[left], new[right]), abs(ordinal - number), left, right)
        for ordinal, left in enumerate(lefts)
        for number, right in enumerate(rights)
        if _may_be_one(before[left], after[right])
    )
    pairs: dict[int, int] = {}
    for _, _, left, right in ranked:
        if right not in pairs and left not in pairs.values():
            pairs[right] = left
    return pairs


def _may_be_one(left: Function, right: Function) -> bool:
    names = _text(left.get("name")), _text(right.get("name"))
    return "" in names or names[0] == names[1]


def _facts(function: Function) -> frozenset[tuple[str, ...]]:
    """Return what a function says, in small pieces: its fields, and the entries of its configuration one by one."""
    facts: set[tuple[str, ...]] = set()
    for field, value in function.items():
        entries = value.items() if isinstance(value, Mapping) else [("", value)]
        for key, entry in entries:
            facts |= {(field, str(key)), (field, str(key), repr(entry))}
    return frozenset(facts)


def _likeness(left: frozenset[tuple[str, ...]], right: frozenset[tuple[str, ...]]) -> float:
    return len(left & right) / (len(left | right) or 1)


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
