"""What there is to do about pull requests: one for each draft branch, in words where something has moved."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from reconciler.daemon.isolation import repository_boundary
from reconciler.daemon.open_drafts import DraftReader
from reconciler.daemon.publish import HEADS, proposed_ref
from reconciler.daemon.remotes import Remotes
from reconciler.daemon.states import read_state
from reconciler.forge.request import ACCEPT_CONFLICTS, PullRequest
from reconciler.gitio.errors import GitError, InternalGitError
from reconciler.krm.digest import digest
from reconciler.krm.isolation import InternalFailure
from reconciler.planning.destination import Destination
from reconciler.planning.open_drafts import OpenDraft, blocked_by
from reconciler.planning.state import DestinationState, OpenRequest
from reconciler.reporting.pull_request import Page, RequestWords, request_words
from reconciler.snapshot.objects import CommitId

# requests that are put into words in one pass while they wait to be opened
_MOST_WAITING = 200


@dataclass(frozen=True)
class RequestTask:
    """One draft branch that is to have a request. `read` tells whether what its words are made from has moved.

    `since` is the date of its head: what waits longest comes first. `trouble` is why nothing can be said of it.
    `others` are the other clusters whose drafts change the same. `accepted`: a reviewer accepted the conflicts of this
    very head. `failure` is the unexpected exception that ended the work on its words.
    """

    destination: Destination
    branch: str
    head: CommitId
    known: OpenRequest
    read: str
    since: int
    proposed: bool
    words: RequestWords | None = None
    trouble: str = ""
    others: tuple[str, ...] = ()
    accepted: bool = False
    failure: InternalFailure | None = None

    @property
    def key(self) -> str:
        """The name of the task for what it is about now: a draft that moves is another task."""
        return f"{self.destination.url} {self.branch} {self.read}"

    @property
    def change(self) -> str:
        """The digest of what the draft changes; "" while nobody has looked."""
        return self.words.change if self.words else self.known.change


def request_tasks(destination: Destination, remotes: Remotes, state_ref: str) -> Iterator[RequestTask]:
    """Yield a task for each draft branch of a destination that stands."""
    remote = remotes.get(destination.url)
    state = read_state(destination, remote, state_ref) if remote else None
    if remote is None or not isinstance(state, DestinationState):
        return
    refs = remote.refs
    published = refs.get(HEADS + destination.branch)
    for branch, draft in sorted(state.drafts.items()):
        head = refs.get(HEADS + branch)
        if head is None or published is None:
            continue
        read = digest([head, published, _blocked(state, branch)])
        proposed = refs.get(proposed_ref(branch)) == head
        since = remote.commit(head).seconds
        yield RequestTask(destination, branch, head, draft.request or OpenRequest(), read, since, proposed)


def with_acceptance(task: RequestTask, request: PullRequest | None) -> RequestTask:
    """Return the task with whether the label of its open request accepts the conflicts of its head.

    The label counts only if the request was seen without it at this head before. So a label that was set for another
    head never counts, whichever replica looks, and whenever: what was seen is in the state of the destination.
    """
    is_current = request is not None and request.commit == task.head == task.known.unlabelled
    if not is_current or request is None or not request.accepts_conflicts:
        return task
    return replace(task, accepted=True, read=digest([task.read, "accepted"]))


def worded(
    tasks: Iterable[RequestTask],
    reader: DraftReader,
    needs_words: Callable[[RequestTask], bool],
    page: Page,
    asks_for_label: Callable[[str], bool],
) -> Iterator[RequestTask]:
    """Yield the tasks, those that have something to say in words: the ones that wait longest first.

    `asks_for_label` is whether a reviewer can accept conflicts by a label, by the address of the repository.
    """
    room = _MOST_WAITING
    benches: dict[Destination, Mapping[str, OpenDraft]] = {}
    for task in sorted(tasks, key=lambda one: (one.since, one.destination.key, one.branch)):
        waits = not task.known.number and task.read == task.known.read
        if not needs_words(task) or (waits and room <= 0):
            yield task
            continue
        room -= waits
        if task.destination not in benches:
            bench = reader.look(task.destination)
            benches[task.destination] = {one.branch: one for one in bench.drafts}
        draft = benches[task.destination].get(task.branch)
        label = ACCEPT_CONFLICTS if asks_for_label(task.destination.url) else ""
        yield _in_words(task, draft, reader, page, label) if draft else task


def with_others(tasks: Sequence[RequestTask]) -> list[RequestTask]:
    """Return the tasks, each knowing the clusters whose drafts change the same."""
    alike: dict[str, list[str]] = {}
    for task in tasks:
        alike.setdefault(task.change, []).append(task.destination.name)
    return [replace(one, others=_others(one, alike[one.change])) if one.words else one for one in tasks]


def _others(task: RequestTask, names: Iterable[str]) -> tuple[str, ...]:
    return tuple(name for name in names if name != task.destination.name)


def _in_words(task: RequestTask, draft: OpenDraft, reader: DraftReader, page: Page, label: str) -> RequestTask:
    try:
        with repository_boundary(f"{task.destination.title}: the pull request of {task.branch}"):
            return replace(task, words=_words(draft, reader, page, label))
    except InternalGitError as error:
        return replace(task, failure=error.failure)
    except GitError as error:
        # people may put onto one draft what is too large to be read; the others are told of all the same
        return replace(task, trouble=error.told)


def _words(draft: OpenDraft, reader: DraftReader, page: Page, label: str) -> RequestWords:
    sheet = reader.sheet(draft, whole=True)
    known = {(one.reason, one.message) for one in draft.refusals()}
    blocked = (reason for one in draft.packages for reason in one.blocked)
    return request_words(sheet, [one for one in blocked if (one.reason, one.message) not in known], page, label)


def _blocked(state: DestinationState, branch: str) -> list[list[str]]:
    offered = (record for _, record in sorted(state.packages.items()) if record.put and record.draft == branch)
    return [[one.reason, one.message] for record in offered for one in blocked_by(record)]
