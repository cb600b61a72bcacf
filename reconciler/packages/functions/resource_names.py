"""The functions `ensure-name-substring` and `set-name-prefix`: change resource names and the references to them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from reconciler.api.functions import EnsureNameSubstring
from reconciler.krm.yaml import DataPath, YamlError
from reconciler.lazy_dataclasses import dataclass, replace
from reconciler.packages.functions.field_specs import FieldSpec, convert_field_specs
from reconciler.packages.functions.function import (
    FunctionConfig,
    FunctionContext,
    FunctionOutput,
    FunctionResult,
    Item,
    charge_values,
    create_failure,
    get_value_at,
    read_config_object,
    read_config_strings,
    read_string_map,
    report_errors_as_failure,
)
from reconciler.packages.functions.limits import FunctionBudget, estimate_text_bytes
from reconciler.packages.functions.name_references import (
    DEPENDS_ON,
    Dependency,
    find_renamed_references,
    parse_dependency,
    rename_dependencies,
)
from reconciler.packages.package_context import is_package_context

_NAME_PATH = ("metadata", "name")
_DEPENDS_ON_PATH = ("metadata", "annotations", DEPENDS_ON)
_MODES: Mapping[str, Literal["prepend", "append"]] = {"prepend": "prepend", "append": "append"}
_UNCHANGED_KINDS = (
    FieldSpec("", "CustomResourceDefinition"),
    FieldSpec("", "APIService", "apiregistration.k8s.io"),
    FieldSpec("", "Namespace"),
    FieldSpec("", "Kptfile", "kpt.dev"),
)


@dataclass(frozen=True)
class _SubstringConfig:
    substring: str
    mode: Literal["prepend", "append"]
    fields: tuple[FieldSpec, ...] = ()

    def apply_to(self, name: str) -> str:
        """Return the name with the substring added at its start or end."""
        return self.substring + name if self.mode == "prepend" else name + self.substring


@report_errors_as_failure
def ensure_name_substring(
    items: Sequence[Item], config: FunctionConfig | None, context: FunctionContext
) -> FunctionOutput:
    """Add the substring to the names of all items, and update the references to these names.

    In the profile `compat`, each resource moves to its own file, which is named after the resource, as in kpt.
    """
    settings = _read_substring_config(config)
    if isinstance(settings, str):
        return create_failure(items, f"failed to load the `functionConfig`: {settings}")
    context.budget.charge_steps(len(items) * (1 + len(settings.fields)))
    values = {item: charge_values(_find_names(item, settings), item, context.budget) for item in items}
    renamed = {item: text for item, changes in values.items() for path, text in changes if path == _NAME_PATH}
    rename_depends_on = _rename_depends_on_like_kpt if context.profile == "compat" else _rename_depends_on
    references = find_renamed_references(items, renamed, context.budget)
    changed_items = [
        item.with_values((*values[item], *charge_values((*references[item], *dependencies), item, context.budget)))
        for item in items
        for dependencies in [tuple(rename_depends_on(item, values, renamed, settings, context.budget))]
    ]
    return FunctionOutput(tuple(changed_items if context.profile == "safe" else _move_to_own_files(changed_items)))


def _read_substring_config(config: FunctionConfig | None) -> _SubstringConfig | str:
    """Return the configuration of the function, or an error message."""
    config = config or {}
    kind, api_version = config.get("kind"), config.get("apiVersion")
    if (api_version, kind) == ("v1", "ConfigMap"):
        data = read_config_strings(config.get("data"), "data")
        if len(data) != 1:
            return f"only 1 entry is allowed in the ConfigMap, but got: {len(data)}"
        mode, substring = next(iter(data.items()))
        return _create_substring_config(mode, substring, ())
    if (api_version, kind) != ("fn.kpt.dev/v1alpha1", "EnsureNameSubstring"):
        return (
            f'function config must be a ConfigMap or an fn.kpt.dev/v1alpha1 EnsureNameSubstring, but is "{kind or ""}"'
        )
    settings = read_config_object(EnsureNameSubstring, config)
    if settings.additional_name_fields and settings.field_specs:
        return "`fieldSpecs` has been deprecated, please rename it to `additionalNameFields`"
    fields = convert_field_specs(settings.additional_name_fields or settings.field_specs)
    return _create_substring_config(settings.edit_mode or "prepend", settings.substring, fields)


def _create_substring_config(mode: str, substring: str, fields: tuple[FieldSpec, ...]) -> _SubstringConfig | str:
    if mode not in _MODES:
        return f"unknown editMode: {mode}, only prepend and append are allowed"
    return _SubstringConfig(substring, _MODES[mode], fields) if substring else "substring must not be empty"


def _find_names(item: Item, settings: _SubstringConfig) -> Iterator[tuple[DataPath, str]]:
    """Yield the path and the new value of each name field that does not contain the substring."""
    if any(kind.matches(item) for kind in _UNCHANGED_KINDS):
        return
    additional_paths = (path for spec in settings.fields for path in spec.find_paths(item))
    for path in dict.fromkeys((_NAME_PATH, *additional_paths)):
        old = get_value_at(item.data, path, "")
        if isinstance(old, str) and settings.substring not in old and (old or path != _NAME_PATH):
            yield path, settings.apply_to(old)


def _rename_depends_on(
    item: Item,
    values: Mapping[Item, object],
    renamed: Mapping[Item, str],
    settings: _SubstringConfig,
    budget: FunctionBudget,
) -> Iterator[tuple[DataPath, str]]:
    """Yield the path and the new value of the annotation `depends-on`, which contains the new resource names."""
    annotation = item.annotations.get(DEPENDS_ON)
    if isinstance(annotation, str):
        yield _DEPENDS_ON_PATH, rename_dependencies(annotation, renamed, budget)


def _rename_depends_on_like_kpt(
    item: Item,
    values: Mapping[Item, Sequence[object]],
    renamed: Mapping[Item, str],
    settings: _SubstringConfig,
    budget: FunctionBudget,
) -> Iterator[tuple[DataPath, str]]:
    # Reproduce kpt: change an annotation only if it has exactly one entry and the resource with the annotation is
    # renamed. The entry refers to another resource. Change the name in the entry even if this resource keeps its name.
    annotation = item.annotations.get(DEPENDS_ON)
    budget.charge_steps(len(values))
    dependency = parse_dependency(annotation) if isinstance(annotation, str) and values[item] else None
    if dependency and any(_has_name(other, dependency) for other in values):
        yield _DEPENDS_ON_PATH, str(replace(dependency, name=settings.apply_to(dependency.name)))


def _has_name(item: Item, dependency: Dependency) -> bool:
    return (item.group, item.kind, item.name) == (dependency.group, dependency.kind, dependency.name)


def _move_to_own_files(items: Sequence[Item]) -> Iterator[Item]:
    """Move each item to a file named after its kind and name, and write it in the default YAML style."""
    counts: dict[tuple[str, str], int] = {}
    for item in items:
        path = "/".join(filter(None, (item.namespace, f"{item.kind.lower()}_{item.name}.yaml")))
        index = counts.get((item.package, path), 0)
        counts[item.package, path] = index + 1
        yield _rebuild_document(item).with_location(path, index)


def _rebuild_document(item: Item) -> Item:
    """Write the item as a new document, and keep its line comments. Other comments are lost, as in kpt."""
    comments = item.document.comments()
    rebuilt = replace(item, base=None)
    for path, comment in comments.items():
        try:
            rebuilt = rebuilt.with_comment(path, comment)
        except YamlError:
            # Discard the comment, because it cannot be written in the new document. kpt discards it too.
            continue
    return rebuilt


_PLACEHOLDER = "packagename"


@report_errors_as_failure
def set_name_prefix(items: Sequence[Item], config: FunctionConfig | None, context: FunctionContext) -> FunctionOutput:
    """Replace the old prefix in resource names by the new prefix.

    A name has the old prefix if it is equal to the old prefix, or starts with the old prefix and a dash.

    The new prefix is the configured prefix. If no prefix is configured, the new prefix is the package name from the
    package context.

    If the configuration is invalid, the output contains a result with the severity `error`. The function does not fail,
    because the original function also exits with 0 in this case.
    """
    prefixes = _read_prefixes(items, config, context)
    if isinstance(prefixes, str):
        return FunctionOutput(tuple(items), (FunctionResult(prefixes, "error"),))
    old_prefix, new_prefix = prefixes
    matching = [item for item in items if _has_prefix(item, old_prefix)]
    size = sum(estimate_text_bytes(new_prefix) + estimate_text_bytes(item.name) for item in matching)
    context.budget.charge_output(size, "the names with the prefix", new_prefix)
    renamed = {item: new_prefix + item.name.removeprefix(old_prefix) for item in matching}
    references = find_renamed_references(items, renamed, context.budget)
    return FunctionOutput(
        tuple(
            item.with_values(
                charge_values(
                    (*_find_own_fields(item, renamed, context.budget), *references[item]), item, context.budget
                )
            )
            for item in items
        )
    )


def _read_prefixes(
    items: Sequence[Item], config: FunctionConfig | None, context: FunctionContext
) -> tuple[str, str] | str:
    """Return the old prefix and the new prefix, or an error message."""
    config = config or {}
    if config and (config.get("apiVersion"), config.get("kind")) != ("v1", "ConfigMap"):
        return f'the configuration must be a ConfigMap, but is "{config.get("kind")}"'
    package_context = next(
        (item for item in items if item.package == context.package and is_package_context(item.data)), None
    )
    package_name = (
        read_string_map(get_value_at(package_context.data, ("data",))).get("name", "") if package_context else ""
    )
    data = read_config_strings(config.get("data"), "data")
    new_prefix = data.get("prefix", package_name)
    return (data.get("oldPrefix", _PLACEHOLDER), new_prefix) if new_prefix else "`data.prefix` should not be empty"


def _has_prefix(item: Item, old_prefix: str) -> bool:
    is_kept = item.is_local_config or item.kind == "ResourceGroup"
    return not is_kept and bool(old_prefix) and (item.name == old_prefix or item.name.startswith(f"{old_prefix}-"))


def _find_own_fields(item: Item, renamed: Mapping[Item, str], budget: FunctionBudget) -> Iterator[tuple[DataPath, str]]:
    if item in renamed:
        yield _NAME_PATH, renamed[item]
    annotation = item.annotations.get(DEPENDS_ON)
    if isinstance(annotation, str):
        yield _DEPENDS_ON_PATH, rename_dependencies(annotation, renamed, budget)
