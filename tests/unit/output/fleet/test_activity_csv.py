"""Tests of the activity as CSV."""

from __future__ import annotations

import csv
import io

import pytest

from reconciler.output.fleet.activity import ActivityEvent
from reconciler.output.fleet.activity_csv import format_activity_csv


@pytest.mark.parametrize(
    ("reason", "cell"),
    [
        pytest.param('two lines\n"and quotes", commas', 'two lines\n"and quotes", commas', id="quoted"),
        pytest.param("=HYPERLINK(1)", "'=HYPERLINK(1)", id="formula"),
        pytest.param("-2+3", "'-2+3", id="minus"),
        pytest.param("\t=1", "'\t=1", id="tab"),
        pytest.param("a=1", "a=1", id="text"),
    ],
)
def test_a_spreadsheet_program_runs_no_text_of_a_person(reason: str, cell: str) -> None:
    event = ActivityEvent(
        ("approved", "published"), 1_000_000_000, 0, "berlin", "web", "Ada", "Approve", reason, "c0ffee", 3,
    )  # fmt: skip
    text = format_activity_csv([event])
    (row,) = csv.DictReader(io.StringIO(text, newline=""))

    assert row == {
        "time": "2001-09-09T01:46:40Z", "person": "Ada", "target": "berlin", "package": "web", "revision": "3",
        "commit": "c0ffee", "message": "Approve", "reason": cell,
        "actions": "approved published",
    }  # fmt: skip
