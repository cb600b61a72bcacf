"""Applies a confirmed revert: pushes a draft with the earlier content of each published package.

A package whose published content has changed since the approval is skipped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from reconciler.git.errors import GitError
from reconciler.git.push_outcomes import PushDone, PushReport
from reconciler.lazy_dataclasses import dataclass, replace
from reconciler.planning.lifecycle.open_drafts import BlockingReason, TargetPackage, list_target_packages
from reconciler.planning.observe.target_snapshot import TargetSnapshot
from reconciler.reconcile.commits import describe_push_outcome
from reconciler.reconcile.failures import log_if_internal, repository_boundary
from reconciler.reconcile.remotes.targets import OpenTarget, ReviewSelection
from reconciler.review.drafts import DraftReview
from reconciler.review.restore import EarlierContent, RestoredDraft, check_package, format_message, write_draft
from reconciler.review.reverts import FIRST_INSTALLATION, PUBLISHED_AGAIN
from reconciler.review.review_job import JobItem, ReviewJob
from reconciler.review.review_requests import ReviewRequestError
from reconciler.telemetry.event_log import log


@dataclass(frozen=True)
class _Reverted:
    """A draft branch with reverted packages.

    Attributes:
        items: The items of the packages, in the order of the commits of the draft.
    """

    draft: RestoredDraft
    items: tuple[JobItem, ...]


def apply_revert(
    review: DraftReview, items: Sequence[JobItem], job: ReviewJob, report_item: Callable[[JobItem], None]
) -> None:
    """Push a draft with the earlier content of each package. The drafts are reviewed like all other drafts.

    Args:
        items: The waiting items of the job. Each item has one package.
        report_item: Receives each item with its result.

    Raises:
        GitError: The config cannot be read.
    """
    by_target: dict[str, list[JobItem]] = {}
    for item in items:
        by_target.setdefault(item.target, []).append(item)
    selection = ReviewSelection(expected_drafts=tuple(item.expected_draft for item in items))
    by_url: dict[str, list[OpenTarget]] = {}
    for open_target in review.open_targets(selection):
        by_url.setdefault(open_target.target.url, []).append(open_target)
    results: list[JobItem] = []
    # Use one thread for each remote, because a push mostly waits for the response of the remote host.
    with ThreadPoolExecutor(review.max_pushes) as pool:
        for group in pool.map(lambda group: _revert_group(review, group, by_target, job), by_url.values()):
            results += group
            for item in group:
                report_item(item)
    opened = {open_target.target.name for group in by_url.values() for open_target in group}
    for item in (item for name, members in by_target.items() if name not in opened for item in members):
        results.append(item.skip(BlockingReason("TargetDeleted", "the config does not contain the target any more")))
        report_item(results[-1])
    _log_results(results, job)


def _revert_group(
    review: DraftReview, open_targets: Sequence[OpenTarget], by_target: Mapping[str, Sequence[JobItem]], job: ReviewJob
) -> list[JobItem]:
    """Revert packages of targets with the same remote, and return the items with their results."""
    results: list[JobItem] = []
    reverted: list[_Reverted] = []
    for open_target in open_targets:
        items = by_target[open_target.target.name]
        try:
            with repository_boundary(f"{open_target.target.title}: revert"):
                drafts, skipped = _prepare_target(review, open_target, items, job)
        except GitError as error:
            results += _fail(items, error)
        else:
            reverted += drafts
            results += skipped
    target = open_targets[0].target
    try:
        with repository_boundary(f"pushing to {target.url}"):
            units = [entry.draft.unit for entry in reverted]
            report = review.push(target, units) if units else PushReport()
    except GitError as error:
        return [*results, *_fail((item for entry in reverted for item in entry.items), error)]
    return [*results, *(item for entry in reverted for item in _list_results(entry, report))]


def _fail(items: Iterable[JobItem], error: GitError) -> list[JobItem]:
    log_if_internal(error)
    return [replace(item, state="failed", message=error.full_message) for item in items]


def _list_results(reverted: _Reverted, report: PushReport) -> list[JobItem]:
    draft, outcome = reverted.draft, report[reverted.draft.unit.name]
    if isinstance(outcome, PushDone):
        pairs = zip(reverted.items, draft.commits, strict=True)
        return [replace(item, state="done", commit=commit) for item, commit in pairs]
    message = f"{draft.branch}: {describe_push_outcome(outcome)}"
    return [replace(item, state="failed", message=message) for item in reverted.items]


def _prepare_target(
    review: DraftReview, open_target: OpenTarget, items: Sequence[JobItem], job: ReviewJob
) -> tuple[list[_Reverted], list[JobItem]]:
    """Write the drafts of one target, and return them with the items of all packages that are not reverted."""
    snapshot = open_target.snapshot
    if open_target.error:
        return [], [replace(item, state="failed", message=open_target.error) for item in items]
    if snapshot is None:
        reason = BlockingReason("PackageDeleted", "the target has no packages any more")
        return [], [item.skip(reason) for item in items]
    packages = {package.package: package for package in list_target_packages(snapshot, open_target.drafts)}
    by_branch: dict[str, list[tuple[JobItem, EarlierContent]]] = {}
    skipped: list[JobItem] = []
    for item in items:
        name = item.packages[0]
        try:
            content = _find_earlier(snapshot, packages.get(name), item, job)
        except ReviewRequestError as error:
            skipped.append(item.skip(BlockingReason(error.code, str(error))))
        else:
            message = content.message.partition("\n")[0].removeprefix(f"{name}: ")
            by_branch.setdefault(snapshot.find_draft_branch(name), []).append((replace(item, message=message), content))
    reverted = [
        _Reverted(
            write_draft(review, snapshot, branch, [content for _, content in entries], job.person),
            tuple(item for item, _ in entries),
        )
        for branch, entries in by_branch.items()
    ]
    return reverted, skipped


def _find_earlier(
    snapshot: TargetSnapshot, found: TargetPackage | None, item: JobItem, job: ReviewJob
) -> EarlierContent:
    """Return the content of a package before its approval.

    Raises:
        ReviewRequestError: The approval cannot be reverted for this package.
        ObjectMissingError: The repository does not contain a commit any more.
    """
    draft = item.drafts[0]
    package = check_package(found, item.target, draft.package)
    approved, _ = snapshot.find_package_at(draft.published_head, draft.package)
    tree, status = snapshot.find_package_at(draft.head, draft.package)
    if package.published_tree is None:
        raise ReviewRequestError("PackageDeleted", "the package was deleted after the approval")
    if tree is None:
        raise ReviewRequestError(FIRST_INSTALLATION.reason, FIRST_INSTALLATION.message)
    if package.published_tree == tree:
        raise ReviewRequestError("AlreadyReverted", "the earlier content is already published")
    if package.published_tree != approved:
        raise ReviewRequestError(PUBLISHED_AGAIN, "the published content has changed since the approval")
    revisions = reversed(package.record.revisions)
    number = next((revision.number for revision in revisions if revision.version.status == status), None)
    title = f"{draft.package}: revert to " + (f"v{number}" if number else f"commit {draft.head[:12]}")
    text = f"{job.person.git_identity[0]} reverted the content of commit {draft.published_head[:12]} in the console."
    reason = f" Reason: {' '.join(job.reason.split())}" if job.reason else ""
    return EarlierContent(draft.package, tree, status, format_message(title, text + reason))


def _log_results(items: Iterable[JobItem], job: ReviewJob) -> None:
    """Write one log event for each state, with the targets of the items in this state."""
    by_state: dict[str, list[JobItem]] = {}
    for item in items:
        by_state.setdefault(item.state, []).append(item)
    for state, members in sorted(by_state.items()):
        emit = log.info if state == "done" else log.warning
        refusals = sorted({item.code for item in members if item.code})
        emit(
            "review_action",
            action=job.verb,
            actor=job.person.signature,
            actor_source="console",
            targets=sorted({item.target for item in members}),
            packages=[f"{item.target}/{package}" for item in members for package in item.packages],
            reason=job.reason,
            result="refused" if state == "skipped" else state,
            commits=[item.commit for item in members if item.commit],
            request_id=job.request_id,
            **({"refusals": refusals} if refusals else {}),
        )
