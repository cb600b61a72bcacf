"""Merge of the templates of a parent and a child, for example of a Kafka and a KafkaNodePool.

In an effective template, each property is taken completely from the parent or completely from the child. Only
`build_complete_template` merges the contents of properties.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Literal

from reconciler.krm.merge3.rules import ABSENT
from reconciler.krm.yaml import DataPath
from reconciler.krm.yaml.compare import is_equal_data
from reconciler.lazy_dataclasses import dataclass

PropertySource = Literal["parent", "child", "reset", "unset"]
_UNQUOTED_KEY = re.compile(r"[^.\[\]\"]+")
# Lists in which a field identifies each entry, with the name of this field.
NAMED_LISTS: Mapping[str, str] = {
    "env": "name",
    "volumes": "name",
    "templatedVolumes": "name",
    "imagePullSecrets": "name",
    "tolerations": "key",
    "hostAliases": "ip",
    "volumeMounts": "mountPath",
}


@dataclass(frozen=True)
class TemplateProperty:
    """One property of an effective template, and whether its value comes from the parent or the child.

    `inherited` is the value of the parent, and `own` is the value of the child. A value that is missing or null is
    ABSENT. `is_null` is True if the value of the child is null. Then the value of the parent is inherited.
    """

    name: str
    source: PropertySource
    inherited: Any = ABSENT
    own: Any = ABSENT
    is_null: bool = False

    @property
    def value(self) -> Any:
        """The effective value. ABSENT if neither the parent nor the child sets the property."""
        return self.inherited if self.source == "parent" else self.own

    @property
    def is_inherited(self) -> bool:
        """Whether the effective value comes from the parent."""
        return self.source == "parent"


def merge_templates(names: tuple[str, ...], parent: Any, child: Any) -> tuple[TemplateProperty, ...]:
    """Return the merged value of each property in `names`. `parent` and `child` are templates or ABSENT or None."""
    return tuple(_merge_property(name, _get_field(parent, name), _get_field(child, name)) for name in names)


def build_effective_template(properties: tuple[TemplateProperty, ...]) -> dict[str, Any]:
    """Return the effective template as data. If the child sets a property to {}, the result contains {}."""
    return {
        template_property.name: template_property.value
        for template_property in properties
        if template_property.source != "unset"
    }


def _merge_property(name: str, inherited: Any, own: Any) -> TemplateProperty:
    is_null = own is None
    inherited, own = (ABSENT if value is None else value for value in (inherited, own))
    return TemplateProperty(name, _get_source(inherited, own), inherited, own, is_null)


def _get_source(inherited: Any, own: Any) -> PropertySource:
    if own is ABSENT:
        return "unset" if inherited is ABSENT else "parent"
    # The child removes an inherited value by setting the property to {}.
    return "reset" if own == {} and inherited is not ABSENT else "child"


def _get_field(template: Any, name: str) -> Any:
    return template.get(name, ABSENT) if isinstance(template, Mapping) else ABSENT


@dataclass(frozen=True)
class HiddenSettings:
    """Paths of inherited settings that have no effect, because the child sets the property that contains them.

    `shadowed` settings are missing in the child's value. `overridden` settings have a different value in the child's
    value.
    """

    shadowed: tuple[str, ...] = ()
    overridden: tuple[str, ...] = ()


def find_hidden_settings(inherited: Any, value: Any) -> HiddenSettings:
    """Return the settings that are lost or changed when the child's `value` replaces the parent's value `inherited`."""
    differences = [(path, has_value) for path, has_value in _find_differences(inherited, value, "")]
    shadowed = dict.fromkeys(path for path, has_value in differences if not has_value)
    overridden = dict.fromkeys(path for path, has_value in differences if has_value)
    return HiddenSettings(tuple(shadowed), tuple(overridden))


def group_named_entries(items: list[Any], field: str) -> dict[str, list[Any]]:
    """Return the entries of a list by the value of `field`. An entry without this field is under ""."""
    entries_by_name: dict[str, list[Any]] = {}
    for item in items:
        name = item.get(field) if isinstance(item, Mapping) else None
        entries_by_name.setdefault("" if name is None else str(name), []).append(item)
    return entries_by_name


def _find_differences(inherited: Any, value: Any, path: str) -> Iterator[tuple[str, bool]]:
    """Yield each setting of `inherited` that `value` does not contain unchanged.

    Yield the path of the setting, and whether `value` contains a different value at this path.
    """
    if is_equal_data(inherited, value):
        return
    if isinstance(inherited, dict):
        own_values = value if isinstance(value, dict) else {}
        # Yield nothing for an empty mapping, because it contains no settings.
        for key, inherited_value in inherited.items():
            yield from _find_differences(inherited_value, own_values.get(key, ABSENT), _append_to_path(path, str(key)))
    elif isinstance(inherited, list) and inherited and (field := NAMED_LISTS.get(path.rpartition(".")[2])):
        yield from _find_entry_differences(inherited, value if isinstance(value, list) else [], path, field)
    else:
        yield path, value is not ABSENT


def _find_entry_differences(
    inherited: list[Any], value: list[Any], path: str, field: str
) -> Iterator[tuple[str, bool]]:
    own_entries = group_named_entries(value, field)
    for name, items in group_named_entries(inherited, field).items():
        if not is_equal_data(items, own_entries.get(name, ABSENT)):
            yield f"{path}[{name}]", name in own_entries


def _append_to_path(path: str, key: str) -> str:
    if not _UNQUOTED_KEY.fullmatch(key):
        quoted = key.replace("\\", "\\\\").replace('"', '\\"')
        return f'{path}["{quoted}"]'
    return f"{path}.{key}" if path else key


def build_complete_template(properties: tuple[TemplateProperty, ...], path: DataPath) -> Any:
    """Return data with a complete template for the child. The position of the template in the data is `path`.

    The template can replace the child's template. It contains only properties that the child sets, because the child
    inherits all other properties:

    - Mappings and lists with named entries are merged with the value of the parent. For example, the parent sets two
      pod labels, and the child sets a third pod label. Then the template contains all three labels.
    - For other values, the value of the child is used.
    - A property that the child sets to {} stays {}.
    """
    template: Any = {
        template_property.name: template_property.own
        if template_property.inherited is ABSENT or template_property.source == "reset"
        else _merge_values(template_property.inherited, template_property.own, "")
        for template_property in properties
        if template_property.own is not ABSENT
    }
    for step in reversed(path):
        template = {step: template}
    return template


def _merge_values(inherited: Any, own: Any, name: str) -> Any:
    if isinstance(inherited, dict) and isinstance(own, dict):
        updated_entries = {
            key: _merge_values(inherited[key], value, key) if key in inherited else value for key, value in own.items()
        }
        return {**inherited, **updated_entries}
    field = NAMED_LISTS.get(name)
    if field and isinstance(inherited, list) and isinstance(own, list):
        return [*(entry for entry in inherited if not _contains_entry(own, entry, field)), *own]
    return own


def _contains_entry(items: list[Any], entry: Any, field: str) -> bool:
    """Return whether a list contains an item with the same name as `entry`. `field` contains the name.

    If `entry` has no name, return whether the list contains an item that is equal to `entry`.
    """
    name = entry.get(field, ABSENT) if isinstance(entry, dict) else ABSENT
    if name is ABSENT:
        return any(is_equal_data(item, entry) for item in items)
    return any(isinstance(item, dict) and is_equal_data(item.get(field, ABSENT), name) for item in items)
