"""Patch targets. A patch changes all resources that meet the requirements of its target."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reconciler.api.base import read_model
from reconciler.api.openchoreo import COMPONENT_TEMPLATES, PatchTargetFields, TargetSelector, is_template_text
from reconciler.controllers.components.codes import ComponentCodes
from reconciler.controllers.components.field_findings import FieldFinding, build_field_finding
from reconciler.controllers.components.patching.pod_templates import CONTAINER_LISTS, get_pod_list, get_value_or_text
from reconciler.controllers.components.template_syntax import render_literal
from reconciler.krm.field_text import quote_value
from reconciler.krm.objects import split_api_version
from reconciler.krm.yaml import DataPath
from reconciler.lazy_dataclasses import dataclass

EVERY_KIND = "*"


@dataclass(frozen=True)
class PatchTarget:
    """Requirements that a resource must meet to be changed by a patch. None or () means no requirement."""

    kinds: tuple[str, ...] | None = None
    ids: tuple[str, ...] | None = None
    labels: tuple[tuple[str, str], ...] = ()
    containers: tuple[str, ...] | None = None
    group: str | None = None
    version: str | None = None


def read_patch_target(data: Any, field_path: DataPath) -> PatchTarget | tuple[FieldFinding, ...]:
    """Read a patch target whose expressions are rendered. Return all errors if the target is not valid."""
    result = read_model(PatchTargetFields, data, COMPONENT_TEMPLATES, field_path)
    if result.model is None:
        codes, default = ComponentCodes.by_name, ComponentCodes.TARGET_INVALID.name
        return tuple(FieldFinding(codes[error.code or default], error.path, error.text) for error in result.errors)
    if isinstance(labels := _get_labels(result.model), str):
        # A text is an error here, because all expressions are already rendered. The model accepts a text, because an
        # addon can contain an expression instead of the labels.
        message = f"must be a mapping of labels, but is {quote_value(labels)}"
        return (build_field_finding(ComponentCodes.TARGET_INVALID, (*field_path, "selector"), message),)
    return _build_target(result.model, templates=False)


def build_target_template(fields: PatchTargetFields) -> PatchTarget:
    """Return a patch target as written in an addon.

    Requirements with expressions are omitted, because their values are unknown before a render.
    """
    return _build_target(fields, templates=True)


def _build_target(fields: PatchTargetFields, *, templates: bool) -> PatchTarget:
    def is_known(value: str) -> bool:
        return not (templates and is_template_text(value))

    def select_all(values: tuple[str, ...] | None) -> tuple[str, ...] | None:
        # If any value contains an expression, return None (no requirement), because an expression can render to any
        # value.
        return values if values is not None and all(map(is_known, values)) else None

    labels = _get_labels(fields)
    return PatchTarget(
        select_all(fields.resource_type),
        select_all(fields.resource_id),
        tuple(
            (str(key), render_literal(value))
            for key, value in (labels.items() if isinstance(labels, Mapping) else ())
            if is_known(key) and is_known(value)
        ),
        select_all(fields.containers if fields.container_name is None else fields.container_name),
        fields.group if fields.group is not None and is_known(fields.group) else None,
        fields.version if fields.version is not None and is_known(fields.version) else None,
    )


def _get_labels(fields: PatchTargetFields) -> Mapping[Any, Any] | str:
    """Return the labels of the selector. If the selector or its labels are an expression, return the expression."""
    selector: TargetSelector | str | None = fields.selector
    labels: Mapping[Any, Any] | str = selector.match_labels if isinstance(selector, TargetSelector) else selector or {}
    return labels


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
        is_any = self.templates and any(is_template_text(key) for key in labels)
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
        return self.templates and is_template_text(value)
