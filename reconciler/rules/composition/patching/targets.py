"""Targets: which of the objects that are rendered a patch is for (openchoreo 7)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from reconciler.krm.identity import split_api_version
from reconciler.krm.yaml import Path
from reconciler.rules.composition.codes import TARGET_EMPTY, TARGET_INVALID, UNKNOWN_FIELD
from reconciler.rules.composition.faults import Fault, fault_of
from reconciler.rules.composition.marks import OPEN, OWN
from reconciler.rules.composition.patching.pods import CONTAINER_LISTS, pod_list, value_or_text_at
from reconciler.rules.composition.spelling import spell
from reconciler.rules.fields import meant, named

FIELDS = ("resourceType", "resourceId", "selector", "containerName", "containers", "group", "version")
EVERY_KIND = "*"
_LABELS: Path = ("selector", "matchLabels")


@dataclass(frozen=True)
class Target:
    """What an object must be to be chosen; None asks for nothing.

    `is_templated` tells that some of what is written is known only when it is rendered: that asks for nothing here.
    """

    kinds: tuple[str, ...] | None = None
    ids: tuple[str, ...] | None = None
    labels: tuple[tuple[str, str], ...] = ()
    containers: tuple[str, ...] | None = None
    group: str | None = None
    version: str | None = None
    is_templated: bool = False


def read_target(data: Any, at: Path) -> Target | tuple[Fault, ...]:
    """Return the target that plain data, which was rendered before, spells, or all that is wrong with it."""
    return _Reader(at, templates=False).target(data)


def read_target_template(data: Any, at: Path) -> Target | tuple[Fault, ...]:
    """Return the target as an addon writes it, with what is templated left open, or all that is wrong with it."""
    return _Reader(at, templates=True).target(data)


def matches(target: Target, one: Any, resource_id: str) -> bool:
    """Tell whether an object, which was rendered under `resource_id`, has all that a target asks for (openchoreo 7)."""
    return _Question(templates=False).asks(target, one, resource_id)


def effort(target: Target, one: Any) -> int:
    """Return how many things there are to look at in an object, to tell whether it matches."""
    return 1 if target.containers is None else 1 + sum(len(pod_list(one, name)) for name in CONTAINER_LISTS)


def may_match(target: Target, template: Any, resource_id: str) -> bool:
    """Tell whether an object made of a template may have all that a target asks for (openchoreo 11 step 5)."""
    return _Question(templates=True).asks(target, template, resource_id)


@dataclass(frozen=True)
class _Question:
    """Asking an object; with `templates` a templated value may be anything."""

    templates: bool

    def asks(self, target: Target, one: Any, resource_id: str) -> bool:
        return (
            (target.ids is None or resource_id in target.ids)
            and (target.kinds is None or EVERY_KIND in target.kinds or self._among(one.get("kind"), target.kinds))
            and self._has_version(target, one)
            and self._has_labels(target, one)
            and (target.containers is None or self._has_container(target.containers, one))
        )

    def _has_version(self, target: Target, one: Any) -> bool:
        written = one.get("apiVersion")
        if (target.group is None and target.version is None) or self._is_open(written):
            return True
        group, version = split_api_version(written) if isinstance(written, str) else (None, None)
        return target.group in (None, group) and target.version in (None, version)

    def _has_labels(self, target: Target, one: Any) -> bool:
        labels = value_or_text_at(one, ("metadata", "labels"))
        if not target.labels or self._is_open(labels):
            return True
        if not isinstance(labels, dict):
            return False
        # a key that is templated may be any
        is_any = self.templates and any(_is_template(key) for key in labels)
        return is_any or all(self._among(labels.get(key), (value,)) for key, value in target.labels)

    def _has_container(self, wanted: tuple[str, ...], one: Any) -> bool:
        lists = [pod_list(one, name) for name in CONTAINER_LISTS]
        return any(self._is_open(items) or any(self._is_named(item, wanted) for item in items) for items in lists)

    def _is_named(self, container: Any, wanted: tuple[str, ...]) -> bool:
        if isinstance(container, dict):
            return self._among(container.get("name"), wanted)
        return self._is_open(container)

    def _among(self, value: Any, wanted: tuple[str, ...]) -> bool:
        return self._is_open(value) or (isinstance(value, str | int | float) and spell(value) in wanted)

    def _is_open(self, value: Any) -> bool:
        return self.templates and _is_template(value)


class _Reader:
    """Reads one target; with `templates` what is templated asks for nothing."""

    def __init__(self, at: Path, *, templates: bool) -> None:
        self._at = at
        self._templates = templates
        self._faults: list[Fault] = []
        self._open = False

    def target(self, data: Any) -> Target | tuple[Fault, ...]:
        if not isinstance(data, Mapping):
            self._fault((), f"must be a mapping with some of {', '.join(FIELDS)}, not {named(data)}")
            return tuple(self._faults)
        self._refuse_unknown(data, (), FIELDS)
        target = Target(
            self._texts(data, "resourceType"),
            self._texts(data, "resourceId"),
            tuple(self._labels(data.get("selector"))),
            self._containers(data),
            self._text(data, "group"),
            self._text(data, "version"),
        )
        return tuple(self._faults) if self._faults else self._checked(target)

    def _refuse_unknown(self, data: Mapping[Any, Any], below: Path, known: tuple[str, ...]) -> None:
        for name in map(str, data):
            if name not in known and not name.startswith(OWN):
                message = f"is unknown; allowed are {', '.join(known)}{meant(name, known)}"
                self._faults.append(fault_of(UNKNOWN_FIELD, (*self._at, *below, name), message))

    def _texts(self, data: Mapping[Any, Any], name: str) -> tuple[str, ...] | None:
        value = data.get(name)
        if value is None or self._is_open(value):
            return None
        items = value if isinstance(value, list) else [value]
        for number, item in enumerate(items):
            if not isinstance(item, str):
                place = (name, number) if isinstance(value, list) else (name,)
                self._fault(place, f"must be a string, not {named(item)}")
        # one item that is templated may be any
        is_open = any(self._is_open(item) for item in items)
        return None if is_open else tuple(item for item in items if isinstance(item, str))

    def _text(self, data: Mapping[Any, Any], name: str) -> str | None:
        value = data.get(name)
        if value is None or self._is_open(value):
            return None
        if not isinstance(value, str):
            self._fault((name,), f"must be a string, not {named(value)}")
        return str(value)

    def _containers(self, data: Mapping[Any, Any]) -> tuple[str, ...] | None:
        given = [name for name in ("containerName", "containers") if data.get(name) is not None]
        if len(given) > 1:
            self._fault(("containers",), "must be left out: containerName says the same")
        return self._texts(data, given[0]) if given else None

    def _labels(self, selector: Any) -> Iterator[tuple[str, str]]:
        if selector is None or self._is_open(selector):
            return
        if not isinstance(selector, Mapping):
            self._fault(("selector",), f"must be a mapping with matchLabels, not {named(selector)}")
            return
        self._refuse_unknown(selector, ("selector",), ("matchLabels",))
        labels = selector.get("matchLabels")
        if labels is None or self._is_open(labels):
            return
        if not isinstance(labels, Mapping):
            self._fault(_LABELS, f"must be a mapping of labels, not {named(labels)}")
            return
        yield from self._pairs(labels)

    def _pairs(self, labels: Mapping[Any, Any]) -> Iterator[tuple[str, str]]:
        for key, value in labels.items():
            if value is None or isinstance(value, Mapping | list):
                self._fault((*_LABELS, str(key)), f"must be a string, not {named(value)}")
            elif not any([self._is_open(key), self._is_open(value)]):
                yield str(key), spell(value)

    def _checked(self, target: Target) -> Target | tuple[Fault, ...]:
        if self._open:
            return replace(target, is_templated=True)
        if target == Target():
            message = f"must have at least one of {', '.join(FIELDS)}: it would choose every object"
            return (fault_of(TARGET_EMPTY, self._at, message),)
        return target

    def _is_open(self, value: Any) -> bool:
        is_open = self._templates and _is_template(value)
        self._open |= is_open
        return is_open

    def _fault(self, below: Path, message: str) -> None:
        self._faults.append(fault_of(TARGET_INVALID, (*self._at, *below), message))


def _is_template(value: Any) -> bool:
    return isinstance(value, str) and OPEN in value
