"""Reading the overriders of a rule: everything that can be told without a resource is told here (kubeadmiral 1, 5)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from reconciler.krm.conflicts import ABSENT
from reconciler.krm.names import annotation_key_fault, label_key_fault, label_value_fault
from reconciler.krm.pointer import PointerError, parse_pointer
from reconciler.rules.fields import Fields, shown
from reconciler.rules.overrides.codes import (
    DIGEST_INVALID,
    FIELD_PATH_INVALID,
    FORBIDDEN_PATH,
    IMAGE_PATH_INVALID,
    OPERATOR_UNSUPPORTED,
    PATCH_PATH_INVALID,
    PATCH_VALUE_MISSING,
    TAG_INVALID,
    VALUE_REQUIRED,
)
from reconciler.rules.overrides.model import (
    OVERRIDERS,
    Component,
    EnvItem,
    FieldItem,
    ImageItem,
    ImageOperation,
    ImageOperator,
    Item,
    ListItem,
    ListOperator,
    MapItem,
    MapOperator,
    Overrider,
    PatchItem,
    PatchOperator,
    TextFormat,
)
from reconciler.rules.overrides.reference import digest_fault, tag_fault

COMPONENTS = ("Registry", "Repository", "Tag", "Digest")
IMAGE_OPERATORS = ("addIfAbsent", "overwrite", "delete")
MAP_OPERATORS = ("addIfAbsent", "overwrite", "delete", "set")
LIST_OPERATORS = ("append", "overwrite", "delete")
PATCH_OPERATORS = ("add", "remove", "replace", "set")
TEXT_FORMATS = ("yaml", "json", "toml", "ini")
FORBIDDEN_PATHS = ("/kind", "/metadata/name", "/metadata/namespace", "/metadata/generateName")


def read_overriders(rule: Fields) -> tuple[tuple[Overrider, tuple[Item, ...]], ...]:
    """Return the items of a rule by overrider, in the order in which they take effect."""
    overriders = rule.mapping("overriders", OVERRIDERS)
    read = {name: tuple(_READERS[name](one) for one in overriders.mappings(name, _FIELDS[name])) for name in OVERRIDERS}
    return tuple((name, items) for name, items in read.items() if items)


def _read_image(item: Fields) -> ImageItem:
    if not item.has("operations"):
        item.fault("operations", "must be a list")
    operations = item.mappings("operations", ("imageComponent", "operator", "value"))
    path, text = None, item.text("imagePath")
    if text:
        path = _pointer(item, "imagePath", text, IMAGE_PATH_INVALID)
    return ImageItem(item.texts("containerNames"), path, tuple(map(_read_image_operation, operations)))


def _read_image_operation(one: Fields) -> ImageOperation:
    component = cast("Component", one.choice("imageComponent", COMPONENTS))
    operator = cast("ImageOperator", one.choice("operator", IMAGE_OPERATORS, "overwrite", OPERATOR_UNSUPPORTED))
    value = one.text("value")
    if operator != "delete":
        if one.data.get("value") in (None, ""):
            one.fault("value", f"must not be empty for {operator}; use delete to clear {component}", VALUE_REQUIRED)
        elif value and component == "Tag" and (fault := tag_fault(value)):
            one.fault("value", f"{fault}, not {shown(value)}", TAG_INVALID)
        elif value and component == "Digest" and (fault := digest_fault(value)):
            one.fault("value", f"{fault}, not {shown(value)}", DIGEST_INVALID)
    return ImageOperation(component, operator, value)


def _read_list(item: Fields) -> ListItem:
    item.require("value", "a list of strings", VALUE_REQUIRED)
    container, value = item.text("containerName", required=True), item.texts("value")
    operator = cast("ListOperator", item.choice("operator", LIST_OPERATORS, "overwrite", OPERATOR_UNSUPPORTED))
    if operator == "append" and item.data.get("value") == []:
        item.fault("value", "must not be empty for append", VALUE_REQUIRED)
    return ListItem(container, operator, value)


def _read_env(item: Fields) -> EnvItem:
    item.require("value", "a list of variables", VALUE_REQUIRED)
    container, operator = item.text("containerName", required=True), _map_operator(item)
    # a variable may have any other field: newer versions of Kubernetes know more of them
    entries = []
    for entry in item.mappings("value", None):
        entry.text("name", required=True)
        entry.text("value")
        entries.append(entry.data)
    if operator == "addIfAbsent" and item.data.get("value") == []:
        item.fault("value", "must not be empty for addIfAbsent", VALUE_REQUIRED)
    return EnvItem(container, operator, tuple(entries))


def _read_labels(item: Fields) -> MapItem:
    return _read_map(item, lambda key, value: label_key_fault(key) or label_value_fault(value))


def _read_annotations(item: Fields) -> MapItem:
    return _read_map(item, lambda key, _: annotation_key_fault(key))


def _read_map(item: Fields, fault_of: Callable[[str, str], str | None]) -> MapItem:
    item.require("value", "a mapping of strings", VALUE_REQUIRED)
    operator, value = _map_operator(item), item.string_map("value")
    if operator == "addIfAbsent" and item.data.get("value") == {}:
        item.fault("value", "must not be empty for addIfAbsent", VALUE_REQUIRED)
    for key, text in value.items() if operator != "delete" else ():
        if fault := fault_of(key, text):
            item.fault("value", f"must be valid: {fault}")
    return MapItem(operator, value)


def _read_field(item: Fields) -> FieldItem:
    path = _pointer(item, "fieldPath", item.text("fieldPath"), FIELD_PATH_INVALID)
    written = [name for name in TEXT_FORMATS if item.data.get(name)]
    if len(written) != 1:
        item.faults.add(item.path, f"must have exactly one of {', '.join(TEXT_FORMATS)}, with operations in it")
    name = written[0] if written else TEXT_FORMATS[0]
    operations = item.mappings(name, ("operator", "subPath", "value"))
    return FieldItem(path, cast("TextFormat", name), tuple(_read_operation(one, "subPath") for one in operations))


def _read_patch(item: Fields) -> PatchItem:
    if item.data.get("path") in FORBIDDEN_PATHS:
        item.fault("path", f"must not be one of {', '.join(FORBIDDEN_PATHS)}", FORBIDDEN_PATH)
    return _read_operation(item, "path")


def _read_operation(item: Fields, field: str) -> PatchItem:
    operator = cast("PatchOperator", item.choice("operator", PATCH_OPERATORS, "replace", OPERATOR_UNSUPPORTED))
    path = _pointer(item, field, item.text(field), PATCH_PATH_INVALID)
    if operator == "remove":
        return PatchItem(operator, path)
    if "value" not in item.data and item.data.get("operator") in (None, "", operator):
        item.fault("value", f"must be written for {operator}, if only as null", PATCH_VALUE_MISSING)
    return PatchItem(operator, path, item.data.get("value", ABSENT))


def _pointer(item: Fields, name: str, text: str, code: Any) -> tuple[str, ...]:
    try:
        path = parse_pointer(text)
    except PointerError as error:
        item.fault(name, f"must be a JSON pointer: {error}", code)
        return ()
    if not path:
        item.fault(name, "must begin with /: the whole document cannot be meant", code)
    return path


def _map_operator(item: Fields) -> MapOperator:
    return cast("MapOperator", item.choice("operator", MAP_OPERATORS, "overwrite", OPERATOR_UNSUPPORTED))


_READERS: Mapping[Overrider, Callable[[Fields], Item]] = {
    "image": _read_image,
    "command": _read_list,
    "args": _read_list,
    "envs": _read_env,
    "annotations": _read_annotations,
    "labels": _read_labels,
    "fields": _read_field,
    "jsonpatch": _read_patch,
}
_OF_CONTAINER = ("containerName", "operator", "value")
_FIELDS: Mapping[Overrider, Sequence[str]] = {
    "image": ("containerNames", "imagePath", "operations"),
    "command": _OF_CONTAINER,
    "args": _OF_CONTAINER,
    "envs": _OF_CONTAINER,
    "annotations": ("operator", "value"),
    "labels": ("operator", "value"),
    "fields": ("fieldPath", *TEXT_FORMATS),
    "jsonpatch": ("operator", "path", "value"),
}
