"""Pull requests brought up to date, after everything else of a pass is in (git.md 4.10).

What stands at the forge is looked at, never remembered as done: a request that a killed pass opened is found again by
its branches. State knows a request's number, so that one which people closed is told from one that never was.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from math import ceil

from reconciler.daemon.backoff import Backoff
from reconciler.daemon.codes import REQUEST_REFUSED, REQUESTS_UNREACHABLE, REQUESTS_WAIT
from reconciler.daemon.events import log
from reconciler.daemon.open_drafts import DraftReader, RefNames
from reconciler.daemon.publish import describe
from reconciler.daemon.remotes import Remote, Remotes
from reconciler.daemon.request_board import RequestBoard
from reconciler.daemon.request_notes import note_requests
from reconciler.daemon.request_round import RequestOptions, RequestRounds, Rests, Result, Round, has_ended
from reconciler.daemon.request_tasks import RequestTask, request_tasks, with_others, worded
from reconciler.forge.errors import ForgeBusyError, ForgeError, ForgeMissingError
from reconciler.forge.push_options import agit
from reconciler.gitio.verdicts import Done, Postponed
from reconciler.krm.findings import Finding
from reconciler.planning.destination import Destination
from reconciler.planning.state import OpenRequest
from reconciler.reporting.pull_request import Page, RequestWords
from reconciler.snapshot.objects import CommitId

# repositories that are written to at once
_AT_ONCE = 4


@dataclass(frozen=True)
class Requested:
    """What became of the pull requests of a pass: how many were `opened`, and what is to be told.

    `due` is when another pass gets on with them, though nothing moves.
    """

    findings: tuple[Finding, ...] = ()
    due: int | None = None
    opened: int = 0


class Requests:
    """Keeps one pull request for each draft branch; what a forge refused rests, each on its own.

    `page` gives the address of a commit's page by the address of its repository, "" being the config's.
    """

    def __init__(self, board: RequestBoard, options: RequestOptions, backoff: Backoff, page: Page) -> None:
        self.board = board
        self.options = options
        self._rests = Rests(backoff)
        self._rounds = RequestRounds(board, options, self._rests)
        self._page = page

    def bring(self, destinations: Iterable[Destination], remotes: Remotes, names: RefNames, retry: int) -> Requested:
        """Open, update and close the requests of these destinations, and note in their states which they are.

        `retry` is when to ask a forge again that could not be asked. Nothing is raised for what a forge does.
        """
        near = [one for one in destinations if self.board.asked(one.url)]
        if not near:
            return Requested()
        open_drafts = [task for one in near for task in request_tasks(one, remotes, names.state)]
        in_words = worded(open_drafts, DraftReader(remotes, names), self._needs_words, self._page)
        tasks = with_others(list(in_words))
        # drafts that are the first of their repository: nobody has looked there yet
        self.board.look({one.destination.url for one in tasks} - self.board.seen)
        rounds = list(self._make_rounds(near, tasks, remotes))
        rounds.append(pushed := Round(results=list(self._push(tasks, remotes))))
        noted = note_requests((result for one in rounds for result in one.results), remotes, names.state)
        done = self._requested([task.destination for task in tasks], rounds, retry)
        in_turn = not any(result.waits for result in pushed.results)
        return done if noted and in_turn else replace(done, due=min(done.due or retry, retry))

    def merges(self, destination: Destination) -> bool:
        """Return whether drafts of a destination are approved by merging their requests."""
        return self.options.merge is not None and self.board.has_driver(destination.url)

    def merge(self, destination: Destination, branch: str, head: CommitId, message: str) -> str:
        """Merge the request of a draft whose head is still this one; return its address. Raises ForgeError."""
        url, method = destination.url, self.options.merge
        forge = self.board.forge(url)
        if forge is None or method is None:
            unread = ForgeMissingError("the pull requests of this repository were not read")
            raise self.board.failures.get(url) or unread
        request = self.board.between(url, branch, destination.branch)
        if request is None:
            raise ForgeMissingError(f"no pull request is open from {branch} into {destination.branch}; sync opens it")
        if request.draft:
            forge.set_draft(request, draft=False)
        forge.merge(replace(request, commit=head), method, message)
        log.info("request_merged", request=request.url)
        return request.url

    def _needs_words(self, task: RequestTask) -> bool:
        if self.board.is_agit(task.destination.url):
            return task.known.told != task.head
        if self._rests.has(task):
            # those that wait behind it are to come to words
            return False
        untold = self.options.check and not task.known.told
        return task.read != task.known.read or not task.known.number or untold or self._has_ended(task)

    def _has_ended(self, task: RequestTask) -> bool:
        url = task.destination.url
        if self.board.forge(url) is None:
            return False
        try:
            request = self.board.request(url, task.known.number, task.branch)
        except ForgeError:
            # who settles the task is told
            return False
        return request is None or has_ended(request, task)

    def _make_rounds(
        self, near: Sequence[Destination], tasks: Sequence[RequestTask], remotes: Remotes
    ) -> Iterator[Round]:
        forges = {url: forge for url in sorted({one.url for one in near}) if (forge := self.board.forge(url))}
        # Remotes are not for threads, and each round has one repository to itself
        near_by: dict[str, Remote | None] = {url: remotes.get(url) for url in forges}

        def make(url: str) -> Round:
            mine = [one for one in tasks if one.destination.url == url]
            return self._rounds.make(url, forges[url], mine, near_by[url])

        with ThreadPoolExecutor(_AT_ONCE) as pool:
            yield from pool.map(make, forges)

    def _push(self, tasks: Iterable[RequestTask], remotes: Remotes) -> Iterator[Result]:
        """Ask for reviews by pushing to `refs/for/`: what was asked for can be neither found nor closed that way."""
        for task in tasks:
            remote = remotes.get(task.destination.url)
            if task.words and remote and self.board.is_agit(task.destination.url):
                yield self._pushed(task, task.words, remote)

    def _pushed(self, task: RequestTask, words: RequestWords, remote: Remote) -> Result:
        result = Result(task, task.known, self._rests.trouble(task))
        if self._rests.has(task):
            return result
        ref, options = agit(self.options.new(task, words))
        outcome = remote.mirror.push_for_review(task.head, ref, options)
        if isinstance(outcome, Postponed):
            result.wait()
            return result
        if not isinstance(outcome, Done):
            self._rests.refused(result, describe(outcome))
            return result
        self._rests.end(task)
        return Result(task, OpenRequest(read=task.read, change=task.change, told=task.head))

    # what is told of it

    def _requested(self, near: Sequence[Destination], rounds: Iterable[Round], retry: int) -> Requested:
        """Return what is to be told; `near` are the destinations that have drafts."""
        made = list(rounds)
        results = [result for one in made for result in one.results]
        findings = [*self._unreachable(near), *_troubles(results)]
        moments = [ceil(one.until) for one in made if one.until is not None]
        unworded = any(result.waits and result.task.words is None for result in results)
        if findings or unworded or any(one.url in self.board.failures for one in near):
            moments.append(retry)
        if waiting := sum(result.waits for result in results):
            findings.append(REQUESTS_WAIT.finding(f"{waiting} drafts wait for their pull request"))
        return Requested(tuple(findings), min(moments, default=None), sum(result.opened for result in results))

    def _unreachable(self, near: Sequence[Destination]) -> Iterator[Finding]:
        for url, error in sorted(self.board.failures.items()):
            one = next((destination for destination in near if destination.url == url), None)
            if one and not isinstance(error, ForgeBusyError):
                message = f"Repository {one.name}: pull requests cannot be read: {error.message}"
                yield REQUESTS_UNREACHABLE.finding(message, one.where)


def _troubles(results: Iterable[Result]) -> Iterator[Finding]:
    for result in results:
        if result.trouble:
            one = result.task.destination
            yield REQUEST_REFUSED.finding(f"Repository {one.name}: {result.trouble}", one.where)
