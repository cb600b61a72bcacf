"""Tests of changes as text."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.output.fleet.fleet_text import format_change_list_text


def create_change(count: int, **variant: Any) -> dict[str, Any]:
    drafts = [{"target": f"t{number}"} for number in range(count)]
    return {
        "title": "update web v1 → v2", "owner": "", "risk": "high", "state": "blocked", "targets": count,
        "variants": [{"drafts": drafts, **variant}],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "findings", "expected"),
    [
        pytest.param([], [], ["no draft is open"], id="none"),
        pytest.param([], ["eu-7: no route"], ["error: eu-7: no route", "no draft is open"], id="unreadable-target"),
        pytest.param(
            [create_change(1, riskReasons=["2 conflicts\x1b[31m"])], [],
            ["HIGH   update web v1 → v2: 1 target, blocked", "  1 target: t0", "    2 conflicts\\x1b[31m",
             "1 change in 1 draft"],
            id="reasons",
        ),
        pytest.param(
            [create_change(12)], [],
            ["HIGH   update web v1 → v2: 12 targets, blocked",
             "  12 targets: t0, t1, t2, t3, t4, t5, t6, t7, t8, t9 and 2 more", "1 change in 12 drafts"],
            id="many-targets",
        ),
    ],
)  # fmt: skip
def test_text(changes: list[dict[str, Any]], findings: list[str], expected: list[str]) -> None:
    data = {"items": changes, "findings": [{"message": message} for message in findings]}

    assert format_change_list_text(data).splitlines() == expected
