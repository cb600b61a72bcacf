"""Selection of clusters by name, label and affinity, as in the field `targetClusters` of KubeAdmiral.

The module reads and evaluates selections, and explains why a selection matches no cluster.
"""

from __future__ import annotations

from collections.abc import Mapping

from reconciler.api.kubeadmiral import ClusterAffinityFields, TargetClusters
from reconciler.controllers.validation import explain_no_match, require_values
from reconciler.krm.field_text import quote_list, suggest_name
from reconciler.krm.numbers import parse_int64
from reconciler.lazy_dataclasses import dataclass, field


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


def create_cluster_selection(fields: TargetClusters) -> ClusterSelection:
    """Return the selection for the content of a `targetClusters` field."""
    terms = tuple(map(_create_term, fields.cluster_affinity))
    return ClusterSelection(fields.clusters, fields.exclude_clusters, fields.cluster_selector, terms)


def _create_term(term: ClusterAffinityFields) -> ClusterAffinityTerm:
    return ClusterAffinityTerm(
        tuple(ClusterRequirement(entry.key, entry.operator, entry.values) for entry in term.match_expressions),
        tuple(ClusterRequirement(entry.key, entry.operator, entry.values) for entry in term.match_fields),
    )


def explain_no_cluster(selection: ClusterSelection, clusters: Mapping[str, Cluster]) -> str:
    """Return why the selection matches no cluster, e.g. 'no cluster has the name "prod-1"'."""
    unknown = [name for name in selection.clusters if name not in clusters]
    if selection.clusters and len(unknown) == len(selection.clusters):
        return f"no cluster has the name {quote_list(unknown, ' or ')}{suggest_name(unknown[0], sorted(clusters))}"
    # If at least one of the named clusters exists, explain only the labels of the named clusters, because no other
    # cluster can match.
    candidates = [clusters[name] for name in selection.clusters if name in clusters] or [*clusters.values()]
    label_sets = [cluster.labels for cluster in candidates if cluster.name not in selection.excluded_clusters]
    return explain_no_match(
        [*require_values(selection.selector.items()), *_get_single_term(selection)], label_sets, "cluster"
    )


def _get_single_term(selection: ClusterSelection) -> tuple[ClusterRequirement, ...]:
    return selection.affinity[0].match_expressions if len(selection.affinity) == 1 else ()
