"""Limits: what the function calls of one render may cost, and the budget that they charge before they allocate.

Everything is counted and nothing is timed, so that a verdict is the same on every machine. Only scripts have a limit in
seconds, of CPU time, because the interpreter cannot count what its built-in functions do.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

# what one scalar or key costs beside its text: quotes, a colon, a dash, a line end
_NODE_BYTES = 8
_SHOWN_CHARACTERS = 60
# what YAML is read and written with
MAX_LEVELS = 100
# how many characters are compared, searched or copied in one step
_TEXT_PER_STEP = 64
# how many steps it takes to parse a character of YAML
_STEPS_PER_PARSED = 2


@dataclass(frozen=True)
class FunctionLimits:
    """The limits of the functions that run in process (settings group `limits.functions`).

    `steps`, about a microsecond each, and `output_bytes`, the text that functions create, hold for all calls of one
    render together; `placeholders` for one pattern. `cpu_seconds` and `memory_bytes` hold for one call of a script.
    """

    steps: int = 20_000_000
    output_bytes: int = 16 * 1024 * 1024
    placeholders: int = 100
    cpu_seconds: int = 10
    memory_bytes: int = 512 * 1024 * 1024


DEFAULT_LIMITS = FunctionLimits()


class LimitError(ValueError):
    """A call exceeds a limit; the message names the limit, its setting and the next step."""


class Budget:
    """What is left of the limits of one render. Charge first, allocate afterwards."""

    __slots__ = ("bytes", "limits", "steps")

    def __init__(self, limits: FunctionLimits = DEFAULT_LIMITS) -> None:
        self.limits = limits
        self.steps = limits.steps
        self.bytes = limits.output_bytes

    def spend(self, steps: int) -> None:
        """Take `steps`; raises LimitError when fewer are left."""
        self.steps -= steps
        if self.steps < 0:
            raise LimitError(
                f"the functions of a package must not take more than {self.limits.steps:,} steps in one render: "
                "use fewer or simpler functions, or raise the setting limits.functions.steps"
            )

    def scan(self, characters: int) -> None:
        """Take the steps for looking at so many characters once."""
        self.spend(1 + characters // _TEXT_PER_STEP)

    def parse(self, characters: int) -> None:
        """Take the steps for parsing a YAML text of so many characters once."""
        self.spend(1 + characters * _STEPS_PER_PARSED)

    def create(self, size: int, what: str = "this value", value: str = "") -> None:
        """Take `size` bytes for `what` is created of `value`; raises LimitError when fewer are left."""
        self.bytes -= size
        if self.bytes < 0:
            found = f" (made of {shortened(value)})" if value else ""
            raise LimitError(
                f"{what}{found} takes {size:,} bytes, and the functions of a package must not create more than "
                f"{self.limits.output_bytes:,} bytes in one render: shorten the values, or raise the setting "
                "limits.functions.output_bytes"
            )

    def require_few(self, placeholders: int, what: str, pattern: str) -> None:
        """Check the number of placeholders or groups of a pattern; raises LimitError."""
        if placeholders > self.limits.placeholders:
            raise LimitError(
                f"{what} {shortened(pattern)} has {placeholders:,} placeholders and must not have more than "
                f"{self.limits.placeholders:,}: split it, or raise the setting limits.functions.placeholders"
            )


def shortened(text: str) -> str:
    """Return text between double quotes, cut to a length that fits a message."""
    return f'"{text}"' if len(text) <= _SHOWN_CHARACTERS else f'"{text[:_SHOWN_CHARACTERS]}…"'


def text_bytes(text: str, depth: int = 0) -> int:
    """Return an upper bound of the UTF-8 size of a text written at this depth; each of its lines is indented."""
    size = len(text) if text.isascii() else 4 * len(text)
    return size + 2 * depth * text.count("\n")


def value_bytes(value: Any, depth: int = 0) -> int:
    """Return about how many bytes plain data takes as YAML at this depth, without making that text."""
    total, level, indent = 0, [value], depth
    while level:
        total += (_NODE_BYTES + 2 * indent) * len(level)
        for node in level:
            if isinstance(node, str):
                total += text_bytes(node, indent)
            elif isinstance(node, dict):
                total += sum(text_bytes(key) for key in node if isinstance(key, str))
        level = [child for node in level for child in _children(node)]
        indent += 1
    return total


def depth_fault(value: Any, depth: int = 0) -> str:
    """Return what is wrong with data at this depth that is nested too deeply to be written, or ""."""
    level = [value]
    for _ in range(MAX_LEVELS + 1 - depth):
        level = [child for node in level for child in _children(node)]
        if not level:
            return ""
    return f"fields must not have more than {MAX_LEVELS} levels"


def _children(node: Any) -> Iterable[Any]:
    return node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
