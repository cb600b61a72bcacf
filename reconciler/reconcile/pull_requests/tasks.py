"""Builds a task for each draft branch that needs a pull request.

The calls that create and update pull requests are in `request_updates`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from reconciler.catalog.files import CommitId
from reconciler.forge.port import ACCEPT_CONFLICTS, PullRequest
from reconciler.git.errors import GitError, InternalGitError
from reconciler.krm.internal_errors import InternalFailure
from reconciler.krm.json_text import compute_digest
from reconciler.lazy_dataclasses import dataclass, replace
from reconciler.output.review.pull_request import CommitPageUrl, PullRequestText, build_pull_request_text
from reconciler.planning.lifecycle.open_drafts import OpenDraft, list_blocking_errors
from reconciler.planning.model.state import PullRequestRecord, TargetState
from reconciler.planning.model.targets import Target
from reconciler.reconcile.failures import repository_boundary
from reconciler.reconcile.remotes.remotes import Remotes
from reconciler.reconcile.remotes.targets import BRANCH_PREFIX, DraftReader, proposed_ref, read_target_state

# Limit for the number of texts that one pass writes for pull requests that cannot be opened yet.
_MAX_WAITING_TEXTS = 200


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
    """Mark the task as accepted if a label of the open pull request accepts the conflicts.

    The label is valid only if an earlier pass has read the pull request at the current head, and the pull request did
    not have the label then. Therefore, a label that was added for an earlier head is not valid. The state of the target
    contains the head at which the label was missing, so that all replicas have the same result.
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
        can_use_label: Receives the URL of a repository. Returns whether its reviewers can use a label to accept
            conflicts.
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
    """Return the tasks, each with the other clusters that have a draft with the same change."""
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
        # Store the error in the task, because it must not affect other drafts. An example is a file above the size
        # limit that a person pushed to one draft.
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
