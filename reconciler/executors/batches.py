"""Batches of jobs: the main process packs jobs into batches, and workers render the batches.

A batch contains the digests of its render context and of its file trees instead of their contents. The main process
sends these contents to each worker only once.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
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
from reconciler.krm.internal_errors import ScopeFailedError, isolation_boundary
from reconciler.lazy_dataclasses import dataclass
from reconciler.output.changes.package_changes import compare_packages
from reconciler.packages.functions.function import InterruptedFunctionError
from reconciler.planning.model.sources import RenderInputs
from reconciler.planning.render.renderer import PackageRenderer
from reconciler.telemetry.render_metrics import RenderTiming, collect_function_calls


class VersionMismatchError(Exception):
    """The worker and the sender of a batch run different versions, so that their output could differ."""


@dataclass(frozen=True)
class Batch:
    """Serialized jobs for one worker.

    Attributes:
        context_digest: The digest of the render context of the jobs.
        trees: The IDs of the file trees that the jobs contain.
        version: The program version of the sender.
    """

    context_digest: str
    jobs: bytes
    trees: tuple[TreeId, ...]
    version: str = __version__


class RenderWorker:
    """Renders batches in a worker process. The renderer of the last render context is cached."""

    def __init__(self, create_renderer: RendererFactory) -> None:
        self._create_renderer = create_renderer
        self._context_digest = ""
        self._renderer: PackageRenderer | None = None
        # Render one batch at a time, because Python threads do not run in parallel and would not be faster.
        self._lock = Lock()

    def render_batch(self, batch: Batch, context: bytes, trees: Trees) -> bytes:
        """Render a batch and return the serialized results.

        The results contain only new and changed files. The sender has all other files, because they are in the file
        trees of the batch.

        Raises:
            VersionMismatchError: The sender has a different program version.
        """
        if batch.version != __version__:
            raise VersionMismatchError(
                f"the worker has version {__version__}, but the daemon has version {batch.version}; install the same"
                " version on both"
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
        with isolation_boundary(f"package {job.variant.target}"), collect_function_calls() as calls:
            start_time, started_at = time.time(), time.perf_counter()
            rendered = renderer(job.variant, job.inputs)
            timing = RenderTiming(start_time, time.perf_counter() - started_at, tuple(calls))
            # Compare the new and the previous package here, because only the worker has both contents in memory.
            previous = _get_previous_files(job.inputs)
            changes = compare_packages(previous, rendered.files)
            return RenderedPackage(rendered, previous.id, changes, timing)
    except (InterruptedFunctionError, ScopeFailedError) as error:
        return error


def _get_previous_files(inputs: RenderInputs) -> FileTree:
    """Return the files that the render replaces: the draft if there is one, or else the published package."""
    side = inputs.drafted or inputs.published
    return side.files if side else FileTree()


# The number of jobs in a batch. A worker renders 40 packages in about a third of a second.
JOBS_PER_BATCH = 40


@dataclass(frozen=True)
class PackedContext:
    """A serialized render context, the file trees that it refers to, and the digest of the serialized bytes."""

    data: bytes
    trees: Trees
    digest: str


@dataclass(frozen=True)
class PackedJobs:
    """One batch, the file trees that it refers to, and the index of each job in the caller's list of jobs."""

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
    """Return the results of all batches in the original order of the jobs."""
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
    """Yield the jobs in batches of at most `max_jobs` jobs.

    Jobs with equal source files are next to each other, so that a batch refers to few file trees.
    """
    numbers = sorted(range(len(jobs)), key=lambda number: jobs[number].inputs.source_files.id)
    for start in range(0, len(numbers), max_jobs):
        job_numbers = tuple(numbers[start : start + max_jobs])
        yield pack_batch(context, [jobs[number] for number in job_numbers], job_numbers)


def pack_batch(context: PackedContext, jobs: Sequence[Job], job_numbers: tuple[int, ...]) -> PackedJobs:
    """Serialize `jobs` as one batch. `job_numbers` contains the index of each job in the caller's list of jobs."""
    data, job_trees = pack_without_trees(jobs)
    batch = Batch(context.digest, data, tuple(sorted(job_trees)))
    trees: dict[TreeId, FileTree] = {**context.trees, **job_trees}
    return PackedJobs(batch, trees, job_numbers)
