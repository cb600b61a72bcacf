"""Reading OverridePolicies and ClusterOverridePolicies: each with everything that is wrong with it (kubeadmiral 1)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from reconciler.krm.digest import digest
from reconciler.krm.findings import Finding
from reconciler.krm.identity import ObjectKey
from reconciler.rules.fields import Faults, Fields, shown
from reconciler.rules.overrides.codes import POLICY_INVALID
from reconciler.rules.overrides.model import (
    API_VERSION,
    CLUSTER_KIND,
    GROUP,
    NAMESPACED_KIND,
    Policy,
    ResourceSelector,
)
from reconciler.rules.overrides.read_rules import read_rules
from reconciler.rules.overrides.selection import may_choose, read_selectors
from reconciler.snapshot.catalog import Catalog, ConfigObject

_KINDS = (CLUSTER_KIND, NAMESPACED_KIND)
_OBJECT_FIELDS = ("apiVersion", "kind", "metadata", "spec", "status")
_SPEC_FIELDS = ("resourceSelectors", "overrideRules")


@dataclass(frozen=True)
class Policies:
    """Every policy of a catalog by identity: the sound ones, those that are not, and those that stand there twice.

    `is_whole`: what is not among them does not exist; else it may stand in a file that could not be read.
    `selectors` are those of all policies that choose their resources, of invalid ones and of each copy as well.
    """

    sound: Mapping[ObjectKey, Policy] = field(default_factory=dict)
    invalid: frozenset[ObjectKey] = frozenset()
    duplicates: frozenset[ObjectKey] = frozenset()
    findings: tuple[Finding, ...] = ()
    is_whole: bool = True
    selectors: Mapping[ObjectKey, tuple[ResourceSelector, ...]] = field(default_factory=dict)

    def may_exist(self, key: ObjectKey) -> bool:
        """Tell whether a policy is not among these, and may stand in a file that could not be read."""
        return not self.is_whole and not (key in self.sound or key in self.invalid or key in self.duplicates)

    def choosing(self, kinds: Iterable[str]) -> str:
        """Return a digest of the selectors that may choose a resource of these kinds (`group/Kind`), "" for none.

        Equal digests: the same policies choose the same of them. What these policies say is not part of it.
        """
        wanted = frozenset(kinds)
        may = {key: [one.as_data() for one in may_choose(some, wanted)] for key, some in self.selectors.items()}
        found = [[str(key), said] for key, said in sorted(may.items()) if said]
        return digest(found) if found else ""


def policy_key(kind: str, namespace: str, name: str) -> ObjectKey:
    """Return the identity of a policy; a ClusterOverridePolicy has no namespace."""
    return ObjectKey(GROUP, kind, namespace if kind == NAMESPACED_KIND else "", name)


def read_policies(catalog: Catalog) -> Policies:
    """Return all policies of the config; that one stands there twice the catalog has told already (design 10.2)."""
    sound: dict[ObjectKey, Policy] = {}
    invalid: set[ObjectKey] = set()
    findings: list[Finding] = []
    for kind in _KINDS:
        for one in catalog.of_kind(GROUP, kind):
            policy, faults = read_policy(one)
            findings += faults
            if policy:
                sound[_key(one)] = policy
            else:
                invalid.add(_key(one))
    # one that is wrong beside a sound one of the same name: nobody knows which is meant
    kept = {key: policy for key, policy in sound.items() if key not in invalid}
    twice = frozenset(map(_key, _copies(catalog)))
    return Policies(kept, frozenset(invalid), twice, tuple(findings), catalog.is_whole, _selectors(catalog))


def _key(one: ConfigObject) -> ObjectKey:
    return policy_key(one.key.kind, one.key.namespace, one.key.name)


def _copies(catalog: Catalog) -> Iterator[ConfigObject]:
    for key, copies in catalog.copies.items():
        if key.group == GROUP and key.kind in _KINDS:
            yield from copies


def _selectors(catalog: Catalog) -> Mapping[ObjectKey, tuple[ResourceSelector, ...]]:
    found: dict[ObjectKey, tuple[ResourceSelector, ...]] = {}
    # of copies nobody knows which is meant, so that each may be
    for one in (*(one for kind in _KINDS for one in catalog.of_kind(GROUP, kind)), *_copies(catalog)):
        found[_key(one)] = found.get(_key(one), ()) + selectors_of(one)
    return {key: some for key, some in found.items() if some}


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


def _namespace(one: ConfigObject) -> str:
    return one.key.namespace if one.key.kind == NAMESPACED_KIND else ""


def _check_namespace(one: ConfigObject, faults: Faults) -> None:
    path = ("metadata", "namespace")
    if one.key.kind == CLUSTER_KIND and one.key.namespace:
        faults.add(path, f"must be left out: a {CLUSTER_KIND} is in none, and not in {shown(one.key.namespace)}")
