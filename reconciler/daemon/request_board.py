"""Pull requests as a pass finds them: which are open, what people closed, and what must not be moved (git.md 3)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TypeVar

from reconciler.daemon.backoff import Backoff
from reconciler.daemon.events import log
from reconciler.daemon.isolation import forge_boundary
from reconciler.forge.errors import ForgeError, ForgeMissingError, InternalForgeError
from reconciler.forge.port import Forge
from reconciler.forge.request import PullRequest
from reconciler.krm.digest import digest
from reconciler.planning.destination import Destination
from reconciler.planning.state import DestinationState
from reconciler.snapshot.objects import CommitId

_T = TypeVar("_T")
# repositories that are read at once
_AT_ONCE = 4
_TITLES_DO_NOT_MATTER = ("title", "body", "url", "labels")


@dataclass(frozen=True)
class Said:
    """What the pull requests of one destination say: commits that are held as they are, drafts that were closed."""

    held: Mapping[str, CommitId] = field(default_factory=dict)
    closed: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Forges:
    """The forges by the URL of a repository, and what they are; None where nobody asks for pull requests.

    One that is asked by what is pushed has no driver.
    """

    of: Callable[[str], Forge | None]
    kind: Callable[[str], str | None]


class RequestBoard:
    """The open pull requests of every repository, as they were last read; `backoff` is asked for whole repositories."""

    def __init__(self, forges: Forges, backoff: Backoff) -> None:
        self._forges = forges
        self._backoff = backoff
        self._open: dict[str, dict[int, PullRequest]] = {}
        self._ended: dict[tuple[str, int], PullRequest | None] = {}
        self.failures: dict[str, ForgeError] = {}

    def look(self, urls: Iterable[str]) -> None:
        """Read the open pull requests of these repositories; what fails stands in `failures`, and is not known."""
        ready = [url for url in sorted(set(urls)) if not self._backoff.rests(_resting(url))]
        due = {url: forge for url in ready if (forge := self._driver(url))}
        if not due:
            return
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            for url, found in zip(due, pool.map(_listed, due, due.values()), strict=True):
                self._take_note(url, found)

    def _take_note(self, url: str, found: Sequence[PullRequest] | ForgeError) -> None:
        if isinstance(found, ForgeError):
            self.failed(url, found)
            return
        self.failures.pop(url, None)
        self._backoff.worked(_resting(url))
        self._open[url] = {one.number: one for one in found}

    def failed(self, url: str, error: ForgeError) -> None:
        """Take note that the forge could not be asked: what is open there is not known until it is read again."""
        self.failures[url] = error
        self._open.pop(url, None)
        self._backoff.failed(_resting(url))

    def forge(self, url: str) -> Forge | None:
        """Return the forge of a repository whose pull requests are known."""
        return self._driver(url) if url in self._open else None

    @property
    def seen(self) -> frozenset[str]:
        """The repositories that were looked at, well or not."""
        return frozenset(self._open) | frozenset(self.failures)

    def has_driver(self, url: str) -> bool:
        """Return whether the pull requests of a repository can be read at all."""
        return self._driver(url) is not None

    def _driver(self, url: str) -> Forge | None:
        return self._look_up(url, self._forges.of)

    def _look_up(self, url: str, function: Callable[[str], _T | None]) -> _T | None:
        """Return the result for a URL; an unexpected exception is a failure of this repository alone."""
        scope = f"the forge of {url}"
        try:
            with forge_boundary(scope):
                found = function(url)
        except InternalForgeError as error:
            self.failures[url] = error
            return None
        known = self.failures.get(url)
        if isinstance(known, InternalForgeError) and known.failure.scope == scope:
            del self.failures[url]
        return found

    def between(self, url: str, head: str, base: str) -> PullRequest | None:
        """Return the open pull request of two branches."""
        found = (one for one in self.open(url).values() if (one.head, one.base) == (head, base))
        return next(found, None)

    def asked(self, url: str) -> bool:
        """Return whether pull requests are asked for in a repository, and this is where they are opened."""
        return self.has_driver(url) or url in self.failures or self.is_agit(url)

    def is_agit(self, url: str) -> bool:
        """Return whether a repository's pull requests are opened by pushing to `refs/for/`."""
        return self._look_up(url, self._forges.kind) == "agit"

    def open(self, url: str) -> Mapping[int, PullRequest]:
        """Return the open pull requests of a repository by number."""
        return self._open.get(url, {})

    def put(self, url: str, request: PullRequest) -> None:
        """Take note of what a call of ours made of a pull request."""
        known = self._open.setdefault(url, {})
        if request.state == "open":
            known[request.number] = request
        else:
            known.pop(request.number, None)
            self._ended[url, request.number] = request

    def digest(self) -> str:
        """Return a digest of what a pass goes by: equal digests ask for no other pass. Words do not matter to it."""
        known = {url: [_told(one) for _, one in sorted(found.items())] for url, found in self._open.items()}
        return digest([known, {url: error.message for url, error in self.failures.items()}])

    def said(self, destination: Destination, state: DestinationState, drafts: Mapping[str, CommitId]) -> Said:
        """Return what the requests of a destination's drafts say; `drafts` are their heads.

        What cannot be read says nothing: a forge that is down neither declines nor approves.
        """
        if destination.url not in self._open:
            return Said()
        numbers = {name: number for name, number in _numbers(state).items() if name in drafts}
        found = {name: one for name, number in numbers.items() if (one := self._read(destination.url, number, name))}
        held = {name: one.commit for name, one in found.items() if one.state == "open" and one.hold}
        closed = {name for name, one in found.items() if one.state == "closed" and one.commit == drafts[name]}
        return Said(held, frozenset(closed))

    def _read(self, url: str, number: int, head: str) -> PullRequest | None:
        try:
            return self.request(url, number, head)
        except ForgeError as error:
            if isinstance(error, InternalForgeError):
                # this becomes a finding of the repository
                self.failures[url] = error
            log.warning("request_unread", url=url, number=number, why=error.message)
            return None

    def request(self, url: str, number: int, head: str) -> PullRequest | None:
        """Return the pull request of a draft branch in a repository that was read, whatever became of it.

        None: there is no such one (any more). Raises ForgeError when that cannot be told.
        """
        known = self._open.get(url, {})
        if number in known:
            # whoever opened it again thought better of it
            self._ended.pop((url, number), None)
        elif (url, number) not in self._ended and (forge := self._driver(url)):
            with forge_boundary(f"pull request {number} of {url}"):
                self._ask(url, number, forge)
        one = known.get(number) or self._ended.get((url, number))
        # numbers begin anew where a repository does
        return one if one and one.head == head else None

    def _ask(self, url: str, number: int, forge: Forge) -> None:
        try:
            one = forge.request(number)
        except ForgeMissingError:
            # people may delete it
            self._ended[url, number] = None
            return
        if one.state == "open" and url in self._open:
            # the list lags behind
            self._open[url][number] = one
        else:
            self._ended[url, number] = one


def _resting(url: str) -> str:
    # Git asks for the same address, and may be well
    return f"forge of {url}"


def _listed(url: str, forge: Forge) -> Sequence[PullRequest] | ForgeError:
    try:
        with forge_boundary(f"the pull requests of {url}"):
            return forge.open_requests()
    except ForgeError as error:
        return error


def _told(request: PullRequest) -> dict[str, object]:
    # of all labels, only the one that accepts conflicts is a reason for a pass
    told = {name: value for name, value in vars(request).items() if name not in _TITLES_DO_NOT_MATTER}
    return {**told, "accepts_conflicts": request.accepts_conflicts}


def _numbers(state: DestinationState) -> dict[str, int]:
    known = ((name, draft.request) for name, draft in state.drafts.items())
    return {name: request.number for name, request in known if request and request.number}
