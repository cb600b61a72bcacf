"""Builders of Kafka and KafkaNodePool manifests as YAML, and functions that merge their templates."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from reconciler.catalog.files import File, FileTree
from reconciler.controllers.kafka_templates.model import TemplateMergeRule, TemplateOptions
from reconciler.controllers.kafka_templates.package_templates import (
    TemplatedPackage,
    TemplatedResource,
    apply_templates,
)
from reconciler.controllers.kafka_templates.pairing import find_pairs
from reconciler.krm.findings import Finding
from reconciler.krm.objects import ObjectKey
from reconciler.krm.yaml import emit, parse_yaml

MISSING: Any = object()
PACKAGE = "streaming"
SHARED = (
    "podSet",
    "pod",
    "perPodService",
    "perPodRoute",
    "perPodIngress",
    "persistentVolumeClaim",
    "kafkaContainer",
    "initContainer",
)


def tree(files: Mapping[str, str]) -> FileTree:
    return FileTree({path: File(text.encode()) for path, text in files.items()})


def kafka(
    template: Any = MISSING, name: str = "orders", namespace: str = "shop", version: str = "v1", **spec: Any
) -> str:
    own = {**spec, **({} if template is MISSING else {"template": template})}
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return emit(
        {"apiVersion": f"kafka.strimzi.io/{version}", "kind": "Kafka", "metadata": metadata, "spec": {"kafka": own}}
    )


def pool(
    template: Any = MISSING,
    name: str = "brokers",
    cluster: Any = "orders",
    namespace: str = "shop",
    version: str = "v1",
    annotations: Mapping[str, str] | None = None,
    labels: Mapping[str, Any] | None = None,
    status: Any = MISSING,
    **spec: Any,
) -> str:
    labels_of_cluster = {} if cluster is MISSING else {"strimzi.io/cluster": cluster}
    metadata: dict[str, Any] = {"name": name, **({"namespace": namespace} if namespace else {})}
    metadata |= {"labels": {**labels_of_cluster, **(labels or {})}} if labels_of_cluster or labels else {}
    metadata |= {"annotations": dict(annotations)} if annotations else {}
    own = {"replicas": 3, "roles": ["controller", "broker"], "storage": {"type": "ephemeral"}, **spec}
    own |= {} if template is MISSING else {"template": template}
    whole = {"apiVersion": f"kafka.strimzi.io/{version}", "kind": "KafkaNodePool", "metadata": metadata, "spec": own}
    return emit(whole | ({} if status is MISSING else {"status": status}))


def merge(
    files: Mapping[str, str] | FileTree,
    mapping: Mapping[str, Mapping[str, str]] | None = None,
    options: TemplateOptions | None = None,
    rules: tuple[TemplateMergeRule, ...] | None = None,
) -> TemplatedPackage:
    """Merge the templates of the pools in a package. `mapping` contains the other packages on the same cluster."""
    own = files if isinstance(files, FileTree) else tree(files)
    packages = {PACKAGE: own, **{name: tree(texts) for name, texts in (mapping or {}).items()}}
    return apply_templates(own, find_pairs(packages, rules), options)


def pair(parent: Any, child: Any, options: TemplateOptions | None = None, **spec: Any) -> TemplatedPackage:
    """Merge a package of one Kafka and one pool with these templates."""
    return merge({"kafka.yaml": kafka(parent), "pool.yaml": pool(child, **spec)}, options=options)


def data_of(package: TemplatedPackage, path: str = "pool.yaml") -> Any:
    return parse_yaml(package.files[path].data).documents[0].data


def template_of(package: TemplatedPackage, path: str = "pool.yaml") -> Any:
    return data_of(package, path)["spec"].get("template", MISSING)


def format_codes(findings: Iterable[Finding]) -> list[str]:
    return [f"{finding.severity[0].upper()} {finding.code}" for finding in findings]


def find_resource(package: TemplatedPackage, name: str) -> TemplatedResource:
    return next(
        templated_resource for templated_resource in package.resources if templated_resource.resource.name == name
    )


def sources_of(package: TemplatedPackage, name: str = "brokers") -> dict[str, str]:
    effect = find_resource(package, name).effect
    assert effect is not None
    return {item["name"]: item["source"] for item in effect.as_data().get("properties", ())}


def key(name: str, kind: str = "KafkaNodePool", namespace: str = "shop") -> ObjectKey:
    return ObjectKey("kafka.strimzi.io", kind, namespace, name)
