"""Selection of clusters by name, label and affinity, as in the field `targetClusters` of KubeAdmiral.

The module reads and evaluates selections, and explains why a selection matches no cluster.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from reconciler.controllers.codes import SELECTOR_INVALID
from reconciler.controllers.validation import FieldReader, explain_no_match, require_values
from reconciler.krm.field_text import quote_value, suggest_name
from reconciler.krm.names import validate_label_key, validate_label_value


@dataclass(frozen=True)
class Cluster:
    """A cluster and its labels, which are merged from all objects that define the cluster."""

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class ClusterRequirement:
    """A requirement for a label or for the cluster name: one entry of `matchExpressions` or `matchFields`."""

    key: str
    operator: str
    values: tuple[str, ...] = ()


@dataclass(frozen=True)
class ClusterAffinityTerm:
    """Requirements for the labels and the name of a cluster. The term matches if the cluster meets all requirements.

    As in Kubernetes node affinity, a term without requirements matches no cluster.
    """

    match_expressions: tuple[ClusterRequirement, ...] = ()
    match_fields: tuple[ClusterRequirement, ...] = ()


@dataclass(frozen=True)
class ClusterSelection:
    """The clusters that a rule applies to. A cluster must match every field. An empty field matches every cluster."""

    clusters: tuple[str, ...] = ()
    excluded_clusters: tuple[str, ...] = ()
    selector: Mapping[str, str] = field(default_factory=dict)
    affinity: tuple[ClusterAffinityTerm, ...] = ()


_DIGITS = re.compile(r"-?[0-9]+", re.ASCII)
_INT64 = 2**63
_INT64_DIGITS = 300


def parse_int64(text: str) -> int | None:
    """Return the integer that `text` contains. Return None if `text` is not a decimal integer or exceeds 64 bits."""
    if not _DIGITS.fullmatch(text) or len(text) > _INT64_DIGITS:
        return None
    number = int(text)
    return number if -_INT64 <= number < _INT64 else None


def is_cluster_selected(selection: ClusterSelection, cluster: Cluster) -> bool:
    """Return whether a rule applies to a cluster.

    An excluded cluster is never selected, even if its name, its labels or its affinity match.
    """
    return (
        (not selection.clusters or cluster.name in selection.clusters)
        and cluster.name not in selection.excluded_clusters
        and all(cluster.labels.get(key) == value for key, value in selection.selector.items())
        and (not selection.affinity or any(_is_term_met(term, cluster) for term in selection.affinity))
    )


def _is_term_met(term: ClusterAffinityTerm, cluster: Cluster) -> bool:
    if not term.match_expressions and not term.match_fields:
        return False
    # Compare only with the cluster name, because KubeAdmiral supports only `metadata.name` in `matchFields`.
    is_name_matched = all(
        (cluster.name in requirement.values) == (requirement.operator == "In") for requirement in term.match_fields
    )
    return is_name_matched and all(
        _is_requirement_met(requirement, cluster.labels) for requirement in term.match_expressions
    )


def _is_requirement_met(requirement: ClusterRequirement, labels: Mapping[str, str]) -> bool:
    value = labels.get(requirement.key)
    match requirement.operator:
        case "In":
            return value in requirement.values
        case "NotIn":
            return value not in requirement.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case _:
            return _is_comparison_met(requirement, value)


def _is_comparison_met(requirement: ClusterRequirement, value: str | None) -> bool:
    limit, number = parse_int64(requirement.values[0]), None if value is None else parse_int64(value)
    if limit is None or number is None:
        return False
    return number > limit if requirement.operator == "Gt" else number < limit


CLUSTER_NAME = "metadata.name"
CLUSTER_SELECTION_FIELDS = ("clusters", "excludeClusters", "clusterSelector", "clusterAffinity")
_TERM_FIELDS = ("matchExpressions", "matchFields")
_REQUIREMENT_FIELDS = ("key", "operator", "values")
OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
_FIELD_OPERATORS = ("In", "NotIn")


def read_target_clusters(rule: FieldReader) -> ClusterSelection:
    """Return the clusters that `targetClusters` of a rule selects. If the field is absent, select all clusters."""
    return read_cluster_selection(rule.read_mapping("targetClusters", CLUSTER_SELECTION_FIELDS))


def read_cluster_selection(targets: FieldReader) -> ClusterSelection:
    """Return the cluster selection from a mapping with fields such as `clusters` and `clusterSelector`."""
    selector = targets.read_string_map("clusterSelector")
    for key, value in selector.items():
        if error := validate_label_key(key) or validate_label_value(value):
            targets.add_finding("clusterSelector", f"must be a mapping of valid labels: {error}", SELECTOR_INVALID)
    terms = tuple(_read_term(term) for term in targets.iterate_mappings("clusterAffinity", _TERM_FIELDS))
    return ClusterSelection(targets.read_texts("clusters"), targets.read_texts("excludeClusters"), selector, terms)


def _read_term(term: FieldReader) -> ClusterAffinityTerm:
    expressions = (
        _read_label_requirement(requirement)
        for requirement in term.iterate_mappings("matchExpressions", _REQUIREMENT_FIELDS)
    )
    fields = (
        _read_field_requirement(requirement)
        for requirement in term.iterate_mappings("matchFields", _REQUIREMENT_FIELDS)
    )
    return ClusterAffinityTerm(tuple(expressions), tuple(fields))


def _read_label_requirement(fields: FieldReader) -> ClusterRequirement:
    key, operator, values = _read_parts(fields, OPERATORS)
    if error := validate_label_key(key):
        fields.add_finding("key", f"must be a valid label key: {error}", SELECTOR_INVALID)
    for error in _check_values(operator, values):
        fields.add_finding("values", error, SELECTOR_INVALID)
    return ClusterRequirement(key, operator, values)


def _check_values(operator: str, values: tuple[str, ...]) -> Iterator[str]:
    yield from (f"must be valid label values: {error}" for error in map(validate_label_value, values) if error)
    if operator in ("In", "NotIn") and not values:
        yield f"must not be empty for {operator}"
    if operator in ("Exists", "DoesNotExist") and values:
        yield f"must be empty for {operator}, not {quote_value(values)}"
    if operator in ("Gt", "Lt") and (len(values) != 1 or parse_int64(values[0]) is None):
        yield f"must be one 64-bit integer for {operator}, not {quote_value(values)}"


def _read_field_requirement(fields: FieldReader) -> ClusterRequirement:
    key, operator, values = _read_parts(fields, _FIELD_OPERATORS)
    if key != CLUSTER_NAME:
        fields.add_finding("key", f"must be {CLUSTER_NAME}, not {quote_value(key)}", SELECTOR_INVALID)
    if len(values) != 1:
        fields.add_finding(
            "values", f"must be a list with one cluster name, not {quote_value(values)}", SELECTOR_INVALID
        )
    return ClusterRequirement(key, operator, values)


def _read_parts(fields: FieldReader, operators: tuple[str, ...]) -> tuple[str, str, tuple[str, ...]]:
    return (
        fields.read_text("key"),
        fields.read_choice("operator", operators, code=SELECTOR_INVALID),
        fields.read_texts("values"),
    )


def explain_no_cluster(selection: ClusterSelection, clusters: Mapping[str, Cluster]) -> str:
    """Return why the selection matches no cluster. The text is the end of a sentence."""
    unknown = [name for name in selection.clusters if name not in clusters]
    if selection.clusters and len(unknown) == len(selection.clusters):
        return f"no cluster is named {' or '.join(unknown)}{suggest_name(unknown[0], sorted(clusters))}"
    # If at least one named cluster exists, explain only the labels of the named clusters, because no other can match.
    candidates = [clusters[name] for name in selection.clusters if name in clusters] or [*clusters.values()]
    label_sets = [cluster.labels for cluster in candidates if cluster.name not in selection.excluded_clusters]
    return explain_no_match(
        [*require_values(selection.selector.items()), *_get_single_term(selection)], label_sets, "cluster"
    )


def _get_single_term(selection: ClusterSelection) -> tuple[ClusterRequirement, ...]:
    return selection.affinity[0].match_expressions if len(selection.affinity) == 1 else ()
