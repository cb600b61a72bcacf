"""Functions on strings, including `format`. A position is an index in characters (code points), from 0."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any, Final

from reconciler.cel.budget import ExpressionBudget
from reconciler.cel.errors import EvaluationError
from reconciler.cel.library.conversions import format_double
from reconciler.cel.library.signatures import INT, LIST, STRING, FunctionTable, create_overload
from reconciler.cel.operators import convert_to_double
from reconciler.cel.timestamps import Duration, Timestamp
from reconciler.cel.values import (
    MAX_VALUE_DEPTH,
    NUMBER_TYPES,
    CelType,
    Uint,
    check_int_range,
    create_too_deep_error,
    decode_map_key,
    get_type_name,
)
from reconciler.krm.numbers import format_count
from reconciler.memory import cached

_CLAUSE: Final = re.compile(r"%(?:\.([0-9]+))?(.?)", re.DOTALL)

MAX_PRECISION: Final = 1000
"""The maximum number of decimals that a clause of `format` can request, e.g. 2 in `%.2f`."""


def format_text(budget: ExpressionBudget, template: str, arguments: list[Any]) -> str:
    """Replace the clauses of a template by the arguments, in order. Additional arguments are ignored.

    The clauses are %s %d %f %e %b %o %x %X and %%, as in the CEL extension for strings.
    """
    budget.scan(8 * len(template))
    parts, position, argument_index = [], 0, 0
    for clause in _CLAUSE.finditer(template):
        parts.append(template[position : clause.start()])
        position = clause.end()
        if clause[0] == "%%":
            parts.append("%")
            continue
        if argument_index == len(arguments):
            raise EvaluationError(
                "CelArgument",
                f"format() has no argument for {clause[0]}, because the list has only"
                f" {format_count(len(arguments), 'element')}",
            )
        parts.append(_format_clause(budget, clause, arguments[argument_index]))
        argument_index += 1
    return budget.make_text("".join((*parts, template[position:])))


def _format_clause(budget: ExpressionBudget, clause: re.Match[str], value: Any) -> str:
    precision = int(clause[1]) if clause[1] and len(clause[1]) < 5 else MAX_PRECISION + 1 if clause[1] else 6
    if precision > MAX_PRECISION:
        raise EvaluationError("CelArgument", f"format() supports at most {MAX_PRECISION} decimals")
    if clause[2] not in _CLAUSE_FORMATS:
        raise EvaluationError("CelArgument", f"format() does not support {clause[0]}; write a percent sign as %%")
    budget.spend(4)
    return budget.make_text(_CLAUSE_FORMATS[clause[2]](budget, value, precision))


def _format_string(budget: ExpressionBudget, value: Any, precision: int) -> str:
    return format_value(budget, value, 0)


def format_value(budget: ExpressionBudget, value: Any, depth: int) -> str:
    """Format a value for the clause %s. The entries of a map are sorted by the text of their keys."""
    budget.spend(1)
    kind = type(value)
    if kind in _FORMATS:
        return budget.make_text(_FORMATS[kind](value))
    if kind not in (list, dict):
        raise EvaluationError("CelNoOverload", f"format() does not support values of type {get_type_name(value)}")
    if depth == MAX_VALUE_DEPTH:
        raise create_too_deep_error()
    if kind is list:
        return budget.make_text(f"[{', '.join([format_value(budget, part, depth + 1) for part in value])}]")
    entries = sorted(
        (format_value(budget, decode_map_key(key), depth + 1), format_value(budget, part, depth + 1))
        for key, part in value.items()
    )
    return budget.make_text(f"{{{', '.join(f'{key}: {part}' for key, part in entries)}}}")


def _format_double(number: float) -> str:
    return _format_non_finite(number) or format_double(number)


def _format_non_finite(number: float) -> str:
    if math.isfinite(number):
        return ""
    return "NaN" if math.isnan(number) else "Infinity" if number > 0 else "-Infinity"


_FORMATS: Final[dict[type, Callable[[Any], str]]] = {
    str: str,
    type(None): lambda _: "null",
    bool: lambda value: "true" if value else "false",
    int: lambda value: str(check_int_range(value)),
    Uint: str,
    float: _format_double,
    bytes: lambda value: value.decode("utf-8", "replace"),
    CelType: lambda value: value.name,
    Timestamp: str,
    Duration: str,
}


def _format_decimal(budget: ExpressionBudget, value: Any, precision: int) -> str:
    if type(value) is float:
        return _format_non_finite(value) or format_double(value)
    if type(value) in NUMBER_TYPES:
        return format_value(budget, value, 0)
    raise _create_argument_error("%d", "a number", value)


def _format_fixed(budget: ExpressionBudget, value: Any, precision: int) -> str:
    return _check_number("%f", value) or f"{convert_to_double(value):.{precision}f}"


def _format_scientific(budget: ExpressionBudget, value: Any, precision: int) -> str:
    return _check_number("%e", value) or f"{convert_to_double(value):.{precision}e}"


def _check_number(clause: str, value: Any) -> str:
    if type(value) not in NUMBER_TYPES:
        raise _create_argument_error(clause, "a number", value)
    return _format_non_finite(value) if type(value) is float else ""


def _format_binary(budget: ExpressionBudget, value: Any, precision: int) -> str:
    if type(value) in (int, Uint, bool):
        return f"{int(value):b}"
    raise _create_argument_error("%b", "an integer or bool", value)


def _format_octal(budget: ExpressionBudget, value: Any, precision: int) -> str:
    if type(value) in (int, Uint):
        return f"{value:o}"
    raise _create_argument_error("%o", "an integer", value)


def _format_hexadecimal(budget: ExpressionBudget, value: Any, precision: int) -> str:
    if type(value) in (int, Uint):
        return f"{value:x}"
    if type(value) is str:
        return value.encode("utf-8", "surrogatepass").hex()
    if type(value) is bytes:
        return value.hex()
    raise _create_argument_error("%x", "an integer, string or bytes", value)


def _format_upper_hexadecimal(budget: ExpressionBudget, value: Any, precision: int) -> str:
    return _format_hexadecimal(budget, value, precision).upper()


def _create_argument_error(clause: str, expected: str, value: Any) -> EvaluationError:
    return EvaluationError(
        "CelNoOverload", f"{clause} in format() requires {expected}, not a value of type {get_type_name(value)}"
    )


_CLAUSE_FORMATS: Final[dict[str, Callable[[ExpressionBudget, Any, int], str]]] = {
    "s": _format_string,
    "d": _format_decimal,
    "f": _format_fixed,
    "e": _format_scientific,
    "b": _format_binary,
    "o": _format_octal,
    "x": _format_hexadecimal,
    "X": _format_upper_hexadecimal,
}


def contains(budget: ExpressionBudget, text: str, part: str) -> bool:
    """Evaluate `text.contains(part)`."""
    budget.scan(len(text))
    return part in text


def starts_with(budget: ExpressionBudget, text: str, part: str) -> bool:
    """Evaluate `text.startsWith(part)`."""
    budget.scan(len(part))
    return text.startswith(part)


def ends_with(budget: ExpressionBudget, text: str, part: str) -> bool:
    """Evaluate `text.endsWith(part)`."""
    budget.scan(len(part))
    return text.endswith(part)


def matches(budget: ExpressionBudget, text: str, pattern: str) -> bool:
    """Evaluate `text.matches(pattern)`: whether the RE2 pattern matches any part of the text."""
    if pattern not in budget.patterns:
        budget.spend(_compile_cost(pattern))
        budget.patterns |= {pattern}
    search, size = _compile_pattern(pattern)
    octets = text.encode("utf-8", "surrogatepass")
    # Compute the cost of the worst case, in which RE2 runs every instruction of the pattern for every byte of the text.
    budget.spend(1 + len(octets) * size // INSTRUCTIONS_PER_STEP)
    return search(octets) is not None


INSTRUCTIONS_PER_STEP: Final = 64
"""The number of instructions of a compiled pattern that run in one step of the budget."""

MAX_PATTERN_BYTES: Final = 1 << 19
"""The maximum memory of one RE2 pattern, in bytes. A pattern that needs more memory is rejected."""


def _compile_cost(pattern: str) -> int:
    r"""Return the number of steps for compiling a pattern.

    Repetitions such as `{100}` and Unicode classes such as `\pL` cost more, because they expand to large programs.
    """
    repeated = 3_000 if "{" in pattern else 0
    classes = 20_000 if "\\p" in pattern or "\\P" in pattern else 0
    return 100 * (1 + len(pattern)) + repeated + classes


@cached(32)
def _compile_pattern(pattern: str) -> tuple[Callable[[bytes], object], int]:
    """Return the search function of a pattern, and the number of instructions of the compiled pattern."""
    # Import RE2 only when a pattern is compiled, because the import takes longer than most commands.
    import re2

    options = re2.Options()
    options.max_mem = MAX_PATTERN_BYTES
    options.log_errors = False
    options.never_capture = True
    try:
        compiled = re2.compile(pattern.encode("utf-8", "surrogatepass"), options)
    except re2.error as error:
        reason = error.args[0] if error.args else ""
        detail = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
        raise EvaluationError("CelRegex", f"the pattern is not an RE2 regular expression: {detail}") from None
    return compiled.search, compiled.programsize


def char_at(budget: ExpressionBudget, text: str, position: int) -> str:
    """Evaluate `text.charAt(position)`. The result is "" if `position` is the length of the text."""
    _check_position(text, position)
    return text[position : position + 1]


def index_of(budget: ExpressionBudget, text: str, part: str, start: int = 0) -> int:
    """Evaluate `text.indexOf(part, start)`: the first position of `part` that is not before `start`.

    The result is -1 if there is no such position.
    """
    _check_position(text, start)
    budget.scan(len(text) - start)
    return text.find(part, start)


def last_index_of(budget: ExpressionBudget, text: str, part: str, last: int | None = None) -> int:
    """Evaluate `text.lastIndexOf(part, last)`: the last position of `part` that is not after `last`.

    The result is -1 if there is no such position.
    """
    if last is not None:
        _check_position(text, last)
    budget.scan(len(text))
    return text.rfind(part) if last is None else text.rfind(part, 0, last + len(part))


def substring(budget: ExpressionBudget, text: str, start: int, end: int | None = None) -> str:
    """Evaluate `text.substring(start, end)`. The character at `end` is not included."""
    stop = len(text) if end is None else end
    _check_position(text, start)
    _check_position(text, stop)
    if start > stop:
        raise EvaluationError("CelIndex", f"substring() from {start} to {stop}: the start is after the end")
    return budget.make_text(text[start:stop])


def _check_position(text: str, position: int) -> None:
    if not 0 <= position <= len(text):
        length = format_count(len(text), "character")
        raise EvaluationError("CelIndex", f"position {position} is outside of the string, which has {length}")


_LOWER: Final = {ordinal: ordinal + 32 for ordinal in range(ord("A"), ord("Z") + 1)}
_UPPER: Final = {small: big for big, small in _LOWER.items()}


def lower_ascii(budget: ExpressionBudget, text: str) -> str:
    """Evaluate `text.lowerAscii()`. Only the letters A to Z are changed."""
    budget.scan(8 * len(text))
    return budget.make_text(text.lower() if text.isascii() else text.translate(_LOWER))


def upper_ascii(budget: ExpressionBudget, text: str) -> str:
    """Evaluate `text.upperAscii()`. Only the letters a to z are changed."""
    budget.scan(8 * len(text))
    return budget.make_text(text.upper() if text.isascii() else text.translate(_UPPER))


WHITE_SPACE: Final = (
    "\t\n\v\f\r \u0085\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)
"""The characters with the Unicode property White_Space. Python's strip() also removes four other characters."""


