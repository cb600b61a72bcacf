"""A report as JSON data; what is empty is left out."""

from __future__ import annotations

from typing import Any

from reconciler.krm.dates import rfc3339
from reconciler.reporting.report.fleet import (
    Change,
    Disputed,
    Entry,
    Explanation,
    FleetReport,
    Row,
    Value,
    Waiting,
)
from reconciler.reporting.status_file import told


def report_data(report: FleetReport) -> dict[str, Any]:
    """Return the report as JSON data; changes and explanations have keys, by which packages name theirs."""
    return {
        "config": report.config,
        "date": _date(report.seconds or None),
        "counts": dict(report.counts),
        "clusters": [_row(one) for one in report.rows],
        "waiting": [_waiting(one) for one in report.waiting],
        "conflicts": [_disputed(one) for one in report.disputed],
        "changes": [_change(one) for one in report.changes],
        "explanations": [_explanation(one) for one in report.explanations],
        "summary": dict(report.summary),
    }


def _date(seconds: int | None) -> str:
    return "" if seconds is None else rfc3339(seconds)


def _row(row: Row) -> dict[str, Any]:
    packages = [_entry(one) for one in row.entries.values()]
    return {"cluster": row.cluster, **told({"labels": dict(row.labels), "trouble": row.trouble}), "packages": packages}


def _entry(one: Entry) -> dict[str, Any]:
    return told({
        "package": one.place.package, "state": one.state, "version": one.version or None, "since": _date(one.since),
        "conflicts": one.conflicts or None, "unmet": one.unmet or None, "notes": list(one.notes),
        "change": one.change, "explanation": one.explanation,
    })  # fmt: skip


def _waiting(one: Waiting) -> dict[str, Any]:
    fields = {name: value for name, value in vars(one).items() if value}
    command = one.command_for(one.places[:1])
    more = {"packages": one.packages, "places": [*map(str, one.places)], "command": command}
    return told({**fields, "since": _date(one.since), **more})


def _disputed(one: Disputed) -> dict[str, Any]:
    return {**told(vars(one)), "places": [*map(str, one.places)]}


def _change(one: Change) -> dict[str, Any]:
    fields = {name: value for name, value in vars(one).items() if value}
    diffs = [{"path": path, "diff": diff} for path, diff in one.diffs]
    return told({**fields, "since": _date(one.since), "places": [*map(str, one.places)], "diffs": diffs})


def _explanation(one: Explanation) -> dict[str, Any]:
    fields = {name: value for name, value in vars(one).items() if value}
    facts = [{"what": what, "is": words} for what, words in one.facts]
    values = [_value(each) for each in one.values]
    return told({**fields, "places": [*map(str, one.places)], "facts": facts, "values": values})


def _value(one: Value) -> dict[str, Any]:
    return {"resource": one.resource, "pointer": one.pointer, "steps": [told(vars(step)) for step in one.steps]}
