"""Notes: what a rule has to say of a place in a resource, and the finding that it becomes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from reconciler.krm.conflicts import ABSENT
from reconciler.krm.findings import Code, Finding, Severity, Where
from reconciler.krm.pointer import format_pointer
from reconciler.krm.secrets import MASK, is_secret
from reconciler.krm.yaml import Path
from reconciler.packages.package import PackageResource


@dataclass(frozen=True)
class Note:
    """One thing that a rule says; `path` is the place in the resource.

    `value` is what stood there, where the message is about that: who tells it decides whether it may be seen.
    """

    code: Code
    message: str
    path: Path = ()
    value: Any = ABSENT

    @property
    def is_error(self) -> bool:
        """Whether the resource must not be published."""
        return self.code.severity is Severity.ERROR


def finding_of(resource: PackageResource, note: Note, who: str = "") -> Finding:
    """Return what a rule says of a resource as a finding; values of Secrets are masked (design 10.29)."""
    value = MASK if is_secret(resource.data) else note.value
    quoted = "" if note.value is ABSENT else f', not "{value}"'
    start = f"{who}: " if who else ""
    # JSON is read as data alone, without its lines
    line = 0 if resource.file.endswith(".json") else resource.document.line_of(note.path)
    where = Where(resource.file, line, str(resource.key), format_pointer(note.path))
    return note.code.finding(f"{start}{note.message}{quoted}", where)
