"""Tests of name references: which fields refer to which kind."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.krm.field_text import format_path
from reconciler.packages.functions.function import Item
from reconciler.packages.functions.limits import FunctionBudget
from reconciler.packages.functions.name_references import find_renamed_references

PODS = {
    "v1 Pod": "spec",
    "v1 PodTemplate": "template.spec",
    "apps/v1 Deployment": "spec.template.spec",
    "apps/v1 ReplicaSet": "spec.template.spec",
    "apps/v1 DaemonSet": "spec.template.spec",
    "apps/v1 StatefulSet": "spec.template.spec",
    "batch/v1 Job": "spec.template.spec",
    "batch/v1 CronJob": "spec.jobTemplate.spec.template.spec",
}
IN_PODS = [
    ("v1 ConfigMap", "volumes[0].configMap.name"),
    ("v1 ConfigMap", "volumes[0].projected.sources[0].configMap.name"),
    ("v1 ConfigMap", "containers[0].env[0].valueFrom.configMapKeyRef.name"),
    ("v1 ConfigMap", "initContainers[0].envFrom[0].configMapRef.name"),
    ("v1 Secret", "volumes[0].secret.secretName"),
    ("v1 Secret", "volumes[0].projected.sources[0].secret.name"),
    ("v1 Secret", "initContainers[0].env[0].valueFrom.secretKeyRef.name"),
    ("v1 Secret", "containers[0].envFrom[0].secretRef.name"),
    ("v1 Secret", "imagePullSecrets[0].name"),
]
IN_RUNNING_PODS = [
    ("v1 ServiceAccount", "serviceAccountName"),
    ("v1 PersistentVolumeClaim", "volumes[0].persistentVolumeClaim.claimName"),
    ("scheduling.k8s.io/v1 PriorityClass", "priorityClassName"),
]
RBAC, NET, ADMISSION = "rbac.authorization.k8s.io/v1", "networking.k8s.io/v1", "admissionregistration.k8s.io/v1"
ELSEWHERE = [
    ("v1 ConfigMap", f"{RBAC} Role", "rules[0].resourceNames[0]"),
    ("v1 ConfigMap", "v1 Node", "spec.configSource.configMap.name"),
    ("v1 Secret", f"{NET} Ingress", "spec.tls[0].secretName"),
    ("v1 Secret", "v1 ServiceAccount", "imagePullSecrets[0].name"),
    ("v1 Secret", "storage.k8s.io/v1 StorageClass", "parameters.adminSecretName"),
    ("v1 Secret", f"{RBAC} ClusterRole", "rules[0].resourceNames[0]"),
    ("v1 Secret", "v1 PersistentVolume", "spec.azureFile.secretName"),
    ("v1 Service", "apps/v1 StatefulSet", "spec.serviceName"),
    ("v1 Service", "extensions/v1beta1 Ingress", "spec.rules[0].http.paths[0].backend.serviceName"),
    ("v1 Service", f"{NET} Ingress", "spec.rules[0].http.paths[0].backend.service.name"),
    ("v1 Service", f"{NET} Ingress", "spec.defaultBackend.service.name"),
    ("v1 Service", "apiregistration.k8s.io/v1 APIService", "spec.service.name"),
    ("v1 Service", f"{ADMISSION} MutatingWebhookConfiguration", "webhooks[0].clientConfig.service.name"),
    (f"{RBAC} Role", f"{RBAC} RoleBinding", "roleRef.name"),
    (f"{RBAC} ClusterRole", f"{RBAC} RoleBinding", "roleRef.name"),
    (f"{RBAC} ClusterRole", f"{RBAC} ClusterRoleBinding", "roleRef.name"),
    ("v1 ServiceAccount", f"{RBAC} RoleBinding", "subjects[0].name"),
    ("v1 ServiceAccount", f"{RBAC} ClusterRoleBinding", "subjects[0].name"),
    ("v1 PersistentVolume", "v1 PersistentVolumeClaim", "spec.volumeName"),
    ("v1 PersistentVolume", f"{RBAC} ClusterRole", "rules[0].resourceNames[0]"),
    ("storage.k8s.io/v1 StorageClass", "v1 PersistentVolumeClaim", "spec.storageClassName"),
    ("storage.k8s.io/v1 StorageClass", "apps/v1 StatefulSet", "spec.volumeClaimTemplates[0].spec.storageClassName"),
    ("apps/v1 Deployment", "autoscaling/v2 HorizontalPodAutoscaler", "spec.scaleTargetRef.name"),
    ("apps/v1 StatefulSet", "autoscaling/v1 HorizontalPodAutoscaler", "spec.scaleTargetRef.name"),
    (f"{NET} IngressClass", f"{NET} Ingress", "spec.ingressClassName"),
    (f"{ADMISSION} ValidatingAdmissionPolicy", f"{ADMISSION} ValidatingAdmissionPolicyBinding", "spec.policyName"),
]
ROWS = [
    *((target, kind, f"{spec}.{path}") for target, path in IN_PODS for kind, spec in PODS.items()),
    *(
        (target, kind, f"{spec}.{path}")
        for target, path in IN_RUNNING_PODS
        for kind, spec in PODS.items()
        if "Template" not in kind and "ReplicaSet" not in kind
    ),
    *ELSEWHERE,
]


def build_resource(kind: str, name: str, namespace: str = "", **fields: Any) -> Item:
    """Return a resource. `kind` contains its version, as in `v1 Pod`."""
    api_version, kind_name = kind.split()
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    return Item("", "r.yaml", 0, {"apiVersion": api_version, "kind": kind_name, "metadata": metadata, **fields}, 0)


def build_nested(path: str, value: Any) -> Any:
    """Return data with a value at a path. Every list has one element."""
    for part in reversed(path.split(".")):
        name, bracket, _ = part.partition("[")
        value = {name: [value] if bracket else value}
    return value


@pytest.mark.parametrize(("target", "referrer", "path"), [pytest.param(*row, id=" ".join(row)) for row in ROWS])
def test_known_references(target: str, referrer: str, path: str) -> None:
    renamed = build_resource(target, "old")
    item = build_resource(referrer, "me", **build_nested(path, "old"))
    renamed_references = find_renamed_references([item], {renamed: "new"}, FunctionBudget())[item]

    assert [(format_path(at), name) for at, name in renamed_references] == [(path, "new")]


BINDING, ACCOUNT = f"{RBAC} RoleBinding", "v1 ServiceAccount"


@pytest.mark.parametrize(
    ("target", "item", "follows"),
    [
        pytest.param(
            build_resource("v1 ConfigMap", "old", "a"),
            build_resource("v1 Pod", "me", "b", **build_nested("spec.volumes[0].configMap.name", "old")),
            False,
            id="another-namespace",
        ),
        pytest.param(
            build_resource("v1 ConfigMap", "old", "default"),
            build_resource("v1 Pod", "me", **build_nested("spec.volumes[0].configMap.name", "old")),
            True,
            id="default-is-no-namespace",
        ),
        pytest.param(
            build_resource("v1 ConfigMap", "other"),
            build_resource("v1 Pod", "me", **build_nested("spec.volumes[0].configMap.name", "old")),
            False,
            id="another-name",
        ),
        pytest.param(
            build_resource(ACCOUNT, "old", "a"),
            build_resource(BINDING, "me", "b", subjects=[{"kind": "ServiceAccount", "name": "old", "namespace": "a"}]),
            True,
            id="namespace-of-a-subject",
        ),
        pytest.param(
            build_resource(ACCOUNT, "old", "a"),
            build_resource(BINDING, "me", "a", subjects=[{"kind": "ServiceAccount", "name": "old", "namespace": "b"}]),
            False,
            id="an-account-elsewhere",
        ),
        pytest.param(
            build_resource(ACCOUNT, "old", "a"),
            build_resource(BINDING, "me", "a", subjects=[{"kind": "User", "name": "old"}]),
            False,
            id="a-user-of-that-name",
        ),
        pytest.param(
            build_resource(f"{RBAC} Role", "old", "a"),
            build_resource(BINDING, "me", "a", roleRef={"kind": "ClusterRole", "name": "old"}),
            False,
            id="a-cluster-role-of-that-name",
        ),
        pytest.param(
            build_resource("serving.knative.dev/v1 Service", "old"),
            build_resource("apps/v1 StatefulSet", "me", spec={"serviceName": "old"}),
            False,
            id="the-kind-of-another-group",
        ),
    ],
)
def test_reference_refers_to_the_renamed_resource(target: Item, item: Item, follows: bool) -> None:
    assert bool(find_renamed_references([item], {target: "new"}, FunctionBudget())[item]) is follows
