"""Tests of the merge schemas of built-in Kubernetes kinds."""

from __future__ import annotations

import pytest

from reconciler.krm.schema import load_builtin_merge_schemas
from reconciler.krm.schema.merge_schemas import ATOMIC_SCHEMA, UNKNOWN_SCHEMA, MergeSchema

POD_SPECS = [
    ("v1", "Pod", "spec"),
    ("v1", "PodTemplate", "template/spec"),
    ("v1", "ReplicationController", "spec/template/spec"),
    ("apps/v1", "DaemonSet", "spec/template/spec"),
    ("apps/v1", "Deployment", "spec/template/spec"),
    ("apps/v1", "ReplicaSet", "spec/template/spec"),
    ("apps/v1", "StatefulSet", "spec/template/spec"),
    ("batch/v1", "CronJob", "spec/jobTemplate/spec/template/spec"),
    ("batch/v1", "Job", "spec/template/spec"),
    ("apps/v1beta1", "Deployment", "spec/template/spec"),
    ("apps/v1beta1", "StatefulSet", "spec/template/spec"),
    ("apps/v1beta2", "DaemonSet", "spec/template/spec"),
    ("apps/v1beta2", "ReplicaSet", "spec/template/spec"),
    ("batch/v1beta1", "CronJob", "spec/jobTemplate/spec/template/spec"),
    ("batch/v2alpha1", "CronJob", "spec/jobTemplate/spec/template/spec"),
    ("extensions/v1beta1", "DaemonSet", "spec/template/spec"),
    ("extensions/v1beta1", "Deployment", "spec/template/spec"),
    ("extensions/v1beta1", "ReplicaSet", "spec/template/spec"),
]
POD_LISTS = {
    "containers": ("name",),
    "initContainers": ("name",),
    "ephemeralContainers": ("name",),
    "volumes": ("name",),
    "imagePullSecrets": ("name",),
    "hostAliases": ("ip",),
    "topologySpreadConstraints": ("topologyKey", "whenUnsatisfiable"),
    **{
        f"{containers}/[]/{field}": keys
        for containers in ("containers", "initContainers", "ephemeralContainers")
        for field, keys in {
            "env": ("name",),
            "volumeMounts": ("mountPath",),
            "volumeDevices": ("devicePath",),
            "ports": ("containerPort", "protocol"),
        }.items()
    },
}
CONDITIONS = [
    ("apiregistration.k8s.io/v1", "APIService"),
    ("apiregistration.k8s.io/v1beta1", "APIService"),
    ("apps/v1", "DaemonSet"),
    ("apps/v1", "Deployment"),
    ("apps/v1", "ReplicaSet"),
    ("apps/v1", "StatefulSet"),
    ("batch/v1", "Job"),
    ("policy/v1", "PodDisruptionBudget"),
    ("policy/v1beta1", "PodDisruptionBudget"),
    ("v1", "Namespace"),
    ("v1", "Node"),
    ("v1", "PersistentVolumeClaim"),
    ("v1", "Pod"),
    ("v1", "ReplicationController"),
    ("v1", "Service"),
]
MERGED = [
    *((api, kind, f"{spec}/{path}", keys) for api, kind, spec in POD_SPECS for path, keys in POD_LISTS.items()),
    *((api, kind, "status/conditions", ("type",)) for api, kind in CONDITIONS),
    ("v1", "Service", "spec/ports", ("port", "protocol")),
    ("v1", "ServiceAccount", "secrets", ("name",)),
    ("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration", "webhooks", ("name",)),
    ("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "webhooks", ("name",)),
    ("admissionregistration.k8s.io/v1beta1", "MutatingWebhookConfiguration", "webhooks", ("name",)),
    ("admissionregistration.k8s.io/v1beta1", "ValidatingWebhookConfiguration", "webhooks", ("name",)),
    ("storage.k8s.io/v1", "CSINode", "spec/drivers", ("name",)),
    ("storage.k8s.io/v1beta1", "CSINode", "spec/drivers", ("name",)),
    ("v1", "ComponentStatus", "conditions", ("type",)),
    ("v1", "ConfigMap", "metadata/ownerReferences", ("uid",)),
    ("v1", "ConfigMap", "metadata/finalizers", ()),
    ("policy/v1beta1", "PodSecurityPolicy", "metadata/finalizers", ()),
    ("apps/v1", "Deployment", "spec/template/metadata/finalizers", ()),
    ("batch/v1", "CronJob", "spec/jobTemplate/metadata/ownerReferences", ("uid",)),
    ("v1", "Node", "spec/podCIDRs", ()),
    ("v1", "Node", "status/addresses", ("type",)),
    ("v1", "Pod", "status/podIPs", ("ip",)),
]
# Lists of newer Kubernetes releases. docs/decisions/007-compact-schema-data.md lists them all.
NEWER = [
    ("v1", "Pod", "spec/schedulingGates", ("name",)),
    ("v1", "Pod", "spec/resourceClaims", ("name",)),
    ("v1", "Pod", "status/hostIPs", ("ip",)),
    ("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy", "spec/variables", ("name",)),
    ("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration", "webhooks/[]/matchConditions", ("name",)),
    ("autoscaling/v2", "HorizontalPodAutoscaler", "status/conditions", ("type",)),
    ("autoscaling/v2beta2", "HorizontalPodAutoscaler", "status/conditions", ("type",)),
]
WHOLE = [
    *(("v1", "Pod", f"spec/{field}") for field in ("tolerations", "readinessGates")),
    *(("v1", "Pod", f"spec/containers/[]/{field}") for field in ("args", "command", "envFrom")),
    ("networking.k8s.io/v1", "Ingress", "spec/rules"),
    ("networking.k8s.io/v1", "Ingress", "spec/tls"),
    ("extensions/v1beta1", "Ingress", "spec/rules"),
    ("rbac.authorization.k8s.io/v1", "Role", "rules"),
    ("rbac.authorization.k8s.io/v1", "RoleBinding", "subjects"),
    ("rbac.authorization.k8s.io/v1beta1", "ClusterRoleBinding", "subjects"),
    ("networking.k8s.io/v1", "NetworkPolicy", "spec/ingress"),
    ("networking.k8s.io/v1", "NetworkPolicy", "spec/egress"),
    ("networking.k8s.io/v1", "NetworkPolicy", "spec/ingress/[]/from"),
    ("apiextensions.k8s.io/v1", "CustomResourceDefinition", "spec/versions"),
    ("autoscaling/v2", "HorizontalPodAutoscaler", "spec/metrics"),
    ("discovery.k8s.io/v1", "EndpointSlice", "endpoints"),
    ("discovery.k8s.io/v1", "EndpointSlice", "ports"),
    ("certificates.k8s.io/v1", "CertificateSigningRequest", "status/conditions"),
    ("batch/v1", "CronJob", "status/active"),
    ("apps/v1", "StatefulSet", "spec/volumeClaimTemplates"),
    ("v1", "ServiceAccount", "imagePullSecrets"),
]


def find_schema_at(api_version: str, kind: str, path: str) -> MergeSchema:
    shape = load_builtin_merge_schemas().find_schema(api_version, kind)
    for step in path.split("/"):
        shape = shape.element_schema if step == "[]" else shape.find_field(step)
    return shape


@pytest.mark.parametrize(
    ("api_version", "kind", "path", "keys"),
    [pytest.param(*row, id=f"{row[0]}-{row[1]}-{row[2]}") for row in [*MERGED, *NEWER]],
)
def test_list_is_merged_by_keys(api_version: str, kind: str, path: str, keys: tuple[str, ...]) -> None:
    assert find_schema_at(api_version, kind, path).keys == keys


@pytest.mark.parametrize(
    ("api_version", "kind", "path"), [pytest.param(*row, id=f"{row[1]}-{row[2]}") for row in WHOLE]
)
def test_list_is_atomic(api_version: str, kind: str, path: str) -> None:
    assert find_schema_at(api_version, kind, path) is ATOMIC_SCHEMA


@pytest.mark.parametrize(
    ("api_version", "kind", "path"),
    [
        pytest.param("v1", "Service", "spec/ports", id="service"),
        pytest.param("v1", "Pod", "spec/containers/[]/ports", id="container"),
        pytest.param("v1", "Pod", "spec/initContainers/[]/ports", id="init-container"),
    ],
)
def test_port_without_protocol_is_a_tcp_port(api_version: str, kind: str, path: str) -> None:
    assert find_schema_at(api_version, kind, path).defaults == {"protocol": "TCP"}


@pytest.mark.parametrize(
    ("api_version", "kind"),
    [
        pytest.param("example.org/v1", "Deployment", id="another-group"),
        pytest.param("apps/v9", "Deployment", id="unknown-version"),
        pytest.param("v1", "Gadget", id="another-kind"),
        pytest.param("kpt.dev/v1", "Kptfile", id="a-kptfile-is-not-of-kubernetes"),
        pytest.param("", "", id="nothing"),
    ],
)
def test_unknown_kind_has_no_schema(api_version: str, kind: str) -> None:
    assert load_builtin_merge_schemas().find_schema(api_version, kind) is UNKNOWN_SCHEMA


def test_schemas_are_built_once() -> None:
    deployment, pod = (
        load_builtin_merge_schemas().find_schema("apps/v1", "Deployment"),
        load_builtin_merge_schemas().find_schema("v1", "Pod"),
    )

    assert load_builtin_merge_schemas().find_schema("apps/v1", "Deployment") is deployment
    assert deployment.find_field("spec").find_field("template").find_field("spec") is pod.find_field("spec")
