"""Applies a review action, such as approve, to many drafts.

The action on each draft is atomic. If another writer changes the branch before the push, the action is repeated. This
module does not write the state of a target: the next pass detects published drafts, in the same way as after a merge.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from reconciler.catalog.files import CommitId
from reconciler.forge.errors import ForgeError, ForgeRefusedError, HeadMovedError
from reconciler.git.errors import GitError, InternalGitError, ObjectMissingError
from reconciler.git.push_outcomes import (
    PushDone,
    PushFailed,
    PushOutcome,
    PushPostponed,
    PushRefused,
    PushReport,
    PushStale,
    PushUnit,
)
from reconciler.lazy_dataclasses import dataclass, replace
from reconciler.output.commit_messages import format_approval_message
from reconciler.output.review.action_results import ReviewActionResult, format_draft_conflicts
from reconciler.planning.lifecycle import transitions as lifecycle
from reconciler.planning.lifecycle.open_drafts import BRANCH_MOVED, BlockingReason, OpenDraft
from reconciler.planning.lifecycle.transitions import DraftTransition
from reconciler.planning.model.targets import Target
from reconciler.reconcile.commits import describe_push_outcome
from reconciler.reconcile.draft_approvals import RecordApproval
from reconciler.reconcile.failures import log_if_internal, repository_boundary
from reconciler.reconcile.remotes.targets import BRANCH_PREFIX, ExpectedDraft, OpenTarget, ReviewSelection
from reconciler.reconcile.review_actions import ReviewAction, apply_decision
from reconciler.review.drafts import DraftReview, check_packages_exist
from reconciler.review.required_approvals import require_approvals
from reconciler.telemetry.event_log import log
from reconciler.telemetry.traces import link_next_pass, span

MAX_ACTION_ATTEMPTS = 5
DRAFT_MOVED = "DraftMoved"


@dataclass(frozen=True)
class _Task:
    """Review action on one draft branch.

    Attributes:
        head: Head of the draft branch when the command started, or when a person reviewed the draft.
        packages: Packages that the command refers to. Empty for all packages of the draft.
        published_head: Head of the target branch when a person reviewed the draft. None if it can be any commit.
    """

    target: Target
    branch: str
    head: CommitId
    packages: frozenset[str]
    published_head: CommitId | None = None

    @property
    def name(self) -> str:
        return f"{self.target.key.reference} {self.branch}"

    @property
    def reviewed_branch(self) -> tuple[str, str, CommitId | None]:
        return self.target.url, self.target.branch, self.published_head


def apply_review_action(
    review: DraftReview,
    selection: ReviewSelection,
    action: ReviewAction,
    report_result: Callable[[ReviewActionResult], None] | None = None,
) -> tuple[ReviewActionResult, ...]:
    """Apply a review action to all selected drafts. Repeating an action is not an error.

    If another writer changes the branch before the push, the target is fetched and the action is repeated. An action on
    one draft is tried at most five times. The trace of the next pass in this process has a link to the trace of the
    action.

    Args:
        report_result: Receives each final result, as soon as it is known.

    Raises:
        GitError: The config cannot be read.
        UnknownTargetError: The selection names an unknown target or package.
    """
    with span(f"reconciler.review {action.verb}", {}) as opened:
        results = _apply(review, selection, action, report_result or _ignore_result)
        if opened is not None:
            outcomes = sorted({result.outcome for result in results})
            opened.set_attributes({"review.targets": len(results), "review.results": outcomes})
            if "done" in outcomes:
                link_next_pass()
    return results


def _ignore_result(_result: ReviewActionResult) -> None:
    """Do nothing. The caller of the action uses only the returned results."""


def _apply(
    review: DraftReview,
    selection: ReviewSelection,
    action: ReviewAction,
    report_result: Callable[[ReviewActionResult], None],
) -> tuple[ReviewActionResult, ...]:
    action = replace(action, seconds=review.action_seconds())
    open_targets = review.open_targets(selection)
    check_packages_exist(selection, open_targets)
    results = _list_unknown_targets(selection, open_targets, action)
    pending: list[_Task] = []
    for open_target in open_targets:
        tasks, target_results = _list_tasks_isolated(open_target, selection, action)
        pending += tasks
        results |= target_results
    for result in results.values():
        report_result(result)
    attempts = dict.fromkeys((task.name for task in pending), 0)
    while pending:
        done: dict[str, ReviewActionResult] = {}
        tasks = _select_one_per_branch(pending, action)
        for name, result in _apply_once(review, tasks, action):
            done[name] = result
            attempts[name] += 1
            if not _should_repeat(result, attempts[name]):
                results[name] = result
                report_result(result)
        lost = {name for name, result in done.items() if name not in results}
        review.fetch({task.target.url for task in pending if task.name in lost})
        remaining = [task for task in pending if task.name not in done or task.name in lost]
        pending = _expect_own_commits(remaining, tasks, done, action)
    sorted_results = tuple(results[name] for name in sorted(results))
    _log_action(sorted_results, action)
    return sorted_results


def _should_repeat(result: ReviewActionResult, attempts: int) -> bool:
    return result.outcome == "lost" and attempts < MAX_ACTION_ATTEMPTS


def _list_unknown_targets(
    selection: ReviewSelection, open_targets: Iterable[OpenTarget], action: ReviewAction
) -> dict[str, ReviewActionResult]:
    """Return a result for each confirmed draft whose target has been removed from the config since the confirmation."""
    known = {open_target.target.name for open_target in open_targets}
    reason = BlockingReason(DRAFT_MOVED, "the config does not contain the target any more")
    return {
        f"{draft.target} {draft.branch}": ReviewActionResult(
            draft.target, draft.branch, tuple(sorted(draft.packages)), action.verb, "refused", reasons=(reason,)
        )
        for draft in selection.expected_drafts
        if draft.target not in known
    }


def _expect_own_commits(
    pending: Iterable[_Task], tasks: Iterable[_Task], done: Mapping[str, ReviewActionResult], action: ReviewAction
) -> list[_Task]:
    """Return the pending tasks. If this action has moved the target branch of a task, set its new expected head."""
    if action.verb != "approve":
        return list(pending)
    moves = {
        task.reviewed_branch: CommitId(done[task.name].commit)
        for task in tasks
        if task.published_head and task.name in done and done[task.name].commit
    }
    return [
        replace(task, published_head=moves[task.reviewed_branch]) if task.reviewed_branch in moves else task
        for task in pending
    ]


def _log_action(results: Iterable[ReviewActionResult], action: ReviewAction) -> None:
    """Write one log event for each outcome of a review action, with the targets that have this outcome."""
    by_outcome: dict[str, list[ReviewActionResult]] = {}
    for result in results:
        by_outcome.setdefault(result.outcome, []).append(result)
    for outcome, members in sorted(by_outcome.items()):
        refusals = sorted({reason.reason for result in members for reason in result.reasons})
        emit = log.info if members[0].is_successful else log.warning
        emit(
            "review_action",
            action=action.verb,
            actor=f"{action.person[0]} <{action.person[1]}>" if action.person else "",
            actor_source=action.person_source,
            targets=sorted({result.repository for result in members}),
            packages=[f"{result.repository}/{package}" for result in members for package in result.packages],
            reason=action.message,
            result=outcome,
            commits=[result.commit for result in members if result.commit],
            **({"refusals": refusals} if refusals else {}),
            **({"request_id": action.request.request_id} if action.request else {}),
        )


def _apply_once(
    review: DraftReview, tasks: Sequence[_Task], action: ReviewAction
) -> Iterator[tuple[str, ReviewActionResult]]:
    groups: dict[str, list[_Task]] = {}
    for task in tasks:
        groups.setdefault(task.target.url, []).append(task)
    # Use one thread for each remote, because a push mostly waits for the response of the remote host.
    with ThreadPoolExecutor(review.max_pushes) as pool:
        for results in pool.map(lambda group: _push_group(review, group, action), groups.values()):
            yield from results.items()


def _push_group(review: DraftReview, tasks: Sequence[_Task], action: ReviewAction) -> dict[str, ReviewActionResult]:
    """Apply a review action to drafts of the same remote."""
    target = tasks[0].target
    try:
        prepared = {task.name: _prepare_isolated(review, task, action) for task in tasks}
        units = [unit for _, unit in prepared.values() if unit]
        with repository_boundary(f"pushing to {target.url}"):
            report = review.push(target, units) if units else PushReport()
    except GitError as error:
        # Do not raise the error, because a full disk or damaged mirror of one remote must not stop the action on other
        # remotes.
        log_if_internal(error)
        return {task.name: _create_failure(task, action, error) for task in tasks}
    has_failed = any(isinstance(outcome, PushRefused | PushFailed) for outcome in report.outcomes.values())
    branches = review.list_branches(target) if has_failed else None
    return {
        name: _with_outcome(result, report[name], _describe_remote(unit, branches)) if unit else result
        for name, (result, unit) in prepared.items()
    }


def _describe_remote(unit: PushUnit, branches: Mapping[str, CommitId] | None) -> str:
    """Return an error text about the commits of the branches on the remote after a failed push.

    `branches` is None if the remote did not respond.
    """
    if branches is None:
        return "the state of the remote is unknown"
    refs = dict.fromkeys(update.ref for update in unit.updates if update.ref.startswith(BRANCH_PREFIX))
    heads = [
        f"{ref.removeprefix(BRANCH_PREFIX)} at {branches[ref][:12]}"
        if ref in branches
        else f"no {ref.removeprefix(BRANCH_PREFIX)}"
        for ref in refs
    ]
    return f"the remote has {', '.join(heads)}" if heads else ""


def _prepare_isolated(
    review: DraftReview, task: _Task, action: ReviewAction
) -> tuple[ReviewActionResult, PushUnit | None]:
    """Return the result and the push unit for one draft. Convert an unexpected exception to a failed result."""
    try:
        with repository_boundary(f"{task.target.title}: {action.verb} {task.branch}"):
            return _prepare(review, task, action)
    except InternalGitError as error:
        log_if_internal(error)
        return _create_failure(task, action, error), None


def _prepare(review: DraftReview, task: _Task, action: ReviewAction) -> tuple[ReviewActionResult, PushUnit | None]:
    open_target = review.read_target(task.target)
    draft = next((draft for draft in open_target.drafts if draft.branch == task.branch), None)
    result = ReviewActionResult(task.target.name, task.branch, tuple(sorted(task.packages)), action.verb, "unchanged")
    if task.published_head and (unexpected := _check_expected(review, task, open_target, draft, result)):
        return unexpected, None
    if draft is None:
        message = open_target.error or f'"{task.branch}" does not exist any more'
        return replace(result, outcome="failed" if open_target.error else "unchanged", message=message), None
    if draft.head != task.head:
        return _refuse_moved(result), None
    packages = draft.select_packages(task.packages)
    result = replace(result, packages=tuple(package.package for package in packages))
    if action.verb in ("propose", "approve"):
        result = replace(result, conflicts=format_draft_conflicts(packages))
    if action.verb == "approve" and (reason := review.find_own_change(draft, task.packages, action.person)):
        return replace(result, outcome="refused", reasons=(reason,)), None
    decision: DraftTransition | RecordApproval = action.decide(draft, task.packages)
    if isinstance(decision, lifecycle.PublishDraft):
        decision, action = require_approvals(
            decision, draft, action, review.get_remote(draft.target), review.state_ref, review.required_approvals
        )
    match decision:
        case lifecycle.RefusedTransition(reasons):
            return replace(result, outcome="refused", reasons=reasons), None
        case lifecycle.NoTransition(message):
            return replace(result, message=message), None
        case lifecycle.PublishDraft(is_whole_draft=True) if review.can_merge(draft):
            return _merge(review, result, draft, action), None
        case _:
            remote = review.get_remote(draft.target)
            moves = apply_decision(decision, draft, action, remote, review.state_ref)
            result = replace(result, warnings=draft.list_warnings(task.packages))
            if isinstance(decision, RecordApproval):
                result = replace(result, outcome="recorded", message=decision.message)
            else:
                result = replace(result, outcome="done", commit=moves.commit or "")
            return result, PushUnit(task.name, moves.ref_updates)


def _check_expected(
    review: DraftReview, task: _Task, open_target: OpenTarget, draft: OpenDraft | None, result: ReviewActionResult
) -> ReviewActionResult | None:
    """Return the result for a draft that has changed since the person reviewed it.

    Return None if it has not changed.
    """
    branch = task.target.branch
    if open_target.error:
        return replace(result, outcome="failed", message=open_target.error)
    if _is_published(review, task):
        reason = BlockingReason("AlreadyPublished", f'"{branch}" already contains the reviewed content')
        return replace(
            result, outcome="refused" if result.action in ("reject", "drop") else "unchanged", reasons=(reason,)
        )
    if draft is None:
        reason = BlockingReason(DRAFT_MOVED, f'"{task.branch}" does not exist any more')
        return replace(result, outcome="refused", reasons=(reason,))
    if draft.head != task.head:
        return _refuse_moved(result)
    if draft.published_head != task.published_head:
        reason = BlockingReason(BRANCH_MOVED, f'"{branch}" has changed since the review; review the draft again')
        return replace(result, outcome="refused", reasons=(reason,))
    return None


def _is_published(review: DraftReview, task: _Task) -> bool:
    """Return whether the target branch contains the packages of the task as the person reviewed them."""
    remote = review.get_remote(task.target)
    published = remote.refs.get(BRANCH_PREFIX + task.target.branch)
    paths = [task.target.get_package_path(package) for package in task.packages]
    try:
        return published is not None and all(
            remote.find_tree_at(published, path) == remote.find_tree_at(task.head, path) for path in paths
        )
    except (ObjectMissingError, ValueError):
        # Return False, because the reviewed commit does not exist any more.
        return False


def _refuse_moved(result: ReviewActionResult) -> ReviewActionResult:
    reason = BlockingReason(
        DRAFT_MOVED, f'"{result.branch}" has changed since the command started; review the draft again'
    )
    return replace(result, outcome="refused", reasons=(reason,))


def _merge(
    review: DraftReview, result: ReviewActionResult, draft: OpenDraft, action: ReviewAction
) -> ReviewActionResult:
    """Approve a whole draft by merging its pull request. The forge can refuse the merge."""
    try:
        url = review.merge(draft, _format_merge_message(draft, action))
    except HeadMovedError:
        return _refuse_moved(result)
    except ForgeRefusedError as error:
        return replace(result, outcome="refused", reasons=(BlockingReason("HostRefused", error.message),))
    except ForgeError as error:
        return replace(result, outcome="failed", message=error.message)
    return replace(result, outcome="done", message=f"merged {url}", warnings=draft.list_warnings())


def _format_merge_message(draft: OpenDraft, action: ReviewAction) -> str:
    return format_approval_message(draft, action.message, action.person, action.request, action.approvers)


def _list_tasks_isolated(
    open_target: OpenTarget, selection: ReviewSelection, action: ReviewAction
) -> tuple[list[_Task], dict[str, ReviewActionResult]]:
    """Return the result of `_list_tasks`. Convert an unexpected exception to a failed result of the target."""
    try:
        with repository_boundary(f"{open_target.target.title}: {action.verb}"):
            return _list_tasks(open_target, selection, action)
    except InternalGitError as error:
        log_if_internal(error)
        target = open_target.target
        failure = ReviewActionResult(target.name, "", (), action.verb, "failed", message=error.full_message)
        return [], {target.key.reference: failure}


def _list_tasks(
    open_target: OpenTarget, selection: ReviewSelection, action: ReviewAction
) -> tuple[list[_Task], dict[str, ReviewActionResult]]:
    """Return the tasks for the selected drafts of a target, and results for drafts and packages that need no task."""
    if selection.expected_drafts:
        return _list_expected_tasks(open_target, selection.expected_by_target[open_target.target.name], action)
    target, packages = open_target.target, selection.packages_of(open_target.target.name)
    result = ReviewActionResult(target.name, "", tuple(sorted(packages)), action.verb, "unchanged")
    if open_target.error:
        return [], {target.key.reference: replace(result, outcome="failed", message=open_target.error)}
    selected = {draft.branch: _select_packages(draft, packages) for draft in open_target.drafts}
    drafts = [draft for draft in open_target.drafts if selected[draft.branch] or not packages]
    skipped = [draft.branch for draft in drafts if _must_be_named(draft, packages, selection, action)]
    tasks = [
        _Task(target, draft.branch, draft.head, selected[draft.branch])
        for draft in drafts
        if draft.branch not in skipped
    ]
    absent = packages - {package for draft in drafts for package in selected[draft.branch]}
    results = {
        f"{target.key.reference} {branch}": replace(
            result,
            branch=branch,
            message="the draft removes packages; name these packages in the command, or add --removals",
        )
        for branch in skipped
    }
    if absent or not drafts:
        message = f"no draft contains {', '.join(sorted(absent))}" if absent else "no draft is open"
        # If the user selected all targets, add no result for a target without a draft.
        if selection.references:
            results[target.key.reference] = replace(result, packages=tuple(sorted(absent)), message=message)
    return tasks, results


def _list_expected_tasks(
    open_target: OpenTarget, expected_drafts: Iterable[ExpectedDraft], action: ReviewAction
) -> tuple[list[_Task], dict[str, ReviewActionResult]]:
    target = open_target.target
    tasks = [_Task(target, draft.branch, draft.head, draft.packages, draft.published_head) for draft in expected_drafts]
    if not open_target.error:
        return tasks, {}
    failure = ReviewActionResult(target.name, "", (), action.verb, "failed", message=open_target.error)
    return [], {
        task.name: replace(failure, branch=task.branch, packages=tuple(sorted(task.packages))) for task in tasks
    }


def _select_packages(draft: OpenDraft, packages: frozenset[str]) -> frozenset[str]:
    return packages & {package.package for package in draft.packages}


def _must_be_named(
    draft: OpenDraft, packages: frozenset[str], selection: ReviewSelection, action: ReviewAction
) -> bool:
    # Require a package name or `--removals`, because the deletion of a published package needs an explicit approval.
    return (
        draft.is_removal
        and not packages
        and not selection.should_include_removals
        and action.verb in ("propose", "approve")
    )


def _select_one_per_branch(pending: Iterable[_Task], action: ReviewAction) -> list[_Task]:
    """Return the tasks for one push. Only one task may move a branch, even if several targets share the branch."""
    by_branch: dict[tuple[str, str], _Task] = {}
    for task in pending:
        branch = task.target.branch if action.verb == "approve" else task.branch
        by_branch.setdefault((task.target.url, branch), task)
    return list(by_branch.values())


def _create_failure(task: _Task, action: ReviewAction, error: GitError) -> ReviewActionResult:
    return ReviewActionResult(
        task.target.name,
        task.branch,
        tuple(sorted(task.packages)),
        action.verb,
        "failed",
        message=describe_push_outcome(PushFailed(error)),
    )


def _with_outcome(result: ReviewActionResult, outcome: PushOutcome, remote_state: str) -> ReviewActionResult:
    message = describe_push_outcome(outcome)
    match outcome:
        case PushDone():
            return result
        case PushStale():
            return replace(result, outcome="lost", commit="", message=message)
        case PushRefused():
            reasons = (BlockingReason("HostRefused", message),)
            return replace(result, outcome="refused", commit="", message=remote_state, reasons=reasons)
        case PushFailed():
            return replace(result, outcome="failed", commit="", message=f"{message}; {remote_state}")
        case PushPostponed():
            return replace(result, outcome="failed", commit="", message=message)
