"""Findings as people and tools read them: lines and JSON, and the page of their codes (design 10.24)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from reconciler.krm.findings import Code, Finding, Severity
from reconciler.reporting.values import one_line

_WEIGHT = {severity: weight for weight, severity in enumerate(Severity)}
_PAGE_HEAD = """\
# Findings

Every code that a finding can have, written from the tables of the rooms (`codes.py` in each). An error withholds what
its scope says, and leaves what stands as it was: a `file`, an `object` of the config with all it would make, one
`package` on one cluster, a whole `destination`, or nothing but a change of the `config` itself. A warning and an info
withhold nothing, and no more does an error about a `cluster`, which would refuse what goes there: only [`validate
--rendered`](validate.md) tells it. Where what is wrong is told and nothing is withheld for it, an error is shown as a
warning: inside of a draft that is gated, in a file that is taken whole because it cannot be merged, and while a file
of the config cannot be read.

| code | severity | scope | what it says |
|---|---|---|---|"""


def in_order(findings: Iterable[Finding]) -> list[Finding]:
    """Return each finding once: the config's by file and line, then each package's, errors first where they meet."""
    return sorted(
        set(findings), key=lambda one: (one.where.package, one.where, _WEIGHT[one.severity], one.code, one.message)
    )


def finding_lines(findings: Iterable[Finding]) -> list[str]:
    """Return `place: severity Code: message` for each; see `place_words`."""
    return [_line(finding) for finding in in_order(findings)]


def place_words(finding: Mapping[str, Any]) -> str:
    """Return where a finding, as JSON data, is: `file:line`, without a file the object, or nothing.

    Inside a package it is `repository/package file:line (owner)`.
    """
    file, owner = finding.get("file", ""), finding.get("owner", "")
    place: str = f"{file}:{finding['line']}" if file and "line" in finding else file or finding.get("object", "")
    if not owner or place == owner:
        return place
    return " ".join(filter(None, (finding["package"], place, f"({owner})")))


def findings_data(findings: Iterable[Finding]) -> list[dict[str, Any]]:
    """Return the findings as JSON data; what is unknown is left out, `line` counts from 1."""
    return [finding_data(finding) for finding in in_order(findings)]


def finding_data(finding: Finding) -> dict[str, Any]:
    """Return one finding as JSON data."""
    where = {name: value for name, value in vars(finding.where).items() if value}
    return {"severity": finding.severity.value, "code": finding.code, "message": finding.message, **where}


def findings_page(codes: Iterable[Code]) -> str:
    """Return the page that lists every code: its severity, its scope, and what it says."""
    rows = [
        f"| `{code.name}` | {code.severity} | {code.scope} | {code.meaning} |"
        for code in sorted(codes, key=lambda one: one.name)
    ]
    return "\n".join([_PAGE_HEAD, *rows]) + "\n"


def _line(finding: Finding) -> str:
    place = place_words(finding_data(finding))
    # what could not be parsed names its place itself, for where only messages are shown
    told = f"{finding.severity.value} {finding.code}: {finding.message.removeprefix(f'{place}: ')}"
    return one_line(f"{place}: {told}" if place else told)
