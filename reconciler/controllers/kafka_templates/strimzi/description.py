"""Description of a KafkaNodePool's effective template: the objects that the operator creates, and issues."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from reconciler.controllers.kafka_templates.codes import TemplateCodes
from reconciler.controllers.kafka_templates.merge import merge_templates
from reconciler.controllers.kafka_templates.model import (
    OperatorObjects,
    StrimziOperator,
    TemplateDescription,
    TemplateRemark,
)
from reconciler.controllers.kafka_templates.strimzi.containers import (
    build_effective_env,
    check_container,
    check_mounts,
    check_volumes,
)
from reconciler.controllers.kafka_templates.strimzi.pool import (
    NODE_ID_PLACEHOLDER,
    ROLES,
    Listener,
    NodePool,
    as_mapping,
    read_pool,
)
from reconciler.controllers.kafka_templates.strimzi.template_fields import (
    METADATA_FILTERS,
    build_base_labels,
    check_metadata,
    check_pool_labels,
    check_template_fields,
    filter_entries,
)
from reconciler.controllers.nested_values import get_value
from reconciler.krm.field_text import describe_choice, quote_value
from reconciler.krm.merge3.rules import ABSENT
from reconciler.krm.yaml import DataPath
from reconciler.packages.package import PackageResource

_DEFAULTS: Mapping[str, Any] = {
    "terminationGracePeriodSeconds": 30,
    "schedulerName": "default-scheduler",
    "tmpDirSizeLimit": "5Mi",
}
_PER_POD_OBJECTS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("perPodService", "Service", ()),
    ("perPodRoute", "Route", ("route",)),
    ("perPodRoute", "TLSRoute", ("tlsroute",)),
    ("perPodIngress", "Ingress", ("ingress",)),
)
_PASSTHROUGH = ("ingress.kubernetes.io/ssl-passthrough", "nginx.ingress.kubernetes.io/ssl-passthrough")
_JVM_OPTIONS: DataPath = ("spec", "kafka", "jvmOptions")
KAFKA_FIELD_PATHS: tuple[DataPath, ...] = (("spec", "kafka", "listeners"), ("spec", "kafka", "rack"), _JVM_OPTIONS)
_CONTAINERS = ("kafkaContainer", "initContainer")
_RESTARTING = ("pod", "kafkaContainer", "initContainer")
_SOURCE_NAMES: Mapping[str, str] = {"parent": "kafka", "child": "pool", "reset": "pool-reset", "unset": "unset"}
_KINDS_BY_PROPERTY: Mapping[str, tuple[str, ...]] = {
    "podSet": ("StrimziPodSet",),
    "pod": ("Pod",),
    "perPodService": ("Service",),
    "perPodRoute": ("Route", "TLSRoute"),
    "perPodIngress": ("Ingress",),
    "persistentVolumeClaim": ("PersistentVolumeClaim",),
    "kafkaContainer": ("Pod",),
    "initContainer": ("Pod",),
}


def describe_pool(
    kafka: PackageResource, resource: PackageResource, template: Mapping[str, Any], operator: StrimziOperator
) -> TemplateDescription:
    """Return the description of a KafkaNodePool's effective template."""
    pool = read_pool(kafka, resource)
    objects = tuple(describe_objects(pool, template, operator))
    remarks = tuple(_check_template(pool, resource, template, operator))
    idle = _find_idle_properties(pool)
    affected_kinds = {name: kinds for name, kinds in _KINDS_BY_PROPERTY.items() if name not in idle}
    restarting = frozenset(name for name in _RESTARTING if name not in idle)
    return TemplateDescription(
        remarks, objects, _describe_settings(kafka, resource), restarting, _filter_kinds(affected_kinds, objects)
    )


def _check_template(
    pool: NodePool, resource: PackageResource, template: Mapping[str, Any], operator: StrimziOperator
) -> Iterator[TemplateRemark]:
    yield from _check_roles(resource)
    yield from check_pool_labels(pool)
    idle = _find_idle_properties(pool)
    for name, value in template.items():
        yield from check_template_fields(name, value)
        if name in idle:
            yield TemplateRemark(
                TemplateCodes.TEMPLATE_WITHOUT_EFFECT,
                f"has no effect, because this property requires {idle[name]}",
                name,
            )
            continue
        if name in METADATA_FILTERS:
            yield from check_metadata(name, value.get("metadata"))
        if name == "pod":
            yield from check_volumes(value, pool)
        if name in _CONTAINERS:
            yield from check_container(name, value, pool, operator)
            yield from check_mounts(name, value, template.get("pod"), pool)


