"""Readers of override rules: from a policy, from the stored text of an earlier version, or from a rule with variables.

The models of the API report invalid fields. This module converts valid models to rules, and handles variables.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from reconciler.api.base import FieldMessage, read_model
from reconciler.api.kubeadmiral import (
    EnvOverrider,
    FieldOverrider,
    ImageOverrider,
    ListOverrider,
    OverridePolicySpec,
    Overriders,
    OverrideRuleFields,
    PatchOverrider,
    RolloutFields,
    RuleContent,
    TextOperation,
)
from reconciler.api.messages import DEFAULT_TEMPLATES
from reconciler.controllers.clusters.selection import Cluster, create_cluster_selection
from reconciler.controllers.codes import ControllerCodes
from reconciler.controllers.override_policies.cluster_variables import (
    fill_with_samples,
    has_variables,
    resolve_variables,
)
from reconciler.controllers.override_policies.codes import PolicyCodes
from reconciler.controllers.override_policies.model import (
    OVERRIDERS,
    EnvItem,
    FieldItem,
    ImageItem,
    ImageOperation,
    ListItem,
    MapItem,
    OverrideItem,
    Overrider,
    OverrideRule,
    PatchItem,
    Rollout,
    TextFormat,
)
from reconciler.controllers.resource_findings import ResourceIssue
from reconciler.krm.field_text import format_path
from reconciler.krm.json_pointer import parse_pointer
from reconciler.krm.yaml import DataPath
from reconciler.memory import cached

READING_CODES = {**PolicyCodes.by_name, "SelectorInvalid": ControllerCodes.SELECTOR_INVALID}
"""Finding codes that validation errors of policies can have, by name."""
_TEXT_FIELDS = ("targetClusters", "overriders")
# Cache the parsed texts, because all resources of a package use the same few texts.
_MAX_CACHED_TEXTS = 1024


def fill_rules_with_samples(data: Mapping[str, Any]) -> tuple[Mapping[str, Any], tuple[FieldMessage, ...]]:
    """Return a policy whose variables are replaced by sample values, and an error for each invalid variable.

    The models validate the sample values, because the values for the clusters are not known yet.
    """
    spec = data.get("spec")
    rules = spec.get("overrideRules") if isinstance(spec, Mapping) else None
    if not isinstance(spec, Mapping) or not isinstance(rules, list) or not any(map(_has_variables, rules)):
        return data, ()
    errors: list[FieldMessage] = []
    filled: list[Any] = []
    for index, rule in enumerate(rules):
        sample, invalid_variables = fill_with_samples(rule["overriders"]) if _has_variables(rule) else (None, ())
        filled.append({**rule, "overriders": sample} if _has_variables(rule) else rule)
        for variable in invalid_variables:
            path = ("spec", "overrideRules", index, "overriders", *variable.path)
            errors.append(FieldMessage(path, f"{format_path(path)} {variable.message}"))
    return {**data, "spec": {**spec, "overrideRules": filled}}, tuple(errors)


def _has_variables(rule: object) -> bool:
    return isinstance(rule, Mapping) and has_variables(rule.get("overriders"))


def create_override_rules(spec: OverridePolicySpec, data: Mapping[str, Any]) -> tuple[OverrideRule, ...]:
    """Return the rules of a valid policy.

    Args:
        spec: The parsed spec.
        data: The spec as it is written in the manifest. Its overriders can contain variables.
    """
    rules = zip(spec.override_rules, data.get("overrideRules") or (), strict=True)
    return tuple(_create_written_rule(fields, rule) for fields, rule in rules)


def _create_written_rule(fields: OverrideRuleFields, data: Mapping[str, Any]) -> OverrideRule:
    rollout = None if fields.rollout is None else _create_rollout(fields.rollout)
    return replace(_create_rule(fields, data), name=fields.name or "", rollout=rollout, text=_format_rule_text(data))


def _create_rollout(fields: RolloutFields) -> Rollout:
    return Rollout(tuple(map(create_cluster_selection, fields.waves)), fields.soak)


def _format_rule_text(rule: Mapping[str, Any]) -> str:
    # Do not sort the keys, because new keys are written to resources in the order of the rule.
    content = {name: rule[name] for name in _TEXT_FIELDS if rule.get(name) is not None}
    return json.dumps(content, separators=(",", ":"))


def _create_rule(fields: RuleContent, data: Mapping[str, Any]) -> OverrideRule:
    targets, overriders = create_cluster_selection(fields.target_clusters), data.get("overriders")
    template = overriders if has_variables(overriders) else None
    return OverrideRule(targets, _create_items(fields.overriders), template)


@cached(_MAX_CACHED_TEXTS)
def read_rule_text(text: str) -> OverrideRule | None:
    """Return the rule that a stored JSON text contains. Return None if the text is not a valid rule."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(data, dict):
        return None
    overriders = data.get("overriders")
    sample, invalid_variables = fill_with_samples(overriders) if has_variables(overriders) else (overriders, ())
    fields = read_model(RuleContent, {**data, "overriders": sample}, DEFAULT_TEMPLATES).model
    return None if fields is None or invalid_variables else replace(_create_rule(fields, data), text=text)


