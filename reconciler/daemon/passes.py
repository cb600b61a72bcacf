"""Passes, one after the other: equal heads end a pass at once, unless something is due (design 4.2)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from reconciler.daemon.events import log
from reconciler.daemon.recollection import Recollection
from reconciler.daemon.reconcile import Gathered, Report, decide_and_publish, gather_what_moved, heads, tally
from reconciler.daemon.remotes import Remotes
from reconciler.daemon.settled import InMind, Memory, Settled
from reconciler.daemon.tools import ConfigSource, Publisher, Tools
from reconciler.garbage import end_pass
from reconciler.krm.findings import Finding


@dataclass(frozen=True)
class Told:
    """What a pass is told as: `drafts` are the heads of the draft branches that moved, by destination.

    `unwritten` is why the status was not written, "" when it was.
    """

    config: str
    counts: Mapping[str, int]
    findings: tuple[Finding, ...] = ()
    drafts: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    clean: bool = True
    unwritten: str = ""
    skipped: bool = False


class Passes:
    """Runs passes over one config, and remembers the heads that the last one left, once nothing is left to try."""

    def __init__(
        self, source: ConfigSource, remotes: Remotes, tools: Tools, publisher: Publisher, memory: Memory | None = None
    ) -> None:
        self._source = source
        self._remotes = remotes
        self._tools = tools
        self._publisher = publisher
        self._memory = memory or InMind()
        # what annotations approve has to be looked at in every pass
        self._recollection = None if tools.by_annotation else Recollection()
        self._due: int | None = None
        self.told = Told("", {})

    @property
    def due_in(self) -> float:
        """The seconds until the heads that the last pass left ask for another one; infinite when they do not."""
        return math.inf if self._due is None else self._due - self._tools.clock()

    def run(self) -> bool:
        """Run one pass; return False when it should be tried again soon. Raises GitError without a readable config.

        A remote that failed rests on its own (`Backoff`) and does not slow the others down; so does a function.
        """
        with self._remotes as remotes:
            found = gather_what_moved(self._source, remotes, self._tools, self._memory.recall())
            if isinstance(found, Settled):
                self.told = Told(found.config, found.counts, found.findings, skipped=True)
                return True
            remotes.go_without()
            report = decide_and_publish(found, remotes, self._tools, self._publisher, self._recollection)
            settled = report.settled and not self._publisher.unwritten
            remotes.maintain()
            self._due = report.due
            # a tag that was made is an upstream that a next pass may find, and what was approved is recognised by it;
            # who lost a race has also fetched what others did to drafts that were planned before
            moved = report.tagged.moved or report.approved.moved or remotes.fetched_again
            is_last_word = settled and not report.waits and not report.postponed and not moved
            self._memory.keep(self._settled(found, report) if is_last_word else None)
        self.told = _told(report, self._publisher.unwritten)
        del found, report
        end_pass()
        return settled

    def _settled(self, found: Gathered, report: Report) -> Settled:
        upstreams, destinations = self._tools.urls(found.catalog)
        after = heads(self._remotes, self._tools)
        is_silent = after == found.heads and not report.renders
        # what the next pass would tell can be told now, where it would only find what this one has left
        left = None if is_silent or report.opened or not self._recollection else self._recollection.fleet(report.plan)
        last = replace(report, plan=left, renders=0) if left else report
        return Settled(
            found.snapshot.id, after, tuple(upstreams), tuple(destinations), report.due, tally(last),
            last.plan.all_findings(), is_silent or left is not None, found.now, self._tools.functions.asked,
        )  # fmt: skip


def _told(report: Report, unwritten: str) -> Told:
    drafts = {name: dict(one.heads) for name, one in sorted(report.written.items()) if one.heads}
    findings = report.plan.all_findings()
    return Told(report.plan.config, tally(report), findings, drafts, report.clean and not unwritten, unwritten)


def log_pass(told: Told) -> None:
    """Tell a pass as events, one for each finding."""
    if told.skipped:
        log.debug("pass_unchanged", config=told.config)
        return
    for one in told.findings:
        place = str(one.where)
        log.info("finding", code=one.code, severity=one.severity.value, message=one.message, where=place)
    log.info("pass_finished", config=told.config, clean=told.clean, **told.counts)
