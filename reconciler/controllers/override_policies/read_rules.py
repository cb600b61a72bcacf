"""Readers of override rules and overriders. They report all errors that do not depend on a resource.

A rule is read from a policy, from the stored text of an earlier version, or from a template for one cluster.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from reconciler.controllers.clusters.selection import (
    CLUSTER_SELECTION_FIELDS,
    Cluster,
    read_cluster_selection,
    read_target_clusters,
)
from reconciler.controllers.override_policies.cluster_variables import (
    fill_with_samples,
    has_variables,
    resolve_variables,
)
from reconciler.controllers.override_policies.codes import (
    DIGEST_INVALID,
    FIELD_PATH_INVALID,
    FORBIDDEN_PATH,
    IMAGE_PATH_INVALID,
    OPERATOR_UNSUPPORTED,
    PATCH_PATH_INVALID,
    PATCH_VALUE_MISSING,
    POLICY_INVALID,
    TAG_INVALID,
    VALUE_REQUIRED,
    VARIABLE_UNRESOLVED,
)
from reconciler.controllers.override_policies.image import validate_digest, validate_tag
from reconciler.controllers.override_policies.model import (
    OVERRIDERS,
    EnvItem,
    FieldItem,
    ImageComponent,
    ImageItem,
    ImageOperation,
    ImageOperator,
    ListItem,
    ListOperator,
    MapItem,
    MapOperator,
    OverrideItem,
    Overrider,
    OverrideRule,
    PatchItem,
    PatchOperator,
    Rollout,
    TextFormat,
)
from reconciler.controllers.resource_findings import ResourceIssue
from reconciler.controllers.validation import FieldFindings, FieldReader
from reconciler.krm.field_text import format_path, quote_value
from reconciler.krm.findings import SourceLocation
from reconciler.krm.json_pointer import PointerError, parse_pointer
from reconciler.krm.merge3.rules import ABSENT
from reconciler.krm.names import validate_annotation_key, validate_dns_label, validate_label_key, validate_label_value
from reconciler.krm.times import parse_duration_seconds
from reconciler.krm.yaml import DataPath
from reconciler.memory import cached

COMPONENTS = ("Registry", "Repository", "Tag", "Digest")
IMAGE_OPERATORS = ("addIfAbsent", "overwrite", "delete")
MAP_OPERATORS = ("addIfAbsent", "overwrite", "delete", "set")
LIST_OPERATORS = ("append", "overwrite", "delete")
PATCH_OPERATORS = ("add", "remove", "replace", "set")
TEXT_FORMATS = ("yaml", "json", "toml", "ini")
FORBIDDEN_PATHS = ("/kind", "/metadata/name", "/metadata/namespace", "/metadata/generateName")
_CONTAINER_ITEM_FIELDS = ("containerName", "operator", "value")
_FIELDS: Mapping[Overrider, Sequence[str]] = {
    "image": ("containerNames", "imagePath", "operations"),
    "command": _CONTAINER_ITEM_FIELDS,
    "args": _CONTAINER_ITEM_FIELDS,
    "envs": _CONTAINER_ITEM_FIELDS,
    "annotations": ("operator", "value"),
    "labels": ("operator", "value"),
    "fields": ("fieldPath", *TEXT_FORMATS),
    "jsonpatch": ("operator", "path", "value"),
}
_TEXT_FIELDS = ("targetClusters", "overriders")
_RULE_FIELDS = ("name", "rollout", *_TEXT_FIELDS)
# Cache the rules, because all resources of a package use the same few texts.
_MAX_CACHED_TEXTS = 1024


def read_overriders(rule: FieldReader) -> tuple[tuple[Overrider, tuple[OverrideItem, ...]], ...]:
    """Return the items of a rule by overrider. The overriders have the order in which they are applied."""
    overriders = rule.read_mapping("overriders", OVERRIDERS)
    readers = {
        name: tuple(_READERS[name](item) for item in overriders.iterate_mappings(name, _FIELDS[name]))
        for name in OVERRIDERS
    }
    return tuple((name, items) for name, items in readers.items() if items)


def _read_image(item: FieldReader) -> ImageItem:
    if not item.has_value("operations"):
        item.add_finding("operations", "must be a list")
    operations = item.iterate_mappings("operations", ("imageComponent", "operator", "value"))
    path, text = None, item.read_text("imagePath")
    if text:
        path = _read_pointer(item, "imagePath", text, IMAGE_PATH_INVALID)
    return ImageItem(item.read_texts("containerNames"), path, tuple(map(_read_image_operation, operations)))


def _read_image_operation(operation: FieldReader) -> ImageOperation:
    component = cast("ImageComponent", operation.read_choice("imageComponent", COMPONENTS))
    operator = cast(
        "ImageOperator", operation.read_choice("operator", IMAGE_OPERATORS, "overwrite", OPERATOR_UNSUPPORTED)
    )
    value = operation.read_text("value")
    if operator != "delete":
        if operation.data.get("value") in (None, ""):
            operation.add_finding(
                "value", f"must not be empty for {operator}; use delete to remove {component}", VALUE_REQUIRED
            )
        elif value and component == "Tag" and (error := validate_tag(value)):
            operation.add_finding("value", f"{error}, not {quote_value(value)}", TAG_INVALID)
        elif value and component == "Digest" and (error := validate_digest(value)):
            operation.add_finding("value", f"{error}, not {quote_value(value)}", DIGEST_INVALID)
    return ImageOperation(component, operator, value)


def _read_list(item: FieldReader) -> ListItem:
    item.require("value", "a list of strings", VALUE_REQUIRED)
    container, value = item.read_text("containerName", required=True), item.read_texts("value")
    operator = cast("ListOperator", item.read_choice("operator", LIST_OPERATORS, "overwrite", OPERATOR_UNSUPPORTED))
    if operator == "append" and item.data.get("value") == []:
        item.add_finding("value", "must not be empty for append", VALUE_REQUIRED)
    return ListItem(container, operator, value)


def _read_env(item: FieldReader) -> EnvItem:
    item.require("value", "a list of variables", VALUE_REQUIRED)
    container, operator = item.read_text("containerName", required=True), _map_operator(item)
    # Accept unknown fields, because newer versions of Kubernetes may define more fields of a variable.
    entries = []
    for entry in item.iterate_mappings("value", None):
        entry.read_text("name", required=True)
        entry.read_text("value")
        entries.append(entry.data)
    if operator == "addIfAbsent" and item.data.get("value") == []:
        item.add_finding("value", "must not be empty for addIfAbsent", VALUE_REQUIRED)
    return EnvItem(container, operator, tuple(entries))


def _read_labels(item: FieldReader) -> MapItem:
    return _read_map(item, lambda key, value: validate_label_key(key) or validate_label_value(value))


def _read_annotations(item: FieldReader) -> MapItem:
    return _read_map(item, lambda key, _: validate_annotation_key(key))


def _read_map(item: FieldReader, fault_of: Callable[[str, str], str | None]) -> MapItem:
    item.require("value", "a mapping of strings", VALUE_REQUIRED)
    operator, value = _map_operator(item), item.read_string_map("value")
    if operator == "addIfAbsent" and item.data.get("value") == {}:
        item.add_finding("value", "must not be empty for addIfAbsent", VALUE_REQUIRED)
    for key, text in value.items() if operator != "delete" else ():
        if error := fault_of(key, text):
            item.add_finding("value", f"must be valid: {error}")
    return MapItem(operator, value)


def _read_field(item: FieldReader) -> FieldItem:
    path = _read_pointer(item, "fieldPath", item.read_text("fieldPath"), FIELD_PATH_INVALID)
    formats = [name for name in TEXT_FORMATS if item.data.get(name)]
    if len(formats) != 1:
        item.faults.add(item.path, f"must have a list of operations in exactly one of {', '.join(TEXT_FORMATS)}")
    name = formats[0] if formats else TEXT_FORMATS[0]
    operations = item.iterate_mappings(name, ("operator", "subPath", "value"))
    return FieldItem(
        path, cast("TextFormat", name), tuple(_read_operation(operation, "subPath") for operation in operations)
    )


def _read_patch(item: FieldReader) -> PatchItem:
    if item.data.get("path") in FORBIDDEN_PATHS:
        item.add_finding("path", f"must not be one of {', '.join(FORBIDDEN_PATHS)}", FORBIDDEN_PATH)
    return _read_operation(item, "path")


def _read_operation(item: FieldReader, field: str) -> PatchItem:
    operator = cast("PatchOperator", item.read_choice("operator", PATCH_OPERATORS, "replace", OPERATOR_UNSUPPORTED))
    path = _read_pointer(item, field, item.read_text(field), PATCH_PATH_INVALID)
    if operator == "remove":
        return PatchItem(operator, path)
    if "value" not in item.data and item.data.get("operator") in (None, "", operator):
        item.add_finding("value", f"is required for {operator}; null is allowed", PATCH_VALUE_MISSING)
    return PatchItem(operator, path, item.data.get("value", ABSENT))


def _read_pointer(item: FieldReader, name: str, text: str, code: Any) -> tuple[str, ...]:
    try:
        path = parse_pointer(text)
    except PointerError as error:
        item.add_finding(name, f"must be a JSON pointer: {error}", code)
        return ()
    if not path:
        item.add_finding(name, "must start with /: a patch of the whole document is not allowed", code)
    return path


def _map_operator(item: FieldReader) -> MapOperator:
    return cast("MapOperator", item.read_choice("operator", MAP_OPERATORS, "overwrite", OPERATOR_UNSUPPORTED))


_READERS: Mapping[Overrider, Callable[[FieldReader], OverrideItem]] = {
    "image": _read_image,
    "command": _read_list,
    "args": _read_list,
    "envs": _read_env,
    "annotations": _read_annotations,
    "labels": _read_labels,
    "fields": _read_field,
    "jsonpatch": _read_patch,
}


def read_override_rules(spec: FieldReader) -> tuple[OverrideRule, ...]:
    """Return the override rules of a policy. A policy without rules is valid and has no effect."""
    rule_readers = [*spec.iterate_mappings("overrideRules", _RULE_FIELDS)]
    rules = tuple(map(_read_written_rule, rule_readers))
    _check_names(rule_readers)
    return rules


@cached(_MAX_CACHED_TEXTS)
def read_rule_text(text: str) -> OverrideRule | None:
    """Return the rule that a stored JSON text contains. Return None if the text is not a valid rule."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return None
    errors = _create_unlocated_findings()
    rule = _read_rule(FieldReader(data, (), errors, _TEXT_FIELDS))
    return None if errors.findings or data is None else replace(rule, text=text)


