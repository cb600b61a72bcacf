"""Runs passes one after the other. If no input has changed, a pass is skipped."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Literal

from reconciler.catalog.files import CommitId
from reconciler.git.errors import GitError
from reconciler.git.push_outcomes import PushDone, PushOutcome
from reconciler.krm.findings import Finding, Severity, create_internal_error_finding, select_errors
from reconciler.krm.internal_errors import ScopeFailedError, isolation_boundary
from reconciler.lazy_dataclasses import dataclass, field, replace
from reconciler.memory import postponed_gc, release_pass_memory
from reconciler.output.commit_messages import DryCommit
from reconciler.output.plan.formats import format_plan_without_changes
from reconciler.output.plan.models import NO_CHANGES, ChangeCounts
from reconciler.output.plan.overview import build_plan_result, count_changes
from reconciler.planning.decide.fleet_plan import TargetPlan
from reconciler.reconcile.cache_files import CompletedPass, CompletedPassStore, InMemoryPassStore
from reconciler.reconcile.failures import IsolatedSteps, log_failure, log_failures
from reconciler.reconcile.pass_cache import PassCache
from reconciler.reconcile.pass_inputs import ConfigSource, digest_heads
from reconciler.reconcile.pass_numbers import PassNumbers, compute_pass_numbers
from reconciler.reconcile.reconcile_pass import PassReport, count_outcomes, decide_and_publish, push_failure_code
from reconciler.reconcile.remotes.remotes import Remotes
from reconciler.reconcile.remotes.targets import BRANCH_PREFIX
from reconciler.reconcile.services import PassServices, PlanPublisher
from reconciler.reconcile.snapshot import PassSnapshot, take_snapshot_if_changed
from reconciler.telemetry.phases import phase

PassResult = Literal["success", "partial", "failure"]


@dataclass(frozen=True)
class UnpushedDraft:
    """A draft branch that a pass wrote but could not push.

    Attributes:
        reason: The code of the finding that reports the failed push.
        remote_head: The head of the branch at the remote after the push, or None if the remote has no such branch.
        has_remote_answered: Whether the remote responded. If False, `remote_head` is unknown.
    """

    branch: str
    reason: str
    remote_head: CommitId | None = None
    has_remote_answered: bool = True


@dataclass(frozen=True)
class PassSummary:
    """The result of a pass for users.

    Attributes:
        config: The ID of the config, such as a commit ID.
        counts: The number of packages for each outcome.
        drafts: For each target name, maps each pushed draft branch to its new head.
        unpushed_drafts: Maps a target name to the drafts that were not pushed.
        is_clean: Whether every fetch, push and function call succeeded.
        status_error: The error that prevented the push of the status. It is "" if the push succeeded.
        is_skipped: Whether the pass was skipped, because no input had changed.
        changes: The numbers of changed packages, conflicts and errors.
        numbers: The numbers of targets and packages by state. Empty if the pass was skipped.
        unavailable_remotes: The number of remotes that could not be fetched.
        dry_commit: The config commit with its author and message, or None for a plain folder.
    """

    config: str
    counts: Mapping[str, int]
    findings: tuple[Finding, ...] = ()
    drafts: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    unpushed_drafts: Mapping[str, Sequence[UnpushedDraft]] = field(default_factory=dict)
    is_clean: bool = True
    status_error: str = ""
    is_skipped: bool = False
    changes: ChangeCounts = NO_CHANGES
    numbers: PassNumbers = field(default_factory=PassNumbers)
    unavailable_remotes: int = 0
    dry_commit: DryCommit | None = None

    @property
    def result(self) -> PassResult:
        """The result of the pass. Findings in the config have no effect on it.

        `partial` means that some remotes could not be used, or that some work was postponed. `failure` means that an
        unexpected exception ended the pass.
        """
        if not self.config:
            return "failure"
        return "success" if self.is_clean and not self.unavailable_remotes else "partial"


class PassRunner:
    """Runs passes. A pass is skipped if the last pass completed all work and no input has changed since.

    Args:
        observe: Called after each pass that is not skipped. Receives the report of the pass, and a mapping from the URL
            of each unreadable remote to the error. Returns findings to report. It must not raise.
    """

    def __init__(
        self,
        source: ConfigSource,
        remotes: Remotes,
        services: PassServices,
        publisher: PlanPublisher,
        store: CompletedPassStore | None = None,
        observe: Callable[[PassReport, Mapping[str, GitError]], tuple[Finding, ...]] = lambda report, failures: (),
    ) -> None:
        self._source = source
        self._remotes = remotes
        self._services = services
        self._publisher = publisher
        self._store = store or InMemoryPassStore()
        self._observe = observe
        # Do not cache plans if approvals by annotation are on, because then each pass must read all drafts.
        self._cache = None if services.has_annotation_approvals else PassCache()
        self._due_at: int | None = None
        self.summary = PassSummary("", {})

    @property
    def seconds_until_due(self) -> float:
        """The seconds until a pass is due at a fixed time, even if no ref moves. Infinite if there is no such time."""
        return math.inf if self._due_at is None else self._due_at - self._services.clock()

    def run(self) -> bool:
        """Run one pass, and return whether all its work is done. If False, repeat the pass soon.

        A failed remote or function has its own back-off and does not delay other work. If an unexpected exception ends
        the whole pass, the summary contains a finding about the exception.

        Raises:
            GitError: The config cannot be read.
        """
        try:
            with isolation_boundary("the pass"), postponed_gc():
                return self._run()
        except ScopeFailedError as error:
            log_failure(error.failure)
            self._store.save(None)
            self.summary = PassSummary(
                "",
                {},
                (create_internal_error_finding(error.failure),),
                is_clean=False,
                changes=NO_CHANGES.model_copy(update={"errors": 1}),
            )
            return False

    def _run(self) -> bool:
        with self._remotes as remotes:
            snapshot = take_snapshot_if_changed(self._source, remotes, self._services, self._store.load())
            if isinstance(snapshot, CompletedPass):
                self.summary = _summarize_skipped(snapshot, remotes.count_unavailable())
                return True
            remotes.include_late_errors_in_digest()
            report = decide_and_publish(snapshot, remotes, self._services, self._publisher, self._cache)
            is_final = report.is_final and not self._publisher.status_error
            maintenance_findings = remotes.maintain()
            observer_findings = self._observe(report, remotes.failures)
            steps = IsolatedSteps()
            with phase("plan"):
                count = partial(
                    compute_pass_numbers,
                    report.plan.targets,
                    _list_pushed(report),
                    self._services.draft_times,
                    snapshot.now,
                )
                numbers = steps.run("the numbers of the pass", count, PassNumbers())
            log_failures((*maintenance_findings, *steps.findings))
            late_findings = (*maintenance_findings, *observer_findings, *steps.findings)
            plan = replace(report.plan, findings=(*report.plan.findings, *late_findings))
            report = replace(report, plan=plan, publish_findings=(*report.publish_findings, *late_findings))
            self._due_at = report.due_at
            # Do not skip the next pass if this pass moved refs. The next pass must read new tags, which can be
            # upstreams, and detect published drafts. If this pass fetched a remote again, the next pass must also read
            # new drafts of other writers.
            has_moved = report.tags.has_new_tags or report.approvals.has_changed_refs or remotes.has_refetched
            # Do not skip the next pass if evidence of a deletion is missing. The evidence can be in files outside of
            # the config directory, and no digest contains these files.
            is_uncertain = report.has_internal_errors or report.unproven_deletions
            is_completed = is_final and not (report.is_waiting or report.is_postponed or has_moved or is_uncertain)
            self._store.save(self._build_completed_pass(snapshot, report) if is_completed else None)
            unpushed_drafts = _list_unpushed_drafts(report, remotes)
            unavailable = remotes.count_unavailable()
        self.summary = replace(
            _summarize(report, self._publisher.status_error, unpushed_drafts),
            numbers=numbers,
            unavailable_remotes=unavailable,
            dry_commit=snapshot.config.dry_commit,
        )
        del snapshot, report, plan
        release_pass_memory()
        return is_final

    def _build_completed_pass(self, snapshot: PassSnapshot, report: PassReport) -> CompletedPass:
        upstreams, targets = self._services.list_urls(snapshot.catalog)
        heads = digest_heads(self._remotes, self._services, snapshot.config.findings)
        is_silent = heads == snapshot.heads and not report.render_count
        # If the next pass would use only cached plans, store the result of the next pass now, so that the next pass can
        # be skipped.
        next_plan = (
            None if is_silent or report.opened_requests or not self._cache else self._cache.find_fleet_plan(report.plan)
        )
        last = replace(report, plan=next_plan, render_count=0) if next_plan else report
        is_silent = is_silent or next_plan is not None
        findings = last.plan.list_findings()
        # Do not store the output of `plan` if it contains warnings or errors. Warnings and errors can describe the
        # environment, for example how long a server has not responded. They also determine the exit status.
        has_plan_texts = is_silent and not report.publish_findings and _has_only_infos(findings)
        return CompletedPass(
            snapshot.config.id, heads, tuple(upstreams), tuple(targets), report.due_at, count_outcomes(last), findings,
            is_silent, snapshot.now, self._services.functions.requested_functions,
            format_plan_without_changes(build_plan_result(last.plan, 0)) if has_plan_texts else {},
            self._services.artifacts.requests,
        )  # fmt: skip


def _has_only_infos(findings: Iterable[Finding]) -> bool:
    return all(finding.severity is Severity.INFO for finding in findings)


def _list_unpushed_drafts(report: PassReport, remotes: Remotes) -> Mapping[str, Sequence[UnpushedDraft]]:
    """Map target names to the drafts that were not pushed. Each draft contains the head of its branch at the remote."""
    failed = {
        name: written
        for name, written in sorted(report.written.items())
        if written.draft_heads and not isinstance(report.outcomes[name], PushDone)
    }
    # Read the branches from the remotes again, because a failed push can have moved some refs.
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
    changes = count_changes(report.plan)
    return PassSummary(
        report.plan.config_id, counts, findings, drafts, unpushed_drafts, is_clean, status_error, changes=changes
    )


def _list_pushed(report: PassReport) -> list[TargetPlan]:
    """Return the plans of all targets that the pass has pushed."""
    return [written.plan for name, written in report.written.items() if isinstance(report.outcomes[name], PushDone)]


def _summarize_skipped(last: CompletedPass, unavailable_remotes: int) -> PassSummary:
    """Return the summary of a skipped pass. Its numbers are those of the last pass that was not skipped."""
    numbers = {name: last.counts.get(name, 0) for name in ("unchanged", "blocked", "held")}
    errors = len(select_errors(last.findings))
    changes = NO_CHANGES.model_copy(update={**numbers, "errors": errors})
    return PassSummary(
        last.config, last.counts, last.findings, is_skipped=True, changes=changes,
        unavailable_remotes=unavailable_remotes,
    )  # fmt: skip
