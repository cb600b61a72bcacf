"""Log events about pushed drafts, and about publications that the pushed states record for the first time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from reconciler.catalog.files import CommitId
from reconciler.git.push_outcomes import PushDone, PushOutcome, PushPostponed, PushStale
from reconciler.planning.decide.fleet_plan import TargetPlan
from reconciler.planning.model.outcomes import Draft, Unchanged
from reconciler.reconcile.commits import WrittenPlan, describe_push_outcome
from reconciler.reconcile.publication_approval import find_approval
from reconciler.reconcile.remotes.repository import Remote
from reconciler.telemetry.event_log import log
from reconciler.telemetry.metrics import PUBLICATIONS

# An event names at most this number of packages and reasons, because one branch can contain thousands of packages.
_MAX_NAMES_IN_EVENT = 20


def log_push_outcomes(remote: Remote, outcomes: Sequence[tuple[WrittenPlan, PushOutcome]]) -> None:
    """Log the results of the pushes to one remote."""
    for written, outcome in outcomes:
        _log_outcome(remote, written, outcome)
    _log_created_branches(remote, [written for written, outcome in outcomes if isinstance(outcome, PushDone)])


def _log_publications(remote: Remote, plan: TargetPlan) -> None:
    """Log each commit that published packages since the last pass."""
    published: dict[CommitId, list[tuple[str, int]]] = {}
    for package, number, commit in list_new_revisions(plan):
        published.setdefault(commit, []).append((package, number))
    for commit, packages in published.items():
        approval = find_approval(remote.read_commit(commit))
        PUBLICATIONS.add(approval.source, amount=len(packages))
        log.info(
            "package_published",
            target=plan.target.name,
            commit=commit,
            count=len(packages),
            packages=[package for package, _ in packages[:_MAX_NAMES_IN_EVENT]],
            revisions=[number for _, number in packages[:_MAX_NAMES_IN_EVENT]],
            source=approval.source,
            author=approval.author,
        )


def list_new_revisions(plan: TargetPlan) -> Iterator[tuple[str, int, CommitId]]:
    """Yield package, revision number and commit for each revision that is missing in the state before this pass."""
    for package, record in sorted(plan.next_state.packages.items()):
        previous = plan.previous_state.packages.get(package)
        # Skip a package without a previous record: it was published earlier, and its state was lost.
        if previous is not None and record.last_revision > previous.last_revision:
            for revision in record.revisions:
                if revision.number > previous.last_revision:
                    yield package, revision.number, revision.commit


def _log_outcome(remote: Remote, written: WrittenPlan, outcome: PushOutcome) -> None:
    target = written.plan.target.name
    if isinstance(outcome, PushDone):
        _log_publications(remote, written.plan)
        _log_pushed(written)
    elif isinstance(outcome, PushPostponed):
        log.info("push_postponed", target=target, message=outcome.reason)
    elif not isinstance(outcome, PushStale):
        log.error("push_failed", target=target, message=describe_push_outcome(outcome))


def _log_created_branches(remote: Remote, pushed: Sequence[WrittenPlan]) -> None:
    """Log the target branches that a push has created, because a misspelled branch name also creates a branch."""
    created = [written.plan.target for written in pushed if written.plan.heads.is_absent and written.draft_heads]
    if created:
        log.warning(
            "target_branch_created",
            remote=remote.mirror.url,
            count=len(created),
            targets=[target.name for target in created[:_MAX_NAMES_IN_EVENT]],
            branches=[target.branch for target in created[:_MAX_NAMES_IN_EVENT]],
        )


def _log_pushed(written: WrittenPlan) -> None:
    """Log the pushed draft branches and the withdrawn packages of one target."""
    plan = written.plan
    target = plan.target
    drafts: dict[str, list[Draft]] = {branch: [] for branch in written.draft_heads}
    for outcome in plan.outcomes:
        if isinstance(outcome, Draft):
            record = plan.next_state.packages[outcome.variant.target.package]
            drafts.setdefault(record.draft_branch, []).append(outcome)
        elif isinstance(outcome, Unchanged) and outcome.should_withdraw:
            package = outcome.variant.target.package
            log.info("draft_withdrawn", target=target.name, package=package, reason=outcome.reason)
    for removal in plan.removals:
        if removal.kind == "withdrawn":
            log.info("draft_withdrawn", target=target.name, package=removal.package, reason=removal.reason)
    for branch, head in written.draft_heads.items():
        members = drafts[branch]
        log.info(
            "draft_pushed",
            target=target.name,
            branch=branch,
            commit=head,
            packages=sorted(draft.variant.target.package for draft in members)[:_MAX_NAMES_IN_EVENT],
            tasks=sorted({draft.task for draft in members}),
            reasons=sorted({cause for draft in members for cause in draft.causes})[:_MAX_NAMES_IN_EVENT],
            conflicts=sum(len(draft.rendered.conflicts) for draft in members),
        )
