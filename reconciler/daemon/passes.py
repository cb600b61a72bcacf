"""Passes, one after the other: equal heads end a pass at once, unless something is due (design 4.2)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from reconciler.daemon.events import log
from reconciler.daemon.isolation import log_failure, log_failures
from reconciler.daemon.publish import HEADS
from reconciler.daemon.recollection import Recollection
from reconciler.daemon.reconcile import Gathered, Report, decide_and_publish, gather_what_moved, heads, push_code, tally
from reconciler.daemon.remotes import Remotes
from reconciler.daemon.settled import InMind, Memory, Settled
from reconciler.daemon.tools import ConfigSource, Publisher, Tools
from reconciler.garbage import end_pass
from reconciler.gitio.verdicts import Done, Outcome
from reconciler.krm.codes import internal_error
from reconciler.krm.findings import Finding, Severity
from reconciler.krm.isolation import ScopeFailedError, boundary
from reconciler.reporting.finding_groups import FindingGroup, group_findings
from reconciler.snapshot.objects import CommitId


@dataclass(frozen=True)
class UnpushedDraft:
    """A draft branch that a pass wrote and that its remote did not take.

    `reason` is the code of the finding that says why. `head` is the branch's head at the remote after the push, None
    where the remote has no such branch. With `is_known` False the remote did not answer.
    """

    branch: str
    reason: str
    head: CommitId | None = None
    is_known: bool = True


@dataclass(frozen=True)
class Told:
    """What a pass is told as: `drafts` are the heads of the draft branches that moved, by destination.

    `unpushed` are the drafts that the remotes did not take, by destination.
    `unwritten` is why the status was not written, "" when it was.
    """

    config: str
    counts: Mapping[str, int]
    findings: tuple[Finding, ...] = ()
    drafts: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    unpushed: Mapping[str, Sequence[UnpushedDraft]] = field(default_factory=dict)
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

        A remote that failed rests on its own (`Backoff`) and does not slow the others down; so does a function. An
        unexpected exception outside of any smaller scope ends the pass with a finding.
        """
        try:
            with boundary("the pass"):
                return self._run()
        except ScopeFailedError as error:
            log_failure(error.failure)
            self._memory.keep(None)
            self.told = Told("", {}, (internal_error(error.failure),), clean=False)
            return False

    def _run(self) -> bool:
        with self._remotes as remotes:
            found = gather_what_moved(self._source, remotes, self._tools, self._memory.recall())
            if isinstance(found, Settled):
                self.told = Told(found.config, found.counts, found.findings, skipped=True)
                return True
            remotes.go_without()
            report = decide_and_publish(found, remotes, self._tools, self._publisher, self._recollection)
            settled = report.settled and not self._publisher.unwritten
            late = remotes.maintain()
            log_failures(late)
            report = replace(report, plan=replace(report.plan, findings=(*report.plan.findings, *late)))
            self._due = report.due
            # a tag that was made is an upstream that a next pass may find, and what was approved is recognised by it;
            # who lost a race has also fetched what others did to drafts that were planned before
            moved = report.tagged.moved or report.approved.moved or remotes.fetched_again
            # a doubt about the config may depend on files that no head covers, such as those outside of its directory
            is_unclear = report.has_internal_errors or report.doubts
            is_last_word = settled and not (report.waits or report.postponed or moved or is_unclear)
            self._memory.keep(self._settled(found, report) if is_last_word else None)
            unpushed = _unpushed(report, remotes)
        self.told = _summarize(report, self._publisher.unwritten, unpushed)
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


def _unpushed(report: Report, remotes: Remotes) -> Mapping[str, Sequence[UnpushedDraft]]:
    """Return the drafts that did not arrive, with what their remotes have instead, by destination."""
    failed = {
        name: one
        for name, one in sorted(report.written.items())
        if one.heads and not isinstance(report.outcomes[name], Done)
    }
    # each of these remotes is read once more: a push that failed may have moved some refs all the same
    urls = sorted({one.plan.destination.url for one in failed.values()})
    branches = {url: remotes.branches_now(url) for url in urls}
    return {
        name: tuple(
            _unpushed_draft(branch, report.outcomes[name], branches[one.plan.destination.url])
            for branch in sorted(one.heads)
        )
        for name, one in failed.items()
    }


def _unpushed_draft(branch: str, outcome: Outcome, branches: Mapping[str, CommitId] | None) -> UnpushedDraft:
    code = push_code(outcome).name
    if branches is None:
        return UnpushedDraft(branch, code, is_known=False)
    return UnpushedDraft(branch, code, branches.get(HEADS + branch))


def _summarize(report: Report, unwritten: str, unpushed: Mapping[str, Sequence[UnpushedDraft]]) -> Told:
    drafts = {
        name: dict(one.heads) for name, one in sorted(report.written.items()) if one.heads and name not in unpushed
    }
    findings = report.plan.all_findings()
    clean = report.clean and not unwritten
    return Told(report.plan.config, tally(report), findings, drafts, unpushed, clean, unwritten)


def log_pass(told: Told) -> None:
    """Log a pass: one event per group of similar findings at the level of their severity, then `pass_finished`.

    `clean` is True when every remote succeeded and no finding is an error. `findings` counts by severity.
    """
    if told.skipped:
        log.debug("pass_unchanged", config=told.config)
        return
    for group in group_findings(told.findings):
        _log_findings(group)
    number = Counter(one.severity for one in told.findings)
    by_severity = {severity.value: number[severity] for severity in Severity}
    clean = told.clean and not number[Severity.ERROR]
    log.info("pass_finished", config=told.config, clean=clean, findings=by_severity, **told.counts)


def _log_findings(group: FindingGroup) -> None:
    finding = group.first
    methods = {Severity.ERROR: log.error, Severity.WARNING: log.warning, Severity.INFO: log.info}
    known = {name: value for name, value in vars(finding.where).items() if value}
    if group.examples:
        known |= {"number": len(group.findings), "examples": list(group.examples)}
    severity, message = finding.severity, finding.message
    methods[severity]("finding_reported", code=finding.code, severity=severity.value, message=message, **known)
