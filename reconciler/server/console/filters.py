"""Filters for the lists of the console and the API. Both select the items of a list with the same query parameters."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from typing import Literal, get_args

from starlette.datastructures import QueryParams

from reconciler.krm.findings import Finding, Severity
from reconciler.krm.selectors import parse_label_query
from reconciler.output.fleet.model import CHANGE_STATES, FleetIndex, PackageRow, ReviewChange, TargetEntry
from reconciler.output.fleet.risk import RISK_LEVELS
from reconciler.output.text import format_object_reference, format_value
from reconciler.planning.lifecycle.open_drafts import PACKAGE_STATES
from reconciler.reconcile.remotes.availability import RemoteState
from reconciler.server.console.listing import is_time, parse_day, read_choice, read_names, read_text

RemoteStateName = Literal["ok", "failing"]
REMOTE_STATES: tuple[RemoteStateName, ...] = get_args(RemoteStateName)
CHANGE_FILTERS = ("state", "risk", "target", "q", "tenant", "owner", "since", "on")
TARGET_FILTERS = ("q", "labels", "state", "tenant", "owner")
PACKAGE_FILTERS = ("q", "state", "tenant", "owner")
FINDING_FILTERS = ("severity", "code", "q", "tenant", "owner")
CHANGE_SORT_KEYS: Mapping[str, Callable[[ReviewChange], object]] = {
    "risk": lambda change: change.sort_key,
    "age": lambda change: (change.since is None, change.since, change.key),
    "targets": lambda change: (-len(change.members), change.key),
}
SEVERITIES: Sequence[str] = tuple(severity.value for severity in Severity)


def filter_changes(index: FleetIndex, query: QueryParams, selector: str) -> Iterable[ReviewChange]:
    """Yield the changes that match the query parameters of `CHANGE_FILTERS`, and the selector of targets.

    If the query parameter `since` is not a valid time, yield nothing.
    """
    if check_since(query):
        return
    state = read_choice(query, "state", CHANGE_STATES)
    level = read_choice(query, "risk", RISK_LEVELS)
    text, tenant = read_text(query, "q").lower(), read_text(query, "tenant")
    since, owners = _read_since(query), select_owners(index, query)
    targets = select_targets(index, selector) if selector else None
    names = read_names(query, "on")
    for change in index.changes:
        if (
            (not state or any(member.state == state for member in change.members))
            and (not level or change.level == level)
            and (not text or text in f"{change.title} {change.owner}".lower())
            and (owners is None or change.owner in owners)
            and (not tenant or any(member.tenant == tenant for member in change.members))
            and (targets is None or any(member.target in targets for member in change.members))
            and (not names or any(member.target in names for member in change.members))
            and (not since or any((member.since or 0) >= since for member in change.members))
        ):
            yield change


def sort_changes(changes: Iterable[ReviewChange], query: QueryParams) -> list[ReviewChange]:
    """Return the changes in the order of the query parameter `sort`."""
    key = CHANGE_SORT_KEYS[read_choice(query, "sort", tuple(CHANGE_SORT_KEYS), "risk")]
    return sorted(changes, key=key)  # type: ignore[arg-type]


def check_since(query: QueryParams) -> str:
    """Return the reason why the parameter `since` is not valid. Return "" if it is valid."""
    try:
        _read_since(query)
    except ValueError:
        value = format_value(read_text(query, "since"))
        return f'since: must be a day in UTC such as "2024-05-31", or seconds since 1970, but is "{value}"'
    return ""


def _read_since(query: QueryParams) -> int:
    """Return the time in the parameter `since`, in seconds since 1970. Return 0 if there is none.

    Raises:
        ValueError: The parameter is not valid.
    """
    text = read_text(query, "since")
    if not text:
        return 0
    return int(text) if is_time(text) else parse_day(text)


def select_owners(index: FleetIndex, query: QueryParams) -> Set[str] | None:
    """Return the objects that the query parameter `owner` selects. Return None if there is no such parameter.

    A text that is the name of an object selects this object. Other texts select all objects whose names contain them.
    """
    text = read_text(query, "owner")
    if not text:
        return None
    if text in index.tenants_by_owner:
        return {text}
    return {owner for owner in index.tenants_by_owner if text.lower() in owner.lower()}


def select_targets(index: FleetIndex, selector: str) -> frozenset[str]:
    """Return the names of the targets that match a valid label selector."""
    matches = parse_label_query(selector).matches
    return frozenset(target.name for target in index.targets if matches(target.labels))


def filter_targets(index: FleetIndex, query: QueryParams, selector: str) -> Iterable[TargetEntry]:
    """Yield the targets that match the label selector and the query parameters of `TARGET_FILTERS`.

    The parameters `state`, `tenant` and `owner` apply to packages: one package of the target must match all of them.
    """
    text = read_text(query, "q").lower()
    matches_package = _build_package_check(index, query)
    matches = parse_label_query(selector).matches
    for target in index.targets:
        has_text = not text or text in target.name.lower()
        if has_text and matches(target.labels) and (not matches_package or any(map(matches_package, target.packages))):
            yield target


def filter_packages(index: FleetIndex, rows: Iterable[PackageRow], query: QueryParams) -> Iterator[PackageRow]:
    """Yield the packages that match the query parameters of `PACKAGE_FILTERS`."""
    text = read_text(query, "q").lower()
    matches = _build_package_check(index, query)
    for row in rows:
        if (not text or text in row.package.lower()) and (not matches or matches(row)):
            yield row


def _build_package_check(index: FleetIndex, query: QueryParams) -> Callable[[PackageRow], bool] | None:
    """Return a function that checks whether a package matches the parameters `state`, `tenant` and `owner`.

    Return None if the query contains none of these parameters.
    """
    state, tenant = read_choice(query, "state", PACKAGE_STATES), read_text(query, "tenant")
    owners = select_owners(index, query)
    if not state and not tenant and owners is None:
        return None
    return lambda row: (
        state in ("", row.state) and tenant in ("", row.tenant) and (owners is None or row.owner in owners)
    )


def filter_findings(index: FleetIndex, query: QueryParams) -> Iterator[Finding]:
    """Yield the findings that match the query parameters of `FINDING_FILTERS`."""
    severity = read_choice(query, "severity", SEVERITIES)
    code, text, tenant = read_text(query, "code"), read_text(query, "q").lower(), read_text(query, "tenant")
    owner = read_text(query, "owner")
    for finding in index.findings:
        if severity not in ("", finding.severity.value) or code not in ("", finding.code):
            continue
        if text and text not in _format_finding(finding):
            continue
        if not (owner or tenant) or _has_scope(index, finding, owner, tenant):
            yield finding


def _has_scope(index: FleetIndex, finding: Finding, owner: str, tenant: str) -> bool:
    """Return whether a finding belongs to this owner and to this tenant. The value "" matches every finding.

    A finding belongs to two kinds of owners: to its own object, and to the objects that request its package. It belongs
    to the tenant of its package, its object or its file. An object of the platform team belongs to the tenants of all
    packages that the object requests.
    """
    location = finding.location
    target, _, package = location.package.partition("/")
    row = index.find_row(target, package)
    owners = {format_object_reference(text) for text in (location.object, location.owner) if text}
    owners |= {row.owner} if row else set()
    # The row of a package has no tenant before the first render of the package.
    if name := (row.tenant if row else "") or index.find_finding_tenant(finding):
        tenants = {name}
    else:
        tenants = {""} if row else {name for one in owners for name in index.tenants_by_owner.get(one, ())}
    # If the text is the complete name of an object, select only this object, as in other lists.
    is_name = owner in index.tenants_by_owner
    has_owner = owner in owners if is_name else any(owner.lower() in one.lower() for one in owners)
    return (not owner or has_owner) and (not tenant or tenant in tenants)


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
