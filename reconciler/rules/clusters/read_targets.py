"""Reading which clusters a rule is for: all of it is checked, whether a cluster would ever ask it (D15)."""

from __future__ import annotations

from collections.abc import Iterator

from reconciler.krm.names import label_key_fault, label_value_fault
from reconciler.rules.clusters.model import Requirement, Targets, Term
from reconciler.rules.clusters.targets import int64
from reconciler.rules.codes import SELECTOR_INVALID
from reconciler.rules.fields import Fields, shown

CLUSTER_NAME = "metadata.name"
TARGET_FIELDS = ("clusters", "excludeClusters", "clusterSelector", "clusterAffinity")
_TERM_FIELDS = ("matchExpressions", "matchFields")
_REQUIREMENT_FIELDS = ("key", "operator", "values")
OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
_FIELD_OPERATORS = ("In", "NotIn")


def read_targets(rule: Fields) -> Targets:
    """Return the targetClusters of a rule; without any it is for every cluster (kubeadmiral 3)."""
    return read_selection(rule.mapping("targetClusters", TARGET_FIELDS))


def read_selection(targets: Fields) -> Targets:
    """Return which clusters the TARGET_FIELDS of a mapping choose."""
    selector = targets.string_map("clusterSelector")
    for key, value in selector.items():
        if fault := label_key_fault(key) or label_value_fault(value):
            targets.fault("clusterSelector", f"must hold labels: {fault}", SELECTOR_INVALID)
    terms = tuple(_read_term(term) for term in targets.mappings("clusterAffinity", _TERM_FIELDS))
    return Targets(targets.texts("clusters"), targets.texts("excludeClusters"), selector, terms)


def _read_term(term: Fields) -> Term:
    expressions = (_read_expression(one) for one in term.mappings("matchExpressions", _REQUIREMENT_FIELDS))
    fields = (_read_field(one) for one in term.mappings("matchFields", _REQUIREMENT_FIELDS))
    return Term(tuple(expressions), tuple(fields))


def _read_expression(one: Fields) -> Requirement:
    key, operator, values = _read(one, OPERATORS)
    if fault := label_key_fault(key):
        one.fault("key", f"must be a label's: {fault}", SELECTOR_INVALID)
    for fault in _value_faults(operator, values):
        one.fault("values", fault, SELECTOR_INVALID)
    return Requirement(key, operator, values)


def _value_faults(operator: str, values: tuple[str, ...]) -> Iterator[str]:
    yield from (f"must be those of labels: {fault}" for fault in map(label_value_fault, values) if fault)
    if operator in ("In", "NotIn") and not values:
        yield f"must not be empty for {operator}"
    if operator in ("Exists", "DoesNotExist") and values:
        yield f"must be empty for {operator}, not {shown(values)}"
    if operator in ("Gt", "Lt") and (len(values) != 1 or int64(values[0]) is None):
        yield f"must be one whole number of at most 64 bits for {operator}, not {shown(values)}"


def _read_field(one: Fields) -> Requirement:
    key, operator, values = _read(one, _FIELD_OPERATORS)
    if key != CLUSTER_NAME:
        one.fault("key", f"must be {CLUSTER_NAME}, not {shown(key)}", SELECTOR_INVALID)
    if len(values) != 1:
        one.fault("values", f"must be one name, not {shown(values)}", SELECTOR_INVALID)
    return Requirement(key, operator, values)


def _read(one: Fields, operators: tuple[str, ...]) -> tuple[str, str, tuple[str, ...]]:
    return one.text("key"), one.choice("operator", operators, code=SELECTOR_INVALID), one.texts("values")
