"""Opens, updates and closes the pull requests of drafts, as one of the last steps of a pass.

Each pass reads the open pull requests from the forge. A pull request that an interrupted pass opened is found by its
branches. The state of a target contains the numbers of its pull requests. With the number, a pass can distinguish a
closed pull request from a pull request that was never opened.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from math import ceil

from reconciler.catalog.files import CommitId
from reconciler.forge.errors import ForgeBusyError, ForgeError, ForgeMissingError, InternalForgeError
from reconciler.forge.port import PullRequest
from reconciler.forge.push_options import build_agit_push
from reconciler.git.errors import GitError, InternalGitError
from reconciler.git.push_outcomes import PushDone, PushFailed, PushOutcome, PushPostponed
from reconciler.krm.findings import Finding, create_internal_error_finding
from reconciler.krm.numbers import format_count
from reconciler.lazy_dataclasses import dataclass, replace
from reconciler.output.review.pull_request import CommitPageUrl, PullRequestText
from reconciler.planning.model.state import PullRequestRecord, TargetState
from reconciler.planning.model.targets import Target
from reconciler.reconcile.codes import PassCodes
from reconciler.reconcile.commits import describe_push_outcome, push_states
from reconciler.reconcile.failures import IsolatedSteps, error_finding, forge_boundary, repository_boundary
from reconciler.reconcile.pull_requests.open_requests import PullRequestCache
from reconciler.reconcile.pull_requests.request_updates import (
    PullRequestBackoff,
    PullRequestOptions,
    PullRequestResult,
    PullRequestUpdater,
    RepositoryUpdate,
    has_ended,
)
from reconciler.reconcile.pull_requests.tasks import (
    PullRequestTask,
    add_acceptance,
    add_other_clusters,
    list_request_tasks,
    write_request_texts,
)
from reconciler.reconcile.remotes.remotes import Remotes
from reconciler.reconcile.remotes.repository import Remote
from reconciler.reconcile.remotes.scheduling import Backoff
from reconciler.reconcile.remotes.targets import DraftReader, RefTemplates, read_target_state
from reconciler.telemetry.event_log import log

_RecordsByTarget = Mapping[Target, Mapping[str, PullRequestRecord]]


def record_requests(results: Iterable[PullRequestResult], remotes: Remotes, state_ref: str) -> list[PushOutcome]:
    """Record the pull requests in the states of their targets, and push the states. Return the outcome of each push.

    If another writer has changed a state before the push, the next pass records the pull requests. If a person closes
    a pull request before it is recorded, the next pass opens it again.
    """
    by_url: dict[str, dict[Target, dict[str, PullRequestRecord]]] = {}
    for result in results:
        if result.recorded != result.task.recorded:
            target = result.task.target
            by_url.setdefault(target.url, {}).setdefault(target, {})[result.task.branch] = result.recorded
    return [
        outcome
        for url, records in sorted(by_url.items())
        for outcome in _push_records(url, records, remotes, state_ref)
    ]


def _push_records(url: str, records: _RecordsByTarget, remotes: Remotes, state_ref: str) -> list[PushOutcome]:
    remote = remotes.get(url)
    if remote is None:
        return []
    try:
        with repository_boundary(f"the numbers of the pull requests of {url}"):
            outcomes = _push_states(remote, records, state_ref)
    except GitError as error:
        outcomes = {url: PushFailed(error)}
    for name, outcome in outcomes.items():
        if not isinstance(outcome, PushDone):
            log.warning("pull_request_record_failed", target=name, message=describe_push_outcome(outcome))
    return list(outcomes.values())


def _push_states(remote: Remote, records: _RecordsByTarget, state_ref: str) -> Mapping[str, PushOutcome]:
    states = [
        (target, _with_records(read_target_state(target, remote, state_ref), target_records))
        for target, target_records in records.items()
    ]
    valid = [(target, state) for target, state in states if state]
    return push_states(remote, valid, state_ref)


def _with_records(state: TargetState | Finding | None, records: Mapping[str, PullRequestRecord]) -> TargetState | None:
    if not isinstance(state, TargetState):
        return None
    drafts = {
        name: replace(draft, pull_request=records.get(name, draft.pull_request)) for name, draft in state.drafts.items()
    }
    return replace(state, drafts=drafts)


# The number of repositories whose pull requests are updated at the same time.
_MAX_PARALLEL_UPDATES = 4


@dataclass(frozen=True)
class PullRequestSummary:
    """The result of the synchronization of pull requests.

    Attributes:
        due_at: The time of the next pass if no ref moves, in seconds since 1970. None if no pass is due.
    """

    findings: tuple[Finding, ...] = ()
    due_at: int | None = None
    opened_count: int = 0


class PullRequests:
    """Keeps one open pull request for each draft branch. Each refused pull request has its own back-off.

    `get_commit_url` returns the URL of a web page that shows a commit. Its arguments are the URL of the repository and
    the commit. The URL "" means the config repository.
    """

    def __init__(
        self, cache: PullRequestCache, options: PullRequestOptions, backoff: Backoff, get_commit_url: CommitPageUrl
    ) -> None:
        self.cache = cache
        self.options = options
        self._backoff = PullRequestBackoff(backoff)
        self._updater = PullRequestUpdater(cache, options, self._backoff)
        self._get_commit_url = get_commit_url

    def update(
        self, targets: Iterable[Target], remotes: Remotes, templates: RefTemplates, retry_at: int
    ) -> PullRequestSummary:
        """Open, update and close the pull requests of these targets, and record them in the states.

        Errors of a forge become findings. `retry_at` is the time of the next attempt after an error, in seconds since
        1970.
        """
        enabled = [target for target in targets if self.cache.is_enabled(target.url)]
        if not enabled:
            return PullRequestSummary()
        steps = IsolatedSteps()
        open_tasks = [task for target in enabled for task in _list_tasks(target, remotes, templates, steps)]
        open_tasks = [add_acceptance(task, self._get_open_request(task)) for task in open_tasks]
        with_texts = write_request_texts(
            open_tasks,
            DraftReader(remotes, templates),
            self._should_write_text,
            self._get_commit_url,
            self._can_use_label,
        )
        tasks = add_other_clusters(list(with_texts))
        # Also read the pull requests of repositories whose first draft this pass has pushed.
        self.cache.refresh({task.target.url for task in tasks} - self.cache.checked_urls)
        updates = list(self._update_repositories(enabled, tasks, remotes))
        updates.append(pushed := RepositoryUpdate(results=list(self._push_for_review(tasks, remotes))))
        outcomes = record_requests(
            (result for update in updates for result in update.results), remotes, templates.state
        )
        errors = [outcome.error for outcome in outcomes if isinstance(outcome, PushFailed)]
        steps.findings += [
            create_internal_error_finding(error.failure) for error in errors if isinstance(error, InternalGitError)
        ]
        summary = self._summarize(enabled, [task.target for task in tasks], updates, retry_at, steps.findings)
        is_recorded = not errors
        is_pushed = not any(result.is_waiting for result in pushed.results)
        if is_recorded and is_pushed:
            return summary
        return replace(summary, due_at=min(summary.due_at or retry_at, retry_at))

    def can_merge(self, target: Target) -> bool:
        """Return whether `reconciler approve` merges pull requests for a target, instead of pushing."""
        return self.options.merge_method is not None and self.cache.has_driver(target.url)

    def merge(self, target: Target, branch: str, head: CommitId, message: str) -> str:
        """Merge the pull request of a draft, and return its URL.

        Raises:
            ForgeError: The merge failed, or the draft branch does not have the head `head` any more.
        """
        url, method = target.url, self.options.merge_method
        forge = self.cache.get_forge(url)
        if forge is None or method is None:
            unread = ForgeMissingError("the pull requests of this repository were not read")
            raise self.cache.failures.get(url) or unread
        request = self.cache.find_by_branches(url, branch, target.branch)
        if request is None:
            raise ForgeMissingError(
                f'no pull request is open from "{branch}" into "{target.branch}"; run `reconciler sync` to open it'
            )
        if request.draft:
            forge.set_draft(request, draft=False)
        forge.merge(replace(request, commit=head), method, message)
        log.info("pull_request_merged", target=target.name, branch=branch, url=request.url)
        return request.url

    def _get_open_request(self, task: PullRequestTask) -> PullRequest | None:
        return self.cache.open_requests(task.target.url).get(task.recorded.number)

    def _can_use_label(self, url: str) -> bool:
        return self.options.should_report_check and self.cache.has_driver(url)

    def _should_write_text(self, task: PullRequestTask) -> bool:
        if self.cache.is_agit(task.target.url):
            return task.recorded.status_digest != task.head
        if self._backoff.is_waiting(task):
            # Write no text during the back-off, because the number of texts per pass is limited, and tasks without a
            # back-off need these texts now.
            return False
        is_unreported = self.options.should_report_check and not task.recorded.status_digest
        return (
            task.input_digest != task.recorded.inputs_digest
            or not task.recorded.number
            or is_unreported
            or self._has_ended(task)
        )

    def _has_ended(self, task: PullRequestTask) -> bool:
        url = task.target.url
        if self.cache.get_forge(url) is None:
            return False
        try:
            request = self.cache.find_request(url, task.recorded.number, task.branch)
        except ForgeError:
            # Ignore the error here, because the update of the pull request reports it.
            return False
        return request is None or has_ended(request, task)

    def _update_repositories(
        self, targets: Sequence[Target], tasks: Sequence[PullRequestTask], remotes: Remotes
    ) -> Iterator[RepositoryUpdate]:
        urls = sorted({target.url for target in targets})
        forges = {url: forge for url in urls if (forge := self.cache.get_forge(url))}
        # Get the remotes before the threads start, because `remotes` cannot be used in several threads.
        remote_by_url: dict[str, Remote | None] = {url: remotes.get(url) for url in forges}

        def update(url: str) -> RepositoryUpdate:
            own_tasks = [task for task in tasks if task.target.url == url]
            try:
                with forge_boundary(f"the pull requests of {url}"):
                    return self._updater.update_repository(url, forges[url], own_tasks, remote_by_url[url])
            except InternalForgeError as error:
                self.cache.record_failure(url, error)
                return RepositoryUpdate(
                    url, error=error, results=[PullRequestResult(task, task.recorded) for task in own_tasks]
                )

        with ThreadPoolExecutor(_MAX_PARALLEL_UPDATES) as pool:
            yield from pool.map(update, forges)

    def _push_for_review(self, tasks: Iterable[PullRequestTask], remotes: Remotes) -> Iterator[PullRequestResult]:
        """Create pull requests by pushes to `refs/for/` (AGit flow). The daemon cannot find or close these pull
        requests later.
        """
        for task in tasks:
            remote = remotes.get(task.target.url)
            if task.text and remote and self.cache.is_agit(task.target.url):
                yield self._push_task(task, task.text, remote)

    def _push_task(self, task: PullRequestTask, text: PullRequestText, remote: Remote) -> PullRequestResult:
        result = PullRequestResult(task, task.recorded, self._backoff.get_error(task))
        if self._backoff.is_waiting(task):
            return result
        ref, options = build_agit_push(self.options.build_request(task, text))
        try:
            with forge_boundary(f"{task.target.title}: the pull request of {task.branch}"):
                outcome = remote.mirror.push_for_review(task.head, ref, options)
        except InternalForgeError as error:
            result.failure = error.failure
            return result
        if isinstance(outcome, PushPostponed):
            result.postpone()
            return result
        if not isinstance(outcome, PushDone):
            self._backoff.record_refusal(result, describe_push_outcome(outcome))
            return result
        self._backoff.record_success(task)
        return PullRequestResult(
            task,
            PullRequestRecord(
                inputs_digest=task.input_digest, change_digest=task.change_digest, status_digest=task.head
            ),
        )

    def _summarize(
        self,
        targets: Sequence[Target],
        draft_targets: Sequence[Target],
        updates: Iterable[RepositoryUpdate],
        retry_at: int,
        internal_errors: Iterable[Finding],
    ) -> PullRequestSummary:
        """Return the findings about pull requests, and the time of the next attempt.

        Args:
            targets: The targets for which pull requests are enabled.
            draft_targets: The targets with drafts.
            retry_at: The time of the next attempt after an error, in seconds since 1970.
            internal_errors: Findings about unexpected exceptions.
        """
        all_updates = list(updates)
        results = [result for update in all_updates for result in update.results]
        findings = [
            *self._list_unreachable(draft_targets, targets), *_list_result_findings(results), *internal_errors
        ]  # fmt: skip
        findings += [create_internal_error_finding(failure) for update in all_updates for failure in update.failures]
        times = [ceil(update.retry_at) for update in all_updates if update.retry_at is not None]
        has_unfinished = any(
            result.is_unfinished or (result.is_waiting and result.task.text is None) for result in results
        )
        if findings or has_unfinished or any(target.url in self.cache.failures for target in draft_targets):
            times.append(retry_at)
        if waiting := sum(result.is_waiting for result in results):
            findings.append(
                PassCodes.PULL_REQUESTS_WAIT.finding(
                    f"no pull request is open for {format_count(waiting, 'draft')}; a later pass opens the missing pull"
                    " requests"
                )
            )
        return PullRequestSummary(
            tuple(findings), min(times, default=None), sum(result.is_opened for result in results)
        )

    def _list_unreachable(self, draft_targets: Sequence[Target], targets: Sequence[Target]) -> Iterator[Finding]:
        for url, error in sorted(self.cache.failures.items()):
            # Report an unexpected exception even if no draft is known, because the exception can prevent that drafts
            # are found.
            affected = targets if isinstance(error, InternalForgeError) else draft_targets
            target = next((target for target in affected if target.url == url), None)
            if target and not isinstance(error, ForgeBusyError):
                message = f'{target.title}: the pull requests cannot be read because of the error "{error.message}"'
                yield error_finding(error, PassCodes.PULL_REQUESTS_UNREACHABLE, message, target.location)


def _list_tasks(
    target: Target, remotes: Remotes, templates: RefTemplates, steps: IsolatedSteps
) -> Sequence[PullRequestTask]:
    scope = f"{target.title}: the pull requests of its drafts"
    return steps.run(scope, lambda: list(list_request_tasks(target, remotes, templates.state)), [], target.location)


def _list_result_findings(results: Iterable[PullRequestResult]) -> Iterator[Finding]:
    for result in results:
        target = result.task.target
        if result.failure:
            yield create_internal_error_finding(result.failure, target.location)
        elif result.error:
            yield PassCodes.PULL_REQUEST_REFUSED.finding(f"{target.title}: {result.error}", target.location)
