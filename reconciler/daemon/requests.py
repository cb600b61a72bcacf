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
from reconciler.daemon.isolation import Steps, error_finding, forge_boundary
from reconciler.daemon.open_drafts import DraftReader, RefNames
from reconciler.daemon.publish import describe
from reconciler.daemon.remotes import Remote, Remotes
from reconciler.daemon.request_board import RequestBoard
from reconciler.daemon.request_notes import note_requests
from reconciler.daemon.request_round import RequestOptions, RequestRounds, Rests, Result, Round, has_ended
from reconciler.daemon.request_tasks import RequestTask, request_tasks, with_acceptance, with_others, worded
from reconciler.forge.errors import ForgeBusyError, ForgeError, ForgeMissingError, InternalForgeError
from reconciler.forge.push_options import agit
from reconciler.forge.request import PullRequest
from reconciler.gitio.errors import InternalGitError
from reconciler.gitio.verdicts import Done, Failed, Postponed
from reconciler.krm.codes import internal_error
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
        steps = Steps()
        open_drafts = [task for one in near for task in _read_tasks(one, remotes, names, steps)]
        open_drafts = [with_acceptance(task, self._open_request(task)) for task in open_drafts]
        in_words = worded(open_drafts, DraftReader(remotes, names), self._needs_words, self._page, self._asks_for_label)
        tasks = with_others(list(in_words))
        # drafts that are the first of their repository: nobody has looked there yet
        self.board.look({one.destination.url for one in tasks} - self.board.seen)
        rounds = list(self._make_rounds(near, tasks, remotes))
        rounds.append(pushed := Round(results=list(self._push(tasks, remotes))))
        ends = note_requests((result for one in rounds for result in one.results), remotes, names.state)
        errors = [end.error for end in ends if isinstance(end, Failed)]
        steps.findings += [internal_error(one.failure) for one in errors if isinstance(one, InternalGitError)]
        done = self._requested(near, [task.destination for task in tasks], rounds, retry, steps.findings)
        noted = not errors
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

    def _open_request(self, task: RequestTask) -> PullRequest | None:
        return self.board.open(task.destination.url).get(task.known.number)

    def _asks_for_label(self, url: str) -> bool:
        return self.options.check and self.board.has_driver(url)

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
            try:
                with forge_boundary(f"the pull requests of {url}"):
                    return self._rounds.make(url, forges[url], mine, near_by[url])
            except InternalForgeError as error:
                self.board.failed(url, error)
                return Round(url, error=error, results=[Result(task, task.known) for task in mine])

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
        try:
            with forge_boundary(f"{task.destination.title}: the pull request of {task.branch}"):
                outcome = remote.mirror.push_for_review(task.head, ref, options)
        except InternalForgeError as error:
            result.failure = error.failure
            return result
        if isinstance(outcome, Postponed):
            result.wait()
            return result
        if not isinstance(outcome, Done):
            self._rests.refused(result, describe(outcome))
            return result
        self._rests.end(task)
        return Result(task, OpenRequest(read=task.read, change=task.change, told=task.head))

    # what is told of it

    def _requested(
        self,
        destinations: Sequence[Destination],
        near: Sequence[Destination],
        rounds: Iterable[Round],
        retry: int,
        internal: Iterable[Finding],
    ) -> Requested:
        """Return the findings and the time of the next try.

        Args:
            destinations: those with pull requests.
            near: those of them that have drafts.
            rounds: the work on each repository.
            retry: the time of the next try after a failure.
            internal: the findings of steps that unexpected exceptions ended.
        """
        made = list(rounds)
        results = [result for one in made for result in one.results]
        findings = [*self._unreachable(near, destinations), *_troubles(results), *internal]
        findings += [internal_error(failure) for one in made for failure in one.failures]
        moments = [ceil(one.until) for one in made if one.until is not None]
        unworded = any(result.is_unfinished or (result.waits and result.task.words is None) for result in results)
        if findings or unworded or any(one.url in self.board.failures for one in near):
            moments.append(retry)
        if waiting := sum(result.waits for result in results):
            findings.append(REQUESTS_WAIT.finding(f"{waiting} drafts wait for their pull request"))
        return Requested(tuple(findings), min(moments, default=None), sum(result.opened for result in results))

    def _unreachable(self, near: Sequence[Destination], destinations: Sequence[Destination]) -> Iterator[Finding]:
        for url, error in sorted(self.board.failures.items()):
            # an unexpected exception is reported even if it hides that there are drafts
            affected = destinations if isinstance(error, InternalForgeError) else near
            one = next((destination for destination in affected if destination.url == url), None)
            if one and not isinstance(error, ForgeBusyError):
                message = f"Repository {one.name}: pull requests cannot be read: {error.message}"
                yield error_finding(error, REQUESTS_UNREACHABLE, message, one.where)


def _read_tasks(one: Destination, remotes: Remotes, names: RefNames, steps: Steps) -> Sequence[RequestTask]:
    scope = f"{one.title}: the pull requests of its drafts"
    return steps.run(scope, lambda: list(request_tasks(one, remotes, names.state)), [], one.where)


def _troubles(results: Iterable[Result]) -> Iterator[Finding]:
    for result in results:
        one = result.task.destination
        if result.failure:
            yield internal_error(result.failure, one.where)
        elif result.trouble:
            yield REQUEST_REFUSED.finding(f"Repository {one.name}: {result.trouble}", one.where)
