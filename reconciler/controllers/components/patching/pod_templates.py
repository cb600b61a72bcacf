"""Pod templates in resources: their paths and containers, and checks for duplicate list entries."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from reconciler.controllers.codes import ControllerCodes
from reconciler.controllers.components.codes import ComponentCodes
from reconciler.controllers.components.patching.writers import WriteTracker
from reconciler.controllers.resource_findings import ResourceIssue
from reconciler.krm.field_text import quote_value
from reconciler.krm.findings import FindingCode
from reconciler.krm.json_pointer import format_pointer
from reconciler.krm.yaml import DataPath

_DEFAULT_POD_SPEC: DataPath = ("spec", "template", "spec")
_POD_SPECS: dict[str, DataPath] = {"CronJob": ("spec", "jobTemplate", *_DEFAULT_POD_SPEC), "Pod": ("spec",)}
CONTAINER_LISTS = ("containers", "initContainers")


def get_pod_spec_path(resource: Any) -> DataPath:
    """Return the path of the pod spec in a resource. The path depends on the kind, e.g. `spec.template.spec`."""
    return _POD_SPECS.get(str(resource.get("kind")), _DEFAULT_POD_SPEC)


def get_pod_list(resource: Any, name: str) -> list[Any] | str:
    """Return the list `name` of the pod spec, e.g. `containers`. Return [] if the resource does not have this list.

    If the list or one of its parents is a string, such as an unrendered expression, return this string.
    """
    value = get_value_or_text(resource, (*get_pod_spec_path(resource), name))
    return value if isinstance(value, list | str) else []


def get_value_or_text(data: Any, path: DataPath) -> Any:
    """Return the value at a path of map keys. Return None if the path does not exist.

    If a parent of the value is a string, such as an unrendered expression, return this string.
    """
    for step in path:
        if not isinstance(data, dict):
            return data if isinstance(data, str) else None
        data = data.get(step)
    return data


def iter_mappings(items: Any, list_path: DataPath) -> Iterator[tuple[DataPath, dict[str, Any]]]:
    """Yield the mappings in `items` with their paths. Yield nothing if `items` is not a list."""
    for number, item in enumerate(items if isinstance(items, list) else ()):
        if isinstance(item, dict):
            yield (*list_path, number), item


def iter_containers(resource: Any) -> Iterator[tuple[DataPath, dict[str, Any]]]:
    """Yield the containers of a resource with their paths. The init containers come last."""
    for name in CONTAINER_LISTS:
        yield from iter_mappings(get_pod_list(resource, name), (*get_pod_spec_path(resource), name))


def check_duplicate_list_keys(resource: Any, tracker: WriteTracker) -> tuple[ResourceIssue, ...]:
    """Return an issue for each duplicate entry in a list of the pod template, e.g. two volumes with the same name.

    The API server rejects such a list, or only one of the duplicate entries takes effect.
    """
    return tuple(_check_lists(resource, tracker))


def _check_lists(resource: Any, tracker: WriteTracker) -> Iterator[ResourceIssue]:
    volumes = iter_mappings(get_pod_list(resource, "volumes"), (*get_pod_spec_path(resource), "volumes"))
    yield from _check_duplicates(ComponentCodes.LIST_KEY_DUPLICATE, iter_containers(resource), "name", tracker)
    yield from _check_duplicates(ComponentCodes.LIST_KEY_DUPLICATE, volumes, "name", tracker)
    for path, container in iter_containers(resource):
        mounts = iter_mappings(container.get("volumeMounts"), (*path, "volumeMounts"))
        yield from _check_duplicates(ComponentCodes.LIST_KEY_DUPLICATE, mounts, "mountPath", tracker)
        variables = iter_mappings(container.get("env"), (*path, "env"))
        yield from _check_duplicates(ControllerCodes.DUPLICATE_ENV_NAME, variables, "name", tracker)


def _check_duplicates(
    code: FindingCode, items: Iterable[tuple[DataPath, dict[str, Any]]], key: str, tracker: WriteTracker
) -> Iterator[ResourceIssue]:
    first_paths: dict[str, DataPath] = {}
    for path, item in items:
        value = item.get(key)
        if not isinstance(value, str):
            continue
        if value in first_paths:
            yield ResourceIssue(
                code, _build_duplicate_message(key, value, first_paths[value], path, tracker), (*path, key)
            )
        first_paths.setdefault(value, path)


def _build_duplicate_message(key: str, value: str, first: DataPath, second: DataPath, tracker: WriteTracker) -> str:
    both = " and ".join(
        f"{format_pointer(path)} ({_describe_writer((*path, key), tracker)})" for path in (first, second)
    )
    return f"the {key} {quote_value(value)} must be unique, but is used at {both}"


def _describe_writer(path: DataPath, tracker: WriteTracker) -> str:
    writer = tracker.get_writer(path)
    return f'set by the addon "{writer}"' if writer else "set by the definition"
