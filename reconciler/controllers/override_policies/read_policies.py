"""Readers of OverridePolicy and ClusterOverridePolicy objects and of their resource selectors."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from reconciler.api import kubeadmiral
from reconciler.api.base import read_model
from reconciler.api.kubeadmiral import (
    KUBEADMIRAL_GROUP,
    OverridePolicyManifest,
    PolicySelectors,
    ResourceSelectorFields,
)
from reconciler.api.manifest import read_manifest
from reconciler.api.messages import DEFAULT_TEMPLATES
from reconciler.catalog.catalog import Catalog, ConfigObject
from reconciler.controllers.override_policies.codes import PolicyCodes
from reconciler.controllers.override_policies.model import (
    CLUSTER_OVERRIDE_POLICY_KIND,
    OVERRIDE_POLICY_KIND,
    OverridePolicy,
    ResourceSelector,
)
from reconciler.controllers.override_policies.read_rules import (
    READING_CODES,
    create_override_rules,
    fill_rules_with_samples,
)
from reconciler.controllers.validation import create_field_findings
from reconciler.krm.findings import Finding
from reconciler.krm.json_text import compute_digest
from reconciler.krm.objects import ObjectKey, split_api_version
from reconciler.lazy_dataclasses import dataclass, field, replace
from reconciler.packages.resource import KrmResource

_KINDS: Mapping[str, type[OverridePolicyManifest]] = {
    CLUSTER_OVERRIDE_POLICY_KIND: kubeadmiral.ClusterOverridePolicy,
    OVERRIDE_POLICY_KIND: kubeadmiral.OverridePolicy,
}


@dataclass(frozen=True)
class OverridePolicies:
    """All override policies of a config: valid, invalid and duplicate policies.

    Attributes:
        is_complete: Whether all files of the config are readable. If False, other policies may exist in unreadable
            files.
        selectors: Maps each policy to its resource selectors. Includes invalid and duplicate policies. Omits policies
            without resource selectors.
    """

    valid: Mapping[ObjectKey, OverridePolicy] = field(default_factory=dict)
    invalid: frozenset[ObjectKey] = frozenset()
    duplicates: frozenset[ObjectKey] = frozenset()
    findings: tuple[Finding, ...] = ()
    is_complete: bool = True
    selectors: Mapping[ObjectKey, tuple[ResourceSelector, ...]] = field(default_factory=dict)

    def select(self, keys: Collection[ObjectKey], *, is_complete: bool) -> OverridePolicies:
        """Return only the policies with these identities, without findings."""
        return replace(
            self,
            valid={key: policy for key, policy in self.valid.items() if key in keys},
            invalid=self.invalid.intersection(keys),
            duplicates=self.duplicates.intersection(keys),
            findings=(),
            is_complete=is_complete,
            selectors={key: selectors for key, selectors in self.selectors.items() if key in keys},
        )

    def can_exist(self, key: ObjectKey) -> bool:
        """Return whether a policy that was not found may be in an unreadable file."""
        return not self.is_complete and not (key in self.valid or key in self.invalid or key in self.duplicates)

    def digest_selectors(self, kinds: Iterable[str]) -> str:
        """Return a digest of all policy selectors that can select resources of these kinds, e.g. "apps/Deployment".

        If the digest is unchanged, each policy selects the same resources as before. However, the rules of the policies
        can have changed, because the digest does not include them. Return "" if there are no such selectors.
        """
        kind_set = frozenset(kinds)
        selectors_by_policy = {
            key: [selector.as_data() for selector in filter_selectors_by_kind(selectors, kind_set)]
            for key, selectors in self.selectors.items()
        }
        entries = [[key.reference, data] for key, data in sorted(selectors_by_policy.items()) if data]
        return compute_digest(entries) if entries else ""


def build_override_policy_key(kind: str, namespace: str, name: str) -> ObjectKey:
    """Return the identity of an override policy. The namespace of a ClusterOverridePolicy is ignored."""
    return ObjectKey(KUBEADMIRAL_GROUP, kind, namespace if kind == OVERRIDE_POLICY_KIND else "", name)


def read_override_policies(catalog: Catalog) -> OverridePolicies:
    """Return all override policies of the config. Findings about duplicates are not included."""
    sound: dict[ObjectKey, OverridePolicy] = {}
    invalid: set[ObjectKey] = set()
    findings: list[Finding] = []
    for kind in _KINDS:
        for policy_object in catalog.objects_of_kind(KUBEADMIRAL_GROUP, kind):
            policy, errors = read_override_policy(policy_object)
            findings += errors
            if policy:
                sound[_get_policy_key(policy_object)] = policy
            else:
                invalid.add(_get_policy_key(policy_object))
    # Ignore a valid policy if an invalid policy has the same name, because it is unknown which of the two applies.
    unambiguous = {key: policy for key, policy in sound.items() if key not in invalid}
    duplicates = frozenset(map(_get_policy_key, _iterate_duplicates(catalog)))
    return OverridePolicies(
        unambiguous, frozenset(invalid), duplicates, tuple(findings), catalog.is_complete, _read_all_selectors(catalog)
    )


def _get_policy_key(policy_object: ConfigObject) -> ObjectKey:
    return build_override_policy_key(policy_object.key.kind, policy_object.key.namespace, policy_object.key.name)


def _iterate_duplicates(catalog: Catalog) -> Iterator[ConfigObject]:
    for key, copies in catalog.copies.items():
        if key.group == KUBEADMIRAL_GROUP and key.kind in _KINDS:
            yield from copies


def _read_all_selectors(catalog: Catalog) -> Mapping[ObjectKey, tuple[ResourceSelector, ...]]:
    selectors_by_key: dict[ObjectKey, tuple[ResourceSelector, ...]] = {}
    # Include the selectors of every duplicate, because it is unknown which duplicate applies.
    for policy_object in (
        *(policy_object for kind in _KINDS for policy_object in catalog.objects_of_kind(KUBEADMIRAL_GROUP, kind)),
        *_iterate_duplicates(catalog),
    ):
        selectors_by_key[_get_policy_key(policy_object)] = selectors_by_key.get(
            _get_policy_key(policy_object), ()
        ) + read_policy_selectors(policy_object)
    return {key: selectors for key, selectors in selectors_by_key.items() if selectors}


def read_override_policy(policy_object: ConfigObject) -> tuple[OverridePolicy | None, tuple[Finding, ...]]:
    """Return the policy. Return None and all errors if the policy is invalid."""
    data, variable_errors = fill_rules_with_samples(policy_object.data)
    result = read_manifest(_KINDS[policy_object.key.kind], data)
    errors = (*result.errors, *variable_errors)
    if result.model is None or errors:
        return None, create_field_findings(policy_object, errors, PolicyCodes.POLICY_INVALID, READING_CODES)
    rules = create_override_rules(result.model.spec, policy_object.data["spec"])
    return OverridePolicy(
        policy_object.key, policy_object.file, policy_object.document.line, policy_object.digest, rules
    ), ()


def read_policy_selectors(policy_object: ConfigObject) -> tuple[ResourceSelector, ...]:
    """Return the `resourceSelectors` of a policy, even if other fields of the policy are invalid.

    If `resourceSelectors` is invalid, return a selector that may select every resource in the scope of the policy.
    """
    namespace = policy_object.key.namespace if policy_object.key.kind == OVERRIDE_POLICY_KIND else ""
    result = read_model(PolicySelectors, policy_object.data.get("spec"), DEFAULT_TEMPLATES, ("spec",))
    if result.model is None:
        spec = policy_object.data.get("spec")
        has_selectors = isinstance(spec, Mapping) and spec.get("resourceSelectors") is not None
        return (ResourceSelector(namespace=namespace),) if has_selectors else ()
    selectors = result.model.resource_selectors
    if namespace and any(selector.namespace not in ("", namespace) for selector in selectors):
        return (ResourceSelector(namespace=namespace),)
    return tuple(_create_selector(selector, namespace) for selector in selectors)


def _create_selector(selector: ResourceSelectorFields, namespace: str) -> ResourceSelector:
    group, _ = split_api_version(selector.api_version)
    labels = None if selector.label_selector is None else selector.label_selector.selector
    return ResourceSelector(group, selector.kind, namespace or selector.namespace, selector.name, labels)


def rank_selection(selectors: tuple[ResourceSelector, ...], resource: KrmResource, namespace: str) -> int | None:
    """Return the rank of a policy for a resource: 0 if selected by kind, 1 by labels, and 2 by name.

    Return None if the policy does not select the resource.
    """
    ranks = [_get_specificity(selector) for selector in selectors if _is_selected(selector, resource, namespace)]
    return max(ranks) if ranks else None


def filter_selectors_by_kind(
    selectors: tuple[ResourceSelector, ...], kinds: Collection[str]
) -> tuple[ResourceSelector, ...]:
    """Return the selectors that may select a resource of one of `kinds`. The format of each kind is `group/Kind`."""
    return tuple(
        selector
        for selector in selectors
        if kinds and (selector.is_unreadable or f"{selector.group}/{selector.kind}" in kinds)
    )


def _get_specificity(selector: ResourceSelector) -> int:
    return 2 if selector.name else 1 if selector.labels else 0


def _is_selected(selector: ResourceSelector, resource: KrmResource, namespace: str) -> bool:
    if selector.namespace and selector.namespace != namespace:
        return False
    if selector.is_unreadable:
        return True
    return (
        (selector.group, selector.kind) == (resource.group, resource.kind)
        and (not selector.name or selector.name == resource.name)
        and (selector.labels is None or selector.labels.matches(_filter_strings(resource.labels)))
    )


def _filter_strings(labels: Mapping[str, Any]) -> dict[str, str]:
    return {key: value for key, value in labels.items() if isinstance(value, str)}
