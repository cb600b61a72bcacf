"""The numbers of one pass for the log and for metrics: targets, packages, changed drafts and conflicts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from reconciler.krm.findings import select_errors
from reconciler.lazy_dataclasses import dataclass, field
from reconciler.planning.decide.fleet_plan import PACKAGE_STATES, TargetPlan
from reconciler.planning.model.outcomes import Draft, Unchanged
from reconciler.reconcile.cache_files import FirstSeenTimes
from reconciler.reconcile.codes import PassCodes
from reconciler.telemetry.metrics import DRAFT_ACTIONS, DRAFT_STATES, TARGET_STATES
from reconciler.telemetry.target_metrics import TargetNumbers


@dataclass(frozen=True)
class PassNumbers:
    """The numbers of one pass.

    Attributes:
        targets: The number of targets in each state: `ready`, `blocked` and `unreachable`.
        packages: The number of packages in each state, such as `published` or `blocked`.
        drafts: The number of packages for each effect of the pass on their drafts: `created`, `updated`, `withdrawn`
            and `unchanged`.
        conflicts: The number of conflicts between updates and local changes in open drafts.
        oldest_drafts: For the states `draft` and `proposed`: the time at which a pass first found the oldest draft with
            this state, in seconds since 1970. 0 if no draft has this state.
        by_target: The state of each target, and the number of its packages in each state.
    """

    targets: Mapping[str, int] = field(default_factory=dict)
    packages: Mapping[str, int] = field(default_factory=dict)
    drafts: Mapping[str, int] = field(default_factory=dict)
    conflicts: int = 0
    oldest_drafts: Mapping[str, int] = field(default_factory=dict)
    by_target: tuple[TargetNumbers, ...] = ()


def compute_pass_numbers(
    plans: Iterable[TargetPlan], pushed: Iterable[TargetPlan], draft_times: FirstSeenTimes, now: int
) -> PassNumbers:
    """Return the numbers of a pass.

    Args:
        plans: The plans of all targets of this shard.
        pushed: The plans that this pass has pushed.
        draft_times: Stores when a pass first found each draft.
        now: The time of the pass, in seconds since 1970.
    """
    packages: Counter[str] = Counter()
    conflicts = 0
    oldest_drafts: dict[str, int] = {}
    by_target: list[TargetNumbers] = []
    for plan in plans:
        by_target.append(TargetNumbers(plan.target.name, _get_target_state(plan), plan.package_state_counts))
        packages.update(plan.package_state_counts)
        conflicts += plan.conflict_count
        for state, seconds in _find_draft_times(plan, draft_times, now):
            oldest_drafts[state] = min(seconds, oldest_drafts.get(state, seconds))
    draft_times.store()
    targets = Counter(target.state for target in by_target)
    changes = _count_draft_changes(pushed)
    unchanged = packages["draft"] + packages["proposed"] - changes["created"] - changes["updated"]
    return PassNumbers(
        {state: targets[state] for state in TARGET_STATES},
        {state: packages[state] for state in PACKAGE_STATES},
        {**changes, "unchanged": max(unchanged, 0)},
        conflicts,
        {state: oldest_drafts.get(state, 0) for state in DRAFT_STATES},
        tuple(by_target),
    )


def _count_draft_changes(pushed: Iterable[TargetPlan]) -> dict[str, int]:
    """Return the number of packages whose draft a pass created, updated or withdrew."""
    changes = dict.fromkeys(DRAFT_ACTIONS, 0)
    for plan in pushed:
        for outcome in plan.outcomes:
            if isinstance(outcome, Draft):
                changes["updated" if outcome.record.draft_version else "created"] += 1
            elif isinstance(outcome, Unchanged) and outcome.should_withdraw:
                changes["withdrawn"] += 1
        changes["withdrawn"] += sum(removal.kind == "withdrawn" for removal in plan.removals)
    return changes


def _get_target_state(plan: TargetPlan) -> str:
    codes = {finding.code for finding in select_errors(plan.findings)}
    if PassCodes.REPOSITORY_UNREACHABLE.name in codes:
        return "unreachable"
    return "blocked" if codes else "ready"


def _find_draft_times(plan: TargetPlan, draft_times: FirstSeenTimes, now: int) -> Iterator[tuple[str, int]]:
    """For each open draft, yield "proposed" or "draft", and the time at which a pass first found this draft."""
    if plan.findings:
        # Yield nothing, because the drafts of a target that cannot be read are unknown.
        return
    times = draft_times.update(plan.target.key.reference, plan.open_drafts, now)
    for package, seconds in times.items():
        yield "proposed" if plan.is_proposed(plan.next_state.packages[package].draft_branch) else "draft", seconds
