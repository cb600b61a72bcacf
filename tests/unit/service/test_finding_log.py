"""Tests of the log of findings: which findings of a pass are logged, and with which fields."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from structlog.testing import capture_logs

from reconciler.krm.findings import Finding, Severity, SourceLocation
from reconciler.service.finding_log import FindingLog

PLACE = SourceLocation("a.yaml", 3, "ConfigMap/default/a", "/spec", owner="PackageVariant/default/a")
FINDING = Finding("SomeCode", "some message", PLACE)


def update(finding_log: FindingLog, *findings: Finding, now: float = 0.0) -> list[dict[str, Any]]:
    """Return the events of an update, without the fields that `PLACE` has."""
    with capture_logs() as events:
        has_changed = finding_log.update(findings, now)
    assert has_changed == bool(events)
    return [
        {name: value for name, value in event.items() if name not in ("file", "line", "object", "pointer", "owner")}
        for event in events
    ]


@pytest.mark.parametrize("severity", Severity, ids=str)
def test_a_new_finding_is_logged_at_the_level_of_its_severity(severity: Severity) -> None:
    with capture_logs() as events:
        FindingLog().update([replace(FINDING, severity=severity)], 0)

    assert events == [
        {
            "log_level": severity.value,
            "event": "finding_reported",
            "code": "SomeCode",
            "severity": severity.value,
            "message": "some message",
            "file": "a.yaml",
            "line": 3,
            "object": "ConfigMap/default/a",
            "pointer": "/spec",
            "owner": "PackageVariant/default/a",
        }
    ]


@pytest.mark.emits("finding_reported", "finding_resolved")
def test_a_finding_is_logged_once_until_it_is_resolved() -> None:
    finding_log = FindingLog()
    first = update(finding_log, FINDING, now=10)
    moved = update(finding_log, replace(FINDING, location=replace(PLACE, line=90)), now=20)
    gone = update(finding_log, now=25.5)
    again = update(finding_log, FINDING, now=30)

    assert [event["event"] for event in (*first, *again)] == ["finding_reported"] * 2
    assert moved == []
    assert gone == [{"event": "finding_resolved", "log_level": "info", "code": "SomeCode", "open_seconds": 15.5}]


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param(replace(FINDING, message="other message"), id="message"),
        pytest.param(replace(FINDING, severity=Severity.INFO), id="severity"),
    ],
)
def test_a_changed_finding_is_logged_again_and_is_not_resolved(changed: Finding) -> None:
    finding_log = FindingLog()
    update(finding_log, FINDING)

    assert [event["event"] for event in update(finding_log, changed)] == ["finding_reported"]
    assert [event["event"] for event in update(finding_log)] == ["finding_resolved"]


def test_similar_findings_are_one_event_with_a_limited_number_of_targets() -> None:
    findings = [
        Finding("SomeCode", "same", SourceLocation("p.yaml", package=f"cluster-{number:03}/gateway"))
        for number in range(300)
    ]
    finding_log = FindingLog()
    (reported,) = update(finding_log, *findings)
    (resolved,) = update(finding_log, now=4)

    targets = [f"cluster-{number:03}" for number in range(20)]
    assert (reported["count"], reported["targets"], len(reported["examples"])) == (300, targets, 5)
    assert (resolved["count"], resolved["targets"], resolved["open_seconds"]) == (300, targets, 4)


def test_a_finding_in_a_package_names_its_target() -> None:
    (event,) = update(FindingLog(), replace(FINDING, location=SourceLocation("p.yaml", package="berlin/net/gateway")))

    assert (event["target"], event["package"]) == ("berlin", "berlin/net/gateway")


@pytest.mark.parametrize(
    ("length", "expected"),
    [
        pytest.param(2_000, "x" * 2_000, id="at-the-limit"),
        pytest.param(10_933, "x" * 1_980 + "… (10933 characters)", id="above-the-limit"),
    ],
)
def test_a_long_message_is_cut(length: int, expected: str) -> None:
    (event,) = update(FindingLog(), replace(FINDING, message="x" * length))

    assert (event["message"], len(event["message"])) == (expected, 2_000)
