"""Locates findings in the config, and builds reports for code scanners: SARIF (GitHub) and Code Quality (GitLab)."""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Literal

from reconciler.catalog.catalog import ConfigObject
from reconciler.krm.findings import Finding, FindingCode, FindingScope, Severity, SourceLocation, index_codes_by_name
from reconciler.krm.json_pointer import PointerError, parse_pointer
from reconciler.krm.json_text import compute_hash
from reconciler.krm.yaml import DataPath
from reconciler.lazy_dataclasses import dataclass, replace
from reconciler.output.config_fields import parse_field_path
from reconciler.output.envelope import CommandResult, OutputModel, create_cli_metadata
from reconciler.output.findings.entries import FindingEntry, build_finding_entry, sort_findings
from reconciler.output.findings.formats import format_findings, format_location
from reconciler.output.findings.grouping import map_root_causes
from reconciler.output.status.config_statuses import encode_percent
from reconciler.output.text import format_object_reference, to_one_line

MAX_RESULTS: Final = 25_000
"""The maximum number of results per run. GitHub rejects files with more results."""

_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}
# Do not use "blocker", GitLab's highest severity, because an error blocks packages but not a GitLab pipeline.
_GITLAB_SEVERITIES = {Severity.ERROR: "critical", Severity.WARNING: "minor", Severity.INFO: "info"}
_UNSAFE_IN_URI = re.compile(r"[^A-Za-z0-9/._~-]")
_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
# Use this name for the fingerprint, because GitHub recognizes a known result only by a fingerprint with this name.
_FINGERPRINT = "primaryLocationLineHash"
SCOPE_EFFECTS = {
    FindingScope.FILE: (
        "the file is not read; until the error is corrected, no object that can be in the file is treated as deleted"
    ),
    FindingScope.OBJECT: "the object creates no packages, and its existing packages do not change",
    FindingScope.PACKAGE: "the package on this cluster does not change",
    FindingScope.TARGET: "nothing is written to the target",
    FindingScope.CONFIG: "removals, config proposals or status files of the whole fleet do not change",
    FindingScope.CLUSTER: "nothing is blocked, but the cluster would refuse the resource",
}


@dataclass(frozen=True)
class LocatedFinding:
    """A finding with its location in the repository.

    Attributes:
        path: The path from the root of the repository.
        line: The line number from 1. The number is 0 if the line is unknown.
        column: The column number from 1. The number is 0 if the column is unknown.
        fingerprint: A digest that does not change if line numbers or messages change.
        is_exact: Whether `path` is the file with the error. If False, `path` is only a related file, e.g. the config
            file that requests the package with the error.
    """

    finding: Finding
    path: str
    line: int
    column: int
    fingerprint: str
    is_exact: bool = True


@dataclass(frozen=True)
class ConfigPosition:
    """A position in the config: the path of a file in the config folder, line and column."""

    file: str
    line: int = 0
    column: int = 0
    is_exact: bool = True


class FindingLocator:
    """Finds the positions of findings in the config: file, line, and the column of a field."""

    def __init__(self, objects: Iterable[ConfigObject], parents: Mapping[str, str] | None = None) -> None:
        """Index the objects of the config.

        Args:
            parents: Maps each owner to its parent, e.g. a PackageVariant to the PackageVariantSet that created it. Keys
                and values have the form `Kind/namespace/name`.
        """
        self._parents = parents or {}
        self._by_file: dict[tuple[str, str], list[ConfigObject]] = {}
        self._by_name: dict[str, ConfigObject] = {}
        for manifest in objects:
            self._by_file.setdefault((manifest.file, manifest.key.reference), []).append(manifest)
            self._by_name.setdefault(manifest.key.reference, manifest)

    def find_location(self, location: SourceLocation) -> ConfigPosition | None:
        """Return the position of a finding in the config.

        If the object or file of the finding is not in the config, return the position of the object that requests the
        package. Return None if this object is unknown too.
        """
        if manifests := self._by_file.get((location.file, location.object)):
            return _find_in_object(manifests, location)
        if location.file and not location.package:
            return ConfigPosition(location.file, location.line)
        # Return the position of the owner, because the files of a package are not files of the config.
        name = location.owner if location.package else location.object
        owner = self._by_name.get(self._parents.get(name, name))
        return ConfigPosition(owner.file, *owner.find_line_and_column(()), is_exact=False) if owner else None


