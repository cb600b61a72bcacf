"""Tests of the problems of a fleet in the report. Invalid entries of `summary.yaml` are omitted."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.output.status.result import (
    ProblemLine,
    format_problem_counts,
    list_problem_lines,
    read_valid_status,
)

NOT_READY = {"object": "PackageVariant/default/gw", "reason": "Error", "message": "it broke"}
FINDING = {"severity": "warning", "code": "Odd", "message": "it is odd", "file": "a.yaml", "line": 3}
TOTALS = {"packages": 2, "targets": 1, "drafted": 1}


def test_errors_come_before_warnings() -> None:
    error = {**FINDING, "severity": "error", "package": "eu-1/gw"}
    status = read_valid_status({"totals": TOTALS, "findings": [FINDING, error], "notReady": [NOT_READY]})

    assert list_problem_lines(status) == (
        ProblemLine("not ready", "PackageVariant default/gw", "Error", "it broke"),
        ProblemLine("error", "eu-1/gw a.yaml:3", "Odd", "it is odd"),
        ProblemLine("warning", "a.yaml:3", "Odd", "it is odd"),
    )


@pytest.mark.parametrize(
    "summary",
    [
        pytest.param({}, id="nothing"),
        pytest.param({"findings": "x", "notReady": {}, "totals": []}, id="no-lists"),
        pytest.param({"findings": [FINDING], "totals": {"packages": "many"}}, id="no-number"),
    ],
)
def test_status_without_totals_is_unknown(summary: dict[str, Any]) -> None:
    assert read_valid_status(summary) is None
    assert list_problem_lines(None) == ()


def test_invalid_entries_are_omitted_and_unknown_fields_are_ignored() -> None:
    findings = [1, {"severity": "loud"}, {**FINDING, "message": {}}, {**FINDING, "more": 1}]
    status = read_valid_status(
        {"totals": {**TOTALS, "more": 1}, "findings": findings, "notReady": ["x", {"object": 1}]}
    )

    assert list_problem_lines(status) == (ProblemLine("warning", "a.yaml:3", "Odd", "it is odd"),)


def test_totals_as_text() -> None:
    status = read_valid_status({"totals": TOTALS})
    earlier = read_valid_status({"totals": {"packages": 2, "destinations": 1, "drafted": 1}})

    assert status is not None
    assert status.totals_line == "2 packages on 1 target: 1 drafted"
    assert earlier == status


def test_problems_are_counted_by_kind() -> None:
    kinds = ("warning", "not ready", "error", "info", "error")

    assert (
        format_problem_counts(ProblemLine(kind, "", "", "") for kind in kinds)
        == "1 not ready, 2 errors, 1 warning, 1 info"
    )
    assert format_problem_counts([]) == ""
