"""Checks of pod and container templates: environment variables, security contexts, volumes and mounts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from reconciler.controllers.codes import ControllerCodes
from reconciler.controllers.kafka_templates.codes import TemplateCodes
from reconciler.controllers.kafka_templates.model import StrimziOperator, TemplateRemark
from reconciler.controllers.kafka_templates.strimzi.pool import NodePool, as_mapping
from reconciler.krm.field_text import quote_value
from reconciler.krm.yaml import DataPath
from reconciler.redaction import MASK

_VOLUME_NAME = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9._-]*[a-zA-Z0-9]", re.ASCII)
_MAX_NAME_LENGTH = 63
_OPERATOR_VOLUMES = ("kube-api-access", "strimzi-tmp", "kafka-metrics-and-logging", "ready-files")
_INIT_VOLUME = "rack-volume"
_SOURCES: Mapping[str, tuple[str, ...]] = {
    "volumes": ("secret", "configMap", "emptyDir", "persistentVolumeClaim", "csi", "image"),
    "templatedVolumes": ("secret", "configMap", "persistentVolumeClaim"),
}
_MOUNT_FOLDER = "/mnt"
# Match the end of a name, so that names such as KEYSTORE_PATH and MAX_TOKENS are not treated as names of secrets.
_SECRET_NAME = re.compile(r"(?:PASSWORD|PASSWD|PASSPHRASE|TOKEN|SECRET|(?:\A|[_.-])KEY)\Z", re.IGNORECASE)
_REFERENCES = ("secretKeyRef", "configMapKeyRef")
_SET_ALWAYS = ("KAFKA_JMX_EXPORTER_ENABLED", "STRIMZI_KAFKA_GC_LOG_ENABLED", "KAFKA_CLUSTER_NAME")
_SET_SOMETIMES = (
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
_SET_SOMETIMES_ANYWHERE = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "FIPS_MODE")


def list_entries(value: Any, field: str) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Yield the index and the content of each mapping in the list at `field`."""
    items = as_mapping(value).get(field)
    if isinstance(items, list):
        yield from ((number, item) for number, item in enumerate(items) if isinstance(item, Mapping))


def check_volumes(pod: Any, pool: NodePool) -> Iterator[TemplateRemark]:
    """Yield issues about the volumes in a pod template."""
    owners = dict.fromkeys(_list_operator_volumes(pool), "the operator already adds")
    for field, sources in _SOURCES.items():
        for number, volume in list_entries(pod, field):
            name, path = volume.get("name"), (field, number)
            yield from _check_volume_name(name, path, owners)
            if isinstance(name, str):
                owners.setdefault(name, "this template already has")
            present_sources = [source for source in sources if volume.get(source) is not None]
            if len(present_sources) != 1:
                message = (
                    f"must have exactly one of {', '.join(sources)}, but has {' and '.join(present_sources) or 'none'}"
                )
                yield TemplateRemark(TemplateCodes.INVALID_VOLUME_SOURCE, message, "pod", path)


def check_mounts(name: str, container: Any, pod: Any, pool: NodePool) -> Iterator[TemplateRemark]:
    """Yield issues about the volume mounts in a container template. `pod` is the effective pod template."""
    volume_names = [
        *_list_operator_volumes(pool),
        *(mount.get("name") for field in _SOURCES for _, mount in list_entries(pod, field)),
    ]
    paths: list[Any] = []
    for number, mount in list_entries(container, "volumeMounts"):
        path: DataPath = ("volumeMounts", number)
        if mount.get("name") not in volume_names:
            message = (
                f"refers to the volume {quote_value(mount.get('name'))}, but the effective pod template has no volume"
                " with this name; add the volume, or remove the mount"
            )
            yield TemplateRemark(TemplateCodes.MOUNT_WITHOUT_VOLUME, message, name, (*path, "name"))
        mount_path = mount.get("mountPath")
        if isinstance(mount_path, str) and mount_path in paths:
            yield TemplateRemark(
                TemplateCodes.DUPLICATE_MOUNT_PATH,
                f"must be unique, but another volume mount also has the path {quote_value(mount_path)}",
                name,
                (*path, "mountPath"),
            )
        paths.append(mount_path)
        yield from _check_mount_path(mount_path, name, (*path, "mountPath"))


def _list_operator_volumes(pool: NodePool) -> tuple[str, ...]:
    init = (_INIT_VOLUME,) if pool.has_init_container else ()
    return (*pool.data_volumes, *_OPERATOR_VOLUMES, *init)


def _check_volume_name(name: Any, path: DataPath, owners: Mapping[str, str]) -> Iterator[TemplateRemark]:
    if not isinstance(name, str) or not _VOLUME_NAME.fullmatch(name) or len(name) > _MAX_NAME_LENGTH:
        allowed = (
            f'2 to {_MAX_NAME_LENGTH} letters, digits, "-", "_" and ".", and must start and end with a letter or digit'
        )
        yield TemplateRemark(
            TemplateCodes.INVALID_VOLUME_NAME,
            f"must consist of {allowed}, but is {quote_value(name)}",
            "pod",
            (*path, "name"),
        )
    elif name in owners:
        message = f"must be unique, but {owners[name]} a volume with the name {quote_value(name)}"
        yield TemplateRemark(TemplateCodes.DUPLICATE_VOLUME_NAME, message, "pod", (*path, "name"))


