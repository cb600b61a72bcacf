"""Checks of the fields in a template: types, unknown fields, labels and annotations."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal

from reconciler.controllers.kafka_templates.codes import TemplateCodes
from reconciler.controllers.kafka_templates.model import TemplateRemark
from reconciler.controllers.kafka_templates.strimzi.pool import NodePool, as_mapping, filter_strings
from reconciler.krm.field_text import describe_choice, quote_value
from reconciler.krm.findings import FindingCode
from reconciler.krm.yaml import DataPath
from reconciler.lazy_dataclasses import dataclass

_STRIMZI_PREFIX, _CLUSTER_LABEL, _KUBERNETES_PREFIX = "strimzi.io/", "strimzi.io/cluster", "app.kubernetes.io/"
_EXCLUDED_PREFIXES, _INCLUDED_PREFIX = (
    ("app.kubernetes.io/", "kustomize.toolkit.fluxcd.io"),
    "app.kubernetes.io/part-of",
)
_OPERATOR_LABELS = frozenset(f"{_KUBERNETES_PREFIX}{name}" for name in ("name", "instance", "part-of", "managed-by"))

# How the operator treats keys of labels or annotations in a template:
# - strict: it refuses keys that start with strimzi.io/ and copies all other keys.
# - filtered: it also drops keys that start with app.kubernetes.io/.
# - free: it copies all keys.
MetadataFilter = Literal["strict", "filtered", "free"]
_QUANTITY = re.compile(r"([0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)", re.ASCII)
_DNS_POLICIES = ("ClusterFirst", "ClusterFirstWithHostNet", "Default", "None")
# A function that returns "" for a valid value. For an invalid value, it returns a description of the allowed values.
ValueCheck = Callable[[Any], str]


@dataclass(frozen=True)
class MetadataFilters:
    """How the operator filters the labels and the annotations of one template property."""

    labels: MetadataFilter
    annotations: MetadataFilter


METADATA_FILTERS: Mapping[str, MetadataFilters] = {
    "podSet": MetadataFilters("strict", "filtered"),
    "pod": MetadataFilters("filtered", "filtered"),
    "perPodService": MetadataFilters("filtered", "filtered"),
    "perPodRoute": MetadataFilters("strict", "free"),
    "perPodIngress": MetadataFilters("strict", "filtered"),
    "persistentVolumeClaim": MetadataFilters("strict", "filtered"),
}


def build_base_labels(pool: NodePool) -> dict[str, str]:
    """Return the labels of all objects of a pool: labels of the KafkaNodePool, and labels that the operator adds."""
    own = {key: value for key, value in pool.labels.items() if not _is_excluded(key)}
    return {
        **own,
        "strimzi.io/cluster": pool.kafka,
        "strimzi.io/kind": "Kafka",
        "strimzi.io/name": f"{pool.kafka}-kafka",
        "strimzi.io/component-type": "kafka",
        "strimzi.io/pool-name": pool.name,
        "app.kubernetes.io/name": "kafka",
        "app.kubernetes.io/instance": pool.kafka,
        "app.kubernetes.io/part-of": f"strimzi-{pool.kafka}",
        "app.kubernetes.io/managed-by": "strimzi-cluster-operator",
    }


def filter_entries(entries: Any, metadata_filter: MetadataFilter) -> dict[str, str]:
    """Return the labels or annotations that are left after the operator has applied a filter."""
    return {
        key: value
        for key, value in filter_strings(entries).items()
        if metadata_filter != "filtered" or not key.startswith(_KUBERNETES_PREFIX)
    }


def check_pool_labels(pool: NodePool) -> Iterator[TemplateRemark]:
    """Yield issues about the labels of a KafkaNodePool. All objects of the pool inherit these labels."""
    for key in pool.labels:
        if key.startswith(_STRIMZI_PREFIX) and not key.startswith(_CLUSTER_LABEL):
            message = (
                f"must be absent, because keys that start with {_STRIMZI_PREFIX} are reserved for the operator, and all"
                " objects of a KafkaNodePool inherit its labels"
            )
            yield TemplateRemark(TemplateCodes.RESERVED_LABEL, message, "", ("metadata", "labels", key))


def check_metadata_types(name: str, metadata: Any) -> Iterator[TemplateRemark]:
    """Yield an error for each label or annotation of a template property whose value is not a string."""
    for field in ("labels", "annotations"):
        entries = as_mapping(metadata).get(field)
        if entries is not None and not isinstance(entries, Mapping):
            path: DataPath = ("metadata", field)
            yield TemplateRemark(
                TemplateCodes.INVALID_TEMPLATE_TYPE,
                f"must be a mapping of strings, but is {quote_value(entries)}",
                name,
                path,
            )
        for key, value in as_mapping(entries).items():
            if not isinstance(value, str):
                message = f"must be a string, but is {quote_value(value)}; put the value in quotes"
                yield TemplateRemark(TemplateCodes.INVALID_TEMPLATE_TYPE, message, name, ("metadata", field, key))


def check_metadata(name: str, metadata: Any) -> Iterator[TemplateRemark]:
    """Yield issues about labels and annotations that the operator refuses or drops, or that users should not set."""
    filters, entries = METADATA_FILTERS[name], as_mapping(metadata)
    for key in as_mapping(entries.get("labels")):
        yield from _check_key(key, filters.labels, TemplateCodes.RESERVED_LABEL, name, "labels")
    for key in as_mapping(entries.get("annotations")):
        yield from _check_key(key, filters.annotations, TemplateCodes.RESERVED_ANNOTATION, name, "annotations")


def _check_key(
    key: str, metadata_filter: MetadataFilter, reserved: FindingCode, name: str, field: str
) -> Iterator[TemplateRemark]:
    path: DataPath = ("metadata", field, key)
    if key.startswith(_STRIMZI_PREFIX):
        reason = f"keys that start with {_STRIMZI_PREFIX} are reserved for the operator"
        if metadata_filter == "free" or (metadata_filter == "strict" and key.startswith(_CLUSTER_LABEL)):
            yield TemplateRemark(
                reserved,
                f"should be absent, because {reason}; the operator accepts this key, but the Strimzi documentation"
                " forbids it",
                name,
                path,
                True,
            )
        else:
            yield TemplateRemark(reserved, f"must be absent, because {reason}", name, path)
    elif "strimzi.io" in key:
        message = "should be absent, because keys that contain strimzi.io are reserved for the operator"
        yield TemplateRemark(reserved, message, name, path, True)
    elif metadata_filter == "filtered" and key.startswith(_KUBERNETES_PREFIX):
        yield TemplateRemark(
            TemplateCodes.IGNORED_LABEL,
            f"has no effect, because the operator drops {field} of {name} that start with {_KUBERNETES_PREFIX}",
            name,
            path,
        )
    elif metadata_filter == "strict" and field == "labels" and key in _OPERATOR_LABELS:
        message = "should be absent, because this label replaces a label that the operator sets"
        yield TemplateRemark(TemplateCodes.OPERATOR_LABEL_REPLACED, message, name, path)


def _is_excluded(key: str) -> bool:
    return key.startswith(_EXCLUDED_PREFIXES) and not key.startswith(_INCLUDED_PREFIX)


def _check_mapping(value: Any) -> str:
    return "" if isinstance(value, Mapping) else "a mapping"


def _check_mappings(value: Any) -> str:
    return "" if isinstance(value, list) and all(isinstance(item, Mapping) for item in value) else "a list of mappings"


def _check_string(value: Any) -> str:
    return "" if isinstance(value, str) else "a string"


def _check_boolean(value: Any) -> str:
    return "" if isinstance(value, bool) else "true or false"


def _check_count(value: Any) -> str:
    is_valid = isinstance(value, int) and not isinstance(value, bool) and value >= 0
    return "" if is_valid else "a whole number of at least 0"


def _check_quantity(value: Any) -> str:
    return "" if isinstance(value, str) and _QUANTITY.fullmatch(value) else "a quantity such as 5Mi"


def _check_dns_policy(value: Any) -> str:
    return "" if value in _DNS_POLICIES else describe_choice(_DNS_POLICIES)


_METADATA: Mapping[str, ValueCheck] = {"metadata": _check_mapping}
_CONTAINER: Mapping[str, ValueCheck] = {
    "env": _check_mappings,
    "securityContext": _check_mapping,
    "volumeMounts": _check_mappings,
}
_POD: Mapping[str, ValueCheck] = {
    **_METADATA,
    "imagePullSecrets": _check_mappings,
    "securityContext": _check_mapping,
    "terminationGracePeriodSeconds": _check_count,
    "affinity": _check_mapping,
    "tolerations": _check_mappings,
    "topologySpreadConstraints": _check_mappings,
    "priorityClassName": _check_string,
    "schedulerName": _check_string,
    "hostAliases": _check_mappings,
    "dnsPolicy": _check_dns_policy,
    "dnsConfig": _check_mapping,
    "enableServiceLinks": _check_boolean,
    "tmpDirSizeLimit": _check_quantity,
    "volumes": _check_mappings,
    "templatedVolumes": _check_mappings,
    "hostUsers": _check_boolean,
}
_FIELDS: Mapping[str, Mapping[str, ValueCheck]] = {
    "pod": _POD,
    "kafkaContainer": _CONTAINER,
    "initContainer": _CONTAINER,
}


def check_template_fields(name: str, value: Mapping[str, Any]) -> Iterator[TemplateRemark]:
    """Yield an issue for each field with an invalid type or an unknown name. A null value is treated as absent."""
    fields = _FIELDS.get(name, _METADATA)
    for key, field_value in value.items():
        if key not in fields:
            message = f"is an unknown field and stays unchanged; known fields: {', '.join(fields)}"
            yield TemplateRemark(TemplateCodes.UNKNOWN_TEMPLATE_FIELD, message, name, (key,))
        elif field_value is not None and (allowed := fields[key](field_value)):
            yield TemplateRemark(
                TemplateCodes.INVALID_TEMPLATE_TYPE,
                f"must be {allowed}, but is {quote_value(field_value)}",
                name,
                (key,),
            )
    if "metadata" in fields:
        yield from check_metadata_types(name, value.get("metadata"))
