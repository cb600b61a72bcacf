"""What the status branch says of override policies: who uses them, and how far rollouts are (kubeadmiral 10.4)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from reconciler.krm.conditions import Condition
from reconciler.planning.fleet import FleetPlan
from reconciler.reporting.status_file import told
from reconciler.rules.overrides.model import API_VERSION, Policy
from reconciler.rules.overrides.rollout import rule_ids
from reconciler.rules.overrides.usage import Usage
from reconciler.rules.variant import ConfigStatus

_LISTED = 20
_IN_USE = Condition("Ready", "True", "InUse", "resources on their way to clusters have this policy")
_UNUSED = Condition("Ready", "True", "PolicyUnused", "no resource on its way to a cluster has this policy")


def policy_statuses(plan: FleetPlan) -> Iterator[ConfigStatus]:
    """Yield the status of every override policy, sound or not."""
    for usage in plan.usages:
        policy = plan.policies.sound[usage.policy]
        yield ConfigStatus(usage.policy, API_VERSION, (_condition(usage),), told(_fields(policy, usage, plan)))
    faults: dict[str, list[str]] = {}
    for finding in plan.policies.findings:
        faults.setdefault(finding.where.object, []).append(finding.message)
    for key in sorted(plan.policies.invalid):
        message = "; ".join(faults.get(str(key), ()))
        yield ConfigStatus(key, API_VERSION, (Condition("Ready", "False", "PolicyInvalid", message),))


def _condition(usage: Usage) -> Condition:
    if usage.failed:
        message = f"{len(usage.failed)} resources could not be made with it"
        return Condition("Ready", "False", "ApplyOverridesFailed", message)
    return _IN_USE if usage.kinds else _UNUSED


def _fields(policy: Policy, usage: Usage, plan: FleetPlan) -> dict[str, Any]:
    return {
        "refCount": sum(count for _, _, count in usage.kinds),
        "typedRefCount": [told({"group": group, "kind": kind, "count": count}) for group, kind, count in usage.kinds],
        "rules": [dict(one) for one in _rules(policy, usage, plan)],
        **_some("failed", usage.failed),
    }


def _rules(policy: Policy, usage: Usage, plan: FleetPlan) -> Iterator[Mapping[str, Any]]:
    for (name, _), clusters in zip(rule_ids(policy), usage.clusters, strict=True):
        gate = plan.rollouts.get(name)
        waits = [{"wave": wave, "why": why} for wave, why in gate.waits.items()] if gate else []
        yield {"rule": name.rule, **_some("clusters", clusters), **({"waits": waits} if waits else {})}


def _some(name: str, listed: Sequence[str]) -> dict[str, Any]:
    """Return a list, or its first entries and how many there are; nothing of an empty one but its length."""
    more = {f"{name}Count": len(listed)} if len(listed) > _LISTED or name == "clusters" else {}
    return {**({name: list(listed[:_LISTED])} if listed else {}), **more}
