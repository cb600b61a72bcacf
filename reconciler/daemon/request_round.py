"""One round at one repository of a forge: its drafts' pull requests are opened, worded, checked, marked and closed.

What a forge refuses is the trouble of one pull request, and rests; what it breaks over is that, too, until it breaks
over too many. A budget that is used up ends the round.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace

from reconciler.daemon.backoff import Backoff
from reconciler.daemon.events import log
from reconciler.daemon.isolation import forge_boundary
from reconciler.daemon.publish import HEADS
from reconciler.daemon.remotes import Remote
from reconciler.daemon.request_board import RequestBoard
from reconciler.daemon.request_tasks import RequestTask
from reconciler.forge.errors import (
    ForgeBusyError,
    ForgeError,
    ForgeMissingError,
    ForgeRefusedError,
    ForgeUnreachableError,
    InternalForgeError,
)
from reconciler.forge.port import Forge
from reconciler.forge.request import ACCEPT_CONFLICTS, MergeMethod, NewRequest, PullRequest, Verdict
from reconciler.gitio.errors import GitError
from reconciler.krm.digest import digest
from reconciler.krm.isolation import InternalFailure
from reconciler.planning.state import OpenRequest
from reconciler.reporting.pull_request import RequestWords, body_with, is_ours

# pull requests that a forge may break over before it counts as out of order
_MOST_BROKEN = 3
# what concerns one pull request alone
_OWN_TROUBLE = (ForgeRefusedError, ForgeMissingError)


@dataclass(frozen=True)
class RequestOptions:
    """How requests are opened: as drafts or ready, with which labels, how many may be open at once in a repository.

    `check`: the verdict is set as a check of the commit. With `most_open` 0 there is no limit. `merge` is how those are
    merged that people approve by command; None where they push.
    """

    draft: bool = True
    labels: tuple[str, ...] = ()
    most_open: int = 0
    check: bool = True
    merge: MergeMethod | None = None

    def new(self, task: RequestTask, words: RequestWords) -> NewRequest:
        """Return the request to be opened for a draft."""
        body = words.body(task.others)
        return NewRequest(task.branch, task.destination.branch, words.title, body, self.draft, self.labels)


@dataclass
class Result:
    """The result of one task: what is known of its request now, and what kept it from being more.

    `is_unfinished`: the forge does not have the head of the draft yet, or has a label of another head.
    `failure` is the unexpected exception that ended the work on it; the next pass tries it again.
    """

    task: RequestTask
    known: OpenRequest
    trouble: str = ""
    waits: bool = False
    opened: bool = False
    is_unfinished: bool = False
    failure: InternalFailure | None = None

    def wait(self) -> None:
        """Leave it for another pass; what the draft changes is known from now on, for those that change the same."""
        self.waits = not self.known.number
        if self.waits and self.task.words:
            self.known = replace(self.known, read=self.task.read, change=self.task.change)


class Rests:
    """What tasks rest for, each on its own, until it is tried again or its draft is another."""

    def __init__(self, backoff: Backoff) -> None:
        self._backoff = backoff
        self._troubles: dict[str, str] = {}

    def has(self, task: RequestTask) -> bool:
        """Return whether a task is not to be tried yet."""
        return self._backoff.rests(task.key)

    def trouble(self, task: RequestTask) -> str:
        """Return what a task rests for."""
        return self._troubles.get(task.key, "")

    def begin(self, result: Result, trouble: str) -> None:
        """Let a task rest for this."""
        result.trouble = self._troubles[result.task.key] = trouble
        self._backoff.failed(result.task.key)

    def refused(self, result: Result, words: str) -> None:
        """Let a task rest that was refused in these words."""
        self.begin(result, f"the forge refused a pull request of {result.task.branch}: {words}")

    def end(self, task: RequestTask) -> None:
        """Take note that a task went well."""
        self._backoff.worked(task.key)
        self._troubles.pop(task.key, None)


@dataclass
class Round:
    """A round, and what became of it. `until` is when a budget lets it go on; `error` is the forge's own.

    `broken` counts the requests that the forge broke over, each of which may be the fault of that one.
    `failures` are the unexpected exceptions that belong to no draft.
    """

    url: str = ""
    until: float | None = None
    error: ForgeError | None = None
    results: list[Result] = field(default_factory=list)
    broken: int = 0
    failures: list[InternalFailure] = field(default_factory=list)

    @property
    def is_over(self) -> bool:
        """Whether nothing more is to be asked of the forge."""
        return self.error is not None or self.until is not None

    def stop(self, error: ForgeError) -> None:
        """End the round."""
        if isinstance(error, ForgeBusyError):
            self.until = error.until
        else:
            self.error = error


class RequestRounds:
    """Makes the rounds of all repositories; what is open there stands on the board."""

    def __init__(self, board: RequestBoard, options: RequestOptions, rests: Rests) -> None:
        self._board = board
        self._options = options
        self._rests = rests

    def make(self, url: str, forge: Forge, tasks: Sequence[RequestTask], remote: Remote | None) -> Round:
        """Make the round of one repository; nothing is raised for what its forge does."""
        told = Round(url)
        try:
            with forge_boundary(f"the pull requests without a draft of {url}"):
                self._close_leftovers(url, forge, tasks, remote)
        except InternalForgeError as error:
            # the drafts of this repository need not wait for it
            told.failures.append(error.failure)
        except ForgeError as error:
            told.stop(error)
        for task in tasks:
            result = Result(task, task.known)
            told.results.append(result)
            if told.is_over:
                result.wait()
            else:
                self._try(told, forge, result)
        if told.error:
            self._board.failed(url, told.error)
        return told

    def _try(self, told: Round, forge: Forge, result: Result) -> None:
        try:
            with forge_boundary(f"{result.task.destination.title}: the pull request of {result.task.branch}"):
                self._settle(told.url, forge, result)
        except InternalForgeError as error:
            result.failure = error.failure
        except _OWN_TROUBLE as error:
            self._rests.refused(result, error.message)
        except ForgeError as error:
            result.wait()
            self._broken_over(told, result, error)

    def _broken_over(self, told: Round, result: Result, error: ForgeError) -> None:
        """Take note of what no other may suffer from, unless it is the forge itself that is out of order."""
        if isinstance(error, ForgeUnreachableError):
            words = f"the forge broke over the pull request of {result.task.branch}: {error.message}"
            self._rests.begin(result, words)
            told.broken += 1
            if told.broken < _MOST_BROKEN:
                return
        told.stop(error)

    # requests whose branch is gone

    def _close_leftovers(self, url: str, forge: Forge, tasks: Sequence[RequestTask], remote: Remote | None) -> None:
        """Close requests of ours whose branch is gone: not every forge does so by itself."""
        for one in self._leftovers(url, {task.branch for task in tasks}, remote):
            try:
                self._close(url, forge, one)
            except _OWN_TROUBLE as error:
                log.warning("request_not_closed", request=one.url, why=error.message)

    def _leftovers(self, url: str, drafts: Collection[str], remote: Remote | None) -> list[PullRequest]:
        if remote is None:
            return []
        known = {ref.removeprefix(HEADS) for ref in remote.refs}.union(drafts)
        left = [one for one in self._board.open(url).values() if is_ours(one.body) and one.head not in known]
        try:
            # to close one is to decline its draft, which another writer may have made since we read the branches
            branches = remote.mirror.look() if left else {}
        except GitError as error:
            log.warning("requests_not_closed", url=url, why=error.message)
            return []
        return [one for one in left if HEADS + one.head not in branches]

    def _close(self, url: str, forge: Forge, request: PullRequest) -> None:
        now = forge.request(request.number)
        if now.state == "open":
            forge.close(now)
            now = replace(now, state="closed")
            log.info("request_closed", request=now.url, branch=now.head)
        self._board.put(url, now)

    # requests of drafts

    def _settle(self, url: str, forge: Forge, result: Result) -> None:
        task = result.task
        if self._rests.has(task):
            result.trouble = self._rests.trouble(task)
            return
        if task.failure:
            result.failure = task.failure
            return
        if task.trouble:
            result.trouble = f"the pull request of {task.branch} cannot be put into words: {task.trouble}"
            return
        request = self._standing(url, result)
        if request is None and result.known.number:
            return
        if request is None and task.words is None:
            result.wait()
            return
        request = request or self._opened(url, forge, result)
        if request is None:
            return
        for step in self._steps(url, forge, result):
            # a check that is required does not wait for a body that is too long, or for a right that is missing
            try:
                step()
            except _OWN_TROUBLE as error:
                self._rests.refused(result, error.message)
        if not result.trouble and not result.is_unfinished:
            result.known = replace(result.known, read=task.read, change=task.change)
            self._rests.end(task)

    def _standing(self, url: str, result: Result) -> PullRequest | None:
        """Return the open request of a draft; one that ended at this very head is left for the next pass to judge."""
        task, number = result.task, result.known.number
        request = self._board.request(url, number, task.branch) if number else None
        if number and (request is None or has_ended(request, task)):
            # a request of its own, which may be open already
            result.known = OpenRequest(change=result.known.change)
            number = 0
        if not number:
            request = self._board.between(url, task.branch, task.destination.branch)
        if request is None or request.state != "open":
            return None
        result.known = replace(result.known, number=request.number)
        return request

    def _opened(self, url: str, forge: Forge, result: Result) -> PullRequest | None:
        task, words = result.task, result.task.words
        assert words is not None
        most = self._options.most_open
        if most and sum(is_ours(one.body) for one in self._board.open(url).values()) >= most:
            result.wait()
            return None
        try:
            request = forge.create(self._options.new(task, words))
            result.opened = True
        except ForgeRefusedError as error:
            # another writer may have been first, or a call of ours whose answer was lost
            found = forge.find(task.branch, task.destination.branch)
            if found is None or found.state != "open":
                raise
            log.warning("request_found", request=found.url, why=error.message)
            request = found
        self._board.put(url, request)
        result.known = replace(result.known, number=request.number)
        log.info("request_opened", destination=task.destination.name, branch=task.branch, request=request.url)
        return request

    def _steps(self, url: str, forge: Forge, result: Result) -> Iterator[Callable[[], None]]:
        yield lambda: self._reword(url, forge, result)
        yield lambda: self._require_label(url, forge, result)
        yield lambda: self._report(forge, result)
        yield lambda: self._mark(url, forge, result)

    def _reword(self, url: str, forge: Forge, result: Result) -> None:
        request, words = self._board.open(url)[result.known.number], result.task.words
        body = body_with(request.body, words.body(result.task.others)) if words else None
        if words is None or body is None:
            return
        now = forge.update(request, words.title, body)
        if now.number != request.number:
            # another one took its place
            self._board.put(url, replace(request, state="closed"))
        self._board.put(url, now)
        result.known = replace(result.known, number=now.number)
        log.info("request_updated", branch=now.head, request=now.url)

    def _require_label(self, url: str, forge: Forge, result: Result) -> None:
        """See the request without the label that accepts conflicts, so that one set later is for this head.

        A label from an earlier head is removed. Nothing is noted while the forge has another head or the label.
        """
        task, words = result.task, result.task.words
        if not self._options.check or words is None or not words.conflicts or result.known.unlabelled == task.head:
            return
        request = self._board.open(url)[result.known.number]
        if request.accepts_conflicts:
            forge.remove_label(request, ACCEPT_CONFLICTS)
            log.info("label_removed", branch=request.head, request=request.url, label=ACCEPT_CONFLICTS)
        # head and labels of one answer: another writer may have pushed, or a reviewer set the label, since we looked
        now = forge.request(request.number)
        self._board.put(url, now)
        if now.commit == task.head and not now.accepts_conflicts:
            result.known = replace(result.known, unlabelled=task.head)
        else:
            result.is_unfinished = True

    def _mark(self, url: str, forge: Forge, result: Result) -> None:
        """Mark a proposed draft ready for review; take back only what was our own mark."""
        request = self._board.open(url)[result.known.number]
        if not self._options.draft:
            return
        proposed, readied = result.task.proposed, result.known.readied
        if (proposed and request.draft) or (not proposed and readied and not request.draft):
            forge.set_draft(request, not proposed)
            self._board.put(url, replace(request, draft=not proposed))
            result.known = replace(result.known, readied=proposed)
        elif readied and not proposed:
            result.known = replace(result.known, readied=False)

    def _report(self, forge: Forge, result: Result) -> None:
        task, words = result.task, result.task.words
        if not self._options.check or words is None:
            return
        verdict = Verdict(words.passes(accepted=task.accepted), words.verdict(accepted=task.accepted))
        told = digest([task.head, verdict.passed, verdict.summary])
        if told != result.known.told:
            forge.report(task.head, verdict)
            result.known = replace(result.known, told=told)


def has_ended(request: PullRequest, task: RequestTask) -> bool:
    """Return whether a request says nothing of its draft any more: people went on after it, or merged it elsewhere."""
    if request.state == "open":
        return False
    return request.commit != task.head or (request.state == "merged" and request.base != task.destination.branch)
