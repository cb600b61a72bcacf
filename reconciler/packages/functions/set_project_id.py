"""set-project-id: a package's project as a setter, and as annotation of its config-connector objects (kpt.md 16)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from posixpath import normpath
from typing import Any

import re2

from reconciler.krm.yaml import Path
from reconciler.packages.functions.function import (
    Config,
    FunctionContext,
    Item,
    Output,
    charged,
    config_strings,
    failure,
    reports_faults,
    value_at,
)
from reconciler.packages.functions.limits import Budget

SETTER = "project-id"
_ANNOTATION = ("metadata", "annotations", "cnrm.cloud.google.com/project-id")
_CONNECTOR = re2.compile(r"(\w+)\.cnrm\.cloud\.google\.com/\w+")
_APPLY_SETTERS = "gcr.io/kpt-fn/apply-setters:v0.1"
# from here on the function that is added is a newer one
_NEWER = (0, 2, 0)
_APPLY_SETTERS_NEWER = "gcr.io/kpt-fn/apply-setters:v0.2"
_MUTATORS = ("pipeline", "mutators")


@reports_faults
def set_project_id(items: Sequence[Item], config: Config | None, context: FunctionContext) -> Output:
    """Return the items with the project where none is set: as a setter of the package, and on what is deployed."""
    project = config_strings((config or {}).get("data"), "data").get(SETTER, "")
    if not project:
        return failure(items, f"the configuration must be a ConfigMap with `data.{SETTER}`")
    changed = _with_setters(items, project, context)
    if isinstance(changed, str):
        return failure(items, f"failed to set project-id setter: {changed}")
    return Output(tuple(_annotated(item, project, context.budget) for item in changed))


def _annotated(item: Item, project: str, budget: Budget) -> Item:
    match = _CONNECTOR.fullmatch(item.api_version)
    # the connector's own settings belong to no project
    if not match or match.group(1) == "core" or value_at(item.data, _ANNOTATION) is not None:
        return item
    return item.with_values(charged([(_ANNOTATION, project)], item, budget))


def _with_setters(items: Sequence[Item], project: str, context: FunctionContext) -> list[Item] | str:
    """Return the items with the setter for every package among them, or why it has no place in one of them."""
    changed = list(items)
    kptfiles = [number for number, item in enumerate(items) if item.kind == "Kptfile"]
    if not kptfiles:
        return "unable to find Kptfile: the function must see the package's own"
    for number in kptfiles:
        result = _with_setter(changed, changed[number], project, context)
        if isinstance(result, str):
            return f"error updating {changed[number].file}: {result}"
        changed = result
    return changed


def _with_setter(items: Sequence[Item], kptfile: Item, project: str, context: FunctionContext) -> list[Item] | str:
    """Return the items with the setter in one package's configuration of apply-setters, or why it has no place."""
    mutators = value_at(kptfile.data, _MUTATORS)
    entries = mutators if isinstance(mutators, list) else []
    for index, entry in enumerate(entries):
        if isinstance(entry, Mapping) and "apply-setters" in str(entry.get("image")):
            return _configured(items, kptfile, index, entry, project, context)
    image = _APPLY_SETTERS if context.version < _NEWER else _APPLY_SETTERS_NEWER
    added = {"image": image, "configMap": {SETTER: project}}
    changed = kptfile.with_values(charged([(_MUTATORS, [*entries, added])], kptfile, context.budget))
    return [changed if item is kptfile else item for item in items]


def _configured(
    items: Sequence[Item],
    kptfile: Item,
    index: int,
    entry: Mapping[str, Any],
    project: str,
    context: FunctionContext,
) -> list[Item] | str:
    """Return the items with the setter in one function's configuration, wherever that stands."""
    holder = kptfile
    path: Path = (*_MUTATORS, index, "configMap")
    if entry.get("configMap") is None:
        if not entry.get("configPath"):
            return "unable to find `ConfigMap` or `configPath` as the `functionConfig` for apply-setters"
        file = normpath(str(entry["configPath"]))
        # upstream looks for the path below the package whose pipeline runs, also for the Kptfile of a subpackage
        package = kptfile.package if context.profile == "safe" else context.package
        found = next((item for item in items if item.file == "/".join(filter(None, (package, file)))), None)
        if found is None:
            return f'file {file} doesn\'t exist, please ensure the file specified in "configPath" exists and retry'
        holder, path = found, ("data",)
    if value_at(holder.data, (*path, SETTER)):
        return list(items)
    changed = holder.with_values(charged([((*path, SETTER), project)], holder, context.budget))
    return [changed if item is holder else item for item in items]
