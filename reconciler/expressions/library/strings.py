"""The functions on strings. Positions count characters (code points) from 0."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from reconciler.caching import cached
from reconciler.expressions.budget import Budget
from reconciler.expressions.errors import Fault
from reconciler.expressions.library.format import format_text
from reconciler.expressions.library.signatures import INT, LIST, STRING, Functions, overload
from reconciler.expressions.values import type_name


def contains(budget: Budget, text: str, part: str) -> bool:
    """`text.contains(part)`."""
    budget.scan(len(text))
    return part in text


def starts_with(budget: Budget, text: str, part: str) -> bool:
    """`text.startsWith(part)`."""
    budget.scan(len(part))
    return text.startswith(part)


def ends_with(budget: Budget, text: str, part: str) -> bool:
    """`text.endsWith(part)`."""
    budget.scan(len(part))
    return text.endswith(part)


def matches(budget: Budget, text: str, pattern: str) -> bool:
    """`text.matches(pattern)`: does the RE2 pattern match somewhere in the text."""
    if pattern not in budget.patterns:
        budget.spend(_compile_cost(pattern))
        budget.patterns.add(pattern)
    search, size = _compiled(pattern)
    octets = text.encode("utf-8", "surrogatepass")
    # at worst RE2 follows every instruction of its program at every character
    budget.spend(1 + len(octets) * size // INSTRUCTIONS_PER_STEP)
    return search(octets) is not None


INSTRUCTIONS_PER_STEP: Final = 64
"""How many instructions of a compiled pattern are followed in one step."""

PATTERN_BYTES: Final = 1 << 19
"""The memory RE2 may take for one pattern; repetitions that need more are refused."""


def _compile_cost(pattern: str) -> int:
    """Return the steps for compiling a pattern: repetitions multiply, and Unicode classes have hundreds of ranges."""
    repeated = 3_000 if "{" in pattern else 0
    classes = 20_000 if "\\p" in pattern or "\\P" in pattern else 0
    return 100 * (1 + len(pattern)) + repeated + classes


@cached(32)
def _compiled(pattern: str) -> tuple[Callable[[bytes], object], int]:
    """Return the search function of a pattern and the length of its program."""
    import re2  # here, not above: loading it takes longer than most commands run

    options = re2.Options()
    options.max_mem = PATTERN_BYTES
    options.log_errors = False
    options.never_capture = True
    try:
        compiled = re2.compile(pattern.encode("utf-8", "surrogatepass"), options)
    except re2.error as error:
        reason = error.args[0] if error.args else ""
        detail = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
        raise Fault("CelRegex", f"the pattern is no RE2 regular expression: {detail}") from None
    return compiled.search, compiled.programsize


def char_at(budget: Budget, text: str, position: int) -> str:
    """`text.charAt(position)`; right behind the text it is ""."""
    _within(text, position)
    return text[position : position + 1]


def index_of(budget: Budget, text: str, part: str, start: int = 0) -> int:
    """`text.indexOf(part, start)`: the first place at or after start, -1 when there is none."""
    _within(text, start)
    budget.scan(len(text) - start)
    return text.find(part, start)


def last_index_of(budget: Budget, text: str, part: str, last: int | None = None) -> int:
    """`text.lastIndexOf(part, last)`: the last place at or before `last`, -1 when there is none."""
    if last is not None:
        _within(text, last)
    budget.scan(len(text))
    return text.rfind(part) if last is None else text.rfind(part, 0, last + len(part))


def substring(budget: Budget, text: str, start: int, end: int | None = None) -> str:
    """`text.substring(start, end)`, without the character at end."""
    stop = len(text) if end is None else end
    _within(text, start)
    _within(text, stop)
    if start > stop:
        raise Fault("CelIndex", f"substring() from {start} to {stop}: the start is behind the end")
    return budget.make_text(text[start:stop])


def _within(text: str, position: int) -> None:
    if not 0 <= position <= len(text):
        raise Fault("CelIndex", f"position {position} is outside of the string, which has {len(text)} characters")


_LOWER: Final = {ordinal: ordinal + 32 for ordinal in range(ord("A"), ord("Z") + 1)}
_UPPER: Final = {small: big for big, small in _LOWER.items()}


def lower_ascii(budget: Budget, text: str) -> str:
    """`text.lowerAscii()`: A to Z become small, nothing else changes."""
    budget.scan(8 * len(text))
    return budget.make_text(text.lower() if text.isascii() else text.translate(_LOWER))


def upper_ascii(budget: Budget, text: str) -> str:
    """`text.upperAscii()`: a to z become capitals, nothing else changes."""
    budget.scan(8 * len(text))
    return budget.make_text(text.upper() if text.isascii() else text.translate(_UPPER))


WHITE_SPACE: Final = (
    "\t\n\v\f\r \u0085\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)
"""The characters with Unicode's White_Space property; Python's strip() takes four more."""


def trim(budget: Budget, text: str) -> str:
    """`text.trim()`."""
    budget.scan(len(text))
    return budget.make_text(text.strip(WHITE_SPACE))


def reverse(budget: Budget, text: str) -> str:
    """`text.reverse()`."""
    return budget.make_text(text[::-1])


def replace(budget: Budget, text: str, part: str, by: str, limit: int = -1) -> str:
    """`text.replace(part, by, limit)`: the first `limit` places, all when it is negative."""
    budget.scan(len(text))
    found = text.count(part)
    places = found if limit < 0 else min(limit, found)
    budget.allocate(max(0, places * (len(by) - len(part))))  # before it is made: the text may grow a lot
    return budget.make_text(text.replace(part, by, places))


def split(budget: Budget, text: str, separator: str, limit: int = -1) -> list[str]:
    """`text.split(separator, limit)`: at most `limit` parts, all when it is negative; "" splits into characters."""
    budget.scan(len(text))
    if limit == 0:
        return []
    places = text.count(separator) if separator else max(0, len(text) - 1)
    cuts = places if limit < 0 else min(places, limit - 1)
    budget.make_list(cuts + 1)
    budget.allocate(4 * len(text))
    return text.split(separator, cuts) if separator else _characters(text, cuts)


def _characters(text: str, cuts: int) -> list[str]:
    return [*text[:cuts], text[cuts:]] if text else []


def join(budget: Budget, parts: list[Any], separator: str = "") -> str:
    """`list.join(separator)`, of a list of strings."""
    budget.spend(len(parts))
    for part in parts:
        if type(part) is not str:
            raise Fault("CelNoOverload", f"join() needs a list of strings, one element is of type {type_name(part)}")
    budget.allocate(sum(map(len, parts)) + len(separator) * max(0, len(parts) - 1))  # before it is made
    return budget.make_text(separator.join(parts))


def format_method(budget: Budget, template: str, arguments: list[Any]) -> str:
    """`template.format([...])`; see there."""
    return format_text(budget, template, arguments)


_QUOTED: Final = str.maketrans(
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


def quote(budget: Budget, text: str) -> str:
    """`strings.quote(text)`: in double quotes, what cannot be printed as an escape sequence."""
    budget.scan(8 * len(text))
    budget.allocate(2 * len(text))
    return budget.make_text(f'"{text.translate(_QUOTED)}"')


METHODS: Functions = {
    "contains": (overload(contains, STRING, STRING),),
    "startsWith": (overload(starts_with, STRING, STRING),),
    "endsWith": (overload(ends_with, STRING, STRING),),
    "matches": (overload(matches, STRING, STRING),),
    "charAt": (overload(char_at, STRING, INT),),
    "indexOf": (overload(index_of, STRING, STRING), overload(index_of, STRING, STRING, INT)),
    "lastIndexOf": (overload(last_index_of, STRING, STRING), overload(last_index_of, STRING, STRING, INT)),
    "substring": (overload(substring, STRING, INT), overload(substring, STRING, INT, INT)),
    "lowerAscii": (overload(lower_ascii, STRING),),
    "upperAscii": (overload(upper_ascii, STRING),),
    "trim": (overload(trim, STRING),),
    "reverse": (overload(reverse, STRING),),
    "replace": (overload(replace, STRING, STRING, STRING), overload(replace, STRING, STRING, STRING, INT)),
    "split": (overload(split, STRING, STRING), overload(split, STRING, STRING, INT)),
    "join": (overload(join, LIST), overload(join, LIST, STRING)),
    "format": (overload(format_method, STRING, LIST),),
}

FUNCTIONS: Functions = {
    "matches": (overload(matches, STRING, STRING),),
    "strings.quote": (overload(quote, STRING),),
}
