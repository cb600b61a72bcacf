"""Findings: errors, warnings and information about user input, with their finding codes.

This module defines the finding codes that all parts of the program use. Each controller defines its own finding codes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import ClassVar

from reconciler.krm.internal_errors import InternalFailure
from reconciler.lazy_dataclasses import dataclass, field, fields, replace
from reconciler.redaction import redact_urls

MAX_EXAMPLES = 5
"""The maximum number of messages that `join_messages` includes. A longer text would be hard to read."""
MAX_MESSAGE_CHARACTERS = 4_000
"""The maximum length of one message in characters. A longer message is truncated."""


def join_messages(messages: Iterable[str]) -> str:
    """Join different messages into one text, e.g. `a; b; c; d; e; … and 95 more`.

    The text contains at most `MAX_EXAMPLES` messages and the number of the remaining messages. A repeated message is
    included once.
    """
    distinct = tuple(dict.fromkeys(messages))
    more_count = len(distinct) - MAX_EXAMPLES
    return "; ".join([*distinct[:MAX_EXAMPLES], *([f"… and {more_count} more"] if more_count > 0 else [])])


def truncate_message(message: str) -> str:
    """Truncate a message to `MAX_MESSAGE_CHARACTERS`, and append its original length, e.g. "… (5000 characters)".

    Return a shorter message unchanged.
    """
    if len(message) <= MAX_MESSAGE_CHARACTERS:
        return message
    note = f"… ({len(message)} characters)"
    return message[: MAX_MESSAGE_CHARACTERS - len(note)] + note


class Severity(StrEnum):
    """The severity of a finding. An error blocks the scope of the finding. A warning or an info blocks nothing."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


@dataclass(frozen=True, order=True)
class SourceLocation:
    """A location in user input. A part that is unknown or does not apply is "", or 0 for `line`.

    Attributes:
        file: Path relative to the root of the Git repository. If `package` is set: path relative to the package.
        line: Line number in the file, from 1.
        object: `Kind/namespace/name`.
        pointer: RFC 6901 JSON pointer, or a field path such as `spec.upstream`.
        package: `repository/package` if the location is inside a package.
        owner: `Kind/namespace/name` of the config object that requests the package.
    """

    file: str = ""
    line: int = 0
    object: str = ""
    pointer: str = ""
    package: str = ""
    owner: str = ""

    def __str__(self) -> str:
        file_and_line = f"{self.file}:{self.line}" if self.file and self.line else self.file
        return " ".join(part for part in (self.package, file_and_line, self.object, self.pointer, self.owner) if part)


_NO_LOCATION = SourceLocation()


@dataclass(frozen=True)
class Finding:
    """An error, a warning or an info about user input.

    `failure` contains the unexpected exception if the finding reports an internal error. Only the log shows `failure`.
    """

    code: str
    message: str
    location: SourceLocation = _NO_LOCATION
    severity: Severity = Severity.ERROR
    failure: InternalFailure | None = field(default=None, compare=False, repr=False)


class FindingScope(StrEnum):
    """The unit that an error blocks, e.g. a file, a package or a target (`TARGET`).

    The published content of a blocked unit stays unchanged.
    """

    FILE = "file"
    OBJECT = "object"
    PACKAGE = "package"
    TARGET = "target"
    CONFIG = "config"
    # A `CLUSTER` finding predicts that the cluster would reject a resource. The finding blocks nothing.
    CLUSTER = "cluster"


@dataclass(frozen=True)
class FindingCode:
    """A type of finding: its name, its severity, its scope and its description."""

    name: str
    severity: Severity
    scope: FindingScope
    description: str

    def finding(self, message: str, location: SourceLocation = _NO_LOCATION) -> Finding:
        """Create a finding with this code and severity.

        Credentials in URLs are removed from the message, because findings are committed to the status branch.
        """
        return Finding(self.name, truncate_message(redact_urls(message)), location, self.severity)


def index_codes_by_name(codes: Iterable[FindingCode]) -> Mapping[str, FindingCode]:
    """Return a mapping from the name of each finding code to the finding code."""
    return {code.name: code for code in codes}


def error(description: str, scope: FindingScope = FindingScope.OBJECT) -> FindingCode:
    """Return a finding code with severity error. The `CodeTable` that contains the code sets its name."""
    return FindingCode("", Severity.ERROR, scope, description)


def warning(description: str, scope: FindingScope = FindingScope.OBJECT, name: str = "") -> FindingCode:
    """Return a finding code with severity warning. If `name` is "", the `CodeTable` that contains the code sets it."""
    return FindingCode(name, Severity.WARNING, scope, description)


def info(description: str, scope: FindingScope = FindingScope.OBJECT) -> FindingCode:
    """Return a finding code with severity info. The `CodeTable` that contains the code sets its name."""
    return FindingCode("", Severity.INFO, scope, description)


