"""The time from the first fetch of a config commit until its drafts are pushed."""

from __future__ import annotations

from reconciler.reconcile.pass_runner import PassSummary
from reconciler.telemetry.event_log import log
from reconciler.telemetry.metrics import DRAFT_LATENCY


class DraftLatency:
    """Measures the time from the first fetch of a config commit until its drafts are pushed, once for each commit.

    A commit without drafts is not measured.
    """

    def __init__(self) -> None:
        self._config = ""
        self._first_read_at = 0.0
        self._is_measured = False

    def record_pass(self, summary: PassSummary, started_at: float, now: float) -> None:
        """Record the result of a pass. `started_at` and `now` are in seconds of a monotonic clock.

        While a draft is not pushed, the measurement of the config commit continues. It ends with the pass that pushes
        the last draft.
        """
        if summary.config != self._config:
            self._config, self._first_read_at, self._is_measured = summary.config, started_at, False
        if self._is_measured or summary.unpushed_drafts:
            return
        if summary.drafts:
            exemplar = {"trace_id": log.trace_id} if log.trace_id else None
            DRAFT_LATENCY.observe(now - self._first_read_at, exemplar=exemplar)
        # Do not measure later drafts of the same commit, because they have a different cause, such as a new version of
        # an upstream package.
        self._is_measured = bool(summary.drafts) or summary.result == "success"
