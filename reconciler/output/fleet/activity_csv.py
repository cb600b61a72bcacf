"""The activity as CSV, for auditors."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from io import StringIO

from reconciler.krm.times import format_rfc3339
from reconciler.output.fleet.activity import ActivityEvent

_COLUMNS = ("time", "person", "target", "package", "revision", "commit", "message", "reason", "actions")
# Spreadsheet programs run a cell that starts with one of these characters as a formula.
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n")


def format_activity_csv(events: Iterable[ActivityEvent]) -> str:
    """Return one line for each event, and a line with the names of the columns (RFC 4180).

    If a spreadsheet program would run a text as a formula, `'` is put before the text.
    """
    text = StringIO()
    writer = csv.writer(text)
    writer.writerow(_COLUMNS)
    for event in events:
        values = (
            format_rfc3339(event.seconds), event.person, event.target, event.package, str(event.revision or ""),
            event.commit, event.message, event.reason, " ".join(event.actions),
        )  # fmt: skip
        writer.writerow(map(_disable_formula, values))
    return text.getvalue()


def _disable_formula(value: str) -> str:
    return f"'{value}" if value.startswith(_FORMULA_STARTS) else value