def trim(budget: ExpressionBudget, text: str) -> str:
    """Evaluate `text.trim()`: the text without white space at the start and at the end."""
    budget.scan(len(text))
    return budget.make_text(text.strip(WHITE_SPACE))


def reverse(budget: ExpressionBudget, text: str) -> str:
    """Evaluate `text.reverse()`: the characters in reverse order."""
    return budget.make_text(text[::-1])


def replace(budget: ExpressionBudget, text: str, part: str, by: str, limit: int = -1) -> str:
    """Evaluate `text.replace(part, by, limit)`.

    The first `limit` occurrences are replaced, or all occurrences if `limit` is negative.
    """
    budget.scan(len(text))
    count = text.count(part)
    replacement_count = count if limit < 0 else min(limit, count)
    # Subtract the size from the budget before the string is created, because the string can become very long.
    budget.allocate(max(0, replacement_count * (len(by) - len(part))))
    return budget.make_text(text.replace(part, by, replacement_count))


def split(budget: ExpressionBudget, text: str, separator: str, limit: int = -1) -> list[str]:
    """Evaluate `text.split(separator, limit)`: at most `limit` parts, or all parts if `limit` is negative.

    If the separator is "", each character is a part.
    """
    budget.scan(len(text))
    if limit == 0:
        return []
    separator_count = text.count(separator) if separator else max(0, len(text) - 1)
    cuts = separator_count if limit < 0 else min(separator_count, limit - 1)
    budget.make_list(cuts + 1)
    budget.allocate(4 * len(text))
    return text.split(separator, cuts) if separator else _split_characters(text, cuts)


