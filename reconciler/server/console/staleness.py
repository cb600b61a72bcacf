"""The reason why the data of pages is old."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reconciler.lazy_dataclasses import dataclass
from reconciler.service.health import evaluate_health

if TYPE_CHECKING:
    from reconciler.output.fleet.model import FleetIndex
    from reconciler.server.console.context import ConsoleContext


@dataclass(frozen=True)
class Staleness:
    """The reason why the data on a page is old, and the time of this data.

    Attributes:
        since: The time of the data, in seconds since 1970.
        reason: The reason, which can contain names of targets.
        is_partial: Whether only the data of some remotes is old.
    """

    since: float
    reason: str
    is_partial: bool = False


def find_staleness(context: ConsoleContext, index: FleetIndex | None) -> Staleness | None:
    """Return the reason why the data of an index is old. Return None if the data is current or no index is complete."""
    state, view = context.state, context.state.view
    if index is None or view is None:
        return None
    last_pass = max(view.last_pass.started_at + view.last_pass.duration_seconds, index.completed_at)
    if context.index_thread.error:
        return Staleness(index.completed_at, context.index_thread.error)
    if state.failed_passes:
        return Staleness(last_pass, state.failed_passes.first.message)
    if "PassStale" in evaluate_health(state).failed_codes:
        return Staleness(last_pass, "no pass was completed in the expected time")
    if view.remote_failures:
        first = min(view.remote_failures, key=lambda failure: failure.since)
        others = len(view.remote_failures) - 1
        reason = f"the remote {first.name} is unavailable: {first.message}"
        # `first.since` is a time of the monotonic clock. Convert it to a time of day.
        since = min(first.since + context.clock() - state.clock(), last_pass)
        return Staleness(since, f"{reason} (and {others} more)" if others else reason, is_partial=True)
    return None
