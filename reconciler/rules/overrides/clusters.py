"""What is odd about the clusters that rules are for, given all that there are (kubeadmiral 3)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from reconciler.krm.findings import Finding, Where
from reconciler.rules.clusters.model import Cluster, Targets
from reconciler.rules.clusters.none import why_no_cluster
from reconciler.rules.clusters.targets import is_target
from reconciler.rules.codes import UNKNOWN_CLUSTER
from reconciler.rules.overrides.codes import RULE_MATCHES_NO_CLUSTER, WAVE_MATCHES_NO_CLUSTER
from reconciler.rules.overrides.model import Policy, Rollout
from reconciler.rules.overrides.rollout import wave_of


def inventory_findings(
    policies: Iterable[Policy], clusters: Iterable[Cluster], doubtful: Collection[str] = ()
) -> tuple[Finding, ...]:
    """Return a warning for every name that no cluster has, and for rules and waves that are for none of them.

    Of `doubtful` names not all is known: they may be clusters, and what their labels are nobody knows (design 10.5).
    """
    known = {cluster.name: cluster for cluster in clusters}
    found = (finding for policy in policies for finding in _odd(policy, known, doubtful))
    return tuple(one for one in found if not doubtful or one.code == UNKNOWN_CLUSTER.name)


def _odd(policy: Policy, known: Mapping[str, Cluster], doubtful: Collection[str]) -> Iterator[Finding]:
    for number, rule in enumerate(policy.rules):
        field = f"spec.overrideRules[{number}].targetClusters"
        where = Where(policy.file, policy.line, str(policy.key), f"/spec/overrideRules/{number}/targetClusters")
        yield from _unknown_names(rule.targets, {*known, *doubtful}, field, where)
        if not any(is_target(rule.targets, cluster) for cluster in known.values()):
            why = why_no_cluster(rule.targets, known)
            yield RULE_MATCHES_NO_CLUSTER.finding(
                f"{field} must match a cluster for the rule to do anything; {why}", where
            )
        if rule.rollout:
            yield from _odd_waves(policy, number, rule.rollout, known, doubtful)


def _odd_waves(
    policy: Policy, rule: int, rollout: Rollout, known: Mapping[str, Cluster], doubtful: Collection[str]
) -> Iterator[Finding]:
    in_use = {wave_of(rollout, cluster) for cluster in known.values()}
    for number, wave in enumerate(rollout.waves):
        field = f"spec.overrideRules[{rule}].rollout.waves[{number}]"
        pointer = f"/spec/overrideRules/{rule}/rollout/waves/{number}"
        where = Where(policy.file, policy.line, str(policy.key), pointer)
        yield from _unknown_names(wave, {*known, *doubtful}, field, where)
        if number not in in_use:
            message = f"{field} must match a cluster that no earlier wave has, and is passed over"
            yield WAVE_MATCHES_NO_CLUSTER.finding(message, where)


def _unknown_names(targets: Targets, known: Collection[str], field: str, where: Where) -> Iterator[Finding]:
    for name in dict.fromkeys((*targets.clusters, *targets.excluded)):
        if name not in known:
            yield UNKNOWN_CLUSTER.finding(f'{field} names "{name}", and no cluster is called so', where)
