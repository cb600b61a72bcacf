"""The executor of many machines: an existing Dask cluster, whose address is all that it needs to be told.

The contents of packages are given to the cluster once, by their Git ids; workers fetch what their batch names. Work of
a worker that is lost is done by another one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from typing import Any

from reconciler.executors.batches import PackedJobs, PackedOrders, in_order, pack, pack_jobs, pack_orders
from reconciler.executors.bench import Batch, Bench, OtherVersionError
from reconciler.executors.errors import ExecutorUnusableError
from reconciler.executors.limit import TIMEOUT_SECONDS, WaitLimit
from reconciler.executors.parcel import Trees, pack_trees, unpack_trees
from reconciler.executors.port import Job, Kitchen, Orders, Pending, Result, Session
from reconciler.packages.functions.function import InterruptedFunctionError
from reconciler.snapshot.objects import TreeId

# a cluster is there already: what is to be won is only the way to it
_WORTH_SENDING = 80
_CONNECT_SECONDS = 10
_RETRIES = 3
# what a worker remembers of contents that came to it, by the batch
_MOST_TREES = 4_000


class Cluster:
    """Renders on the Dask cluster whose scheduler is at `address`, such as "tcp://scheduler:8786"."""

    def __init__(self, address: str, renderer_factory: Kitchen, timeout_seconds: float = TIMEOUT_SECONDS) -> None:
        """Use the cluster at `address`; a batch that takes longer than `timeout_seconds` is not waited for."""
        self._address = address
        self._kitchen = renderer_factory
        self._timeout_seconds = timeout_seconds

    def worth(self, jobs: int) -> bool:
        """Return whether so many renders are worth the way."""
        return jobs >= _WORTH_SENDING

    @contextmanager
    def session(self, orders: Orders) -> Iterator[Session]:
        """Connect to the scheduler, and go. Raises ExecutorUnusableError."""
        client = self._connected()
        try:
            yield _Session(client, self._kitchen, pack_orders(orders), self._timeout_seconds)
        finally:
            client.close(timeout=_CONNECT_SECONDS)

    def _connected(self) -> Any:
        try:
            from distributed import Client
        except ImportError as error:
            raise ExecutorUnusableError("distributed is not installed; install reconciler[dask]") from error
        try:
            return _client(Client, self._address)
        except (OSError, ValueError, TimeoutError) as error:
            raise ExecutorUnusableError(f"no scheduler answers at {self._address}: {error}") from error


def _client(make: Any, address: str) -> Any:
    return make(address, timeout=_CONNECT_SECONDS, set_as_default=False)


class _Session:
    def __init__(self, client: Any, renderer_factory: Kitchen, orders: PackedOrders, timeout_seconds: float) -> None:
        self.client = client
        self.limit = WaitLimit(timeout_seconds)
        self.orders = orders
        self.given: dict[TreeId, Any] = {}
        self.kitchen = renderer_factory
        self.news = self._put(f"reconciler-orders-{orders.digest}", orders.data)

    def _put(self, name: str, content: bytes) -> Any:
        # not by `scatter`: what that has given to a worker is gone with the worker, and a task is done again. By names
        # of their own, whoever asks for a content twice is given the same
        return self.client.submit(bytes, content, key=name, retries=_RETRIES)

    def start(self, jobs: Sequence[Job]) -> Pending:
        return _Pending(self, jobs)

    def submit(self, packed: PackedJobs) -> Any:
        """Begin with a batch, wherever there is room."""
        for one in packed.trees.keys() - self.given.keys():
            self.given[one] = self._put(f"reconciler-{one}", pack_trees({one: packed.trees[one]}))
        contents_of = [self.given[one] for one in packed.trees]
        return self.client.submit(
            work, self.kitchen, packed.batch, self.news, contents_of, pure=False, retries=_RETRIES
        )


class _Pending:
    def __init__(self, session: _Session, jobs: Sequence[Job]) -> None:
        self._session = session
        self._jobs = jobs
        self._under_way = [(packed, session.submit(packed)) for packed in pack_jobs(session.orders, jobs)]

    def results(self) -> Sequence[Result]:
        return in_order((packed, self._taken(packed, future)) for packed, future in self._under_way)

    def _taken(self, packed: PackedJobs, future: Any) -> Sequence[Result]:
        from distributed import KilledWorker

        try:
            return _opened(packed, future, self._session.limit)
        except KilledWorker:
            # one of them ends every worker that tries it
            return [self._alone(number) for number in packed.numbers]

    def _alone(self, number: int) -> Result:
        from distributed import KilledWorker

        packed = pack(self._session.orders, [self._jobs[number]], (number,))
        try:
            (result,) = _opened(packed, self._session.submit(packed), self._session.limit)
        except KilledWorker:
            return InterruptedFunctionError("the workers that rendered it ended")
        return result


def _opened(packed: PackedJobs, future: Any, limit: WaitLimit) -> Sequence[Result]:
    """Return what a batch came to. Raises KilledWorker, ExecutorUnusableError."""
    seconds = limit.seconds()
    try:
        data = future.result(timeout=seconds)
    except (OtherVersionError, ImportError) as error:
        raise ExecutorUnusableError(f"a worker cannot do what it is asked for: {error}") from error
    except TimeoutError as error:
        raise limit.reached() from error
    except (OSError, CancelledError) as error:
        raise ExecutorUnusableError(f"the cluster was lost: {error}") from error
    return packed.opened(data)


# what follows runs in a worker

_benches: dict[str, Bench] = {}
_known: dict[bytes, Trees] = {}


def work(kitchen: Kitchen, batch: Batch, orders: bytes, contents: Sequence[bytes]) -> bytes:
    """Return the results of a batch as bytes."""
    bench = _benches.setdefault(repr(kitchen), Bench(kitchen))
    trees: dict[TreeId, Any] = {}
    for one in contents:
        trees |= _unpacked(one)
    return bench.work(batch, orders, trees)


def _unpacked(content: bytes) -> Trees:
    if len(_known) > _MOST_TREES:
        _known.clear()
    if content not in _known:
        _known[content] = unpack_trees(content)
    return _known[content]
