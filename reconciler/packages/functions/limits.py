"""Limits of function calls in one render, and the budget that functions charge before they allocate memory.

Steps and bytes are counted and time is not measured, so that the result is the same on every machine. Only scripts have
a limit in seconds of CPU time, because the interpreter cannot count the work of its built-in functions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Any

# Bytes of a scalar or key in addition to its text: quotes, a colon, a dash, a line break.
_NODE_BYTES = 8
_MAX_QUOTED_CHARACTERS = 60
# The nesting limit of the YAML parser and writer.
MAX_LEVELS = 100
# Characters that are compared, searched or copied in one step.
_CHARACTERS_PER_STEP = 64
# Steps to parse one character of YAML.
_STEPS_PER_PARSED_CHARACTER = 2


@dataclass(frozen=True)
class FunctionLimits:
    """Limits of the built-in functions (settings group `limits.functions`).

    `steps` (about one microsecond each) and `output_bytes` (the text that functions create) are totals for all calls of
    one render. `placeholders` is the limit of one pattern. `cpu_seconds` and `memory_bytes` are limits of one script
    call.
    """

    steps: int = 20_000_000
    output_bytes: int = 16 * 1024 * 1024
    placeholders: int = 100
    cpu_seconds: int = 10
    memory_bytes: int = 512 * 1024 * 1024


DEFAULT_LIMITS = FunctionLimits()


class LimitError(ValueError):
    """A call exceeds a limit. The message contains the limit, its setting and the next step."""


class FunctionBudget:
    """The remaining steps and bytes of one render. Functions charge before they allocate."""

    __slots__ = ("limits", "remaining_bytes", "remaining_steps")

    def __init__(self, limits: FunctionLimits = DEFAULT_LIMITS) -> None:
        self.limits = limits
        self.remaining_steps = limits.steps
        self.remaining_bytes = limits.output_bytes

    def charge_steps(self, steps: int) -> None:
        """Charge `steps`. Raises LimitError if fewer steps remain."""
        self.remaining_steps -= steps
        if self.remaining_steps < 0:
            raise LimitError(
                f"the functions of a package must not take more than {self.limits.steps:,} steps in one render: "
                "use fewer or simpler functions, or raise the setting limits.functions.steps"
            )

    def charge_scan(self, characters: int) -> None:
        """Charge the steps to read this number of characters once. Raises LimitError."""
        self.charge_steps(1 + characters // _CHARACTERS_PER_STEP)

    def charge_parse(self, characters: int) -> None:
        """Charge the steps to parse a YAML text of this number of characters once. Raises LimitError."""
        self.charge_steps(1 + characters * _STEPS_PER_PARSED_CHARACTER)

    def charge_output(self, size: int, value_name: str = "this value", value: str = "") -> None:
        """Charge `size` bytes for a new value. Raises LimitError if fewer bytes remain.

        Args:
            value_name: The name of the new value in the error message.
            value: The text from which the value is created, for the error message.
        """
        self.remaining_bytes -= size
        if self.remaining_bytes < 0:
            source = f" (created from {quote_shortened(value)})" if value else ""
            raise LimitError(
                f"{value_name}{source} takes {size:,} bytes, and the functions of a package must not create more than "
                f"{self.limits.output_bytes:,} bytes in one render: shorten the values, or raise the setting "
                "limits.functions.output_bytes"
            )

    def require_few_placeholders(self, placeholders: int, pattern_name: str, pattern: str) -> None:
        """Raise LimitError if a pattern has too many placeholders or groups."""
        if placeholders > self.limits.placeholders:
            raise LimitError(
                f"{pattern_name} {quote_shortened(pattern)} has {placeholders:,} placeholders and must not have more"
                f" than {self.limits.placeholders:,}: split it, or raise the setting limits.functions.placeholders"
            )


def quote_shortened(text: str) -> str:
    """Return text in double quotes, shortened for a message."""
    return f'"{text}"' if len(text) <= _MAX_QUOTED_CHARACTERS else f'"{text[:_MAX_QUOTED_CHARACTERS]}…"'


def estimate_text_bytes(text: str, depth: int = 0) -> int:
    """Return an upper bound of the UTF-8 size of a text at this nesting depth. Each of its lines is indented."""
    size = len(text) if text.isascii() else 4 * len(text)
    return size + 2 * depth * text.count("\n")


def estimate_value_bytes(value: Any, depth: int = 0) -> int:
    """Return the approximate YAML size of plain data at this nesting depth, without creating the YAML text."""
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
    """Return an error message if data at this depth is nested too deeply to be written, otherwise ""."""
    level = [value]
    for _ in range(MAX_LEVELS + 1 - depth):
        level = [child for node in level for child in _list_children(node)]
        if not level:
            return ""
    return f"fields must not have more than {MAX_LEVELS} levels"


def _list_children(node: Any) -> Iterable[Any]:
    return node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()


def find_items_error(returned: Any) -> str:
    """Return an error message if the items of a returned document cannot be written to files, otherwise ""."""
    entries = returned.get("items") if isinstance(returned, Mapping) else None
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        return "the function must return a resource list whose items are mappings"
    return _find_entries_error(entries)


def _find_entries_error(entries: list[Any]) -> str:
    """Return an error message if returned items cannot be written to a file, otherwise ""."""
    level: list[Any] = entries
    for _ in range(MAX_LEVELS):
        keys = [key for value in level if isinstance(value, dict) for key in value]
        if not all(isinstance(key, str) for key in keys):
            return "the keys of returned mappings must be strings"
        if any(isinstance(value, float) and not isfinite(value) for value in level):
            return "returned numbers must be finite"
        level = [inner for value in level for inner in _list_children(value)]
    return f"returned items must not have more than {MAX_LEVELS} levels" if level else ""
