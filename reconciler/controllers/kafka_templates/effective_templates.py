"""Effective templates of children, and changes of these templates between published and new packages of a cluster."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import cached_property
from typing import Any

from reconciler.controllers.kafka_templates.codes import TemplateCodes
from reconciler.controllers.kafka_templates.merge import (
    HiddenSettings,
    TemplateProperty,
    build_complete_template,
    build_effective_template,
    find_hidden_settings,
)
from reconciler.controllers.kafka_templates.model import (
    StrimziOperator,
    TemplateDescription,
    TemplateMergeRule,
    TemplateMode,
    TemplateOptions,
    TemplateResource,
)
from reconciler.controllers.kafka_templates.pairing import TemplatePairs, find_kind_support, merge_child_template
from reconciler.controllers.nested_values import get_value
from reconciler.controllers.resource_findings import ResourceIssue
from reconciler.krm.field_text import format_path
from reconciler.krm.merge3.rules import ABSENT
from reconciler.krm.objects import ObjectKey
from reconciler.krm.yaml import emit
from reconciler.krm.yaml.compare import is_equal_data
from reconciler.lazy_dataclasses import dataclass


@dataclass(frozen=True)
class TemplateEffect:
    """The effective template of a child.

    `properties` are the properties with their sources. `description` contains the effects of the template on the
    cluster.
    """

    child: TemplateResource
    parent: ObjectKey
    mode: TemplateMode
    properties: tuple[TemplateProperty, ...]
    description: TemplateDescription

    @cached_property
    def template(self) -> Mapping[str, Any]:
        """The effective template as data."""
        return build_effective_template(self.properties)

    @property
    def inherited_names(self) -> frozenset[str]:
        """The names of the properties whose value comes from the parent."""
        return frozenset(
            template_property.name for template_property in self.properties if template_property.is_inherited
        )

    @cached_property
    def issues(self) -> tuple[ResourceIssue, ...]:
        """Issues of the merge, such as unknown properties and inherited settings that have no effect."""
        return (
            *_check_unknown_properties(self.child),
            *_check_properties(self.child.rule, self.parent, self.properties),
        )

    @property
    def full_template_yaml(self) -> str:
        """A template for the child with the settings of the parent and of the child, as YAML.

        A property of the child replaces the same property of the parent completely, so that settings of the parent can
        be lost. This template also contains the lost settings. The result is "" if no setting is lost.
        """
        return (
            emit(build_complete_template(self.properties, self.child.rule.child.path))
            if self._has_hidden_settings
            else ""
        )

    @property
    def _has_hidden_settings(self) -> bool:
        return any(
            template_property.inherited is not ABSENT and template_property.own is not ABSENT
            for template_property in self.properties
        )

    def as_data(self) -> dict[str, Any]:
        """Return the data about the child for reports.

        The template is included only in the mode `report`. In the mode `materialise`, the file of the child contains
        the template.
        """
        rule, description = self.child.rule, self.description
        data = {
            "file": self.child.resource.file,
            "resource": self.child.key.reference,
            "parent": self.parent.reference,
            "mode": self.mode,
            "properties": [
                _build_property_data(template_property, rule)
                for template_property in self.properties
                if template_property.source != "unset"
            ],
            "settings": {name: dict(setting) for name, setting in description.settings.items()},
            "objects": [operator_objects.as_data() for operator_objects in description.objects],
        }
        if self.mode == "report":
            data["template"] = dict(self.template)
        if any(issue.code is TemplateCodes.SHADOWED_TEMPLATE_FIELDS for issue in self.issues):
            data["toRepeat"] = self.full_template_yaml
        return {name: value for name, value in data.items() if value or name == "template"}


def build_template_effect(
    child: TemplateResource, parent: TemplateResource, operator: StrimziOperator, mode: TemplateMode
) -> TemplateEffect:
    """Return the effective template of a child. Both templates and their properties must be mappings."""
    properties = merge_child_template(child, parent)
    support = find_kind_support(child.rule)
    description = (
        support.describe_template(parent.resource, child.resource, build_effective_template(properties), operator)
        if support
        else TemplateDescription()
    )
    return TemplateEffect(child, parent.key, mode, properties, description)


def find_settings_hidden_by(template_property: TemplateProperty) -> HiddenSettings:
    """Return the inherited settings of a property that have no effect, because the child sets the property itself."""
    return (
        HiddenSettings()
        if template_property.inherited is ABSENT or template_property.own is ABSENT
        else find_hidden_settings(template_property.inherited, template_property.own)
    )


def _build_property_data(template_property: TemplateProperty, rule: TemplateMergeRule) -> dict[str, Any]:
    source = {"parent": rule.parent.label, "child": rule.child.label, "reset": f"{rule.child.label}-reset"}[
        template_property.source
    ]
    side, hidden = (
        rule.parent if template_property.is_inherited else rule.child,
        find_settings_hidden_by(template_property),
    )
    data = {
        "name": template_property.name,
        "source": source,
        "field": format_path((*side.path, template_property.name)),
    }
    lists = {"shadowed": [*hidden.shadowed], "overridden": [*hidden.overridden]}
    return {**data, **{name: paths for name, paths in lists.items() if paths}}


def _check_unknown_properties(child: TemplateResource) -> Iterator[ResourceIssue]:
    rule = child.rule
    template = get_value(child.resource.data, rule.child.path)
    for name in template if isinstance(template, dict) else ():
        if name in rule.properties:
            continue
        path = (*rule.child.path, name)
        if name in rule.parent_only:
            message = f"{format_path(path)} is ignored, because {name} can only be set in the {rule.parent.kind} object"
        else:
            message = (
                f"{format_path(path)} is ignored, because it is an unknown property; allowed"
                f" properties: {', '.join(rule.properties)}"
            )
        yield ResourceIssue(TemplateCodes.UNKNOWN_TEMPLATE_PROPERTY, message, path)


def _check_properties(
    rule: TemplateMergeRule, parent: ObjectKey, properties: tuple[TemplateProperty, ...]
) -> Iterator[ResourceIssue]:
    for template_property in properties:
        path = (*rule.child.path, template_property.name)
        if template_property.is_null:
            message = f"{format_path(path)} is null and is treated as absent; use {{}} to reset an inherited value"
            yield ResourceIssue(TemplateCodes.NULL_TEMPLATE_PROPERTY, message, path)
        if template_property.own is ABSENT or template_property.inherited is ABSENT:
            continue
        if is_equal_data(template_property.own, template_property.inherited):
            message = (
                f"{format_path(path)} equals the value of {parent}; remove this field, so that later changes "
                f"of {parent} apply"
            )
            yield ResourceIssue(TemplateCodes.REDUNDANT_OVERRIDE, message, path)
        shadowed = find_settings_hidden_by(template_property).shadowed if template_property.source == "child" else ()
        if shadowed:
            message = (
                f"{format_path(path)} completely replaces the value inherited from {parent}, so that these inherited "
                f"settings have no effect: {', '.join(shadowed)}"
            )
            yield ResourceIssue(TemplateCodes.SHADOWED_TEMPLATE_FIELDS, message, path)


@dataclass(frozen=True)
class TemplateChange:
    """Change of a child's effective template: the changed properties, and the affected kinds of objects.

    `restarts_pods` is None if it is unknown whether the change restarts pods. `previous_parent` is set if the child had
    a different parent before. In this case, the operator treats the child as a new object.
    """

    child: ObjectKey
    properties: tuple[str, ...]
    affected_kinds: tuple[str, ...]
    restarts_pods: bool | None
    previous_parent: ObjectKey | None = None

    def as_data(self) -> dict[str, Any]:
        """Return the change in the format of status files."""
        data = {"resource": self.child.reference, "properties": [*self.properties], "objects": [*self.affected_kinds]}
        moved = {"movedFrom": self.previous_parent.reference} if self.previous_parent else {}
        return {**data, "rolls": self.restarts_pods, **moved}


def find_template_changes(
    before: TemplatePairs,
    now: TemplatePairs,
    options: TemplateOptions | None = None,
    children: Collection[ObjectKey] | None = None,
) -> tuple[TemplateChange, ...]:
    """Return a change for each child whose effective template or parent differs between `before` and `now`.

    `before` contains the published resources. Templates in `before` may already be merged, which does not affect the
    comparison. Only children that exist in `before` and in `now` are compared. If `children` is not None, only these
    children are compared.
    """
    operator = (options or TemplateOptions()).operator
    changes: list[TemplateChange] = []
    children = (
        now.children
        if children is None
        else {key: now.children[key] for key in sorted(children) if key in now.children}
    )
    for key, child in children.items():
        parent, previous_child = now.find_parent(child), before.children.get(key)
        if parent is None or previous_child is None:
            continue
        previous_parent = before.find_parent(previous_child)
        moved_from = previous_parent.key if previous_parent and previous_parent.key != parent.key else None
        names = _list_changed_properties(before.build_template(key), now.build_template(key), child.rule.properties)
        if (names or moved_from) and all(isinstance(value, dict) for value in now.build_template(key).values()):
            changes.append(_build_change(build_template_effect(child, parent, operator, "report"), names, moved_from))
    return tuple(changes)


def _build_change(effect: TemplateEffect, names: tuple[str, ...], moved_from: ObjectKey | None) -> TemplateChange:
    description = effect.description
    kinds = dict.fromkeys(kind for name in names for kind in description.affected_kinds.get(name, ()))
    rolls = (
        None if description.restarting_properties is None else not description.restarting_properties.isdisjoint(names)
    )
    return TemplateChange(effect.child.key, names, tuple(kinds), rolls, moved_from)


def _list_changed_properties(before: dict[str, Any], now: dict[str, Any], names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name for name in names if not is_equal_data(before.get(name, ABSENT), now.get(name, ABSENT)))
