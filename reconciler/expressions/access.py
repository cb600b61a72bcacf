"""Reading from a value: fields, elements, and through optionals."""

from __future__ import annotations

from typing import Any

from reconciler.expressions.budget import Budget
from reconciler.expressions.equality import find
from reconciler.expressions.errors import Fault
from reconciler.expressions.values import KEYS, MISSING, NONE, NUMBERS, Optional, key_text, number_text, type_name


def read_field(value: Any, name: str) -> Any:
    """`value.name`: an entry of a map; through an optional the result is an optional."""
    if type(value) is dict:
        found = value.get(name, MISSING)
        if found is MISSING:
            raise no_such_key(name)
        return found
    if type(value) is Optional:
        return read_optional_field(value, name)
    raise _no_fields(value, name)


def read_optional_field(value: Any, name: str) -> Optional:
    """`value.?name`: an optional of the entry, empty when there is no such key."""
    if type(value) is Optional:
        return read_optional_field(value.value, name) if value.present else NONE
    if type(value) is not dict:
        raise _no_fields(value, name)
    found = value.get(name, MISSING)
    return NONE if found is MISSING else Optional(present=True, value=found)


def has_field(value: Any, name: str) -> bool:
    """`has(value.name)`."""
    if type(value) is dict:
        return name in value
    return read_optional_field(value, name).present


def read_index(budget: Budget, value: Any, index: Any) -> Any:
    """`value[index]`: an element of a list or an entry of a map; through an optional the result is an optional."""
    kind = type(value)
    if kind is dict:
        found = find(budget, value, _key(index))
        if found is MISSING:
            raise no_such_key(index)
        return found
    if kind is list:
        position = _position(index)
        if 0 <= position < len(value):
            return value[position]
        raise Fault("CelIndex", f"index out of bounds: {number_text(position)}, the list has {len(value)}")
    if kind is Optional:
        return read_optional_index(budget, value, index)
    raise Fault("CelNoOverload", f"a value of type {type_name(value)} has no elements")


def read_optional_index(budget: Budget, value: Any, index: Any) -> Optional:
    """`value[?index]`: an optional of the element or entry, empty when there is none."""
    if type(value) is Optional:
        return read_optional_index(budget, value.value, index) if value.present else NONE
    try:
        return Optional(present=True, value=read_index(budget, value, index))
    except Fault as fault:
        if fault.code in ("CelIndex", "CelNoSuchKey"):
            return NONE
        raise


def no_such_key(key: Any) -> Fault:
    """Return the fault for a key that a map has not, worded as porch 11.3 quotes it."""
    shown = number_text(key) if type(key) in NUMBERS else key_text(key)
    return Fault("CelNoSuchKey", f"no such key: {shown if len(shown) <= 100 else shown[:100] + '…'}")


def _no_fields(value: Any, name: str) -> Fault:
    return Fault("CelNoOverload", f"a value of type {type_name(value)} has no field '{name}'")


def _key(index: Any) -> Any:
    if type(index) in KEYS or type(index) is float:
        return index
    raise Fault("CelNoOverload", f"a value of type {type_name(index)} is no key of a map")


def _position(index: Any) -> int:
    if type(index) in NUMBERS and index == index // 1:
        return int(index)
    raise Fault("CelNoOverload", f"a list is indexed by whole numbers, not by a value of type {type_name(index)}")
