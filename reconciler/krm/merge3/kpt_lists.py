"""Lists with merge keys as kpt puts them together, with all that follows from elements that lack keys (kpt.md 7.4).

Step by step what kpt does, since the order of elements comes of the steps: nothing here is a rule of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from reconciler.krm.conflicts import ABSENT
from reconciler.krm.yaml.scalar import other_text

# what an element has for each key, "" for nothing
_Values = tuple[str, ...]


def merge_keyed_list(
    local: list[Any],
    origin: list[Any],
    updated: list[Any],
    fields: Sequence[str],
    merge: Callable[[Any, Any, Any], Any],
) -> list[Any]:
    """Return the elements after a merge, in kpt's order; `merge` gets local, origin and updated of one element."""
    result = list(local)
    wanted = _distinct([_values(each, fields) for side in (local, origin, updated) for each in side])
    if len(fields) > 1:
        wanted = _completed(wanted)
    used = tuple(name for index, name in enumerate(fields) if any(each[index] for each in wanted)) or tuple(fields)
    changed: list[Any] = []
    for each in wanted:
        pairs = [(name, value) for name, value in zip(fields, each, strict=True) if name in used]
        known = [(name, value) for name, value in pairs if value]
        sides = [_first(side, known or pairs) for side in (result, origin, updated)]
        element = _with_keys(merge(*sides), known, sides)
        if sides[0] is not ABSENT:
            result = [({} if element is ABSENT else element) if other is sides[0] else other for other in result]
        if element is ABSENT:
            result = _set(result, pairs, ABSENT)
        else:
            changed = _set(changed, pairs, element)
    return _appended(result, changed, used) if wanted else result


def _with_keys(merged: Any, known: Sequence[tuple[str, str]], sides: Sequence[Any]) -> Any:
    """Return the merged element with the keys by which it was found; ABSENT for one of which nothing is left."""
    if merged is ABSENT or merged is None or merged == {}:
        return ABSENT
    return merged | {name: _kept(name, value, sides) for name, value in known if name not in merged}


def _values(element: Any, fields: Sequence[str]) -> _Values:
    return tuple(_text(element.get(name)) if isinstance(element, dict) else "" for name in fields)


def _text(value: Any) -> str:
    if value is None or isinstance(value, dict | list):
        return ""
    return value if isinstance(value, str) else other_text(value)


def _distinct(wanted: list[_Values]) -> list[_Values]:
    return list(dict.fromkeys(wanted))


def _completed(wanted: list[_Values]) -> list[_Values]:
    """Return the values with those that lack some taken for others which have them, as far as both agree."""
    found = list(wanted)
    for first in range(len(found)):
        mine = found[first]
        for second, other in enumerate(found):
            shared = any(one == two for one, two in zip(mine, other, strict=True))
            if shared and all(one == two or not one or not two for one, two in zip(mine, other, strict=True)):
                found[first] = found[second] = tuple(one or two for one, two in zip(mine, other, strict=True))
    return found


def _first(elements: list[Any], pairs: Sequence[tuple[str, str]]) -> Any:
    return next((each for each in elements if isinstance(each, dict) and _is(each, pairs)), ABSENT)


def _is(element: dict[str, Any], pairs: Sequence[tuple[str, str]]) -> bool:
    return all(name in element and _text(element[name]) == value for name, value in pairs)


def _has(element: dict[str, Any], pairs: Sequence[tuple[str, str]]) -> bool:
    """Tell whether the element has these values, "" being any."""
    return all(name in element and (not value or _text(element[name]) == value) for name, value in pairs)


def _kept(name: str, value: str, sides: Sequence[Any]) -> Any:
    """Return the key's value as a side has it, rather than as text."""
    return next((side[name] for side in sides if side is not ABSENT and name in side), value)


def _set(elements: list[Any], pairs: Sequence[tuple[str, str]], element: Any) -> list[Any]:
    """Return the elements with this one for all that these keys mean, behind all others if they mean none.

    ABSENT removes them; empty elements go in passing.
    """
    result: list[Any] = []
    is_found = False
    for each in elements:
        if each is None or each == {}:
            continue
        if not pairs:
            continue
        if not isinstance(each, dict) or not _has(each, pairs):
            result.append(each)
            continue
        is_found = True
        if element is not ABSENT:
            result.append(element)
    return result if is_found or element is ABSENT else [*result, element]


def _appended(elements: list[Any], changed: list[Any], fields: Sequence[str]) -> list[Any]:
    """Return the elements with the changed ones in their places or, where there are several keys, behind them."""
    result = list(elements)
    for each in changed:
        present = [_text(each[name]) for name in fields if name in each]
        result += [each] * (len(fields) - len(present))
        pairs = list(zip(fields, present, strict=False))
        if len(fields) > 1:
            result = _set(result, pairs, ABSENT)
        result = _set(result, pairs, each)
    return result
