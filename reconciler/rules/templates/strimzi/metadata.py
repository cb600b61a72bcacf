"""Labels and annotations of templates: which land on which object, and which are refused or dropped (strimzi 6.1)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from reconciler.krm.findings import Code
from reconciler.krm.yaml import Path
from reconciler.rules.fields import shown
from reconciler.rules.templates.codes import (
    IGNORED_LABEL,
    INVALID_TEMPLATE_TYPE,
    OPERATOR_LABEL_REPLACED,
    RESERVED_ANNOTATION,
    RESERVED_LABEL,
)
from reconciler.rules.templates.model import Remark
from reconciler.rules.templates.strimzi.pool import Pool, mapping, texts

_STRIMZI, _CLUSTER, _KUBERNETES = "strimzi.io/", "strimzi.io/cluster", "app.kubernetes.io/"
_EXCLUDED, _BUT = ("app.kubernetes.io/", "kustomize.toolkit.fluxcd.io"), "app.kubernetes.io/part-of"
_OPERATORS = frozenset(f"{_KUBERNETES}{name}" for name in ("name", "instance", "part-of", "managed-by"))

# strict: added as they are, only strimzi.io is refused; filtered: app.kubernetes.io is dropped as well;
# free: nobody looks, because the template is what everything else is added to
Filter = Literal["strict", "filtered", "free"]


@dataclass(frozen=True)
class Filters:
    """How the labels and the annotations of one property are taken over."""

    labels: Filter
    annotations: Filter


FILTERS: Mapping[str, Filters] = {
    "podSet": Filters("strict", "filtered"),
    "pod": Filters("filtered", "filtered"),
    "perPodService": Filters("filtered", "filtered"),
    "perPodRoute": Filters("strict", "free"),
    "perPodIngress": Filters("strict", "filtered"),
    "persistentVolumeClaim": Filters("strict", "filtered"),
}


def base_labels(pool: Pool) -> dict[str, str]:
    """Return the labels of all objects of a pool: those of the pool itself, and the operator's (strimzi 6.0)."""
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


def kept(said: Any, how: Filter) -> dict[str, str]:
    """Return the labels or annotations that land, of those that a template or listener says."""
    return {key: value for key, value in texts(said).items() if how != "filtered" or not key.startswith(_KUBERNETES)}


def pool_label_remarks(pool: Pool) -> Iterator[Remark]:
    """Yield what is wrong with the labels of the pool itself, which all its objects have."""
    for key in pool.labels:
        if key.startswith(_STRIMZI) and not key.startswith(_CLUSTER):
            message = (
                f"{key} must be left out: labels of a KafkaNodePool go to all its objects, where it is the operator's"
            )
            yield Remark(RESERVED_LABEL, message, "", ("metadata", "labels", key))


def type_remarks(name: str, metadata: Any) -> Iterator[Remark]:
    """Yield where labels and annotations of a property are not strings."""
    for field in ("labels", "annotations"):
        said = mapping(metadata).get(field)
        if said is not None and not isinstance(said, Mapping):
            path: Path = ("metadata", field)
            yield Remark(INVALID_TEMPLATE_TYPE, f"must be a mapping of strings, not {shown(said)}", name, path)
        for key, value in mapping(said).items():
            if not isinstance(value, str):
                message = f"must be a string, not {shown(value)}: quote it"
                yield Remark(INVALID_TEMPLATE_TYPE, message, name, ("metadata", field, key))


def metadata_remarks(name: str, metadata: Any) -> Iterator[Remark]:
    """Yield which labels and annotations of a property are refused or dropped by operators, or better not written."""
    filters, said = FILTERS[name], mapping(metadata)
    for key in mapping(said.get("labels")):
        yield from _remark(key, filters.labels, RESERVED_LABEL, name, "labels")
    for key in mapping(said.get("annotations")):
        yield from _remark(key, filters.annotations, RESERVED_ANNOTATION, name, "annotations")


def _remark(key: str, how: Filter, reserved: Code, name: str, field: str) -> Iterator[Remark]:
    path: Path = ("metadata", field, key)
    if key.startswith(_STRIMZI):
        if how == "free" or (how == "strict" and key.startswith(_CLUSTER)):
            yield Remark(
                reserved, f"{_STRIMZI} is the operator's, which takes {key} here all the same", name, path, True
            )
        else:
            yield Remark(reserved, f"{key} must be left out: {_STRIMZI} is the operator's", name, path)
    elif "strimzi.io" in key:
        yield Remark(reserved, f"{key} is better left out: strimzi.io is the operator's", name, path, True)
    elif how == "filtered" and key.startswith(_KUBERNETES):
        yield Remark(IGNORED_LABEL, f"{key} does not get here: the operator drops {_KUBERNETES}", name, path)
    elif how == "strict" and field == "labels" and key in _OPERATORS:
        yield Remark(OPERATOR_LABEL_REPLACED, f"{key} replaces the operator's own label", name, path)


def _is_excluded(key: str) -> bool:
    return key.startswith(_EXCLUDED) and not key.startswith(_BUT)
