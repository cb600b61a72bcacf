"""API versions that Kubernetes has given up: since when, from when on they are gone, and what is instead.

Facts of its deprecation guide. Alpha versions, which clusters serve only where they are switched on, are not in it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

Release = tuple[int, int]
"""A minor version of Kubernetes: 1.31 is (1, 31)."""


@dataclass(frozen=True)
class Removal:
    """An API version of a kind that goes, or has gone; `instead` is the one to write, or what to do."""

    deprecated: Release
    gone: Release
    instead: str


_WEBHOOKS = "MutatingWebhookConfiguration ValidatingWebhookConfiguration"
_REVIEWS = "LocalSubjectAccessReview SelfSubjectAccessReview SelfSubjectRulesReview SubjectAccessReview"
_FLOW = "FlowSchema PriorityLevelConfiguration"
_POLICIES = "ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding"
# deprecated in 1.x, gone in 1.y, the version, its kinds, what is instead
_TABLE: Final = (
    (9, 16, "extensions/v1beta1", "DaemonSet Deployment ReplicaSet", "apps/v1"),
    (9, 16, "extensions/v1beta1", "NetworkPolicy", "networking.k8s.io/v1"),
    (9, 16, "extensions/v1beta1", "PodSecurityPolicy", "Pod Security Admission, by labels of namespaces"),
    (9, 16, "apps/v1beta1", "ControllerRevision Deployment StatefulSet", "apps/v1"),
    (9, 16, "apps/v1beta2", "ControllerRevision DaemonSet Deployment ReplicaSet StatefulSet", "apps/v1"),
    (16, 22, "admissionregistration.k8s.io/v1beta1", _WEBHOOKS, "admissionregistration.k8s.io/v1"),
    (16, 22, "apiextensions.k8s.io/v1beta1", "CustomResourceDefinition", "apiextensions.k8s.io/v1"),
    (19, 22, "apiregistration.k8s.io/v1beta1", "APIService", "apiregistration.k8s.io/v1"),
    (19, 22, "authentication.k8s.io/v1beta1", "TokenReview", "authentication.k8s.io/v1"),
    (19, 22, "authorization.k8s.io/v1beta1", _REVIEWS, "authorization.k8s.io/v1"),
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
    (21, 25, "policy/v1beta1", "PodSecurityPolicy", "Pod Security Admission, by labels of namespaces"),
    (20, 25, "node.k8s.io/v1beta1", "RuntimeClass", "node.k8s.io/v1"),
    (23, 26, "autoscaling/v2beta2", "HorizontalPodAutoscaler", "autoscaling/v2"),
    (23, 26, "flowcontrol.apiserver.k8s.io/v1beta1", _FLOW, "flowcontrol.apiserver.k8s.io/v1, there from 1.29 on"),
    (24, 27, "storage.k8s.io/v1beta1", "CSIStorageCapacity", "storage.k8s.io/v1"),
    (26, 29, "flowcontrol.apiserver.k8s.io/v1beta2", _FLOW, "flowcontrol.apiserver.k8s.io/v1, there from 1.29 on"),
    (29, 32, "flowcontrol.apiserver.k8s.io/v1beta3", _FLOW, "flowcontrol.apiserver.k8s.io/v1, there from 1.29 on"),
    (30, 34, "admissionregistration.k8s.io/v1beta1", _POLICIES, "admissionregistration.k8s.io/v1"),
    (33, 37, "networking.k8s.io/v1beta1", "IPAddress ServiceCIDR", "networking.k8s.io/v1"),
    (34, 37, "storage.k8s.io/v1beta1", "VolumeAttributesClass", "storage.k8s.io/v1"),
)  # fmt: skip
_REMOVALS: Final = {
    (api_version, kind): Removal((1, deprecated), (1, gone), instead)
    for deprecated, gone, api_version, kinds, instead in _TABLE
    for kind in kinds.split()
}


def removal(api_version: str, kind: str) -> Removal | None:
    """Return from when on an API version of a kind is gone; None for one that stays, as far as is known."""
    return _REMOVALS.get((api_version, kind))


def read_release(text: str) -> Release | None:
    """Return the release that a text names: 1.31, v1.31.4 or v1.31.4-eks-1; None for no version."""
    parts = text.removeprefix("v").split(".")
    if len(parts) < 2 or not all(part.isdecimal() and len(part) < 4 for part in parts[:2]):
        return None
    return int(parts[0]), int(parts[1])


def release_words(release: Release) -> str:
    """Return a release as people say it."""
    return f"{release[0]}.{release[1]}"
