"""Reading template merge rules: those of the config, and the built-in one, which is data as well (strimzi 13)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib import resources

from reconciler.krm.findings import Finding
from reconciler.krm.identity import ObjectKey
from reconciler.krm.yaml import Path, parse
from reconciler.rules.fields import Faults, Fields, shown
from reconciler.rules.templates.codes import TEMPLATE_RULE_INVALID
from reconciler.rules.templates.model import API_VERSION, GROUP, KIND, MergeRule, Side
from reconciler.snapshot.catalog import Catalog, ConfigObject

_OBJECT_FIELDS = ("apiVersion", "kind", "metadata", "spec", "status")
_SPEC_FIELDS = ("parent", "child", "properties", "parentOnly", "nullMeans", "emptyMeans")
_SIDE_FIELDS = ("apiGroup", "kind", "versions", "path", "called")
_CHILD_FIELDS = (*_SIDE_FIELDS, "parentLabel")
_BUILT_IN = "kafka-node-pool.yaml"


@dataclass(frozen=True)
class MergeRules:
    """The rules of one config, sorted by name; a built-in one gives way to one of its name."""

    rules: tuple[MergeRule, ...]
    findings: tuple[Finding, ...] = ()


@cache
def built_in_rule() -> MergeRule:
    """Return the rule for Kafka and its KafkaNodePools."""
    text = resources.files(__package__).joinpath(_BUILT_IN).read_bytes()
    document = parse(text).documents[0]
    key = ObjectKey(GROUP, KIND, "", document.data["metadata"]["name"])
    rule, findings = read_merge_rule(ConfigObject(key, API_VERSION, _BUILT_IN, document))
    if rule is None:
        raise AssertionError(f"the built-in rule must be sound: {findings}")
    return rule


def read_merge_rules(catalog: Catalog) -> MergeRules:
    """Return the built-in rule and those of the config; of some that contradict each other the first by name counts."""
    rules = {built_in_rule().name: built_in_rule()}
    findings: list[Finding] = []
    objects = catalog.of_kind(GROUP, KIND)
    for one in objects:
        rule, faults = read_merge_rule(one)
        findings += faults
        if rule:
            rules[rule.name] = rule
    places = {one.key.name: one for one in objects}
    kept: list[MergeRule] = []
    # the built-in one first: it is what everything else has to fit to
    for name in sorted(rules, key=lambda name: (name in places, name)):
        told = [*_contradictions(rules[name], kept, places)]
        findings += told
        kept += [] if told else [rules[name]]
    return MergeRules(tuple(sorted(kept, key=lambda one: one.name)), tuple(findings))


def read_merge_rule(one: ConfigObject) -> tuple[MergeRule | None, tuple[Finding, ...]]:
    """Return the rule and no findings, or None and an error for every fault."""
    faults = Faults(one.where_at, TEMPLATE_RULE_INVALID)
    whole = Fields(one.data, (), faults, _OBJECT_FIELDS)
    if one.api_version != API_VERSION:
        whole.fault("apiVersion", f"must be {API_VERSION}, not {shown(one.api_version)}")
    if one.key.namespace:
        faults.add(("metadata", "namespace"), f"must be left out: a {KIND} is in none, not in {one.key.namespace}")
    spec = whole.mapping("spec", _SPEC_FIELDS)
    parent, child = spec.mapping("parent", _SIDE_FIELDS), spec.mapping("child", _CHILD_FIELDS)
    sides = _read_side(parent), _read_side(child)
    label = child.text("parentLabel", required=True)
    properties, parent_only = _read_properties(spec)
    spec.choice("nullMeans", ("inherit",), "inherit")
    spec.choice("emptyMeans", ("reset",), "reset")
    if (sides[0].group, sides[0].kind) == (sides[1].group, sides[1].kind):
        child.fault("kind", f"must be another than the parent's, {shown(sides[0].kind)}")
    if faults.findings:
        return None, tuple(faults.findings)
    return MergeRule(one.key.name, *sides, label, properties, parent_only), ()


def _read_side(fields: Fields) -> Side:
    group, kind = fields.text("apiGroup"), fields.text("kind", required=True)
    called = fields.text("called") or kind.lower()
    if (group, kind) == ("", "Secret"):
        # what a template comes to is told in status files, plans and explanations
        fields.fault("kind", "must be another than Secret, whose values may not be shown")
    return Side(group, kind, _read_path(fields), called, fields.texts("versions"))


def _read_path(fields: Fields) -> Path:
    text = fields.text("path", required=True)
    path = tuple(text.split("."))
    if text and (not all(path) or path[0] in _OBJECT_FIELDS[:3]):
        wanted = "must name the field of the template, such as spec.template, and none of apiVersion, kind and metadata"
        fields.fault("path", f"{wanted}, not {shown(text)}")
    return path


def _read_properties(spec: Fields) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return what parent and child share, and what only parents can have."""
    properties, parent_only = _read_names(spec, "properties"), _read_names(spec, "parentOnly")
    if not properties:
        spec.fault("properties", "must name what parent and child share")
    for name in sorted({*properties} & {*parent_only}):
        spec.fault("parentOnly", f"must not name {shown(name)}, which is one of the properties")
    return properties, parent_only


def _read_names(fields: Fields, name: str) -> tuple[str, ...]:
    names = fields.texts(name)
    for twice in sorted({one for one in names if names.count(one) > 1}):
        fields.fault(name, f"must not name {shown(twice)} twice")
    return names


def _contradictions(rule: MergeRule, others: Iterable[MergeRule], places: dict[str, ConfigObject]) -> Iterator[Finding]:
    """Yield why a rule cannot stand beside others: every kind has one role, and a child one rule."""
    child, parent = (rule.child.group, rule.child.kind), (rule.parent.group, rule.parent.kind)
    for other in others:
        children, parents = (other.child.group, other.child.kind), (other.parent.group, other.parent.kind)
        taken = "child" if child in (children, parents) else "parent" if parent == children else ""
        if taken:
            path = ("spec", taken, "kind")
            kind = (rule.child if taken == "child" else rule.parent).kind
            message = (
                f"spec.{taken}.kind must not be {shown(kind)}, of which the rule {other.name} makes something else"
            )
            yield TEMPLATE_RULE_INVALID.finding(message, places[rule.name].where_at(path))
