"""Findings about a field of an object, before they are located in a file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from reconciler.catalog.catalog import ConfigObject
from reconciler.controllers.validation import format_path
from reconciler.krm.findings import Finding, FindingCode
from reconciler.krm.yaml import DataPath

MAX_FINDINGS_PER_OBJECT: Final = 200
"""More findings per object do not help anyone."""


@dataclass(frozen=True)
class FieldFinding:
    """Finding about the value at `path` in an object. The message names the field."""

    code: FindingCode
    path: DataPath
    message: str

    def to_finding(self, manifest: ConfigObject) -> Finding:
        """Return the finding, located in the file of the object."""
        return self.code.finding(self.message, manifest.location_of(self.path))


def build_field_finding(code: FindingCode, path: DataPath, message: str) -> FieldFinding:
    """Return a finding whose message starts with the field."""
    return FieldFinding(code, path, f"{format_path(path)} {message}")


class FieldFindingError(Exception):
    """Reading or rendering failed, for the reason in `field_finding`."""

    def __init__(self, field_finding: FieldFinding) -> None:
        super().__init__(field_finding.message)
        self.field_finding = field_finding
