"""Conditions: a type, a status and why; on packages, on variants, on sets."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Status = Literal["True", "False", "Unknown"]


@dataclass(frozen=True, order=True)
class Condition:
    """A Kubernetes-style condition without its times (porch 10; times stand on the status branch only)."""

    type: str
    status: Status
    reason: str
    message: str = ""

    def as_data(self) -> dict[str, str]:
        """Return the condition as it is written to YAML."""
        return {"type": self.type, "status": self.status, "reason": self.reason, "message": self.message}


def upsert(conditions: Iterable[Condition], *changes: Condition) -> tuple[Condition, ...]:
    """Return the conditions with `changes` in place of those of the same type, sorted by type."""
    by_type = {condition.type: condition for condition in (*conditions, *changes)}
    return tuple(by_type[name] for name in sorted(by_type))
