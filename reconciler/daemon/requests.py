"""Pull requests brought up to date, after everything else of a pass is in (git.md 4.10).

What stands at the forge is looked at, never remembered as done: a request that a killed pass opened is found again by
its branches. State knows a request's number, so that one which people closed is told from one that never was.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from math import ceil

from reconciler.daemon.backoff import Backoff
from reconciler.daemon.codes import REQUEST_REFUSED, REQUESTS_UNREACHABLE, REQUESTS_WAIT
from reconciler.daemon.events import log
from reconciler.daemon.open_drafts import DraftReader, RefNames
from reconciler.daemon.publish import HEADS, describe, state_commit
from reconciler.daemon.remotes import Remote, Remotes
from reconciler.daemon.request_board import RequestBoard
from reconciler.daemon.request_tasks import RequestTask, request_tasks, worded
from reconciler.daemon.states import read_state
from reconciler.forge.errors import (
    ForgeBusyError,
    ForgeError,
    ForgeMissingError,
    ForgeRefusedError,
    ForgeUnreachableError,
)
from reconciler.forge.port import Forge
from reconciler.forge.push_options import agit
from reconciler.forge.request import MergeMethod, NewRequest, PullRequest, Verdict
from reconciler.gitio.errors import GitError
from reconciler.gitio.verdicts import Done, Failed, Outcome, PushUnit, RefUpdate
from reconciler.krm.digest import digest
from reconciler.krm.findings import Finding
from reconciler.planning.destination import Destination
from reconciler.planning.state import DestinationState, OpenRequest
from reconciler.reporting.pull_request import Page, RequestWords, body_with, is_ours
from reconciler.snapshot.objects import CommitId

# repositories that are written to at once
_AT_ONCE = 4
# pull requests that a forge may break over before it counts as out of order
_MOST_BROKEN = 3


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


@dataclass(frozen=True)
class Requested:
    """What became of the pull requests of a pass. `due`: when another pass gets on with them, though nothing moves."""

    findings: tuple[Finding, ...] = ()
    due: int | None = None


@dataclass
class _Result:
    """What became of one task: what is known of its request now, and what kept it from being more."""

    task: RequestTask
    known: OpenRequest
    trouble: str = ""
    waits: bool = False

    def wait(self) -> None:
        """Leave it for another pass; what the draft changes is known from now on, for those that change the same."""
        self.waits = not self.known.number
        if self.waits and self.task.words:
            self.known = replace(self.known, read=self.task.read, change=self.task.change)


@dataclass
class _Round:
    """What became of one repository's tasks. `until` is when a budget lets it go on; `error` is the forge's own.

    `broken` counts those that the forge broke over, each of which may be the fault of one pull request.
    """

    results: list[_Result] = field(default_factory=list)
    until: float | None = None
    error: ForgeError | None = None
    broken: int = 0


class Requests:
    """Keeps one pull request for each draft branch; what a forge refused rests, each on its own.

    `page` gives the address of a commit's page by the address of its repository, "" being the config's.
    """

    def __init__(self, board: RequestBoard, options: RequestOptions, backoff: Backoff, page: Page) -> None:
        self.board = board
        self.options = options
        self._backoff = backoff
        self._page = page
        self._refused: dict[str, str] = {}

    def bring(self, destinations: Iterable[Destination], remotes: Remotes, names: RefNames, retry: int) -> Requested:
        """Open, update and close the requests of these destinations, and note in their states which they are.

        `retry` is when to ask a forge again that could not be asked. Nothing is raised for what a forge does.
        """
        near = [one for one in destinations if self.board.asked(one.url)]
        if not near:
            return Requested()
        open_drafts = [task for one in near for task in request_tasks(one, remotes, names.state)]
        tasks = list(worded(open_drafts, DraftReader(remotes, names), self._needs_words, self._page))
        # drafts that are the first of their repository: nobody has looked there yet
        self.board.look({one.destination.url for one in tasks} - self.board.seen)
        rounds = self._act(near, tasks, remotes)
        results = [result for one in rounds.values() for result in one.results]
        noted = _note(results, remotes, names.state)
        done = self._requested([task.destination for task in tasks], rounds, retry)
        return done if noted else replace(done, due=min(done.due or retry, retry))

    def merges(self, destination: Destination) -> bool:
        """Return whether drafts of a destination are approved by merging their requests."""
        return self.options.merge is not None and self.board.has_driver(destination.url)

    def merge(self, destination: Destination, branch: str, head: CommitId, message: str) -> str:
        """Merge the request of a draft whose head is still this one; return its address. Raises ForgeError."""
        url, method = destination.url, self.options.merge
        forge = self.board.forge(url)
        if forge is None or method is None:
            raise self.board.failures.get(url) or ForgeMissingError(
                "the pull requests of this repository were not read"
            )
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
        if self._backoff.rests(_key(task)):
            # those that wait behind it are to come to words
            return False
        untold = self.options.check and not task.known.told
        return task.read != task.known.read or not task.known.number or untold or self._is_over(task)

    def _is_over(self, task: RequestTask) -> bool:
        url = task.destination.url
        if self.board.forge(url) is None:
            return False
        try:
            request = self.board.request(url, task.known.number, task.branch)
        except ForgeError:
            # who settles the task is told
            return False
        return request is None or _is_over(request, task)

    # doing it

    def _act(self, near: Sequence[Destination], tasks: Sequence[RequestTask], remotes: Remotes) -> Mapping[str, _Round]:
        twins: dict[str, list[str]] = {}
        for task in tasks:
            twins.setdefault(task.change, []).append(task.destination.name)
        forges = {url: forge for url in sorted({one.url for one in near}) if (forge := self.board.forge(url))}
        by_url = {url: [one for one in tasks if one.destination.url == url] for url in forges}
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            done = list(pool.map(lambda url: self._act_at(url, forges[url], by_url[url], twins, remotes), by_url))
        rounds = dict(zip(by_url, done, strict=True))
        rounds[""] = _Round([*self._push(tasks, twins, remotes)])
        return rounds

    def _push(
        self, tasks: Iterable[RequestTask], twins: Mapping[str, Sequence[str]], remotes: Remotes
    ) -> Iterator[_Result]:
        """Ask for reviews by pushing to `refs/for/`: what was asked for can be neither found nor closed that way."""
        for task in tasks:
            remote = remotes.get(task.destination.url)
            if task.words is None or remote is None or not self.board.is_agit(task.destination.url):
                continue
            result = _Result(task, task.known)
            if not self._backoff.rests(_key(task)):
                ref, options = agit(self._new(task, task.words, _others(task, twins)))
                outcome = remote.mirror.push_for_review(task.head, ref, options)
                if isinstance(outcome, Done):
                    result.known = OpenRequest(read=task.read, change=task.change, told=task.head)
                    self._backoff.worked(_key(task))
                else:
                    self._refused_over(result, describe(outcome))
            result.trouble = result.trouble or self._refused.get(_key(task), "")
            yield result

    def _act_at(
        self, url: str, forge: Forge, tasks: Sequence[RequestTask], twins: Mapping[str, Sequence[str]], remotes: Remotes
    ) -> _Round:
        told = _Round()
        try:
            self._close_leftovers(url, forge, tasks, remotes)
        except ForgeError as error:
            _stop(told, error)
        for task in tasks:
            result = _Result(task, task.known)
            told.results.append(result)
            if told.error or told.until:
                result.wait()
                continue
            try:
                self._settle(url, forge, result, _others(task, twins))
            except (ForgeRefusedError, ForgeMissingError) as error:
                self._refused_over(result, error.message)
            except ForgeError as error:
                result.wait()
                self._broken_over(told, result, error)
        if told.error:
            self.board.failed(url, told.error)
        return told

    def _close_leftovers(self, url: str, forge: Forge, tasks: Sequence[RequestTask], remotes: Remotes) -> None:
        """Close requests of ours whose branch is gone: not every forge does so by itself."""
        for one in self._leftovers(url, {task.branch for task in tasks}, remotes.get(url)):
            try:
                self._close(url, forge, one)
            except (ForgeRefusedError, ForgeMissingError) as error:
                log.warning("request_not_closed", request=one.url, why=error.message)

    def _leftovers(self, url: str, drafts: Collection[str], remote: Remote | None) -> list[PullRequest]:
        if remote is None:
            return []
        known = {ref.removeprefix(HEADS) for ref in remote.refs}.union(drafts)
        left = [one for one in self.board.open(url).values() if is_ours(one.body) and one.head not in known]
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
        self.board.put(url, now)

    def _settle(self, url: str, forge: Forge, result: _Result, others: Sequence[str]) -> None:
        task = result.task
        if self._backoff.rests(_key(task)):
            result.trouble = self._refused.get(_key(task), "")
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
        request = request or self._opened(url, forge, result, others)
        if request is None:
            return
        number = request.number
        steps: tuple[Callable[[], None], ...] = (
            lambda: self._reword(url, forge, number, result, others),
            lambda: self._report(forge, result),
            lambda: self._mark(url, forge, number, result),
        )
        for step in steps:
            # a check that is required does not wait for a body that is too long, or for a right that is missing
            try:
                step()
            except (ForgeRefusedError, ForgeMissingError) as error:
                self._refused_over(result, error.message)
        if not result.trouble:
            result.known = replace(result.known, read=task.read, change=task.change)
            self._backoff.worked(_key(task))

    def _standing(self, url: str, result: _Result) -> PullRequest | None:
        """Return the open request of a draft; one that ended at this very head is left for the next pass to judge."""
        task, number = result.task, result.known.number
        request = self.board.request(url, number, task.branch) if number else None
        if number and (request is None or _is_over(request, task)):
            # a request of its own, which may be open already
            result.known = OpenRequest(change=result.known.change)
            number = 0
        if not number:
            request = self.board.between(url, task.branch, task.destination.branch)
        if request is None or request.state != "open":
            return None
        result.known = replace(result.known, number=request.number)
        return request

    def _opened(self, url: str, forge: Forge, result: _Result, others: Sequence[str]) -> PullRequest | None:
        task, words = result.task, result.task.words
        assert words is not None
        most = self.options.most_open
        if most and sum(is_ours(one.body) for one in self.board.open(url).values()) >= most:
            result.wait()
            return None
        try:
            request = forge.create(self._new(task, words, others))
        except ForgeRefusedError as error:
            # another writer may have been first, or a call of ours whose answer was lost
            found = forge.find(task.branch, task.destination.branch)
            if found is None or found.state != "open":
                raise
            log.warning("request_found", request=found.url, why=error.message)
            request = found
        self.board.put(url, request)
        result.known = replace(result.known, number=request.number)
        log.info("request_opened", destination=task.destination.name, branch=task.branch, request=request.url)
        return request

    def _new(self, task: RequestTask, words: RequestWords, others: Sequence[str]) -> NewRequest:
        options = self.options
        body = words.body(others)
        return NewRequest(task.branch, task.destination.branch, words.title, body, options.draft, options.labels)

    def _reword(self, url: str, forge: Forge, number: int, result: _Result, others: Sequence[str]) -> None:
        request, words = self.board.open(url)[number], result.task.words
        body = body_with(request.body, words.body(others)) if words else None
        if words is None or body is None:
            return
        forge.update(request, words.title, body)
        self.board.put(url, replace(request, title=words.title, body=body))
        log.info("request_updated", branch=request.head, request=request.url)

    def _mark(self, url: str, forge: Forge, number: int, result: _Result) -> None:
        """Mark a proposed draft ready for review; take back only what was our own mark."""
        request = self.board.open(url)[number]
        if not self.options.draft:
            return
        proposed, readied = result.task.proposed, result.known.readied
        if (proposed and request.draft) or (not proposed and readied and not request.draft):
            forge.set_draft(request, not proposed)
            self.board.put(url, replace(request, draft=not proposed))
            result.known = replace(result.known, readied=proposed)
        elif readied and not proposed:
            result.known = replace(result.known, readied=False)

    def _report(self, forge: Forge, result: _Result) -> None:
        task, words = result.task, result.task.words
        if not self.options.check or words is None:
            return
        told = digest([task.head, words.passed, words.verdict])
        if told != result.known.told:
            forge.report(task.head, Verdict(words.passed, words.verdict))
            result.known = replace(result.known, told=told)

    def _refused_over(self, result: _Result, words: str) -> None:
        self._take_note(result, f"the forge refused a pull request of {result.task.branch}: {words}")

    def _broken_over(self, told: _Round, result: _Result, error: ForgeError) -> None:
        """Take note of what no other may suffer from, unless it is the forge itself that is out of order."""
        if isinstance(error, ForgeUnreachableError):
            self._take_note(result, f"the forge broke over the pull request of {result.task.branch}: {error.message}")
            told.broken += 1
            if told.broken < _MOST_BROKEN:
                return
        _stop(told, error)

    def _take_note(self, result: _Result, trouble: str) -> None:
        result.trouble = self._refused[_key(result.task)] = trouble
        self._backoff.failed(_key(result.task))

    # what is told of it

    def _requested(self, near: Sequence[Destination], rounds: Mapping[str, _Round], retry: int) -> Requested:
        """Return what is to be told; `near` are the destinations that have drafts."""
        findings = [*self._unreachable(near)]
        results = [result for one in rounds.values() for result in one.results]
        for result in results:
            if result.trouble:
                one = result.task.destination
                findings.append(REQUEST_REFUSED.finding(f"Repository {one.name}: {result.trouble}", one.where))
        moments = [ceil(one.until) for one in rounds.values() if one.until is not None]
        unworded = any(result.waits and result.task.words is None for result in results)
        if findings or unworded or any(one.url in self.board.failures for one in near):
            moments.append(retry)
        if waiting := sum(result.waits for result in results):
            findings.append(REQUESTS_WAIT.finding(f"{waiting} drafts wait for their pull request"))
        return Requested(tuple(findings), min(moments, default=None))

    def _unreachable(self, near: Sequence[Destination]) -> Iterator[Finding]:
        for url, error in sorted(self.board.failures.items()):
            one = next((destination for destination in near if destination.url == url), None)
            if one and not isinstance(error, ForgeBusyError):
                message = f"Repository {one.name}: pull requests cannot be read: {error.message}"
                yield REQUESTS_UNREACHABLE.finding(message, one.where)


def _key(task: RequestTask) -> str:
    return f"{task.destination.url} {task.branch} {task.read}"


def _is_over(request: PullRequest, task: RequestTask) -> bool:
    """Return whether a request says nothing of its draft any more: people went on after it, or merged it elsewhere."""
    if request.state == "open":
        return False
    return request.commit != task.head or (request.state == "merged" and request.base != task.destination.branch)


def _others(task: RequestTask, twins: Mapping[str, Sequence[str]]) -> list[str]:
    return [one for one in twins[task.change] if one != task.destination.name]


def _stop(told: _Round, error: ForgeError) -> None:
    if isinstance(error, ForgeBusyError):
        told.until = error.until
    else:
        told.error = error


def _note(results: Iterable[_Result], remotes: Remotes, state_ref: str) -> bool:
    """Write and push the states that know their requests now; one that moved meanwhile is noted in the next pass.

    Return whether the remotes could be asked to: what nobody notes is opened anew once people have closed it.
    """
    by_url: dict[str, dict[Destination, dict[str, OpenRequest]]] = {}
    for result in results:
        if result.known != result.task.known:
            one = result.task.destination
            by_url.setdefault(one.url, {}).setdefault(one, {})[result.task.branch] = result.known
    outcomes = [end for url, noted in sorted(by_url.items()) for end in _push_noted(url, noted, remotes, state_ref)]
    return not any(isinstance(end, Failed) for end in outcomes)


def _push_noted(
    url: str, noted: Mapping[Destination, Mapping[str, OpenRequest]], remotes: Remotes, state_ref: str
) -> list[Outcome]:
    remote = remotes.get(url)
    if remote is None:
        return []
    try:
        pushed = _push_states(remote, noted, state_ref)
    except GitError as error:
        pushed = {url: Failed(error)}
    for name, outcome in pushed.items():
        if not isinstance(outcome, Done):
            log.warning("requests_not_noted", destination=name, why=describe(outcome))
    return list(pushed.values())


def _push_states(
    remote: Remote, noted: Mapping[Destination, Mapping[str, OpenRequest]], state_ref: str
) -> Mapping[str, Outcome]:
    states = [(one, _with(read_state(one, remote, state_ref), requests)) for one, requests in noted.items()]
    known = [(one, state) for one, state in states if state]
    commits = remote.mirror.write([state_commit(one, state) for one, state in known])
    units = []
    for (one, _), commit in zip(known, commits, strict=True):
        ref = state_ref.format(repository=one.name)
        units.append(PushUnit(one.name, (RefUpdate(ref, commit, remote.refs.get(ref)),)))
    return remote.mirror.push(units).outcomes


def _with(state: DestinationState | Finding | None, requests: Mapping[str, OpenRequest]) -> DestinationState | None:
    if not isinstance(state, DestinationState):
        return None
    drafts = {name: replace(draft, request=requests.get(name, draft.request)) for name, draft in state.drafts.items()}
    return replace(state, drafts=drafts)
