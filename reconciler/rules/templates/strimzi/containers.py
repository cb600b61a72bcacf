"""Variables and security contexts of containers: which of them are in effect (strimzi 6.3)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from reconciler.krm.secrets import MASK
from reconciler.rules.codes import DUPLICATE_ENV_NAME
from reconciler.rules.fields import shown
from reconciler.rules.templates.codes import (
    ENV_NAME_RESERVED,
    ENV_WITHOUT_VALUE,
    INVALID_ENV_SOURCE,
    INVALID_TEMPLATE_TYPE,
    LITERAL_SECRET_SUSPECTED,
    SECURITY_CONTEXT_REPLACED,
)
from reconciler.rules.templates.model import Remark
from reconciler.rules.templates.strimzi.operator import Operator
from reconciler.rules.templates.strimzi.pool import Pool, mapping
from reconciler.rules.templates.strimzi.volumes import entries

# what the name of a secret ends with; KEYSTORE_PATH and MAX_TOKENS are none
_SECRET = re.compile(r"(?:PASSWORD|PASSWD|PASSPHRASE|TOKEN|SECRET|(?:\A|[_.-])KEY)\Z", re.IGNORECASE)
_REFERENCES = ("secretKeyRef", "configMapKeyRef")
_ALWAYS = ("KAFKA_JMX_EXPORTER_ENABLED", "STRIMZI_KAFKA_GC_LOG_ENABLED", "KAFKA_CLUSTER_NAME")
_SOMETIMES = (
    "KAFKA_HEAP_OPTS",
    "STRIMZI_DYNAMIC_HEAP_PERCENTAGE",
    "STRIMZI_DYNAMIC_HEAP_MAX",
    "KAFKA_JVM_PERFORMANCE_OPTS",
    "STRIMZI_JAVA_OPTS",
    "STRIMZI_JAVA_SYSTEM_PROPERTIES",
    "STRIMZI_JMX_ENABLED",
    "STRIMZI_JMX_USERNAME",
    "STRIMZI_JMX_PASSWORD",
)
_ANYWHERE_SOMETIMES = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "FIPS_MODE")


def env_in_effect(name: str, container: Any, pool: Pool) -> list[dict[str, Any]]:
    """Return the variables that come behind the operator's, as may be shown."""
    reserved, _ = _reserved(name, pool)
    usable = (one for _, one in entries(container, "env") if one.get("name") not in reserved and _has_value(one))
    return [{**one, "value": MASK} if _is_suspect(one) else dict(one) for one in usable]


def container_remarks(name: str, container: Any, pool: Pool, operator: Operator) -> Iterator[Remark]:
    """Yield what is wrong with the variables of a container template, and what its security context replaces."""
    names: list[Any] = []
    for number, one in entries(container, "env"):
        yield from (Remark(code, said, name, ("env", number)) for code, said in _env_faults(one))
        yield from _name_remarks(name, one, number, pool)
        if one.get("name") in names:
            message = f"{shown(one.get('name'))} stands there twice, and the last one counts"
            yield Remark(DUPLICATE_ENV_NAME, message, name, ("env", number, "name"))
        names.append(one.get("name"))
    if operator.is_restricted and mapping(container).get("securityContext") is not None:
        message = "replaces all that the restricted profile sets, also what it does not name"
        yield Remark(SECURITY_CONTEXT_REPLACED, message, name, ("securityContext",))


def _env_faults(one: Mapping[str, Any]) -> Iterator[tuple[Any, str]]:
    value, source = one.get("value"), one.get("valueFrom")
    references = [key for key in _REFERENCES if mapping(source).get(key) is not None]
    named = shown(one.get("name"))
    if not isinstance(one.get("name"), str) or not one["name"]:
        yield INVALID_TEMPLATE_TYPE, f"must have a name that is a string, not {named}"
    if value is not None and not isinstance(value, str):
        yield INVALID_TEMPLATE_TYPE, f"the value of {named} must be a string, not {type(value).__name__}: quote it"
    if value is not None and source is not None:
        yield INVALID_ENV_SOURCE, f"{named} must have a value or a valueFrom, not both"
    if len(references) > 1:
        yield INVALID_ENV_SOURCE, f"{named} must come from one of {' and '.join(references)}, not both"
    if not _has_value(one):
        yield ENV_WITHOUT_VALUE, f"{named} has no value, and the operator ignores it"


def _name_remarks(container: str, one: Mapping[str, Any], number: int, pool: Pool) -> Iterator[Remark]:
    name, (always, sometimes) = one.get("name"), _reserved(container, pool)
    if name in always or name in sometimes:
        how = "sets it, and ignores it here" if name in always else "may set it, and then ignores it here"
        yield Remark(ENV_NAME_RESERVED, f"{name}: the operator {how}", container, ("env", number, "name"))
    if name not in always and _is_suspect(one):
        message = f"{name} looks like a secret, and is better taken from a Secret by valueFrom"
        yield Remark(LITERAL_SECRET_SUSPECTED, message, container, ("env", number))


def _reserved(container: str, pool: Pool) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names that the operator sets in a container, and those that it may set."""
    if container == "kafkaContainer":
        return _ALWAYS, (*_SOMETIMES, *_ANYWHERE_SOMETIMES)
    rack = ("RACK_TOPOLOGY_KEY",) if pool.topology_key else ()
    address = ("EXTERNAL_ADDRESS",) if any(one.type == "nodeport" for one in pool.listeners) else ()
    return ("NODE_NAME", *rack, *address), _ANYWHERE_SOMETIMES


def _has_value(one: Mapping[str, Any]) -> bool:
    source = mapping(one.get("valueFrom"))
    # an empty string is a value
    return one.get("value") is not None or any(source.get(key) is not None for key in _REFERENCES)


def _is_suspect(one: Mapping[str, Any]) -> bool:
    name, value = one.get("name"), one.get("value")
    return isinstance(name, str) and bool(value) and _SECRET.search(name) is not None