def locate_findings(
    findings: Iterable[Finding], locator: FindingLocator, root: str, fallback_path: str
) -> list[LocatedFinding]:
    """Return the findings, sorted, each with a path in the repository.

    Args:
        root: The path of the config folder in the repository.
        fallback_path: The path for findings without a config file, for example about a URL in the settings.
    """
    counts: Counter[tuple[str, ...]] = Counter()
    located: list[LocatedFinding] = []
    for finding in sort_findings(findings):
        location, position = finding.location, locator.find_location(finding.location)
        path = posixpath.join(root, position.file) if position else fallback_path
        identity = (finding.code, path, location.object, location.pointer, location.package, location.owner)
        counts[identity] += 1
        # Add a number to the fingerprint, so that several equal findings of one field have different fingerprints.
        fingerprint = compute_hash([*identity, counts[identity]])
        line, column, is_exact = (position.line, position.column, position.is_exact) if position else (0, 0, False)
        located.append(LocatedFinding(finding, path, line, column, fingerprint, is_exact))
    return located


class ValidationSummary(OutputModel):
    """The numbers of findings by severity."""

    errors: int
    warnings: int
    infos: int


class ValidationResult(CommandResult):
    """The result of `reconciler validate`. All findings are in `findings`, and `items` is empty."""

    kind: Literal["Validation"] = "Validation"
    items: tuple[OutputModel, ...] = ()
    findings: tuple[FindingEntry, ...]
    summary: ValidationSummary


def build_validation_result(located: Iterable[LocatedFinding], config: str) -> ValidationResult:
    """Return the result for all findings. `line` and `column` of a finding are the position of its field."""
    entries = list(located)
    findings = {entry.finding: _set_line(entry) for entry in entries}
    causes = map_root_causes(findings)
    counts = Counter(finding.severity for finding in findings)
    return ValidationResult(
        metadata=create_cli_metadata(config),
        findings=tuple(
            build_finding_entry(
                findings[entry.finding],
                findings[causes[entry.finding]] if entry.finding in causes else None,
                entry.column if entry.is_exact else 0,
                entry.fingerprint,
            )
            for entry in entries
        ),
        summary=ValidationSummary(
            errors=counts[Severity.ERROR], warnings=counts[Severity.WARNING], infos=counts[Severity.INFO]
        ),
    )


def format_validation_text(result: ValidationResult) -> str:
    """Return the findings as text lines. The locations contain the line of each field."""
    return "\n".join(format_findings(entry.to_finding() for entry in result.findings)) or "no findings"


def _set_line(located: LocatedFinding) -> Finding:
    if not located.is_exact:
        return located.finding
    return replace(located.finding, location=replace(located.finding.location, line=located.line))


def _find_in_object(manifests: list[ConfigObject], location: SourceLocation) -> ConfigPosition:
    # A file can contain several copies of an object. Select the last copy that starts at or before the finding's line.
    above = [manifest for manifest in manifests if manifest.line <= location.line] or manifests[:1]
    manifest = max(above, key=lambda candidate: candidate.line)
    line, column = manifest.find_line_and_column(_resolve_path(manifest.data, location.pointer))
    # Prefer the line of the finding, because the position of an object can be the comment above the object.
    has_better_line = location.line > manifest.line and not location.pointer
    return (
        ConfigPosition(location.file, location.line, 1)
        if has_better_line
        else ConfigPosition(location.file, line, column)
    )


def _resolve_path(data: Any, pointer: str) -> DataPath:
    """Return the path of a JSON pointer or dotted field path, up to the last segment that exists in the data."""
    if not pointer.startswith("/"):
        return parse_field_path(data, pointer) or ()
    path: list[str | int] = []
    for segment in _split_pointer(pointer):
        if isinstance(data, Mapping) and segment in data:
            path.append(segment)
            data = data[segment]
        elif isinstance(data, list) and segment.isdecimal() and int(segment) < len(data):
            path.append(int(segment))
            data = data[int(segment)]
        else:
            break
    return tuple(path)


def _split_pointer(pointer: str) -> tuple[str, ...]:
    try:
        return parse_pointer(pointer)
    except PointerError:
        return ()


def quote_uri_path(path: str) -> str:
    """Return a path as a relative URI reference (RFC 3986, section 2.1)."""
    return _UNSAFE_IN_URI.sub(encode_percent, path)