def _split_characters(text: str, cuts: int) -> list[str]:
    return [*text[:cuts], text[cuts:]] if text else []


def join(budget: ExpressionBudget, parts: list[Any], separator: str = "") -> str:
    """Evaluate `list.join(separator)`. All elements of the list must be strings."""
    budget.spend(len(parts))
    for part in parts:
        if type(part) is not str:
            raise EvaluationError(
                "CelNoOverload", f"join() requires a list of strings, but one element has type {get_type_name(part)}"
            )
    # Subtract the size from the budget first, so that a string that exceeds the budget is not created.
    budget.allocate(sum(map(len, parts)) + len(separator) * max(0, len(parts) - 1))
    return budget.make_text(separator.join(parts))


def format_method(budget: ExpressionBudget, template: str, arguments: list[Any]) -> str:
    """Evaluate `template.format([...])`, e.g. `'%s-%d'.format(['a', 1])`."""
    return format_text(budget, template, arguments)


_ESCAPES: Final = str.maketrans(
    {
        "\a": "\\a",
        "\b": "\\b",
        "\f": "\\f",
        "\n": "\\n",
        "\r": "\\r",
        "\t": "\\t",
        "\v": "\\v",
        "\\": "\\\\",
        '"': '\\"',
    }
)


def quote(budget: ExpressionBudget, text: str) -> str:
    """Evaluate `strings.quote(text)`: the text in double quotes, with escape sequences for special characters."""
    budget.scan(8 * len(text))
    budget.allocate(2 * len(text))
    return budget.make_text(f'"{text.translate(_ESCAPES)}"')


