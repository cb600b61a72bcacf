"""Decides which messages each route sends: it compares observations with the ledger, and limits the messages.

The tracker uses no clock and sends nothing. The caller passes the time, and reports each message that was sent.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from reconciler.krm.findings import Severity
from reconciler.lazy_dataclasses import dataclass, replace
from reconciler.notifications.events import RECOVERIES, Event, get_start_event
from reconciler.notifications.ledger import GroupKey, Ledger, RouteState, TrackedGroup, TrackedItem
from reconciler.notifications.messages import (
    DIGEST_EVENT,
    MAX_LINES,
    ItemKey,
    Message,
    compute_message_id,
    format_lines,
    format_title,
)
from reconciler.notifications.observation import SEVERITIES, Condition, Item, Observation
from reconciler.notifications.routes import Route
from reconciler.output.text import list_first_lines
from reconciler.telemetry import metrics

MESSAGES_PER_HOUR = 20
_DAY_SECONDS = 86_400


@dataclass(frozen=True)
class TrackerOptions:
    """The settings of the tracker.

    Attributes:
        gather_seconds: The minimum age of a condition before it is sent.
        overdue_seconds: The time after which the review of a draft is overdue.
        link: The URL of the console, for messages. "" if there is no console.
    """

    gather_seconds: float = 30.0
    overdue_seconds: float = 48 * 3600.0
    shard: str = "1/1"
    link: str = ""


@dataclass(frozen=True)
class _Candidate:
    """A group from which a route must send items.

    Attributes:
        new: The items that the route has not sent.
        live: All items of the group that the route selects.
    """

    group: TrackedGroup
    new: tuple[TrackedItem, ...]
    live: tuple[TrackedItem, ...]

    @property
    def covered(self) -> tuple[ItemKey, ...]:
        return tuple((*self.group.key, tracked.item.id) for tracked in self.new)

    @property
    def condition(self) -> Condition:
        return replace(self.group.condition, items=tuple(tracked.item for tracked in self.live))


class Tracker:
    """Compares observations with the ledger, and creates the messages of all routes."""

    def __init__(self, routes: Sequence[Route], ledger: Ledger, options: TrackerOptions) -> None:
        self._routes = routes
        self._ledger = ledger
        self._options = options
        self._events = frozenset(event for route in routes for event in route.observed_events)
        self._labels: Mapping[str, Mapping[str, str]] = {}
        self._config = ""
        self._in_flight: set[tuple[str, ItemKey]] = set()
        self._overdue_in_flight: set[str] = set()
        self._selected_targets: dict[tuple[str, str], bool] = {}
        self._has_changed = False

    def update(self, observation: Observation, now: float) -> None:
        """Record the conditions that began and ended since the last observation."""
        if observation.only_scopes is None:
            self._labels, self._config = observation.labels, observation.config
            self._selected_targets.clear()
        observed: dict[GroupKey, frozenset[str]] = {}
        for condition in observation.conditions:
            if condition.event in self._events:
                group = self._add(condition, now)
                observed[group.key] = frozenset(item.id for item in condition.items)
        # Handle drafts first, because a conflict ends when its draft is no longer in `drafts`.
        groups = sorted(self._ledger.groups.values(), key=lambda group: group.condition.event != Event.DRAFTS_WAITING)
        drafts: set[str] = set()
        for group in groups:
            if not group.is_action:
                self._end_items(group, observed.get(group.key, frozenset()), drafts, observation, now)
            if group.condition.event == Event.DRAFTS_WAITING:
                drafts |= {item for item, tracked in group.items.items() if tracked.ended_at is None}
        if self._has_changed:
            self._save()

    def _save(self) -> None:
        self._ledger.save()
        self._has_changed = False

    def _add(self, condition: Condition, now: float, *, is_action: bool = False) -> TrackedGroup:
        key = (condition.event, condition.group)
        # Move the group to the end of the ledger. If the ledger is full, it drops the groups at its start first.
        group = self._ledger.groups.pop(key, None) or TrackedGroup(condition, is_action=is_action)
        self._ledger.groups[key] = group
        group.condition = replace(condition, items=())
        for item in condition.items:
            tracked = group.items.get(item.id)
            if tracked is None:
                group.items[item.id] = TrackedItem(item, now)
                self._has_changed = True
                continue
            if tracked.ended_at is not None:
                self._count_duplicates(group, item.id)
            tracked.item, tracked.ended_at = item, None
        return group

    def _count_duplicates(self, group: TrackedGroup, item: str) -> None:
        """Count one omitted message for each route that sent this item before. The item has begun again since then."""
        for route in self._routes:
            if item in group.sent.get(route.id, ()):
                metrics.NOTIFICATIONS.add(route.channel, group.condition.event, "deduplicated")

    def _end_items(
        self, group: TrackedGroup, observed: frozenset[str], drafts: set[str], observation: Observation, now: float
    ) -> None:
        for tracked in list(group.items.values()):
            item = tracked.item
            if item.id in observed or tracked.ended_at is not None:
                continue
            has_ended = item.parent not in drafts if item.parent else observation.covers(item.scope)
            if has_ended:
                tracked.ended_at = now
                if group.condition.event == Event.DRAFTS_WAITING:
                    self._add_review_result(group.condition, item, observation, now)

    def _add_review_result(self, draft: Condition, item: Item, observation: Observation, now: float) -> None:
        if item.id in observation.published and Event.PUBLISHED in self._events:
            number = observation.published[item.id]
            result = replace(item, message=f"revision {number}" if number else "deleted")
            group, data = f"{item.target} {observation.config}", {"target": item.target, "config": observation.config}
            condition = Condition(Event.PUBLISHED, group, item.target, Severity.INFO, (result,), data)
        elif item.id in observation.rejected and Event.REJECTED in self._events:
            condition = replace(draft, event=Event.REJECTED, severity=Severity.INFO, items=(item,))
        else:
            return
        self._add(condition, now, is_action=True)

    def collect(self, now: float) -> list[Message]:
        """Return the messages that are due. The caller must report each of them with `record`."""
        self._expire(now)
        return [message for route in self._routes for message in self._collect_route(route, now)]

    def record(self, message: Message, posted: Mapping[str, str] | None = None) -> None:
        """Record that a message was sent, or that it must not be sent any more.

        Args:
            posted: The data that the channel stores for later messages of the thread.
        """
        for event, name, item in message.covered:
            self._in_flight.discard((message.route, (event, name, item)))
            group = self._ledger.groups.get((event, name))
            if group:
                group.sent.setdefault(message.route, set()).add(item)
                if posted and message.event == event:
                    group.posted[message.route] = posted
        if message.event == Event.REVIEW_OVERDUE:
            self._overdue_in_flight.discard(message.route)
            self._ledger.routes[message.route].overdue_at = message.seconds
        self._save()

    def _expire(self, now: float) -> None:
        in_flight = {key for _, key in self._in_flight}
        for group in list(self._ledger.groups.values()):
            if group.is_action:
                # Keep the group until the first complete pass. Before this pass, the labels of targets are unknown, and
                # no route can select an item.
                is_new = any(self._find_new(route, group) for route in self._routes)
                is_done = bool(self._config) and not is_new and not in_flight & group.item_keys
            else:
                self._remove_ended(group, in_flight, now)
                is_done = not group.items
            if is_done:
                del self._ledger.groups[group.key]
                if group.sent and group.condition.event in RECOVERIES:
                    self._add_recovery(group, now)

    def _remove_ended(self, group: TrackedGroup, in_flight: set[ItemKey], now: float) -> None:
        for item, tracked in list(group.items.items()):
            if tracked.ended_at is None or (*group.key, item) in in_flight:
                continue
            was_sent = any(item in ids for ids in group.sent.values())
            if not was_sent or now - tracked.ended_at >= self._options.gather_seconds:
                del group.items[item]
                for ids in group.sent.values():
                    ids.discard(item)

    def _add_recovery(self, group: TrackedGroup, now: float) -> None:
        event = RECOVERIES[group.condition.event]
        item = Item(f"{group.condition.group} {int(now)}", "")
        # Do not wait for `gather_seconds` again, because this time has already passed since the end of the condition.
        first_seen = now - self._options.gather_seconds
        condition = replace(group.condition, event=event, severity=Severity.INFO)
        self._ledger.groups[event, condition.group] = TrackedGroup(
            condition, {item.id: TrackedItem(item, first_seen)}, posted=group.posted, is_action=True,
            only_routes=frozenset(group.sent),
        )  # fmt: skip

    def _find_new(self, route: Route, group: TrackedGroup) -> tuple[TrackedItem, ...]:
        """Return the current items of a group that the route selects and has not sent yet."""
        sent = group.sent.get(route.id, set())
        if len(sent) >= len(group.items) or group.condition.event not in route.selected_events:
            return ()
        if group.only_routes is None:
            is_selected = route.matches_condition(group.condition)
        else:
            is_selected = route.id in group.only_routes
        if not is_selected:
            return ()
        return tuple(
            tracked
            for item, tracked in group.items.items()
            if item not in sent
            and tracked.ended_at is None
            and (route.id, (*group.key, item)) not in self._in_flight
            and (group.only_routes is not None or self._matches(route, tracked.item))
        )

    def _matches(self, route: Route, item: Item) -> bool:
        """Return whether a route selects an item. The selected targets are cached until the next pass."""
        key = (route.id, item.target)
        if key not in self._selected_targets:
            self._selected_targets[key] = route.matches_target(item.target, self._labels.get(item.target, {}))
        is_selected = route.matches_package(item.package) and route.matches_tenant(item.tenant)
        return is_selected and self._selected_targets[key]

    def _list_candidates(self, route: Route, now: float) -> Iterator[_Candidate]:
        gather = self._options.gather_seconds
        for group in self._ledger.groups.values():
            if new := self._find_new(route, group):
                # If one item is due, also send newer items of the group. Exclude items that have not existed for their
                # `hold_seconds` yet.
                held = tuple(each for each in new if now - each.first_seen >= each.item.hold_seconds)
                if not any(now - each.first_seen >= gather for each in held):
                    continue
                live = [each for each in group.items.values() if each.ended_at is None]
                selected = (each for each in live if self._matches(route, each.item))
                yield _Candidate(group, held, held if group.is_action else tuple(selected))

    def _collect_route(self, route: Route, now: float) -> list[Message]:
        state = self._ledger.routes.setdefault(route.id, RouteState(MESSAGES_PER_HOUR, now, should_combine=True))
        if route.quiet_hours and route.quiet_hours.contains(now):
            state.should_combine = True
            return []
        overdue = self._collect_overdue(route, state, now)
        candidates = list(self._list_candidates(route, now))
        if route.digest_minutes and candidates:
            oldest = min(tracked.first_seen for candidate in candidates for tracked in candidate.new)
            if now - oldest < route.digest_minutes * 60:
                return overdue
            state.should_combine = True
        messages = self._limit(route, state, candidates, now)
        if self._config and not any(self._find_new(route, group) for group in self._ledger.groups.values()):
            state.should_combine = False
        for message in messages:
            self._in_flight |= {(route.id, key) for key in message.covered}
        return [*overdue, *messages]

    def _limit(self, route: Route, state: RouteState, candidates: Sequence[_Candidate], now: float) -> list[Message]:
        """Return the messages that the rate limit of a route allows now.

        If the limit allows no message, the next message combines all candidates.
        """
        elapsed = max(now - state.refilled_at, 0.0)
        state.tokens = min(state.tokens + elapsed * MESSAGES_PER_HOUR / 3600, MESSAGES_PER_HOUR)
        state.refilled_at = now
        if not candidates or state.tokens < 1:
            state.should_combine = state.should_combine or bool(candidates)
            return []
        if state.should_combine:
            state.should_combine = False
            state.tokens -= 1
            return [self._build_digest(route, candidates, now)]
        affordable = candidates[: int(state.tokens)]
        state.tokens -= len(affordable)
        return [self._build_message(route, candidate, now) for candidate in affordable]

    def _build_message(self, route: Route, candidate: _Candidate, now: float) -> Message:
        group, condition = candidate.group, candidate.condition
        since = min(tracked.first_seen for tracked in candidate.new)
        return Message(
            compute_message_id(route.id, candidate.covered, since), route.id, route.channel, condition.event,
            f"{get_start_event(condition.event)}:{condition.group}", format_title(condition),
            format_lines(condition.items), condition.severity, condition.items, condition.data,
            candidate.covered, self._config, self._options.shard, int(now), self._options.link,
            posted=group.posted.get(route.id, {}),
        )  # fmt: skip

    def _build_digest(self, route: Route, candidates: Sequence[_Candidate], now: float) -> Message:
        if len(candidates) == 1:
            return self._build_message(route, candidates[0], now)
        titles = [format_title(candidate.condition) for candidate in candidates]
        severity = max((each.condition.severity for each in candidates), key=SEVERITIES.index)
        covered = tuple(key for candidate in candidates for key in candidate.covered)
        since = min(tracked.first_seen for candidate in candidates for tracked in candidate.new)
        is_limited = self._ledger.routes[route.id].tokens < 1
        if is_limited:
            for candidate in candidates:
                metrics.NOTIFICATIONS.add(route.channel, candidate.group.condition.event, "limited")
        noun = "further changes" if is_limited else "changes"
        message_id = compute_message_id(route.id, covered, since)
        return Message(
            message_id, route.id, route.channel, DIGEST_EVENT, f"{DIGEST_EVENT}:{message_id}",
            f"{len(titles)} {noun}", list_first_lines(titles, MAX_LINES), severity, (),
            {}, covered, self._config, self._options.shard, int(now), self._options.link, len(titles),
        )  # fmt: skip

    def _collect_overdue(self, route: Route, state: RouteState, now: float) -> list[Message]:
        """Return the daily message about drafts whose review is overdue."""
        condition = Condition(Event.REVIEW_OVERDUE, route.targets or "all targets", "", Severity.WARNING, ())
        is_selected = route.matches_condition(condition) and route.id not in self._overdue_in_flight
        if not is_selected or now - state.overdue_at < _DAY_SECONDS:
            return []
        items = tuple(
            tracked.item
            for group in self._ledger.groups.values()
            if group.condition.event == Event.DRAFTS_WAITING
            for tracked in group.items.values()
            if tracked.ended_at is None
            and now - tracked.first_seen >= self._options.overdue_seconds
            and self._matches(route, tracked.item)
        )
        if not items:
            return []
        self._overdue_in_flight.add(route.id)
        condition = replace(condition, items=items)
        hours = int(self._options.overdue_seconds // 3600)
        return [
            Message(
                compute_message_id(route.id, [(Event.REVIEW_OVERDUE, condition.group, "")], now // _DAY_SECONDS),
                route.id, route.channel, Event.REVIEW_OVERDUE, f"{Event.REVIEW_OVERDUE}:{condition.group}",
                format_title(condition), format_lines(items), condition.severity, items, {"hours": hours}, (),
                self._config, self._options.shard, int(now), self._options.link,
            )
        ]  # fmt: skip
