"""The limits of all function calls in one render, and the budget that counts what the calls have used.

Functions subtract steps and bytes from the budget before they allocate memory. The budget does not measure time, so
that the result is the same on every machine. Scripts also have a limit of CPU time, because the steps inside the
built-in functions of the script interpreter cannot be counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import isfinite
from typing import Any

from reconciler.lazy_dataclasses import dataclass

# The estimated bytes that YAML adds to each scalar or key, such as quotes, a colon, a dash and a line break.
_NODE_BYTES = 8
_MAX_QUOTED_CHARACTERS = 60
# The maximum nesting depth that the YAML parser and writer support.
MAX_LEVELS = 100
# The number of characters that a function can compare, search or copy in one step.
_CHARACTERS_PER_STEP = 64
# The number of steps that parsing one character of YAML takes.
_STEPS_PER_PARSED_CHARACTER = 2


@dataclass(frozen=True)
class FunctionLimits:
    """The limits of the built-in functions, from the settings group `limits.functions`.

    Attributes:
        steps: Maximum steps of all function calls in one render. A step takes about one microsecond.
        output_bytes: Maximum bytes of text that all function calls in one render create.
        placeholders: Maximum placeholders in one pattern.
        cpu_seconds: Maximum CPU time of one script call.
        memory_bytes: Maximum memory of one script call.
    """

    steps: int = 20_000_000
    output_bytes: int = 16 * 1024 * 1024
    placeholders: int = 100
    cpu_seconds: int = 10
    memory_bytes: int = 512 * 1024 * 1024


DEFAULT_LIMITS = FunctionLimits()


class LimitError(ValueError):
    """A function exceeds a limit. The message contains the limit, its setting and the next step."""


class FunctionBudget:
    """The steps and bytes that functions can still use in one render. Subtract from the budget before allocating
    memory.
    """

    __slots__ = ("limits", "remaining_bytes", "remaining_steps")

    def __init__(self, limits: FunctionLimits = DEFAULT_LIMITS) -> None:
        self.limits = limits
        self.remaining_steps = limits.steps
        self.remaining_bytes = limits.output_bytes

    def charge_steps(self, steps: int) -> None:
        """Subtract `steps` from the budget.

        Raises:
            LimitError: Fewer steps remain.
        """
        self.remaining_steps -= steps
        if self.remaining_steps < 0:
            raise LimitError(
                f"the functions of a package must not take more than {self.limits.steps:,} steps in one render. Next "
                "step: use fewer or simpler functions, or raise the setting `limits.functions.steps`"
            )

    def charge_scan(self, characters: int) -> None:
        """Subtract the steps that reading this number of characters takes.

        Raises:
            LimitError: Fewer steps remain.
        """
        self.charge_steps(1 + characters // _CHARACTERS_PER_STEP)

    def charge_parse(self, characters: int) -> None:
        """Subtract the steps that parsing a YAML text of this number of characters takes.

        Raises:
            LimitError: Fewer steps remain.
        """
        self.charge_steps(1 + characters * _STEPS_PER_PARSED_CHARACTER)

    def charge_output(self, size: int, value_name: str = "this value", value: str = "") -> None:
        """Subtract `size` bytes for a new value from the budget.

        Args:
            size: The bytes of the new value.
            value_name: The name of the new value for the error message.
            value: The text from which the new value is created, for the error message.

        Raises:
            LimitError: Fewer bytes remain.
        """
        self.remaining_bytes -= size
        if self.remaining_bytes < 0:
            source = f" (created from {quote_shortened(value)})" if value else ""
            raise LimitError(
                f"{value_name}{source} takes {size:,} bytes. With it, the functions of the package create more than "
                f"{self.limits.output_bytes:,} bytes in one render. Next step: shorten the values, or raise the"
                " setting "
                "`limits.functions.output_bytes`"
            )

    def require_few_placeholders(self, placeholders: int, pattern_name: str, pattern: str) -> None:
        """Raise LimitError if a pattern has too many placeholders or regular expression groups."""
        if placeholders > self.limits.placeholders:
            raise LimitError(
                f"{pattern_name} {quote_shortened(pattern)} has {placeholders:,} placeholders, but must not "
                f"have more than {self.limits.placeholders:,}. Next step: use fewer placeholders, or raise the setting "
                "`limits.functions.placeholders`"
            )


def quote_shortened(text: str) -> str:
    """Return the text in double quotes for a message. A long text is truncated."""
    return f'"{text}"' if len(text) <= _MAX_QUOTED_CHARACTERS else f'"{text[:_MAX_QUOTED_CHARACTERS]}…"'


def estimate_text_bytes(text: str, depth: int = 0) -> int:
    """Return the maximum UTF-8 size of a text in YAML. Each line of the text is indented by the nesting depth."""
    size = len(text) if text.isascii() else 4 * len(text)
    return size + 2 * depth * text.count("\n")


def estimate_value_bytes(value: Any, depth: int = 0) -> int:
    """Return the approximate size of `value` in YAML at this nesting depth. The YAML text is not created."""
    total, level, indent = 0, [value], depth
    while level:
        total += (_NODE_BYTES + 2 * indent) * len(level)
        for node in level:
            if isinstance(node, str):
                total += estimate_text_bytes(node, indent)
            elif isinstance(node, dict):
                total += sum(estimate_text_bytes(key) for key in node if isinstance(key, str))
        level = [child for node in level for child in _list_children(node)]
        indent += 1
    return total


def find_depth_error(value: Any, depth: int = 0) -> str:
    """Return an error message if `value` cannot be written at `depth`, because it has too many levels. Otherwise ""."""
    level = [value]
    for _ in range(MAX_LEVELS + 1 - depth):
        level = [child for node in level for child in _list_children(node)]
        if not level:
            return ""
    return f"fields must not be nested more than {MAX_LEVELS} levels deep"


def _list_children(node: Any) -> Iterable[Any]:
    return node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()


def find_items_error(returned: Any) -> str:
    """Return an error message if the items that a function returned cannot be written to files. Return "" otherwise."""
    entries = returned.get("items") if isinstance(returned, Mapping) else None
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        return "the function must return a resource list whose items are mappings"
    return _find_entries_error(entries)


def _find_entries_error(entries: list[Any]) -> str:
    level: list[Any] = entries
    for _ in range(MAX_LEVELS):
        inner: list[Any] = []
        is_finite = True
        for value in level:
            if isinstance(value, dict):
                if not all(isinstance(key, str) for key in value):
                    return "the keys of returned mappings must be strings"
                inner += value.values()
            elif isinstance(value, list):
                inner += value
            elif isinstance(value, float):
                is_finite = is_finite and isfinite(value)
        if not is_finite:
            return "returned numbers must be finite"
        level = inner
    return f"returned items must not be nested more than {MAX_LEVELS} levels deep" if level else ""