METHODS: FunctionTable = {
    "contains": (create_overload(contains, STRING, STRING),),
    "startsWith": (create_overload(starts_with, STRING, STRING),),
    "endsWith": (create_overload(ends_with, STRING, STRING),),
    "matches": (create_overload(matches, STRING, STRING),),
    "charAt": (create_overload(char_at, STRING, INT),),
    "indexOf": (create_overload(index_of, STRING, STRING), create_overload(index_of, STRING, STRING, INT)),
    "lastIndexOf": (
        create_overload(last_index_of, STRING, STRING),
        create_overload(last_index_of, STRING, STRING, INT),
    ),
    "substring": (create_overload(substring, STRING, INT), create_overload(substring, STRING, INT, INT)),
    "lowerAscii": (create_overload(lower_ascii, STRING),),
    "upperAscii": (create_overload(upper_ascii, STRING),),
    "trim": (create_overload(trim, STRING),),
    "reverse": (create_overload(reverse, STRING),),
    "replace": (
        create_overload(replace, STRING, STRING, STRING),
        create_overload(replace, STRING, STRING, STRING, INT),
    ),
    "split": (create_overload(split, STRING, STRING), create_overload(split, STRING, STRING, INT)),
    "join": (create_overload(join, LIST), create_overload(join, LIST, STRING)),
    "format": (create_overload(format_method, STRING, LIST),),
}

FUNCTIONS: FunctionTable = {
    "matches": (create_overload(matches, STRING, STRING),),
    "strings.quote": (create_overload(quote, STRING),),
}