class CodeTable:
    """Base of the tables of finding codes. A table is a class, and its attributes are the finding codes.

    The name of a finding code is the name of its attribute in CamelCase: `ADDON_EMPTY` has the name `AddonEmpty`. If
    the name contains an abbreviation such as `CRD`, the declaration of the finding code contains the name.
    """

    by_name: ClassVar[Mapping[str, FindingCode]] = {}
    """The finding codes of the table, by name."""

    def __init_subclass__(cls) -> None:
        codes = {name: code for name, code in vars(cls).items() if isinstance(code, FindingCode)}
        for attribute, code in codes.items():
            setattr(cls, attribute, replace(code, name=code.name or attribute.title().replace("_", "")))
        cls.by_name = index_codes_by_name(getattr(cls, attribute) for attribute in codes)


def downgrade_to_warning(finding: Finding) -> Finding:
    """Return a copy of an error with severity warning. Return a warning or an info unchanged."""
    return replace(finding, severity=Severity.WARNING) if finding.severity is Severity.ERROR else finding


def upgrade_to_error(finding: Finding) -> Finding:
    """Return a copy of any finding with severity error."""
    return replace(finding, severity=Severity.ERROR)


def select_errors(findings: tuple[Finding, ...] | list[Finding]) -> tuple[Finding, ...]:
    """Return only the findings with severity error."""
    return tuple(finding for finding in findings if finding.severity is Severity.ERROR)


def set_source_locations(findings: Iterable[Finding], locations: Mapping[str, SourceLocation]) -> tuple[Finding, ...]:
    """Replace file and line in the location of findings about the objects in `locations`.

    Args:
        locations: Maps the object, as `Kind/namespace/name`, to the new file and line.
    """
    return tuple(_set_location(finding, locations.get(finding.location.object)) for finding in findings)


def _set_location(finding: Finding, location: SourceLocation | None) -> Finding:
    if location is None:
        return finding
    return replace(finding, location=replace(finding.location, file=location.file, line=location.line))


def set_package_location(findings: Iterable[Finding], package: str, owner: str) -> tuple[Finding, ...]:
    """Return the findings with `package` and `owner` added to their locations."""
    return tuple(
        replace(finding, location=replace(finding.location, package=package, owner=owner)) for finding in findings
    )


def serialize_finding(finding: Finding) -> dict[str, str | int]:
    """Return a finding as JSON data for the recorded state."""
    return {
        "code": finding.code,
        "message": finding.message,
        "severity": finding.severity.value,
        **vars(finding.location),
    }


def parse_finding(data: Mapping[str, str | int]) -> Finding:
    """Return the finding from the data that `serialize_finding` returned."""
    known = {field.name: data[field.name] for field in fields(SourceLocation) if field.name in data}
    location = SourceLocation(**known)  # type: ignore[arg-type]
    return Finding(str(data["code"]), str(data["message"]), location, Severity(str(data["severity"])))


class CommonCodes(CodeTable):
    """Finding codes that all parts of the program use."""

    CREDENTIAL_IN_URL = error("The URL of a repository contains a user name, a password or a token.")
    FEATURE_NOT_SUPPORTED = error("A field belongs to a feature that is not supported.")
    INTERNAL_ERROR = error(
        "An unexpected exception stopped one file, object, package, target or remote. The log has the traceback."
    )
    YAML_ALIASES = error(
        "A YAML alias has no anchor, contains itself, or expands to more nodes than the limit allows.",
        FindingScope.FILE,
    )
    YAML_DOCUMENTS = error("A file contains more documents than the limit allows.", FindingScope.FILE)
    YAML_DUPLICATE_KEY = error("A mapping contains a key twice.", FindingScope.FILE)
    YAML_ENCODING = error("A file is not UTF-8 text.", FindingScope.FILE)
    YAML_KEY = error("A key of a mapping is not a string.", FindingScope.FILE)
    YAML_MERGE = error("The value of a merge key `<<` is not a mapping or a list of mappings.", FindingScope.FILE)
    YAML_SYNTAX = error("A file is not valid YAML, or a `.json` file is not valid JSON.", FindingScope.FILE)
    YAML_TAG = error("A YAML tag is not supported, or its value does not have the type of the tag.", FindingScope.FILE)
    YAML_TOO_DEEP = error("A file is nested more deeply than the limit allows.", FindingScope.FILE)
    YAML_TOO_LARGE = error("A file is larger than the limit allows.", FindingScope.FILE)


def create_internal_error_finding(failure: InternalFailure, location: SourceLocation | None = None) -> Finding:
    """Create the finding for an unexpected exception that stopped the processing of one scope, e.g. one object."""
    return replace(CommonCodes.INTERNAL_ERROR.finding(failure.message, location or _NO_LOCATION), failure=failure)