def _check_mount_path(mount_path: Any, name: str, path: DataPath) -> Iterator[TemplateRemark]:
    if not isinstance(mount_path, str) or not mount_path.startswith(_MOUNT_FOLDER):
        yield TemplateRemark(
            TemplateCodes.FORBIDDEN_MOUNT_PATH,
            f"must be a path below {_MOUNT_FOLDER}, but is {quote_value(mount_path)}",
            name,
            path,
        )
    elif mount_path.removeprefix(_MOUNT_FOLDER)[:1] not in ("", "/"):
        message = (
            f"should be a path below {_MOUNT_FOLDER}/, but is {quote_value(mount_path)}; the operator accepts this"
            " path, but the Strimzi documentation forbids it"
        )
        yield TemplateRemark(TemplateCodes.FORBIDDEN_MOUNT_PATH, message, name, path, is_warning=True)


def build_effective_env(name: str, container: Any, pool: NodePool) -> list[dict[str, Any]]:
    """Return the environment variables that the operator uses from a container template.

    Values that may be secrets are masked.
    """
    reserved, _ = _list_reserved_names(name, pool)
    usable = (
        variable
        for _, variable in list_entries(container, "env")
        if variable.get("name") not in reserved and _has_value(variable)
    )
    return [{**variable, "value": MASK} if _is_secret_suspected(variable) else dict(variable) for variable in usable]


def check_container(name: str, container: Any, pool: NodePool, operator: StrimziOperator) -> Iterator[TemplateRemark]:
    """Yield issues about the environment variables and the security context of a container template."""
    names: list[Any] = []
    for number, variable in list_entries(container, "env"):
        yield from (TemplateRemark(code, message, name, ("env", number)) for code, message in _check_env(variable))
        yield from _check_env_name(name, variable, number, pool)
        if variable.get("name") in names:
            message = f"sets the variable {quote_value(variable.get('name'))} again; the last value applies"
            yield TemplateRemark(ControllerCodes.DUPLICATE_ENV_NAME, message, name, ("env", number, "name"))
        names.append(variable.get("name"))
    if operator.is_restricted and as_mapping(container).get("securityContext") is not None:
        message = (
            "replaces the complete security context of the operator's restricted profile; add all fields of the profile"
            " that you want to keep"
        )
        yield TemplateRemark(TemplateCodes.SECURITY_CONTEXT_REPLACED, message, name, ("securityContext",))


def _check_env(variable: Mapping[str, Any]) -> Iterator[tuple[Any, str]]:
    value, source = variable.get("value"), variable.get("valueFrom")
    references = [key for key in _REFERENCES if as_mapping(source).get(key) is not None]
    quoted_name = quote_value(variable.get("name"))
    if not isinstance(variable.get("name"), str) or not variable["name"]:
        yield (
            TemplateCodes.INVALID_TEMPLATE_TYPE,
            f"must have a name that is a string and not empty, but the name is {quoted_name}",
        )
    if value is not None and not isinstance(value, str):
        message = (
            f"must set {quoted_name} to a string, but the value has the type {type(value).__name__}; put the value in"
            " quotes"
        )
        yield TemplateCodes.INVALID_TEMPLATE_TYPE, message
    if value is not None and source is not None:
        yield (
            TemplateCodes.INVALID_ENV_SOURCE,
            f"must have only one of value and valueFrom for {quoted_name}, but has both",
        )
    if len(references) > 1:
        yield (
            TemplateCodes.INVALID_ENV_SOURCE,
            f"must have only one of {' and '.join(references)} for {quoted_name}, but has both",
        )
    if not _has_value(variable):
        message = (
            f"has no value for {quoted_name}. The operator ignores this variable; add a value, or a valueFrom"
            f" with {' or '.join(_REFERENCES)}"
        )
        yield TemplateCodes.ENV_WITHOUT_VALUE, message


def _check_env_name(
    container: str, variable: Mapping[str, Any], number: int, pool: NodePool
) -> Iterator[TemplateRemark]:
    name, (always, sometimes) = variable.get("name"), _list_reserved_names(container, pool)
    if name in always or name in sometimes:
        message = (
            f"should not be {quote_value(name)}, because the operator sets this variable and ignores the value in the"
            " template"
            if name in always
            else f"should not be {quote_value(name)}, because the operator may set this variable, and then ignores the"
            " value in the template"
        )
        yield TemplateRemark(TemplateCodes.ENV_NAME_RESERVED, message, container, ("env", number, "name"))
    if name not in always and _is_secret_suspected(variable):
        message = (
            f"contains the value of {quote_value(name)}, but the name suggests a secret; use valueFrom with a Secret"
        )
        yield TemplateRemark(TemplateCodes.LITERAL_SECRET_SUSPECTED, message, container, ("env", number))


def _list_reserved_names(container: str, pool: NodePool) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names of variables that the operator always sets in a container, and of variables that it may set."""
    if container == "kafkaContainer":
        return _SET_ALWAYS, (*_SET_SOMETIMES, *_SET_SOMETIMES_ANYWHERE)
    rack = ("RACK_TOPOLOGY_KEY",) if pool.topology_key else ()
    address = ("EXTERNAL_ADDRESS",) if any(listener.type == "nodeport" for listener in pool.listeners) else ()
    return ("NODE_NAME", *rack, *address), _SET_SOMETIMES_ANYWHERE


def _has_value(variable: Mapping[str, Any]) -> bool:
    source = as_mapping(variable.get("valueFrom"))
    # Accept an empty string, because it is a valid value of a variable.
    return variable.get("value") is not None or any(source.get(key) is not None for key in _REFERENCES)


def _is_secret_suspected(variable: Mapping[str, Any]) -> bool:
    name, value = variable.get("name"), variable.get("value")
    return isinstance(name, str) and bool(value) and _SECRET_NAME.search(name) is not None
