"""Renders ahead: what destinations will ask for is rendered elsewhere, many at once, before they are decided on.

Which renders those are is found out by deciding once without any. What needs none is decided by that; of the others
the decision is made again when their renders are there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field

from reconciler.daemon.events import log
from reconciler.daemon.isolation import log_failure
from reconciler.executors.errors import ExecutorUnusableError
from reconciler.executors.port import Executor, Job, Orders, Pending, Result, Session
from reconciler.krm.isolation import ScopeFailedError, boundary
from reconciler.packages.functions.function import InterruptedFunctionError
from reconciler.planning.decide import Render
from reconciler.planning.fleet import DestinationPlan
from reconciler.planning.outcome import Rendered
from reconciler.planning.plan import Decided
from reconciler.planning.source import Ingredients
from reconciler.planning.survey import Surveyed
from reconciler.reporting.changes import remember
from reconciler.rules.variant import Place, Variant

# a group ends with so many renders, or destinations; as many again are under way meanwhile
_JOBS_IN_A_GROUP = 400
_MOST_IN_A_GROUP = 400

Decide = Callable[[Surveyed, Render], "Decided | DestinationPlan"]


@dataclass
class _Group:
    """Destinations with what is decided of them, None where renders are under way."""

    surveyed: list[Surveyed | DestinationPlan] = field(default_factory=list)
    decided: list[Decided | DestinationPlan | None] = field(default_factory=list)
    jobs: list[Job] = field(default_factory=list)
    pending: Pending | None = None


class Ahead:
    """Decides on destinations in their order, with their renders done by an executor where that is worth it."""

    def __init__(
        self,
        executor: Executor | None,
        orders: Callable[[], Orders],
        decide: Decide,
        render: Render,
        take: Callable[[Rendered], Rendered],
    ) -> None:
        """Use it for one pass; `render` does it here, `take` is told of each that was done elsewhere."""
        self._executor = executor
        self._take = take
        self._orders = orders
        self._decide = decide
        self._render = render
        self._session: Session | None = None

    def decided(self, surveyed: Sequence[Surveyed | DestinationPlan]) -> Iterator[Decided | DestinationPlan]:
        """Yield what is decided of each destination."""
        most = sum(len(one.claims.variants) for one in surveyed if isinstance(one, Surveyed))
        if not (self._executor and self._executor.worth(most)):
            yield from (
                one if isinstance(one, DestinationPlan) else self._decide(one, self._render) for one in surveyed
            )
            return
        waiting: list[_Group] = []
        left = iter(surveyed)
        with ExitStack() as stack:
            while (group := self._begun(left, stack)).surveyed:
                waiting.append(group)
                if len(waiting) > 1:
                    yield from self._ended(waiting.pop(0))
            for group in waiting:
                yield from self._ended(group)

    def _begun(self, left: Iterator[Surveyed | DestinationPlan], stack: ExitStack) -> _Group:
        """Return the next destinations, with their renders under way."""
        group = _Group()
        for one in left:
            group.surveyed.append(one)
            group.decided.append(one if isinstance(one, DestinationPlan) else self._at_once(one, group.jobs))
            if self._is_full(group):
                break
        if session := self._session_for(len(group.jobs), stack):
            try:
                group.pending = session.start(group.jobs)
            except ExecutorUnusableError as error:
                self._do_without(error)
        return group

    def _is_full(self, group: _Group) -> bool:
        jobs = len(group.jobs)
        if jobs < _JOBS_IN_A_GROUP and len(group.surveyed) < _MOST_IN_A_GROUP:
            return False
        # who is not at work yet is asked for no fewer than are worth it, and those may be in the next group
        return not jobs or self._session is not None or self._executor is None or self._executor.worth(jobs)

    def _at_once(self, one: Surveyed, jobs: list[Job]) -> Decided | DestinationPlan | None:
        """Return what is decided of a destination, if it takes no render; else those that it takes are jobs."""
        before = len(jobs)

        def note(variant: Variant, made: Ingredients) -> Rendered:
            jobs.append(Job(variant, made))
            raise InterruptedFunctionError("it is rendered elsewhere")

        decided = self._decide(one, note)
        return decided if len(jobs) == before else None

    def _session_for(self, jobs: int, stack: ExitStack) -> Session | None:
        if self._executor is None or not jobs or not (self._session or self._executor.worth(jobs)):
            return None
        try:
            self._session = self._session or stack.enter_context(self._executor.session(self._orders()))
        except ExecutorUnusableError as error:
            self._do_without(error)
        return self._session

    def _do_without(self, error: ExecutorUnusableError) -> None:
        """Go on in this process: where packages are rendered makes no difference to them."""
        if self._executor:
            log.warning("executor_unusable", why=str(error))
        self._executor = self._session = None

    def _ended(self, group: _Group) -> Iterator[Decided | DestinationPlan]:
        ready = self._ready(group)
        for one, decided in zip(group.surveyed, group.decided, strict=True):
            if decided is not None:
                yield decided
            else:
                assert isinstance(one, Surveyed), "what is left alone is decided"
                yield self._decide(one, self._by(ready))

    def _ready(self, group: _Group) -> dict[Place, Result]:
        if group.pending is None:
            return {}
        try:
            with boundary("packages rendered by workers"):
                results = group.pending.results()
        except ExecutorUnusableError as error:
            self._do_without(error)
            return {}
        except ScopeFailedError as error:
            # They are rendered in this process, where each package is a scope of its own.
            log_failure(error.failure)
            return {}
        return {job.variant.place: result for job, result in zip(group.jobs, results, strict=True)}

    def _by(self, ready: dict[Place, Result]) -> Render:
        def render(variant: Variant, made: Ingredients) -> Rendered:
            result = ready.pop(variant.place, None)
            if isinstance(result, InterruptedFunctionError | ScopeFailedError):
                raise result
            # what is asked for only now, as by templates, is done here
            if result is None:
                return self._render(variant, made)
            remember(result.before, result.rendered.files.id, result.changes)
            return self._take(result.rendered)

        return render
