"""The log of findings: each finding is logged when it appears or its message changes, and when it is gone."""

from __future__ import annotations

from collections.abc import Iterable

from reconciler.krm.findings import Finding, Severity
from reconciler.output.findings.grouping import FindingGroup, group_findings
from reconciler.telemetry.event_log import log

MAX_MESSAGE_CHARACTERS = 2_000
MAX_TARGETS = 20


_Key = tuple[str, ...]


class FindingLog:
    """Compares the findings of each pass with the findings of the previous pass, and logs the differences."""

    def __init__(self) -> None:
        # The findings of the last pass, each with the time at which it was first found.
        self._known: dict[_Key, tuple[Finding, float]] = {}

    def update(self, findings: Iterable[Finding], now: float) -> bool:
        """Log the differences from the previous pass, and return whether there are differences.

        Args:
            findings: The findings of this pass.
            now: The seconds of a monotonic clock.
        """
        current = {_get_key(finding): finding for finding in findings}
        new = [finding for key, finding in current.items() if key not in self._known]
        subjects = {_get_subject(key) for key in current}
        gone = [known for key, known in self._known.items() if key not in current]
        resolved = {id(finding): time for finding, time in gone if _get_subject(_get_key(finding)) not in subjects}
        for group in group_findings(new):
            _log_reported(group)
        for group in group_findings([finding for finding, _ in gone if id(finding) in resolved]):
            _log_resolved(group, now - min(resolved[id(finding)] for finding in group.findings))
        self._known = {key: (finding, self._known.get(key, (finding, now))[1]) for key, finding in current.items()}
        return bool(new or gone)


def _get_key(finding: Finding) -> _Key:
    """Return the severity, message and subject of a finding, without its line number, which changes with edits."""
    place = finding.location
    return (
        finding.severity, finding.message, finding.code, place.file, place.object, place.pointer, place.package,
        place.owner,
    )  # fmt: skip


def _get_subject(key: _Key) -> _Key:
    """Return the key without severity and message.

    With this key, a finding is not logged as resolved if only its message or severity has changed.
    """
    return key[2:]


def _log_reported(group: FindingGroup) -> None:
    finding = group.first
    methods = {Severity.ERROR: log.error, Severity.WARNING: log.warning, Severity.INFO: log.info}
    severity, message = finding.severity, _shorten(finding.message)
    methods[severity](
        "finding_reported",
        code=finding.code,
        severity=severity.value,
        message=message,
        **{name: value for name, value in vars(finding.location).items() if value},
        **_describe_group(group),
    )


def _log_resolved(group: FindingGroup, open_seconds: float) -> None:
    location = {name: value for name, value in vars(group.first.location).items() if value}
    log.info(
        "finding_resolved",
        code=group.first.code,
        open_seconds=round(open_seconds, 3),
        **location,
        **_describe_group(group),
    )


def _describe_group(group: FindingGroup) -> dict[str, object]:
    """Return the targets of the findings, and for several findings also their number and examples."""
    packages = (finding.location.package for finding in group.findings)
    targets = [*dict.fromkeys(package.partition("/")[0] for package in packages if package)]
    if len(group.findings) == 1:
        return {"target": targets[0]} if targets else {}
    fields: dict[str, object] = {"count": len(group.findings), "examples": list(group.examples)}
    return {**fields, "targets": targets[:MAX_TARGETS]} if targets else fields


def _shorten(message: str) -> str:
    """Cut a long message, and append its original length."""
    if len(message) <= MAX_MESSAGE_CHARACTERS:
        return message
    note = f"… ({len(message)} characters)"
    return message[: MAX_MESSAGE_CHARACTERS - len(note)] + note
