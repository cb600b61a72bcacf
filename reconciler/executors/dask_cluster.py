"""Executor that renders packages on an existing Dask cluster.

Each file tree is submitted to the cluster once, under its Git tree ID. Workers fetch the file trees of their batches.
If a worker stops, another worker repeats its jobs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from typing import Any

from reconciler.catalog.files import TreeId
from reconciler.executors.batches import (
    Batch,
    PackedContext,
    PackedJobs,
    RenderWorker,
    VersionMismatchError,
    collect_results,
    pack_batch,
    pack_context,
    pack_jobs,
)
from reconciler.executors.executor import (
    DEFAULT_TIMEOUT_SECONDS,
    ExecutorSession,
    ExecutorUnusableError,
    Job,
    JobResult,
    PendingRenders,
    RenderContext,
    RendererFactory,
    WaitLimit,
)
from reconciler.executors.serialization import Trees, pack_trees, unpack_trees
from reconciler.packages.functions.function import InterruptedFunctionError

# This executor is used for at least this number of jobs. A low number is enough, because the cluster already runs.
_MIN_JOBS = 80
_CONNECT_SECONDS = 10
_RETRIES = 3
# The maximum number of deserialized file trees that a worker caches.
_MAX_CACHED_TREES = 4_000


class DaskExecutor:
    """Renders packages on a Dask cluster. `address` is the address of the scheduler, e.g. "tcp://scheduler:8786".

    Attributes:
        connection_error: The error of the last connection to the scheduler. "" if it succeeded.
    """

    def __init__(
        self, address: str, renderer_factory: RendererFactory, timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS
    ) -> None:
        """Use the Dask cluster whose scheduler has this address.

        If a batch takes longer than `timeout_seconds`, the main process renders the packages of the batch itself.
        """
        self._address = address
        self._renderer_factory = renderer_factory
        self._timeout_seconds = timeout_seconds
        self.connection_error = ""

    def should_distribute(self, job_count: int) -> bool:
        """Return whether there are enough jobs to justify the transfer of the package contents."""
        return job_count >= _MIN_JOBS

    @contextmanager
    def open_session(self, context: RenderContext) -> Iterator[ExecutorSession]:
        """Connect to the scheduler for one pass. Raise `ExecutorUnusableError` if the connection fails."""
        client = self._connect()
        try:
            yield _Session(client, self._renderer_factory, pack_context(context), self._timeout_seconds)
        finally:
            client.close(timeout=_CONNECT_SECONDS)

    def _connect(self) -> Any:
        try:
            from distributed import Client
        except ImportError as error:
            raise ExecutorUnusableError(
                "the Python package `distributed` is not installed; install reconciler[dask]"
            ) from error
        try:
            client = _create_client(Client, self._address)
        except (OSError, ValueError, TimeoutError) as error:
            self.connection_error = f"the Dask scheduler at {self._address} does not respond: {error}"
            raise ExecutorUnusableError(self.connection_error) from error
        self.connection_error = ""
        return client


def _create_client(client_class: Any, address: str) -> Any:
    return client_class(address, timeout=_CONNECT_SECONDS, set_as_default=False)


class _Session:
    def __init__(
        self, client: Any, renderer_factory: RendererFactory, context: PackedContext, timeout_seconds: float
    ) -> None:
        self.client = client
        self.limit = WaitLimit(timeout_seconds)
        self.context = context
        self.content_futures: dict[TreeId, Any] = {}
        self.renderer_factory = renderer_factory
        self.context_future = self._submit_content(f"reconciler-context-{context.digest}", context.data)

    def _submit_content(self, name: str, content: bytes) -> Any:
        # Submit a task instead of using `Client.scatter`, because Dask repeats a task if its worker stops. The key is
        # derived from the content, so that equal content is submitted only once.
        return self.client.submit(bytes, content, key=name, retries=_RETRIES)

    def start(self, jobs: Sequence[Job]) -> PendingRenders:
        return _Pending(self, jobs)

    def submit(self, packed: PackedJobs) -> Any:
        for tree_id in packed.trees.keys() - self.content_futures.keys():
            content = pack_trees({tree_id: packed.trees[tree_id]})
            self.content_futures[tree_id] = self._submit_content(f"reconciler-{tree_id}", content)
        contents = [self.content_futures[tree_id] for tree_id in packed.trees]
        return self.client.submit(
            render_in_worker,
            self.renderer_factory,
            packed.batch,
            self.context_future,
            contents,
            pure=False,
            retries=_RETRIES,
        )


class _Pending:
    def __init__(self, session: _Session, jobs: Sequence[Job]) -> None:
        self._session = session
        self._jobs = jobs
        self._running = [(packed, session.submit(packed)) for packed in pack_jobs(session.context, jobs)]

    def results(self) -> Sequence[JobResult]:
        return collect_results((packed, self._take(packed, future)) for packed, future in self._running)

    def _take(self, packed: PackedJobs, future: Any) -> Sequence[JobResult]:
        from distributed import KilledWorker

        try:
            return _wait_for_results(packed, future, self._session.limit)
        except KilledWorker:
            # At least one job of the batch terminates its worker. Render each job alone to find this job.
            return [self._render_alone(number) for number in packed.job_numbers]

    def _render_alone(self, number: int) -> JobResult:
        from distributed import KilledWorker

        packed = pack_batch(self._session.context, [self._jobs[number]], (number,))
        try:
            (result,) = _wait_for_results(packed, self._session.submit(packed), self._session.limit)
        except KilledWorker:
            return InterruptedFunctionError("the workers ended while they rendered the package")
        return result


def _wait_for_results(packed: PackedJobs, future: Any, limit: WaitLimit) -> Sequence[JobResult]:
    """Wait for a batch and return its results. Raise `KilledWorker` or `ExecutorUnusableError` if the batch failed."""
    seconds = limit.next_timeout_seconds()
    try:
        data = future.result(timeout=seconds)
    except (VersionMismatchError, ImportError) as error:
        raise ExecutorUnusableError(f"a worker of the Dask cluster cannot render packages: {error}") from error
    except TimeoutError as error:
        raise limit.record_timeout() from error
    except (OSError, CancelledError) as error:
        raise ExecutorUnusableError(f"the connection to the Dask cluster was lost: {error}") from error
    return packed.unpack_results(data)


# The workers of the Dask cluster run the code below.

_workers: dict[str, RenderWorker] = {}
_unpacked_trees: dict[bytes, Trees] = {}


def render_in_worker(
    renderer_factory: RendererFactory, batch: Batch, context: bytes, contents: Sequence[bytes]
) -> bytes:
    """Render a batch in a worker of the Dask cluster, and return the serialized results."""
    worker = _workers.setdefault(repr(renderer_factory), RenderWorker(renderer_factory))
    trees: dict[TreeId, Any] = {}
    for content in contents:
        trees |= _unpack_cached(content)
    return worker.render_batch(batch, context, trees)


def _unpack_cached(content: bytes) -> Trees:
    if len(_unpacked_trees) > _MAX_CACHED_TREES:
        _unpacked_trees.clear()
    if content not in _unpacked_trees:
        _unpacked_trees[content] = unpack_trees(content)
    return _unpacked_trees[content]
