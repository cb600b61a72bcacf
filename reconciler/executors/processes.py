"""The executor of one machine: processes beside this one, each told every content once."""

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

from reconciler.executors.batches import PackedJobs, PackedOrders, in_order, pack, pack_jobs, pack_orders
from reconciler.executors.bench import Batch, Bench
from reconciler.executors.errors import ExecutorUnusableError
from reconciler.executors.limit import TIMEOUT_SECONDS, WaitLimit
from reconciler.executors.parcel import pack_trees, unpack_trees
from reconciler.executors.port import Job, Kitchen, Orders, Pending, Result, Session
from reconciler.packages.functions.function import InterruptedFunctionError
from reconciler.process_protection import forbid_memory_access
from reconciler.snapshot.files import FileTree
from reconciler.snapshot.objects import TreeId

# starting a worker and having it read the config costs about as much as so many renders
_WORTH_STARTING = 400
# what a worker keeps of contents before it is told to forget them
_MOST_BYTES = 64 << 20


class Processes:
    """Renders in `workers` processes, which are started for a pass that has enough to do, and end with it.

    They come from a fork server: this process has threads, and would be forked in the middle of what they do.
    """

    def __init__(
        self,
        workers: int,
        renderer_factory: Kitchen,
        worth_starting: int = _WORTH_STARTING,
        timeout_seconds: float = TIMEOUT_SECONDS,
    ) -> None:
        """Use `workers` processes; a batch that takes longer than `timeout_seconds` is not waited for."""
        self._timeout_seconds = timeout_seconds
        self._workers = workers
        self._kitchen = renderer_factory
        self._worth_starting = worth_starting

    def worth(self, jobs: int) -> bool:
        """Return whether so many renders are worth starting processes."""
        return self._workers > 1 and jobs >= self._worth_starting

    @contextmanager
    def session(self, orders: Orders) -> Iterator[Session]:
        """Start the workers, and end them."""
        limit = WaitLimit(self._timeout_seconds)
        workers = [_Worker(self._kitchen, limit) for _ in range(self._workers)]
        try:
            yield _Session(workers, pack_orders(orders))
        finally:
            for worker in workers:
                worker.end()


class _Session:
    def __init__(self, workers: Sequence[_Worker], orders: PackedOrders) -> None:
        self._workers = workers
        self._orders = orders

    def start(self, jobs: Sequence[Job]) -> Pending:
        return _Pending(self._workers, self._orders, jobs)


class _Pending:
    def __init__(self, workers: Sequence[_Worker], orders: PackedOrders, jobs: Sequence[Job]) -> None:
        self._orders = orders
        self._jobs = jobs
        self._under_way = [self._sent(workers, packed) for packed in pack_jobs(orders, jobs)]

    def _sent(self, workers: Sequence[_Worker], packed: PackedJobs) -> tuple[_Worker, PackedJobs, _Sent]:
        worker = min(workers, key=lambda one: one.waiting)
        return worker, packed, worker.send(packed, self._orders)

    def results(self) -> Sequence[Result]:
        return in_order((packed, self._taken(worker, packed, sent)) for worker, packed, sent in self._under_way)

    def _taken(self, worker: _Worker, packed: PackedJobs, sent: _Sent) -> Sequence[Result]:
        try:
            return worker.take(packed, sent)
        except BrokenProcessPool:
            # whatever ended it, the others go on; nothing of the batch is lost but time
            return [self._alone(worker, number) for number in packed.numbers]

    def _alone(self, worker: _Worker, number: int) -> Result:
        """Render one job of a batch for itself: what ends a worker again is told apart by that."""
        packed = pack(self._orders, [self._jobs[number]], (number,))
        try:
            (result,) = worker.take(packed, worker.send(packed, self._orders))
        except BrokenProcessPool:
            return InterruptedFunctionError("the process that rendered it ended")
        return result


@dataclass(frozen=True)
class _Sent:
    """A batch under way, and the process that has it."""

    future: Future[bytes]
    pool: ProcessPoolExecutor


