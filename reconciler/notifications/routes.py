"""Routes: they select the messages of a channel by event, severity, target, tenant and package.

A route can have quiet hours, in which it sends no message.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime, time
from fnmatch import fnmatchcase
from functools import cached_property
from zoneinfo import ZoneInfo

from reconciler.krm.findings import Severity
from reconciler.krm.json_text import compute_hash
from reconciler.krm.selectors import matches_label_query
from reconciler.lazy_dataclasses import dataclass
from reconciler.notifications.events import DEFAULT_EVENTS, RECOVERIES, Event
from reconciler.notifications.observation import SEVERITIES, Condition

_QUIET_HOURS = re.compile(r"([01]\d|2[0-3]):([0-5]\d)-([01]\d|2[0-3]):([0-5]\d)(?: (\S+))?", re.ASCII)
_ROUTE_ID_LENGTH = 12
_EVENTS_ABOUT_DRAFTS = frozenset({Event.PUBLISHED, Event.REJECTED, Event.REVIEW_OVERDUE, Event.DRAFT_CONFLICT})


@dataclass(frozen=True)
class QuietHours:
    """A period of each day in which a route sends nothing. It can include midnight."""

    start: time
    end: time
    zone: str = "UTC"

    def contains(self, seconds: float) -> bool:
        """Return whether a time, in seconds since 1970, is in the period."""
        now = datetime.fromtimestamp(seconds, UTC).astimezone(ZoneInfo(self.zone)).time()
        if self.start <= self.end:
            return self.start <= now < self.end
        return now >= self.start or now < self.end


def parse_quiet_hours(text: str) -> QuietHours | None:
    """Parse quiet hours such as `22:00-06:00 Europe/Berlin`. The default zone is UTC. Return None for "".

    Raises:
        ValueError: The text has a different form, or the time zone is unknown.
    """
    if not text:
        return None
    match = _QUIET_HOURS.fullmatch(text)
    if not match:
        raise ValueError('must be a period with an optional time zone, for example "22:00-06:00 Europe/Berlin"')
    start_hour, start_minute, end_hour, end_minute = map(int, match.groups()[:4])
    zone = match[5] or "UTC"
    try:
        ZoneInfo(zone)
    except (LookupError, ValueError, OSError):
        raise ValueError(f'must be the name of a time zone, for example "Europe/Berlin", but is "{zone}"') from None
    return QuietHours(time(start_hour, start_minute), time(end_hour, end_minute), zone)


@dataclass(frozen=True)
class Route:
    """The messages that one channel receives.

    Attributes:
        events: The events. If empty, the default events are used.
        severity: The lowest severity.
        targets: A label query for targets. "" selects all targets.
        packages: Globs of package paths. If empty, all packages are selected.
        digest_minutes: The time for which messages are collected. 0 sends each message separately.
        tenants: The names of tenants. If empty, the items of all tenants and of the platform team are selected.
    """

    channel: str
    events: tuple[Event, ...] = ()
    severity: Severity = Severity.INFO
    targets: str = ""
    packages: tuple[str, ...] = ()
    quiet_hours: QuietHours | None = None
    digest_minutes: int = 0
    tenants: tuple[str, ...] = ()

    @cached_property
    def id(self) -> str:
        """The ID of the route in the ledger. It depends on the messages that the route selects, and not on the times at
        which it sends them.
        """
        data = [self.channel, sorted(self.selected_events), self.severity.value, self.targets, sorted(self.packages)]
        # Omit an empty field, so that routes without tenants keep their IDs.
        data += [sorted(self.tenants)] if self.tenants else []
        return compute_hash(data)[:_ROUTE_ID_LENGTH]

    @cached_property
    def selected_events(self) -> frozenset[Event]:
        """All events that this route sends."""
        return frozenset(self.events or DEFAULT_EVENTS)

    @cached_property
    def observed_events(self) -> frozenset[Event]:
        """The selected events, and the events that are necessary to detect them.

        For example, the end of a condition can be detected only if its start is observed.
        """
        events = set(self.selected_events)
        events |= {start for start, end in RECOVERIES.items() if end in events}
        if events & _EVENTS_ABOUT_DRAFTS:
            events.add(Event.DRAFTS_WAITING)
        return frozenset(events)

    def matches_severity(self, severity: Severity) -> bool:
        """Return whether a severity is at least the severity of this route."""
        return SEVERITIES.index(severity) >= SEVERITIES.index(self.severity)

    def matches_target(self, target: str, labels: Mapping[str, str]) -> bool:
        """Return whether the route selects a target.

        If the route has `targets`, it does not select "", which stands for no target.
        """
        return not self.targets or bool(target and matches_label_query(self.targets, labels))

    def matches_tenant(self, tenant: str) -> bool:
        """Return whether the route selects a tenant. A route with `tenants` selects no items of the platform team."""
        return not self.tenants or tenant in self.tenants

    def matches_package(self, package: str) -> bool:
        """Return whether the route selects a package.

        If the route has `packages`, it does not select "", which stands for no package.
        """
        return not self.packages or bool(package and any(fnmatchcase(package, glob) for glob in self.packages))

    def matches_condition(self, condition: Condition) -> bool:
        """Return whether the route selects a condition by its event and its severity."""
        return condition.event in self.selected_events and self.matches_severity(condition.severity)
