from __future__ import annotations

from typing import Any

import pytest

from reconciler.output.status.last_pass import UNKNOWN
from reconciler.output.status.result import format_status_text, read_status_result
from tests.unit.output.builders import read_json

SUMMARY: dict[str, Any] = {
    "totals": {"targets": 2, "packages": 3, "drafted": 0, "blocked": 1},
    "notReady": [{"object": "PackageVariant/default/x", "reason": "Error", "message": "no\nway"}],
    "gated": [
        {"object": "PackageVariant/default/y", "reason": "RenderFailed", "message": "no starlark", "unmetGates": ["A"]}
    ],
    "held": [{"package": "eu-1/old", "reason": "DeletionHeld", "message": "kept"}],
    "leaving": [
        {"package": "eu-1/gone", "state": "proposed", "branch": "removals/eu-1", "reason": "its owner is gone"},
        {"package": "eu-1/spared", "state": "declined", "branch": "removals/eu-1", "reason": "its owner is gone"},
    ],
    "findings": [
        {"severity": "error", "code": "Broken", "message": "it is", "file": "a.yaml", "line": 3},
        {"severity": "info", "code": "Odd", "message": "is it", "object": "Site/x/y"},
        {"severity": "info", "code": "Bare", "message": "hm"},
        {"severity": "info", "code": "In", "message": "x", "file": "f", "package": "eu-1/p", "owner": "Owner/x/y"},
    ],
}


def test_status_text() -> None:
    assert format_status_text(read_status_result(SUMMARY), 0).splitlines() == [
        UNKNOWN,
        "3 packages on 2 targets: 1 blocked",
        "not ready  PackageVariant default/x: Error: no⏎way",
        "held       eu-1/old: DeletionHeld: kept",
        "removal    eu-1/gone: the removal waits for review on removals/eu-1: its owner is gone",
        "removal    eu-1/spared: the removal was declined: its owner is gone",
        "gated      PackageVariant default/y: RenderFailed: no starlark: gates not met: A",
        "error      a.yaml:3: Broken: it is",
        "info       Site x/y: Odd: is it",
        "info       Bare: hm",
        "info       eu-1/p f (Owner x/y): In: x",
    ]


def test_problems_beyond_the_limit_are_counted() -> None:
    lines = format_status_text(read_status_result({**SUMMARY, "findings": SUMMARY["findings"] * 20}), 0).splitlines()

    assert len(lines) == 43
    assert lines[-1] == "and 45 more; -o json lists all"


@pytest.mark.parametrize(
    ("summary", "expected"),
    [
        pytest.param({}, False, id="empty"),
        pytest.param({"notReady": SUMMARY["notReady"]}, True, id="something-not-ready"),
        pytest.param(
            {"notReady": [{"object": "PluginPreset/default/x", "reason": "AllPluginsReady", "message": "0 of 3"}]},
            False,
            id="drafts-wait-for-a-review",
        ),
        pytest.param({"held": SUMMARY["held"]}, True, id="a-held-deletion"),
        pytest.param({"findings": SUMMARY["findings"]}, True, id="an-error"),
        pytest.param({"findings": SUMMARY["findings"][1:]}, False, id="only-infos"),
        pytest.param({"gated": SUMMARY["gated"]}, False, id="a-gate-is-for-the-reviewer"),
    ],
)
def test_has_problems(summary: dict[str, Any], expected: bool) -> None:
    result = read_status_result({"totals": SUMMARY["totals"], **summary})

    assert result.has_problems is expected


def test_earlier_name_of_the_number_of_targets_is_read() -> None:
    totals = {"destinations": 2, "packages": 3, "drafted": 0, "blocked": 1}

    assert read_status_result({**SUMMARY, "totals": totals}) == read_status_result(SUMMARY)


def test_status_data() -> None:
    data = read_json(read_status_result(SUMMARY))

    assert data["summary"] == {"packages": 3, "targets": 2, "blocked": 1}
    assert data["items"][0] == {
        "type": "notReady", "object": "PackageVariant/default/x", "reason": "Error", "message": "no\nway"
    }  # fmt: skip
    assert [item["type"] for item in data["items"]] == ["notReady", "held", "removal", "removal", "gated"]
    assert data["findings"] == SUMMARY["findings"]


def test_removals_have_one_name_in_text_and_data() -> None:
    result = read_status_result({"totals": {"packages": 3, "targets": 2, "leaving": 2}})

    assert result.totals_line == "3 packages on 2 targets: 2 pending removals"
    assert read_json(result)["summary"] == {"packages": 3, "targets": 2, "pendingRemovals": 2}


@pytest.mark.parametrize(
    "summary",
    [
        pytest.param({}, id="no-totals"),
        pytest.param({"totals": {"packages": "many", "targets": 1}}, id="a-total-that-is-no-number"),
        pytest.param({"totals": SUMMARY["totals"], "held": [{"package": 1}]}, id="a-package-that-is-no-text"),
    ],
)
def test_invalid_summary_is_rejected(summary: dict[str, Any]) -> None:
    with pytest.raises((LookupError, ValueError)):
        read_status_result(summary)
