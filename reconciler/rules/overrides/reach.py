"""How far policies reach: what of one a cluster can feel, so that an edit of it moves nobody else (kubeadmiral 3)."""

from __future__ import annotations

from reconciler.caching import cached
from reconciler.krm.digest import digest
from reconciler.krm.identity import ObjectKey
from reconciler.rules.clusters.model import Cluster
from reconciler.rules.clusters.targets import is_target
from reconciler.rules.overrides.model import Policy, Rule
from reconciler.rules.overrides.read_policy import Policies
from reconciler.rules.overrides.rollout import rule_ids

INVALID, TWICE = "invalid", "twice"
# most clusters are told the same, and each is asked after in every pass
_REMEMBERED_DIGESTS = 4096


def reach(policies: Policies, key: ObjectKey, cluster: Cluster) -> str:
    """Return what a policy is to a cluster: a digest of what it says there, or why it says nothing; "" if it is absent.

    Equal ones do the same to any resource of the cluster, where rules with a rollout have the same text in force.
    """
    if key in policies.sound:
        return _digest(policies.sound[key], cluster)
    if key in policies.duplicates:
        return TWICE
    return INVALID if key in policies.invalid else ""


def is_felt(rule: Rule, cluster: Cluster) -> bool:
    """Tell whether a rule can do anything on a cluster.

    One with a rollout can, whatever it is for: an earlier text, which a closed wave keeps, may have been for this one.
    """
    return rule.rollout is not None or is_target(rule.targets, cluster)


def _digest(policy: Policy, cluster: Cluster) -> str:
    felt = ((number, name, rule) for number, (name, rule) in enumerate(rule_ids(policy)) if is_felt(rule, cluster))
    # the waves are no part of it: what they have come to is asked for by itself
    return _digest_of(tuple((number, name.rule, rule.text, rule.rollout is not None) for number, name, rule in felt))


@cached(_REMEMBERED_DIGESTS)
def _digest_of(felt: tuple[tuple[int, str, str, bool], ...]) -> str:
    return digest(felt)
