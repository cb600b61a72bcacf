"""Updates the pull requests of one repository: opens, changes and closes them, and reports checks of their commits.

An error of the forge affects only one pull request and its back-off. If too many pull requests fail, or if the rate
limit of the forge is reached, the update of the repository ends.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence

from reconciler.forge.errors import (
    ForgeBusyError,
    ForgeError,
    ForgeMissingError,
    ForgeRefusedError,
    ForgeUnreachableError,
    InternalForgeError,
)
from reconciler.forge.port import ACCEPT_CONFLICTS, Forge, MergeMethod, NewRequest, PullRequest, Verdict
from reconciler.git.errors import GitError
from reconciler.krm.internal_errors import InternalFailure
from reconciler.krm.json_text import compute_digest
from reconciler.lazy_dataclasses import dataclass, field, replace
from reconciler.output.review.pull_request import PullRequestText, has_generated_block, replace_generated_block
from reconciler.planning.model.state import PullRequestRecord
from reconciler.reconcile.failures import forge_boundary
from reconciler.reconcile.pull_requests.open_requests import PullRequestCache
from reconciler.reconcile.pull_requests.tasks import PullRequestTask
from reconciler.reconcile.remotes.repository import Remote
from reconciler.reconcile.remotes.scheduling import Backoff
from reconciler.reconcile.remotes.targets import BRANCH_PREFIX
from reconciler.telemetry.event_log import log

# After this number of failed pull requests, the forge is treated as unavailable.
_MAX_FAILED_REQUESTS = 3
# Errors that affect only one pull request, and not the whole forge.
_REQUEST_ERRORS = (ForgeRefusedError, ForgeMissingError)


@dataclass(frozen=True)
class PullRequestOptions:
    """Options for pull requests.

    Attributes:
        should_open_as_draft: Whether the forge shows new pull requests as drafts until the branch is proposed.
        max_open: The maximal number of open pull requests in a repository, or 0 for no limit.
        should_report_check: Whether the daemon sets a check on the head commit that shows whether the draft can be
            published.
        merge_method: How `reconciler approve` merges a pull request. None if the command pushes to the target branch
            instead.
    """

    should_open_as_draft: bool = True
    labels: tuple[str, ...] = ()
    max_open: int = 0
    should_report_check: bool = True
    merge_method: MergeMethod | None = None

    def build_request(self, task: PullRequestTask, text: PullRequestText) -> NewRequest:
        """Return the data of the new pull request for a draft."""
        body = text.format_body(task.other_clusters)
        return NewRequest(task.branch, task.target.branch, text.title, body, self.should_open_as_draft, self.labels)


@dataclass
class PullRequestResult:
    """The result of a `PullRequestTask`.

    Attributes:
        recorded: The data about the pull request for the state of the target.
        error: The reason why the pull request could not be updated.
        is_waiting: Whether a later pass must open the pull request.
        is_opened: Whether this pass opened the pull request.
        is_unfinished: Whether the forge does not show the new head yet, or still shows a label for an earlier head.
        failure: The unexpected exception that ended the task. The next pass tries again.
    """

    task: PullRequestTask
    recorded: PullRequestRecord
    error: str = ""
    is_waiting: bool = False
    is_opened: bool = False
    is_unfinished: bool = False
    failure: InternalFailure | None = None

    def postpone(self) -> None:
        """Postpone the task to a later pass. Record its change digest, to find equal changes of other clusters."""
        self.is_waiting = not self.recorded.number
        if self.is_waiting and self.task.text:
            self.recorded = replace(
                self.recorded, inputs_digest=self.task.input_digest, change_digest=self.task.change_digest
            )


class PullRequestBackoff:
    """The back-off and the last error of each task. If a draft changes, its new task has no back-off."""

    def __init__(self, backoff: Backoff) -> None:
        self._backoff = backoff
        self._errors: dict[str, str] = {}

    def is_waiting(self, task: PullRequestTask) -> bool:
        """Return whether the back-off of a task has not ended yet."""
        return self._backoff.is_waiting(task.key)

    def get_error(self, task: PullRequestTask) -> str:
        """Return the last error of a task. Return "" if the task has no error."""
        return self._errors.get(task.key, "")

    def record_error(self, result: PullRequestResult, error: str) -> None:
        """Record an error of a task, and start the back-off of the task."""
        result.error = self._errors[result.task.key] = error
        self._backoff.record_failure(result.task.key)

    def record_refusal(self, result: PullRequestResult, message: str) -> None:
        """Record that the forge refused the pull request of a task."""
        self.record_error(
            result, f'the forge refused the pull request of branch "{result.task.branch}" with the error "{message}"'
        )

    def record_success(self, task: PullRequestTask) -> None:
        """Delete the error and the back-off of a task."""
        self._backoff.record_success(task.key)
        self._errors.pop(task.key, None)


@dataclass
class RepositoryUpdate:
    """The results of the update of all pull requests of one repository.

    Attributes:
        retry_at: When the rate limit allows the next call, in seconds since 1970.
        error: The error that ended the update.
        error_count: The number of tasks that failed because the forge was unreachable.
        failures: Unexpected exceptions outside of the tasks.
    """

    url: str = ""
    retry_at: float | None = None
    error: ForgeError | None = None
    results: list[PullRequestResult] = field(default_factory=list)
    error_count: int = 0
    failures: list[InternalFailure] = field(default_factory=list)

    @property
    def is_over(self) -> bool:
        """Whether this pass must not call the forge again."""
        return self.error is not None or self.retry_at is not None

    def stop(self, error: ForgeError) -> None:
        """End the update of the repository, because of an error or a rate limit."""
        if isinstance(error, ForgeBusyError):
            self.retry_at = error.until
        else:
            self.error = error


class PullRequestUpdater:
    """Updates the pull requests of repositories. Each call of `update_repository` updates one repository."""

    def __init__(self, cache: PullRequestCache, options: PullRequestOptions, backoff: PullRequestBackoff) -> None:
        self._cache = cache
        self._options = options
        self._backoff = backoff

    def update_repository(
        self, url: str, forge: Forge, tasks: Sequence[PullRequestTask], remote: Remote | None
    ) -> RepositoryUpdate:
        """Update the pull requests of one repository. The result contains the errors of the forge."""
        update = RepositoryUpdate(url)
        try:
            with forge_boundary(f"the pull requests of deleted draft branches in {url}"):
                self._close_without_branch(url, forge, tasks, remote)
        except InternalForgeError as error:
            # Continue with the pull requests of existing drafts. This failure only means that the pull requests of
            # deleted branches stay open.
            update.failures.append(error.failure)
        except ForgeError as error:
            update.stop(error)
        for task in tasks:
            result = PullRequestResult(task, task.recorded)
            update.results.append(result)
            if update.is_over:
                result.postpone()
            else:
                self._try_to_update(update, forge, result)
        if update.error:
            self._cache.record_failure(url, update.error)
        return update

    def _try_to_update(self, update: RepositoryUpdate, forge: Forge, result: PullRequestResult) -> None:
        try:
            with forge_boundary(f"{result.task.target.title}: the pull request of {result.task.branch}"):
                self._update_request(update.url, forge, result)
        except InternalForgeError as error:
            result.failure = error.failure
        except _REQUEST_ERRORS as error:
            self._backoff.record_refusal(result, error.message)
        except ForgeError as error:
            result.postpone()
            self._record_forge_error(update, result, error)

    def _record_forge_error(self, update: RepositoryUpdate, result: PullRequestResult, error: ForgeError) -> None:
        """Record an error of one pull request. After several errors, end the update of the repository."""
        if isinstance(error, ForgeUnreachableError):
            message = f'the pull request of branch "{result.task.branch}" failed with the error "{error.message}"'
            self._backoff.record_error(result, message)
            update.error_count += 1
            if update.error_count < _MAX_FAILED_REQUESTS:
                return
        update.stop(error)

    def _close_without_branch(
        self, url: str, forge: Forge, tasks: Sequence[PullRequestTask], remote: Remote | None
    ) -> None:
        """Close the pull requests of deleted draft branches, because not every forge closes them."""
        for request in self._list_without_branch(url, {task.branch for task in tasks}, remote):
            try:
                self._close(url, forge, request)
            except _REQUEST_ERRORS as error:
                log.warning("pull_request_failed", url=request.url, branch=request.head, message=error.message)

    def _list_without_branch(self, url: str, drafts: Collection[str], remote: Remote | None) -> list[PullRequest]:
        if remote is None:
            return []
        branch_names = {ref.removeprefix(BRANCH_PREFIX) for ref in remote.refs}.union(drafts)
        requests = [
            request
            for request in self._cache.open_requests(url).values()
            if has_generated_block(request.body) and request.head not in branch_names
        ]
        try:
            # Read the branches from the remote again, because another writer may have pushed the branch in the
            # meantime. If the pull request of an existing branch were closed, the draft would be declined.
            branches = remote.mirror.list_remote_branches() if requests else {}
        except GitError as error:
            log.warning("pull_request_cleanup_failed", remote=url, message=error.message)
            return []
        return [request for request in requests if BRANCH_PREFIX + request.head not in branches]

    def _close(self, url: str, forge: Forge, request: PullRequest) -> None:
        current = forge.get_request(request.number)
        if current.state == "open":
            forge.close(current)
            current = replace(current, state="closed")
            log.info("pull_request_closed", url=current.url, branch=current.head)
        self._cache.record(url, current)

    def _update_request(self, url: str, forge: Forge, result: PullRequestResult) -> None:
        task = result.task
        if self._backoff.is_waiting(task):
            result.error = self._backoff.get_error(task)
            return
        if task.failure:
            result.failure = task.failure
            return
        if task.error:
            result.error = (
                f'the text of the pull request of branch "{task.branch}" cannot be written, because {task.error}'
            )
            return
        request = self._find_open_request(url, result)
        if request is None and result.recorded.number:
            return
        if request is None and task.text is None:
            result.postpone()
            return
        request = request or self._open_request(url, forge, result)
        if request is None:
            return
        for step in self._list_steps(url, forge, result):
            # The check of the commit is required. Therefore, continue after an error, such as a refused text or label.
            try:
                step()
            except _REQUEST_ERRORS as error:
                self._backoff.record_refusal(result, error.message)
        if not result.error and not result.is_unfinished:
            result.recorded = replace(
                result.recorded, inputs_digest=task.input_digest, change_digest=task.change_digest
            )
            self._backoff.record_success(task)

    def _find_open_request(self, url: str, result: PullRequestResult) -> PullRequest | None:
        """Return the open pull request of a draft. Return None if no pull request of the draft is open.

        If the pull request was closed or merged at the current head, the next pass decides about the draft.
        """
        task, number = result.task, result.recorded.number
        request = self._cache.find_request(url, number, task.branch) if number else None
        if number and (request is None or has_ended(request, task)):
            # Delete the recorded number, because the draft needs a different pull request, which may be open already.
            result.recorded = PullRequestRecord(change_digest=result.recorded.change_digest)
            number = 0
        if not number:
            request = self._cache.find_by_branches(url, task.branch, task.target.branch)
        if request is None or request.state != "open":
            return None
        result.recorded = replace(result.recorded, number=request.number)
        return request

    def _open_request(self, url: str, forge: Forge, result: PullRequestResult) -> PullRequest | None:
        task, text = result.task, result.task.text
        assert text is not None
        max_open = self._options.max_open
        open_requests = self._cache.open_requests(url).values()
        if max_open and sum(has_generated_block(request.body) for request in open_requests) >= max_open:
            result.postpone()
            return None
        try:
            request = forge.create(self._options.build_request(task, text))
            result.is_opened = True
        except ForgeRefusedError as error:
            # The forge refuses a second pull request for the same branch. Find the existing pull request. Another
            # writer opened it, or an earlier call of this process opened it but received no response.
            existing = forge.find(task.branch, task.target.branch)
            if existing is None or existing.state != "open":
                raise
            log.warning("pull_request_found", url=existing.url, branch=task.branch, message=error.message)
            request = existing
        self._cache.record(url, request)
        result.recorded = replace(result.recorded, number=request.number)
        log.info("pull_request_opened", target=task.target.name, branch=task.branch, url=request.url)
        return request

    def _list_steps(self, url: str, forge: Forge, result: PullRequestResult) -> Iterator[Callable[[], None]]:
        yield lambda: self._update_text(url, forge, result)
        yield lambda: self._require_label(url, forge, result)
        yield lambda: self._report_check(forge, result)
        yield lambda: self._set_ready_for_review(url, forge, result)

    def _update_text(self, url: str, forge: Forge, result: PullRequestResult) -> None:
        request, text = self._cache.open_requests(url)[result.recorded.number], result.task.text
        body = replace_generated_block(request.body, text.format_body(result.task.other_clusters)) if text else None
        if text is None or body is None:
            return
        updated = forge.update(request, text.title, body)
        if updated.number != request.number:
            # Record the previous pull request as closed, because the forge has replaced it with a new pull request.
            self._cache.record(url, replace(request, state="closed"))
        self._cache.record(url, updated)
        result.recorded = replace(result.recorded, number=updated.number)
        log.info("pull_request_updated", branch=updated.head, url=updated.url)

    def _require_label(self, url: str, forge: Forge, result: PullRequestResult) -> None:
        """Remove the label that accepts conflicts, and then record the head of the pull request.

        If a reviewer adds the label later, the label accepts the conflicts of the recorded head. If the forge shows a
        different head, or still shows the label, nothing is recorded.
        """
        task, text = result.task, result.task.text
        if (
            not self._options.should_report_check
            or text is None
            or not text.conflicts
            or result.recorded.unlabeled_head == task.head
        ):
            return
        request = self._cache.open_requests(url)[result.recorded.number]
        if request.accepts_conflicts:
            forge.remove_label(request, ACCEPT_CONFLICTS)
            log.info("label_removed", branch=request.head, url=request.url, label=ACCEPT_CONFLICTS)
        # Read head and labels in one response, because another writer or a reviewer may have changed them.
        current = forge.get_request(request.number)
        self._cache.record(url, current)
        if current.commit == task.head and not current.accepts_conflicts:
            result.recorded = replace(result.recorded, unlabeled_head=task.head)
        else:
            result.is_unfinished = True

    def _set_ready_for_review(self, url: str, forge: Forge, result: PullRequestResult) -> None:
        """Set the pull request to "ready for review" if the draft is proposed, and otherwise back to "draft".

        If a person set the pull request to "ready for review", do not set it back to "draft".
        """
        request = self._cache.open_requests(url)[result.recorded.number]
        if not self._options.should_open_as_draft:
            return
        is_proposed, is_marked = result.task.is_proposed, result.recorded.is_marked_ready
        if (is_proposed and request.draft) or (not is_proposed and is_marked and not request.draft):
            forge.set_draft(request, not is_proposed)
            self._cache.record(url, replace(request, draft=not is_proposed))
            result.recorded = replace(result.recorded, is_marked_ready=is_proposed)
        elif is_marked and not is_proposed:
            result.recorded = replace(result.recorded, is_marked_ready=False)

    def _report_check(self, forge: Forge, result: PullRequestResult) -> None:
        task, text = result.task, result.task.text
        if not self._options.should_report_check or text is None:
            return
        verdict = Verdict(
            text.can_publish(has_accepted_conflicts=task.has_accepted_conflicts),
            text.format_verdict(has_accepted_conflicts=task.has_accepted_conflicts),
        )
        digest = compute_digest([task.head, verdict.passed, verdict.summary])
        if digest != result.recorded.status_digest:
            forge.set_check(task.head, verdict)
            result.recorded = replace(result.recorded, status_digest=digest)


def has_ended(request: PullRequest, task: PullRequestTask) -> bool:
    """Return whether a pull request is closed or merged, and does not concern the current draft.

    It does not concern the current draft in two cases:

    - Its head is not the head of the draft.
    - It was merged into a branch that is not the target branch.
    """
    if request.state == "open":
        return False
    return request.commit != task.head or (request.state == "merged" and request.base != task.target.branch)
