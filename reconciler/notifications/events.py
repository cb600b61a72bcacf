"""The events of notifications, and their relations. The settings use the names of the events."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum


class Event(StrEnum):
    """An event that a route can select."""

    DRAFTS_WAITING = "drafts_waiting"
    DRAFT_CONFLICT = "draft_conflict"
    PACKAGE_BLOCKED = "package_blocked"
    PACKAGE_UNBLOCKED = "package_unblocked"
    PUBLISHED = "published"
    REJECTED = "rejected"
    ROLLOUT_ADVANCED = "rollout_advanced"
    ROLLOUT_STOPPED = "rollout_stopped"
    DELETION_HELD = "deletion_held"
    REMOTE_UNAVAILABLE = "remote_unavailable"
    REMOTE_RECOVERED = "remote_recovered"
    PASS_FAILING = "pass_failing"  # noqa: S105 - no password
    PASS_RECOVERED = "pass_recovered"  # noqa: S105 - no password
    CREDENTIAL_EXPIRING = "credential_expiring"
    REVIEW_OVERDUE = "review_overdue"


DEFAULT_EVENTS = tuple(event for event in Event if event not in (Event.PUBLISHED, Event.REJECTED))
"""The events of a route that lists no events."""

RECOVERIES: Mapping[Event, Event] = {
    Event.PACKAGE_BLOCKED: Event.PACKAGE_UNBLOCKED,
    Event.REMOTE_UNAVAILABLE: Event.REMOTE_RECOVERED,
    Event.PASS_FAILING: Event.PASS_RECOVERED,
}
"""The event that reports the end of a condition, by the event that reports its start."""

MAX_FAILED_PASSES = 3
"""The number of consecutive failed passes after which `pass_failing` is sent."""

REMOTE_HOLD_SECONDS = 900.0
"""The time that a remote must be unavailable before `remote_unavailable` is sent."""


def get_start_event(event: Event) -> Event:
    """Return the start event of a condition. `event` is the start event or the end event of this condition."""
    return next((start for start, end in RECOVERIES.items() if end == event), event)
