"""The fields of the eight properties: of which type each is, and which are not known (strimzi 2.3)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from reconciler.rules.fields import shown
from reconciler.rules.templates.codes import INVALID_TEMPLATE_TYPE, UNKNOWN_TEMPLATE_FIELD
from reconciler.rules.templates.model import Remark
from reconciler.rules.templates.strimzi.metadata import type_remarks

_QUANTITY = re.compile(r"([0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)", re.ASCII)
_DNS_POLICIES = ("ClusterFirst", "ClusterFirstWithHostNet", "Default", "None")

# "" where a value may stand, else what must stand there
Check = Callable[[Any], str]


def _mapping(value: Any) -> str:
    return "" if isinstance(value, Mapping) else "a mapping"


def _mappings(value: Any) -> str:
    return "" if isinstance(value, list) and all(isinstance(one, Mapping) for one in value) else "a list of mappings"


def _text(value: Any) -> str:
    return "" if isinstance(value, str) else "a string"


def _truth(value: Any) -> str:
    return "" if isinstance(value, bool) else "true or false"


def _count(value: Any) -> str:
    is_one = isinstance(value, int) and not isinstance(value, bool) and value >= 0
    return "" if is_one else "a whole number of at least 0"


def _quantity(value: Any) -> str:
    return "" if isinstance(value, str) and _QUANTITY.fullmatch(value) else "a quantity such as 5Mi"


def _dns_policy(value: Any) -> str:
    return "" if value in _DNS_POLICIES else f"one of {', '.join(_DNS_POLICIES)}"


_METADATA: Mapping[str, Check] = {"metadata": _mapping}
_CONTAINER: Mapping[str, Check] = {"env": _mappings, "securityContext": _mapping, "volumeMounts": _mappings}
_POD: Mapping[str, Check] = {
    **_METADATA,
    "imagePullSecrets": _mappings,
    "securityContext": _mapping,
    "terminationGracePeriodSeconds": _count,
    "affinity": _mapping,
    "tolerations": _mappings,
    "topologySpreadConstraints": _mappings,
    "priorityClassName": _text,
    "schedulerName": _text,
    "hostAliases": _mappings,
    "dnsPolicy": _dns_policy,
    "dnsConfig": _mapping,
    "enableServiceLinks": _truth,
    "tmpDirSizeLimit": _quantity,
    "volumes": _mappings,
    "templatedVolumes": _mappings,
    "hostUsers": _truth,
}
_FIELDS: Mapping[str, Mapping[str, Check]] = {"pod": _POD, "kafkaContainer": _CONTAINER, "initContainer": _CONTAINER}


def schema_remarks(name: str, value: Mapping[str, Any]) -> Iterator[Remark]:
    """Yield every field of a property that has another type than it must have, or is not known; null is no value."""
    fields = _FIELDS.get(name, _METADATA)
    for key, one in value.items():
        if key not in fields:
            message = f"{key} is none of {', '.join(fields)}; it is passed on"
            yield Remark(UNKNOWN_TEMPLATE_FIELD, message, name, (key,))
        elif one is not None and (wanted := fields[key](one)):
            yield Remark(INVALID_TEMPLATE_TYPE, f"must be {wanted}, not {shown(one)}", name, (key,))
    if "metadata" in fields:
        yield from type_remarks(name, value.get("metadata"))
