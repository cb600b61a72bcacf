"""Executor for one machine: local worker processes. Each content is sent to a process once."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
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
from reconciler.packages.functions.function import InterruptedFunctionError
from reconciler.process_protection import forbid_memory_access

# Starting a worker, which then parses the config, costs about as much as this number of renders.
_MIN_JOBS = 400
# A worker drops its cached contents when they exceed this size.
_MAX_CACHED_BYTES = 64 << 20


class ProcessExecutor:
    """Renders in `workers` processes. They start for a pass with enough jobs and end with that pass.

    The processes come from a fork server. This process has threads, and a fork would copy it in the middle of their
    work.
    """

    def __init__(
        self,
        workers: int,
        renderer_factory: RendererFactory,
        min_jobs: int = _MIN_JOBS,
        timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS,
    ) -> None:
        """Use `workers` processes.

        A batch that takes longer than `timeout_seconds` is rendered in this process instead.
        """
        self._timeout_seconds = timeout_seconds
        self._workers = workers
        self._renderer_factory = renderer_factory
        self._min_jobs = min_jobs

    def should_distribute(self, job_count: int) -> bool:
        """Return whether this number of jobs justifies the start of the processes."""
        return self._workers > 1 and job_count >= self._min_jobs

    @contextmanager
    def open_session(self, context: RenderContext) -> Iterator[ExecutorSession]:
        """Start the workers and end them after the pass."""
        limit = WaitLimit(self._timeout_seconds)
        workers = [_Worker(self._renderer_factory, limit) for _ in range(self._workers)]
        try:
            yield _Session(workers, pack_context(context))
        finally:
            for worker in workers:
                worker.end()


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
            # The worker process ended. Render each job alone to find the job that ends it.
            return [self._render_alone(worker, number) for number in packed.job_numbers]

    def _render_alone(self, worker: _Worker, number: int) -> JobResult:
        """Render one job of a lost batch alone, so that only a job that ends the worker again is reported."""
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
    """One worker process, and the ids of the contents that it has."""

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
        """Raise ExecutorUnusableError when the process did not start. The next process would not start either."""
        try:
            self._start_check.result(self._limit.next_timeout_seconds())
        except TimeoutError as error:
            raise self._limit.record_timeout() from error
        except BrokenProcessPool as error:
            raise ExecutorUnusableError("the worker processes do not start") from error

    def send(self, packed: PackedJobs, context: PackedContext) -> _RunningBatch:
        """Start to render a batch."""
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
            BrokenProcessPool: The process ended. Another process is ready.
            ExecutorUnusableError: Processes do not start, or the batch took too long.
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
        """Kill the process, so that a render that never returns does not keep this process alive."""
        # Before Python 3.14, the pool has no public method to kill its processes, and `shutdown` drops them.
        processes = list((self._pool._processes or {}).values())
        self._pool.shutdown(wait=False, cancel_futures=True)
        for process in processes:
            process.kill()


def _create_fork_server(renderer_factory: RendererFactory) -> BaseContext:
    """Return the fork server context. The fork server stays alive and imports the workers' modules once."""
    context = get_context("forkserver")
    context.set_forkserver_preload([__name__, type(renderer_factory).__module__])
    return context


# The code below runs in the worker processes.

_worker: RenderWorker
_trees: dict[TreeId, FileTree] = {}
_contexts: dict[str, bytes] = {}


def _initialize_worker(renderer_factory: RendererFactory) -> None:
    # The fork server executes a program, and the kernel resets the dumpable flag at each execution.
    forbid_memory_access()
    # An interrupt at a terminal reaches all processes. The service finishes its push first and then ends the workers.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_exit_with_service, daemon=True).start()
    global _worker  # noqa: PLW0603 - the only state of a worker process
    _worker = RenderWorker(renderer_factory)


def _exit_with_service() -> None:
    """End this process when the service process ends for any reason, because no other process would end it."""
    service = parent_process()
    assert service, "a worker process has a parent process"
    service.join()
    os._exit(1)


def _report_started() -> None:
    """Do nothing. The result of this call shows that the process has started."""


def _render_batch(batch: Batch, context: bytes, contents: bytes, should_clear: bool) -> bytes:
    if should_clear:
        _trees.clear()
    _trees.update(unpack_trees(contents))
    if context:
        _contexts[batch.context_digest] = context
    return _worker.render_batch(batch, _contexts[batch.context_digest], _trees)