def resolve_rule(rule: OverrideRule, number: int, cluster: Cluster) -> OverrideRule | tuple[ResourceIssue, ...]:
    """Return a rule after its variables are replaced by values for a cluster, or an issue for each invalid value."""
    if rule.template is None:
        return rule
    path: DataPath = ("spec", "overrideRules", number)
    data, unresolved = resolve_variables(rule.template, cluster)
    if unresolved:
        return tuple(
            ResourceIssue(
                VARIABLE_UNRESOLVED, f"{format_path((*path, 'overriders', *variable.path))} {variable.message}"
            )
            for variable in unresolved
        )
    errors = _create_unlocated_findings()
    overriders = read_overriders(FieldReader({"overriders": data}, path, errors, None))
    messages = (f"on {cluster.name}, {variable.message}" for variable in errors.findings)
    return tuple(ResourceIssue(VARIABLE_UNRESOLVED, message) for message in messages) or replace(
        rule, overriders=overriders
    )


def _read_written_rule(reader: FieldReader) -> OverrideRule:
    rule, name, rollout = _read_rule(reader), _read_name(reader), _read_rollout(reader)
    return replace(rule, name=name, rollout=rollout, text=_format_rule_text(reader.data))


def _read_rule(rule: FieldReader) -> OverrideRule:
    overriders = rule.data.get("overriders")
    if not has_variables(overriders):
        return OverrideRule(read_target_clusters(rule), read_overriders(rule))
    sample, invalid_variables = fill_with_samples(overriders)
    for variable in invalid_variables:
        rule.faults.add((*rule.path, "overriders", *variable.path), variable.message)
    filled = FieldReader({"overriders": sample}, rule.path, rule.faults, None)
    return OverrideRule(read_target_clusters(rule), read_overriders(filled), overriders)


