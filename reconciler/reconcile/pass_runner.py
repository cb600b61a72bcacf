"""Runs passes one after the other, summarizes them and logs them. If no input has changed, a pass ends at once."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from reconciler.catalog.files import CommitId
from reconciler.git.push_outcomes import PushDone, PushOutcome
from reconciler.krm.findings import Finding, Severity, create_internal_error_finding
from reconciler.krm.isolation import ScopeFailedError, isolation_boundary
from reconciler.memory import release_pass_memory
from reconciler.output.findings.grouping import FindingGroup, group_findings
from reconciler.reconcile.event_log import log
from reconciler.reconcile.failures import log_failure, log_failures
from reconciler.reconcile.pass_cache import CompletedPass, CompletedPassStore, InMemoryPassStore, PassCache
from reconciler.reconcile.reconcile_pass import PassReport, count_outcomes, decide_and_publish, push_failure_code
from reconciler.reconcile.remotes.remotes import Remotes
from reconciler.reconcile.remotes.targets import BRANCH_PREFIX
from reconciler.reconcile.services import ConfigSource, PassServices, PlanPublisher
from reconciler.reconcile.snapshot import PassSnapshot, digest_heads, take_snapshot_if_changed


@dataclass(frozen=True)
class UnpushedDraft:
    """A draft branch that a pass wrote but could not push.

    Attributes:
        branch: The branch.
        reason: The code of the finding about the push.
        remote_head: The head of the branch at the remote after the push; None if the branch does not exist there.
        has_remote_answered: Whether the remote responded, so that `remote_head` is known.
    """

    branch: str
    reason: str
    remote_head: CommitId | None = None
    has_remote_answered: bool = True


@dataclass(frozen=True)
class PassSummary:
    """The result of a pass for users.

    Attributes:
        config: The id of the config.
        counts: The numbers of packages by outcome.
        findings: All findings.
        drafts: The new heads of pushed draft branches, by target and branch.
        unpushed_drafts: The drafts that were not pushed, by target.
        is_clean: Whether every fetch, push and function call succeeded.
        status_error: Why the status was not written; "" after a success.
        is_skipped: Whether no input had changed, so that nothing was planned.
    """

    config: str
    counts: Mapping[str, int]
    findings: tuple[Finding, ...] = ()
    drafts: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    unpushed_drafts: Mapping[str, Sequence[UnpushedDraft]] = field(default_factory=dict)
    is_clean: bool = True
    status_error: str = ""
    is_skipped: bool = False


class PassRunner:
    """Runs passes over one config. After a pass without remaining work, equal passes are skipped."""

    def __init__(
        self,
        source: ConfigSource,
        remotes: Remotes,
        services: PassServices,
        publisher: PlanPublisher,
        store: CompletedPassStore | None = None,
    ) -> None:
        self._source = source
        self._remotes = remotes
        self._services = services
        self._publisher = publisher
        self._store = store or InMemoryPassStore()
        # With approvals by annotation, each pass must read all drafts.
        self._cache = None if services.has_annotation_approvals else PassCache()
        self._due_at: int | None = None
        self.summary = PassSummary("", {})

    @property
    def seconds_until_due(self) -> float:
        """The seconds until another pass is due although no ref moved; infinite if none is due."""
        return math.inf if self._due_at is None else self._due_at - self._services.clock()

    def run(self) -> bool:
        """Run one pass; return False if it should be repeated soon. Raises GitError if the config cannot be read.

        A failed remote or function has its own back-off and does not delay the others. An unexpected exception outside
        of all smaller scopes ends the pass with a finding.
        """
        try:
            with isolation_boundary("the pass"):
                return self._run()
        except ScopeFailedError as error:
            log_failure(error.failure)
            self._store.save(None)
            self.summary = PassSummary("", {}, (create_internal_error_finding(error.failure),), is_clean=False)
            return False

    def _run(self) -> bool:
        with self._remotes as remotes:
            snapshot = take_snapshot_if_changed(self._source, remotes, self._services, self._store.load())
            if isinstance(snapshot, CompletedPass):
                self.summary = PassSummary(snapshot.config, snapshot.counts, snapshot.findings, is_skipped=True)
                return True
            remotes.exclude_late_remotes()
            report = decide_and_publish(snapshot, remotes, self._services, self._publisher, self._cache)
            is_final = report.is_final and not self._publisher.status_error
            maintenance_findings = remotes.maintain()
            log_failures(maintenance_findings)
            plan = replace(report.plan, findings=(*report.plan.findings, *maintenance_findings))
            report = replace(report, plan=plan)
            self._due_at = report.due_at
            # The next pass must read new tags, because they can be upstreams, and it must detect published drafts.
            # After a second fetch, drafts of other writers can exist that this pass has not planned for.
            has_moved = report.tags.has_new_tags or report.approvals.has_changed_refs or remotes.has_refetched
            # Unproven deletions can depend on files that no ref covers, such as files outside of the config directory.
            is_uncertain = report.has_internal_errors or report.unproven_deletions
            is_completed = is_final and not (report.is_waiting or report.is_postponed or has_moved or is_uncertain)
            self._store.save(self._build_completed_pass(snapshot, report) if is_completed else None)
            unpushed_drafts = _list_unpushed_drafts(report, remotes)
        self.summary = _summarize(report, self._publisher.status_error, unpushed_drafts)
        del snapshot, report, plan
        release_pass_memory()
        return is_final

    def _build_completed_pass(self, snapshot: PassSnapshot, report: PassReport) -> CompletedPass:
        upstreams, targets = self._services.list_urls(snapshot.catalog)
        heads = digest_heads(self._remotes, self._services)
        is_silent = heads == snapshot.heads and not report.render_count
        # If the next pass would use cached plans only, its result is already known.
        next_plan = (
            None if is_silent or report.opened_requests or not self._cache else self._cache.find_fleet_plan(report.plan)
        )
        last = replace(report, plan=next_plan, render_count=0) if next_plan else report
        return CompletedPass(
            snapshot.config.id, heads, tuple(upstreams), tuple(targets), report.due_at, count_outcomes(last),
            last.plan.list_findings(), is_silent or next_plan is not None, snapshot.now,
            self._services.functions.requested_functions,
        )  # fmt: skip


def _list_unpushed_drafts(report: PassReport, remotes: Remotes) -> Mapping[str, Sequence[UnpushedDraft]]:
    """Return the drafts that were not pushed, with the current heads of their branches, by target."""
    failed = {
        name: written
        for name, written in sorted(report.written.items())
        if written.draft_heads and not isinstance(report.outcomes[name], PushDone)
    }
    # Read these remotes again, because a failed push can move some of its refs.
    urls = sorted({written.plan.target.url for written in failed.values()})
    branches = {url: remotes.list_branches(url) for url in urls}
    return {
        name: tuple(
            _build_unpushed_draft(branch, report.outcomes[name], branches[written.plan.target.url])
            for branch in sorted(written.draft_heads)
        )
        for name, written in failed.items()
    }


def _build_unpushed_draft(branch: str, outcome: PushOutcome, branches: Mapping[str, CommitId] | None) -> UnpushedDraft:
    code = push_failure_code(outcome).name
    if branches is None:
        return UnpushedDraft(branch, code, has_remote_answered=False)
    return UnpushedDraft(branch, code, branches.get(BRANCH_PREFIX + branch))


def _summarize(
    report: PassReport, status_error: str, unpushed_drafts: Mapping[str, Sequence[UnpushedDraft]]
) -> PassSummary:
    drafts = {
        name: dict(written.draft_heads)
        for name, written in sorted(report.written.items())
        if written.draft_heads and name not in unpushed_drafts
    }
    findings = report.plan.list_findings()
    is_clean = report.is_clean and not status_error
    counts = count_outcomes(report)
    return PassSummary(report.plan.config_id, counts, findings, drafts, unpushed_drafts, is_clean, status_error)


def log_pass(summary: PassSummary) -> None:
    """Log a pass: one event per group of similar findings with the severity as its level, then `pass_completed`.

    The field `clean` is True if every remote succeeded and no finding is an error. `findings` counts by severity.
    """
    if summary.is_skipped:
        log.debug("pass_skipped", config_commit=summary.config)
        return
    for group in group_findings(summary.findings):
        _log_findings(group)
    counts = Counter(finding.severity for finding in summary.findings)
    by_severity = {severity.value: counts[severity] for severity in Severity}
    clean = summary.is_clean and not counts[Severity.ERROR]
    log.info("pass_completed", config_commit=summary.config, clean=clean, findings=by_severity, **summary.counts)


def _log_findings(group: FindingGroup) -> None:
    finding = group.first
    methods = {Severity.ERROR: log.error, Severity.WARNING: log.warning, Severity.INFO: log.info}
    fields = {name: value for name, value in vars(finding.location).items() if value}
    if group.examples:
        fields |= {"count": len(group.findings), "examples": list(group.examples)}
    severity, message = finding.severity, finding.message
    methods[severity]("finding_reported", code=finding.code, severity=severity.value, message=message, **fields)
