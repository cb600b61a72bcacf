"""Pod templates: where a kind has one, and the containers in it (openchoreo 7)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from reconciler.krm.yaml import Path

_TEMPLATE: Path = ("spec", "template", "spec")
_OTHERS: dict[str, Path] = {"CronJob": ("spec", "jobTemplate", *_TEMPLATE), "Pod": ("spec",)}
CONTAINER_LISTS = ("containers", "initContainers")


def pod_path(one: Any) -> Path:
    """Return where an object has its pod template, should it have one."""
    return _OTHERS.get(str(one.get("kind")), _TEMPLATE)


def pod_list(one: Any, name: str) -> list[Any] | str:
    """Return a list of an object's pod template, [] where it has none; text where that stands in its place."""
    found = value_or_text_at(one, (*pod_path(one), name))
    return found if isinstance(found, list | str) else []


def value_or_text_at(data: Any, path: Path) -> Any:
    """Return the value below some keys, or the text that stands in the place of one of the maps; None without."""
    for step in path:
        if not isinstance(data, dict):
            return data if isinstance(data, str) else None
        data = data.get(step)
    return data


def maps_in(items: Any, at: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Yield the maps of a list, each with its place; nothing where it is no list."""
    for number, item in enumerate(items if isinstance(items, list) else ()):
        if isinstance(item, dict):
            yield (*at, number), item


def containers(one: Any) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Yield the containers of an object's pod template, and then its init containers, each with its place."""
    for name in CONTAINER_LISTS:
        yield from maps_in(pod_list(one, name), (*pod_path(one), name))
