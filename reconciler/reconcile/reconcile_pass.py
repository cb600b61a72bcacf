"""The steps of one pass: plan, commit, push, tag, approve, propose, update pull requests, and push the status.

The module `snapshot` contains the first steps of a pass. The module `pass_context` contains the planning.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from math import ceil
from typing import TypeVar

from reconciler.controllers.results import ControllerResult
from reconciler.git.errors import CacheUnusableError, GitError, GitTimeoutError, MirrorBusyError, SigningFailedError
from reconciler.git.push_outcomes import PushDone, PushFailed, PushOutcome, PushPostponed, PushRefused, PushStale
from reconciler.krm.findings import CommonCodes, Finding, FindingCode, create_internal_error_finding
from reconciler.krm.objects import Condition, ObjectKey
from reconciler.lazy_dataclasses import dataclass, field, replace
from reconciler.output.status.removals import list_pending_removals
from reconciler.output.status.target_statuses import find_blocked_objects
from reconciler.planning.carry_over.other_shards import OtherShardPlans
from reconciler.planning.decide.fleet_plan import FleetPlan, TargetPlan
from reconciler.planning.decide.package_decision import VALID_CONDITION
from reconciler.planning.layout.config_proposal import ConfigProposal
from reconciler.planning.lifecycle.transitions import list_approval_findings
from reconciler.planning.model.outcomes import Blocked, Draft
from reconciler.planning.model.targets import Target
from reconciler.reconcile.codes import PassCodes
from reconciler.reconcile.commits import TagResult, WrittenPlan, describe_push_outcome, merge_tag_results, write_plans
from reconciler.reconcile.config_proposals import create_proposal_findings
from reconciler.reconcile.failures import IsolatedSteps, error_finding, log_failures, repository_boundary
from reconciler.reconcile.pass_cache import PassCache
from reconciler.reconcile.pass_context import PassContext
from reconciler.reconcile.pass_inputs import ConfigSource
from reconciler.reconcile.pull_requests.synchronizer import PullRequestSummary
from reconciler.reconcile.remotes.remotes import Remotes
from reconciler.reconcile.remotes.repository import Remote
from reconciler.reconcile.review_actions import ApprovalResult
from reconciler.reconcile.services import PassServices, PlanPublisher
from reconciler.reconcile.snapshot import (
    PassSnapshot,
    PreparedPass,
    collect_catalog_findings,
    prepare_pass,
    take_snapshot,
)
from reconciler.telemetry.event_log import log
from reconciler.telemetry.phases import phase

PUSH_STILL_RUNNING = "the push to the repository is still running; the next pass reads the result"
_MAX_TITLES_IN_SCOPE = 3
RemotePlans = tuple[Remote, Sequence[TargetPlan]]


def push_plans(
    groups: Sequence[RemotePlans], context: PassContext, remotes: Remotes, publisher: PlanPublisher, max_pushes: int
) -> Iterator[tuple[WrittenPlan, PushOutcome]]:
    """Write and push the plans of each remote, and yield the outcome of each target.

    The function does not wait for a slow push: the outcome of its targets is `PushPostponed`. All commits are written
    before the first push, because writes need the object readers. While a slow push still runs, the caller can close
    the object readers.
    """
    # Write to several mirrors at the same time, because each write mostly waits for git processes.
    targets = sum(len(plans) for _, plans in groups)
    with phase("commit", targets=targets), ThreadPoolExecutor(max_pushes) as pool:
        results_by_group = list(pool.map(partial(_write, context), groups))
    jobs = {}
    for (remote, plans), results in zip(groups, results_by_group, strict=True):
        # Convert errors into outcomes, because a full disk or a damaged mirror of one remote must not stop the others.
        failed = [result for result in results if isinstance(result, tuple)]
        yield from ((WrittenPlan(plan), PushFailed(error)) for plan, error in failed)
        if written := [result for result in results if isinstance(result, WrittenPlan)]:
            jobs[plans[0].target.url] = (remote, written)
    with phase("push", targets=targets):
        outcomes_by_url = remotes.push({url: partial(_push, publisher, *job) for url, job in jobs.items()})
    for url, (_, written) in jobs.items():
        outcomes = outcomes_by_url.get(url)
        yield from ((plan, outcomes[plan.name] if outcomes else PushPostponed(PUSH_STILL_RUNNING)) for plan in written)


def _write(context: PassContext, group: RemotePlans) -> list[WrittenPlan | tuple[TargetPlan, GitError]]:
    """Write the plans of one remote. If the write fails, write each plan separately, so that only one plan fails."""
    remote, plans = group
    written = _try_to_write(context, remote, plans)
    if not isinstance(written, GitError):
        return [*written]
    if len(plans) == 1 or isinstance(
        written, MirrorBusyError | CacheUnusableError | GitTimeoutError | SigningFailedError
    ):
        # An error of these types, e.g. because of a full disk, would occur again for each plan. Do not write the plans
        # separately.
        return [(plan, written) for plan in plans]
    results: list[WrittenPlan | tuple[TargetPlan, GitError]] = []
    for plan in plans:
        result = _try_to_write(context, remote, [plan])
        results += [(plan, result)] if isinstance(result, GitError) else result
    return results


def _try_to_write(context: PassContext, remote: Remote, plans: Sequence[TargetPlan]) -> list[WrittenPlan] | GitError:
    titles = ", ".join(plan.target.title for plan in plans[:_MAX_TITLES_IN_SCOPE])
    more = ", …" if len(plans) > _MAX_TITLES_IN_SCOPE else ""
    try:
        with repository_boundary(f"writing the commits of {titles}{more}"):
            return write_plans(remote, plans, context.config.seconds, context.source_files, context.state_ref)
    except GitError as error:
        return error


def _push(publisher: PlanPublisher, remote: Remote, plans: Sequence[WrittenPlan]) -> Mapping[str, PushOutcome]:
    try:
        with repository_boundary(f"pushing to {remote.mirror.url}"):
            return publisher.publish(remote, plans)
    except GitError as error:
        return {written.name: PushFailed(error) for written in plans}


MAX_PUSH_ATTEMPTS = 5
# The seconds until the next pass if a proposal, tag, approval or pull request could not be written.
PROPOSAL_RETRY_SECONDS = 300
_STATUS_INTERRUPTED: PushOutcome = PushPostponed("the status was not written, because an unexpected exception occurred")
_Item = TypeVar("_Item")


@dataclass(frozen=True)
class PassReport:
    """The result of a pass.

    Attributes:
        plan: The plan of all targets of this shard. Drafts that were not pushed are blocked in this plan.
        outcomes: The outcome of the push of each target, by target name.
        written: The plans with their written commits, by target name.
        due_at: The time of the next pass if no ref moves, in seconds since 1970. None if no pass is due.
        is_postponed: Whether a push waits for a rate limit or is still running. The next pass continues this push.
        unproven_deletions: Findings about missing objects that do not count as deleted, because evidence is missing.
        publish_findings: The findings about proposals, tags and approvals. A dry run has none of these findings,
            because it pushes nothing.
    """

    plan: FleetPlan
    outcomes: Mapping[str, PushOutcome] = field(default_factory=dict)
    written: Mapping[str, WrittenPlan] = field(default_factory=dict)
    render_count: int = 0
    due_at: int | None = None
    proposal_outcome: PushOutcome = field(default_factory=PushDone)
    tags: TagResult = field(default_factory=TagResult)
    approvals: ApprovalResult = field(default_factory=ApprovalResult)
    opened_requests: int = 0
    is_postponed: bool = False
    unproven_deletions: tuple[Finding, ...] = ()
    publish_findings: tuple[Finding, ...] = ()

    @property
    def is_clean(self) -> bool:
        """Whether every fetch, push and function call succeeded. Findings about the config have no effect."""
        return (
            not self._codes
            & {code.name for code in (PassCodes.REPOSITORY_UNREACHABLE, PassCodes.PUSH_FAILED, PassCodes.PUSH_REFUSED)}
            and not self.has_internal_errors
            and not self.is_waiting
            and not self.is_postponed
        )

    @property
    def is_final(self) -> bool:
        """Whether another pass with the same refs would change nothing.

        A pass repeats a push that failed, but not a push that the remote refused.
        """
        return PassCodes.PUSH_FAILED.name not in self._codes and not isinstance(self.proposal_outcome, PushStale)

    @property
    def is_waiting(self) -> bool:
        """Whether a package waits until an interrupted function can be called again."""
        return any(target_plan.has_retries for target_plan in self.plan.targets)

    @property
    def has_internal_errors(self) -> bool:
        """Whether an unexpected exception ended a part of the work, so that another pass must repeat it."""
        return any(finding.code == CommonCodes.INTERNAL_ERROR.name for finding in self.plan.list_findings())

    @property
    def _codes(self) -> set[str]:
        return {finding.code for plan in self.plan.targets for finding in plan.findings}


def _log_moves(pushed: Iterable[WrittenPlan]) -> None:
    """Log each target whose repository has a new URL."""
    for plan in (written.plan for written in pushed):
        if plan.previous_state.url != plan.next_state.url:
            name, before, after = plan.target.name, plan.previous_state.url, plan.next_state.url
            log.info("repository_moved", target=name, before=before, after=after)


def _store_heads(fleet: FleetPlan, context: PassContext, publisher: PlanPublisher, services: PassServices) -> None:
    context.record_heads(plan for plan in fleet.targets if context.has_planned(plan.target))
    publisher.store_known_heads(services.known_heads)
    services.input_verifier.store()


def run_pass(source: ConfigSource, remotes: Remotes, services: PassServices, publisher: PlanPublisher) -> PassReport:
    """Run one complete pass."""
    return decide_and_publish(take_snapshot(source, remotes, services), remotes, services, publisher)


def decide_and_publish(
    snapshot: PassSnapshot,
    remotes: Remotes,
    services: PassServices,
    publisher: PlanPublisher,
    pass_cache: PassCache | None = None,
) -> PassReport:
    """Plan all targets, and push the plans with `publisher`.

    If another writer moves the refs of a target before the push, the target is fetched and planned again, up to five
    times. `pass_cache` contains results of earlier passes of the service. The results of this pass are added to it.
    """
    shard = services.shard
    prepared = prepare_pass(snapshot, remotes, services, pass_cache=pass_cache, shard=shard)
    snapshot, context = prepared.snapshot, prepared.context
    progress = _plan_and_push(prepared, remotes, services, publisher)
    pushed, steps = progress.pushed, IsolatedSteps()
    approvals = ApprovalResult()
    with phase("push"):
        tags = _push_tags(context, pushed, publisher, services.max_pushes, steps)
        if services.has_annotation_approvals:
            approvals = steps.run(
                "approvals by annotation", lambda: _push_approvals(context, pushed, publisher, snapshot.now), approvals
            )
    _log_moves(pushed)
    plans = progress.build_final_plans()
    # Plan the targets of other shards only in the leader shard, which reports the status and proposes config changes
    # for all shards.
    with phase("plan"):
        other_shards = context.plan_other_shards(plans.values()) if shard.is_leader else OtherShardPlans()
    all_plans = {**plans, **{plan.target.key: plan for plan in other_shards.plans}}
    proposal = (
        plan_config_proposal(snapshot, prepared.controller_result, services, all_plans.values(), steps)
        if shard.is_leader
        else ConfigProposal()
    )
    proposal_outcome: PushOutcome = PushDone()
    if shard.is_leader:
        push_proposal = partial(publisher.push_config_proposal, services.config_proposals, proposal, snapshot.config)
        with phase("push"):
            proposal_outcome = steps.run("the push of the config proposal", push_proposal, proposal_outcome)
    retry_at = snapshot.now + PROPOSAL_RETRY_SECONDS
    valid_targets = [plan.target for plan in plans.values() if not plan.findings]
    update_requests = partial(
        publisher.update_pull_requests, services.pull_requests, valid_targets, remotes, services.ref_templates, retry_at
    )
    with phase("pull_requests", targets=len(valid_targets)):
        requests = steps.run("pull requests", update_requests, PullRequestSummary())

    publish_findings = (*create_proposal_findings(proposal, proposal_outcome), *tags.findings, *approvals.findings)

    def build_fleet(targets: Sequence[Target]) -> FleetPlan:
        target_plans = [all_plans[target.key] for target in targets]
        approval_findings = (
            [finding for plan in target_plans for finding in list_approval_findings(plan)]
            if services.has_annotation_approvals
            else []
        )
        findings = (*publish_findings, *approval_findings, *requests.findings, *steps.findings)
        return _build_fleet_plan(snapshot, prepared, target_plans, proposal, findings)

    fleet = replace(build_fleet(prepared.targets), is_partial=not shard.is_alone)
    whole_fleet = None
    if shard.is_leader:
        whole_fleet = (
            fleet
            if shard.is_alone
            else replace(build_fleet(prepared.all_targets), awaited_owners=other_shards.awaited_owners)
        )
    log_failures(fleet.list_findings())
    last_steps = IsolatedSteps()
    with phase("status"):
        status_outcome = last_steps.run(
            "the status of the config objects",
            partial(publisher.push_status, whole_fleet, remotes),
            _STATUS_INTERRUPTED,
        )
    last_steps.findings += publisher.status_findings
    last_steps.run(
        "the time of publications", partial(publisher.store_publication_times, services.publication_times), None
    )
    last_steps.run("the heads of target branches", partial(_store_heads, fleet, context, publisher, services), None)
    if pass_cache is not None:
        update_cache = partial(_update_cache, pass_cache, fleet, context, progress, remotes)
        last_steps.run("the results of this pass", update_cache, None)
    context.release_targets()
    if last_steps.findings:
        # Report errors of the last steps only in the log and in the result, because the status is already written.
        log_failures(last_steps.findings)
        fleet = replace(fleet, findings=(*fleet.findings, *last_steps.findings))
    postponed = [
        outcome
        for outcome in (*progress.outcomes.values(), proposal_outcome, status_outcome)
        if isinstance(outcome, PushPostponed)
    ]
    should_retry = isinstance(proposal_outcome, PushFailed) or tags.has_failed or approvals.has_failed
    rollouts = context.rollouts
    rollout_due_at = snapshot.now if rollouts.is_uncertain and context.render_count else rollouts.next_due_seconds
    postponed_until = [ceil(services.clock() + outcome.seconds) for outcome in postponed if outcome.seconds is not None]
    due_at = _find_due_time(
        prepared.controller_result,
        retry_at if should_retry else None,
        approvals.due_at,
        requests.due_at,
        rollout_due_at,
        *postponed_until,
    )
    return PassReport(
        fleet, progress.outcomes, progress.written, context.render_count, due_at, proposal_outcome, tags, approvals,
        requests.opened_count, bool(postponed), snapshot.catalog.unproven_deletions,
        (*publish_findings, *requests.findings, *steps.findings, *last_steps.findings),
    )  # fmt: skip


@dataclass
class _Progress:
    """The plans of a pass by target key, and the written plans and push outcomes by target name."""

    plans: dict[ObjectKey, TargetPlan] = field(default_factory=dict)
    written: dict[str, WrittenPlan] = field(default_factory=dict)
    outcomes: dict[str, PushOutcome] = field(default_factory=dict)

    @property
    def pushed(self) -> list[WrittenPlan]:
        """The written plans whose push succeeded."""
        return [plan for name, plan in self.written.items() if isinstance(self.outcomes[name], PushDone)]

    def build_final_plans(self) -> dict[ObjectKey, TargetPlan]:
        """Return all plans. In a plan whose push did not succeed, the drafts are blocked."""
        return self.plans | {
            written.plan.target.key: _with_outcome(written.plan, self.outcomes[written.name])
            for written in self.written.values()
        }


def _plan_and_push(
    prepared: PreparedPass, remotes: Remotes, services: PassServices, publisher: PlanPublisher
) -> _Progress:
    """Plan and push all targets. Repeat both steps for each target whose refs another writer moved before the push."""
    context, progress = prepared.context, _Progress()
    remaining = prepared.targets
    for _ in range(MAX_PUSH_ATTEMPTS):
        others = [plan for key, plan in progress.plans.items() if key not in {target.key for target in remaining}]
        with phase("plan", targets=len(remaining)):
            progress.plans |= {plan.target.key: plan for plan in context.plan_targets(remaining, others)}
        # Push only targets that this pass planned, because a target with a cached plan has nothing to write.
        planned = [progress.plans[target.key] for target in remaining if context.has_planned(target)]
        for written, outcome in _publish(context, planned, remotes, publisher, services.max_pushes):
            progress.outcomes[written.name], progress.written[written.name] = outcome, written
        remaining = [target for target in prepared.targets if isinstance(progress.outcomes.get(target.name), PushStale)]
        if not remaining:
            break
        log.info("race_lost", targets=[target.name for target in remaining])
        with phase("fetch"):
            remotes.fetch((), {target.url for target in remaining})
    return progress


def _push_approvals(
    context: PassContext, pushed: Iterable[WrittenPlan], publisher: PlanPublisher, now: int
) -> ApprovalResult:
    groups = _group_by_remote(context, ((written.plan.target, written) for written in pushed))
    return publisher.push_approvals(groups, now)


def _update_cache(
    cache: PassCache, fleet: FleetPlan, context: PassContext, progress: _Progress, remotes: Remotes
) -> None:
    """Store the planned targets in the cache.

    If another writer may have moved the refs of a target, delete the target from the cache.
    """
    for plan in fleet.targets:
        if context.has_planned(plan.target):
            cached = context.build_cached_target(plan, progress.written.get(plan.target.name))
            cache.record(plan.target, None if remotes.has_refetched else cached)
    cache.finish_pass(plan.target.key for plan in fleet.targets)


def plan_fleet(
    prepared: PreparedPass, services: PassServices, reference: tuple[PreparedPass, FleetPlan] | None = None
) -> FleetPlan:
    """Plan the whole fleet, and write no commits.

    `reference` contains the plan of a different config with the same remotes. The plans of targets with equal inputs
    are copied from this plan.
    """
    if reference:
        plans = prepared.context.plan_changed_targets(prepared.targets, reference[0].context, reference[1].targets)
    else:
        plans = prepared.context.plan_targets(prepared.targets, ())
    snapshot = prepared.snapshot
    proposal = plan_config_proposal(snapshot, prepared.controller_result, services, plans, IsolatedSteps())
    fleet = _build_fleet_plan(snapshot, prepared, plans, proposal)
    log_failures(fleet.list_findings())
    return fleet


def _build_fleet_plan(
    snapshot: PassSnapshot,
    prepared: PreparedPass,
    plans: Iterable[TargetPlan],
    proposal: ConfigProposal,
    more_findings: Iterable[Finding] = (),
) -> FleetPlan:
    catalog, context = snapshot.catalog, prepared.context
    findings = (
        *collect_catalog_findings(catalog),
        *snapshot.findings,
        *proposal.findings,
        *map(create_internal_error_finding, context.failures),
        *more_findings,
    )
    return FleetPlan(
        snapshot.config.id, context.latest_commit_seconds(), prepared.controller_result, tuple(plans), findings,
        catalog.uncertain_tenants, proposal, catalog.objects, context.policies, context.rollouts.gates,
        tenants=catalog.tenants,
    )  # fmt: skip


def plan_config_proposal(
    snapshot: PassSnapshot,
    result: ControllerResult,
    services: PassServices,
    plans: Iterable[TargetPlan],
    steps: IsolatedSteps,
) -> ConfigProposal:
    """Return the config proposal of a pass. The proposal cannot use a branch that `plans` already use."""
    return steps.run("the config proposal", lambda: _plan_proposal(snapshot, result, services, plans), ConfigProposal())


def _plan_proposal(
    snapshot: PassSnapshot, result: ControllerResult, services: PassServices, plans: Iterable[TargetPlan]
) -> ConfigProposal:
    taken_branches: dict[str, set[str]] = {}
    for plan in plans:
        drafts = {*plan.next_state.drafts, *(action.branch for action in plan.branch_actions)}
        taken_branches.setdefault(plan.target.repository_id, set()).update({plan.target.branch}, drafts)
    is_complete = not snapshot.catalog.unreadable
    return services.config_proposals.plan(result.pins, snapshot.config, is_complete, taken_branches)


def _find_due_time(result: ControllerResult, *times: int | None) -> int | None:
    settling = (*(variant.settling for variant in result.variants), *(pin.settling for pin in result.pins))
    return min(
        [*(reference.until for reference in settling if reference), *(time for time in times if time is not None)],
        default=None,
    )


def push_failure_code(outcome: PushOutcome) -> FindingCode:
    """Return the finding code for a push that did not succeed."""
    match outcome:
        case PushRefused():
            return PassCodes.PUSH_REFUSED
        case PushPostponed():
            return PassCodes.PUSH_POSTPONED
        case _:
            return PassCodes.PUSH_FAILED


def _with_outcome(plan: TargetPlan, outcome: PushOutcome) -> TargetPlan:
    """Return the plan after its push. If the push did not succeed, the drafts of the plan are blocked."""
    if isinstance(outcome, PushDone):
        return plan
    code = push_failure_code(outcome)
    message = f"{plan.target.title}: {describe_push_outcome(outcome)}"
    error = outcome.error if isinstance(outcome, PushFailed) else None
    finding = error_finding(error, code, message, plan.target.location)
    condition = Condition("Ready", "False", finding.code, finding.message)
    package_outcomes = tuple(
        Blocked(package.variant, package.record, (VALID_CONDITION, condition), (finding,), package.observed)
        if isinstance(package, Draft)
        else package
        for package in plan.outcomes
    )
    removals = tuple(removal for removal in plan.removals if removal.finding and not removal.is_new)
    return replace(
        plan, outcomes=package_outcomes, findings=(finding,), next_state=plan.previous_state, removals=removals
    )


def _publish(
    context: PassContext, plans: Iterable[TargetPlan], remotes: Remotes, publisher: PlanPublisher, max_pushes: int
) -> Iterable[tuple[WrittenPlan, PushOutcome]]:
    groups = _group_by_remote(context, ((plan.target, plan) for plan in plans if not plan.findings))
    context.report_progress("writing", 0, len(groups))
    yield from push_plans(groups, context, remotes, publisher, max_pushes)
    context.report_progress("writing", len(groups), len(groups))


def _push_tags(
    context: PassContext,
    pushed: Iterable[WrittenPlan],
    publisher: PlanPublisher,
    max_pushes: int,
    steps: IsolatedSteps,
) -> TagResult:
    groups = _group_by_remote(
        context, ((written.plan.target, written) for written in pushed if written.plan.missing_tags)
    )

    def push_tags(group: tuple[Remote, list[WrittenPlan]]) -> TagResult:
        scope = f"the tags of {group[0].mirror.url}"
        return steps.run(scope, lambda: publisher.push_tags(*group), TagResult(has_failed=True))

    with ThreadPoolExecutor(max_pushes) as pool:
        return merge_tag_results(pool.map(push_tags, groups))


def _group_by_remote(context: PassContext, items: Iterable[tuple[Target, _Item]]) -> list[tuple[Remote, list[_Item]]]:
    by_url: dict[str, list[_Item]] = {}
    for target, item in items:
        by_url.setdefault(target.url, []).append(item)
    return [(remote, group) for url, group in by_url.items() if (remote := context.get_remote(url))]


def count_outcomes(report: PassReport) -> dict[str, int]:
    """Return the number of packages for each outcome, and the number of renders. The keys are part of the JSON output.

    The number of `blocked` also includes config objects that are blocked by an error finding.
    """
    counts = [plan.outcome_counts for plan in report.plan.targets]
    drafted, unchanged, blocked = map(sum, zip((0, 0, 0), *counts, strict=True))
    blocked += len(find_blocked_objects(report.plan))
    return {
        "drafted": drafted,
        "unchanged": unchanged,
        "blocked": blocked,
        "held": sum(len(plan.held) for plan in report.plan.targets),
        "leaving": sum(len(list_pending_removals(plan)) for plan in report.plan.targets),
        "renders": report.render_count,
        **({"approved": len(report.approvals.packages)} if report.approvals.packages else {}),
        **({"requests": report.opened_requests} if report.opened_requests else {}),
    }
