"""Reading OverridePolicies and ClusterOverridePolicies: each with everything that is wrong with it (kubeadmiral 1)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from reconciler.krm.digest import digest
from reconciler.krm.findings import Finding, Where
from reconciler.krm.identity import ObjectKey
from reconciler.krm.yaml import Path
from reconciler.rules.clusters.model import Cluster
from reconciler.rules.clusters.read_targets import read_targets
from reconciler.rules.codes import NAMESPACE_MISSING
from reconciler.rules.fields import Faults, Fields, dotted, shown
from reconciler.rules.overrides.codes import POLICY_INVALID, VARIABLE_UNRESOLVED
from reconciler.rules.overrides.effect import Note
from reconciler.rules.overrides.model import (
    API_VERSION,
    CLUSTER_KIND,
    GROUP,
    NAMESPACED_KIND,
    Policy,
    ResourceSelector,
    Rule,
)
from reconciler.rules.overrides.read_overriders import read_overriders
from reconciler.rules.overrides.selection import read_selectors
from reconciler.rules.overrides.variables import has_variables, resolved, sampled
from reconciler.snapshot.catalog import Catalog, ConfigObject

_OBJECT_FIELDS = ("apiVersion", "kind", "metadata", "spec", "status")
_SPEC_FIELDS = ("resourceSelectors", "overrideRules")
_RULE_FIELDS = ("targetClusters", "overriders")


@dataclass(frozen=True)
class Policies:
    """Every policy of a catalog by identity: the sound ones, those that are not, and those that stand there twice.

    `is_whole`: what is not among them does not exist; else it may stand in a file that could not be read.
    `selectors` are those of policies that choose their resources, invalid ones too; `selection` is a digest of these
    policies, "" if there are none: what happens to a resource that names no policy depends on that alone.
    """

    sound: Mapping[ObjectKey, Policy] = field(default_factory=dict)
    invalid: frozenset[ObjectKey] = frozenset()
    duplicates: frozenset[ObjectKey] = frozenset()
    findings: tuple[Finding, ...] = ()
    is_whole: bool = True
    selectors: Mapping[ObjectKey, tuple[ResourceSelector, ...]] = field(default_factory=dict)
    selection: str = ""


def policy_key(kind: str, namespace: str, name: str) -> ObjectKey:
    """Return the identity of a policy; a ClusterOverridePolicy has no namespace."""
    return ObjectKey(GROUP, kind, namespace if kind == NAMESPACED_KIND else "", name)


def read_policies(catalog: Catalog) -> Policies:
    """Return all policies of the config; that one stands there twice the catalog has told already (design 10.2)."""
    sound: dict[ObjectKey, Policy] = {}
    invalid: set[ObjectKey] = set()
    findings: list[Finding] = []
    selectors: dict[ObjectKey, tuple[ResourceSelector, ...]] = {}
    digests: list[str] = []
    for kind in (CLUSTER_KIND, NAMESPACED_KIND):
        for one in catalog.of_kind(GROUP, kind):
            key = policy_key(kind, one.key.namespace, one.key.name)
            policy, faults = read_policy(one)
            findings += faults
            if policy:
                sound[key] = policy
            else:
                invalid.add(key)
            if chosen := selectors_of(one):
                selectors[key] = chosen
                digests.append(f"{one.key} {one.digest}")
    # one that is wrong beside a sound one of the same name: nobody knows which is meant
    kept = {key: policy for key, policy in sound.items() if key not in invalid}
    twice = frozenset(key for key in catalog.duplicates if key.group == GROUP)
    selection = digest(digests) if digests else ""
    return Policies(kept, frozenset(invalid), twice, tuple(findings), catalog.is_whole, selectors, selection)


def read_policy(one: ConfigObject) -> tuple[Policy | None, tuple[Finding, ...]]:
    """Return the policy and no findings, or None and an error for every fault."""
    faults = Faults(one.where_at, POLICY_INVALID)
    whole = Fields(one.data, (), faults, _OBJECT_FIELDS)
    if one.api_version != API_VERSION:
        whole.fault("apiVersion", f"must be {API_VERSION}, not {shown(one.api_version)}")
    _check_namespace(one, faults)
    if not whole.has("spec"):
        whole.fault("spec", "must be a mapping")
    spec = whole.mapping("spec", _SPEC_FIELDS)
    read_selectors(spec, _namespace(one))
    rules = read_rules(spec)
    if faults.findings:
        return None, tuple(faults.findings)
    return Policy(one.key, one.file, one.document.line, one.digest, rules), ()


def selectors_of(one: ConfigObject) -> tuple[ResourceSelector, ...]:
    """Return the resourceSelectors of a policy that may be invalid otherwise.

    Where they are invalid themselves, the policy may be meant for anything that it could choose.
    """
    faults, namespace = Faults(one.where_at, POLICY_INVALID), _namespace(one)
    spec = Fields(one.data.get("spec"), ("spec",), faults, None)
    found = read_selectors(spec, namespace)
    return (ResourceSelector(namespace=namespace),) if faults.findings and spec.has("resourceSelectors") else found


def read_rules(spec: Fields) -> tuple[Rule, ...]:
    """Return the rules of a spec; none is fine, and does nothing."""
    return tuple(map(_read_rule, spec.mappings("overrideRules", _RULE_FIELDS)))


def _read_rule(rule: Fields) -> Rule:
    written = rule.data.get("overriders")
    if not has_variables(written):
        return Rule(read_targets(rule), read_overriders(rule))
    sample, faults = sampled(written)
    for fault in faults:
        rule.faults.add((*rule.path, "overriders", *fault.path), fault.message)
    filled = Fields({"overriders": sample}, rule.path, rule.faults, None)
    return Rule(read_targets(rule), read_overriders(filled), written)


def rule_for(rule: Rule, number: int, cluster: Cluster) -> Rule | tuple[Note, ...]:
    """Return a rule as it is for a cluster, or what its variables make of it that no policy may say."""
    if rule.template is None:
        return rule
    path: Path = ("spec", "overrideRules", number)
    data, unknown = resolved(rule.template, cluster)
    if unknown:
        return tuple(
            Note(VARIABLE_UNRESOLVED, f"{dotted((*path, 'overriders', *one.path))} {one.message}") for one in unknown
        )
    faults = Faults(lambda _: Where(), POLICY_INVALID)
    overriders = read_overriders(Fields({"overriders": data}, path, faults, None))
    wrong = (f"on {cluster.name}, {one.message}" for one in faults.findings)
    return tuple(Note(VARIABLE_UNRESOLVED, message) for message in wrong) or replace(rule, overriders=overriders)


def _namespace(one: ConfigObject) -> str:
    return one.key.namespace if one.key.kind == NAMESPACED_KIND else ""


def _check_namespace(one: ConfigObject, faults: Faults) -> None:
    path = ("metadata", "namespace")
    if one.key.kind == NAMESPACED_KIND and not one.key.namespace:
        faults.add(path, f"must say where this {NAMESPACED_KIND} is", NAMESPACE_MISSING)
    if one.key.kind == CLUSTER_KIND and one.key.namespace:
        faults.add(path, f"must be left out: a {CLUSTER_KIND} is in none, and not in {shown(one.key.namespace)}")
