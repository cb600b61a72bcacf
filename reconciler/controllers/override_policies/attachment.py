"""Selection of the override policies of a resource, and removal of the labels and annotations that control the
selection.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from reconciler.controllers.nested_values import copy_without_value, get_value
from reconciler.controllers.override_policies.codes import PolicyCodes
from reconciler.controllers.override_policies.model import (
    CLUSTER_OVERRIDE_POLICY_KIND,
    OVERRIDE_POLICY_KIND,
    OverridePolicy,
)
from reconciler.controllers.override_policies.read_policies import (
    OverridePolicies,
    build_override_policy_key,
    rank_selection,
)
from reconciler.controllers.resource_findings import ResourceIssue
from reconciler.krm.findings import FindingCode
from reconciler.krm.objects import ObjectKey
from reconciler.krm.schema import find_kind_scope
from reconciler.krm.yaml import DataPath
from reconciler.lazy_dataclasses import dataclass
from reconciler.packages.resource import KrmResource

CLUSTER_OVERRIDE_POLICY_LABEL = "kubeadmiral.io/cluster-override-policy-name"
OVERRIDE_POLICY_LABEL = "kubeadmiral.io/override-policy-name"
CLUSTERS_ANNOTATION = "reconciler.dev/clusters"
_CONTROL_METADATA = (
    ("labels", CLUSTER_OVERRIDE_POLICY_LABEL),
    ("labels", OVERRIDE_POLICY_LABEL),
    ("annotations", CLUSTERS_ANNOTATION),
)

MissingPolicyMode = Literal["fail", "ignore"]


@dataclass(frozen=True)
class AttachedPolicies:
    """The override policies for a resource.

    Attributes:
        policies: The policies to apply, in this order. Empty if `issues` contains an error.
        candidate_policies: All policies that the resource refers to or that select the resource.
        issues: The errors and warnings about the labels of the resource and about these policies.
    """

    policies: tuple[OverridePolicy, ...] = ()
    candidate_policies: tuple[ObjectKey, ...] = ()
    issues: tuple[ResourceIssue, ...] = ()

    @property
    def has_errors(self) -> bool:
        """Whether one of the issues is an error, so that the resource must not be published."""
        return any(issue.is_error for issue in self.issues)


@dataclass(frozen=True)
class _Candidate:
    """A policy that a label of a resource refers to, or that selects the resource.

    `message_prefix` is the start of a message about the policy, e.g. "OverridePolicy/a/b selects this Deployment".
    """

    key: ObjectKey
    message_prefix: str
    path: DataPath


def find_attached_policies(
    resource: KrmResource, policies: OverridePolicies, on_missing: MissingPolicyMode = "fail"
) -> AttachedPolicies:
    """Return the policies for a resource, in the order in which they are applied.

    The order is determined by these criteria, the most important first:

    - The kind: ClusterOverridePolicies come before OverridePolicies.
    - Policies that select the resource come before the policy that a label of the resource refers to.
    - The selector: first policies that select only by kind, then by labels, then by name.
    - The name of the policy.

    If `on_missing` is "fail", a missing policy is an error. If it is "ignore", a missing policy is an error only if a
    config file is unreadable, because this file may contain the policy.
    """
    named, issues = _read_labels(resource)
    candidates = [*_list_candidates(resource, policies, CLUSTER_OVERRIDE_POLICY_KIND, named)]
    candidates += _list_candidates(resource, policies, OVERRIDE_POLICY_KIND, named)
    attached: list[OverridePolicy] = []
    for candidate in candidates:
        policy = _find_policy(candidate, policies)
        if isinstance(policy, OverridePolicy):
            attached.append(policy)
        elif not (policy.code is PolicyCodes.POLICY_NOT_FOUND and on_missing == "ignore" and policies.is_complete):
            issues = (*issues, policy)
    failed = any(issue.is_error for issue in issues)
    return AttachedPolicies(() if failed else tuple(attached), tuple(candidate.key for candidate in candidates), issues)


def _list_candidates(
    resource: KrmResource, policies: OverridePolicies, kind: str, named: tuple[_Candidate, ...]
) -> Iterator[_Candidate]:
    labeled = [candidate for candidate in named if candidate.key.kind == kind]
    yield from _list_selecting(resource, policies, kind, {candidate.key for candidate in labeled})
    yield from labeled


def _list_selecting(
    resource: KrmResource, policies: OverridePolicies, kind: str, named_keys: set[ObjectKey]
) -> Iterator[_Candidate]:
    namespace = get_stated_namespace(resource)
    ranked = []
    for key, selectors in policies.selectors.items():
        if (
            key.kind == kind
            and key not in named_keys
            and (specificity := rank_selection(selectors, resource, namespace)) is not None
        ):
            ranked.append((specificity, key))
    for _, key in sorted(ranked):
        yield _Candidate(key, f"{key} selects this {resource.kind}", ("kind",))


def has_override_policy_label(labels: Mapping[str, Any]) -> bool:
    """Return whether one of the labels names an override policy."""
    return CLUSTER_OVERRIDE_POLICY_LABEL in labels or OVERRIDE_POLICY_LABEL in labels


def strip_control_metadata(data: Any) -> Any:
    """Return a resource without the labels and annotations that control override policies and placement.

    If no other label or annotation remains, the empty mapping is removed as well.
    """
    for field, key in _CONTROL_METADATA:
        path = ("metadata", field)
        entries = get_value(data, path)
        if isinstance(entries, dict) and key in entries:
            data = copy_without_value(data, (*path, key)) if len(entries) > 1 else copy_without_value(data, path)
    return data


def get_stated_namespace(resource: KrmResource) -> str:
    """Return `metadata.namespace` of a resource. If the kind is cluster-scoped, ignore this field and return ""."""
    return "" if find_kind_scope(resource.group, resource.kind) == "cluster" else resource.namespace


def _read_labels(resource: KrmResource) -> tuple[tuple[_Candidate, ...], tuple[ResourceIssue, ...]]:
    named: list[_Candidate] = []
    issues: list[ResourceIssue] = []
    for label, kind in (
        (CLUSTER_OVERRIDE_POLICY_LABEL, CLUSTER_OVERRIDE_POLICY_KIND),
        (OVERRIDE_POLICY_LABEL, OVERRIDE_POLICY_KIND),
    ):
        if label not in resource.labels:
            continue
        value, namespace = resource.labels[label], get_stated_namespace(resource)
        if kind == OVERRIDE_POLICY_KIND and not namespace:
            issues.append(
                _create_issue(
                    PolicyCodes.OVERRIDE_POLICY_LABEL_IGNORED,
                    f"the label {label} has no effect, because the resource has no namespace",
                    label,
                )
            )
        elif not isinstance(value, str):
            issues.append(_create_issue(PolicyCodes.MAP_MALFORMED, f"the label {label} must be a string", label))
        elif not value:
            article = "an" if kind == OVERRIDE_POLICY_KIND else "a"
            message = f'the label {label} must be the name of {article} {kind}, but is ""'
            issues.append(_create_issue(PolicyCodes.POLICY_NAME_EMPTY, message, label))
        else:
            key = build_override_policy_key(kind, namespace, value)
            named.append(_Candidate(key, f"the label {label} refers to {key}", ("metadata", "labels", label)))
    return tuple(named), tuple(issues)


def _find_policy(candidate: _Candidate, policies: OverridePolicies) -> OverridePolicy | ResourceIssue:
    key, how = candidate.key, candidate.message_prefix
    if key in policies.valid:
        return policies.valid[key]
    if key in policies.duplicates:
        return ResourceIssue(
            PolicyCodes.POLICY_DUPLICATE, f"{how}, but this policy is defined twice in the config", candidate.path
        )
    if key in policies.invalid:
        return ResourceIssue(PolicyCodes.POLICY_INVALID, f"{how}, but this policy is invalid", candidate.path)
    unread = "" if policies.is_complete else " or is in an unreadable file"
    return ResourceIssue(PolicyCodes.POLICY_NOT_FOUND, f"{how}, but this policy does not exist{unread}", candidate.path)


def _create_issue(code: FindingCode, message: str, label: str) -> ResourceIssue:
    return ResourceIssue(code, message, ("metadata", "labels", label))


def check_list_labels(data: Any) -> Iterator[ResourceIssue]:
    """Yield a warning for every policy label on a List or on an item of a List, because these labels have no effect."""
    items = get_value(data, ("items",))
    objects = [
        ((), data),
        *((("items", index), entry) for index, entry in enumerate(items if isinstance(items, list) else ())),
    ]
    for path, entry in objects:
        labels = get_value(entry, ("metadata", "labels"))
        if isinstance(labels, dict) and has_override_policy_label(labels):
            names = [label for label in (CLUSTER_OVERRIDE_POLICY_LABEL, OVERRIDE_POLICY_LABEL) if label in labels]
            subject = f"the label {names[0]} has" if len(names) == 1 else f"the labels {' and '.join(names)} have"
            message = (
                f"{subject} no effect, because override policies do not apply to a List or to its items. Next step:"
                " write each item as a separate document"
            )
            yield ResourceIssue(PolicyCodes.OVERRIDE_POLICY_LABEL_IGNORED, message, (*path, "metadata", "labels"))
