"""Passes of the service: equal heads end a pass at once, unless something is due; each is one event (design 4.2)."""

from __future__ import annotations

import math

from reconciler.daemon.events import log
from reconciler.daemon.reconcile import decide_and_publish, gather, heads, tally
from reconciler.daemon.remotes import Remotes
from reconciler.daemon.tools import ConfigSource, Publisher, Tools


class Passes:
    """Runs passes over one config, and remembers the heads that the last one left, once nothing is left to try."""

    def __init__(self, source: ConfigSource, remotes: Remotes, tools: Tools, publisher: Publisher) -> None:
        self._source = source
        self._remotes = remotes
        self._tools = tools
        self._publisher = publisher
        self._settled = ("", "")
        self._due: int | None = None

    @property
    def due_in(self) -> float:
        """The seconds until the heads that the last pass left ask for another one; infinite when they do not."""
        return math.inf if self._due is None else self._due - self._tools.clock()

    def run(self) -> bool:
        """Run one pass; return False when it should be tried again soon. Raises GitError without a readable config.

        A remote that failed rests on its own (`Backoff`) and does not slow the others down; so does a function.
        """
        with self._remotes as remotes:
            found = gather(self._source, remotes, self._tools)
            if (found.snapshot.id, found.heads) == self._settled and not self._is_due(found.now):
                log.debug("pass_unchanged", config=found.snapshot.id)
                return True
            report = decide_and_publish(found, remotes, self._tools, self._publisher)
            settled = report.settled and self._publisher.done
            remotes.maintain()
            is_last_word = settled and not report.waits
            self._settled = (found.snapshot.id, heads(remotes, self._tools)) if is_last_word else ("", "")
            self._due = report.due
        for finding in report.plan.all_findings():
            log.info(
                "finding",
                code=finding.code,
                severity=finding.severity.value,
                message=finding.message,
                where=str(finding.where),
            )
        log.info("pass_finished", config=report.plan.config, clean=report.clean, **tally(report))
        return settled

    def _is_due(self, now: int) -> bool:
        return self._due is not None and self._due <= now
