"""The filters of the activity: the person, the action, the target, a text and a period."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from starlette.datastructures import QueryParams

from reconciler.output.fleet.activity import ACTIVITY_ACTIONS, ActivityEvent
from reconciler.output.text import format_value
from reconciler.server.console.listing import parse_day, read_choice, read_text

if TYPE_CHECKING:
    from reconciler.output.fleet.model import FleetIndex
    from reconciler.server.console.context import ConsoleContext
    from reconciler.server.console.people import Session

ACTIVITY_FILTERS = ("actor", "action", "target", "q", "from", "to")
_DAY_SECONDS = 24 * 60 * 60


def list_activity(
    context: ConsoleContext, session: Session, whole_index: FleetIndex, index: FleetIndex, query: QueryParams
) -> Sequence[ActivityEvent]:
    """Return the readable activity that matches the query parameters, the newest event first.

    A day that is not valid matches no event.

    Args:
        index: The part of `whole_index` that the person may read.
    """
    events = context.activity.list_events(whole_index, index, session.permissions)
    if not any(read_text(query, name) for name in ACTIVITY_FILTERS):
        return events
    if check_days(query):
        return ()
    actor, target, text = (read_text(query, name).lower() for name in ("actor", "target", "q"))
    action = read_choice(query, "action", ACTIVITY_ACTIONS)
    start, end = _read_day(query, "from"), _read_day(query, "to")
    return [
        event
        for event in events
        if (start is None or event.seconds >= start)
        and (end is None or event.seconds < end + _DAY_SECONDS)
        and (not action or action in event.actions)
        and (not target or target in event.target.lower())
        and (not actor or actor in event.person.lower())
        and (not text or text in f"{event.target}/{event.package} {event.message} {event.reason}".lower())
    ]


def check_days(query: QueryParams) -> str:
    """Return the reason why the parameters `from` or `to` are not valid days. Return "" if they are valid."""
    for name in ("from", "to"):
        try:
            _read_day(query, name)
        except ValueError:
            day = format_value(read_text(query, name))
            return f'{name}: must be a day in UTC such as "2024-05-31", but is "{day}"'
    return ""


def _read_day(query: QueryParams, name: str) -> int | None:
    """Return the start of a day in seconds since 1970. Return None if the parameter is missing.

    Raises:
        ValueError: The parameter is not a day.
    """
    text = read_text(query, name)
    return parse_day(text) if text else None
