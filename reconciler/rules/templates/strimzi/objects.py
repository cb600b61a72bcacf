"""The objects that an operator makes for a pool, with what templates and it give them (strimzi 6.0 to 6.3)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from reconciler.rules.templates.report import ObjectEffect
from reconciler.rules.templates.strimzi.containers import env_in_effect
from reconciler.rules.templates.strimzi.metadata import FILTERS, base_labels, kept
from reconciler.rules.templates.strimzi.operator import Operator
from reconciler.rules.templates.strimzi.pool import NODE_ID, Listener, Pool, mapping

_DEFAULTS: Mapping[str, Any] = {
    "terminationGracePeriodSeconds": 30,
    "schedulerName": "default-scheduler",
    "tmpDirSizeLimit": "5Mi",
}
_PER_POD: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("perPodService", "Service", ()),
    ("perPodRoute", "Route", ("route",)),
    ("perPodRoute", "TLSRoute", ("tlsroute",)),
    ("perPodIngress", "Ingress", ("ingress",)),
)
_PASSTHROUGH = ("ingress.kubernetes.io/ssl-passthrough", "nginx.ingress.kubernetes.io/ssl-passthrough")


def describe_objects(pool: Pool, template: Mapping[str, Any], operator: Operator) -> Iterator[ObjectEffect]:
    """Yield the objects of a pool; operators add annotations of their own that depend on the running cluster."""
    yield _plain(pool, template, "podSet", "StrimziPodSet", (pool.component,))
    yield _pod(pool, template, operator)
    if pool.claims:
        names = tuple(f"{claim}-{pod}" for pod in pool.pods for claim in pool.claims)
        yield _plain(pool, template, "persistentVolumeClaim", "PersistentVolumeClaim", names)
    for listener in pool.listeners if pool.is_broker else ():
        for name, kind, types in _PER_POD:
            if not types or listener.type in types:
                yield from _per_pod(pool, template, name, kind, listener)


def _metadata(template: Mapping[str, Any], name: str, field: str) -> Any:
    return mapping(mapping(template.get(name)).get("metadata")).get(field)


def _plain(pool: Pool, template: Mapping[str, Any], name: str, kind: str, names: tuple[str, ...]) -> ObjectEffect:
    filters = FILTERS[name]
    labels = {**base_labels(pool), **kept(_metadata(template, name, "labels"), filters.labels)}
    return ObjectEffect(kind, names, labels, kept(_metadata(template, name, "annotations"), filters.annotations))


def _pod(pool: Pool, template: Mapping[str, Any], operator: Operator) -> ObjectEffect:
    labels = {
        **base_labels(pool),
        "strimzi.io/controller": "strimzipodset",
        "strimzi.io/controller-name": pool.component,
        "strimzi.io/broker-role": str(pool.is_broker).lower(),
        "strimzi.io/controller-role": str("controller" in pool.roles).lower(),
        **operator.pod_labels,
        **kept(_metadata(template, "pod", "labels"), "filtered"),
    }
    annotations = kept(_metadata(template, "pod", "annotations"), "filtered")
    return ObjectEffect("Pod", pool.pods, labels, annotations, _pod_fields(pool, template))


def _pod_fields(pool: Pool, template: Mapping[str, Any]) -> dict[str, Any]:
    said = mapping(template.get("pod"))
    fields = {**_DEFAULTS, **{key: value for key, value in said.items() if key != "metadata" and value is not None}}
    if pool.is_broker and pool.topology_key:
        fields["affinity"] = _with_rack(mapping(fields.get("affinity")), pool.topology_key)
    for name in ("kafkaContainer", "initContainer"):
        if name == "kafkaContainer" or pool.has_init_container:
            container = mapping(template.get(name))
            env = env_in_effect(name, container, pool)
            parts = {
                key: container[key] for key in ("securityContext", "volumeMounts") if container.get(key) is not None
            }
            fields |= {name: {**({"env": env} if env else {}), **parts}} if env or parts else {}
    return fields


def _with_rack(affinity: Mapping[str, Any], key: str) -> dict[str, Any]:
    """Return an affinity that asks for the label of the rack: in every term, because terms are alternatives."""
    wanted = {"key": key, "operator": "Exists"}
    nodes = mapping(affinity.get("nodeAffinity"))
    required = mapping(nodes.get("requiredDuringSchedulingIgnoredDuringExecution"))
    terms = [mapping(one) for one in _items(required.get("nodeSelectorTerms")) or [{}]]
    asking = [{**one, "matchExpressions": [*_items(one.get("matchExpressions")), wanted]} for one in terms]
    required = {**required, "nodeSelectorTerms": asking}
    return {**affinity, "nodeAffinity": {**nodes, "requiredDuringSchedulingIgnoredDuringExecution": required}}


def _items(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _per_pod(
    pool: Pool, template: Mapping[str, Any], name: str, kind: str, listener: Listener
) -> Iterator[ObjectEffect]:
    """Yield the objects of one listener: one for all nodes that it treats alike, one for each of the others.

    Where nobody knows the ids of the nodes, every broker that the listener names may be one of them.
    """
    of_listener = "" if listener.has_old_name else f"-{listener.name}"
    single = [one for one in listener.brokers if not pool.ids or one in pool.ids]
    alike = [one for one in pool.ids or (NODE_ID,) if one not in single]
    for ids in ([*alike], *([one] for one in single)):
        if ids:
            names = tuple(f"{pool.component}{of_listener}-{one}" for one in ids)
            labels, annotations = _per_pod_metadata(template, name, listener.brokers.get(ids[0], ({}, {})))
            yield ObjectEffect(kind, names, {**base_labels(pool), **labels}, annotations)


def _per_pod_metadata(
    template: Mapping[str, Any], name: str, listener: tuple[Mapping[str, str], Mapping[str, str]]
) -> tuple[dict[str, str], dict[str, str]]:
    filters = FILTERS[name]
    labels = kept(_metadata(template, name, "labels"), filters.labels)
    annotations = kept(_metadata(template, name, "annotations"), filters.annotations)
    if name == "perPodService":
        return {**listener[0], **labels}, {**listener[1], **annotations}
    passthrough = dict.fromkeys(_PASSTHROUGH, "true") if name == "perPodIngress" else {}
    theirs = [kept(said, "filtered") for said in listener]
    return {**labels, **theirs[0]}, {**passthrough, **annotations, **theirs[1]}
