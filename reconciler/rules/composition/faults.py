"""What is wrong inside of one object: a code, the place in its document, and a sentence that stands for itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from reconciler.krm.findings import Code, Finding
from reconciler.krm.yaml import Path
from reconciler.rules.fields import dotted
from reconciler.snapshot.catalog import ConfigObject

MOST_TOLD: Final = 200
"""Nobody reads more of one object: the first ones stand for all."""


@dataclass(frozen=True)
class Fault:
    """One thing that is wrong at `path`, which leads into the object's own document; the message names the field."""

    code: Code
    path: Path
    message: str

    def finding(self, one: ConfigObject) -> Finding:
        """Return the fault as a finding at its line of the object's file."""
        return self.code.finding(self.message, one.where_at(self.path))


def fault_of(code: Code, path: Path, message: str) -> Fault:
    """Return a fault whose sentence begins with the field that `path` leads to."""
    return Fault(code, path, f"{dotted(path)} {message}")


class FaultError(Exception):
    """A render cannot go on, and the fault says why."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.message)
        self.fault = fault
