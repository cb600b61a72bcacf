"""Name references: the fields that follow when a resource is renamed (kpt.md 16.1)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from reconciler.krm.yaml import Path
from reconciler.packages.functions.fieldspec import FieldSpec
from reconciler.packages.functions.function import Item, value_at
from reconciler.packages.functions.limits import Budget
from reconciler.packages.functions.scopes import scope_of

_DEFAULT = "default"
_TEMPLATE, _CRON = "spec/template/spec", "spec/jobTemplate/spec/template/spec"
_PODS: Mapping[str, str] = {
    "Pod": "spec",
    "PodTemplate": "template/spec",
    **dict.fromkeys(("Deployment", "ReplicaSet", "DaemonSet", "StatefulSet", "Job"), _TEMPLATE),
    "CronJob": _CRON,
}
# upstream looks at other kinds of pods for accounts, claims and priorities
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
    """A field with the name of a resource of one kind; a group of None is any."""

    group: str | None
    kind: str
    field: FieldSpec


def _fields(
    group: str | None, kind: str, referrers: Sequence[str], *paths: str, of: str | None = None
) -> Iterator[_Reference]:
    """Yield the references to a kind at these paths of some kinds in the group `of`."""
    return (_Reference(group, kind, FieldSpec(path, name, of)) for name in referrers for path in paths)


def _in_pods(group: str, kind: str, pods: Mapping[str, str], *paths: str) -> Iterator[_Reference]:
    """Yield the references to a kind at these paths of pod specs."""
    for name, spec in pods.items():
        yield from _fields(group, kind, [name], *(f"{spec}/{path}" for path in paths))


def _in_containers(path: str) -> tuple[str, str]:
    return f"containers[]/{path}", f"initContainers[]/{path}"


_REFERENCES = (
    *_in_pods(
        _CORE,
        "ConfigMap",
        _PODS,
        "volumes[]/configMap/name",
        "volumes[]/projected/sources[]/configMap/name",
        *_in_containers("env[]/valueFrom/configMapKeyRef/name"),
        *_in_containers("envFrom[]/configMapRef/name"),
    ),
    *_fields(_CORE, "ConfigMap", ["Role", "ClusterRole"], "rules[]/resourceNames"),
    *_fields(_CORE, "ConfigMap", ["Node"], "spec/configSource/configMap"),
    *_fields(_CORE, "ConfigMap", ["Ingress"], _INGRESS.format("nginx.", "fastcgi-params-configmap")),
    *_in_pods(
        _CORE,
        "Secret",
        _PODS,
        "volumes[]/secret/secretName",
        "volumes[]/projected/sources[]/secret/name",
        *_in_containers("env[]/valueFrom/secretKeyRef/name"),
        *_in_containers("envFrom[]/secretRef/name"),
        "imagePullSecrets[]/name",
    ),
    *_fields(
        _CORE,
        "Secret",
        ["Ingress"],
        "spec/tls[]/secretName",
        _INGRESS.format("", "auth-secret"),
        _INGRESS.format("nginx.", "auth-secret"),
        _INGRESS.format("nginx.", "auth-tls-secret"),
    ),
    *_fields(_CORE, "Secret", ["ServiceAccount"], "imagePullSecrets[]/name"),
    *_fields(
        _CORE,
        "Secret",
        ["StorageClass"],
        *(f"parameters/{name}" for name in ("secretName", "adminSecretName", "userSecretName", "secretRef")),
    ),
    *_fields(_CORE, "Secret", ["Role", "ClusterRole"], "rules[]/resourceNames"),
    *_fields(_CORE, "Secret", ["PersistentVolume"], "spec/azureFile/secretName"),
    *_fields(_CORE, "Service", ["StatefulSet"], "spec/serviceName", of="apps"),
    *_fields(
        _CORE,
        "Service",
        ["Ingress"],
        "spec/rules[]/http/paths[]/backend/serviceName",
        "spec/rules[]/http/paths[]/backend/service/name",
        "spec/backend/serviceName",
        "spec/defaultBackend/service/name",
    ),
    *_fields(_CORE, "Service", ["APIService"], "spec/service", of="apiregistration.k8s.io"),
    *_fields(
        _CORE,
        "Service",
        ["ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"],
        "webhooks[]/clientConfig/service",
        of=_ADMISSION,
    ),
    *_fields(_RBAC, "Role", ["RoleBinding"], "roleRef/name", of=_RBAC),
    *_fields(_RBAC, "ClusterRole", ["RoleBinding", "ClusterRoleBinding"], "roleRef/name", of=_RBAC),
    *_fields(_CORE, "ServiceAccount", ["RoleBinding", "ClusterRoleBinding"], "subjects", of=_RBAC),
    *_in_pods(_CORE, "ServiceAccount", _RUNNING_PODS, "serviceAccountName"),
    *_in_pods(_CORE, "PersistentVolumeClaim", _RUNNING_PODS, "volumes[]/persistentVolumeClaim/claimName"),
    *_fields(_CORE, "PersistentVolume", ["PersistentVolumeClaim"], "spec/volumeName"),
    *_fields(_CORE, "PersistentVolume", ["ClusterRole"], "rules[]/resourceNames"),
    *_fields(_STORAGE, "StorageClass", ["PersistentVolume", "PersistentVolumeClaim"], "spec/storageClassName"),
    *_fields(_STORAGE, "StorageClass", ["StatefulSet"], "spec/volumeClaimTemplates[]/spec/storageClassName"),
    *_in_pods("scheduling.k8s.io", "PriorityClass", _RUNNING_PODS, "priorityClassName"),
    *(
        reference
        for kind in ("Deployment", "ReplicaSet", "StatefulSet", "ReplicationController")
        for reference in _fields(None, kind, ["HorizontalPodAutoscaler"], "spec/scaleTargetRef/name")
    ),
    *_fields("networking.k8s.io", "IngressClass", ["Ingress"], "spec/ingressClassName"),
    *_fields(
        _ADMISSION, "ValidatingAdmissionPolicy", ["ValidatingAdmissionPolicyBinding"], "spec/policyName", of=_ADMISSION
    ),
)


def followed_names(
    items: Iterable[Item], renamed: Mapping[Item, str], budget: Budget
) -> dict[Item, list[tuple[Path, str]]]:
    """Return the fields that hold the name of a renamed resource, with its new name, by the item they stand in."""
    by_name: dict[tuple[str, str], list[Item]] = {}
    for target in renamed:
        by_name.setdefault((target.kind, target.name), []).append(target)
    kinds = {target.kind for target in renamed}
    wanted = [reference for reference in _REFERENCES if reference.kind in kinds]
    return {item: list(_followed(item, wanted, by_name, renamed, budget)) for item in items}


def _followed(
    item: Item,
    wanted: Sequence[_Reference],
    by_name: Mapping[tuple[str, str], Sequence[Item]],
    renamed: Mapping[Item, str],
    budget: Budget,
) -> Iterator[tuple[Path, str]]:
    for reference in wanted:
        for path in _named_fields(item, reference.field):
            name = value_at(item.data, path)
            targets = by_name.get((reference.kind, name), ()) if isinstance(name, str) else ()
            budget.spend(1 + len(targets))
            target = next((target for target in targets if _means(item, path, target, reference)), None)
            if target is not None:
                yield path, renamed[target]


def _named_fields(item: Item, field: FieldSpec) -> Iterator[Path]:
    """Yield the scalars with names: the fields themselves, their elements, or the `name` of what they hold."""
    for path in field.targets(item):
        value = value_at(item.data, path)
        elements = [((*path, index), inner) for index, inner in enumerate(value)] if isinstance(value, list) else []
        for place, inner in elements or [(path, value)]:
            yield (*place, "name") if isinstance(inner, dict) else place


def _means(item: Item, path: Path, target: Item, reference: _Reference) -> bool:
    """Tell whether the name at a path is that of `target`, by its group, its kind and its namespace."""
    around: Any = value_at(item.data, path[:-1])
    said = around if isinstance(around, dict) and path[-1] == "name" else {}
    if reference.group not in (None, target.group) or said.get("kind", target.kind) != target.kind:
        return False
    if isinstance(said.get("namespace"), str):
        return bool(said["namespace"] == (target.namespace or _DEFAULT))
    if "cluster" in (scope_of(item), scope_of(target)):
        return True
    return (item.namespace or _DEFAULT) == (target.namespace or _DEFAULT)
