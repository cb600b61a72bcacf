"""The ledger: a cache file with the current conditions, and the routes that have sent a message about them.

If the file is lost, each route sends one message that lists all current conditions again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from reconciler.git.filesystem import replace_file
from reconciler.krm.findings import Severity
from reconciler.lazy_dataclasses import dataclass, field
from reconciler.notifications.events import Event
from reconciler.notifications.observation import Condition, Item
from reconciler.telemetry.event_log import log

MAX_GROUPS = 10_000
_FORMAT = 1
_MAX_MESSAGE_CHARACTERS = 300
GroupKey = tuple[Event, str]


@dataclass
class TrackedItem:
    """An item with the times at which it was observed first, and at which it ended, in seconds since 1970."""

    item: Item
    first_seen: float
    ended_at: float | None = None


@dataclass
class TrackedGroup:
    """The items of one event and group key.

    Attributes:
        condition: The last observed condition of the group. The items of the group are in `items`.
        sent: Maps each route that has sent messages about this group to the IDs of the sent items. The set is empty if
            none of these items is in the group any more.
        posted: Maps routes to data about the first message, such as its ID in Slack. The channel uses this data to send
            later messages to the same thread.
        is_action: Whether the group reports actions, which happen once, instead of conditions, which begin and end.
        only_routes: The routes that can send the group. None if the filters of the routes decide.
    """

    condition: Condition
    items: dict[str, TrackedItem] = field(default_factory=dict)
    sent: dict[str, set[str]] = field(default_factory=dict)
    posted: dict[str, Mapping[str, str]] = field(default_factory=dict)
    is_action: bool = False
    only_routes: frozenset[str] | None = None

    @property
    def item_keys(self) -> set[tuple[Event, str, str]]:
        """The event, the group key and the ID of each item."""
        return {(*self.key, item) for item in self.items}

    @property
    def key(self) -> GroupKey:
        """The key of the group in the ledger."""
        return self.condition.event, self.condition.group


@dataclass
class RouteState:
    """The recorded state of one route.

    Attributes:
        tokens: The number of messages that the route can send now.
        refilled_at: The time of the last change of `tokens`, in seconds since 1970.
        overdue_at: The time of the last message about overdue reviews. 0 if no review is overdue.
        should_combine: Whether the next messages are combined into one message.
    """

    tokens: float
    refilled_at: float
    overdue_at: float = 0.0
    should_combine: bool = False


class Ledger:
    """The content of the ledger file. Only the notification thread uses it."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self.groups: dict[GroupKey, TrackedGroup] = {}
        self.routes: dict[str, RouteState] = {}
        self._is_closed = False
        self._read()

    def close(self) -> None:
        """Write nothing to the file any more, because another process or thread uses it."""
        self._is_closed = True

    def save(self) -> None:
        """Replace the file. A process that ends during the call leaves the old or the new content."""
        for key in list(self.groups)[: max(len(self.groups) - MAX_GROUPS, 0)]:
            del self.groups[key]
        if self._is_closed:
            return
        data = {
            "format": _FORMAT,
            "groups": [_serialize_group(group) for group in self.groups.values()],
            "routes": {route: vars(state) for route, state in self.routes.items()},
        }
        try:
            replace_file(self._file, json.dumps(data), is_durable=True)
        except OSError as error:
            log.warning("notification_ledger_failed", file=str(self._file), message=error.strerror)

    def _read(self) -> None:
        try:
            data = json.loads(self._file.read_bytes())
            groups = [_parse_group(group) for group in data["groups"]]
            self.routes = {route: RouteState(**state) for route, state in data["routes"].items()}
        except FileNotFoundError:
            return
        except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            log.warning("notification_ledger_failed", file=str(self._file), message=str(error))
            return
        self.groups = {group.key: group for group in groups}


def _serialize_group(group: TrackedGroup) -> dict[str, Any]:
    condition = group.condition
    data: dict[str, Any] = {
        "event": condition.event, "group": condition.group, "subject": condition.subject,
        "severity": condition.severity, "data": dict(condition.data),
        "items": [
            [
                item.id, item.scope, item.target, item.package, item.message[:_MAX_MESSAGE_CHARACTERS],
                item.hold_seconds, item.parent, item.tenant, tracked.first_seen,
            ]
            for tracked in group.items.values() for item in (tracked.item,)
        ],
        "sent": {route: sorted(ids) for route, ids in group.sent.items()},
        "posted": group.posted, "action": group.is_action,
    }  # fmt: skip
    return data if group.only_routes is None else {**data, "only": sorted(group.only_routes)}


def _parse_group(data: Mapping[str, Any]) -> TrackedGroup:
    condition = Condition(
        Event(data["event"]), data["group"], data["subject"], Severity(data["severity"]), (), data["data"]
    )
    items = {fields[0]: TrackedItem(Item(*fields[:-1]), fields[-1]) for fields in data["items"]}
    return TrackedGroup(
        condition, items, {route: set(ids) for route, ids in data["sent"].items()}, dict(data["posted"]),
        data["action"], frozenset(data["only"]) if "only" in data else None,
    )  # fmt: skip
