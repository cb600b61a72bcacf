"""References to resource names: fields that contain the name of another resource, and the annotation `depends-on`.

Functions that rename resources use this module to update the references. The list of fields is the same as in
kustomize.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import re2

from reconciler.krm.yaml import DataPath
from reconciler.lazy_dataclasses import dataclass, replace
from reconciler.packages.functions.field_specs import FieldSpec, get_resource_scope
from reconciler.packages.functions.function import Item, get_value_at
from reconciler.packages.functions.limits import FunctionBudget, estimate_text_bytes
from reconciler.packages.resource import KrmResource

DEPENDS_ON = "config.kubernetes.io/depends-on"
_NAMESPACED = re2.compile(r"([-.\w]*)/namespaces/([-.\w]*)/([-.\w]*)/([-.\w]*)")
_CLUSTER = re2.compile(r"([-.\w]*)/([-.\w]*)/([-.\w]*)")
_DEFAULT_NAMESPACE = "default"


@dataclass(frozen=True)
class Dependency:
    """One entry of the annotation `depends-on`: `<group>/namespaces/<namespace>/<kind>/<name>`.

    The entry of a cluster-scoped resource is `<group>/<kind>/<name>`.
    """

    group: str
    namespace: str
    kind: str
    name: str

    def __str__(self) -> str:
        """Return the entry in the format of the annotation."""
        namespace_part = f"namespaces/{self.namespace}/" if self.namespace else ""
        return f"{self.group}/{namespace_part}{self.kind}/{self.name}"

    def refers_to(self, resource: KrmResource) -> bool:
        """Return whether the entry refers to `resource`. A resource without a namespace is in `default`."""
        has_same_name = (self.group, self.kind, self.name) == (resource.group, resource.kind, resource.name)
        return has_same_name and self.namespace in ("", resource.namespace or _DEFAULT_NAMESPACE)


def parse_dependency(entry: str) -> Dependency | None:
    """Parse one entry of the annotation `depends-on`. Return None if the text is invalid."""
    if match := _NAMESPACED.fullmatch(entry.strip()):
        group, namespace, kind, name = match.groups()
        return Dependency(group, namespace, kind, name)
    if match := _CLUSTER.fullmatch(entry.strip()):
        group, kind, name = match.groups()
        return Dependency(group, "", kind, name)
    return None


def rename_dependencies(annotation: str, renamed: Mapping[Item, str], budget: FunctionBudget) -> str:
    """Replace the names of renamed resources in the annotation `depends-on`. Return the annotation.

    Raises:
        LimitError: The annotation exceeds the remaining budget.
    """
    entries = annotation.split(",")
    budget.charge_steps(len(entries) * len(renamed))
    new_entries = []
    for entry in entries:
        new_entries.append(_rename_dependency(entry, renamed))
        budget.charge_output(estimate_text_bytes(new_entries[-1]), f"the annotation {DEPENDS_ON}", annotation)
    return ",".join(new_entries)


def _rename_dependency(entry: str, renamed: Mapping[Item, str]) -> str:
    dependency = parse_dependency(entry)
    name = next((name for item, name in renamed.items() if dependency and dependency.refers_to(item)), None)
    return entry if dependency is None or name is None else str(replace(dependency, name=name))


_TEMPLATE, _CRON = "spec/template/spec", "spec/jobTemplate/spec/template/spec"
_PODS: Mapping[str, str] = {
    "Pod": "spec",
    "PodTemplate": "template/spec",
    **dict.fromkeys(("Deployment", "ReplicaSet", "DaemonSet", "StatefulSet", "Job"), _TEMPLATE),
    "CronJob": _CRON,
}
# The kinds whose pods are searched for service accounts, volume claims and priority classes. kustomize uses a different
# list of kinds for these references.
_RUNNING_PODS: Mapping[str, str] = {
    "Pod": "spec",
    **dict.fromkeys(("StatefulSet", "Deployment", "ReplicationController", "Job", "DaemonSet"), _TEMPLATE),
    "CronJob": _CRON,
}
_CORE, _RBAC = "", "rbac.authorization.k8s.io"
_ADMISSION, _STORAGE = "admissionregistration.k8s.io", "storage.k8s.io"
_INGRESS = "metadata/annotations/{}ingress.kubernetes.io\\/{}"


@dataclass(frozen=True)
class _Reference:
    """A field that contains the name of a resource of kind `kind` in API group `group`. None means any API group."""

    group: str | None
    kind: str
    field: FieldSpec


def _iterate_references(
    group: str | None, kind: str, referrers: Sequence[str], *paths: str, referrer_group: str | None = None
) -> Iterator[_Reference]:
    """Yield the fields that contain names of resources of `kind` in `group`.

    These are the fields at `paths` in all resources whose kind is in `referrers` and whose API group is
    `referrer_group`.
    """
    return (_Reference(group, kind, FieldSpec(path, name, referrer_group)) for name in referrers for path in paths)


def _iterate_pod_references(group: str, kind: str, pods: Mapping[str, str], *paths: str) -> Iterator[_Reference]:
    """Yield the fields that contain names of resources of `kind` in `group`.

    These are the fields at all `paths` in the pod specs of `pods`. `pods` maps each kind to the path of its pod spec.
    """
    for name, spec in pods.items():
        yield from _iterate_references(group, kind, [name], *(f"{spec}/{path}" for path in paths))


def _expand_container_path(path: str) -> tuple[str, str]:
    return f"containers[]/{path}", f"initContainers[]/{path}"


_REFERENCES = (
    *_iterate_pod_references(
        _CORE,
        "ConfigMap",
        _PODS,
        "volumes[]/configMap/name",
        "volumes[]/projected/sources[]/configMap/name",
        *_expand_container_path("env[]/valueFrom/configMapKeyRef/name"),
        *_expand_container_path("envFrom[]/configMapRef/name"),
    ),
    *_iterate_references(_CORE, "ConfigMap", ["Role", "ClusterRole"], "rules[]/resourceNames"),
    *_iterate_references(_CORE, "ConfigMap", ["Node"], "spec/configSource/configMap"),
    *_iterate_references(_CORE, "ConfigMap", ["Ingress"], _INGRESS.format("nginx.", "fastcgi-params-configmap")),
    *_iterate_pod_references(
        _CORE,
        "Secret",
        _PODS,
        "volumes[]/secret/secretName",
        "volumes[]/projected/sources[]/secret/name",
        *_expand_container_path("env[]/valueFrom/secretKeyRef/name"),
        *_expand_container_path("envFrom[]/secretRef/name"),
        "imagePullSecrets[]/name",
    ),
    *_iterate_references(
        _CORE,
        "Secret",
        ["Ingress"],
        "spec/tls[]/secretName",
        _INGRESS.format("", "auth-secret"),
        _INGRESS.format("nginx.", "auth-secret"),
        _INGRESS.format("nginx.", "auth-tls-secret"),
    ),
    *_iterate_references(_CORE, "Secret", ["ServiceAccount"], "imagePullSecrets[]/name"),
    *_iterate_references(
        _CORE,
        "Secret",
        ["StorageClass"],
        *(f"parameters/{name}" for name in ("secretName", "adminSecretName", "userSecretName", "secretRef")),
    ),
    *_iterate_references(_CORE, "Secret", ["Role", "ClusterRole"], "rules[]/resourceNames"),
    *_iterate_references(_CORE, "Secret", ["PersistentVolume"], "spec/azureFile/secretName"),
    *_iterate_references(_CORE, "Service", ["StatefulSet"], "spec/serviceName", referrer_group="apps"),
    *_iterate_references(
        _CORE,
        "Service",
        ["Ingress"],
        "spec/rules[]/http/paths[]/backend/serviceName",
        "spec/rules[]/http/paths[]/backend/service/name",
        "spec/backend/serviceName",
        "spec/defaultBackend/service/name",
    ),
    *_iterate_references(_CORE, "Service", ["APIService"], "spec/service", referrer_group="apiregistration.k8s.io"),
    *_iterate_references(
        _CORE,
        "Service",
        ["ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"],
        "webhooks[]/clientConfig/service",
        referrer_group=_ADMISSION,
    ),
    *_iterate_references(_RBAC, "Role", ["RoleBinding"], "roleRef/name", referrer_group=_RBAC),
    *_iterate_references(
        _RBAC, "ClusterRole", ["RoleBinding", "ClusterRoleBinding"], "roleRef/name", referrer_group=_RBAC
    ),
    *_iterate_references(
        _CORE, "ServiceAccount", ["RoleBinding", "ClusterRoleBinding"], "subjects", referrer_group=_RBAC
    ),
    *_iterate_pod_references(_CORE, "ServiceAccount", _RUNNING_PODS, "serviceAccountName"),
    *_iterate_pod_references(
        _CORE, "PersistentVolumeClaim", _RUNNING_PODS, "volumes[]/persistentVolumeClaim/claimName"
    ),
    *_iterate_references(_CORE, "PersistentVolume", ["PersistentVolumeClaim"], "spec/volumeName"),
    *_iterate_references(_CORE, "PersistentVolume", ["ClusterRole"], "rules[]/resourceNames"),
    *_iterate_references(
        _STORAGE, "StorageClass", ["PersistentVolume", "PersistentVolumeClaim"], "spec/storageClassName"
    ),
    *_iterate_references(
        _STORAGE, "StorageClass", ["StatefulSet"], "spec/volumeClaimTemplates[]/spec/storageClassName"
    ),
    *_iterate_pod_references("scheduling.k8s.io", "PriorityClass", _RUNNING_PODS, "priorityClassName"),
    *(
        reference
        for kind in ("Deployment", "ReplicaSet", "StatefulSet", "ReplicationController")
        for reference in _iterate_references(None, kind, ["HorizontalPodAutoscaler"], "spec/scaleTargetRef/name")
    ),
    *_iterate_references("networking.k8s.io", "IngressClass", ["Ingress"], "spec/ingressClassName"),
    *_iterate_references(
        _ADMISSION,
        "ValidatingAdmissionPolicy",
        ["ValidatingAdmissionPolicyBinding"],
        "spec/policyName",
        referrer_group=_ADMISSION,
    ),
)


def find_renamed_references(
    items: Iterable[Item], renamed: Mapping[Item, str], budget: FunctionBudget
) -> dict[Item, list[tuple[DataPath, str]]]:
    """Find the fields that contain the old name of a renamed resource. Return paths and new names for each item."""
    by_name: dict[tuple[str, str], list[Item]] = {}
    for target in renamed:
        by_name.setdefault((target.kind, target.name), []).append(target)
    kinds = {target.kind for target in renamed}
    references = [reference for reference in _REFERENCES if reference.kind in kinds]
    return {item: list(_find_item_references(item, references, by_name, renamed, budget)) for item in items}


def _find_item_references(
    item: Item,
    references: Sequence[_Reference],
    by_name: Mapping[tuple[str, str], Sequence[Item]],
    renamed: Mapping[Item, str],
    budget: FunctionBudget,
) -> Iterator[tuple[DataPath, str]]:
    for reference in references:
        for path in _iterate_name_paths(item, reference.field):
            name = get_value_at(item.data, path)
            targets = by_name.get((reference.kind, name), ()) if isinstance(name, str) else ()
            budget.charge_steps(1 + len(targets))
            target = next((target for target in targets if _refers_to(item, path, target, reference)), None)
            if target is not None:
                yield path, renamed[target]


def _iterate_name_paths(item: Item, field: FieldSpec) -> Iterator[DataPath]:
    """Yield the paths of the names in a field: a name, a mapping with the key `name`, or a list of these."""
    for path in field.find_paths(item):
        value = get_value_at(item.data, path)
        elements = [((*path, index), inner) for index, inner in enumerate(value)] if isinstance(value, list) else []
        for element_path, inner in elements or [(path, value)]:
            yield (*element_path, "name") if isinstance(inner, dict) else element_path


def _refers_to(item: Item, path: DataPath, target: Item, reference: _Reference) -> bool:
    """Return whether the name at `path` refers to `target`. Group, kind and namespace are compared."""
    parent: Any = get_value_at(item.data, path[:-1])
    reference_fields = parent if isinstance(parent, dict) and path[-1] == "name" else {}
    if reference.group not in (None, target.group) or reference_fields.get("kind", target.kind) != target.kind:
        return False
    if isinstance(reference_fields.get("namespace"), str):
        return bool(reference_fields["namespace"] == (target.namespace or _DEFAULT_NAMESPACE))
    if "cluster" in (get_resource_scope(item), get_resource_scope(target)):
        return True
    return (item.namespace or _DEFAULT_NAMESPACE) == (target.namespace or _DEFAULT_NAMESPACE)
