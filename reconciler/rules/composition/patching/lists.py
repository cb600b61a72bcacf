"""Lists of pod templates, when all addons are through: what must not be in one twice (openchoreo 9)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from reconciler.krm.findings import Code
from reconciler.krm.pointer import format_pointer
from reconciler.krm.yaml import Path
from reconciler.rules.codes import DUPLICATE_ENV_NAME
from reconciler.rules.composition.codes import LIST_KEY_DUPLICATE
from reconciler.rules.composition.patching.pods import containers, maps_in, pod_list, pod_path
from reconciler.rules.composition.patching.writers import Writers
from reconciler.rules.fields import shown
from reconciler.rules.notes import Note


def check_lists(one: Any, writers: Writers) -> tuple[Note, ...]:
    """Return what the API server would refuse, or shadow, in the lists of an object's pod template (openchoreo 9)."""
    return tuple(_notes(one, writers))


def _notes(one: Any, writers: Writers) -> Iterator[Note]:
    volumes = maps_in(pod_list(one, "volumes"), (*pod_path(one), "volumes"))
    yield from _twice(LIST_KEY_DUPLICATE, containers(one), "name", writers)
    yield from _twice(LIST_KEY_DUPLICATE, volumes, "name", writers)
    for place, container in containers(one):
        mounts = maps_in(container.get("volumeMounts"), (*place, "volumeMounts"))
        yield from _twice(LIST_KEY_DUPLICATE, mounts, "mountPath", writers)
        variables = maps_in(container.get("env"), (*place, "env"))
        yield from _twice(DUPLICATE_ENV_NAME, variables, "name", writers)


def _twice(code: Code, items: Iterable[tuple[Path, dict[str, Any]]], key: str, writers: Writers) -> Iterator[Note]:
    seen: dict[str, Path] = {}
    for place, item in items:
        value = item.get(key)
        if not isinstance(value, str):
            continue
        if value in seen:
            yield Note(code, _message(key, value, seen[value], place, writers), (*place, key))
        seen.setdefault(value, place)


def _message(key: str, value: str, first: Path, second: Path, writers: Writers) -> str:
    both = " and ".join(f"{format_pointer(place)} ({_who((*place, key), writers)})" for place in (first, second))
    return f"{key} must be there once, and {shown(value)} is that of {both}"


def _who(place: Path, writers: Writers) -> str:
    writer = writers.writer_of(place)
    return f"by {writer}" if writer else "by the definition"
