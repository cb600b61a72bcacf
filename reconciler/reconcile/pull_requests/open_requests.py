"""Reads the open pull requests from the forges, and builds a task for each draft branch that needs a pull request.

The calls that create and update pull requests are in `request_updates`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from reconciler.catalog.files import CommitId
from reconciler.forge.errors import ForgeError, ForgeMissingError, InternalForgeError
from reconciler.forge.port import ACCEPT_CONFLICTS, Forge, PullRequest
from reconciler.git.errors import GitError, InternalGitError
from reconciler.krm.internal_errors import InternalFailure
from reconciler.krm.json_text import compute_digest
from reconciler.lazy_dataclasses import dataclass, field, replace
from reconciler.output.review.pull_request import CommitPageUrl, PullRequestText, build_pull_request_text
from reconciler.planning.lifecycle.open_drafts import OpenDraft, list_blocking_errors
from reconciler.planning.model.state import PullRequestRecord, TargetState
from reconciler.planning.model.targets import Target
from reconciler.reconcile.event_log import log
from reconciler.reconcile.failures import forge_boundary, repository_boundary
from reconciler.reconcile.remotes.remotes import Remotes
from reconciler.reconcile.remotes.scheduling import Backoff
from reconciler.reconcile.remotes.targets import BRANCH_PREFIX, DraftReader, proposed_ref, read_target_state

_T = TypeVar("_T")
# The number of repositories whose pull requests are read at the same time.
_MAX_PARALLEL_READS = 4
# Fields of a pull request. A change of only these fields does not require a new pass.
_IGNORED_FIELDS = ("title", "body", "url", "labels")
# Limit for the texts that one pass writes for pull requests that cannot be opened yet.
_MAX_WAITING_TEXTS = 200


@dataclass(frozen=True)
class TargetRequests:
    """The reviews of the drafts of one target in pull requests.

    Attributes:
        approved_heads: The heads of drafts that are approved or being merged. The daemon must not change these drafts.
        closed_drafts: The branches of drafts whose pull requests were closed without a merge.
    """

    approved_heads: Mapping[str, CommitId] = field(default_factory=dict)
    closed_drafts: frozenset[str] = frozenset()


@dataclass(frozen=True)
class ForgeLookup:
    """Finds the forge of a repository, and the kind of the forge, by the URL of the repository.

    The two functions return None if pull requests are disabled. If only pushes can create pull requests on a forge,
    `find_forge` returns None and `find_kind` returns the kind.
    """

    find_forge: Callable[[str], Forge | None]
    find_kind: Callable[[str], str | None]


class PullRequestCache:
    """Caches the open pull requests of all repositories.

    Attributes:
        failures: The last error of each repository whose pull requests cannot be read, by URL.
    """

    def __init__(self, forges: ForgeLookup, backoff: Backoff) -> None:
        self._forges = forges
        self._backoff = backoff
        self._open: dict[str, dict[int, PullRequest]] = {}
        self._ended: dict[tuple[str, int], PullRequest | None] = {}
        self.failures: dict[str, ForgeError] = {}

    def refresh(self, urls: Iterable[str]) -> None:
        """Read the open pull requests of these repositories from their forges. `failures` contains the errors."""
        ready = [url for url in sorted(set(urls)) if not self._backoff.is_waiting(_format_backoff_key(url))]
        due = {url: forge for url in ready if (forge := self._find_forge(url))}
        if not due:
            return
        with ThreadPoolExecutor(_MAX_PARALLEL_READS) as pool:
            for url, result in zip(due, pool.map(_read_open_requests, due, due.values()), strict=True):
                self._record_result(url, result)

    def _record_result(self, url: str, result: Sequence[PullRequest] | ForgeError) -> None:
        if isinstance(result, ForgeError):
            self.record_failure(url, result)
            return
        self.failures.pop(url, None)
        self._backoff.record_success(_format_backoff_key(url))
        self._open[url] = {request.number: request for request in result}

    def record_failure(self, url: str, error: ForgeError) -> None:
        """Record an error of the forge of a repository, and delete the cached pull requests of the repository."""
        self.failures[url] = error
        self._open.pop(url, None)
        self._backoff.record_failure(_format_backoff_key(url))

    def get_forge(self, url: str) -> Forge | None:
        """Return the forge of a repository. Return None if the pull requests of the repository were not read."""
        return self._find_forge(url) if url in self._open else None

    @property
    def checked_urls(self) -> frozenset[str]:
        """The URLs of all repositories for which a read of the pull requests succeeded or failed."""
        return frozenset(self._open) | frozenset(self.failures)

    def has_driver(self, url: str) -> bool:
        """Return whether the pull requests of a repository can be read through an API."""
        return self._find_forge(url) is not None

    def _find_forge(self, url: str) -> Forge | None:
        return self._look_up(url, self._forges.find_forge)

    def _look_up(self, url: str, function: Callable[[str], _T | None]) -> _T | None:
        """Return the result of a function for a URL. An unexpected exception becomes an error of this repository."""
        scope = f"the forge of {url}"
        try:
            with forge_boundary(scope):
                result = function(url)
        except InternalForgeError as error:
            self.failures[url] = error
            return None
        previous = self.failures.get(url)
        if isinstance(previous, InternalForgeError) and previous.failure.scope == scope:
            del self.failures[url]
        return result

    def find_by_branches(self, url: str, head: str, base: str) -> PullRequest | None:
        """Return the open pull request from branch `head` to branch `base`. Return None if there is none."""
        matches = (
            request for request in self.open_requests(url).values() if (request.head, request.base) == (head, base)
        )
        return next(matches, None)

    def is_enabled(self, url: str) -> bool:
        """Return whether pull requests are enabled for a repository."""
        return self.has_driver(url) or url in self.failures or self.is_agit(url)

    def is_agit(self, url: str) -> bool:
        """Return whether pushes to `refs/for/` create the pull requests of a repository (AGit flow)."""
        return self._look_up(url, self._forges.find_kind) == "agit"

    def open_requests(self, url: str) -> Mapping[int, PullRequest]:
        """Return the open pull requests of a repository, by pull request number."""
        return self._open.get(url, {})

    def record(self, url: str, request: PullRequest) -> None:
        """Update the cache with a pull request that the daemon has created or changed."""
        open_requests = self._open.setdefault(url, {})
        if request.state == "open":
            open_requests[request.number] = request
        else:
            open_requests.pop(request.number, None)
            self._ended[url, request.number] = request

    def digest(self) -> str:
        """Return a digest of all data that a pass depends on. It does not contain titles and texts of pull requests."""
        requests = {
            url: [_select_fields(request) for _, request in sorted(open_requests.items())]
            for url, open_requests in self._open.items()
        }
        return compute_digest([requests, {url: error.message for url, error in self.failures.items()}])

    def find_target_requests(
        self, target: Target, state: TargetState, drafts: Mapping[str, CommitId]
    ) -> TargetRequests:
        """Return the reviews of the drafts of a target. `drafts` contains the heads of the draft branches.

        The result is empty if the pull requests were not read. No draft is then approved or declined.
        """
        if target.url not in self._open:
            return TargetRequests()
        numbers = {name: number for name, number in _list_numbers(state).items() if name in drafts}
        requests = {
            name: request
            for name, number in numbers.items()
            if (request := self._try_to_find(target.url, number, name))
        }
        approved = {
            name: request.commit for name, request in requests.items() if request.state == "open" and request.hold
        }
        closed = {
            name for name, request in requests.items() if request.state == "closed" and request.commit == drafts[name]
        }
        return TargetRequests(approved, frozenset(closed))

    def _try_to_find(self, url: str, number: int, head: str) -> PullRequest | None:
        try:
            return self.find_request(url, number, head)
        except ForgeError as error:
            if isinstance(error, InternalForgeError):
                # Store the error, so that it becomes a finding of the repository.
                self.failures[url] = error
            log.warning("pull_request_read_failed", remote=url, number=number, message=error.message)
            return None

    def find_request(self, url: str, number: int, head: str) -> PullRequest | None:
        """Return the open or ended pull request of a draft branch. Return None if it does not exist.

        Raises:
            ForgeError: The forge cannot be read.
        """
        open_requests = self._open.get(url, {})
        if number in open_requests:
            # The pull request is open again, so that its cached closed or merged state is outdated.
            self._ended.pop((url, number), None)
        elif (url, number) not in self._ended and (forge := self._find_forge(url)):
            with forge_boundary(f"pull request {number} of {url}"):
                self._read_request(url, number, forge)
        request = open_requests.get(number) or self._ended.get((url, number))
        # Compare the branch, because in a repository that was created again, another pull request can have the number.
        return request if request and request.head == head else None

    def _read_request(self, url: str, number: int, forge: Forge) -> None:
        try:
            request = forge.get_request(number)
        except ForgeMissingError:
            # Cache that the pull request does not exist. For example, a person has deleted it.
            self._ended[url, number] = None
            return
        if request.state == "open" and url in self._open:
            # Add the open pull request, because the forge can return an outdated list without it.
            self._open[url][number] = request
        else:
            self._ended[url, number] = request


def _format_backoff_key(url: str) -> str:
    # The back-off key of the forge differs from the key of Git, because Git can succeed while the forge fails.
    return f"forge of {url}"


def _read_open_requests(url: str, forge: Forge) -> Sequence[PullRequest] | ForgeError:
    try:
        with forge_boundary(f"the pull requests of {url}"):
            return forge.list_open_requests()
    except ForgeError as error:
        return error


def _select_fields(request: PullRequest) -> dict[str, object]:
    # Ignore all labels except the label that accepts conflicts, because other labels do not require a new pass.
    fields = {name: value for name, value in vars(request).items() if name not in _IGNORED_FIELDS}
    return {**fields, "accepts_conflicts": request.accepts_conflicts}


def _list_numbers(state: TargetState) -> dict[str, int]:
    records = ((name, draft.pull_request) for name, draft in state.drafts.items())
    return {name: record.number for name, record in records if record and record.number}


@dataclass(frozen=True)
class PullRequestTask:
    """The work on the pull request of one draft branch.

    Attributes:
        recorded: The data about the pull request in the state of the target.
        input_digest: A digest of all data that the text of the pull request depends on.
        head_seconds: The date of the head, in seconds since 1970. Older drafts are processed first.
        text: The text of the pull request, or None if no text is needed.
        error: The reason why the text cannot be written.
        other_clusters: The other clusters whose drafts make the same change.
        has_accepted_conflicts: Whether a reviewer accepted the conflicts of this head.
        failure: The unexpected exception that prevented the text.
    """

    target: Target
    branch: str
    head: CommitId
    recorded: PullRequestRecord
    input_digest: str
    head_seconds: int
    is_proposed: bool
    text: PullRequestText | None = None
    error: str = ""
    other_clusters: tuple[str, ...] = ()
    has_accepted_conflicts: bool = False
    failure: InternalFailure | None = None

    @property
    def key(self) -> str:
        """The key of the back-off of this task. The key changes when the draft changes."""
        return f"{self.target.url} {self.branch} {self.input_digest}"

    @property
    def change_digest(self) -> str:
        """The digest of the change that the draft makes. It is "" if the change is unknown."""
        return self.text.change_digest if self.text else self.recorded.change_digest


def list_request_tasks(target: Target, remotes: Remotes, state_ref: str) -> Iterator[PullRequestTask]:
    """Yield a task for each existing draft branch of a target."""
    remote = remotes.get(target.url)
    state = read_target_state(target, remote, state_ref) if remote else None
    if remote is None or not isinstance(state, TargetState):
        return
    refs = remote.refs
    published = refs.get(BRANCH_PREFIX + target.branch)
    for branch, draft in sorted(state.drafts.items()):
        head = refs.get(BRANCH_PREFIX + branch)
        if head is None or published is None:
            continue
        input_digest = compute_digest([head, published, _list_blocking_errors(state, branch)])
        is_proposed = refs.get(proposed_ref(branch)) == head
        seconds = remote.read_commit(head).seconds
        record = draft.pull_request or PullRequestRecord()
        yield PullRequestTask(target, branch, head, record, input_digest, seconds, is_proposed)


def add_acceptance(task: PullRequestTask, request: PullRequest | None) -> PullRequestTask:
    """Return the task with the information whether a label of the open pull request accepts the conflicts.

    The label counts only if an earlier pass has read the pull request at the same head without the label. The state of
    the target contains this head, so that all replicas ignore a label that was added for an earlier head.
    """
    is_current = request is not None and request.commit == task.head == task.recorded.unlabeled_head
    if not is_current or request is None or not request.accepts_conflicts:
        return task
    return replace(task, has_accepted_conflicts=True, input_digest=compute_digest([task.input_digest, "accepted"]))


def write_request_texts(
    tasks: Iterable[PullRequestTask],
    reader: DraftReader,
    needs_text: Callable[[PullRequestTask], bool],
    get_commit_url: CommitPageUrl,
    can_use_label: Callable[[str], bool],
) -> Iterator[PullRequestTask]:
    """Yield all tasks, starting with the oldest. Add the text of the pull request to each task that needs a text.

    Args:
        get_commit_url: Returns the URL of a page that shows a commit.
        can_use_label: Returns for the URL of a repository whether reviewers can accept conflicts with a label.
    """
    remaining = _MAX_WAITING_TEXTS
    drafts_by_target: dict[Target, Mapping[str, OpenDraft]] = {}
    for task in sorted(tasks, key=lambda task: (task.head_seconds, task.target.key, task.branch)):
        is_waiting = not task.recorded.number and task.input_digest == task.recorded.inputs_digest
        if not needs_text(task) or (is_waiting and remaining <= 0):
            yield task
            continue
        remaining -= is_waiting
        if task.target not in drafts_by_target:
            open_target = reader.read_target(task.target)
            drafts_by_target[task.target] = {draft.branch: draft for draft in open_target.drafts}
        draft = drafts_by_target[task.target].get(task.branch)
        label = ACCEPT_CONFLICTS if can_use_label(task.target.url) else ""
        yield _add_text(task, draft, reader, get_commit_url, label) if draft else task


def add_other_clusters(tasks: Sequence[PullRequestTask]) -> list[PullRequestTask]:
    """Return the tasks, and add to each task the other clusters whose drafts make the same change."""
    names_by_change: dict[str, list[str]] = {}
    for task in tasks:
        names_by_change.setdefault(task.change_digest, []).append(task.target.name)
    return [
        replace(task, other_clusters=_list_other_names(task, names_by_change[task.change_digest]))
        if task.text
        else task
        for task in tasks
    ]


def _list_other_names(task: PullRequestTask, names: Iterable[str]) -> tuple[str, ...]:
    return tuple(name for name in names if name != task.target.name)


def _add_text(
    task: PullRequestTask, draft: OpenDraft, reader: DraftReader, get_commit_url: CommitPageUrl, label: str
) -> PullRequestTask:
    try:
        with repository_boundary(f"{task.target.title}: the pull request of {task.branch}"):
            return replace(task, text=_build_text(draft, reader, get_commit_url, label))
    except InternalGitError as error:
        return replace(task, failure=error.failure)
    except GitError as error:
        # Store the error in the task, because it must not affect other drafts. For example, a person pushed a file
        # above the size limit to one draft.
        return replace(task, error=error.full_message)


def _build_text(draft: OpenDraft, reader: DraftReader, get_commit_url: CommitPageUrl, label: str) -> PullRequestText:
    details = reader.read_draft_details(draft, should_read_files=True)
    refusals = {(refusal.reason, refusal.message) for refusal in draft.list_refusals()}
    errors = (error for package in draft.packages for error in package.update_errors)
    extra_reasons = [error for error in errors if (error.reason, error.message) not in refusals]
    return build_pull_request_text(details, extra_reasons, get_commit_url, label)


def _list_blocking_errors(state: TargetState, branch: str) -> list[list[str]]:
    records = (
        record for _, record in sorted(state.packages.items()) if record.draft_version and record.draft_branch == branch
    )
    return [[error.reason, error.message] for record in records for error in list_blocking_errors(record)]
