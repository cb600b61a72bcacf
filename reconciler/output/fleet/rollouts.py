"""Rollouts of override rules: the targets whose wave is open, and why the next wave is closed.

A wave is a group of clusters. It opens when the rule is published on the clusters of all earlier waves.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from reconciler.controllers.override_policies.rollout import RolloutGate, RuleId
from reconciler.lazy_dataclasses import dataclass
from reconciler.output.text import to_one_line


@dataclass(frozen=True)
class Rollout:
    """The rollout of one rule of an override policy.

    Attributes:
        policy: The policy as `Kind namespace/name`.
        open_targets: The targets whose wave is open, sorted.
        next_wave: The number of the first closed wave. None if all waves are open.
        opens_at: The time at which this wave opens, in seconds since 1970. None if a person must first publish a
            package, or if the time is unknown.
        reason: The reason why this wave is closed. "" if all waves are open.
        is_stopped: Whether the rollout has stopped, because a package was reverted to a version without the rule.
    """

    policy: str
    rule: str
    open_targets: tuple[str, ...]
    next_wave: int | None = None
    opens_at: int | None = None
    reason: str = ""
    is_stopped: bool = False


def list_rollouts(gates: Mapping[RuleId, RolloutGate]) -> Iterator[Rollout]:
    """Yield the rollouts of all rules, sorted by policy and rule."""
    for rule, gate in sorted(gates.items(), key=lambda item: str(item[0])):
        next_wave = min(gate.wait_reasons, default=None)
        yield Rollout(
            policy=str(rule.policy),
            rule=rule.rule,
            open_targets=tuple(sorted(gate.open_clusters)),
            next_wave=next_wave,
            opens_at=gate.next_opening_seconds,
            reason="" if next_wave is None else to_one_line(gate.wait_reasons[next_wave]),
            is_stopped=next_wave is not None and not gate.undecided_clusters,
        )


def select_rollouts(rollouts: Iterable[Rollout], targets: Iterable[str]) -> Iterator[Rollout]:
    """Yield the rollouts with an open wave on at least one of `targets`. Omit the names of all other targets.

    The field `reason` is always empty, because a reason can contain names of other targets.
    """
    names = set(targets)
    for rollout in rollouts:
        readable = tuple(name for name in rollout.open_targets if name in names)
        if readable:
            yield Rollout(
                rollout.policy, rollout.rule, readable, rollout.next_wave, rollout.opens_at,
                is_stopped=rollout.is_stopped,
            )  # fmt: skip
