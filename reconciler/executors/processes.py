"""Executor that renders packages in worker processes on this machine.

Each file tree is sent to a worker process only once.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import get_context, parent_process
from multiprocessing.context import BaseContext
from threading import Thread

from reconciler.catalog.files import FileTree, TreeId
from reconciler.executors.batches import (
    Batch,
    PackedContext,
    PackedJobs,
    RenderWorker,
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
from reconciler.executors.serialization import pack_trees, unpack_trees
from reconciler.lazy_dataclasses import dataclass
from reconciler.packages.functions.function import InterruptedFunctionError
from reconciler.process_protection import forbid_memory_access
from reconciler.telemetry.metrics import WORKER_PROCESSES

# The minimum number of jobs for this executor. A worker parses the config when it starts. This takes as long as 400
# renders.
_MIN_JOBS = 400
# The maximum size of the file trees that a worker caches. A worker that exceeds this size empties its cache.
_MAX_CACHED_BYTES = 64 << 20


class ProcessExecutor:
    """Renders packages in worker processes. Only a pass with enough jobs starts workers. Workers end with the pass.

    A fork server starts the worker processes, because a fork of a process with running threads is not safe.
    """

    def __init__(
        self,
        workers: int,
        renderer_factory: RendererFactory,
        min_jobs: int = _MIN_JOBS,
        timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS,
    ) -> None:
        """Use `workers` processes.

        If a batch takes longer than `timeout_seconds`, the main process renders the packages of the batch itself.
        """
        self._timeout_seconds = timeout_seconds
        self._workers = workers
        self._renderer_factory = renderer_factory
        self._min_jobs = min_jobs

    def should_distribute(self, job_count: int) -> bool:
        """Return whether there are enough jobs to justify the start of worker processes."""
        return self._workers > 1 and job_count >= self._min_jobs

    @contextmanager
    def open_session(self, context: RenderContext) -> Iterator[ExecutorSession]:
        """Start the worker processes for one pass, and end them after the pass."""
        limit = WaitLimit(self._timeout_seconds)
        workers = [_Worker(self._renderer_factory, limit) for _ in range(self._workers)]
        WORKER_PROCESSES.set(len(workers))
        try:
            yield _Session(workers, pack_context(context))
        finally:
            for worker in workers:
                worker.end()
            WORKER_PROCESSES.set(0)


class _Session:
    def __init__(self, workers: Sequence[_Worker], context: PackedContext) -> None:
        self._workers = workers
        self._context = context

    def start(self, jobs: Sequence[Job]) -> PendingRenders:
        return _Pending(self._workers, self._context, jobs)


class _Pending:
    def __init__(self, workers: Sequence[_Worker], context: PackedContext, jobs: Sequence[Job]) -> None:
        self._context = context
        self._jobs = jobs
        self._running = [self._send(workers, packed) for packed in pack_jobs(context, jobs)]

    def _send(self, workers: Sequence[_Worker], packed: PackedJobs) -> tuple[_Worker, PackedJobs, _RunningBatch]:
        worker = min(workers, key=lambda worker: worker.running_count)
        return worker, packed, worker.send(packed, self._context)

    def results(self) -> Sequence[JobResult]:
        return collect_results((packed, self._take(worker, packed, batch)) for worker, packed, batch in self._running)

    def _take(self, worker: _Worker, packed: PackedJobs, running: _RunningBatch) -> Sequence[JobResult]:
        try:
            return worker.wait_for_results(packed, running)
        except BrokenProcessPool:
            # At least one job of the batch terminates its worker process. Render each job alone to find this job.
            return [self._render_alone(worker, number) for number in packed.job_numbers]

    def _render_alone(self, worker: _Worker, number: int) -> JobResult:
        packed = pack_batch(self._context, [self._jobs[number]], (number,))
        try:
            (result,) = worker.wait_for_results(packed, worker.send(packed, self._context))
        except BrokenProcessPool:
            return InterruptedFunctionError("the worker process ended while it rendered the package")
        return result


@dataclass(frozen=True)
class _RunningBatch:
    """A running batch and the process pool that renders it."""

    future: Future[bytes]
    pool: ProcessPoolExecutor


class _Worker:
    """One worker process, and the IDs of the file trees and render contexts that were sent to it."""

    def __init__(self, renderer_factory: RendererFactory, limit: WaitLimit) -> None:
        self._renderer_factory = renderer_factory
        self._limit = limit
        self._known_ids: set[str] = set()
        self._bytes = 0
        self._pool = self._start_pool()
        self.running_count = 0

    def _start_pool(self) -> ProcessPoolExecutor:
        pool = ProcessPoolExecutor(
            1, _create_fork_server(self._renderer_factory), _initialize_worker, (self._renderer_factory,)
        )
        self._start_check = pool.submit(_report_started)
        return pool

    def _check_start(self) -> None:
        """Raise `ExecutorUnusableError` if the worker process did not start, because a retry would fail too."""
        try:
            self._start_check.result(self._limit.next_timeout_seconds())
        except TimeoutError as error:
            raise self._limit.record_timeout() from error
        except BrokenProcessPool as error:
            raise ExecutorUnusableError("the worker processes do not start") from error

    def send(self, packed: PackedJobs, context: PackedContext) -> _RunningBatch:
        self.running_count += 1
        try:
            return self._submit(packed, context)
        except BrokenProcessPool:
            self._restart(self._pool)
            return self._submit(packed, context)

    def _submit(self, packed: PackedJobs, context: PackedContext) -> _RunningBatch:
        if should_clear := self._bytes > _MAX_CACHED_BYTES:
            self._clear_known_ids()
        contents = pack_trees({key: tree for key, tree in packed.trees.items() if key not in self._known_ids})
        new_context = b"" if context.digest in self._known_ids else context.data
        self._known_ids |= packed.trees.keys() | {context.digest}
        self._bytes += len(contents)
        return _RunningBatch(
            self._pool.submit(_render_batch, packed.batch, new_context, contents, should_clear), self._pool
        )

    def _clear_known_ids(self) -> None:
        self._known_ids.clear()
        self._bytes = 0

    def wait_for_results(self, packed: PackedJobs, running: _RunningBatch) -> Sequence[JobResult]:
        """Wait for a batch and return its results.

        Raises:
            BrokenProcessPool: The worker process ended. A new worker process was started.
            ExecutorUnusableError: Worker processes do not start, or the batch took too long.
        """
        self.running_count -= 1
        seconds = self._limit.next_timeout_seconds()
        try:
            data = running.future.result(seconds)
        except TimeoutError as error:
            raise self._limit.record_timeout() from error
        except BrokenProcessPool:
            self._restart(running.pool)
            raise
        return packed.unpack_results(data)

    def _restart(self, broken_pool: ProcessPoolExecutor) -> None:
        if broken_pool is self._pool:
            self._check_start()
            self.end()
            self._clear_known_ids()
            self._pool = self._start_pool()

    def end(self) -> None:
        """Kill the worker process, because a render that never returns would prevent the end of the main process."""
        # Read the private list of processes before `shutdown` deletes it. Python has a public method only since version
        # 3.14.
        processes = list((self._pool._processes or {}).values())
        self._pool.shutdown(wait=False, cancel_futures=True)
        for process in processes:
            process.kill()


def _create_fork_server(renderer_factory: RendererFactory) -> BaseContext:
    """Return the fork server context. The fork server imports the modules of the workers once for all passes."""
    context = get_context("forkserver")
    context.set_forkserver_preload([__name__, type(renderer_factory).__module__])
    return context


# Only the worker processes run the code below this line.

_worker: RenderWorker
_trees: dict[TreeId, FileTree] = {}
_contexts: dict[str, bytes] = {}


def _initialize_worker(renderer_factory: RendererFactory) -> None:
    # Prevent other processes from reading the memory of this worker. The worker does not inherit this protection from
    # the main process, because the kernel resets the protection when the program of the fork server starts.
    forbid_memory_access()
    # Ignore Ctrl+C in workers, because the main process finishes its push first and then ends the workers.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_exit_with_service, daemon=True).start()
    global _worker  # noqa: PLW0603 - the only state of a worker process
    _worker = RenderWorker(renderer_factory)


def _exit_with_service() -> None:
    """End this worker process when the main process ends, because no other process would end the worker."""
    service = parent_process()
    assert service, "a worker process has a parent process"
    service.join()
    os._exit(1)


def _report_started() -> None:
    """Do nothing. A result of this function shows that the worker process has started."""


def _render_batch(batch: Batch, context: bytes, contents: bytes, should_clear: bool) -> bytes:
    if should_clear:
        _trees.clear()
    _trees.update(unpack_trees(contents))
    if context:
        _contexts[batch.context_digest] = context
    return _worker.render_batch(batch, _contexts[batch.context_digest], _trees)
