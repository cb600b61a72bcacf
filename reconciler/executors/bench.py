"""The bench: what a worker does with a batch, in whatever process it stands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from threading import Lock

from reconciler import __version__
from reconciler.executors.parcel import Trees, files_of, pack_by_files, unpack_by_trees
from reconciler.executors.port import Job, Kitchen, Orders, Result, Served
from reconciler.krm.isolation import ScopeFailedError, boundary
from reconciler.packages.functions.function import InterruptedFunctionError
from reconciler.planning.render import Renderer
from reconciler.planning.source import Ingredients
from reconciler.reporting.changes import compare
from reconciler.snapshot.files import FileTree
from reconciler.snapshot.objects import TreeId


class OtherVersionError(Exception):
    """A worker is of another version than who asks it: what it makes may be something else."""


@dataclass(frozen=True)
class Batch:
    """Jobs as bytes, with the trees that they name, the digest of the orders that they go by, and who asks."""

    orders: str
    jobs: bytes
    trees: tuple[TreeId, ...]
    version: str = __version__


class Bench:
    """One worker's place: a kitchen, and the renderer of the last orders that came."""

    def __init__(self, kitchen: Kitchen) -> None:
        self._kitchen = kitchen
        self._orders = ""
        self._renderer: Renderer | None = None
        # renders are Python's work: two threads in one process would only take turns
        self._lock = Lock()

    def work(self, batch: Batch, orders: bytes, trees: Trees) -> bytes:
        """Return the results of a batch as bytes, without the files that came with it. Raises OtherVersionError."""
        if batch.version != __version__:
            raise OtherVersionError(f"a worker has version {__version__}, and was asked by {batch.version}")
        with self._lock:
            renderer = self._renderer_for(batch, orders, trees)
            jobs: Sequence[Job] = unpack_by_trees(batch.jobs, trees)
            results = [_rendered(job, renderer) for job in jobs]
            return pack_by_files(results, files_of([trees[one] for one in batch.trees]))

    def _renderer_for(self, batch: Batch, data: bytes, trees: Trees) -> Renderer:
        if self._renderer is None or batch.orders != self._orders:
            orders: Orders = unpack_by_trees(data, trees)
            self._renderer, self._orders = self._kitchen(orders), batch.orders
        return self._renderer


def _rendered(job: Job, renderer: Renderer) -> Result:
    try:
        with boundary(f"package {job.variant.place}"):
            rendered = renderer(job.variant, job.made)
            # what has been read for the render is at hand here, and not where the words are made of it
            before = _standing(job.made)
            return Served(rendered, before.id, compare(before, rendered.files))
    except (InterruptedFunctionError, ScopeFailedError) as error:
        return error


def _standing(made: Ingredients) -> FileTree:
    """Return what the package is to replace: what is drafted, else what is published."""
    side = made.put or made.ours
    return side.files if side else FileTree()
