"""Opens, fetches, pushes and maintains the mirrors of all remotes of a pass. Worker pools run the fetches and pushes.

The module `repository` reads the objects of one remote.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Set
from contextlib import ExitStack
from copy import copy
from typing import TYPE_CHECKING, Self, TypeVar

from reconciler.catalog.files import CommitId
from reconciler.git.errors import GitError, InternalGitError, MirrorCorruptError, RemoteBusyError
from reconciler.git.mirror import FetchKind, Mirror
from reconciler.git.push_outcomes import PushDone, PushOutcome
from reconciler.krm.findings import Finding, create_internal_error_finding
from reconciler.krm.json_text import compute_digest
from reconciler.reconcile.failures import repository_boundary
from reconciler.reconcile.remotes import repository
from reconciler.reconcile.remotes.availability import RemoteAvailability, RemoteState, RemoteTimes
from reconciler.reconcile.remotes.scheduling import Backoff, RemoteLimits, WorkerPool, WorkerResult
from reconciler.redaction import redact_urls
from reconciler.telemetry.event_log import log
from reconciler.telemetry.metrics import REMOTES

if TYPE_CHECKING:
    from reconciler.reconcile.remotes.repository import Remote


def maintain_mirror(mirror: Mirror) -> None:
    """Pack and prune the objects of a mirror if it has new objects. Log an error, and do not raise it."""
    if not mirror.has_new_objects:
        return
    try:
        mirror.maintain()
    except GitError as error:
        log.warning("mirror_maintenance_failed", remote=mirror.url, message=error.message)


_T = TypeVar("_T")


def _list_kinds(upstreams: set[str], targets: set[str]) -> dict[str, FetchKind]:
    kinds: dict[str, FetchKind] = {**dict.fromkeys(upstreams, "upstream"), **dict.fromkeys(targets, "target")}
    return kinds | dict.fromkeys(upstreams & targets, "both")


class Remotes:
    """All remotes of a pass, by URL. The end of the `with` block ends the processes that read the mirrors.

    A fetch or push of a remote is a job in its own thread. A pass waits a limited time for each job. If a job takes
    longer, its remote is late: the job continues in its thread, and no other thread uses the mirror of the remote.
    Until a later pass takes the result of the job, `failures` contains an error for the remote.

    Args:
        times: The times of earlier fetches and pushes, in seconds of the clock of `limits`. New times are added to it.

    Attributes:
        failures: The last error of each remote that cannot be read in this pass.
        has_refetched: Whether a remote was fetched a second time in this pass. Its refs can contain commits that this
            pass has not planned for.
        earlier_refs: The refs that each existing mirror had before its first fetch. Empty if `should_keep_earlier_refs`
            is False.
    """

    def __init__(
        self,
        open_mirror: Callable[[str], Mirror],
        state_prefix: str,
        backoff: Backoff,
        at_end: Callable[[], None] = lambda: None,
        limits: RemoteLimits | None = None,
        *,
        should_keep_earlier_refs: bool = False,
        times: RemoteTimes | None = None,
    ) -> None:
        self._open_mirror = open_mirror
        self._at_end = at_end
        self._backoff = backoff
        self._state_prefix = state_prefix
        self._remotes: dict[str, Remote] = {}
        self._mirrors: dict[str, Mirror] = {}
        self._exit_stack = ExitStack()
        self._fetched: set[str] = set()
        self.failures: dict[str, GitError] = {}
        self.has_refetched = False
        limits = limits or RemoteLimits()
        self._fetches: WorkerPool[GitError | None] = WorkerPool("fetch", limits.max_fetches, limits)
        self._pushes: WorkerPool[Mapping[str, PushOutcome]] = WorkerPool("push", limits.max_pushes, limits)
        self._clock = limits.clock
        self._times = RemoteTimes() if times is None else times
        self._availability = RemoteAvailability(limits.clock, should_log=limits.should_log_outages)
        # The kind of the last fetch of each remote, by URL, in the order in which the fetches started.
        self._kinds: dict[str, FetchKind] = {}
        # The URLs of remotes whose last fetch was late. Passes do not wait for fetches from these remotes. A remote is
        # removed from the set when a fetch ends in time.
        self._slow: set[str] = set()
        # Copies of the mirrors before their last fetch or push. Only remotes that were fetched successfully have a
        # copy.
        self._previous_mirrors: dict[str, Mirror] = {}
        self._complete: set[str] = set()
        self._late_urls_in_digest: frozenset[str] = frozenset()
        self._should_only_collect = False
        self._should_keep_earlier_refs = should_keep_earlier_refs
        self.earlier_refs: dict[str, Mapping[str, CommitId]] = {}

    def __enter__(self) -> Self:
        self._fetched, self.has_refetched = set(), False
        return self

    def __exit__(self, *error: object) -> None:
        self._exit_stack.close()
        self._remotes.clear()
        waits = self._backoff.remaining_seconds
        self._availability.export_backoff(
            (self._mirrors[url].metric_label, seconds) for url, seconds in waits.items() if url in self._mirrors
        )
        self._at_end()

    def fetch(self, upstreams: Iterable[str], targets: Iterable[str]) -> None:
        """Fetch several remotes at the same time. If a fetch fails, store the error of the remote in `failures`.

        Do not fetch these remotes:

        - A remote in back-off. Its last error stays in `failures`.
        - A remote whose fetch in an earlier pass took too long. If this fetch has ended now, use its result.
        """
        kinds = _list_kinds({*upstreams}, {*targets})
        self.has_refetched = self.has_refetched or not self._fetched.isdisjoint(kinds)
        self._fetched |= kinds.keys()
        should_only_collect, self._should_only_collect = self._should_only_collect, False
        current = {url for url in kinds if self._kinds.get(url) == kinds[url]} if should_only_collect else set()
        current |= {url for url in sorted(kinds) if self._take_late_results(url, kinds[url])} | self._late_urls
        order = {url: index for index, url in enumerate(self._kinds)}
        due = sorted(kinds.keys() - current, key=lambda url: (order.get(url, -1), url))
        self._fetch([url for url in due if not self._backoff.is_waiting(url)], kinds)

    @property
    def fetched_urls(self) -> Set[str]:
        """The URLs of all remotes that this pass has fetched, or has tried to fetch."""
        return self._fetched

    def list_unavailable_targets(self) -> dict[str, str]:
        """Return the error message of each target remote that cannot be read, by URL without credentials."""
        states = self.list_states()
        return {state.url: state.error.message for state in states if state.error and state.kind != "upstream"}

    def list_states(self) -> tuple[RemoteState, ...]:
        """Return the state of each remote that this pass has fetched, sorted by URL."""
        waits = self._backoff.remaining_seconds
        states = (
            RemoteState(
                self._get_display_url(url), url, self._kinds.get(url, "both"), self.failures.get(url),
                self._backoff.count_failures(url), waits.get(url, 0.0),
                fetched_at=self._times.fetches.get(url), pushed_at=self._times.pushes.get(url),
            )
            for url in self._fetched
        )  # fmt: skip
        return tuple(sorted(states, key=lambda state: state.url))

    def count_unavailable(self) -> int:
        """Return the number of remotes of this pass that cannot be read."""
        return len(self.failures.keys() & self._fetched)

    def collect_late_results(self) -> None:
        """Make the next call of `fetch` take late results. That call does not repeat fetches that have ended."""
        self._should_only_collect = True

    def _fetch(self, urls: Iterable[str], kinds: Mapping[str, FetchKind]) -> None:
        mirrors = {url: mirror for url in urls if (mirror := self._open(url))}
        jobs = {url: self._create_fetch_job(url, mirror, kinds[url]) for url, mirror in mirrors.items()}
        self._copy_mirrors(mirrors)
        for label in sorted({mirror.metric_label for mirror in mirrors.values()}):
            # The number of metric labels is limited. Reserve them in order, so that the same remotes have a label after
            # each start of the process.
            REMOTES.limit(label)
        results = self._run(self._fetches, jobs, self._slow)
        late = self._fetches.late_jobs
        for url in mirrors:
            if url in results or url in late:
                self._kinds.pop(url, None)
                self._kinds[url] = kinds[url]
            if url in results:
                self._record_fetch(url, results[url])
            else:
                # Keep an earlier error of the remote until the result of the fetch is known.
                self.failures.setdefault(url, _create_late_error(mirrors[url], "fetched"))

    def _create_fetch_job(self, url: str, mirror: Mirror, kind: FetchKind) -> Callable[[], GitError | None]:
        def fetch() -> GitError | None:
            try:
                with repository_boundary(f"fetching {mirror.url}"):
                    self._keep_earlier_refs(url, mirror)
                    mirror.fetch(kind, self._state_prefix)
            except GitError as error:
                return error
            return None

        return fetch

    def _keep_earlier_refs(self, url: str, mirror: Mirror) -> None:
        if self._should_keep_earlier_refs and url not in self.earlier_refs and mirror.has_refs:
            self.earlier_refs[url] = dict(mirror.refs())

    def push(self, jobs: Mapping[str, Callable[[], Mapping[str, PushOutcome]]]) -> dict[str, Mapping[str, PushOutcome]]:
        """Run a push job for each remote, and return the results of the jobs that ended in time.

        Each job uses only the mirror of its own remote. Late jobs continue after the call. Their remotes cannot be used
        until a later pass takes the results.
        """
        self._copy_mirrors(jobs)
        results = self._run(self._pushes, jobs)
        for url in jobs.keys() - results.keys():
            self.failures[url] = _create_late_error(self._mirrors[url], "pushed to")
            self._remotes.pop(url, None)
        for url, job_result in results.items():
            self._record_push(url, job_result.result)
        return {url: job_result.result for url, job_result in results.items()}

    def _record_push(self, url: str, outcomes: Mapping[str, PushOutcome]) -> None:
        if any(isinstance(outcome, PushDone) for outcome in outcomes.values()):
            self._times.pushes[url] = self._clock()

    def _run(
        self, pool: WorkerPool[_T], jobs: Mapping[str, Callable[[], _T]], background: Set[str] = frozenset()
    ) -> dict[str, WorkerResult[_T]]:
        try:
            return pool.run(jobs, background)
        except BaseException:
            self.close()
            raise

    def _copy_mirrors(self, urls: Iterable[str]) -> None:
        # Copy the mirrors, because a copy keeps its refs when the refs of the mirror change.
        self._previous_mirrors |= {url: copy(self._mirrors[url]) for url in urls if url in self._complete}

    def _take_late_results(self, url: str, kind: FetchKind) -> bool:
        """Record the results of the late jobs of a remote that have ended.

        Return whether one of these jobs was a fetch of the given kind.
        """
        push_result = self._pushes.take_result(url)
        if push_result:
            self._record_push(url, push_result.result)
            # Fetch the remote again, because only a fetch shows which refs the late push has moved.
            self._kinds.pop(url, None)
            self.failures.pop(url, None)
        fetch_result = self._fetches.take_result(url)
        if fetch_result is None:
            return False
        self._remotes.pop(url, None)
        self._record_fetch(url, fetch_result)
        return self._kinds[url] == kind

    def _record_fetch(self, url: str, fetch_result: WorkerResult[GitError | None]) -> None:
        if fetch_result.is_in_time:
            self._slow.discard(url)
        else:
            self._slow.add(url)
        self._record_outcome(url, fetch_result.result)

    @property
    def _late_urls(self) -> Set[str]:
        """The URLs of all remotes with a late job. Another thread may still use the mirrors of these remotes."""
        return self._fetches.late_jobs | self._pushes.late_jobs

    def _is_late(self, url: str) -> bool:
        return self._fetches.is_late(url) or self._pushes.is_late(url)

    def include_late_errors_in_digest(self) -> None:
        """Include the errors of all currently late remotes in the result of `digest`.

        This pass cannot read these remotes. With the errors, the digest changes when a later pass can read them.
        """
        self._late_urls_in_digest = frozenset(
            url for url, error in self.failures.items() if isinstance(error, RemoteBusyError)
        )

    def close(self) -> None:
        """Interrupt all late jobs, and discard their results."""
        for url in self._late_urls:
            self._mirrors[url].interrupt()
        self._fetches.join()
        self._pushes.join()

    def with_refs_at(self, replaced: Mapping[str, Mapping[str, CommitId | None]]) -> Remotes:
        """Return a copy of these remotes in which some refs have different commits. Nothing is fetched.

        For each URL, `replaced` maps ref names to commits. If the commit is None, the ref does not exist in the copy.
        """
        remotes = copy(self)
        available = {url: remote for url in replaced if (remote := self.get_even_if_missing(url))}
        with_replaced = {url: remote.with_refs_at(replaced[url]) for url, remote in available.items()}
        remotes._remotes = {**self._remotes, **with_replaced}
        return remotes

    def digest(self) -> str:
        """Return a digest of all refs and failures. Equal digests mean that no remote has changed.

        For a late remote, the digest contains the refs from before its fetch. If the fetch changes no ref, no further
        pass is required.
        """
        mirrors = {**self._mirrors, **{url: self._previous_mirrors.get(url) for url in self._late_urls}}
        refs = {url: self._read_refs(url, mirror) if mirror else {} for url, mirror in mirrors.items()}
        failures = {
            url: error.message
            for url, error in self.failures.items()
            if not isinstance(error, RemoteBusyError) or url in self._late_urls_in_digest
        }
        return compute_digest({"refs": refs, "failures": failures})

    def _read_refs(self, url: str, mirror: Mirror) -> Mapping[str, CommitId]:
        """Return the refs of a remote. If the refs cannot be read, record an error of this remote."""
        try:
            with repository_boundary(f"reading the refs of {mirror.url}"):
                return dict(mirror.refs())
        except GitError as error:
            self.failures.setdefault(url, error)
            return {}

    def _record_outcome(self, url: str, error: GitError | None) -> None:
        if error:
            self.failures[url] = error
            self._availability.record_failure(self._get_display_url(url), error, self._backoff.record_failure(url))
            self._discard_if_damaged(url, error)
        else:
            self.failures.pop(url, None)
            self._backoff.record_success(url)
            self._availability.record_success(self._get_display_url(url))
            self._complete.add(url)
            self._times.fetches[url] = self._clock()

    def _get_display_url(self, url: str) -> str:
        return self._mirrors[url].url if url in self._mirrors else redact_urls(url)

    def _discard_if_damaged(self, url: str, error: GitError) -> None:
        # Discard a damaged mirror, because it is only a cache, and the next fetch creates a new mirror.
        if isinstance(error, MirrorCorruptError) and url in self._mirrors:
            self._mirrors.pop(url).discard()
            self._previous_mirrors.pop(url, None)
            self._complete.discard(url)

    def maintain(self) -> tuple[Finding, ...]:
        """Pack the mirrors that have new objects, because many small packs slow down every read.

        Returns:
            One finding for each mirror where an unexpected exception occurred.
        """
        late, findings = self._late_urls, []
        for mirror in (mirror for url, mirror in self._mirrors.items() if url not in late):
            try:
                with repository_boundary(f"maintaining {mirror.url}"):
                    maintain_mirror(mirror)
            except InternalGitError as error:
                findings.append(create_internal_error_finding(error.failure))
        return tuple(findings)

    def _open(self, url: str) -> Mirror | None:
        try:
            with repository_boundary(f"opening the mirror of {redact_urls(url)}"):
                self._mirrors[url] = self._mirrors.get(url) or self._open_mirror(url)
        except GitError as error:
            self._record_outcome(url, error)
            return None
        return self._mirrors[url]

    def get(self, url: str) -> Remote | None:
        """Return a remote that was fetched without an error. Return None for all other remotes."""
        if url in self.failures or url not in self._mirrors:
            return None
        return self.get_even_if_missing(url)

    def list_branches(self, url: str) -> Mapping[str, CommitId] | None:
        """Request the current branches from a remote. Return the head of each branch, with its full ref name as key.

        Return None if the remote does not respond.
        """
        remote = self.get(url)
        try:
            return remote.mirror.list_remote_branches() if remote else None
        except GitError:
            # Ignore the error, because the outcome of the failed push already contains the error of the remote.
            return None

    def get_upstream(self, url: str) -> Remote | None:
        """Return a remote to read packages from. If its fetch is late, use the content from before this fetch.

        Do not write to the returned remote. A missing object in this remote does not prove that the object was deleted.
        """
        if not isinstance(self.failures.get(url), RemoteBusyError):
            return self.get(url)
        return self._open_remote(url, self._previous_mirrors[url]) if url in self._previous_mirrors else None

    def get_even_if_missing(self, url: str) -> Remote | None:
        """Return a remote with the content of its mirror, even if its fetch failed.

        A missing repository is an empty remote. Return None if the mirror was not opened, or if the remote is late.
        """
        if url not in self._mirrors or self._is_late(url):
            return None
        return self._open_remote(url, self._mirrors[url])

    def _open_remote(self, url: str, mirror: Mirror) -> Remote:
        if url not in self._remotes:
            reader = self._exit_stack.enter_context(mirror.open_reader())
            self._remotes[url] = repository.Remote(mirror, reader, is_available=url not in self.failures)
        return self._remotes[url]


def _create_late_error(mirror: Mirror, activity: str) -> RemoteBusyError:
    return RemoteBusyError(f"{mirror.url} is still being {activity}; a later pass uses the repository again")
