"""Additional volumes of pods, and whether there is one for every mount (strimzi 6.2, 6.3)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from reconciler.krm.yaml import Path
from reconciler.rules.fields import shown
from reconciler.rules.templates.codes import (
    DUPLICATE_MOUNT_PATH,
    DUPLICATE_VOLUME_NAME,
    FORBIDDEN_MOUNT_PATH,
    INVALID_VOLUME_NAME,
    INVALID_VOLUME_SOURCE,
    MOUNT_WITHOUT_VOLUME,
)
from reconciler.rules.templates.model import Remark
from reconciler.rules.templates.strimzi.pool import Pool, mapping

_NAME = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9._-]*[a-zA-Z0-9]", re.ASCII)
_NAME_LENGTH = 63
_OPERATORS = ("kube-api-access", "strimzi-tmp", "kafka-metrics-and-logging", "ready-files")
_INIT_VOLUME = "rack-volume"
_SOURCES: Mapping[str, tuple[str, ...]] = {
    "volumes": ("secret", "configMap", "emptyDir", "persistentVolumeClaim", "csi", "image"),
    "templatedVolumes": ("secret", "configMap", "persistentVolumeClaim"),
}
_MOUNTS = "/mnt"


def entries(value: Any, field: str) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Yield the mappings of a list in a property, each with its number."""
    items = mapping(value).get(field)
    if isinstance(items, list):
        yield from ((number, one) for number, one in enumerate(items) if isinstance(one, Mapping))


def volume_remarks(pod: Any, pool: Pool) -> Iterator[Remark]:
    """Yield what is wrong with the volumes of a pod template."""
    taken = dict.fromkeys(_operators_volumes(pool), "of the operator's")
    for field, sources in _SOURCES.items():
        for number, one in entries(pod, field):
            name, path = one.get("name"), (field, number)
            yield from _name_remarks(name, path, taken)
            if isinstance(name, str):
                taken.setdefault(name, "of this template's")
            found = [source for source in sources if one.get(source) is not None]
            if len(found) != 1:
                message = f"must have exactly one of {', '.join(sources)}, not {' and '.join(found) or 'none'}"
                yield Remark(INVALID_VOLUME_SOURCE, message, "pod", path)


def mount_remarks(name: str, container: Any, pod: Any, pool: Pool) -> Iterator[Remark]:
    """Yield what is wrong with the mounts of a container template; volumes are those of the effective pod template."""
    there = [*_operators_volumes(pool), *(one.get("name") for field in _SOURCES for _, one in entries(pod, field))]
    paths: list[Any] = []
    for number, one in entries(container, "volumeMounts"):
        path: Path = ("volumeMounts", number)
        if one.get("name") not in there:
            message = f"mounts {shown(one.get('name'))}, which is no volume of the pod: its template is another"
            yield Remark(MOUNT_WITHOUT_VOLUME, message, name, (*path, "name"))
        where = one.get("mountPath")
        if isinstance(where, str) and where in paths:
            yield Remark(DUPLICATE_MOUNT_PATH, f"must not be {shown(where)} again", name, (*path, "mountPath"))
        paths.append(where)
        yield from _path_remarks(where, name, (*path, "mountPath"))


def _operators_volumes(pool: Pool) -> tuple[str, ...]:
    init = (_INIT_VOLUME,) if pool.has_init_container else ()
    return (*pool.data_volumes, *_OPERATORS, *init)


def _name_remarks(name: Any, path: Path, taken: Mapping[str, str]) -> Iterator[Remark]:
    if not isinstance(name, str) or not _NAME.fullmatch(name) or len(name) > _NAME_LENGTH:
        allowed = f"two to {_NAME_LENGTH} letters, digits, -, _ and ., with a letter or digit at each end"
        yield Remark(INVALID_VOLUME_NAME, f"must be {allowed}, not {shown(name)}", "pod", (*path, "name"))
    elif name in taken:
        message = f"must be the name of one volume: {name} is one {taken[name]}"
        yield Remark(DUPLICATE_VOLUME_NAME, message, "pod", (*path, "name"))


def _path_remarks(where: Any, name: str, path: Path) -> Iterator[Remark]:
    if not isinstance(where, str) or not where.startswith(_MOUNTS):
        yield Remark(FORBIDDEN_MOUNT_PATH, f"must be a path below {_MOUNTS}, not {shown(where)}", name, path)
    elif where.removeprefix(_MOUNTS)[:1] not in ("", "/"):
        message = f"is better below {_MOUNTS}/, and not {where}, which the operator takes by its first letters"
        yield Remark(FORBIDDEN_MOUNT_PATH, message, name, path, mild=True)
