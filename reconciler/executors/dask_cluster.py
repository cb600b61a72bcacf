"""Executor for many machines: an existing Dask cluster.

Package contents are submitted to the cluster once, under their Git ids. Workers fetch the contents of their batch. If a
worker is lost, another worker repeats its work.
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

# The cluster already runs, so that the only cost is the transfer.
_MIN_JOBS = 80
_CONNECT_SECONDS = 10
_RETRIES = 3
# The number of unpacked contents that a worker caches.
_MAX_CACHED_TREES = 4_000


class DaskExecutor:
    """Renders on the Dask cluster whose scheduler is at `address`, for example "tcp://scheduler:8786"."""

    def __init__(
        self, address: str, renderer_factory: RendererFactory, timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS
    ) -> None:
        """Use the cluster at `address`.

        A batch that takes longer than `timeout_seconds` is rendered in this process instead.
        """
        self._address = address
        self._renderer_factory = renderer_factory
        self._timeout_seconds = timeout_seconds

    def should_distribute(self, job_count: int) -> bool:
        """Return whether this number of jobs justifies the transfer."""
        return job_count >= _MIN_JOBS

    @contextmanager
    def open_session(self, context: RenderContext) -> Iterator[ExecutorSession]:
        """Connect to the scheduler and disconnect after the pass. Raises ExecutorUnusableError."""
        client = self._connect()
        try:
            yield _Session(client, self._renderer_factory, pack_context(context), self._timeout_seconds)
        finally:
            client.close(timeout=_CONNECT_SECONDS)

    def _connect(self) -> Any:
        try:
            from distributed import Client
        except ImportError as error:
            raise ExecutorUnusableError("distributed is not installed; install reconciler[dask]") from error
        try:
            return _create_client(Client, self._address)
        except (OSError, ValueError, TimeoutError) as error:
            raise ExecutorUnusableError(f"the scheduler at {self._address} does not respond: {error}") from error


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
        # Content that `scatter` sends is lost with its worker; a task is repeated. The key is derived from the
        # content, so that equal content is submitted once.
        return self.client.submit(bytes, content, key=name, retries=_RETRIES)

    def start(self, jobs: Sequence[Job]) -> PendingRenders:
        return _Pending(self, jobs)

    def submit(self, packed: PackedJobs) -> Any:
        """Start to render a batch on any worker."""
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
            # One job of the batch terminates every worker that renders it.
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
    """Wait for a batch and return its results. Raises KilledWorker, ExecutorUnusableError."""
    seconds = limit.next_timeout_seconds()
    try:
        data = future.result(timeout=seconds)
    except (VersionMismatchError, ImportError) as error:
        raise ExecutorUnusableError(f"a worker of the cluster cannot render: {error}") from error
    except TimeoutError as error:
        raise limit.record_timeout() from error
    except (OSError, CancelledError) as error:
        raise ExecutorUnusableError(f"the connection to the cluster was lost: {error}") from error
    return packed.unpack_results(data)


# The code below runs in the workers of the cluster.

_workers: dict[str, RenderWorker] = {}
_unpacked_trees: dict[bytes, Trees] = {}


def render_in_worker(
    renderer_factory: RendererFactory, batch: Batch, context: bytes, contents: Sequence[bytes]
) -> bytes:
    """Return the serialized results of a batch. This function runs in a worker of the cluster."""
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
