"""Reading PropagationPolicies and ClusterPropagationPolicies: each with everything that is wrong with it (10.32)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from reconciler.krm.findings import Finding
from reconciler.krm.identity import ObjectKey
from reconciler.rules.clusters.read_targets import read_selection
from reconciler.rules.fields import Faults, Fields, dotted, shown
from reconciler.rules.guards import ACK_DELETIONS
from reconciler.rules.placement.codes import NOT_IN_EFFECT, PROPAGATION_POLICY_INVALID
from reconciler.rules.placement.model import API_VERSION, CLUSTER_KIND, GROUP, NAMESPACED_KIND, PropagationPolicy
from reconciler.snapshot.catalog import Catalog, ConfigObject

_OBJECT_FIELDS = ("apiVersion", "kind", "metadata", "spec", "status")
_SELECTING = ("placement", "clusterSelector", "clusterAffinity")
_MODE = "schedulingMode"
_MODES = ("Duplicate", "Divide")
_RESCHEDULING = {"avoidDisruption": None}
# KubeAdmiral's API: fields that are for its scheduler, with what stands below them
_Known = Mapping[str, "_Known | None"]
_WITHOUT_EFFECT: _Known = {
    "autoMigration": {"when": {"podUnschedulableFor": None}, "keepUnschedulableReplicas": None},
    "disableFollowerScheduling": None,
    "maxClusters": None,
    "replicaRescheduling": _RESCHEDULING,
    "replicasStrategy": None,
    "reschedulePolicy": {
        "disableRescheduling": None,
        "replicaRescheduling": _RESCHEDULING,
        "rescheduleWhen": {
            "clusterAPIResourcesChanged": None,
            "clusterJoined": None,
            "clusterLabelsChanged": None,
            "policyContentChanged": None,
        },
    },
    "schedulingProfile": None,
    "stickyCluster": None,
    "tolerations": {"effect": None, "key": None, "operator": None, "tolerationSeconds": None, "value": None},
}
_LISTS = ("tolerations",)
_PREFERENCES: _Known = {"maxReplicas": None, "minReplicas": None, "priority": None, "weight": None}
_SPEC_FIELDS = (*_SELECTING, _MODE, *_WITHOUT_EFFECT)
_PLACEMENT_FIELDS = ("cluster", "preferences")


@dataclass(frozen=True)
class Propagations:
    """Every propagation policy of a catalog by identity: sound ones, invalid ones, and those that stand there twice.

    `findings` are errors of invalid ones, and warnings of others. `is_whole`: what is not among them does not exist.
    """

    sound: Mapping[ObjectKey, PropagationPolicy] = field(default_factory=dict)
    invalid: Mapping[ObjectKey, Finding] = field(default_factory=dict)
    duplicates: frozenset[ObjectKey] = frozenset()
    findings: tuple[Finding, ...] = ()
    is_whole: bool = True


def policy_key(kind: str, namespace: str, name: str) -> ObjectKey:
    """Return the identity of a policy; a ClusterPropagationPolicy has no namespace."""
    return ObjectKey(GROUP, kind, namespace if kind == NAMESPACED_KIND else "", name)


def read_propagations(catalog: Catalog) -> Propagations:
    """Return all propagation policies of the config; that one stands there twice the catalog has told already."""
    sound: dict[ObjectKey, PropagationPolicy] = {}
    invalid: dict[ObjectKey, Finding] = {}
    findings: list[Finding] = []
    for kind in (CLUSTER_KIND, NAMESPACED_KIND):
        for one in catalog.of_kind(GROUP, kind):
            key = policy_key(kind, one.key.namespace, one.key.name)
            policy, told = read_propagation(one)
            findings += told
            if policy:
                sound[key] = policy
            else:
                invalid.setdefault(key, told[0])
    twice = frozenset(key for key in catalog.duplicates if key.group == GROUP)
    # one that is wrong beside a sound one of the same name: nobody knows which is meant
    kept = {key: policy for key, policy in sound.items() if key not in invalid}
    return Propagations(kept, invalid, twice, tuple(findings), catalog.is_whole)


def read_propagation(one: ConfigObject) -> tuple[PropagationPolicy | None, tuple[Finding, ...]]:
    """Return the policy and warnings, or None and an error for every fault."""
    faults = Faults(one.where_at, PROPAGATION_POLICY_INVALID)
    whole = Fields(one.data, (), faults, _OBJECT_FIELDS)
    if one.api_version != API_VERSION:
        whole.fault("apiVersion", f"must be {API_VERSION}, not {shown(one.api_version)}")
    _check_namespace(one, faults)
    whole.require("spec", "a mapping")
    spec = whole.mapping("spec", _SPEC_FIELDS)
    placements = tuple(spec.mappings("placement", _PLACEMENT_FIELDS))
    names = tuple(placement.text("cluster", required=True) for placement in placements)
    targets = replace(read_selection(spec), clusters=names)
    spec.choice(_MODE, _MODES, _MODES[0])
    for name, below in _WITHOUT_EFFECT.items():
        _check_known(spec, name, below)
    for placement in placements:
        _check_known(placement, "preferences", _PREFERENCES)
    if faults.findings:
        return None, tuple(faults.findings)
    acknowledged = frozenset(re.split(r"[,\s]+", one.annotations.get(ACK_DELETIONS, ""))) - {""}
    warnings = tuple(_warnings(one, spec, placements))
    return PropagationPolicy(one, targets, acknowledged), warnings


def _check_namespace(one: ConfigObject, faults: Faults) -> None:
    path, written = ("metadata", "namespace"), one.key.namespace
    if one.key.kind == CLUSTER_KIND and written:
        faults.add(path, f"must be left out: a {CLUSTER_KIND} is in none, and not in {shown(written)}")


def _check_known(fields: Fields, name: str, below: _Known | None) -> None:
    """Note what the API does not know inside a field; values are not looked at, for they do nothing."""
    if below is None:
        return
    inside = fields.mappings(name, tuple(below)) if name in _LISTS else [fields.mapping(name, tuple(below))]
    for one in inside:
        for key, deeper in below.items():
            _check_known(one, key, deeper)


def _warnings(one: ConfigObject, spec: Fields, placements: tuple[Fields, ...]) -> Iterator[Finding]:
    written = [(spec, name) for name in _WITHOUT_EFFECT if spec.has(name)]
    if spec.data.get(_MODE) == _MODES[1]:
        written.append((spec, _MODE))
    written += [(placement, "preferences") for placement in placements if placement.has("preferences")]
    for fields, name in written:
        path = (*fields.path, name)
        message = f"{dotted(path)} has no effect here, and is {shown(fields.data[name])}"
        yield NOT_IN_EFFECT.finding(message, one.where_at(path))
