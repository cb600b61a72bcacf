"""Batches: jobs put together so that what they have in common is sent once, and sending costs little."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256

from reconciler.executors.bench import Batch
from reconciler.executors.parcel import Trees, files_of, pack_by_trees, unpack_by_files
from reconciler.executors.port import Job, Orders, Result
from reconciler.snapshot.files import FileTree
from reconciler.snapshot.objects import TreeId

# about a third of a second of work
JOBS_IN_A_BATCH = 40


@dataclass(frozen=True)
class PackedOrders:
    """Orders as bytes, with the trees that they name, and a digest of them."""

    data: bytes
    trees: Trees
    digest: str


@dataclass(frozen=True)
class PackedJobs:
    """A batch, the trees that it names, and which jobs it is of, by their number."""

    batch: Batch
    trees: Trees
    numbers: tuple[int, ...]

    def opened(self, data: bytes) -> Sequence[Result]:
        """Return what the jobs came to, of the bytes that a worker's bench has made of them."""
        results: Sequence[Result] = unpack_by_files(data, files_of([self.trees[one] for one in self.batch.trees]))
        return results


def in_order(parts: Iterable[tuple[PackedJobs, Sequence[Result]]]) -> Sequence[Result]:
    """Return the results of all batches of some jobs, in the order of the jobs."""
    found = {
        number: result for packed, results in parts for number, result in zip(packed.numbers, results, strict=True)
    }
    return [found[number] for number in sorted(found)]


def pack_orders(orders: Orders) -> PackedOrders:
    """Return orders as bytes."""
    data, trees = pack_by_trees(orders)
    return PackedOrders(data, trees, sha256(data).hexdigest())


def pack_jobs(orders: PackedOrders, jobs: Sequence[Job], most: int = JOBS_IN_A_BATCH) -> Iterator[PackedJobs]:
    """Yield jobs in batches, those of one upstream together."""
    numbers = sorted(range(len(jobs)), key=lambda number: jobs[number].made.came.id)
    for start in range(0, len(numbers), most):
        chosen = tuple(numbers[start : start + most])
        yield pack(orders, [jobs[number] for number in chosen], chosen)


def pack(orders: PackedOrders, jobs: Sequence[Job], numbers: tuple[int, ...]) -> PackedJobs:
    """Return one batch of jobs."""
    data, named = pack_by_trees(jobs)
    batch = Batch(orders.digest, data, tuple(sorted(named)))
    trees: dict[TreeId, FileTree] = {**orders.trees, **named}
    return PackedJobs(batch, trees, numbers)
