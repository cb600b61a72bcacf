"""Publications as CSV, for auditors."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from io import StringIO

from reconciler.krm.times import format_rfc3339
from reconciler.output.fleet.model import PackageRow
from reconciler.output.fleet.publications import Publication

_COLUMNS = ("time", "person", "target", "package", "revision", "commit", "message", "reason")
# Spreadsheet programs run a cell that starts with one of these characters as a formula.
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n")


def format_publications_csv(rows: Iterable[tuple[PackageRow, Publication]]) -> str:
    """Return one line for each publication, and a line with the names of the columns (RFC 4180).

    A text that a spreadsheet program would run as a formula starts with `'`.
    """
    text = StringIO()
    writer = csv.writer(text)
    writer.writerow(_COLUMNS)
    for row, publication in rows:
        values = (
            format_rfc3339(publication.seconds), publication.author, row.target, row.package,
            str(publication.number), publication.commit, publication.subject, publication.reason,
        )  # fmt: skip
        writer.writerow(map(_disable_formula, values))
    return text.getvalue()


def _disable_formula(value: str) -> str:
    return f"'{value}" if value.startswith(_FORMULA_STARTS) else value
