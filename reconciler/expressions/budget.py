"""The budget: what an expression may cost, in steps and bytes and never in time, so that every machine agrees."""

from __future__ import annotations

from dataclasses import dataclass

from reconciler.expressions.errors import Exhausted

CONTAINER_BYTES = 64
"""What a list or map costs before it has anything in it."""

ELEMENT_BYTES = 8
"""What one place in a list costs (a pointer)."""

ENTRY_BYTES = 64
"""What one entry of a map costs, about what CPython needs for it."""

TEXT_PER_STEP = 64
"""How many characters are compared, searched or copied in one step."""


@dataclass(frozen=True)
class Limits:
    """How long and deep an expression may be, and what one evaluation may cost (design 10.20).

    `characters` of its text; `nesting` of comprehensions in one another; `steps` of an evaluation, about 0.1 us each
    (one per node of the syntax tree and round of a loop, more where a function looks at long texts or lists);
    `bytes` of all the strings, lists and maps it makes, whether they are still needed or not.
    """

    characters: int = 4096
    nesting: int = 4
    steps: int = 1_000_000
    bytes: int = 16 * 1024 * 1024


DEFAULT_LIMITS = Limits()


class Budget:
    """What is left to spend. Pass one budget to several evaluations to limit their sum."""

    __slots__ = ("bytes", "limits", "patterns", "steps")

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.steps = limits.steps
        self.bytes = limits.bytes
        self.patterns: set[str] = set()
        """The regular expressions compiled so far: each is paid for once, whatever caches hold it."""

    def spend(self, steps: int) -> None:
        """Take `steps`; raises Exhausted when there are not as many left."""
        self.steps -= steps
        if self.steps < 0:
            raise Exhausted(f"the expression needs more than {self.limits.steps} steps")

    def allocate(self, size: int) -> None:
        """Take `size` bytes; raises Exhausted when there are not as many left."""
        self.bytes -= size
        if self.bytes < 0:
            raise Exhausted(f"the expression makes more than {self.limits.bytes} bytes of values")

    def scan(self, length: int) -> None:
        """Take the steps for looking once at a text of `length` characters or bytes."""
        if length > TEXT_PER_STEP:
            self.spend(length // TEXT_PER_STEP)

    def make_text(self, text: str) -> str:
        """Return `text`, which an expression made, after paying for it."""
        self.allocate(len(text) if text.isascii() else 4 * len(text))
        return text

    def make_list(self, length: int) -> None:
        """Pay for a new list of `length` elements: a byte size, and the step of filling it."""
        self.allocate(CONTAINER_BYTES + ELEMENT_BYTES * length)
        self.spend(1 + length // TEXT_PER_STEP)
