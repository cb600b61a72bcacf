"""Tests of the problems in a summary. Invalid entries are omitted."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.output.status.summary import (
    SummaryProblem,
    format_problem_counts,
    format_summary_totals,
    list_summary_problems,
)

NOT_READY = {"object": "PackageVariant/default/gw", "reason": "Error", "message": "it broke"}
FINDING = {"severity": "warning", "code": "Odd", "message": "it is odd", "file": "a.yaml", "line": 3}


def test_errors_come_before_warnings() -> None:
    error = {**FINDING, "severity": "error", "package": "eu-1/gw"}

    assert list_summary_problems({"findings": [FINDING, error], "notReady": [NOT_READY]}) == (
        SummaryProblem("not ready", "PackageVariant default/gw", "Error", "it broke"),
        SummaryProblem("error", "eu-1/gw a.yaml:3", "Odd", "it is odd"),
        SummaryProblem("warning", "a.yaml:3", "Odd", "it is odd"),
    )


@pytest.mark.parametrize(
    "summary",
    [
        pytest.param({}, id="nothing"),
        pytest.param({"findings": "x", "notReady": {}, "totals": []}, id="no-lists"),
        pytest.param({"findings": [1, {"severity": "loud"}], "totals": {"packages": "many"}}, id="no-records"),
    ],
)
def test_invalid_entries_are_omitted(summary: dict[str, Any]) -> None:
    assert (list_summary_problems(summary), format_summary_totals(summary)) == ((), "")


def test_totals_as_text() -> None:
    summary = {"totals": {"packages": 2, "targets": 1, "drafted": 1}}
    earlier = {"totals": {"packages": 2, "destinations": 1, "drafted": 1}}

    assert format_summary_totals(summary) == "2 packages on 1 target: 1 drafted"
    assert format_summary_totals(earlier) == format_summary_totals(summary)


def test_problems_are_counted_by_kind() -> None:
    kinds = ("warning", "not ready", "error", "info", "error")

    assert (
        format_problem_counts(SummaryProblem(kind, "", "", "") for kind in kinds)
        == "1 not ready, 2 errors, 1 warning, 1 info"
    )
    assert format_problem_counts([]) == ""
