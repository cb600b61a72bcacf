"""Tests of publications as CSV."""

from __future__ import annotations

import csv
import io

import pytest

from reconciler.output.fleet.publication_csv import format_publications_csv
from reconciler.output.fleet.publications import Publication
from tests.support.fleet_index import create_row


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
    publication = Publication(3, "c0ffee", "Ada", 1_000_000_000, "Approve", reason)
    text = format_publications_csv([(create_row("berlin", "web"), publication)])
    (row,) = csv.DictReader(io.StringIO(text, newline=""))

    assert row == {
        "time": "2001-09-09T01:46:40Z", "person": "Ada", "target": "berlin", "package": "web", "revision": "3",
        "commit": "c0ffee", "message": "Approve", "reason": cell,
    }  # fmt: skip