def resolve_rule(rule: OverrideRule, number: int, cluster: Cluster) -> OverrideRule | tuple[ResourceIssue, ...]:
    """Return a rule after its variables are replaced by values for a cluster, or an issue for each invalid value."""
    if rule.template is None:
        return rule
    path: DataPath = ("spec", "overrideRules", number, "overriders")
    data, unresolved = resolve_variables(rule.template, cluster)
    if unresolved:
        return tuple(
            ResourceIssue(
                PolicyCodes.CLUSTER_VARIABLE_UNRESOLVED, f"{format_path((*path, *variable.path))} {variable.message}"
            )
            for variable in unresolved
        )
    result = read_model(Overriders, data, DEFAULT_TEMPLATES, path)
    if result.model is None:
        return tuple(
            ResourceIssue(
                PolicyCodes.CLUSTER_VARIABLE_UNRESOLVED,
                f'after the variables are replaced for cluster "{cluster.name}", {text}',
            )
            for text in result.error_texts
        )
    return replace(rule, overriders=_create_items(result.model))


def _create_items(overriders: Overriders) -> tuple[tuple[Overrider, tuple[OverrideItem, ...]], ...]:
    """Return the items by overrider in the order in which they are applied."""
    items: dict[Overrider, tuple[OverrideItem, ...]] = {
        "image": tuple(map(_create_image_item, overriders.image)),
        "command": tuple(map(_create_list_item, overriders.command)),
        "args": tuple(map(_create_list_item, overriders.args)),
        "envs": tuple(map(_create_env_item, overriders.envs)),
        "annotations": tuple(MapItem(item.operator, item.value) for item in overriders.annotations),
        "labels": tuple(MapItem(item.operator, item.value) for item in overriders.labels),
        "fields": tuple(map(_create_field_item, overriders.fields_)),
        "jsonpatch": tuple(_create_patch_item(item, item.path) for item in overriders.jsonpatch),
    }
    return tuple((name, items[name]) for name in OVERRIDERS if items[name])


def _create_image_item(item: ImageOverrider) -> ImageItem:
    path = parse_pointer(item.image_path) if item.image_path else None
    operations = (ImageOperation(entry.image_component, entry.operator, entry.value) for entry in item.operations)
    return ImageItem(item.container_names, path, tuple(operations))


def _create_list_item(item: ListOverrider) -> ListItem:
    return ListItem(item.container_name, item.operator, item.value)


def _create_env_item(item: EnvOverrider) -> EnvItem:
    return EnvItem(item.container_name, item.operator, item.value)


def _create_field_item(item: FieldOverrider) -> FieldItem:
    by_format: dict[TextFormat, tuple[TextOperation, ...]] = {
        "yaml": item.yaml, "json": item.json_, "toml": item.toml, "ini": item.ini,
    }  # fmt: skip
    text_format = next(name for name, operations in by_format.items() if operations)
    operations = tuple(_create_patch_item(operation, operation.sub_path) for operation in by_format[text_format])
    return FieldItem(parse_pointer(item.field_path), text_format, operations)


def _create_patch_item(item: PatchOverrider | TextOperation, pointer: str) -> PatchItem:
    path = parse_pointer(pointer)
    return PatchItem(item.operator, path) if item.operator == "remove" else PatchItem(item.operator, path, item.value)
