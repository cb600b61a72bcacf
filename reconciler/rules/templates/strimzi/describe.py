"""The effect of a pool's template: what lands on which object, and what is wrong with it (strimzi 6)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from reconciler.krm.conflicts import ABSENT
from reconciler.krm.yaml import Path
from reconciler.packages.package import PackageResource
from reconciler.rules.edits import value_at
from reconciler.rules.fields import shown
from reconciler.rules.templates.codes import POOL_WITHOUT_ROLE, TEMPLATE_WITHOUT_EFFECT
from reconciler.rules.templates.merge import merge_templates
from reconciler.rules.templates.model import Remark
from reconciler.rules.templates.report import Description, ObjectEffect
from reconciler.rules.templates.strimzi.containers import container_remarks
from reconciler.rules.templates.strimzi.metadata import FILTERS, metadata_remarks, pool_label_remarks
from reconciler.rules.templates.strimzi.objects import describe_objects
from reconciler.rules.templates.strimzi.operator import Operator
from reconciler.rules.templates.strimzi.pool import ROLES, Pool, mapping, read_pool
from reconciler.rules.templates.strimzi.schema import schema_remarks
from reconciler.rules.templates.strimzi.volumes import mount_remarks, volume_remarks

_JVM: Path = ("spec", "kafka", "jvmOptions")
KAFKA_FIELDS: tuple[Path, ...] = (("spec", "kafka", "listeners"), ("spec", "kafka", "rack"), _JVM)
_CONTAINERS = ("kafkaContainer", "initContainer")
_ROLLING = ("pod", "kafkaContainer", "initContainer")
_WORDS: Mapping[str, str] = {"parent": "kafka", "child": "pool", "reset": "pool-reset", "unset": "unset"}
_KINDS: Mapping[str, tuple[str, ...]] = {
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
    kafka: PackageResource, resource: PackageResource, template: Mapping[str, Any], operator: Operator
) -> Description:
    """Return what the effective template of a pool comes to."""
    pool = read_pool(kafka, resource)
    objects = tuple(describe_objects(pool, template, operator))
    remarks = tuple(_remarks(pool, resource, template, operator))
    idle = _idle(pool)
    lands_on = {name: kinds for name, kinds in _KINDS.items() if name not in idle}
    rolling = frozenset(name for name in _ROLLING if name not in idle)
    return Description(remarks, objects, _settings(kafka, resource), rolling, _made(lands_on, objects))


def _remarks(
    pool: Pool, resource: PackageResource, template: Mapping[str, Any], operator: Operator
) -> Iterator[Remark]:
    yield from _role_remarks(resource)
    yield from pool_label_remarks(pool)
    idle = _idle(pool)
    for name, value in template.items():
        yield from schema_remarks(name, value)
        if name in idle:
            yield Remark(TEMPLATE_WITHOUT_EFFECT, f"{name} has no effect: it needs {idle[name]}", name)
            continue
        if name in FILTERS:
            yield from metadata_remarks(name, value.get("metadata"))
        if name == "pod":
            yield from volume_remarks(value, pool)
        if name in _CONTAINERS:
            yield from container_remarks(name, value, pool, operator)
            yield from mount_remarks(name, value, template.get("pod"), pool)


def _role_remarks(resource: PackageResource) -> Iterator[Remark]:
    roles = value_at(resource.data, ("spec", "roles"))
    if not isinstance(roles, list) or not roles or any(role not in ROLES for role in roles):
        said = "" if roles is ABSENT else f", not {shown(roles)}"
        yield Remark(POOL_WITHOUT_ROLE, f"must have {' or '.join(ROLES)} or both{said}", "", ("spec", "roles"))


def _idle(pool: Pool) -> Mapping[str, str]:
    """Return the properties that shape nothing, and what they need for it (strimzi 6.4)."""
    types = {one.type for one in pool.listeners} if pool.is_broker else set()
    needs = {
        "perPodService": (bool(types), "the role broker and an external listener"),
        "perPodRoute": (
            bool(types & {"route", "tlsroute"}),
            "the role broker and a listener of type route or tlsroute",
        ),
        "perPodIngress": ("ingress" in types, "the role broker and a listener of type ingress"),
        "persistentVolumeClaim": (bool(pool.claims), "storage with a persistent claim"),
        "initContainer": (pool.has_init_container, "the role broker, and a rack or a listener of type nodeport"),
    }
    return {name: wanted for name, (is_met, wanted) in needs.items() if not is_met}


def _made(lands_on: Mapping[str, tuple[str, ...]], objects: tuple[ObjectEffect, ...]) -> Mapping[str, tuple[str, ...]]:
    there = {one.kind for one in objects}
    return {name: tuple(kind for kind in kinds if kind in there) for name, kinds in lands_on.items()}


def _settings(kafka: PackageResource, pool: PackageResource) -> Mapping[str, Mapping[str, Any]]:
    """Return what else is the pool's as a whole, or the Kafka's (strimzi 5)."""
    inherited, own = mapping(value_at(kafka.data, ("spec", "kafka"))), mapping(value_at(pool.data, ("spec",)))
    (jvm,) = merge_templates(("jvmOptions",), inherited, own)
    if jvm.source == "unset":
        return {}
    return {"jvmOptions": {"source": _WORDS[jvm.source], "value": jvm.value}}
