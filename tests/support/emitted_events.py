"""The names of the log events that a test emits in its own process, or reads from the log of a daemon."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from unittest.mock import patch

from reconciler.telemetry.event_log import EventLog

LEVELS = ("debug", "info", "warning", "error")
_collected: list[set[str]] = []


def record_event(name: str) -> None:
    """Add an event that a test has read from the log of another process."""
    for events in _collected:
        events.add(name)


@contextmanager
def collect_events() -> Iterator[set[str]]:
    """Collect the names of all events in the `with` block. The events are also logged."""
    events: set[str] = set()
    _collected.append(events)
    with ExitStack() as stack:
        stack.callback(_collected.remove, events)
        for level in LEVELS:
            stack.enter_context(patch.object(EventLog, level, _wrap(getattr(EventLog, level), events)))
        yield events


def _wrap(emit: Callable[..., None], events: set[str]) -> Callable[..., None]:
    def collect(self: EventLog, event: str, **fields: object) -> None:
        events.add(event)
        emit(self, event, **fields)

    return collect
