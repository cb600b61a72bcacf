"""Findings in results: the models of `-o json`, and their conversion from and to findings."""

from __future__ import annotations

from collections.abc import Iterable

from pydantic import ConfigDict, Field

from reconciler.krm.findings import Finding, Severity, SourceLocation
from reconciler.output.envelope import OutputModel
from reconciler.output.findings.grouping import map_root_causes

_SEVERITY_RANKS = {severity: rank for rank, severity in enumerate(Severity)}


class FindingCause(OutputModel):
    """The code and the location of the finding that causes another finding."""

    code: str
    file: str = ""
    line: int = 0
    object: str = ""
    package: str = ""


class FindingEntry(OutputModel):
    """One finding."""

    # Ignore unknown fields, because a different version of the reconciler can have written the findings on the status
    # branch.
    model_config = ConfigDict(extra="ignore")

    severity: Severity
    code: str
    message: str
    file: str = Field(
        default="", description="The path of the file: in the package if `package` is present, or else in the config."
    )
    line: int = Field(default=0, description="The number of the line in the file, starting at 1.")
    object: str = Field(default="", description="The object, as `Kind/namespace/name`.")
    pointer: str = Field(default="", description="The field: a JSON pointer, or a path such as `spec.upstream`.")
    package: str = Field(default="", description="The package, as `target/package`.")
    owner: str = Field(default="", description="The object that requests the package, as `Kind/namespace/name`.")
    column: int = Field(
        default=0, description="The number of the column, starting at 1. Only the command `validate` sets this field."
    )
    fingerprint: str = Field(
        default="",
        description=(
            "A digest that identifies the finding and stays the same if its line or message changes. Only "
            "the command `validate` sets this field."
        ),
    )
    caused_by: FindingCause | None = Field(default=None, description="The root cause of the finding.")

    def to_finding(self) -> Finding:
        """Convert the entry back to a finding."""
        location = SourceLocation(self.file, self.line, self.object, self.pointer, self.package, self.owner)
        return Finding(self.code, self.message, location, self.severity)


def sort_findings(findings: Iterable[Finding]) -> list[Finding]:
    """Return the findings without duplicates, sorted. Findings about the config come before findings in packages.

    Findings with the same location are sorted by severity, errors first.
    """
    return sorted(
        set(findings),
        key=lambda finding: (
            finding.location.package, finding.location, _SEVERITY_RANKS[finding.severity], finding.code,
            finding.message,
        ),
    )  # fmt: skip


def build_finding_entries(findings: Iterable[Finding]) -> tuple[FindingEntry, ...]:
    """Return the entries of the findings, sorted, with their root causes."""
    ordered = sort_findings(findings)
    causes = map_root_causes(ordered)
    return tuple(build_finding_entry(finding, causes.get(finding)) for finding in ordered)


def build_finding_entry(
    finding: Finding, cause: Finding | None = None, column: int = 0, fingerprint: str = ""
) -> FindingEntry:
    """Return the entry of one finding."""
    return FindingEntry(
        severity=finding.severity,
        code=finding.code,
        message=finding.message,
        **vars(finding.location),
        column=column,
        fingerprint=fingerprint,
        caused_by=build_finding_cause(cause) if cause else None,
    )


def build_finding_cause(cause: Finding) -> FindingCause:
    """Return the code and the location of a root cause."""
    location = cause.location
    return FindingCause(
        code=cause.code, file=location.file, line=location.line, object=location.object, package=location.package
    )