def build_sarif_log(
    located: Sequence[LocatedFinding], version: str, codes: Iterable[FindingCode], category: str
) -> dict[str, Any]:
    """Return a SARIF 2.1.0 log with one run, in the form that GitHub code scanning accepts.

    If there are more than `MAX_RESULTS` findings, the log contains errors first, then other findings. A notification
    has the number of the omitted findings.

    Args:
        codes: All finding codes. The log describes the codes that occur.
        category: The name of the analysis. On GitHub, an upload replaces only uploads with the same category.
    """
    selected, codes_by_name = _select_results(located), index_codes_by_name(codes)
    names = sorted({entry.finding.code for entry in selected})
    driver = {"name": "reconciler", "version": version, "rules": [_build_rule(codes_by_name[name]) for name in names]}
    run = {
        "tool": {"driver": driver},
        "automationDetails": {"id": f"reconciler/{category}/"},
        "columnKind": "unicodeCodePoints",
        "invocations": [_build_invocation(len(located) - len(selected))],
        "results": [_build_result(entry, names.index(entry.finding.code)) for entry in selected],
    }
    return {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}


def _select_results(located: Sequence[LocatedFinding]) -> Sequence[LocatedFinding]:
    if len(located) <= MAX_RESULTS:
        return located
    ranks = {severity: rank for rank, severity in enumerate(Severity)}
    ranked = sorted(range(len(located)), key=lambda index: (ranks[located[index].finding.severity], index))
    return [located[index] for index in sorted(ranked[:MAX_RESULTS])]


def _build_invocation(dropped: int) -> dict[str, Any]:
    if not dropped:
        return {"executionSuccessful": True}
    text = f"{dropped} more findings are not in this file, because the limit is {MAX_RESULTS}. Text output lists all."
    return {
        "executionSuccessful": True,
        "toolExecutionNotifications": [{"level": "warning", "message": {"text": text}}],
    }


def _build_rule(code: FindingCode) -> dict[str, Any]:
    is_error = code.severity is Severity.ERROR
    effect = f"Effect of an error: {SCOPE_EFFECTS[code.scope]}." if is_error else "It blocks nothing."
    return {
        "id": code.name,
        "name": code.name,
        "shortDescription": {"text": code.description},
        "fullDescription": {"text": f"{code.description} {effect}"},
        "help": {
            "text": f"{code.description} {effect} See docs/reference/findings.md for all codes.",
            "markdown": f"**{code.name}** ({code.severity}, {code.scope}): {code.description}\n\n{effect}",
        },
        "defaultConfiguration": {"level": _LEVELS[code.severity]},
        "properties": {"scope": code.scope.value, "tags": ["gitops", code.scope.value]},
    }


def _build_result(located: LocatedFinding, rule: int) -> dict[str, Any]:
    finding = located.finding
    return {
        "ruleId": finding.code,
        "ruleIndex": rule,
        "level": _LEVELS[finding.severity],
        "message": {"text": _format_message(located)},
        "locations": [_build_location(located)],
        "partialFingerprints": {_FINGERPRINT: located.fingerprint},
    }


def _format_message(located: LocatedFinding) -> str:
    """Return the message of a finding.

    For a finding in a package, the message starts with the location in the package, because the SARIF location is the
    location of the package owner.
    """
    location, message = located.finding.location, located.finding.message
    if not location.package:
        return message
    file = f"{location.file}:{location.line}" if location.file and location.line else location.file
    name = format_object_reference(location.object)
    is_redundant = location.object == location.owner or message.startswith((location.object, name))
    parts = (location.package, "" if located.is_exact else file, "" if is_redundant else name)
    return f"{' '.join(filter(None, parts))}: {message}"


def _build_location(located: LocatedFinding) -> dict[str, Any]:
    # Use line 1 for a finding about a whole file, because SARIF requires a line.
    region = {"startLine": located.line or 1, **({"startColumn": located.column} if located.column else {})}
    place: dict[str, Any] = {"artifactLocation": {"uri": quote_uri_path(located.path)}, "region": region}
    names = _list_logical_names(located.finding.location)
    logical = {"logicalLocations": [{"fullyQualifiedName": name} for name in names]} if names else {}
    return {"physicalLocation": place, **logical}


def _list_logical_names(location: SourceLocation) -> list[str]:
    name = " ".join(filter(None, (location.package, location.object, location.pointer)))
    return [text for text in dict.fromkeys((name, location.owner)) if text]


def build_code_quality_report(located: Iterable[LocatedFinding]) -> list[dict[str, Any]]:
    """Return a GitLab Code Quality report: a list of issues, each with a path and a line."""
    return [
        {
            "description": to_one_line(_describe(entry)),
            "check_name": entry.finding.code,
            "fingerprint": entry.fingerprint,
            "severity": _GITLAB_SEVERITIES[entry.finding.severity],
            "location": {"path": entry.path, "lines": {"begin": entry.line or 1}},
        }
        for entry in located
    ]


def _describe(located: LocatedFinding) -> str:
    finding = located.finding
    location = format_location(vars(finding.location)) if finding.location.package else ""
    return f"{location}: {finding.message}" if location else finding.message
