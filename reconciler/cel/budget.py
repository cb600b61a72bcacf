"""Limits and costs of CEL expressions.

Costs are counted in steps and bytes and not in time, so that an expression has the same cost on each machine.
"""

from __future__ import annotations

from typing import Final, NoReturn

from reconciler.cel.errors import BudgetExceededError
from reconciler.lazy_dataclasses import dataclass

CONTAINER_BYTES = 64
"""Size of an empty list or map in the budget, in bytes."""

ELEMENT_BYTES = 8
"""Size of one list element in the budget, in bytes. It is the size of a pointer."""

ENTRY_BYTES = 64
"""Size of one map entry in the budget, in bytes. CPython uses about this size."""

TEXT_PER_STEP = 64
"""Number of characters that an evaluation can compare, search or copy in one step."""


@dataclass(frozen=True)
class ExpressionLimits:
    """Limits for the text of an expression and for its evaluation.

    Attributes:
        characters: Maximum length of the expression in characters.
        nesting: Maximum number of nested comprehensions such as `map` and `all`.
        steps: Maximum number of steps. A step is one node of the syntax tree or one iteration, and takes about 0.1 µs.
            Functions on long strings or lists need several steps.
        bytes: Maximum total size of all strings, lists and maps that the evaluation creates, including unused values.
    """

    characters: int = 4096
    nesting: int = 4
    steps: int = 1_000_000
    bytes: int = 16 * 1024 * 1024


DEFAULT_CEL_LIMITS = ExpressionLimits()


_NO_PATTERNS: Final[frozenset[str]] = frozenset()


class ExpressionBudget:
    """The steps and bytes that an evaluation can still use. Several evaluations can share one budget."""

    __slots__ = ("bytes", "limits", "patterns", "steps")

    def __init__(self, limits: ExpressionLimits) -> None:
        self.limits = limits
        self.steps = limits.steps
        self.bytes = limits.bytes
        self.patterns = _NO_PATTERNS
        """Regular expressions that were compiled with this budget. Their compilation costs steps only once."""

    def spend(self, steps: int) -> None:
        """Subtract steps from the budget. Raise `BudgetExceededError` if too few steps are left."""
        self.steps -= steps
        if self.steps < 0:
            self.raise_no_steps()

    def allocate(self, size: int) -> None:
        """Subtract bytes from the budget. Raise `BudgetExceededError` if too few bytes are left."""
        self.bytes -= size
        if self.bytes < 0:
            self.raise_no_bytes()

    def raise_no_steps(self) -> NoReturn:
        """Raise the error for a budget that has no steps left."""
        raise BudgetExceededError(f"the expression needs more than {self.limits.steps} steps")

    def raise_no_bytes(self) -> NoReturn:
        """Raise the error for a budget that has no bytes left."""
        raise BudgetExceededError(f"the expression creates more than {self.limits.bytes} bytes of values")

    def scan(self, length: int) -> None:
        """Subtract the steps that are needed to read a string or bytes of this length once."""
        if length > TEXT_PER_STEP:
            self.spend(length // TEXT_PER_STEP)

    def make_text(self, text: str) -> str:
        """Subtract the size of a new string from the budget. Return the string."""
        self.allocate(len(text) if text.isascii() else 4 * len(text))
        return text

    def make_list(self, length: int) -> None:
        """Subtract the bytes and steps that are needed to create a list with `length` elements."""
        self.allocate(CONTAINER_BYTES + ELEMENT_BYTES * length)
        self.spend(1 + length // TEXT_PER_STEP)
