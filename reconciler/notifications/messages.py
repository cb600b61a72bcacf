"""Messages: their titles, their lines and their public JSON payload. Channels add the format of their service."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from reconciler.krm.findings import Severity
from reconciler.krm.json_text import compute_hash
from reconciler.krm.numbers import format_count
from reconciler.krm.times import format_rfc3339
from reconciler.lazy_dataclasses import dataclass, field
from reconciler.notifications.events import Event
from reconciler.notifications.observation import Condition, Item
from reconciler.output.text import format_names, list_first_lines
from reconciler.redaction import redact, redact_data

DIGEST_EVENT = "digest"
"""The event of a message that lists several changes."""
MAX_LINES = 20
MAX_ITEMS = 1_000
_MAX_LINE_CHARACTERS = 300

ItemKey = tuple[Event, str, str]
"""The event, the group key and the ID of an item."""


@dataclass(frozen=True)
class Message:
    """One message of one route.

    Attributes:
        id: Identifies the message. Each attempt to send the message, also after a restart, has the same ID.
        event: The event, or `digest`.
        thread: The key of the thread: the same for all messages about one group.
        items: The items in the payload. They can include items that an earlier message has already reported.
        data: Further data about the event.
        covered: The keys of the items that are recorded as sent when the message has been sent.
        seconds: The time at which the message was created, in seconds since 1970.
    """

    id: str
    route: str
    channel: str
    event: str
    thread: str
    title: str
    lines: tuple[str, ...]
    severity: Severity
    items: tuple[Item, ...]
    data: Mapping[str, Any]
    covered: tuple[ItemKey, ...]
    config: str
    shard: str
    seconds: int
    link: str = ""
    count: int = 1
    posted: Mapping[str, str] = field(default_factory=dict)
    """The data that the channel stored about the first message of the thread, such as its ID."""

    @property
    def payload(self) -> dict[str, Any]:
        """The public JSON data of the message, which webhooks and templates receive."""
        data: dict[str, Any] = {
            "type": self.event,
            "timestamp": format_rfc3339(self.seconds),
            "text": "\n".join((self.title, *self.lines)),
            "data": {
                "title": self.title, "severity": self.severity.value, "group": self.thread, "count": self.count,
                "lines": list(self.lines), "link": self.link, "shard": self.shard, "config": self.config,
                "itemCount": len(self.items),
                "items": [
                    {"target": item.target, "package": item.package, "message": item.message}
                    for item in self.items[:MAX_ITEMS]
                ],
                "details": dict(self.data),
            },
        }  # fmt: skip
        redacted: dict[str, Any] = redact_data(data)
        return redacted


def _count_targets(items: Sequence[Item]) -> str:
    return format_count(len({item.target for item in items}), "target")


def _count_packages(items: Sequence[Item]) -> str:
    return format_count(len({(item.target, item.package) for item in items}), "package")


def _describe_scope(items: Sequence[Item]) -> str:
    return f" ({_count_packages(items)} on {_count_targets(items)})" if items and items[0].package else ""


_TITLES: Mapping[Event, Callable[[str, Sequence[Item]], str]] = {
    Event.DRAFTS_WAITING: lambda subject, items: f"Review {subject} on {_count_targets(items)}",
    Event.DRAFT_CONFLICT: lambda subject, items: f"Conflict in {subject} on {_count_targets(items)}",
    Event.PACKAGE_BLOCKED: lambda subject, items: f"Blocked: {subject}{_describe_scope(items)}",
    Event.PACKAGE_UNBLOCKED: lambda subject, items: f"No longer blocked: {subject}",
    Event.PUBLISHED: lambda subject, items: f"Published on {subject}: {_count_packages(items)}",
    Event.REJECTED: lambda subject, items: f"Rejected: {subject} on {_count_targets(items)}",
    Event.ROLLOUT_ADVANCED: lambda subject, items: f"Rollout advanced: {subject}",
    Event.ROLLOUT_STOPPED: lambda subject, items: f"Rollout stopped: {subject}",
    Event.DELETION_HELD: lambda subject, items: f"Deletion held: {_count_packages(items)} of {subject}",
    Event.REMOTE_UNAVAILABLE: lambda subject, items: f"Remote unavailable: {subject}",
    Event.REMOTE_RECOVERED: lambda subject, items: f"Remote available again: {subject}",
    Event.PASS_FAILING: lambda subject, items: f"Passes fail on {subject}",
    Event.PASS_RECOVERED: lambda subject, items: f"Passes succeed again on {subject}",
    Event.CREDENTIAL_EXPIRING: lambda subject, items: f"Credential expires soon: {subject}",
    Event.REVIEW_OVERDUE: lambda subject, items: f"Overdue review: {_count_packages(items)} on {_count_targets(items)}",
}


def format_title(condition: Condition) -> str:
    """Return the title of the message about a condition."""
    return redact(_TITLES[condition.event](condition.subject, condition.items))


def format_lines(items: Sequence[Item]) -> tuple[str, ...]:
    """Return one line per item. Items with the same message share a line. The last line counts the omitted items."""
    places: dict[str, list[str]] = {}
    for item in items:
        place = f"{item.target}/{item.package}" if item.package else item.target
        places.setdefault(item.message, []).append(place)
    lines = [_format_line(message, names) for message, names in places.items()]
    first = list_first_lines([line for line in lines if line], MAX_LINES)
    return tuple(redact(line[:_MAX_LINE_CHARACTERS]) for line in first)


def _format_line(message: str, places: Sequence[str]) -> str:
    names = format_names([place for place in places if place], MAX_LINES)
    return ": ".join(filter(None, (names, message)))


def compute_message_id(route: str, covered: Sequence[ItemKey], since: float) -> str:
    """Return the ID of a message. `since` distinguishes messages about items that ended and began again."""
    return f"msg_{compute_hash([route, sorted(covered), int(since)])[:32]}"
