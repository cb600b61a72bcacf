"""The open pull requests of all repositories, as the forges report them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import urlsplit

from reconciler.catalog.files import CommitId
from reconciler.forge.errors import ForgeError, ForgeMissingError, InternalForgeError
from reconciler.forge.port import Forge, PullRequest
from reconciler.krm.git_formats import normalize_repository_url
from reconciler.krm.json_text import compute_digest
from reconciler.lazy_dataclasses import dataclass, field
from reconciler.reconcile.failures import forge_boundary
from reconciler.reconcile.remotes.scheduling import Backoff
from reconciler.telemetry.event_log import log

if TYPE_CHECKING:
    from reconciler.planning.model.state import TargetState
    from reconciler.planning.model.targets import Target

_T = TypeVar("_T")
# The number of repositories whose pull requests are read at the same time.
_MAX_PARALLEL_READS = 4
# Fields of a pull request. A change of only these fields does not require a new pass.
_IGNORED_FIELDS = ("title", "body", "url", "labels")


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

    def list_unavailable_hosts(self) -> dict[str, str]:
        """Return the host name and an error message of each forge that failed for all its repositories."""
        if not self.failures:
            # Return early, so that a pass without failures does not parse the URLs of all repositories.
            return {}
        failures = {_get_host(url): error.message for url, error in self.failures.items()}
        working = {_get_host(url) for url in self._open}
        return {host: message for host, message in failures.items() if host not in working}

    def has_driver(self, url: str) -> bool:
        """Return whether the pull requests of a repository can be read through an API."""
        return self._find_forge(url) is not None

    def _find_forge(self, url: str) -> Forge | None:
        return self._look_up(url, self._forges.find_forge)

    def _look_up(self, url: str, function: Callable[[str], _T | None]) -> _T | None:
        """Call a function with the URL of a repository, and return its result.

        If the function raises an unexpected exception, record the failure in `failures` and return None.
        """
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
        """Return the open pull request from branch `head` to branch `base`. Return None if there is no such pull
        request.
        """
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
        """Return the state of the pull requests for the drafts of a target.

        If the pull requests were not read, the result is empty, so that the pass approves or declines no draft.

        Args:
            drafts: The heads of the draft branches.
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
        """Return the open or ended pull request of a draft branch. Return None if the pull request does not exist.

        Raises:
            ForgeError: The forge cannot be read.
        """
        open_requests = self._open.get(url, {})
        if number in open_requests:
            # Delete the cached closed or merged state, because the pull request is open again.
            self._ended.pop((url, number), None)
        elif (url, number) not in self._ended and (forge := self._find_forge(url)):
            with forge_boundary(f"pull request {number} of {url}"):
                self._read_request(url, number, forge)
        request = open_requests.get(number) or self._ended.get((url, number))
        # Compare the branch, because in a repository that was created again, a different pull request can have the same
        # number.
        return request if request and request.head == head else None

    def _read_request(self, url: str, number: int, forge: Forge) -> None:
        try:
            request = forge.get_request(number)
        except ForgeMissingError:
            # Cache that the pull request does not exist, for example because a person has deleted it.
            self._ended[url, number] = None
            return
        if request.state == "open" and url in self._open:
            # Add the open pull request, because the forge can return an outdated list without it.
            self._open[url][number] = request
        else:
            self._ended[url, number] = request


def _get_host(url: str) -> str:
    return urlsplit(normalize_repository_url(url)).hostname or url


def _format_backoff_key(url: str) -> str:
    # Use a different back-off key than for Git, because Git can succeed while the forge fails.
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