def _format_rule_text(rule: Any) -> str:
    # Keep the order of the keys, because new keys are written to resources in this order.
    content = {name: rule[name] for name in _TEXT_FIELDS if rule.get(name) is not None}
    return json.dumps(content, separators=(",", ":"))


def _read_name(rule: FieldReader) -> str:
    name = rule.read_text("name", required=rule.has_value("name"))
    if name and (error := validate_dns_label(name)):
        rule.add_finding("name", f"must be a DNS label: {error}")
    elif name.isdigit():
        rule.add_finding(
            "name", f"must not be the number {quote_value(name)}, because numbers identify rules that have no name"
        )
    return name


def _check_names(rules: Iterable[FieldReader]) -> None:
    first: dict[str, FieldReader] = {}
    for rule in rules:
        name = rule.data.get("name")
        if isinstance(name, str) and name and first.setdefault(name, rule) is not rule:
            rule.add_finding(
                "name", f"must be unique: {format_path(first[name].path)} also has the name {quote_value(name)}"
            )


def _read_rollout(rule: FieldReader) -> Rollout | None:
    if not rule.has_value("rollout"):
        return None
    rollout = rule.read_mapping("rollout", ("waves", "soak"))
    if rollout.data.get("waves") in (None, []):
        rollout.add_finding("waves", "must be a list of at least one wave")
    waves = tuple(map(read_cluster_selection, rollout.iterate_mappings("waves", CLUSTER_SELECTION_FIELDS)))
    soak = rollout.read_text("soak")
    if soak and parse_duration_seconds(soak) is None:
        rollout.add_finding("soak", f'must be a duration such as "10m" or "1h30m", not {quote_value(soak)}')
    return Rollout(waves, soak)


def _create_unlocated_findings() -> FieldFindings:
    return FieldFindings(lambda _: SourceLocation(), POLICY_INVALID)
