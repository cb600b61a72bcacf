"""Findings: what is wrong, or worth knowing, about somebody's input, as values with a place."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from reconciler.krm.isolation import InternalFailure
from reconciler.krm.messages import bounded
from reconciler.redaction import redact_urls


class Severity(StrEnum):
    """How much a finding costs: an error withholds output, a warning and an info nothing (design 10.24)."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


@dataclass(frozen=True, order=True)
class Where:
    """A place in somebody's input; empty parts are unknown or do not apply.

    `file` is relative to its repository's root, `line` counts from 1 (0: unknown), `object` is
    `Kind/namespace/name`, `pointer` an RFC 6901 JSON pointer or a field path as the spec spells it.
    `package` is `repository/package` of the package that this is a place in: then `file` and `object` are in there,
    and `owner` is the config object that asks for it, as `Kind/namespace/name`.
    """

    file: str = ""
    line: int = 0
    object: str = ""
    pointer: str = ""
    package: str = ""
    owner: str = ""

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.file and self.line else self.file
        return " ".join(part for part in (self.package, place, self.object, self.pointer, self.owner) if part)


@dataclass(frozen=True)
class Finding:
    """One thing a rule found; the message says what must be and quotes what was.

    `failure` is the unexpected exception behind an internal error; only the log shows it.
    """

    code: str
    message: str
    where: Where = Where()
    severity: Severity = Severity.ERROR
    failure: InternalFailure | None = field(default=None, compare=False, repr=False)


class Scope(StrEnum):
    """What a finding is about; an error withholds all of it, and leaves what stands as it was (design 10.24)."""

    FILE = "file"
    OBJECT = "object"
    PACKAGE = "package"
    DESTINATION = "destination"
    CONFIG = "config"
    # what its cluster would make of it: nobody here withholds anything for it
    CLUSTER = "cluster"


@dataclass(frozen=True)
class Code:
    """One kind of finding: how much it costs, what it is about, and what it says, in one sentence for everybody.

    The rooms keep theirs in tables; a finding is made from its code, so that nobody says its severity twice.
    """

    name: str
    severity: Severity
    scope: Scope
    meaning: str

    def finding(self, message: str, where: Where = Where()) -> Finding:
        """Return a finding of this kind; the message says what must be and quotes what was.

        Credentials of URLs in the message are removed, because findings are committed to the status branch.
        """
        return Finding(self.name, bounded(redact_urls(message)), where, self.severity)


def softened(finding: Finding) -> Finding:
    """Return an error as a warning, for where what it is about is told, and nothing is withheld for it."""
    return replace(finding, severity=Severity.WARNING) if finding.severity is Severity.ERROR else finding


def hardened(finding: Finding) -> Finding:
    """Return a finding as an error, for where those who run the program take it for one."""
    return replace(finding, severity=Severity.ERROR)


def by_name(codes: Iterable[Code]) -> Mapping[str, Code]:
    """Return codes by their names, for where a reason in words becomes a finding."""
    return {code.name: code for code in codes}


def errors(findings: tuple[Finding, ...] | list[Finding]) -> tuple[Finding, ...]:
    """Return the findings that withhold output."""
    return tuple(finding for finding in findings if finding.severity is Severity.ERROR)


def at_places(findings: Iterable[Finding], places: Mapping[str, Where]) -> tuple[Finding, ...]:
    """Return findings with the places, by object, where people can mend what they are about."""
    return tuple(_at_place(one, places.get(one.where.object)) for one in findings)


def _at_place(finding: Finding, place: Where | None) -> Finding:
    return replace(finding, where=replace(finding.where, file=place.file, line=place.line)) if place else finding


def in_package(findings: Iterable[Finding], package: str, owner: str) -> tuple[Finding, ...]:
    """Return findings about what is inside a package with the package and its owner named."""
    return tuple(replace(one, where=replace(one.where, package=package, owner=owner)) for one in findings)
