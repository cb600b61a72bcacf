"""What a summary says is not well; what people made of it is told or left out."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.reporting.report.troubles import Trouble, count_words, totals_of, troubles_of

NOT_READY = {"object": "PackageVariant/default/gw", "reason": "Error", "message": "it broke"}
FINDING = {"severity": "warning", "code": "Odd", "message": "it is odd", "file": "a.yaml", "line": 3}


def test_errors_come_before_warnings() -> None:
    error = {**FINDING, "severity": "error", "package": "eu-1/gw"}

    assert troubles_of({"findings": [FINDING, error], "notReady": [NOT_READY]}) == (
        Trouble("not ready", "PackageVariant/default/gw", "Error", "it broke"),
        Trouble("error", "eu-1/gw a.yaml:3", "Odd", "it is odd"),
        Trouble("warning", "a.yaml:3", "Odd", "it is odd"),
    )


@pytest.mark.parametrize(
    "summary",
    [
        pytest.param({}, id="nothing"),
        pytest.param({"findings": "x", "notReady": {}, "totals": []}, id="no-lists"),
        pytest.param({"findings": [1, {"severity": "loud"}], "totals": {"packages": "many"}}, id="no-records"),
    ],
)
def test_what_is_no_record_is_left_out(summary: dict[str, Any]) -> None:
    assert (troubles_of(summary), totals_of(summary)) == ((), "")


def test_totals_are_told_in_words() -> None:
    assert (
        totals_of({"totals": {"packages": 2, "destinations": 1, "drafted": 1}})
        == "2 packages on 1 destination: 1 drafted"
    )


def test_troubles_are_counted_by_kind() -> None:
    kinds = ("warning", "not ready", "error", "info", "error")

    assert count_words(Trouble(kind, "", "", "") for kind in kinds) == "1 not ready, 2 errors, 1 warning, 1 info"
    assert count_words([]) == ""