def _check_roles(resource: PackageResource) -> Iterator[TemplateRemark]:
    roles = get_value(resource.data, ("spec", "roles"))
    if not isinstance(roles, list) or not roles or any(role not in ROLES for role in roles):
        value = "missing" if roles is ABSENT else quote_value(roles)
        message = f"must be a list of {describe_choice(ROLES)} or both, but is {value}"
        yield TemplateRemark(TemplateCodes.POOL_WITHOUT_ROLE, message, "", ("spec", "roles"))


def _find_idle_properties(pool: NodePool) -> Mapping[str, str]:
    """Return the template properties that have no effect on this pool, each with the reason.

    The reason is a requirement that the pool does not meet, e.g. "storage with a persistent claim".
    """
    types = {listener.type for listener in pool.listeners} if pool.is_broker else set()
    needs = {
        "perPodService": (bool(types), "the role broker and an external listener"),
        "perPodRoute": (
            bool(types & {"route", "tlsroute"}),
            "the role broker and a listener of type route or tlsroute",
        ),
        "perPodIngress": ("ingress" in types, "the role broker and a listener of type ingress"),
        "persistentVolumeClaim": (bool(pool.claim_names), "storage with a persistent claim"),
        "initContainer": (pool.has_init_container, "the role broker, and a rack or a listener of type nodeport"),
    }
    return {name: condition for name, (is_met, condition) in needs.items() if not is_met}


def _filter_kinds(
    affected_kinds: Mapping[str, tuple[str, ...]], objects: tuple[OperatorObjects, ...]
) -> Mapping[str, tuple[str, ...]]:
    existing_kinds = {operator_object.kind for operator_object in objects}
    return {name: tuple(kind for kind in kinds if kind in existing_kinds) for name, kinds in affected_kinds.items()}


def _describe_settings(kafka: PackageResource, pool: PackageResource) -> Mapping[str, Mapping[str, Any]]:
    """Return the effective `jvmOptions`, which are taken completely from the KafkaNodePool or from the Kafka."""
    kafka_spec, pool_spec = (
        as_mapping(get_value(kafka.data, ("spec", "kafka"))),
        as_mapping(get_value(pool.data, ("spec",))),
    )
    (jvm,) = merge_templates(("jvmOptions",), kafka_spec, pool_spec)
    if jvm.source == "unset":
        return {}
    return {"jvmOptions": {"source": _SOURCE_NAMES[jvm.source], "value": jvm.value}}


def describe_objects(
    pool: NodePool, template: Mapping[str, Any], operator: StrimziOperator
) -> Iterator[OperatorObjects]:
    """Yield the objects that the operator creates for a pool.

    Annotations that the operator derives from the running cluster are not included.
    """
    yield _describe_object(pool, template, "podSet", "StrimziPodSet", (pool.component_name,))
    yield _describe_pod(pool, template, operator)
    if pool.claim_names:
        names = tuple(f"{claim}-{pod}" for pod in pool.pod_names for claim in pool.claim_names)
        yield _describe_object(pool, template, "persistentVolumeClaim", "PersistentVolumeClaim", names)
    for listener in pool.listeners if pool.is_broker else ():
        for name, kind, types in _PER_POD_OBJECTS:
            if not types or listener.type in types:
                yield from _describe_per_pod_objects(pool, template, name, kind, listener)


def _get_metadata(template: Mapping[str, Any], name: str, field: str) -> Any:
    return as_mapping(as_mapping(template.get(name)).get("metadata")).get(field)


def _describe_object(
    pool: NodePool, template: Mapping[str, Any], name: str, kind: str, names: tuple[str, ...]
) -> OperatorObjects:
    filters = METADATA_FILTERS[name]
    labels = {**build_base_labels(pool), **filter_entries(_get_metadata(template, name, "labels"), filters.labels)}
    return OperatorObjects(
        kind, names, labels, filter_entries(_get_metadata(template, name, "annotations"), filters.annotations)
    )


