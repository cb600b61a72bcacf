"""Limits and costs of CEL expressions.

Costs are counted in steps and bytes, not in time, so that all machines agree.
"""

from __future__ import annotations

from dataclasses import dataclass

from reconciler.cel.errors import BudgetExceededError

CONTAINER_BYTES = 64
"""Cost of an empty list or map, in bytes."""

ELEMENT_BYTES = 8
"""Cost of one list element, in bytes (a pointer)."""

ENTRY_BYTES = 64
"""Cost of one map entry in bytes, about what CPython uses."""

TEXT_PER_STEP = 64
"""Number of characters that one step compares, searches or copies."""


@dataclass(frozen=True)
class ExpressionLimits:
    """Limits for an expression and for one evaluation of it.

    Attributes:
        characters: Maximum length of the text.
        nesting: Maximum nesting of comprehensions.
        steps: Maximum number of steps. One step takes about 0.1 µs: one node of the syntax tree or one iteration. A
            function on long texts or lists takes several steps.
        bytes: Maximum total size of all created strings, lists and maps, even if they are no longer used.
    """

    characters: int = 4096
    nesting: int = 4
    steps: int = 1_000_000
    bytes: int = 16 * 1024 * 1024


DEFAULT_CEL_LIMITS = ExpressionLimits()


class ExpressionBudget:
    """The remaining steps and bytes. One budget for several evaluations limits their sum."""

    __slots__ = ("bytes", "limits", "patterns", "steps")

    def __init__(self, limits: ExpressionLimits) -> None:
        self.limits = limits
        self.steps = limits.steps
        self.bytes = limits.bytes
        self.patterns: set[str] = set()
        """Compiled regular expressions. The cost of each is subtracted once, even if a cache contains it."""

    def spend(self, steps: int) -> None:
        """Subtract steps. Raise `BudgetExceededError` if too few remain."""
        self.steps -= steps
        if self.steps < 0:
            raise BudgetExceededError(f"the expression needs more than {self.limits.steps} steps")

    def allocate(self, size: int) -> None:
        """Subtract bytes. Raise `BudgetExceededError` if too few remain."""
        self.bytes -= size
        if self.bytes < 0:
            raise BudgetExceededError(f"the expression creates more than {self.limits.bytes} bytes of values")

    def scan(self, length: int) -> None:
        """Subtract the steps for reading a text of `length` characters or bytes once."""
        if length > TEXT_PER_STEP:
            self.spend(length // TEXT_PER_STEP)

    def make_text(self, text: str) -> str:
        """Subtract the cost of a new text, and return it."""
        self.allocate(len(text) if text.isascii() else 4 * len(text))
        return text

    def make_list(self, length: int) -> None:
        """Subtract the bytes and steps of a new list with `length` elements."""
        self.allocate(CONTAINER_BYTES + ELEMENT_BYTES * length)
        self.spend(1 + length // TEXT_PER_STEP)
