"""`text.format([...])`: the clauses %s %d %f %e %b %o %x %X and %%, as the strings extension defines them."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any, Final

from reconciler.expressions.budget import Budget
from reconciler.expressions.equality import as_double
from reconciler.expressions.errors import Fault
from reconciler.expressions.library.conversions import double_text
from reconciler.expressions.timestamps import Duration, Timestamp
from reconciler.expressions.values import DEEPEST_VALUE, NUMBERS, Type, Uint, key_value, signed, too_deep, type_name

_CLAUSE: Final = re.compile(r"%(?:\.([0-9]+))?(.?)", re.DOTALL)

HIGHEST_PRECISION: Final = 1000
"""Decimals that a clause may ask for."""


def format_text(budget: Budget, template: str, arguments: list[Any]) -> str:
    """Return the template with its clauses replaced by the arguments, in order; arguments may be left over."""
    budget.scan(8 * len(template))
    parts, position, used = [], 0, 0
    for clause in _CLAUSE.finditer(template):
        parts.append(template[position : clause.start()])
        position = clause.end()
        if clause[0] == "%%":
            parts.append("%")
            continue
        if used == len(arguments):
            raise Fault("CelArgument", f"format() has no argument for {clause[0]}, only {len(arguments)} are given")
        parts.append(_clause(budget, clause, arguments[used]))
        used += 1
    return budget.make_text("".join((*parts, template[position:])))


def _clause(budget: Budget, clause: re.Match[str], value: Any) -> str:
    precision = int(clause[1]) if clause[1] and len(clause[1]) < 5 else HIGHEST_PRECISION + 1 if clause[1] else 6
    if precision > HIGHEST_PRECISION:
        raise Fault("CelArgument", f"format() cannot give more than {HIGHEST_PRECISION} decimals")
    if clause[2] not in _CLAUSES:
        raise Fault("CelArgument", f"format() does not know {clause[0]}; a percent sign itself is written %%")
    budget.spend(4)
    return budget.make_text(_CLAUSES[clause[2]](budget, value, precision))


def _string(budget: Budget, value: Any, precision: int) -> str:
    return shown(budget, value, 0)


def shown(budget: Budget, value: Any, depth: int) -> str:
    """Return a value as %s shows it; lists and maps with their parts, maps in the order of their keys' texts."""
    budget.spend(1)
    kind = type(value)
    if kind in _SHOWN:
        return budget.make_text(_SHOWN[kind](value))
    if kind not in (list, dict):
        raise Fault("CelNoOverload", f"format() cannot show a value of type {type_name(value)}")
    if depth == DEEPEST_VALUE:
        raise too_deep()
    if kind is list:
        return budget.make_text(f"[{', '.join([shown(budget, part, depth + 1) for part in value])}]")
    entries = sorted(
        (shown(budget, key_value(key), depth + 1), shown(budget, part, depth + 1)) for key, part in value.items()
    )
    return budget.make_text(f"{{{', '.join(f'{key}: {part}' for key, part in entries)}}}")


def _double(number: float) -> str:
    return _special(number) or double_text(number)


def _special(number: float) -> str:
    if math.isfinite(number):
        return ""
    return "NaN" if math.isnan(number) else "Infinity" if number > 0 else "-Infinity"


_SHOWN: Final[dict[type, Callable[[Any], str]]] = {
    str: str,
    type(None): lambda _: "null",
    bool: lambda value: "true" if value else "false",
    int: lambda value: str(signed(value)),
    Uint: str,
    float: _double,
    bytes: lambda value: value.decode("utf-8", "replace"),
    Type: lambda value: value.name,
    Timestamp: str,
    Duration: str,
}


def _decimal(budget: Budget, value: Any, precision: int) -> str:
    if type(value) is float:
        return _special(value) or double_text(value)
    if type(value) in NUMBERS:
        return shown(budget, value, 0)
    raise _wrong("%d", "a number", value)


def _fixed(budget: Budget, value: Any, precision: int) -> str:
    return _number("%f", value) or f"{as_double(value):.{precision}f}"


def _scientific(budget: Budget, value: Any, precision: int) -> str:
    return _number("%e", value) or f"{as_double(value):.{precision}e}"


def _number(clause: str, value: Any) -> str:
    if type(value) not in NUMBERS:
        raise _wrong(clause, "a number", value)
    return _special(value) if type(value) is float else ""


def _binary(budget: Budget, value: Any, precision: int) -> str:
    if type(value) in (int, Uint, bool):
        return f"{int(value):b}"
    raise _wrong("%b", "an integer or bool", value)


def _octal(budget: Budget, value: Any, precision: int) -> str:
    if type(value) in (int, Uint):
        return f"{value:o}"
    raise _wrong("%o", "an integer", value)


def _hexadecimal(budget: Budget, value: Any, precision: int) -> str:
    if type(value) in (int, Uint):
        return f"{value:x}"
    if type(value) is str:
        return value.encode("utf-8", "surrogatepass").hex()
    if type(value) is bytes:
        return value.hex()
    raise _wrong("%x", "an integer, string or bytes", value)


def _upper_hexadecimal(budget: Budget, value: Any, precision: int) -> str:
    return _hexadecimal(budget, value, precision).upper()


def _wrong(clause: str, needed: str, value: Any) -> Fault:
    return Fault("CelNoOverload", f"{clause} in format() needs {needed}, not a value of type {type_name(value)}")


_CLAUSES: Final[dict[str, Callable[[Budget, Any, int], str]]] = {
    "s": _string,
    "d": _decimal,
    "f": _fixed,
    "e": _scientific,
    "b": _binary,
    "o": _octal,
    "x": _hexadecimal,
    "X": _upper_hexadecimal,
}