class _Worker:
    """One process, and what it has been told."""

    def __init__(self, renderer_factory: Kitchen, limit: WaitLimit) -> None:
        self._kitchen = renderer_factory
        self._limit = limit
        self._told: set[str] = set()
        self._bytes = 0
        self._pool = self._started()
        self.waiting = 0

    def _started(self) -> ProcessPoolExecutor:
        pool = ProcessPoolExecutor(1, _fork_server(self._kitchen), _begin, (self._kitchen,))
        self._greeting = pool.submit(_greet)
        return pool

    def _check_start(self) -> None:
        """Raise ExecutorUnusableError when the process did not even begin: the next one would not, either."""
        try:
            self._greeting.result(self._limit.seconds())
        except TimeoutError as error:
            raise self._limit.reached() from error
        except BrokenProcessPool as error:
            raise ExecutorUnusableError("processes to render in do not start") from error

    def send(self, packed: PackedJobs, orders: PackedOrders) -> _Sent:
        """Begin with a batch."""
        self.waiting += 1
        try:
            return self._submitted(packed, orders)
        except BrokenProcessPool:
            self._start_anew(self._pool)
            return self._submitted(packed, orders)

    def _submitted(self, packed: PackedJobs, orders: PackedOrders) -> _Sent:
        if forget := self._bytes > _MOST_BYTES:
            self._forget()
        contents = pack_trees({one: tree for one, tree in packed.trees.items() if one not in self._told})
        news = b"" if orders.digest in self._told else orders.data
        self._told |= packed.trees.keys() | {orders.digest}
        self._bytes += len(contents)
        return _Sent(self._pool.submit(_work, packed.batch, news, contents, forget), self._pool)

    def _forget(self) -> None:
        self._told.clear()
        self._bytes = 0

    def take(self, packed: PackedJobs, sent: _Sent) -> Sequence[Result]:
        """Wait for a batch; raises BrokenProcessPool when its process ended, and has another one ready.

        Raises ExecutorUnusableError when processes do not start.
        """
        self.waiting -= 1
        seconds = self._limit.seconds()
        try:
            data = sent.future.result(seconds)
        except TimeoutError as error:
            raise self._limit.reached() from error
        except BrokenProcessPool:
            self._start_anew(sent.pool)
            raise
        return packed.opened(data)

    def _start_anew(self, broken: ProcessPoolExecutor) -> None:
        if broken is self._pool:
            self._check_start()
            self.end()
            self._forget()
            self._pool = self._started()

    def end(self) -> None:
        """Kill the process: a render that does not return must not keep this process from ending."""
        # the pool offers no other way before Python 3.14, and forgets its processes with the shutdown
        processes = list((self._pool._processes or {}).values())
        self._pool.shutdown(wait=False, cancel_futures=True)
        for process in processes:
            process.kill()


def _fork_server(kitchen: Kitchen) -> BaseContext:
    """Return what starts workers; it stays, and has loaded once what each of them needs."""
    context = get_context("forkserver")
    context.set_forkserver_preload([__name__, type(kitchen).__module__])
    return context


# what follows runs in a worker

_bench: Bench
_trees: dict[TreeId, FileTree] = {}
_orders: dict[str, bytes] = {}


def _begin(kitchen: Kitchen) -> None:
    # the fork server executes a program, and the kernel makes a process dumpable again for that
    forbid_memory_access()
    # who interrupts the service at a terminal means the service, which ends its push first, and then us
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_end_with_the_service, daemon=True).start()
    global _bench  # noqa: PLW0603 - the one value of a process that does nothing else
    _bench = Bench(kitchen)


def _end_with_the_service() -> None:
    """End this process when the service is gone, however it went: nobody else would end it."""
    service = parent_process()
    assert service, "a worker was started by somebody"
    service.join()
    os._exit(1)


def _greet() -> None:
    """Come to pass when the process stands."""


def _work(batch: Batch, orders: bytes, contents: bytes, forget: bool) -> bytes:
    if forget:
        _trees.clear()
    _trees.update(unpack_trees(contents))
    if orders:
        _orders[batch.orders] = orders
    return _bench.work(batch, _orders[batch.orders], _trees)
