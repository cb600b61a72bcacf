"""The port of executors: renders go in, what they came to comes out, in their order."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Protocol

from reconciler.krm.findings import Finding
from reconciler.krm.isolation import ScopeFailedError
from reconciler.packages.functions.function import InterruptedFunctionError
from reconciler.planning.last_mile import LastMile
from reconciler.planning.outcome import Rendered
from reconciler.planning.render import Renderer
from reconciler.planning.source import Ingredients
from reconciler.reporting.changes import Changes
from reconciler.rules.templates.model import MergeRule, Options
from reconciler.rules.variant import Variant
from reconciler.snapshot.catalog import Settlement
from reconciler.snapshot.files import FileTree
from reconciler.snapshot.objects import TreeId


@dataclass(frozen=True)
class Job:
    """One render: a variant, and what its package is made from."""

    variant: Variant
    made: Ingredients


@dataclass(frozen=True)
class Served:
    """A package as it was rendered, and what that changes, from the tree that stands there before."""

    rendered: Rendered
    before: TreeId
    changes: Changes


Result = Served | InterruptedFunctionError | ScopeFailedError
"""The result of a render: the package, or an error where it was interrupted or ended with an unexpected exception."""


@dataclass(frozen=True)
class Orders:
    """What all renders of a pass go by, as values that can be sent: the files of the config, and what rules make of it.

    `unreadable` are files of the config that could not be read, with the reason; `rules` and `options` are those of
    templates. `doubts` and `settlement` are those of the catalog.
    """

    files: FileTree
    last_mile: LastMile
    rules: tuple[MergeRule, ...]
    options: Options
    unreadable: Mapping[str, str] = field(default_factory=dict)
    doubts: tuple[Finding, ...] = ()
    settlement: Settlement = field(default_factory=Settlement)


Kitchen = Callable[[Orders], Renderer]
"""Makes a renderer of orders, wherever it runs; what it has read for earlier orders it need not read again."""


class Pending(Protocol):
    """Renders under way."""

    def results(self) -> Sequence[Result]:
        """Wait for them, and return what each came to, in the order of their jobs."""
        ...


class Session(Protocol):
    """The renders of one pass."""

    def start(self, jobs: Sequence[Job]) -> Pending:
        """Begin with jobs, and return at once. Raises ExecutorUnusableError."""
        ...


class Executor(Protocol):
    """Where renders run."""

    def worth(self, jobs: int) -> bool:
        """Return whether so many renders are worth going elsewhere; few are done sooner than sent."""
        ...

    def session(self, orders: Orders) -> AbstractContextManager[Session]:
        """Return the renders of a pass; what it needs beside this process is let go in the end."""
        ...
