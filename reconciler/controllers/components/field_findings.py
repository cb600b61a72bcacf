"""Findings about a field of an object. These findings do not contain the file and line of the object yet."""

from __future__ import annotations

from typing import Final

from reconciler.catalog.catalog import ConfigObject
from reconciler.krm.field_text import format_path
from reconciler.krm.findings import Finding, FindingCode
from reconciler.krm.yaml import DataPath
from reconciler.lazy_dataclasses import dataclass

MAX_FINDINGS_PER_OBJECT: Final = 200
"""Maximum number of reported findings of one object, because a longer list is not readable."""


@dataclass(frozen=True)
class FieldFinding:
    """Finding about the field at `path` of an object. The message contains the path of the field."""

    code: FindingCode
    path: DataPath
    message: str

    def to_finding(self, manifest: ConfigObject) -> Finding:
        """Return a finding with the file and line of the field in `manifest`."""
        return self.code.finding(self.message, manifest.location_of(self.path))


def build_field_finding(code: FindingCode, path: DataPath, message: str) -> FieldFinding:
    """Return a finding whose message is the path of the field, followed by `message`."""
    return FieldFinding(code, path, f"{format_path(path)} {message}")


class FieldFindingError(Exception):
    """A field of an object cannot be read or rendered. `field_finding` contains the reason."""

    def __init__(self, field_finding: FieldFinding) -> None:
        super().__init__(field_finding.message)
        self.field_finding = field_finding
