"""Which rules of a policy are in force for a package: today's, or what a closed wave has kept (design 10.23)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from reconciler.rules.clusters.model import Cluster
from reconciler.rules.notes import Note
from reconciler.rules.overrides.codes import RULE_TEXT_UNREADABLE
from reconciler.rules.overrides.model import Policy, Rule
from reconciler.rules.overrides.reach import is_felt
from reconciler.rules.overrides.read_rules import read_rule_text
from reconciler.rules.overrides.rollout import RuleId, rule_ids

Texts = Mapping[RuleId, str | None]
"""The texts by which rules with a rollout are applied instead of today's; None: the rule is not there yet."""


@dataclass(frozen=True)
class InForce:
    """A rule in force, by its number in today's policy; an earlier text of it may say something else than that."""

    number: int
    rule: Rule
    is_earlier: bool = False


def rules_in_force(policy: Policy, texts: Texts) -> tuple[tuple[InForce, ...], tuple[Note, ...]]:
    """Return the rules of a policy in their order, and a warning for every text that cannot be read any more."""
    found: list[InForce] = []
    notes: list[Note] = []
    for number, (name, today) in enumerate(rule_ids(policy)):
        text = _text(name, today, texts)
        if text == today.text:
            found.append(InForce(number, today))
        elif text is not None and (earlier := read_rule_text(text)):
            found.append(InForce(number, earlier, is_earlier=True))
        elif text is not None:
            notes.append(Note(RULE_TEXT_UNREADABLE, f"{policy.label}: {_unreadable(number)}"))
    return tuple(found), tuple(notes)


def texts_in_force(policy: Policy, cluster: Cluster, texts: Texts) -> Texts:
    """Return the text by which each rule of a policy is applied that a cluster can feel; None: it is not there yet."""
    return {name: _text(name, rule, texts) for name, rule in rule_ids(policy) if is_felt(rule, cluster)}


def kept_text(policy: Policy, name: RuleId, had: Texts) -> str | None:
    """Return the text that a rule keeps for a package where its wave is closed, by what the package `had` in force.

    That is the text under its name. Without one there it is today's, if the package had that from a rule of the policy
    that was called otherwise, or what the rule of its number had: it went by that before it got its name.
    """
    if name in had:
        return had[name]
    number, rule = next((str(at), rule) for at, (one, rule) in enumerate(rule_ids(policy)) if one == name)
    if any(one.policy == policy.key and text == rule.text for one, text in had.items()):
        return rule.text
    return had.get(RuleId(policy.key, number))


def _text(name: RuleId, rule: Rule, texts: Texts) -> str | None:
    return texts.get(name, rule.text) if rule.rollout else rule.text


def _unreadable(number: int) -> str:
    return f"spec.overrideRules[{number}] keeps an earlier text here that cannot be read any more, and does nothing"
