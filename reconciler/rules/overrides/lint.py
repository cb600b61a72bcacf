"""Lint: rules of override policies that do nothing, because a later rule sets the same anew (kubeadmiral 3, 4)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from reconciler.krm.findings import Finding, Where
from reconciler.rules.clusters.model import Cluster
from reconciler.rules.clusters.targets import is_target
from reconciler.rules.overrides.codes import RULE_OVERWRITTEN, RULE_UNREACHED
from reconciler.rules.overrides.model import EnvItem, ImageItem, Item, ListItem, MapItem, Policy, Rule
from reconciler.rules.overrides.read_policy import Policies
from reconciler.rules.overrides.usage import Usage

Writes = frozenset[tuple[str, ...]]
"""The places that a rule writes to, each with what it does there, so that equal ones mean that the last wins."""


def lint_policies(policies: Iterable[Policy], clusters: Mapping[str, Cluster]) -> Iterator[Finding]:
    """Yield a warning for each rule that later ones overwrite on all clusters that it is for, whatever it meets there.

    Only what can be told without a resource is: rules that set labels, annotations, variables, arguments and parts of
    images. A rule whose text may differ from cluster to cluster, by a rollout, is not looked at.
    """
    for policy in policies:
        reached = [
            frozenset(name for name, one in clusters.items() if is_target(rule.targets, one)) for rule in policy.rules
        ]
        for number, rule in enumerate(policy.rules):
            later = _overwriting(number, rule, policy.rules, reached)
            if later is not None:
                message = (
                    f"spec.overrideRules[{number}] does nothing: wherever it applies, spec.overrideRules[{later}] is"
                    " applied after it and sets all of the same anew; rules apply in the order of the list"
                )
                yield RULE_OVERWRITTEN.finding(message, _where(policy, number))


def unreached_findings(
    usages: Iterable[Usage], policies: Policies, clusters: Mapping[str, Cluster]
) -> Iterator[Finding]:
    """Yield a warning for each rule that no resource with its policy ever meets, though there are clusters for it."""
    for usage in usages:
        policy = policies.sound[usage.policy]
        for number, (rule, met) in enumerate(zip(policy.rules, usage.clusters, strict=True)):
            wanted = sorted(name for name, one in clusters.items() if is_target(rule.targets, one))
            if usage.kinds and wanted and not met:
                message = (
                    f"spec.overrideRules[{number}] never applies: it is for {_some(wanted)}, and no resource with"
                    f" {policy.label} goes there"
                )
                yield RULE_UNREACHED.finding(message, _where(policy, number))


def _overwriting(number: int, rule: Rule, rules: tuple[Rule, ...], reached: list[frozenset[str]]) -> int | None:
    written = _writes(rule)
    if not written or not reached[number]:
        return None
    for later in range(number + 1, len(rules)):
        anew = _writes(rules[later])
        if anew is None:
            # what this one does may depend on what stands there by then
            return None
        if reached[number] <= reached[later] and written <= anew:
            return later
    return None


def _writes(rule: Rule) -> Writes | None:
    """Return all that a rule writes; None where that cannot be told by its text alone."""
    if rule.template is not None or rule.rollout:
        return None
    found: set[tuple[str, ...]] = set()
    for overrider, items in rule.overriders:
        for item in items:
            places = _places(overrider, item)
            if places is None:
                return None
            found.update(places)
    return frozenset(found)


def _places(overrider: str, item: Item) -> list[tuple[str, ...]] | None:
    """Return what an item writes over; None for what depends on what stands there, such as adding what is absent."""
    match item:
        case MapItem("overwrite" | "set", value):
            return [(overrider, item.operator, key) for key in value]
        case EnvItem(container, "overwrite" | "set", value):
            return [(overrider, item.operator, container, str(one.get("name"))) for one in value]
        case ListItem(container, "overwrite"):
            return [(overrider, container)]
        case ImageItem(names, path, operations) if all(one.operator == "overwrite" for one in operations):
            where = path or ()
            return [(overrider, *where, each, one.component) for one in operations for each in names or ("",)]
        case _:
            return None


def _where(policy: Policy, number: int) -> Where:
    return Where(policy.file, policy.line, str(policy.key), f"/spec/overrideRules/{number}")


def _some(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"
