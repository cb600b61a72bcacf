"""Findings as text and JSON data, and the Markdown page of all finding codes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

from reconciler.krm.findings import Finding, FindingCode
from reconciler.krm.numbers import format_count
from reconciler.lazy_dataclasses import dataclass
from reconciler.output.findings.entries import build_finding_entries, sort_findings
from reconciler.output.findings.grouping import FindingGroup, find_root_causes, group_findings
from reconciler.output.text import format_object_reference, shorten, to_one_line

MAX_LINE_CHARACTERS = 1_000
"""The maximum number of characters per finding in text output. JSON output has the whole message."""
_MAX_CONSEQUENCES = 5
_PAGE_HEAD = """\
# Findings

This page lists all finding codes. It is generated from the tables of finding codes in `reconciler/`.

A finding has one of three severities:

- `error`: The finding blocks its scope. The published content of the scope does not change.
- `warning`: The finding blocks nothing, but a person should check it.
- `info`: The finding blocks nothing.

The scope is the unit that an error blocks:

| scope | effect of an error |
|---|---|
| `file` | The file is not read. |
| `object` | The config object is blocked, with all packages that it requests. |
| `package` | One package on one target is blocked. |
| `target` | Nothing is written to the target. |
| `config` | Removals, config proposals or status files of the whole fleet do not change, see the description. |
| `cluster` | Nothing is blocked, but the cluster would reject the resource. |

Only [`validate --rendered`](../how-to/validate-a-config.md) reports findings with the scope `cluster`.

If an error blocks nothing in its context, it has the severity `warning`. Examples:

- an error of a function, because a readiness gate already blocks its draft,
- an error in a file that cannot be merged, because the merge uses one version of the whole file,
- a held deletion while a config file cannot be read, because that file has its own error.

| code | severity | scope | description |
|---|---|---|---|"""


def format_findings(findings: Iterable[Finding]) -> list[str]:
    """Return `location: severity Code: message` for each finding. More than five similar findings share one line.

    The first consequences of a root cause are indented below it. An additional line counts the remaining consequences.
    See `format_location`, `group_findings` and `find_root_causes`.
    """
    return [line for group in group_root_causes(sort_findings(findings)) for line in group.lines]


@dataclass(frozen=True)
class RootCauseGroup:
    """Similar root causes, with the consequences of all these root causes."""

    group: FindingGroup
    consequences: tuple[Finding, ...]

    @property
    def findings(self) -> tuple[Finding, ...]:
        """All findings of the group: the root causes and their consequences."""
        return (*self.group.findings, *self.consequences)

    @property
    def lines(self) -> list[str]:
        """The line of the root causes, and the indented lines of their consequences."""
        groups = list(group_findings(self.consequences))
        listed = [f"  {_format_group(group)}" for group in groups[:_MAX_CONSEQUENCES]]
        rest = sum(len(group.findings) for group in groups[_MAX_CONSEQUENCES:])
        more = [f"  and {format_count(rest, 'more finding')} with this cause; -o json lists all"] if rest else []
        return [_format_group(self.group), *listed, *more]


def group_root_causes(findings: Sequence[Finding]) -> list[RootCauseGroup]:
    """Return the root causes among the findings. Similar root causes form one group."""
    consequences = {cause.finding: cause.consequences for cause in find_root_causes(findings)}
    return [
        RootCauseGroup(group, tuple(chain.from_iterable(consequences[finding] for finding in group.findings)))
        for group in group_findings(list(consequences))
    ]


def _format_group(group: FindingGroup) -> str:
    return "; ".join(filter(None, (_format_finding(group.first), to_one_line(group.summary))))


def format_location(finding: Mapping[str, Any]) -> str:
    """Return the location of a finding from the fields of its entry.

    The location is `file:line`, or the object if there is no file. The location of a finding in a package is
    `repository/package file:line (owner)`.
    """
    file, line, owner, name = (finding.get(field, "") for field in ("file", "line", "owner", "object"))
    place: str = f"{file}:{line}" if file and line else file or format_object_reference(name)
    if not owner or (not file and name == owner):
        return place
    return " ".join(filter(None, (finding.get("package"), place, f"({format_object_reference(owner)})")))


def build_findings_data(findings: Iterable[Finding]) -> list[dict[str, Any]]:
    """Return the findings as JSON data. Fields without a value are omitted. Line numbers start at 1."""
    return [entry.to_data() for entry in build_finding_entries(findings)]


def format_findings_page(codes: Iterable[FindingCode]) -> str:
    """Return the Markdown page with the severity, scope and description of each finding code."""
    rows = [
        f"| `{code.name}` | {code.severity} | {code.scope} | {code.description} |"
        for code in sorted(codes, key=lambda code: code.name)
    ]
    return "\n".join([_PAGE_HEAD, *rows]) + "\n"


def _format_finding(finding: Finding) -> str:
    location = format_location(vars(finding.location))
    # Remove the location from the messages of parsers. These messages begin with the location, because some callers
    # show only the message.
    text = f"{finding.severity.value} {finding.code}: {finding.message.removeprefix(f'{location}: ')}"
    return to_one_line(shorten(f"{location}: {text}" if location else text, MAX_LINE_CHARACTERS))
