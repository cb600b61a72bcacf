"""What the patches of one render may cost: hostile ones end in a fault (openchoreo 8.2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from reconciler.krm.yaml import DEFAULT_LIMITS, Path
from reconciler.rules.composition.codes import PATCH_TOO_LARGE
from reconciler.rules.composition.faults import FaultError, fault_of

MAX_DEPTH = DEFAULT_LIMITS.depth
"""Objects are no deeper than what can be read again."""
MAX_WORK = 4_000_000
# what an operation, and a value of whatever kind, cost in characters
_OPERATION = 64
_VALUE = 8
_LOOK = 16


@dataclass
class Allowance:
    """How many characters patches may still write, all those of a render together; other work is counted in them."""

    left: int = MAX_WORK

    def begin(self, at: Path) -> None:
        """Count one operation; raises FaultError where there have been too many."""
        self.spend(_OPERATION, at)

    def spend(self, characters: int, at: Path) -> None:
        """Count work; raises FaultError where it is too much."""
        self.left -= characters
        if self.left < 0:
            message = f"must not make the patches of a render write more than {MAX_WORK:,} characters, or as much work"
            raise FaultError(fault_of(PATCH_TOO_LARGE, at, message))

    def snapshot(self, value: Any, at: Path) -> Any:
        """Return a copy for expressions to look at; text is not copied, and is free. Raises FaultError."""
        self.spend(_VALUE, at)
        match value:
            case dict():
                return {key: self.snapshot(one, at) for key, one in value.items()}
            case list():
                return [self.snapshot(one, at) for one in value]
            case _:
                return value

    def look(self, things: int, at: Path) -> None:
        """Count looking at things; raises FaultError where there have been too many."""
        self.spend(_LOOK * things, at)

    def copied(self, value: Any, depth: int, at: Path) -> Any:
        """Return a value that shares nothing with `value`, for a place that is `depth` steps down.

        Raises FaultError for what would be too much, or too deep.
        """
        if depth > MAX_DEPTH:
            message = f"must not lead to places more than {MAX_DEPTH} steps down"
            raise FaultError(fault_of(PATCH_TOO_LARGE, at, message))
        self.spend(_VALUE + len(value) if isinstance(value, str) else _VALUE, at)
        match value:
            case dict():
                self.spend(sum(map(len, value)), at)
                return {key: self.copied(one, depth + 1, at) for key, one in value.items()}
            case list():
                return [self.copied(one, depth + 1, at) for one in value]
            case _:
                return value
