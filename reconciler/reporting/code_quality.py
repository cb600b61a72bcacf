"""GitLab's Code Quality report: findings as its merge requests show them, at the line."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from reconciler.krm.findings import Severity
from reconciler.reporting.findings import place_words
from reconciler.reporting.located import Located
from reconciler.reporting.values import one_line

# GitLab's words from info to blocker; what withholds output is as bad as it gets short of stopping GitLab
_SEVERITIES = {Severity.ERROR: "critical", Severity.WARNING: "minor", Severity.INFO: "info"}


def code_quality(located: Iterable[Located]) -> list[dict[str, Any]]:
    """Return the report: a list of issues, each with a path of the repository and a line."""
    return [
        {
            "description": one_line(_described(one)),
            "check_name": one.finding.code,
            "fingerprint": one.fingerprint,
            "severity": _SEVERITIES[one.finding.severity],
            "location": {"path": one.path, "lines": {"begin": one.line or 1}},
        }
        for one in located
    ]


def _described(one: Located) -> str:
    where = one.finding.where
    place = place_words({name: value for name, value in vars(where).items() if value}) if where.package else ""
    return f"{place}: {one.finding.message}" if place else one.finding.message
