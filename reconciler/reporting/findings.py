"""Findings as people and tools read them: lines and JSON, and the page of their codes (design 10.24)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from reconciler.krm.findings import Code, Finding, Severity
from reconciler.reporting.finding_groups import FindingGroup, group_findings
from reconciler.reporting.root_causes import causes_of, root_causes
from reconciler.reporting.values import count, one_line, shorten

MAX_LINE = 1_000
"""The characters of one finding on a line for people; data has the whole message."""
_MAX_CONSEQUENCES = 5
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
    """Return `place: severity Code: message` for each finding; more than five similar ones are one line.

    Consequences are indented below their root cause, and counted beyond the first ones. See `place_words`,
    `group_findings` and `root_causes`.
    """
    return [line for one in cause_groups(in_order(findings)) for line in one.lines]


@dataclass(frozen=True)
class CauseGroup:
    """Similar root causes, with the consequences of all of them."""

    group: FindingGroup
    consequences: tuple[Finding, ...]

    @property
    def findings(self) -> tuple[Finding, ...]:
        """All findings that the group lists."""
        return (*self.group.findings, *self.consequences)

    @property
    def lines(self) -> list[str]:
        """The line of the root causes, and the indented lines of their consequences."""
        groups = list(group_findings(self.consequences))
        shown = [f"  {_group_line(one)}" for one in groups[:_MAX_CONSEQUENCES]]
        hidden = sum(len(one.findings) for one in groups[_MAX_CONSEQUENCES:])
        more = [f"  and {count(hidden, 'more finding')} with this cause; -o json lists them"] if hidden else []
        return [_group_line(self.group), *shown, *more]


def cause_groups(findings: Sequence[Finding]) -> list[CauseGroup]:
    """Return the root causes of findings, similar ones together, in the order of the findings."""
    below = {one.finding: one.consequences for one in root_causes(findings)}
    return [
        CauseGroup(group, tuple(chain.from_iterable(below[one] for one in group.findings)))
        for group in group_findings(list(below))
    ]


def _group_line(group: FindingGroup) -> str:
    return "; ".join(filter(None, (_line(group.first), one_line(group.summary))))


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
    """Return the findings as JSON data; what is unknown is left out, `line` counts from 1.

    `causedBy` names the root cause of a finding that is a consequence, by its code and place.
    """
    ordered = in_order(findings)
    causes = causes_of(ordered)
    return [finding_data(one) | cause_data(causes.get(one)) for one in ordered]


def cause_data(cause: Finding | None) -> dict[str, Any]:
    """Return the reference to a root cause as JSON data, empty without one."""
    if cause is None:
        return {}
    where = {name: value for name in ("file", "line", "object") if (value := getattr(cause.where, name))}
    return {"causedBy": {"code": cause.code, **where}}


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
    return one_line(shorten(f"{place}: {told}" if place else told, MAX_LINE))
