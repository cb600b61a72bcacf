"""The interface of executors: protocols, jobs, results, errors and time limits.

The implementations are in the modules `processes` and `dask_cluster`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from reconciler.catalog.catalog import ConflictResolution
from reconciler.catalog.files import FileTree, TreeId
from reconciler.controllers.kafka_templates.model import TemplateMergeRule, TemplateOptions
from reconciler.controllers.results import Variant
from reconciler.krm.findings import Finding
from reconciler.krm.internal_errors import ExpectedError, ScopeFailedError
from reconciler.lazy_dataclasses import dataclass, field
from reconciler.output.changes.package_changes import PackageChanges
from reconciler.packages.functions.function import InterruptedFunctionError
from reconciler.planning.model.cluster_overrides import ClusterOverrides
from reconciler.planning.model.outcomes import PackageRender
from reconciler.planning.model.sources import RenderInputs
from reconciler.planning.render.renderer import PackageRenderer
from reconciler.telemetry.render_metrics import RenderTiming


class ExecutorUnusableError(ExpectedError):
    """The configured executor cannot render packages. The main process renders the packages instead.

    The message contains the reason.
    """


DEFAULT_TIMEOUT_SECONDS = 600.0


class WaitLimit:
    """Time limit for each batch of an executor session. After one timeout, the session does not wait for other batches.

    Therefore, if all workers have stopped, a pass waits only until the first time limit, and not for each batch.
    """

    def __init__(self, timeout_seconds: float) -> None:
        self._timeout_seconds = timeout_seconds
        self._is_reached = False

    def next_timeout_seconds(self) -> float:
        """Return the time limit of the next batch. Raise `ExecutorUnusableError` if an earlier batch took too long."""
        if self._is_reached:
            raise self.record_timeout()
        return self._timeout_seconds

    def record_timeout(self) -> ExecutorUnusableError:
        """Record that a batch took too long, and return the error to raise.

        Later calls of `next_timeout_seconds` fail.
        """
        self._is_reached = True
        return ExecutorUnusableError(
            f"no worker returned a batch of packages within {self._timeout_seconds:g} seconds"
            " (setting `rendering.timeout_seconds`)"
        )


@dataclass(frozen=True)
class Job:
    """One package to render: a package variant and the inputs of its render."""

    variant: Variant
    inputs: RenderInputs


@dataclass(frozen=True)
class RenderedPackage:
    """A rendered package, and its changes since the package version with the tree ID `previous_tree`.

    Attributes:
        timing: The duration of the render and of its function calls.
    """

    rendered: PackageRender
    previous_tree: TreeId
    changes: PackageChanges
    timing: RenderTiming


JobResult = RenderedPackage | InterruptedFunctionError | ScopeFailedError
"""The rendered package, or an error if the render was interrupted or raised an unexpected exception."""


@dataclass(frozen=True)
class RenderContext:
    """Inputs that all renders of a pass share. All values can be serialized.

    Attributes:
        cluster_overrides: The override policies of each cluster.
        template_options: The settings of the Kafka template controller.
        unreadable_files: The config files that cannot be parsed, each with the reason.
        unproven_deletions: Findings about objects that are missing in the config without evidence of their deletion.
        conflict_resolution: The objects that have an effect if several objects define the same identity or target.
    """

    files: FileTree
    cluster_overrides: ClusterOverrides
    merge_rules: tuple[TemplateMergeRule, ...]
    template_options: TemplateOptions
    unreadable_files: Mapping[str, str] = field(default_factory=dict)
    unproven_deletions: tuple[Finding, ...] = ()
    conflict_resolution: ConflictResolution = field(default_factory=ConflictResolution)


RendererFactory = Callable[[RenderContext], PackageRenderer]
"""Function that creates a renderer for a render context. The function can reuse data of an earlier render context."""


class PendingRenders(Protocol):
    """Jobs that an executor has started."""

    def results(self) -> Sequence[JobResult]:
        """Wait for the results of all jobs and return them in the order of the jobs."""
        ...


class ExecutorSession(Protocol):
    """Connection to an executor during one pass."""

    def start(self, jobs: Sequence[Job]) -> PendingRenders:
        """Start the jobs and return at once. Raise `ExecutorUnusableError` if the executor cannot start them."""
        ...


class Executor(Protocol):
    """Protocol of a component that renders packages in other processes or on other hosts."""

    def should_distribute(self, job_count: int) -> bool:
        """Return whether there are enough jobs to justify the cost of sending them to workers."""
        ...

    def open_session(self, context: RenderContext) -> AbstractContextManager[ExecutorSession]:
        """Return a context manager for one pass. Its exit releases all workers and connections."""
        ...
