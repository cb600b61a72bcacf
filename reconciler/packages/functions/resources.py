"""Functions that add or remove whole resources.

These are `upsert-resource`, `remove-local-config-resources` and `gen-pkg-context`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from reconciler.packages.functions.function import (
    FunctionConfig,
    FunctionContext,
    FunctionOutput,
    FunctionResult,
    Item,
    copy_plain_data,
    create_failure,
    format_scalar,
    report_errors_as_failure,
)
from reconciler.packages.functions.limits import estimate_value_bytes
from reconciler.packages.kptfile import KPTFILE
from reconciler.packages.package_context import PACKAGE_CONTEXT_FILE, build_package_context, is_package_context
from reconciler.packages.resource import LOCAL_CONFIG

TARGET_PATH = "config.kubernetes.io/target-path"
_FUNCTION_ANNOTATIONS = ("config.kubernetes.io/function", "config.k8s.io/function")


@report_errors_as_failure
def upsert_resource(items: Sequence[Item], config: FunctionConfig | None, context: FunctionContext) -> FunctionOutput:
    """Replace all items with the same identity as a configured resource. If there is no such item, add the resource.

    If the resource has the annotation `config.kubernetes.io/target-path`, only an item in this file is replaced.
    """
    resources = _read_resources(config)
    if isinstance(resources, str):
        return create_failure(items, resources)
    all_items = list(items)
    for resource in resources:
        context.budget.charge_steps(len(all_items))
        matching = [number for number, item in enumerate(all_items) if _matches_resource(item, resource)]
        size = estimate_value_bytes(resource.data) * max(1, len(matching))
        context.budget.charge_output(size, f"{resource.kind} {resource.name}")
        for number in matching:
            all_items[number] = all_items[number].with_data(_remove_function_annotations(resource))
        all_items += [] if matching else [_create_resource(resource)]
    return FunctionOutput(tuple(all_items))


def _read_resources(config: FunctionConfig | None) -> list[Item] | str:
    """Return the resources in the configuration, or an error message."""
    data: Mapping[str, Any] = config or {}
    entries = data.get("items") if data.get("kind") == "List" else [data]
    if entries is None:
        return []
    if not isinstance(entries, list) or not all(isinstance(entry, Mapping) for entry in entries):
        return "failed to upsert resource: items must be a list of resources"
    resources = [Item("", "", -1, dict(entry)) for entry in entries]
    missing_field = next((item.missing_krm_field for item in resources if item.missing_krm_field), "")
    return f"failed to upsert resource: a resource must have `{missing_field}`" if missing_field else resources


def _matches_resource(item: Item, resource: Item) -> bool:
    if any(item.annotations.get(annotation) for annotation in _FUNCTION_ANNOTATIONS):
        return False
    return item.key == resource.key and _get_target_path(resource) in ("", item.path)


def _get_target_path(resource: Item) -> str:
    path = resource.annotations.get(TARGET_PATH)
    return path if isinstance(path, str) else ""


def _remove_function_annotations(resource: Item) -> Any:
    """Return the data of a configured resource without the annotations that only upsert-resource reads."""
    data = copy_plain_data(resource.data)
    annotations = data["metadata"].get("annotations")
    if isinstance(annotations, dict):
        for name in (TARGET_PATH, *_FUNCTION_ANNOTATIONS):
            annotations.pop(name, None)
        if not annotations:
            del data["metadata"]["annotations"]
    return data


def _create_resource(resource: Item) -> Item:
    return Item("", _get_target_path(resource), -1, _remove_function_annotations(resource))


def remove_local_config_resources(
    items: Sequence[Item], config: FunctionConfig | None, context: FunctionContext
) -> FunctionOutput:
    """Remove items whose annotation `config.kubernetes.io/local-config` is `true`, in upper or lower case.

    The profile `safe` keeps Kptfiles, because a package without a Kptfile cannot be updated or rendered again.
    """
    removed = {
        item: None
        for item in items
        if _is_local_config(item) and not (context.profile == "safe" and item.path == KPTFILE)
    }
    if not removed:
        warning = FunctionResult("Found no resources to prune with the local config annotation", "warning")
        return FunctionOutput(tuple(items), (warning,))
    results = [FunctionResult(f"Resource name: [{item.name}]", file=item.file) for item in removed]
    kept_items = tuple(item for item in items if item not in removed)
    return FunctionOutput(kept_items, (FunctionResult(f"Number of resources pruned: {len(removed)}"), *results))


def _is_local_config(item: Item) -> bool:
    return (format_scalar(item.annotations.get(LOCAL_CONFIG)) or "").lower() == "true"


@report_errors_as_failure
def gen_pkg_context(items: Sequence[Item], config: FunctionConfig | None, context: FunctionContext) -> FunctionOutput:
    """Set the name of the package in its package context. Create the package context if it does not exist.

    The profile `safe` changes only this name. As in kpt, the profile `compat` deletes the package contexts of the
    package and of all subpackages, and creates a new package context.
    """
    kptfile = next((item for item in items if item.package == context.package and item.path == KPTFILE), None)
    if kptfile is None:
        return create_failure(items, "the package must have a Kptfile")
    existing = None
    if context.profile == "safe":
        existing = next(
            (item for item in items if item.package == context.package and is_package_context(item.data)), None
        )
    created = _create_context_item(existing, kptfile, context)
    kept_items = [
        item
        for item in items
        if item is not existing and (context.profile == "safe" or not is_package_context(item.data))
    ]
    return FunctionOutput((*kept_items, created), (FunctionResult("generated package context"),))


def _create_context_item(existing: Item | None, kptfile: Item, context: FunctionContext) -> Item:
    if existing is not None:
        return existing.with_values([(("data", "name"), kptfile.name)])
    return Item(context.package, PACKAGE_CONTEXT_FILE, 0, build_package_context({"name": kptfile.name}))
