"""Reader of template merge rules. It reads the rules in the config and the built-in rule for Kafka."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib import resources

from reconciler.catalog.catalog import Catalog, ConfigObject
from reconciler.controllers.kafka_templates.codes import TEMPLATE_RULE_INVALID
from reconciler.controllers.kafka_templates.model import (
    TEMPLATE_RULE_API_VERSION,
    TEMPLATE_RULE_GROUP,
    TEMPLATE_RULE_KIND,
    RuleSide,
    TemplateMergeRule,
)
from reconciler.controllers.validation import FieldFindings, FieldReader
from reconciler.krm.field_text import quote_value
from reconciler.krm.findings import Finding
from reconciler.krm.objects import ObjectKey
from reconciler.krm.yaml import DataPath, parse_yaml

_OBJECT_FIELDS = ("apiVersion", "kind", "metadata", "spec", "status")
_SPEC_FIELDS = ("parent", "child", "properties", "parentOnly", "nullMeans", "emptyMeans")
_SIDE_FIELDS = ("apiGroup", "kind", "versions", "path", "called")
_CHILD_FIELDS = (*_SIDE_FIELDS, "parentLabel")
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

    If two rules contradict each other, the built-in rule is used. If both are in the config, the first name is used.
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
    # Check the built-in rule first, so that a contradicting rule of the config is rejected and not the built-in rule.
    for name in sorted(rules, key=lambda name: (name in objects_by_name, name)):
        contradictions = [*_find_contradictions(rules[name], accepted, objects_by_name)]
        findings += contradictions
        accepted += [] if contradictions else [rules[name]]
    return TemplateMergeRules(tuple(sorted(accepted, key=lambda accepted_rule: accepted_rule.name)), tuple(findings))


def read_merge_rule(rule_object: ConfigObject) -> tuple[TemplateMergeRule | None, tuple[Finding, ...]]:
    """Return a valid rule. Return None and all errors if the rule is invalid."""
    errors = FieldFindings(rule_object.location_of, TEMPLATE_RULE_INVALID)
    reader = FieldReader(rule_object.data, (), errors, _OBJECT_FIELDS)
    if rule_object.api_version != TEMPLATE_RULE_API_VERSION:
        reader.add_finding(
            "apiVersion", f"must be {TEMPLATE_RULE_API_VERSION}, not {quote_value(rule_object.api_version)}"
        )
    if rule_object.key.namespace:
        errors.add(
            ("metadata", "namespace"),
            f"must be absent, not {rule_object.key.namespace}: a {TEMPLATE_RULE_KIND} has no namespace",
        )
    spec = reader.read_mapping("spec", _SPEC_FIELDS)
    parent, child = spec.read_mapping("parent", _SIDE_FIELDS), spec.read_mapping("child", _CHILD_FIELDS)
    sides = _read_side(parent), _read_side(child)
    label = child.read_text("parentLabel", required=True)
    properties, parent_only = _read_properties(spec)
    spec.read_choice("nullMeans", ("inherit",), "inherit")
    spec.read_choice("emptyMeans", ("reset",), "reset")
    if (sides[0].group, sides[0].kind) == (sides[1].group, sides[1].kind):
        child.add_finding("kind", f"must differ from the parent's kind {quote_value(sides[0].kind)}")
    if errors.findings:
        return None, tuple(errors.findings)
    return TemplateMergeRule(rule_object.key.name, *sides, label, properties, parent_only), ()


def _read_side(fields: FieldReader) -> RuleSide:
    group, kind = fields.read_text("apiGroup"), fields.read_text("kind", required=True)
    label = fields.read_text("called") or kind.lower()
    if (group, kind) == ("", "Secret"):
        # Reject Secrets, because status files, plans and explanations show the result of a merge.
        fields.add_finding("kind", "must not be Secret, because its values must not be shown")
    return RuleSide(group, kind, _read_path(fields), label, fields.read_texts("versions"))


def _read_path(fields: FieldReader) -> DataPath:
    text = fields.read_text("path", required=True)
    path = tuple(text.split("."))
    if text and (not all(path) or path[0] in _OBJECT_FIELDS[:3]):
        requirement = (
            "must be the path of the template, such as spec.template, outside of apiVersion, kind and metadata"
        )
        fields.add_finding("path", f"{requirement}, not {quote_value(text)}")
    return path


def _read_properties(spec: FieldReader) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the properties that parent and child share, and the properties that only the parent can have."""
    properties, parent_only = _read_names(spec, "properties"), _read_names(spec, "parentOnly")
    if not properties:
        spec.add_finding("properties", "must contain the properties that parent and child share")
    for name in sorted({*properties} & {*parent_only}):
        spec.add_finding("parentOnly", f"must not contain {quote_value(name)}, which is also in properties")
    return properties, parent_only


def _read_names(fields: FieldReader, name: str) -> tuple[str, ...]:
    names = fields.read_texts(name)
    for duplicate in sorted({candidate for candidate in names if names.count(candidate) > 1}):
        fields.add_finding(name, f"must not contain {quote_value(duplicate)} twice")
    return names


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
                f"spec.{conflicting_side}.kind must not be {quote_value(kind)}, which has another role in the rule"
                f" {other.name}"
            )
            yield TEMPLATE_RULE_INVALID.finding(message, objects_by_name[rule.name].location_of(path))
