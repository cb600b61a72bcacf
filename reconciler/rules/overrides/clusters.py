"""What is odd about the clusters that rules are for, given all that there are (kubeadmiral 3)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from reconciler.krm.findings import Finding, Where
from reconciler.rules.clusters.model import Cluster
from reconciler.rules.clusters.targets import is_target
from reconciler.rules.codes import UNKNOWN_CLUSTER
from reconciler.rules.overrides.codes import RULE_MATCHES_NO_CLUSTER
from reconciler.rules.overrides.model import Policy


def inventory_findings(policies: Iterable[Policy], clusters: Iterable[Cluster]) -> tuple[Finding, ...]:
    """Return a warning for every name that no cluster has, and for every rule that is for none of them."""
    known = {cluster.name: cluster for cluster in clusters}
    return tuple(finding for policy in policies for finding in _odd(policy, known))


def _odd(policy: Policy, known: Mapping[str, Cluster]) -> Iterator[Finding]:
    for number, rule in enumerate(policy.rules):
        field = f"spec.overrideRules[{number}].targetClusters"
        where = Where(policy.file, policy.line, str(policy.key), f"/spec/overrideRules/{number}/targetClusters")
        for name in dict.fromkeys((*rule.targets.clusters, *rule.targets.excluded)):
            if name not in known:
                yield UNKNOWN_CLUSTER.finding(f'{field} names "{name}", and no cluster is called so', where)
        if not any(is_target(rule.targets, cluster) for cluster in known.values()):
            yield RULE_MATCHES_NO_CLUSTER.finding(f"{field} must match a cluster for the rule to do anything", where)
