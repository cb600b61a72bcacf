"""The first page: what waits for a review, what is blocked, the state of the fleet by label, and recent activity."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby, islice

from reconciler.krm.findings import Severity
from reconciler.lazy_dataclasses import dataclass
from reconciler.output.fleet.activity import ActivityEvent
from reconciler.output.fleet.model import BLOCKED_STATES, FleetIndex
from reconciler.planning.lifecycle.open_drafts import PackageState
from reconciler.server.console.finding_groups import group_findings
from reconciler.server.console.page import PageContent, PageRequest
from reconciler.server.console.target_groups import list_group_labels
from reconciler.service.health import evaluate_health

MAX_ROWS = 10
_WAITING_STATES: tuple[PackageState, ...] = ("draft", "edited", "proposed", "removal")


@dataclass(frozen=True)
class HealthRow:
    """A row of the health table: the package counts of all targets with the same value of a label.

    Attributes:
        ok: The number of packages that are neither waiting nor blocked.
        waiting: The number of packages with a draft.
        blocked: The number of packages that are blocked or held.
    """

    value: str
    targets: int
    ok: int
    waiting: int
    blocked: int

    @property
    def packages(self) -> int:
        """The number of all packages."""
        return self.ok + self.waiting + self.blocked


@dataclass(frozen=True)
class EventGroup:
    """Equal events of one package on several targets. `first` is the newest one.

    Attributes:
        column: The name of the package, with `*` instead of the name of its target. "" for an event about a pass.
        has_page: Whether the package of the first event has a page.
    """

    first: ActivityEvent
    column: str
    targets: tuple[str, ...]
    has_page: bool


def build_page(page: PageRequest) -> PageContent:
    """Build the content of the page."""
    index, request = page.index, page.request
    waiting = [change for change in index.changes if change.state in ("waiting", "proposed")]
    labels = list_group_labels(index.targets)
    label = request.query_params.get("label", "")
    label = label if label in labels else next(iter(labels), "")
    errors = [finding for finding in index.findings if finding.severity is Severity.ERROR]
    return PageContent(
        "fleet.html",
        {
            "waiting": waiting[:MAX_ROWS],
            "waiting_count": len(waiting),
            "oldest": min((change.since for change in waiting if change.since is not None), default=None),
            "recent": list(islice(group_events(_list_recent_events(page), index), MAX_ROWS)),
            "errors": group_findings(errors)[:MAX_ROWS],
            "failed_checks": [check for check in evaluate_health(page.context.state).checks if check.failures],
            "unread": [target for target in index.targets if target.read_error],
            "labels": labels,
            "label": label,
            "health": build_health_rows(index, label)[:MAX_ROWS],
            "draft_count": sum(index.state_counts.get(state, 0) for state in _WAITING_STATES),
        },
        is_from_index=True,
    )


def _list_recent_events(page: PageRequest) -> Iterator[ActivityEvent]:
    """Yield the events. Omit events about single drafts, because the event of a pass contains the number of drafts."""
    events = page.context.activity.list_events(page.whole_index, page.index, page.session.permissions)
    return (event for event in events if not event.actions[0].startswith("draft-"))


def group_events(events: Iterable[ActivityEvent], index: FleetIndex) -> Iterator[EventGroup]:
    """Group consecutive events that differ only in their targets: same action, person, reason and package."""

    def get_key(event: ActivityEvent) -> tuple[object, ...]:
        row = index.find_row(event.target, event.package)
        column = row.column if row else event.package
        return column, event.actions, event.person, event.revision, event.message, event.reason

    for key, group in groupby(events, get_key):
        items = list(group)
        has_page = index.find_row(items[0].target, items[0].package) is not None
        yield EventGroup(items[0], str(key[0]), tuple(event.target for event in items), has_page)


def build_health_rows(index: FleetIndex, label: str) -> list[HealthRow]:
    """Return one row for each value of a label, the row with the most blocked packages first."""
    targets: Counter[str] = Counter()
    states: dict[str, Counter[str]] = {}
    for target in index.targets:
        value = target.labels.get(label, "")
        targets[value] += 1
        states.setdefault(value, Counter()).update(target.state_counts)
    rows = [HealthRow(value, targets[value], *_count_states(counts)) for value, counts in states.items()]
    return sorted(rows, key=lambda row: (-row.blocked, -row.waiting, row.value))


def _count_states(counts: Mapping[str, int]) -> tuple[int, int, int]:
    waiting = sum(counts.get(state, 0) for state in _WAITING_STATES)
    blocked = sum(counts.get(state, 0) for state in BLOCKED_STATES)
    return sum(counts.values()) - waiting - blocked, waiting, blocked
