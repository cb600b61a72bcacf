"""Selection of the effective version of each override rule, and digests of the rules that can affect a cluster.

A rule with a rollout reaches the clusters in groups, which are called waves. While the wave of a cluster is closed, an
earlier version of the rule is effective on this cluster. In all other cases, the version in the config is effective.
Each version is stored as a JSON text with the clusters and overriders of the rule.
"""

from __future__ import annotations

from collections.abc import Mapping

from reconciler.controllers.clusters.selection import Cluster, is_cluster_selected
from reconciler.controllers.override_policies.codes import PolicyCodes
from reconciler.controllers.override_policies.model import OverridePolicy, OverrideRule
from reconciler.controllers.override_policies.read_policies import OverridePolicies
from reconciler.controllers.override_policies.read_rules import read_rule_text
from reconciler.controllers.override_policies.rollout import RuleId, list_rule_ids
from reconciler.controllers.resource_findings import ResourceIssue
from reconciler.krm.json_text import compute_digest
from reconciler.krm.objects import ObjectKey
from reconciler.lazy_dataclasses import dataclass
from reconciler.memory import cached

INVALID_POLICY, DUPLICATE_POLICY = "invalid", "twice"
# Cache the digests, because most clusters have the same digests, and every pass computes them for each cluster.
_MAX_CACHED_DIGESTS = 4096
RuleTexts = Mapping[RuleId, str | None]
"""Texts of rules with a rollout, by rule id. A text replaces the current text of the rule.

The value is None if no version of the rule applies yet.
"""


def digest_policy_for_cluster(policies: OverridePolicies, key: ObjectKey, cluster: Cluster) -> str:
    """Return a digest of the effect that a policy can have on a cluster.

    Return "invalid" for an invalid policy, "twice" for a policy that is defined twice, and "" for a missing policy.

    The digest does not include the state of rollouts. Therefore, two policies have the same effect on every resource
    if their digests are equal, and if the effective texts of their rules with a rollout are equal.
    """
    if key in policies.valid:
        return _digest_policy(policies.valid[key], cluster)
    if key in policies.duplicates:
        return DUPLICATE_POLICY
    return INVALID_POLICY if key in policies.invalid else ""


def can_affect(rule: OverrideRule, cluster: Cluster) -> bool:
    """Return whether a rule can have an effect on a cluster.

    Return True for every rule with a rollout, because an earlier version of the rule may select the cluster.
    """
    return rule.rollout is not None or is_cluster_selected(rule.targets, cluster)


def _digest_policy(policy: OverridePolicy, cluster: Cluster) -> str:
    affecting = (
        (number, name, rule) for number, (name, rule) in enumerate(list_rule_ids(policy)) if can_affect(rule, cluster)
    )
    # Do not include the waves, because the state of the rollout is a separate dependency of the packages.
    return _digest_rules(
        tuple((number, name.rule, rule.text, rule.rollout is not None) for number, name, rule in affecting)
    )


@cached(_MAX_CACHED_DIGESTS)
def _digest_rules(affecting: tuple[tuple[int, str, str, bool], ...]) -> str:
    return compute_digest(affecting)


@dataclass(frozen=True)
class EffectiveRule:
    """The current or an earlier version of a rule. `number` is the index of the rule in the current policy."""

    number: int
    rule: OverrideRule
    is_earlier: bool = False


def find_effective_rules(
    policy: OverridePolicy, texts: RuleTexts
) -> tuple[tuple[EffectiveRule, ...], tuple[ResourceIssue, ...]]:
    """Return the effective rules of a policy in order, and a warning for every earlier version that cannot be read."""
    rules: list[EffectiveRule] = []
    issues: list[ResourceIssue] = []
    for number, (name, current) in enumerate(list_rule_ids(policy)):
        text = _get_effective_text(name, current, texts)
        if text == current.text:
            rules.append(EffectiveRule(number, current))
        elif text is not None and (earlier := read_rule_text(text)):
            rules.append(EffectiveRule(number, earlier, is_earlier=True))
        elif text is not None:
            issues.append(
                ResourceIssue(PolicyCodes.RULE_TEXT_UNREADABLE, _format_unreadable_text(policy.label, number))
            )
    return tuple(rules), tuple(issues)


def find_effective_texts(policy: OverridePolicy, cluster: Cluster, texts: RuleTexts) -> RuleTexts:
    """Return the effective text of each rule that can affect a cluster.

    The text is None if no version of the rule applies yet.
    """
    return {
        name: _get_effective_text(name, rule, texts)
        for name, rule in list_rule_ids(policy)
        if can_affect(rule, cluster)
    }


def find_retained_text(policy: OverridePolicy, name: RuleId, previous_texts: RuleTexts) -> str | None:
    """Return the rule text that stays effective for a package while the wave of its cluster is closed.

    `previous_texts` contains the rule texts of the previous render of the package, by rule id. Return the first of
    these texts that exists, or None:

    1. The previous text with the id `name`.
    2. The current text, if it existed with a different id, because the rule was renamed.
    3. The previous text whose id is the number of the rule, because the rule had no name.
    """
    if name in previous_texts:
        return previous_texts[name]
    number, rule = next(
        (str(position), rule) for position, (other_id, rule) in enumerate(list_rule_ids(policy)) if other_id == name
    )
    if any(other_id.policy == policy.key and text == rule.text for other_id, text in previous_texts.items()):
        return rule.text
    return previous_texts.get(RuleId(policy.key, number))


def _get_effective_text(name: RuleId, rule: OverrideRule, texts: RuleTexts) -> str | None:
    return texts.get(name, rule.text) if rule.rollout else rule.text


def _format_unreadable_text(policy: str, number: int) -> str:
    return (
        f"{policy} spec.overrideRules[{number}] has no effect on this cluster, because the wave of the cluster is not"
        " open yet and the recorded earlier version of the rule cannot be read"
    )
