"""The command and args overriders: whole items of a list of strings (kubeadmiral 5.3)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from reconciler.rules.edits import with_value, without
from reconciler.rules.notes import Note
from reconciler.rules.overrides.codes import CONTAINER_NOT_FOUND, POD_SPEC_MALFORMED
from reconciler.rules.overrides.effect import Effect
from reconciler.rules.overrides.model import ListItem
from reconciler.rules.overrides.pod_spec import Container, Template


def apply_list(data: Any, item: ListItem, template: Template, field: Literal["command", "args"]) -> Effect:
    """Return the resource with the command or the arguments of one container changed; a list left empty goes."""
    container = find_container(data, item.container, template)
    if isinstance(container, Note):
        return Effect(data, (container,))
    path, old = (*container.path, field), container.data.get(field)
    if old is not None and not (isinstance(old, list) and all(isinstance(one, str) for one in old)):
        return Effect(data, (Note(POD_SPEC_MALFORMED, f"{field} must be a list of strings", path),))
    match item.operator:
        case "append":
            return Effect(with_value(data, path, [*(old or ()), *item.value]))
        case "overwrite":
            return Effect(data if old == [*item.value] else with_value(data, path, [*item.value]))
        case "delete":
            kept = [one for one in old or () if one not in item.value]
            return Effect(data if old is None else with_items(data, path, old, kept))


def find_container(data: Any, name: str, template: Template) -> Container | Note:
    """Return the first container of that name, init containers first, or why there is none."""
    containers = template.containers(data)
    if isinstance(containers, Note):
        return containers
    found = next((one for one in containers if one.name == name), None)
    return found or Note(CONTAINER_NOT_FOUND, f"no container is called {name}")


def with_items(data: Any, path: tuple[str | int, ...], old: Sequence[Any], kept: list[Any]) -> Any:
    """Return the data with fewer items in the list at a path, and without a list that has none left."""
    if len(kept) == len(old):
        return data
    return with_value(data, path, kept) if kept else without(data, path)
