"""The filters of the lists. The console and the API select the items of a list with the same query parameters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, get_args

from starlette.datastructures import QueryParams

from reconciler.krm.findings import Finding, Severity
from reconciler.krm.selectors import parse_label_query
from reconciler.output.fleet.model import CHANGE_STATES, FleetIndex, ReviewChange, TargetEntry
from reconciler.output.fleet.risk import RISK_LEVELS
from reconciler.planning.lifecycle.open_drafts import PACKAGE_STATES
from reconciler.reconcile.remotes.availability import RemoteState
from reconciler.server.console.listing import read_choice, read_text

RemoteStateName = Literal["ok", "failing"]
REMOTE_STATES: tuple[RemoteStateName, ...] = get_args(RemoteStateName)
SEVERITIES: Sequence[str] = tuple(severity.value for severity in Severity)


def filter_changes(index: FleetIndex, query: QueryParams, selector: str) -> Iterable[ReviewChange]:
    """Yield the changes that match the query parameters `state`, `risk` and `q`, and the selector of targets."""
    state = read_choice(query, "state", CHANGE_STATES)
    level = read_choice(query, "risk", RISK_LEVELS)
    text = read_text(query, "q").lower()
    targets = select_targets(index, selector) if selector else frozenset()
    for change in index.changes:
        if (
            (not state or any(member.state == state for member in change.members))
            and (not level or change.level == level)
            and (not text or text in f"{change.title} {change.owner}".lower())
            and (not selector or any(member.target in targets for member in change.members))
        ):
            yield change


def select_targets(index: FleetIndex, selector: str) -> frozenset[str]:
    """Return the names of the targets that match a valid label selector."""
    matches = parse_label_query(selector).matches
    return frozenset(target.name for target in index.targets if matches(target.labels))


def filter_targets(index: FleetIndex, query: QueryParams, selector: str) -> Iterable[TargetEntry]:
    """Yield the targets that match the query parameters `q` and `state`, and the label selector."""
    text = read_text(query, "q").lower()
    state = read_choice(query, "state", PACKAGE_STATES)
    matches = parse_label_query(selector).matches
    for target in index.targets:
        has_text = not text or text in target.name.lower()
        if has_text and (not state or state in target.state_counts) and matches(target.labels):
            yield target


def filter_findings(findings: Iterable[Finding], query: QueryParams) -> Iterator[Finding]:
    """Yield the findings that match the query parameters `severity`, `code` and `q`."""
    severity = read_choice(query, "severity", SEVERITIES)
    code, text = read_text(query, "code"), read_text(query, "q").lower()
    for finding in findings:
        if severity not in ("", finding.severity.value) or code not in ("", finding.code):
            continue
        if not text or text in _format_finding(finding):
            yield finding


def filter_remotes(remotes: Iterable[RemoteState], query: QueryParams) -> Iterator[RemoteState]:
    """Yield the remotes that match the query parameters `state` and `q`."""
    state, text = read_choice(query, "state", REMOTE_STATES), read_text(query, "q").lower()
    for remote in remotes:
        has_text = not text or text in f"{remote.url} {remote.error.message if remote.error else ''}".lower()
        if state in ("", get_remote_state(remote)) and has_text:
            yield remote


def get_remote_state(remote: RemoteState) -> RemoteStateName:
    """Return whether the last fetch of a remote succeeded."""
    return "failing" if remote.error else "ok"


def _format_finding(finding: Finding) -> str:
    location = finding.location
    return f"{finding.message} {location.object} {location.package} {location.file}".lower()
