"""Conflicts: what both sides of a merge changed, as values that people can be shown (design 10.8, kpt.md D2)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, Literal


class _Absent(Enum):
    ABSENT = "absent"


ABSENT: Final = _Absent.ABSENT
"""A side that has nothing there; unlike None, which is an explicit null."""

ConflictKind = Literal["field", "element", "resource", "file", "package"]
Winner = Literal["upstream", "local"]
Chosen = Literal["upstream", "local", "rule"]


@dataclass(frozen=True)
class Conflict:
    """One place that the local side and the upstream side both changed, differently.

    `pointer` is a JSON pointer into the resource, "" for all of it; `file` and `resource` are "" where they do not
    apply. The three values are plain data or ABSENT. `rule` is the deviation (kpt.md 17) that decided, such as "D2".
    Where a rule of ours overruled an edit, `chosen` is "rule", `rule` names it, and `upstream` is the rule's value.
    """

    kind: ConflictKind
    pointer: str
    base: Any
    local: Any
    upstream: Any
    chosen: Chosen
    rule: str
    file: str = ""
    resource: str = ""
