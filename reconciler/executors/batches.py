"""Batches of jobs: how the main process packs them, and how a worker renders them.

A batch names its context and its trees by digest, so that each of them is sent to a worker once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from threading import Lock

from reconciler import __version__
from reconciler.catalog.files import FileTree, TreeId
from reconciler.executors.executor import Job, JobResult, RenderContext, RenderedPackage, RendererFactory
from reconciler.executors.serialization import (
    Trees,
    index_files,
    pack_without_files,
    pack_without_trees,
    unpack_with_files,
    unpack_with_trees,
)
from reconciler.krm.isolation import ScopeFailedError, isolation_boundary
from reconciler.output.changes.package_changes import compare_packages
from reconciler.packages.functions.function import InterruptedFunctionError
from reconciler.planning.model.sources import RenderInputs
from reconciler.planning.render.renderer import PackageRenderer


class VersionMismatchError(Exception):
    """The worker runs another version than the sender, so that its output could differ."""


@dataclass(frozen=True)
class Batch:
    """Serialized jobs with the ids of their trees, the digest of their render context, and the sender's version."""

    context_digest: str
    jobs: bytes
    trees: tuple[TreeId, ...]
    version: str = __version__


class RenderWorker:
    """Renders batches in one worker process. It keeps the renderer of the latest render context."""

    def __init__(self, create_renderer: RendererFactory) -> None:
        self._create_renderer = create_renderer
        self._context_digest = ""
        self._renderer: PackageRenderer | None = None
        # Python runs one thread of a process at a time, so parallel renders in one process would not be faster.
        self._lock = Lock()

    def render_batch(self, batch: Batch, context: bytes, trees: Trees) -> bytes:
        """Return the serialized results of a batch, without the files of its trees. Raises VersionMismatchError."""
        if batch.version != __version__:
            raise VersionMismatchError(
                f"the worker has version {__version__}, but the sender has version {batch.version}"
            )
        with self._lock:
            renderer = self._get_renderer(batch, context, trees)
            jobs: Sequence[Job] = unpack_with_trees(batch.jobs, trees)
            results = [_render_job(job, renderer) for job in jobs]
            return pack_without_files(results, index_files([trees[tree_id] for tree_id in batch.trees]))

    def _get_renderer(self, batch: Batch, data: bytes, trees: Trees) -> PackageRenderer:
        if self._renderer is None or batch.context_digest != self._context_digest:
            context: RenderContext = unpack_with_trees(data, trees)
            self._renderer, self._context_digest = self._create_renderer(context), batch.context_digest
        return self._renderer


def _render_job(job: Job, renderer: PackageRenderer) -> JobResult:
    try:
        with isolation_boundary(f"package {job.variant.target}"):
            rendered = renderer(job.variant, job.inputs)
            # The worker compares, because only the worker has the contents of both trees in memory.
            previous = _get_previous_files(job.inputs)
            return RenderedPackage(rendered, previous.id, compare_packages(previous, rendered.files))
    except (InterruptedFunctionError, ScopeFailedError) as error:
        return error


def _get_previous_files(inputs: RenderInputs) -> FileTree:
    """Return the files that the render replaces: the draft if there is one, otherwise the published package."""
    side = inputs.drafted or inputs.published
    return side.files if side else FileTree()


# A worker renders this number of packages in about a third of a second.
JOBS_PER_BATCH = 40


@dataclass(frozen=True)
class PackedContext:
    """A serialized render context, its trees, and the digest of the bytes."""

    data: bytes
    trees: Trees
    digest: str


@dataclass(frozen=True)
class PackedJobs:
    """One batch, its trees, and the positions of its jobs in the caller's list."""

    batch: Batch
    trees: Trees
    job_numbers: tuple[int, ...]

    def unpack_results(self, data: bytes) -> Sequence[JobResult]:
        """Deserialize the results that a worker returned for this batch."""
        results: Sequence[JobResult] = unpack_with_files(
            data, index_files([self.trees[tree_id] for tree_id in self.batch.trees])
        )
        return results


def collect_results(batches: Iterable[tuple[PackedJobs, Sequence[JobResult]]]) -> Sequence[JobResult]:
    """Return the results of all batches in the order of the jobs."""
    by_number = {
        number: result
        for packed, results in batches
        for number, result in zip(packed.job_numbers, results, strict=True)
    }
    return [by_number[number] for number in sorted(by_number)]


def pack_context(context: RenderContext) -> PackedContext:
    """Serialize a render context."""
    data, trees = pack_without_trees(context)
    return PackedContext(data, trees, sha256(data).hexdigest())


def pack_jobs(context: PackedContext, jobs: Sequence[Job], max_jobs: int = JOBS_PER_BATCH) -> Iterator[PackedJobs]:
    """Yield the jobs in batches of at most `max_jobs`. Jobs with the same upstream are in neighboring batches."""
    numbers = sorted(range(len(jobs)), key=lambda number: jobs[number].inputs.source_files.id)
    for start in range(0, len(numbers), max_jobs):
        job_numbers = tuple(numbers[start : start + max_jobs])
        yield pack_batch(context, [jobs[number] for number in job_numbers], job_numbers)


def pack_batch(context: PackedContext, jobs: Sequence[Job], job_numbers: tuple[int, ...]) -> PackedJobs:
    """Serialize jobs as one batch. `job_numbers` are their positions in the caller's list."""
    data, job_trees = pack_without_trees(jobs)
    batch = Batch(context.digest, data, tuple(sorted(job_trees)))
    trees: dict[TreeId, FileTree] = {**context.trees, **job_trees}
    return PackedJobs(batch, trees, job_numbers)
