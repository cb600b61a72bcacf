"""Containers in pod specs, and the overriders `command`, `args` and `envs`, which change containers.

The overriders `command` and `args` change items of a list of strings. The overrider `envs` changes complete entries of
the environment.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from reconciler.controllers.nested_values import copy_with_value, copy_without_value, get_value
from reconciler.controllers.override_policies.codes import PolicyCodes
from reconciler.controllers.override_policies.model import EnvItem, ListItem, OverrideEffect
from reconciler.controllers.resource_findings import ResourceIssue
from reconciler.krm.json_pointer import format_pointer, parse_pointer
from reconciler.krm.merge3.rules import ABSENT
from reconciler.krm.yaml import DataPath
from reconciler.lazy_dataclasses import dataclass, field

_TEMPLATE_SPEC: DataPath = ("spec", "template", "spec")
POD_SPEC_PATHS: Mapping[tuple[str, str], DataPath] = {
    ("", "Pod"): ("spec",),
    ("apps", "DaemonSet"): _TEMPLATE_SPEC,
    ("apps", "Deployment"): _TEMPLATE_SPEC,
    ("apps", "StatefulSet"): _TEMPLATE_SPEC,
    ("batch", "CronJob"): ("spec", "jobTemplate", *_TEMPLATE_SPEC),
    ("batch", "Job"): _TEMPLATE_SPEC,
}
"""Paths of the pod spec by API group and kind. A path applies to all API versions."""
# The lists that are searched for a container with a given name, in this order.
_CONTAINER_LISTS = ("initContainers", "containers")


def read_pod_spec_paths(more: Mapping[str, str]) -> dict[tuple[str, str], DataPath]:
    """Return the path of the pod spec for each known kind and for the kinds in `more`.

    `more` maps a kind, written as `group/Kind`, to the JSON pointer of its pod spec.

    Raises:
        PointerError: A value is not a JSON pointer.
    """
    added = {
        (group, kind): parse_pointer(path) for name, path in more.items() for group, _, kind in [name.rpartition("/")]
    }
    return {**POD_SPEC_PATHS, **added}


@dataclass(frozen=True)
class PodSpecLocation:
    """The location of the pod spec in a resource.

    `group` and `kind` identify the kind of the resource before override policies are applied. `paths` maps each pair
    of group and kind to the path of the pod spec.
    """

    group: str
    kind: str
    paths: Mapping[tuple[str, str], DataPath] = field(default_factory=lambda: POD_SPEC_PATHS)

    def find_containers(self, data: Any) -> tuple[Container, ...] | ResourceIssue:
        """Return all containers, init containers first. Return an issue if the pod spec is missing or invalid."""
        path = self.paths.get((self.group, self.kind))
        if path is None:
            known = ", ".join(sorted(_format_kind(*key) for key in self.paths))
            message = (
                f"the location of the pod spec is unknown for the kind {_format_kind(self.group, self.kind)}; known"
                f" kinds are {known}; add the kind to the setting `rules.pod_spec_paths`"
            )
            return ResourceIssue(PolicyCodes.POD_SPEC_UNKNOWN_KIND, message, ("kind",))
        spec = get_value(data, path)
        if spec is ABSENT or spec is None:
            message = (
                f"the pod spec at {format_pointer(path)} is missing, but the kind"
                f" {_format_kind(self.group, self.kind)} requires it"
            )
            return ResourceIssue(PolicyCodes.POD_SPEC_MISSING, message, path)
        if not isinstance(spec, dict):
            return ResourceIssue(
                PolicyCodes.POD_SPEC_MALFORMED, f"the pod spec at {format_pointer(path)} must be a mapping", path
            )
        for name in _CONTAINER_LISTS:
            if not _is_list_of_mappings(spec.get(name)):
                return _create_malformed_issue("list of mappings", (*path, name))
        return tuple(_list_containers(spec, path))


def _format_kind(group: str, kind: str) -> str:
    return f"{group}/{kind}".lstrip("/")


@dataclass(frozen=True)
class Container:
    """One container and its path in the resource."""

    path: DataPath
    data: Mapping[str, Any]

    @property
    def name(self) -> object:
        """The name of the container. An invalid container may have a name that is not a string."""
        return self.data.get("name")


def _create_malformed_issue(expected: str, path: DataPath) -> ResourceIssue:
    return ResourceIssue(PolicyCodes.POD_SPEC_MALFORMED, f"{format_pointer(path)} must be a {expected}", path)


def _is_list_of_mappings(value: object) -> bool:
    return value is None or (isinstance(value, list) and all(isinstance(item, dict) for item in value))


def _list_containers(spec: Mapping[str, Any], path: DataPath) -> Iterator[Container]:
    for name in _CONTAINER_LISTS:
        for index, data in enumerate(spec.get(name) or ()):
            yield Container((*path, name, index), data)


def apply_list(
    data: Any, item: ListItem, pod_spec: PodSpecLocation, field: Literal["command", "args"]
) -> OverrideEffect:
    """Return the resource after a change of `command` or `args` in one container.

    If the list becomes empty, the field is removed.
    """
    container = find_container(data, item.container, pod_spec)
    if isinstance(container, ResourceIssue):
        return OverrideEffect(data, (container,))
    path, items = (*container.path, field), container.data.get(field)
    if items is not None and not (isinstance(items, list) and all(isinstance(text, str) for text in items)):
        return OverrideEffect(data, (_create_malformed_issue("list of strings", path),))
    match item.operator:
        case "append":
            return OverrideEffect(copy_with_value(data, path, [*(items or ()), *item.value]))
        case "overwrite":
            return OverrideEffect(data if items == [*item.value] else copy_with_value(data, path, [*item.value]))
        case "delete":
            remaining = [text for text in items or () if text not in item.value]
            return OverrideEffect(data if items is None else _replace_items(data, path, items, remaining))


def find_container(data: Any, name: str, pod_spec: PodSpecLocation) -> Container | ResourceIssue:
    """Return the first container with a name, init containers first. Return an issue if there is no such container."""
    containers = pod_spec.find_containers(data)
    if isinstance(containers, ResourceIssue):
        return containers
    container = next((candidate for candidate in containers if candidate.name == name), None)
    return container or ResourceIssue(PolicyCodes.CONTAINER_NOT_FOUND, f'there is no container with the name "{name}"')


def _replace_items(data: Any, path: tuple[str | int, ...], items: Sequence[Any], remaining: list[Any]) -> Any:
    if len(remaining) == len(items):
        return data
    return copy_with_value(data, path, remaining) if remaining else copy_without_value(data, path)


def apply_envs(data: Any, item: EnvItem, pod_spec: PodSpecLocation) -> OverrideEffect:
    """Return the resource after a change of the environment of one container.

    The entries keep their positions. Entries may have unknown fields, which are kept.
    """
    container = find_container(data, item.container, pod_spec)
    if isinstance(container, ResourceIssue):
        return OverrideEffect(data, (container,))
    path, old = (*container.path, "env"), container.data.get("env")
    if old is not None and not (isinstance(old, list) and all(isinstance(variable, dict) for variable in old)):
        return OverrideEffect(data, (_create_malformed_issue("list of mappings", path),))
    match item.operator:
        case "addIfAbsent":
            return _add_variables(data, item, path, old or [])
        case "overwrite" | "set":
            # If the policy item lists a variable name twice, use the later value.
            entries = {entry["name"]: entry for entry in item.value}
            new: list[Any] = [entries.get(str(variable.get("name")), variable) for variable in old or ()]
            if item.operator == "set":
                names_present = {variable.get("name") for variable in new}
                new += (entry for name, entry in entries.items() if name not in names_present)
            return OverrideEffect(data if new == (old or []) else copy_with_value(data, path, new))
        case "delete":
            names = {entry["name"] for entry in item.value}
            remaining = [variable for variable in old or () if variable.get("name") not in names]
            return OverrideEffect(_replace_items(data, path, old or (), remaining))


def _add_variables(data: Any, item: EnvItem, path: DataPath, variables: list[Any]) -> OverrideEffect:
    names = {variable.get("name") for variable in variables}
    for entry in item.value:
        if entry["name"] in names:
            message = f'addIfAbsent cannot add the variable "{entry["name"]}", because the variable already exists'
            return OverrideEffect(data, (ResourceIssue(PolicyCodes.KEY_EXISTS, message, path),))
        names.add(entry["name"])
    return OverrideEffect(copy_with_value(data, path, [*variables, *item.value]))
