"""What must be true of all KafkaNodePools of a Kafka, and of those of a namespace (strimzi 3.5, 3.6)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from reconciler.krm.findings import Code
from reconciler.krm.identity import ObjectKey
from reconciler.packages.package import PackageResource
from reconciler.rules.edits import value_at
from reconciler.rules.notes import Note
from reconciler.rules.templates.codes import (
    COMPONENT_NAME_COLLISION,
    NO_BROKER_POOL,
    NO_CONTROLLER_POOL,
    NO_USABLE_POOL,
)
from reconciler.rules.templates.model import Member
from reconciler.rules.templates.strimzi.pool import BROKER, CONTROLLER, roles_of

_NEEDED: tuple[tuple[str, Code], ...] = ((CONTROLLER, NO_CONTROLLER_POOL), (BROKER, NO_BROKER_POOL))


def judge_families(families: Iterable[tuple[Member, tuple[Member, ...]]]) -> Iterator[tuple[ObjectKey, Note]]:
    """Yield what operators refuse of a Kafka because of its pools, and of pools because of others."""
    named: dict[tuple[str, str], list[tuple[ObjectKey, ObjectKey]]] = {}
    for kafka, pools in families:
        for note in _of_kafka(kafka.resource, [one.resource for one in pools]):
            yield kafka.key, note
        for pool in pools:
            component = (kafka.key.namespace, f"{kafka.key.name}-{pool.key.name}")
            named.setdefault(component, []).append((kafka.key, pool.key))
    for (_, name), pairs in sorted(named.items()):
        if len(pairs) > 1:
            names = " and ".join(f"{pool} of {kafka}" for kafka, pool in sorted(pairs))
            message = f"objects of {names} would have one name, which begins with {name}"
            yield from ((pool, Note(COMPONENT_NAME_COLLISION, message, ("metadata", "name"))) for _, pool in pairs)


def _of_kafka(kafka: PackageResource, pools: list[PackageResource]) -> Iterator[Note]:
    usable = [pool for pool in pools if _has_replicas(pool)]
    if not usable:
        # v1beta2 is from before pools were all that there is
        if pools or not _has_nodes_of_its_own(kafka):
            yield Note(
                NO_USABLE_POOL, f"{kafka.key} must have a KafkaNodePool with replicas, and has {len(pools)} without"
            )
        return
    for role, code in _NEEDED:
        if not any(role in roles_of(pool) for pool in usable):
            names = ", ".join(pool.name for pool in usable)
            yield Note(code, f"a KafkaNodePool with replicas must have the role {role}, and none of {names} has it")


def _has_nodes_of_its_own(kafka: PackageResource) -> bool:
    return kafka.version == "v1beta2" and _is_positive(value_at(kafka.data, ("spec", "kafka", "replicas")))


def _has_replicas(pool: PackageResource) -> bool:
    return _is_positive(value_at(pool.data, ("spec", "replicas")))


def _is_positive(count: Any) -> bool:
    return isinstance(count, int) and count > 0
