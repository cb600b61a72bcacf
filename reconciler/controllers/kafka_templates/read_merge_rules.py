"""Reader of template merge rules. It reads the rules in the config and the built-in rule for Kafka."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from importlib import resources

from reconciler.api import reconciler as api
from reconciler.api.manifest import read_manifest
from reconciler.catalog.catalog import Catalog, ConfigObject
from reconciler.controllers.kafka_templates.codes import TemplateCodes
from reconciler.controllers.kafka_templates.model import (
    TEMPLATE_RULE_API_VERSION,
    TEMPLATE_RULE_GROUP,
    TEMPLATE_RULE_KIND,
    RuleSide,
    TemplateMergeRule,
)
from reconciler.controllers.validation import create_field_findings
from reconciler.krm.field_text import quote_value
from reconciler.krm.findings import Finding
from reconciler.krm.objects import ObjectKey
from reconciler.krm.yaml import parse_yaml
from reconciler.lazy_dataclasses import dataclass

_BUILT_IN = "kafka-node-pool.yaml"


@dataclass(frozen=True)
class TemplateMergeRules:
    """The merge rules of one config, sorted by name.

    A rule in the config replaces the built-in rule if both have the same name.
    """

    rules: tuple[TemplateMergeRule, ...]
    findings: tuple[Finding, ...] = ()


@cache
def load_built_in_rule() -> TemplateMergeRule:
    """Return the rule for Kafka and KafkaNodePool."""
    text = resources.files(__package__).joinpath(_BUILT_IN).read_bytes()
    document = parse_yaml(text).documents[0]
    key = ObjectKey(TEMPLATE_RULE_GROUP, TEMPLATE_RULE_KIND, "", document.data["metadata"]["name"])
    rule, findings = read_merge_rule(ConfigObject(key, TEMPLATE_RULE_API_VERSION, _BUILT_IN, document))
    if rule is None:
        raise AssertionError(f"the built-in rule is invalid: {findings}")
    return rule


def read_merge_rules(catalog: Catalog) -> TemplateMergeRules:
    """Return the built-in rule and the rules in the config.

    The built-in rule takes precedence over a contradicting rule in the config. If two rules in the config contradict
    each other, the rule with the alphabetically first name takes precedence.
    """
    rules = {load_built_in_rule().name: load_built_in_rule()}
    findings: list[Finding] = []
    objects = catalog.objects_of_kind(TEMPLATE_RULE_GROUP, TEMPLATE_RULE_KIND)
    for rule_object in objects:
        rule, errors = read_merge_rule(rule_object)
        findings += errors
        if rule:
            rules[rule.name] = rule
    objects_by_name = {rule_object.key.name: rule_object for rule_object in objects}
    accepted: list[TemplateMergeRule] = []
    # Check the built-in rule first, so that this rule is accepted, and a contradicting rule of the config is rejected.
    for name in sorted(rules, key=lambda name: (name in objects_by_name, name)):
        contradictions = [*_find_contradictions(rules[name], accepted, objects_by_name)]
        findings += contradictions
        accepted += [] if contradictions else [rules[name]]
    return TemplateMergeRules(tuple(sorted(accepted, key=lambda accepted_rule: accepted_rule.name)), tuple(findings))


def read_merge_rule(rule_object: ConfigObject) -> tuple[TemplateMergeRule | None, tuple[Finding, ...]]:
    """Return a valid rule. Return None and all errors if the rule is invalid."""
    result = read_manifest(api.TemplateMergeRule, rule_object.data)
    if result.model is None:
        return None, create_field_findings(rule_object, result.errors, TemplateCodes.TEMPLATE_RULE_INVALID)
    spec = result.model.spec
    parent, child = _create_side(spec.parent), _create_side(spec.child)
    rule = TemplateMergeRule(
        rule_object.key.name, parent, child, spec.child.parent_label, spec.properties, spec.parent_only
    )
    return rule, ()


def _create_side(side: api.MergeRuleParent) -> RuleSide:
    return RuleSide(side.api_group, side.kind, side.steps, side.called or side.kind.lower(), side.versions)


def _find_contradictions(
    rule: TemplateMergeRule, others: Iterable[TemplateMergeRule], objects_by_name: dict[str, ConfigObject]
) -> Iterator[Finding]:
    """Yield an error for each rule in `others` that contradicts `rule`.

    A kind must be a child in only one rule, and must not be a child in one rule and a parent in another rule.
    """
    child, parent = (rule.child.group, rule.child.kind), (rule.parent.group, rule.parent.kind)
    for other in others:
        children, parents = (other.child.group, other.child.kind), (other.parent.group, other.parent.kind)
        conflicting_side = "child" if child in (children, parents) else "parent" if parent == children else ""
        if conflicting_side:
            path = ("spec", conflicting_side, "kind")
            kind = (rule.child if conflicting_side == "child" else rule.parent).kind
            message = (
                f"spec.{conflicting_side}.kind must not be {quote_value(kind)}, because this kind has a different role"
                f" in the {TEMPLATE_RULE_KIND} {other.name}"
            )
            yield TemplateCodes.TEMPLATE_RULE_INVALID.finding(message, objects_by_name[rule.name].location_of(path))