def _describe_pod(pool: NodePool, template: Mapping[str, Any], operator: StrimziOperator) -> OperatorObjects:
    labels = {
        **build_base_labels(pool),
        "strimzi.io/controller": "strimzipodset",
        "strimzi.io/controller-name": pool.component_name,
        "strimzi.io/broker-role": str(pool.is_broker).lower(),
        "strimzi.io/controller-role": str("controller" in pool.roles).lower(),
        **operator.pod_labels,
        **filter_entries(_get_metadata(template, "pod", "labels"), "filtered"),
    }
    annotations = filter_entries(_get_metadata(template, "pod", "annotations"), "filtered")
    return OperatorObjects("Pod", pool.pod_names, labels, annotations, _build_pod_fields(pool, template))


def _build_pod_fields(pool: NodePool, template: Mapping[str, Any]) -> dict[str, Any]:
    pod_template = as_mapping(template.get("pod"))
    fields = {
        **_DEFAULTS,
        **{key: value for key, value in pod_template.items() if key != "metadata" and value is not None},
    }
    if pool.is_broker and pool.topology_key:
        fields["affinity"] = _add_rack_requirement(as_mapping(fields.get("affinity")), pool.topology_key)
    for name in ("kafkaContainer", "initContainer"):
        if name == "kafkaContainer" or pool.has_init_container:
            container = as_mapping(template.get(name))
            env = build_effective_env(name, container, pool)
            parts = {
                key: container[key] for key in ("securityContext", "volumeMounts") if container.get(key) is not None
            }
            fields |= {name: {**({"env": env} if env else {}), **parts}} if env or parts else {}
    return fields


def _add_rack_requirement(affinity: Mapping[str, Any], key: str) -> dict[str, Any]:
    """Return an affinity in which every node selector term also requires the label of the rack.

    The requirement is added to every term, because a node is accepted if it matches one of the terms.
    """
    requirement = {"key": key, "operator": "Exists"}
    nodes = as_mapping(affinity.get("nodeAffinity"))
    required = as_mapping(nodes.get("requiredDuringSchedulingIgnoredDuringExecution"))
    terms = [as_mapping(term) for term in _as_list(required.get("nodeSelectorTerms")) or [{}]]
    extended_terms = [
        {**term, "matchExpressions": [*_as_list(term.get("matchExpressions")), requirement]} for term in terms
    ]
    required = {**required, "nodeSelectorTerms": extended_terms}
    return {**affinity, "nodeAffinity": {**nodes, "requiredDuringSchedulingIgnoredDuringExecution": required}}


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _describe_per_pod_objects(
    pool: NodePool, template: Mapping[str, Any], name: str, kind: str, listener: Listener
) -> Iterator[OperatorObjects]:
    """Yield the objects that the operator creates for one listener: one object per node of the pool.

    A broker with its own settings in the listener has a separate result. All other nodes share one result. If the IDs
    of the pool's nodes are unknown, every broker in the listener's configuration is treated as a node of the pool.
    """
    listener_suffix = "" if listener.has_legacy_name else f"-{listener.name}"
    individual_ids = [node_id for node_id in listener.brokers if not pool.node_ids or node_id in pool.node_ids]
    common_ids = [node_id for node_id in pool.node_ids or (NODE_ID_PLACEHOLDER,) if node_id not in individual_ids]
    for ids in ([*common_ids], *([node_id] for node_id in individual_ids)):
        if ids:
            names = tuple(f"{pool.component_name}{listener_suffix}-{node_id}" for node_id in ids)
            labels, annotations = _merge_per_pod_metadata(template, name, listener.brokers.get(ids[0], ({}, {})))
            yield OperatorObjects(kind, names, {**build_base_labels(pool), **labels}, annotations)


def _merge_per_pod_metadata(
    template: Mapping[str, Any], name: str, listener: tuple[Mapping[str, str], Mapping[str, str]]
) -> tuple[dict[str, str], dict[str, str]]:
    filters = METADATA_FILTERS[name]
    labels = filter_entries(_get_metadata(template, name, "labels"), filters.labels)
    annotations = filter_entries(_get_metadata(template, name, "annotations"), filters.annotations)
    if name == "perPodService":
        return {**listener[0], **labels}, {**listener[1], **annotations}
    passthrough = dict.fromkeys(_PASSTHROUGH, "true") if name == "perPodIngress" else {}
    listener_entries = [filter_entries(entries, "filtered") for entries in listener]
    return {**labels, **listener_entries[0]}, {**passthrough, **annotations, **listener_entries[1]}
