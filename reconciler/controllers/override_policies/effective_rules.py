"""The rules of a policy that apply to a package, and a digest of the part of a policy that can affect a cluster.

A rule with a rollout applies with its current text, or with an earlier text while the wave of the cluster is closed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from reconciler.controllers.clusters.selection import Cluster, is_cluster_selected
from reconciler.controllers.override_policies.codes import RULE_TEXT_UNREADABLE
from reconciler.controllers.override_policies.model import OverridePolicy, OverrideRule
from reconciler.controllers.override_policies.read_policies import OverridePolicies
from reconciler.controllers.override_policies.read_rules import read_rule_text
from reconciler.controllers.override_policies.rollout import RuleId, list_rule_ids
from reconciler.controllers.resource_findings import ResourceIssue
from reconciler.krm.json_text import compute_digest
from reconciler.krm.objects import ObjectKey
from reconciler.memory import cached

INVALID_POLICY, DUPLICATE_POLICY = "invalid", "twice"
# Most clusters have the same digests, and every pass computes them for each cluster.
_MAX_CACHED_DIGESTS = 4096
RuleTexts = Mapping[RuleId, str | None]
"""The texts that rules with a rollout use instead of their current text; None: the rule does not apply yet."""


def digest_policy_for_cluster(policies: OverridePolicies, key: ObjectKey, cluster: Cluster) -> str:
    """Return a digest of the policy's effect on a cluster, or the reason why it has none; "" if it does not exist.

    Equal digests have the same effect on any resource of the cluster if rules with a rollout have the same effective
    text.
    """
    if key in policies.valid:
        return _digest_policy(policies.valid[key], cluster)
    if key in policies.duplicates:
        return DUPLICATE_POLICY
    return INVALID_POLICY if key in policies.invalid else ""


def can_affect(rule: OverrideRule, cluster: Cluster) -> bool:
    """Return whether a rule can have an effect on a cluster.

    A rule with a rollout can always have one, because an earlier text that a closed wave keeps may select the cluster.
    """
    return rule.rollout is not None or is_cluster_selected(rule.targets, cluster)


def _digest_policy(policy: OverridePolicy, cluster: Cluster) -> str:
    affecting = (
        (number, name, rule) for number, (name, rule) in enumerate(list_rule_ids(policy)) if can_affect(rule, cluster)
    )
    # The waves are not included: the progress of a rollout is a separate dependency.
    return _digest_rules(
        tuple((number, name.rule, rule.text, rule.rollout is not None) for number, name, rule in affecting)
    )


@cached(_MAX_CACHED_DIGESTS)
def _digest_rules(affecting: tuple[tuple[int, str, str, bool], ...]) -> str:
    return compute_digest(affecting)


@dataclass(frozen=True)
class EffectiveRule:
    """A rule with its number in the current policy; an earlier text may differ from the current rule."""

    number: int
    rule: OverrideRule
    is_earlier: bool = False


def find_effective_rules(
    policy: OverridePolicy, texts: RuleTexts
) -> tuple[tuple[EffectiveRule, ...], tuple[ResourceIssue, ...]]:
    """Return the effective rules of a policy in order, and a warning for every earlier text that cannot be read."""
    rules: list[EffectiveRule] = []
    issues: list[ResourceIssue] = []
    for number, (name, current) in enumerate(list_rule_ids(policy)):
        text = _get_effective_text(name, current, texts)
        if text == current.text:
            rules.append(EffectiveRule(number, current))
        elif text is not None and (earlier := read_rule_text(text)):
            rules.append(EffectiveRule(number, earlier, is_earlier=True))
        elif text is not None:
            issues.append(ResourceIssue(RULE_TEXT_UNREADABLE, f"{policy.label}: {_format_unreadable_text(number)}"))
    return tuple(rules), tuple(issues)


def find_effective_texts(policy: OverridePolicy, cluster: Cluster, texts: RuleTexts) -> RuleTexts:
    """Return the effective text of each rule that can affect a cluster; None: the rule does not apply yet."""
    return {
        name: _get_effective_text(name, rule, texts)
        for name, rule in list_rule_ids(policy)
        if can_affect(rule, cluster)
    }


def find_retained_text(policy: OverridePolicy, name: RuleId, previous_texts: RuleTexts) -> str | None:
    """Return the text that a rule keeps for a package while its wave is closed, given the package's `previous_texts`.

    This is the previous text of the rule's id. If there is none, it is the current text if the package had this text
    from another rule of the policy (the rule was renamed). Otherwise it is the previous text of the rule's number,
    because the rule had no name then.
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


def _format_unreadable_text(number: int) -> str:
    return f"spec.overrideRules[{number}] has no effect here, because its earlier text can no longer be read"
