"""Patch targets: the requirements that select the resources which a patch changes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from reconciler.controllers.components.codes import ComponentCodes
from reconciler.controllers.components.field_findings import FieldFinding, build_field_finding
from reconciler.controllers.components.patching.pod_templates import CONTAINER_LISTS, get_pod_list, get_value_or_text
from reconciler.controllers.components.template_syntax import EXPRESSION_START, EXTENSION_PREFIX, render_literal
from reconciler.krm.field_text import describe_value, suggest_name
from reconciler.krm.objects import split_api_version
from reconciler.krm.yaml import DataPath
from reconciler.lazy_dataclasses import dataclass, replace

TARGET_FIELDS = ("resourceType", "resourceId", "selector", "containerName", "containers", "group", "version")
EVERY_KIND = "*"
_LABELS: DataPath = ("selector", "matchLabels")


@dataclass(frozen=True)
class PatchTarget:
    """Requirements that a resource must meet to be changed by a patch. None or () means no requirement.

    If `is_templated` is true, some requirements contain expressions. For these requirements, the attributes are None or
    (), because the values are unknown before a render.
    """

    kinds: tuple[str, ...] | None = None
    ids: tuple[str, ...] | None = None
    labels: tuple[tuple[str, str], ...] = ()
    containers: tuple[str, ...] | None = None
    group: str | None = None
    version: str | None = None
    is_templated: bool = False


def read_patch_target(data: Any, field_path: DataPath) -> PatchTarget | tuple[FieldFinding, ...]:
    """Read a patch target whose expressions are rendered. Return all errors if the target is not valid."""
    return _TargetReader(field_path, templates=False).read(data)


def read_patch_target_template(data: Any, field_path: DataPath) -> PatchTarget | tuple[FieldFinding, ...]:
    """Read a patch target as written in an addon. Return all errors if the target is not valid.

    Requirements with expressions are omitted, because their values are unknown before a render.
    """
    return _TargetReader(field_path, templates=True).read(data)


def is_target_match(target: PatchTarget, resource: Any, resource_id: str) -> bool:
    """Return whether a rendered resource with the id `resource_id` meets all requirements of a patch target."""
    return _TargetMatcher(templates=False).is_match(target, resource, resource_id)


def estimate_match_cost(target: PatchTarget, resource: Any) -> int:
    """Return how many values must be compared to match the resource with the patch target."""
    return 1 if target.containers is None else 1 + sum(len(get_pod_list(resource, name)) for name in CONTAINER_LISTS)


def can_match_target(target: PatchTarget, template: Any, resource_id: str) -> bool:
    """Return whether a resource that is rendered from `template` can meet all requirements of a patch target."""
    return _TargetMatcher(templates=True).is_match(target, template, resource_id)


@dataclass(frozen=True)
class _TargetMatcher:
    """Matches resources with patch targets.

    If `templates` is true, the resources are templates, and a value with an expression meets every requirement.
    """

    templates: bool

    def is_match(self, target: PatchTarget, resource: Any, resource_id: str) -> bool:
        return (
            (target.ids is None or resource_id in target.ids)
            and (
                target.kinds is None
                or EVERY_KIND in target.kinds
                or self._is_one_of(resource.get("kind"), target.kinds)
            )
            and self._has_version(target, resource)
            and self._has_labels(target, resource)
            and (target.containers is None or self._has_container(target.containers, resource))
        )

    def _has_version(self, target: PatchTarget, resource: Any) -> bool:
        api_version = resource.get("apiVersion")
        if (target.group is None and target.version is None) or self._is_templated(api_version):
            return True
        group, version = split_api_version(api_version) if isinstance(api_version, str) else (None, None)
        return target.group in (None, group) and target.version in (None, version)

    def _has_labels(self, target: PatchTarget, resource: Any) -> bool:
        labels = get_value_or_text(resource, ("metadata", "labels"))
        if not target.labels or self._is_templated(labels):
            return True
        if not isinstance(labels, dict):
            return False
        # Accept the labels if one label key contains an expression, because the expression can render to any label key.
        is_any = self.templates and any(_is_template(key) for key in labels)
        return is_any or all(self._is_one_of(labels.get(key), (value,)) for key, value in target.labels)

    def _has_container(self, names: tuple[str, ...], resource: Any) -> bool:
        lists = [get_pod_list(resource, name) for name in CONTAINER_LISTS]
        return any(self._is_templated(items) or any(self._has_name(item, names) for item in items) for items in lists)

    def _has_name(self, container: Any, names: tuple[str, ...]) -> bool:
        if isinstance(container, dict):
            return self._is_one_of(container.get("name"), names)
        return self._is_templated(container)

    def _is_one_of(self, value: Any, values: tuple[str, ...]) -> bool:
        return self._is_templated(value) or (isinstance(value, str | int | float) and render_literal(value) in values)

    def _is_templated(self, value: Any) -> bool:
        return self.templates and _is_template(value)


class _TargetReader:
    """Reads one patch target. If `templates` is true, requirements with expressions are omitted."""

    def __init__(self, field_path: DataPath, *, templates: bool) -> None:
        self._field_path = field_path
        self._templates = templates
        self._errors: list[FieldFinding] = []
        self._has_templates = False

    def read(self, data: Any) -> PatchTarget | tuple[FieldFinding, ...]:
        if not isinstance(data, Mapping):
            self._add_error(
                (), f"must be a mapping with at least one of {', '.join(TARGET_FIELDS)}, not {describe_value(data)}"
            )
            return tuple(self._errors)
        self._check_unknown_fields(data, (), TARGET_FIELDS)
        target = PatchTarget(
            self._read_texts(data, "resourceType"),
            self._read_texts(data, "resourceId"),
            tuple(self._read_selector(data.get("selector"))),
            self._read_containers(data),
            self._read_text(data, "group"),
            self._read_text(data, "version"),
        )
        return tuple(self._errors) if self._errors else self._check(target)

    def _check_unknown_fields(self, data: Mapping[Any, Any], path: DataPath, known: tuple[str, ...]) -> None:
        for name in map(str, data):
            if name not in known and not name.startswith(EXTENSION_PREFIX):
                message = f"is unknown; allowed are {', '.join(known)}{suggest_name(name, known)}"
                self._errors.append(
                    build_field_finding(ComponentCodes.UNKNOWN_FIELD, (*self._field_path, *path, name), message)
                )

    def _read_texts(self, data: Mapping[Any, Any], name: str) -> tuple[str, ...] | None:
        value = data.get(name)
        if value is None or self._is_templated(value):
            return None
        items = value if isinstance(value, list) else [value]
        for number, item in enumerate(items):
            if not isinstance(item, str):
                item_path = (name, number) if isinstance(value, list) else (name,)
                self._add_error(item_path, f"must be a string, not {describe_value(item)}")
        # Omit the requirement if one item contains an expression, because the expression can render to any value.
        is_open = any(self._is_templated(item) for item in items)
        return None if is_open else tuple(item for item in items if isinstance(item, str))

    def _read_text(self, data: Mapping[Any, Any], name: str) -> str | None:
        value = data.get(name)
        if value is None or self._is_templated(value):
            return None
        if not isinstance(value, str):
            self._add_error((name,), f"must be a string, not {describe_value(value)}")
        return str(value)

    def _read_containers(self, data: Mapping[Any, Any]) -> tuple[str, ...] | None:
        present_fields = [name for name in ("containerName", "containers") if data.get(name) is not None]
        if len(present_fields) > 1:
            self._add_error(("containers",), "must not be set together with containerName, which has the same meaning")
        return self._read_texts(data, present_fields[0]) if present_fields else None

    def _read_selector(self, selector: Any) -> Iterator[tuple[str, str]]:
        if selector is None or self._is_templated(selector):
            return
        if not isinstance(selector, Mapping):
            self._add_error(("selector",), f"must be a mapping with matchLabels, not {describe_value(selector)}")
            return
        self._check_unknown_fields(selector, ("selector",), ("matchLabels",))
        labels = selector.get("matchLabels")
        if labels is None or self._is_templated(labels):
            return
        if not isinstance(labels, Mapping):
            self._add_error(_LABELS, f"must be a mapping of labels, not {describe_value(labels)}")
            return
        yield from self._read_labels(labels)

    def _read_labels(self, labels: Mapping[Any, Any]) -> Iterator[tuple[str, str]]:
        for key, value in labels.items():
            if value is None or isinstance(value, Mapping | list):
                self._add_error((*_LABELS, str(key)), f"must be a string, not {describe_value(value)}")
            elif not any([self._is_templated(key), self._is_templated(value)]):
                yield str(key), render_literal(value)

    def _check(self, target: PatchTarget) -> PatchTarget | tuple[FieldFinding, ...]:
        if self._has_templates:
            return replace(target, is_templated=True)
        if target == PatchTarget():
            message = f"must have at least one of {', '.join(TARGET_FIELDS)}; otherwise it matches every resource"
            return (build_field_finding(ComponentCodes.TARGET_EMPTY, self._field_path, message),)
        return target

    def _is_templated(self, value: Any) -> bool:
        is_open = self._templates and _is_template(value)
        self._has_templates |= is_open
        return is_open

    def _add_error(self, path: DataPath, message: str) -> None:
        self._errors.append(build_field_finding(ComponentCodes.TARGET_INVALID, (*self._field_path, *path), message))


def _is_template(value: Any) -> bool:
    return isinstance(value, str) and EXPRESSION_START in value
