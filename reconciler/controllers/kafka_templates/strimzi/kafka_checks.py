"""Checks of a Kafka together with its KafkaNodePools, and checks for deprecated API versions and fields."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from reconciler.controllers.codes import ControllerCodes
from reconciler.controllers.kafka_templates.codes import TemplateCodes
from reconciler.controllers.kafka_templates.model import TemplateResource
from reconciler.controllers.kafka_templates.strimzi.pool import BROKER, CONTROLLER, read_roles
from reconciler.controllers.nested_values import get_value
from reconciler.controllers.resource_findings import ResourceIssue
from reconciler.krm.field_text import quote_list
from reconciler.krm.findings import FindingCode
from reconciler.krm.merge3.rules import ABSENT
from reconciler.krm.objects import ObjectKey
from reconciler.packages.package import PackageResource

_REQUIRED_ROLES: tuple[tuple[str, FindingCode], ...] = (
    (CONTROLLER, TemplateCodes.NO_CONTROLLER_POOL),
    (BROKER, TemplateCodes.NO_BROKER_POOL),
)
_GROUP: Final = "kafka.strimzi.io"
_VERSION: Final = "v1"
_KINDS: Final = ("Kafka", "KafkaNodePool")
# Deprecated fields of a Kafka. Before KafkaNodePools existed, these fields applied to all nodes.
_POOL_FIELDS: Final = ("replicas", "storage", "resources")


def check_pool_families(
    families: Iterable[tuple[TemplateResource, tuple[TemplateResource, ...]]],
) -> Iterator[tuple[ObjectKey, ResourceIssue]]:
    """Yield errors about Kafkas without suitable pools, and about pools whose objects would have equal names."""
    pools_by_component: dict[tuple[str, str], list[tuple[ObjectKey, ObjectKey]]] = {}
    for kafka, pools in families:
        for issue in _check_kafka(kafka.resource, [pool.resource for pool in pools]):
            yield kafka.key, issue
        for pool in pools:
            component = (kafka.key.namespace, f"{kafka.key.name}-{pool.key.name}")
            pools_by_component.setdefault(component, []).append((kafka.key, pool.key))
    for (_, name), pairs in sorted(pools_by_component.items()):
        if len(pairs) > 1:
            names = " and ".join(f"{pool} (of {kafka})" for kafka, pool in sorted(pairs))
            message = (
                f"the operator would create objects with the same names for {names}, because all these names start"
                f' with "{name}"; rename one of the KafkaNodePools'
            )
            yield from (
                (pool, ResourceIssue(TemplateCodes.COMPONENT_NAME_COLLISION, message, ("metadata", "name")))
                for _, pool in pairs
            )


def _check_kafka(kafka: PackageResource, pools: list[PackageResource]) -> Iterator[ResourceIssue]:
    usable = [pool for pool in pools if _has_replicas(pool)]
    if not usable:
        # A v1beta2 Kafka with `replicas` needs no KafkaNodePools. Therefore, report no error if this Kafka has no
        # pools.
        if pools or not _has_own_nodes(kafka):
            found = "has only KafkaNodePools without replicas" if pools else "has no KafkaNodePool"
            yield ResourceIssue(
                TemplateCodes.NO_USABLE_POOL, f"{kafka.key} must have a KafkaNodePool with replicas, but {found}"
            )
        return
    for role, code in _REQUIRED_ROLES:
        if not any(role in read_roles(pool) for pool in usable):
            names = quote_list(pool.name for pool in usable)
            message = (
                f'{kafka.key} must have a KafkaNodePool with replicas and the role "{role}"; add the role to spec.roles'
                f" of a KafkaNodePool; existing KafkaNodePools with replicas: {names}"
            )
            yield ResourceIssue(code, message)


def _has_own_nodes(kafka: PackageResource) -> bool:
    return kafka.version == "v1beta2" and _is_positive(get_value(kafka.data, ("spec", "kafka", "replicas")))


def _has_replicas(pool: PackageResource) -> bool:
    return _is_positive(get_value(pool.data, ("spec", "replicas")))


def _is_positive(count: Any) -> bool:
    return isinstance(count, int) and count > 0


def find_deprecated_fields(resource: PackageResource) -> Iterator[ResourceIssue]:
    """Yield a warning for each deprecated API version or field of a Kafka or KafkaNodePool, with its replacement."""
    if resource.group != _GROUP or resource.kind not in _KINDS:
        return
    if resource.version != _VERSION:
        message = f"{resource.api_version} is deprecated and removed in Strimzi 1.0; use {_GROUP}/{_VERSION}"
        yield ResourceIssue(ControllerCodes.DEPRECATED, message, ("apiVersion",))
    for field in _POOL_FIELDS if resource.kind == "Kafka" else ():
        path = ("spec", "kafka", field)
        if get_value(resource.data, path) not in (None, ABSENT):
            message = (
                f"spec.kafka.{field} is deprecated and removed in Strimzi 1.0; use spec.{field} of a KafkaNodePool"
            )
            yield ResourceIssue(ControllerCodes.DEPRECATED, message, path)
