"""Scopes: which built-in kinds live in a namespace (kpt.md 15.2), by group and kind; the version does not matter."""

from __future__ import annotations

from typing import Literal

from reconciler.packages.resource import Described

Scope = Literal["cluster", "namespaced", "unknown"]

_CLUSTER = {
    "": "Namespace Node PersistentVolume ComponentStatus",
    "admissionregistration.k8s.io": "MutatingWebhookConfiguration ValidatingWebhookConfiguration"
    " ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding",
    "apiextensions.k8s.io": "CustomResourceDefinition",
    "apiregistration.k8s.io": "APIService",
    "certificates.k8s.io": "CertificateSigningRequest",
    "flowcontrol.apiserver.k8s.io": "FlowSchema PriorityLevelConfiguration",
    "networking.k8s.io": "IngressClass",
    "node.k8s.io": "RuntimeClass",
    "policy": "PodSecurityPolicy",
    "rbac.authorization.k8s.io": "ClusterRole ClusterRoleBinding",
    "scheduling.k8s.io": "PriorityClass",
    "storage.k8s.io": "CSIDriver CSINode StorageClass VolumeAttachment",
}
_NAMESPACED = {
    "": "ConfigMap Endpoints Event LimitRange PersistentVolumeClaim Pod PodTemplate ReplicationController"
    " ResourceQuota Secret Service ServiceAccount",
    "apps": "ControllerRevision DaemonSet Deployment ReplicaSet StatefulSet",
    "autoscaling": "HorizontalPodAutoscaler",
    "batch": "CronJob Job",
    "coordination.k8s.io": "Lease",
    "discovery.k8s.io": "EndpointSlice",
    "events.k8s.io": "Event",
    "extensions": "Ingress",
    "networking.k8s.io": "Ingress NetworkPolicy",
    "policy": "PodDisruptionBudget",
    "rbac.authorization.k8s.io": "Role RoleBinding",
    "storage.k8s.io": "CSIStorageCapacity",
}
_SCOPES: dict[tuple[str, str], Scope] = {
    **{(group, kind): "cluster" for group, kinds in _CLUSTER.items() for kind in kinds.split()},
    **{(group, kind): "namespaced" for group, kinds in _NAMESPACED.items() for kind in kinds.split()},
}


def scope_of(resource: Described) -> Scope:
    """Return the scope of a resource's kind; custom resources are `unknown`."""
    return _SCOPES.get((resource.group, resource.kind), "unknown")
