"""Scopes: which built-in kinds live in a namespace (kpt.md 15.2), by group and kind; the version does not matter."""

from __future__ import annotations

from typing import Literal

Scope = Literal["cluster", "namespaced"]

_CLUSTER = {
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
_SCOPES: dict[tuple[str, str], Scope] = {
    **{(group, kind): "cluster" for group, kinds in _CLUSTER.items() for kind in kinds.split()},
    **{(group, kind): "namespaced" for group, kinds in _NAMESPACED.items() for kind in kinds.split()},
}

# what a release does not have of these, it does not serve
GROUPS = frozenset(group for group, _ in _SCOPES)


def scope(group: str, kind: str) -> Scope | None:
    """Return the scope of a kind; None for custom resources, whose scope their definition says."""
    return _SCOPES.get((group, kind))
