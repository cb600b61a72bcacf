"""Equality of data that tells True from 1 and 1 from 1.0, as YAML does and Python does not."""

from __future__ import annotations

from typing import Any


def same(left: Any, right: Any) -> bool:
    """Tell whether two values would be written as the same data; the order of keys does not matter."""
    if left is right:
        return True
    kind = left.__class__
    if kind is dict:
        return right.__class__ is dict and left.keys() == right.keys() and _all_same(left, right)
    if kind is list:
        return right.__class__ is list and len(left) == len(right) and all(map(same, left, right))
    if kind is float:
        # repr, so that nan is nan and -0.0 is not 0.0
        return right.__class__ is float and repr(left) == repr(right)
    if isinstance(left, str):
        return isinstance(right, str) and left == right
    return right.__class__ is kind and bool(left == right)


def _all_same(left: dict[str, Any], right: dict[str, Any]) -> bool:
    # edited data shares all that was not edited: most values are one object, and not worth a call
    for key, value in left.items():
        other = right[key]
        if value is not other and not same(value, other):
            return False
    return True
