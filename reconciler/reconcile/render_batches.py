"""Decides about many targets, and sends their renders to an executor in batches.

Each target is first decided without renders, to collect the renders that it needs. If the target needs no render, this
decision is used. If the target needs renders, it is decided again after the executor has returned these renders.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack

from reconciler.catalog.trace import ABSENT_FINGERPRINT
from reconciler.controllers.results import PackageTarget, Variant
from reconciler.executors.executor import (
    Executor,
    ExecutorSession,
    ExecutorUnusableError,
    Job,
    JobResult,
    PendingRenders,
    RenderContext,
    RenderedPackage,
)
from reconciler.krm.internal_errors import ScopeFailedError, isolation_boundary
from reconciler.lazy_dataclasses import dataclass, field
from reconciler.output.changes.package_changes import cache_changes
from reconciler.packages.functions.function import InterruptedFunctionError
from reconciler.packages.functions.registry import is_function_trace_key
from reconciler.planning.decide.fleet_plan import TargetPlan
from reconciler.planning.decide.package_decision import RenderFunction
from reconciler.planning.decide.target_inputs import PreparedTarget
from reconciler.planning.decide.target_plan import DecidedTarget
from reconciler.planning.model.outcomes import PackageRender
from reconciler.planning.model.sources import RenderInputs
from reconciler.reconcile.failures import log_failure
from reconciler.telemetry.event_log import log
from reconciler.telemetry.phases import phase
from reconciler.telemetry.render_metrics import trace_render
from reconciler.telemetry.traces import span

# A batch ends at this number of jobs or targets. While one batch is rendered, the next batch is prepared.
_MAX_JOBS_PER_BATCH = 400
_MAX_TARGETS_PER_BATCH = 400

TargetDecider = Callable[[PreparedTarget, RenderFunction], "DecidedTarget | TargetPlan"]


@dataclass
class _Batch:
    """Targets with their decisions. A decision is None if the executor must render packages of the target first."""

    prepared: list[PreparedTarget | TargetPlan] = field(default_factory=list)
    decided: list[DecidedTarget | TargetPlan | None] = field(default_factory=list)
    jobs: list[Job] = field(default_factory=list)
    pending: PendingRenders | None = None


class RenderBatches:
    """Decides about the targets of one pass, in their order. If there are many renders, an executor does them."""

    def __init__(
        self,
        executor: Executor | None,
        create_context: Callable[[], RenderContext],
        decide: TargetDecider,
        render: RenderFunction,
        record_render: Callable[[Variant, RenderedPackage], PackageRender],
        identify_function: Callable[[str], str],
    ) -> None:
        """Initialize the batches of one pass.

        Args:
            executor: The executor. If None, all packages are rendered in this process.
            create_context: Creates the context that the executor needs. This function is called before the first job.
            record_render: Records a result of the executor when the pass uses this result, and returns the rendered
                package.
            identify_function: Returns the identity of a function or program on this machine, or "" if the identity is
                unknown. The argument is the key of the function in a trace.
        """
        self._executor = executor
        self._identify_function = identify_function
        self._refused_functions: set[str] = set()
        self._record_render = record_render
        self._create_context = create_context
        self._decide = decide
        self._render = render
        self._session: ExecutorSession | None = None

    def decide_targets(self, prepared: Sequence[PreparedTarget | TargetPlan]) -> Iterator[DecidedTarget | TargetPlan]:
        """Yield the decision about each target. If a target already has a plan, yield this plan."""
        max_jobs = sum(len(target.claims.variants) for target in prepared if isinstance(target, PreparedTarget))
        if not (self._executor and self._executor.should_distribute(max_jobs)):
            yield from (
                target if isinstance(target, TargetPlan) else self._decide(target, self._render) for target in prepared
            )
            return
        batches: list[_Batch] = []
        remaining = iter(prepared)
        with ExitStack() as stack:
            while (batch := self._start_batch(remaining, stack)).prepared:
                batches.append(batch)
                if len(batches) > 1:
                    yield from self._finish_batch(batches.pop(0))
            for batch in batches:
                yield from self._finish_batch(batch)

    def _start_batch(self, remaining: Iterator[PreparedTarget | TargetPlan], stack: ExitStack) -> _Batch:
        """Return a batch of the next targets, and start its renders."""
        batch = _Batch()
        for target in remaining:
            batch.prepared.append(target)
            batch.decided.append(
                target if isinstance(target, TargetPlan) else self._decide_without_renders(target, batch.jobs)
            )
            if self._is_full(batch):
                break
        if session := self._open_session(len(batch.jobs), stack):
            try:
                batch.pending = session.start(batch.jobs)
            except ExecutorUnusableError as error:
                self._disable_executor(error)
        return batch

    def _is_full(self, batch: _Batch) -> bool:
        jobs = len(batch.jobs)
        if jobs < _MAX_JOBS_PER_BATCH and len(batch.prepared) < _MAX_TARGETS_PER_BATCH:
            return False
        # Before the executor session is open, the batch is full only if it has enough jobs to open the session.
        return not jobs or self._session is not None or self._executor is None or self._executor.should_distribute(jobs)

    def _decide_without_renders(self, target: PreparedTarget, jobs: list[Job]) -> DecidedTarget | TargetPlan | None:
        """Return the decision about a target. If the target needs renders, add them to `jobs` and return None."""
        before = len(jobs)

        def add_job(variant: Variant, inputs: RenderInputs) -> PackageRender:
            jobs.append(Job(variant, inputs))
            raise InterruptedFunctionError("an executor has not rendered it yet")

        decided = self._decide(target, add_job)
        return decided if len(jobs) == before else None

    def _open_session(self, jobs: int, stack: ExitStack) -> ExecutorSession | None:
        if self._executor is None or not jobs or not (self._session or self._executor.should_distribute(jobs)):
            return None
        try:
            self._session = self._session or stack.enter_context(self._executor.open_session(self._create_context()))
        except ExecutorUnusableError as error:
            self._disable_executor(error)
        return self._session

    def _disable_executor(self, error: ExecutorUnusableError) -> None:
        """Log the error, and render all other packages in this process. The results are the same."""
        if self._executor:
            log.warning("executor_failed", message=str(error))
        self._executor = self._session = None

    def _finish_batch(self, batch: _Batch) -> Iterator[DecidedTarget | TargetPlan]:
        results = self._wait_for_results(batch)
        for target, decided in zip(batch.prepared, batch.decided, strict=True):
            if decided is not None:
                yield decided
            else:
                assert isinstance(target, PreparedTarget), "a target with a plan is already decided"
                yield self._decide(target, self._create_render_function(results))

    def _wait_for_results(self, batch: _Batch) -> dict[PackageTarget, JobResult]:
        if batch.pending is None:
            return {}
        try:
            with (
                phase("render"),
                span("reconciler.render_batch", {"packages": len(batch.jobs)}),
                isolation_boundary("packages rendered by workers"),
            ):
                results = batch.pending.results()
                for job, result in zip(batch.jobs, results, strict=True):
                    if isinstance(result, RenderedPackage):
                        trace_render(str(job.variant.target), result.timing)
        except ExecutorUnusableError as error:
            self._disable_executor(error)
            return {}
        except ScopeFailedError as error:
            # Return no results, so that the packages are rendered in this process, where each package is isolated.
            log_failure(error.failure)
            return {}
        return {job.variant.target: result for job, result in zip(batch.jobs, results, strict=True)}

    def _has_same_functions(self, variant: Variant, rendered: PackageRender) -> bool:
        """Return whether a worker called the functions and programs that this process would call.

        A worker on another host can have a different version of a program, such as helm. The first difference of each
        function is logged. A function that exists only on workers is accepted.
        """
        # Request all identities, so that the pass records each function as an input.
        expected = {name: self._identify_function(name) for name in rendered.trace if is_function_trace_key(name)}
        different = {
            name: identity
            for name, identity in expected.items()
            if identity not in ("", ABSENT_FINGERPRINT, rendered.trace[name])
        }
        for name in different.keys() - self._refused_functions:
            self._refused_functions.add(name)
            log.warning(
                "worker_render_refused",
                package=str(variant.target),
                function=name,
                expected=different[name],
                actual=rendered.trace[name],
            )
        return not different

    def _create_render_function(self, results: dict[PackageTarget, JobResult]) -> RenderFunction:
        def render(variant: Variant, inputs: RenderInputs) -> PackageRender:
            result = results.pop(variant.target, None)
            if isinstance(result, InterruptedFunctionError | ScopeFailedError):
                raise result
            # Render in this process if the executor has no usable result: the first decision may not have requested
            # this render, or the worker used a different version of a program.
            if result is None or not self._has_same_functions(variant, result.rendered):
                return self._render(variant, inputs)
            cache_changes(result.previous_tree, result.rendered.files.id, result.changes)
            return self._record_render(variant, result)

        return render
