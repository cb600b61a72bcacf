"""Plans that the service caches in memory between passes. Without these plans, a pass plans all targets again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from reconciler.catalog.files import CommitId
from reconciler.catalog.trace import DependencyReader, Trace
from reconciler.controllers.results import ControllerResult
from reconciler.krm.objects import ObjectKey
from reconciler.lazy_dataclasses import dataclass, replace
from reconciler.packages.functions.registry import is_function_trace_key
from reconciler.planning.carry_over.checkpoint import TargetCheckpoint
from reconciler.planning.decide.fleet_plan import FleetPlan, TargetPlan
from reconciler.planning.decide.target_inputs import DesiredPackages, TargetClaims
from reconciler.planning.model.outcomes import PackageOutcome
from reconciler.planning.model.state import TargetState
from reconciler.planning.model.targets import Target
from reconciler.reconcile.pull_requests.open_requests import TargetRequests

PlanRefs = Mapping[str, CommitId | None]
"""The commits of the refs that a plan depends on, by ref name. The commit is None if the ref does not exist."""


@dataclass(frozen=True)
class CachedTarget:
    """The checkpoint of a target after a pass, and the refs and pull requests that its plan depends on."""

    target: Target
    checkpoint: TargetCheckpoint
    refs: PlanRefs
    pull_requests: TargetRequests
    state_commit: CommitId | None


class PassCache:
    """Caches plans between the passes of a service: the plans of targets that have no remaining work.

    A pass reuses the plan of a target if these inputs are unchanged: its refs, its pull requests, its requested
    packages, and the fingerprints of all its dependencies. A pass without this cache has the same result.
    """

    def __init__(self) -> None:
        self._targets: dict[ObjectKey, CachedTarget] = {}
        self._fingerprints: dict[str, str] = {}
        self._traces: dict[frozenset[tuple[str, str]], Trace] = {}
        self._changed: frozenset[str] = frozenset()
        self._desired: DesiredPackages | None = None

    def __len__(self) -> int:
        return len(self._targets)

    def find_desired_state(self, result: ControllerResult) -> DesiredPackages:
        """Return the desired packages of a controller result. The result of the last call is cached."""
        if self._desired is None or not self._desired.is_same_result(result):
            self._desired = DesiredPackages(result)
        return self._desired

    def find_state(self, target: Target, commit: CommitId) -> TargetState | None:
        """Return the cached state of a target. Return None if the cached state does not come from `commit`."""
        cached = self._targets.get(target.key)
        return cached.checkpoint.plan.next_state if cached and cached.state_commit == commit else None

    def refresh_dependencies(self, reader: DependencyReader, identify_function: Callable[[str], str]) -> None:
        """Read the current fingerprint of each cached dependency once, and store which fingerprints have changed.

        `identify_function` returns the current identity of a function. It returns "" if the identity is unknown.
        """
        self._changed = frozenset(
            name
            for name, previous in self._fingerprints.items()
            if ((identify_function(name) or previous) if is_function_trace_key(name) else reader.read_fingerprint(name))
            != previous
        )

    def find_plan(
        self,
        target: Target,
        refs: Mapping[str, CommitId],
        claims: TargetClaims,
        read_requests: Callable[[CachedTarget], TargetRequests],
    ) -> TargetPlan | None:
        """Return the cached plan of a target. Return None if no plan is cached, or if an input has changed."""
        cached = self._targets.get(target.key)
        if cached is None or not _has_same_refs(cached, target, refs):
            return None
        is_valid = (
            cached.checkpoint.has_same_claims(claims)
            and cached.checkpoint.dependencies.keys().isdisjoint(self._changed)
            and read_requests(cached) == cached.pull_requests
        )
        return cached.checkpoint.plan if is_valid else None

    def find_known_outcomes(
        self,
        target: Target,
        refs: Mapping[str, CommitId],
        claims: TargetClaims,
        read_requests: Callable[[CachedTarget], TargetRequests],
    ) -> Mapping[str, PackageOutcome]:
        """Return the cached outcomes that are still valid, by package. Use this method if the target must be planned
        again.
        """
        cached = self._targets.get(target.key)
        if cached is None or not _has_same_refs(cached, target, refs) or read_requests(cached) != cached.pull_requests:
            return {}
        return cached.checkpoint.find_known_outcomes(claims, self._changed)

    def find_fleet_plan(self, plan: FleetPlan) -> FleetPlan | None:
        """Return `plan` with the cached plans of all its targets, as the next pass would return it.

        Return None if the next pass must plan a target again.
        """
        cached = [self._targets.get(target_plan.target.key) for target_plan in plan.targets]
        plans = tuple(target.checkpoint.plan for target in cached if target)
        return replace(plan, targets=plans) if len(plans) == len(cached) else None

    def record(self, target: Target, cached: CachedTarget | None) -> None:
        """Store a target after a pass. If `cached` is None, delete the target, so that the next pass plans it again."""
        if cached is None:
            self._targets.pop(target.key, None)
            return
        # Share one trace (the fingerprints of the dependencies) between targets with equal packages, to save memory.
        trace = self._traces.setdefault(
            frozenset(cached.checkpoint.dependencies.items()), cached.checkpoint.dependencies
        )
        self._targets[target.key] = replace(cached, checkpoint=replace(cached.checkpoint, dependencies=trace))
        self._fingerprints |= trace

    def finish_pass(self, targets: Iterable[ObjectKey]) -> None:
        """Remove cached targets that are not in `targets`. If many traces are unused, remove these traces too."""
        for removed in self._targets.keys() - set(targets):
            del self._targets[removed]
        if len(self._traces) > 2 * len(self._targets) + 1:
            traces = (cached.checkpoint.dependencies for cached in self._targets.values())
            self._traces = {frozenset(trace.items()): trace for trace in traces}
            self._fingerprints = {
                name: fingerprint for trace in self._traces.values() for name, fingerprint in trace.items()
            }


def _has_same_refs(cached: CachedTarget, target: Target, refs: Mapping[str, CommitId]) -> bool:
    """Return whether the definition and all refs of a target are equal to the cached definition and refs."""
    is_same = cached.target is target or cached.target == target
    return is_same and all(refs.get(name) == commit for name, commit in cached.refs.items())
