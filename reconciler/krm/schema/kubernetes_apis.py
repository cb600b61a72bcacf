"""Data about built-in Kubernetes APIs: scopes of kinds, removed API versions, and field names.

`scripts/make_schema_data.py` generates the data about field names. The data contains no types and no allowed values.
The schemas of the optional extra `k8s-schemas` contain types and allowed values.

The list of removed API versions is a copy of the list in the Kubernetes deprecation guide. Alpha versions are not
included, because API servers serve alpha versions only if an administrator enables them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Final, Literal

from reconciler.lazy_dataclasses import dataclass

KindScope = Literal["cluster", "namespaced"]

_CLUSTER_SCOPED = {
    "": "ComponentStatus Namespace Node PersistentVolume",
    "admissionregistration.k8s.io": "MutatingAdmissionPolicy MutatingAdmissionPolicyBinding"
    " MutatingWebhookConfiguration ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding"
    " ValidatingWebhookConfiguration",
    "apiextensions.k8s.io": "CustomResourceDefinition",
    "apiregistration.k8s.io": "APIService",
    "authentication.k8s.io": "SelfSubjectReview TokenReview",
    "authorization.k8s.io": "SelfSubjectAccessReview SelfSubjectRulesReview SubjectAccessReview",
    "certificates.k8s.io": "CertificateSigningRequest ClusterTrustBundle",
    "extensions": "PodSecurityPolicy",
    "flowcontrol.apiserver.k8s.io": "FlowSchema PriorityLevelConfiguration",
    "internal.apiserver.k8s.io": "StorageVersion",
    "networking.k8s.io": "ClusterCIDR IPAddress IngressClass ServiceCIDR",
    "node.k8s.io": "RuntimeClass",
    "policy": "PodSecurityPolicy",
    "rbac.authorization.k8s.io": "ClusterRole ClusterRoleBinding",
    "resource.k8s.io": "DeviceClass DeviceTaintRule ResourceClass ResourceSlice",
    "scheduling.k8s.io": "PriorityClass",
    "storage.k8s.io": "CSIDriver CSINode StorageClass VolumeAttachment VolumeAttributesClass",
    "storagemigration.k8s.io": "StorageVersionMigration",
}
_NAMESPACED = {
    "": "Binding ConfigMap Endpoints Event LimitRange PersistentVolumeClaim Pod PodTemplate ReplicationController"
    " ResourceQuota Secret Service ServiceAccount",
    "apps": "ControllerRevision DaemonSet Deployment ReplicaSet StatefulSet",
    "authorization.k8s.io": "LocalSubjectAccessReview",
    "autoscaling": "HorizontalPodAutoscaler",
    "batch": "CronJob Job",
    "certificates.k8s.io": "PodCertificateRequest",
    "coordination.k8s.io": "Lease LeaseCandidate",
    "discovery.k8s.io": "EndpointSlice",
    "events.k8s.io": "Event",
    "extensions": "DaemonSet Deployment Ingress NetworkPolicy ReplicaSet",
    "networking.k8s.io": "Ingress NetworkPolicy",
    "policy": "Eviction PodDisruptionBudget",
    "rbac.authorization.k8s.io": "Role RoleBinding",
    "resource.k8s.io": "PodScheduling PodSchedulingContext ResourceClaim ResourceClaimParameters ResourceClaimTemplate"
    " ResourceClassParameters",
    "scheduling.k8s.io": "CompositePodGroup PodGroup Workload",
    "storage.k8s.io": "CSIStorageCapacity",
}
_SCOPES: dict[tuple[str, str], KindScope] = {
    **{(group, kind): "cluster" for group, kinds in _CLUSTER_SCOPED.items() for kind in kinds.split()},
    **{(group, kind): "namespaced" for group, kinds in _NAMESPACED.items() for kind in kinds.split()},
}

# API groups of built-in kinds. If the schemas of a Kubernetes release do not contain a kind of these groups, the
# release does not serve the kind.
BUILTIN_GROUPS = frozenset(group for group, _ in _SCOPES)


def find_kind_scope(group: str, kind: str) -> KindScope | None:
    """Return the scope of a built-in kind. Return None if the kind is not built in."""
    return _SCOPES.get((group, kind))


KubernetesRelease = tuple[int, int]
"""A minor version of Kubernetes, e.g. (1, 31) for Kubernetes 1.31."""


@dataclass(frozen=True)
class ApiRemoval:
    """The deprecation and removal of one API version of a kind.

    `replacement` is the API version to use instead, or a short instruction if no API version replaces the kind.
    """

    deprecated_in: KubernetesRelease
    removed_in: KubernetesRelease
    replacement: str


_WEBHOOK_KINDS = "MutatingWebhookConfiguration ValidatingWebhookConfiguration"
_REVIEW_KINDS = "LocalSubjectAccessReview SelfSubjectAccessReview SelfSubjectRulesReview SubjectAccessReview"
_FLOW_CONTROL_KINDS = "FlowSchema PriorityLevelConfiguration"
_ADMISSION_POLICY_KINDS = "ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding"
# Columns: minor version of the deprecation, minor version of the removal, API version, kinds, replacement.
_REMOVAL_TABLE: Final = (
    (9, 16, "extensions/v1beta1", "DaemonSet Deployment ReplicaSet", "apps/v1"),
    (9, 16, "extensions/v1beta1", "NetworkPolicy", "networking.k8s.io/v1"),
    (9, 16, "extensions/v1beta1", "PodSecurityPolicy", "Pod Security Admission, configured by namespace labels"),
    (9, 16, "apps/v1beta1", "ControllerRevision Deployment StatefulSet", "apps/v1"),
    (9, 16, "apps/v1beta2", "ControllerRevision DaemonSet Deployment ReplicaSet StatefulSet", "apps/v1"),
    (16, 22, "admissionregistration.k8s.io/v1beta1", _WEBHOOK_KINDS, "admissionregistration.k8s.io/v1"),
    (16, 22, "apiextensions.k8s.io/v1beta1", "CustomResourceDefinition", "apiextensions.k8s.io/v1"),
    (19, 22, "apiregistration.k8s.io/v1beta1", "APIService", "apiregistration.k8s.io/v1"),
    (19, 22, "authentication.k8s.io/v1beta1", "TokenReview", "authentication.k8s.io/v1"),
    (19, 22, "authorization.k8s.io/v1beta1", _REVIEW_KINDS, "authorization.k8s.io/v1"),
    (19, 22, "certificates.k8s.io/v1beta1", "CertificateSigningRequest", "certificates.k8s.io/v1"),
    (19, 22, "coordination.k8s.io/v1beta1", "Lease", "coordination.k8s.io/v1"),
    (14, 22, "extensions/v1beta1", "Ingress", "networking.k8s.io/v1"),
    (19, 22, "networking.k8s.io/v1beta1", "Ingress IngressClass", "networking.k8s.io/v1"),
    (17, 22, "rbac.authorization.k8s.io/v1beta1", "ClusterRole ClusterRoleBinding Role RoleBinding",
     "rbac.authorization.k8s.io/v1"),
    (14, 22, "scheduling.k8s.io/v1beta1", "PriorityClass", "scheduling.k8s.io/v1"),
    (19, 22, "storage.k8s.io/v1beta1", "CSIDriver CSINode StorageClass VolumeAttachment", "storage.k8s.io/v1"),
    (21, 25, "batch/v1beta1", "CronJob", "batch/v1"),
    (21, 25, "discovery.k8s.io/v1beta1", "EndpointSlice", "discovery.k8s.io/v1"),
    (19, 25, "events.k8s.io/v1beta1", "Event", "events.k8s.io/v1"),
    (22, 25, "autoscaling/v2beta1", "HorizontalPodAutoscaler", "autoscaling/v2"),
    (21, 25, "policy/v1beta1", "PodDisruptionBudget", "policy/v1"),
    (21, 25, "policy/v1beta1", "PodSecurityPolicy", "Pod Security Admission, configured by namespace labels"),
    (20, 25, "node.k8s.io/v1beta1", "RuntimeClass", "node.k8s.io/v1"),
    (23, 26, "autoscaling/v2beta2", "HorizontalPodAutoscaler", "autoscaling/v2"),
    (23, 26, "flowcontrol.apiserver.k8s.io/v1beta1", _FLOW_CONTROL_KINDS,
     "flowcontrol.apiserver.k8s.io/v1, available since 1.29"),
    (24, 27, "storage.k8s.io/v1beta1", "CSIStorageCapacity", "storage.k8s.io/v1"),
    (26, 29, "flowcontrol.apiserver.k8s.io/v1beta2", _FLOW_CONTROL_KINDS,
     "flowcontrol.apiserver.k8s.io/v1, available since 1.29"),
    (29, 32, "flowcontrol.apiserver.k8s.io/v1beta3", _FLOW_CONTROL_KINDS,
     "flowcontrol.apiserver.k8s.io/v1, available since 1.29"),
    (30, 34, "admissionregistration.k8s.io/v1beta1", _ADMISSION_POLICY_KINDS, "admissionregistration.k8s.io/v1"),
    (33, 37, "networking.k8s.io/v1beta1", "IPAddress ServiceCIDR", "networking.k8s.io/v1"),
    (34, 37, "storage.k8s.io/v1beta1", "VolumeAttributesClass", "storage.k8s.io/v1"),
)  # fmt: skip
_REMOVALS: Final = {
    (api_version, kind): ApiRemoval((1, deprecated), (1, gone), instead)
    for deprecated, gone, api_version, kinds, instead in _REMOVAL_TABLE
    for kind in kinds.split()
}


def find_api_removal(api_version: str, kind: str) -> ApiRemoval | None:
    """Return the deprecation and removal of an API version of a kind. Return None if no removal is known."""
    return _REMOVALS.get((api_version, kind))


def parse_kubernetes_release(text: str) -> KubernetesRelease | None:
    """Parse a Kubernetes version, e.g. "v1.31.4" -> (1, 31). Return None if the text is not a version.

    A text such as "1.31" or "v1.31.4-eks-1" is also a version.
    """
    parts = text.removeprefix("v").split(".")
    if len(parts) < 2 or not all(part.isdecimal() and len(part) < 4 for part in parts[:2]):
        return None
    return int(parts[0]), int(parts[1])


def format_kubernetes_release(release: KubernetesRelease) -> str:
    """Return a Kubernetes release as text, e.g. (1, 31) -> "1.31"."""
    return f"{release[0]}.{release[1]}"


_LIST = "[]"


@dataclass(frozen=True)
class UnknownField:
    """The first field name in a path that does not exist in the schema.

    Attributes:
        step_index: Index of the unknown field name in the path, from 0.
        allowed_fields: The field names that the schema allows instead of the unknown field name.
    """

    step_index: int
    allowed_fields: tuple[str, ...]


def find_unknown_field(api_version: str, kind: str, path: Sequence[str]) -> UnknownField | None:
    """Return the first field name in `path` that no Kubernetes release defines for this kind.

    Return None if all field names are known, or if the schema is unknown. Return None too if the path continues below a
    map that allows any keys, e.g. `labels`. List indexes, list filters and "-" in the path are not checked.
    """
    field_type = _load_field_names()["kinds"].get(api_version, {}).get(kind, "")
    for index, step in enumerate(path):
        if field_type.startswith(_LIST):
            field_type = field_type.removeprefix(_LIST)
            continue
        if not field_type:
            return None
        fields = _get_fields(field_type)
        if step not in fields:
            return UnknownField(index, tuple(fields))
        field_type = fields[step]
    return None


@cache
def _load_field_names() -> Mapping[str, Mapping[str, Mapping[str, str]]]:
    data: Mapping[str, Mapping[str, Mapping[str, str]]]
    data = json.loads(resources.files(__package__).joinpath("field_names.json").read_bytes())
    return data


@cache
def _get_fields(definition: str) -> Mapping[str, str]:
    """Return the type of each field, e.g. {"template": "core.v1.PodTemplateSpec"} for "apps.v1.DeploymentSpec".

    The type of a list begins with "[]". The type "" allows any value.
    """
    text = str(_load_field_names()["fields"][definition])
    return {name: field_type for name, _, field_type in (entry.partition(":") for entry in text.split())}
