"""ensure-name-substring: names with a prefix or suffix, and the references to them (kpt.md 16, 16.1)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from reconciler.krm.yaml import Path, YamlError
from reconciler.packages.functions.depends_on import DEPENDS_ON, Dependency, followed_entries, read_dependency
from reconciler.packages.functions.fieldspec import FieldSpec, read_field_specs
from reconciler.packages.functions.function import (
    Config,
    FunctionContext,
    Item,
    Output,
    charged,
    config_fields,
    config_strings,
    failure,
    reports_faults,
    value_at,
)
from reconciler.packages.functions.limits import Budget
from reconciler.packages.functions.name_references import followed_names

_NAME = ("metadata", "name")
_ANNOTATION = ("metadata", "annotations", DEPENDS_ON)
_MODES: Mapping[str, Literal["prepend", "append"]] = {"prepend": "prepend", "append": "append"}
_NEVER = (
    FieldSpec("", "CustomResourceDefinition"),
    FieldSpec("", "APIService", "apiregistration.k8s.io"),
    FieldSpec("", "Namespace"),
    FieldSpec("", "Kptfile", "kpt.dev"),
)


@dataclass(frozen=True)
class _Wish:
    substring: str
    mode: Literal["prepend", "append"]
    fields: tuple[FieldSpec, ...] = ()

    def edited(self, name: str) -> str:
        """Return the name with the substring."""
        return self.substring + name if self.mode == "prepend" else name + self.substring


@reports_faults
def ensure_name_substring(items: Sequence[Item], config: Config | None, context: FunctionContext) -> Output:
    """Return the items with the substring in their names, and in all that refers to those by name.

    `compat` loses the files that resources stand in, as upstream does: each gets one of its own, named after it.
    """
    wish = _read(config)
    if isinstance(wish, str):
        return failure(items, f"failed to load the `functionConfig`: {wish}")
    context.budget.spend(len(items) * (1 + len(wish.fields)))
    values = {item: charged(_names(item, wish), item, context.budget) for item in items}
    renamed = {item: text for item, changes in values.items() for path, text in changes if path == _NAME}
    follow = _depending_upstream if context.profile == "compat" else _depending
    references = followed_names(items, renamed, context.budget)
    changed = [
        item.with_values((*values[item], *charged((*references[item], *followed), item, context.budget)))
        for item in items
        for followed in [tuple(follow(item, values, renamed, wish, context.budget))]
    ]
    return Output(tuple(changed if context.profile == "safe" else _in_own_files(changed)))


def _read(config: Config | None) -> _Wish | str:
    """Return what the configuration asks for, or what is wrong with it."""
    config = config or {}
    kind, api_version = config.get("kind"), config.get("apiVersion")
    if (api_version, kind) == ("v1", "ConfigMap"):
        data = config_strings(config.get("data"), "data")
        if len(data) != 1:
            return f"only 1 entry is allowed in the ConfigMap, but got: {len(data)}"
        mode, substring = next(iter(data.items()))
        return _wish(mode, substring, ())
    if (api_version, kind) != ("fn.kpt.dev/v1alpha1", "EnsureNameSubstring"):
        return f'function config must be a ConfigMap or an fn.kpt.dev/v1alpha1 EnsureNameSubstring, not "{kind or ""}"'
    data, added = config_fields(config, "editMode", "substring"), config.get("additionalNameFields")
    if added and config.get("fieldSpecs"):
        return "`fieldSpecs` has been deprecated, please rename it to `additionalNameFields`"
    fields = read_field_specs(added or config.get("fieldSpecs"))
    return _wish(data["editMode"] or "prepend", data["substring"], fields)


def _wish(mode: str, substring: str, fields: tuple[FieldSpec, ...]) -> _Wish | str:
    if mode not in _MODES:
        return f"unknown editMode: {mode}, only prepend and append are allowed"
    return _Wish(substring, _MODES[mode], fields) if substring else "substring must not be empty"


def _names(item: Item, wish: _Wish) -> Iterator[tuple[Path, str]]:
    """Yield the names that lack the substring, as they are to be."""
    if any(kind.applies(item) for kind in _NEVER):
        return
    added = (path for spec in wish.fields for path in spec.targets(item))
    for path in dict.fromkeys((_NAME, *added)):
        old = value_at(item.data, path, "")
        if isinstance(old, str) and wish.substring not in old and (old or path != _NAME):
            yield path, wish.edited(old)


def _depending(
    item: Item, values: Mapping[Item, object], renamed: Mapping[Item, str], edit: _Wish, budget: Budget
) -> Iterator[tuple[Path, str]]:
    """Yield the depends-on annotation with the new names of all that it names."""
    old = item.annotations.get(DEPENDS_ON)
    if isinstance(old, str):
        yield _ANNOTATION, followed_entries(old, renamed, budget)


def _depending_upstream(
    item: Item, values: Mapping[Item, Sequence[object]], renamed: Mapping[Item, str], edit: _Wish, budget: Budget
) -> Iterator[tuple[Path, str]]:
    # upstream looks at it only where a name changes, takes one entry, and does not ask whether that one's name changes
    old = item.annotations.get(DEPENDS_ON)
    budget.spend(len(values))
    dependency = read_dependency(old) if isinstance(old, str) and values[item] else None
    if dependency and any(_has_name(other, dependency) for other in values):
        yield _ANNOTATION, str(replace(dependency, name=edit.edited(dependency.name)))


def _has_name(item: Item, dependency: Dependency) -> bool:
    return (item.group, item.kind, item.name) == (dependency.group, dependency.kind, dependency.name)


def _in_own_files(items: Sequence[Item]) -> Iterator[Item]:
    """Yield the items, each in a file after its kind and name, written in our own style."""
    places: dict[tuple[str, str], int] = {}
    for item in items:
        path = "/".join(filter(None, (item.namespace, f"{item.kind.lower()}_{item.name}.yaml")))
        index = places.get((item.package, path), 0)
        places[item.package, path] = index + 1
        yield _fresh(item).moved(path, index)


def _fresh(item: Item) -> Item:
    """Return the item as a text of its own, with the line comments that still have a place."""
    comments = item.document.comments()
    fresh = replace(item, base=None)
    for path, comment in comments.items():
        try:
            fresh = fresh.with_comment(path, comment)
        except YamlError:
            # what has lost its place is lost, as upstream loses it
            continue
    return fresh
