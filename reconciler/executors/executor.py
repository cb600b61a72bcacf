"""The executor port: the protocols of executors, their jobs and results, and their errors and time limits.

Implementations are in `processes` and `dask_cluster`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Protocol

from reconciler.catalog.catalog import ConflictResolution
from reconciler.catalog.files import FileTree, TreeId
from reconciler.controllers.kafka_templates.model import TemplateMergeRule, TemplateOptions
from reconciler.controllers.results import Variant
from reconciler.krm.findings import Finding
from reconciler.krm.isolation import ExpectedError, ScopeFailedError
from reconciler.output.changes.package_changes import PackageChanges
from reconciler.packages.functions.function import InterruptedFunctionError
from reconciler.planning.model.cluster_overrides import ClusterOverrides
from reconciler.planning.model.outcomes import PackageRender
from reconciler.planning.model.sources import RenderInputs
from reconciler.planning.render.renderer import PackageRenderer


class ExecutorUnusableError(ExpectedError):
    """The configured executor cannot render; the message contains the reason.

    The packages are rendered in this process.
    """


DEFAULT_TIMEOUT_SECONDS = 600.0


class WaitLimit:
    """Time limit of one executor session for each batch. After the first timeout, the session waits for no other batch.

    Without this rule, a cluster that lost all its workers would delay a pass by one timeout per batch.
    """

    def __init__(self, timeout_seconds: float) -> None:
        self._timeout_seconds = timeout_seconds
        self._is_reached = False

    def next_timeout_seconds(self) -> float:
        """Return the seconds to wait for the next batch. Raises ExecutorUnusableError after a timeout."""
        if self._is_reached:
            raise self.record_timeout()
        return self._timeout_seconds

    def record_timeout(self) -> ExecutorUnusableError:
        """Stop all later waits and return the error for the batch that took too long."""
        self._is_reached = True
        return ExecutorUnusableError(
            f"no worker returned a batch of packages within {self._timeout_seconds:g} seconds"
            " (setting rendering.timeout_seconds)"
        )


@dataclass(frozen=True)
class Job:
    """One render: a package variant and the inputs of its package."""

    variant: Variant
    inputs: RenderInputs


@dataclass(frozen=True)
class RenderedPackage:
    """A rendered package and its changes compared with `previous_tree`, the tree that it replaces."""

    rendered: PackageRender
    previous_tree: TreeId
    changes: PackageChanges


JobResult = RenderedPackage | InterruptedFunctionError | ScopeFailedError
"""The result of a render: the package, or an error where it was interrupted or ended with an unexpected exception."""


@dataclass(frozen=True)
class RenderContext:
    """Inputs that all renders of a pass share, as values that can be serialized.

    `files` are the files of the config. `unreadable_files` maps config files that cannot be parsed to the reason.
    `merge_rules` and `template_options` belong to the template controller. `unproven_deletions` and
    `settlement` are those of the catalog.
    """

    files: FileTree
    cluster_overrides: ClusterOverrides
    merge_rules: tuple[TemplateMergeRule, ...]
    template_options: TemplateOptions
    unreadable_files: Mapping[str, str] = field(default_factory=dict)
    unproven_deletions: tuple[Finding, ...] = ()
    settlement: ConflictResolution = field(default_factory=ConflictResolution)


RendererFactory = Callable[[RenderContext], PackageRenderer]
"""Creates a renderer for a context, in any process. It may reuse data that it read for an earlier context."""


class PendingRenders(Protocol):
    """Jobs that an executor has started."""

    def results(self) -> Sequence[JobResult]:
        """Wait for the results and return them in the order of the jobs."""
        ...


class ExecutorSession(Protocol):
    """Access to an executor during one pass."""

    def start(self, jobs: Sequence[Job]) -> PendingRenders:
        """Start the jobs and return at once. Raises ExecutorUnusableError."""
        ...


class Executor(Protocol):
    """A place to run renders outside of this process."""

    def should_distribute(self, job_count: int) -> bool:
        """Return whether this number of jobs justifies the cost of sending them to workers."""
        ...

    def open_session(self, context: RenderContext) -> AbstractContextManager[ExecutorSession]:
        """Return a context manager for the renders of one pass. It releases all workers and connections at its end."""
        ...
