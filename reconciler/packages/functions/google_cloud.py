"""The functions `enable-gcp-services`, `set-project-id` and `set-enforcement-action` for Google Cloud blueprints."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from posixpath import dirname, normpath
from typing import Any

import re2

from reconciler.krm.yaml import DataPath, YamlFile
from reconciler.lazy_dataclasses import dataclass
from reconciler.packages.functions.function import (
    FunctionConfig,
    FunctionContext,
    FunctionOutput,
    FunctionResult,
    Item,
    charge_values,
    create_failure,
    format_scalar,
    get_value_at,
    read_config_strings,
    read_string_map,
    report_errors_as_failure,
)
from reconciler.packages.functions.limits import FunctionBudget, estimate_value_bytes
from reconciler.packages.parsing import parse_cached
from reconciler.packages.resource import LOCAL_CONFIG

_GROUP, _KIND = "blueprints.cloud.google.com", "ProjectServiceSet"
_SERVICE = {"apiVersion": "serviceusage.cnrm.cloud.google.com/v1beta1", "kind": "Service"}
_OWNER = "blueprints.cloud.google.com/ownerReference"
_GENERATED_MARK = {"cnrm.cloud.google.com/blueprint": "kpt-fn"}
# The estimated bytes of a generated Service, without the parts that are copied from its ProjectServiceSet.
_SERVICE_BYTES = 512
# Write both annotations in single quotes, as kpt does.
_TEMPLATE = b"""apiVersion: serviceusage.cnrm.cloud.google.com/v1beta1
kind: Service
metadata:
  name: x
  annotations:
    blueprints.cloud.google.com/ownerReference: 'x'
    cnrm.cloud.google.com/blueprint: 'kpt-fn'
spec:
  resourceID: x
"""


@dataclass(frozen=True)
class _ServiceSet:
    """A ProjectServiceSet of the package, with the names of its services."""

    item: Item
    services: tuple[str, ...]

    @property
    def owner(self) -> str:
        """The value of the annotation that marks the services generated for this set."""
        return f"{_GROUP}/{_KIND}/{self.item.name}"


@report_errors_as_failure
def enable_gcp_services(
    items: Sequence[Item], config: FunctionConfig | None, context: FunctionContext
) -> FunctionOutput:
    """Generate a Service for each service that a ProjectServiceSet lists.

    If a ProjectServiceSet does not list a service any more, remove the Service that was generated for it.
    """
    sets = [_read_service_set(item) for item in items if (item.api_version, item.kind) == (f"{_GROUP}/v1alpha1", _KIND)]
    error = next((service_set for service_set in sets if isinstance(service_set, str)), None)
    if error is not None:
        return create_failure(items, f"failed to add services: {error}")
    items_by_id = {item.id: item for item in items}
    items_by_owner: dict[object, list[Item]] = {}
    for item in items:
        items_by_owner.setdefault(format_scalar(item.annotations.get(_OWNER)), []).append(item)
    results: list[FunctionResult] = []
    added_services: list[Item] = []
    for services in (service_set for service_set in sets if isinstance(service_set, _ServiceSet)):
        items_by_id[services.item.id] = services.item.with_values([(_get_annotation_path(LOCAL_CONFIG), "true")])
        owned_services = items_by_owner.pop(services.owner, [])
        generated = list(_generate_services(services, {item.name: item for item in owned_services}, context))
        for item in owned_services:
            del items_by_id[item.id]
        added_services += generated
        results += _report_changes(owned_services, generated)
    return FunctionOutput((*items_by_id.values(), *added_services), tuple(sorted(results, key=_sort_key)))


def _get_annotation_path(name: str) -> tuple[str, str, str]:
    return ("metadata", "annotations", name)


def _read_service_set(item: Item) -> _ServiceSet | str:
    """Return the ProjectServiceSet of an item, or an error message."""
    names = get_value_at(item.data, ("spec", "services"))
    if not isinstance(names, list) or not names:
        return "at least one service must be specified under `spec.services[]`"
    texts = [format_scalar(name) or "" for name in names]
    invalid = next((text for text in texts if text.count(".") < 2), None)
    if invalid is not None:
        return f'invalid service specified: "{invalid}" must have at least three parts, such as compute.googleapis.com'
    return _ServiceSet(item, tuple(dict.fromkeys(texts)))


def _generate_services(services: _ServiceSet, old_items: dict[str, Item], context: FunctionContext) -> Iterator[Item]:
    # Include the metadata of the ProjectServiceSet in the size, because each generated service contains a copy of its
    # annotations and name.
    size_per_service = estimate_value_bytes(services.item.metadata) + _SERVICE_BYTES
    value_name = f"{services.item.file}: {services.item.kind} {services.item.name}: spec.services"
    context.budget.charge_output(size_per_service * len(services.services), value_name)
    for service in services.services:
        data = _build_service(services, service)
        existing = old_items.get(str(data["metadata"]["name"]))
        # Change an existing service in place, so that it keeps its file and its text.
        yield existing.with_data(data) if existing else _create_service_item(services.item, data, context)


def _create_service_item(owner: Item, data: dict[str, Any], context: FunctionContext) -> Item:
    template = parse_cached(_TEMPLATE)
    assert isinstance(template, YamlFile)
    return Item(
        context.package, _build_service_path(owner, data["metadata"], context), -1, data, base=template.documents[0]
    )


def _build_service(services: _ServiceSet, service: str) -> dict[str, Any]:
    item = services.item
    metadata: dict[str, Any] = {"name": f"{item.name}-{service.partition('.')[0]}"}
    metadata |= {"namespace": item.namespace} if item.namespace else {}
    copied = {key: text for key, text in read_string_map(item.annotations).items() if key != LOCAL_CONFIG}
    metadata["annotations"] = {_OWNER: services.owner, **_GENERATED_MARK, **copied}
    project = format_scalar(get_value_at(item.data, ("spec", "projectID"), "")) or ""
    reference = {"projectRef": {"external": project}} if project else {}
    return {**_SERVICE, "metadata": metadata, "spec": {"resourceID": service, **reference}}


def _build_service_path(owner: Item, metadata: dict[str, Any], context: FunctionContext) -> str:
    """Return the path of a generated service in the folder of its owner. The path is relative to `context.package`."""
    folder = dirname(owner.file.removeprefix(f"{context.package}/") if context.package else owner.file)
    folders = (folder, str(metadata.get("namespace", "")), f"service_{metadata['name']}.yaml")
    return "/".join(folder for folder in folders if folder)


def _report_changes(old_items: Sequence[Item], new_items: Sequence[Item]) -> Iterable[FunctionResult]:
    """Yield one result for each generated, changed or removed service. Services that already existed come first."""
    before, after = {item.name: item for item in old_items}, {item.name: item for item in new_items}
    for name, item in before.items():
        yield _create_service_result("recreated service" if name in after else "pruned service", after.get(name, item))
    yield from (_create_service_result("generated service", item) for name, item in after.items() if name not in before)


def _sort_key(result: FunctionResult) -> tuple[str, ...]:
    return tuple(reversed(result.resource or ()))


def _create_service_result(message: str, item: Item) -> FunctionResult:
    return FunctionResult(message, resource=(item.api_version, item.kind, item.namespace, item.name), file=item.file)


PROJECT_ID_SETTER = "project-id"
_ANNOTATION = ("metadata", "annotations", "cnrm.cloud.google.com/project-id")
_CONNECTOR = re2.compile(r"(\w+)\.cnrm\.cloud\.google\.com/\w+")
_APPLY_SETTERS = "gcr.io/kpt-fn/apply-setters:v0.1"
# In this version and later, set-project-id adds apply-setters v0.2 to pipelines instead of v0.1.
_NEW_SETTERS_VERSION = (0, 2, 0)
_NEW_APPLY_SETTERS = "gcr.io/kpt-fn/apply-setters:v0.2"
_MUTATORS = ("pipeline", "mutators")


@report_errors_as_failure
def set_project_id(items: Sequence[Item], config: FunctionConfig | None, context: FunctionContext) -> FunctionOutput:
    """Set the project ID as a setter in each Kptfile, and as an annotation on each Config Connector resource.

    A project ID that is already set does not change.
    """
    project = read_config_strings((config or {}).get("data"), "data").get(PROJECT_ID_SETTER, "")
    if not project:
        return create_failure(items, f"the configuration must be a ConfigMap with `data.{PROJECT_ID_SETTER}`")
    changed_items = _set_setters(items, project, context)
    if isinstance(changed_items, str):
        return create_failure(items, f"failed to set project-id setter: {changed_items}")
    return FunctionOutput(tuple(_add_project_annotation(item, project, context.budget) for item in changed_items))


def _add_project_annotation(item: Item, project: str, budget: FunctionBudget) -> Item:
    match = _CONNECTOR.fullmatch(item.api_version)
    # Skip the group `core`, because its resources configure Config Connector itself and belong to no project.
    if not match or match.group(1) == "core" or get_value_at(item.data, _ANNOTATION) is not None:
        return item
    return item.with_values(charge_values([(_ANNOTATION, project)], item, budget))


def _set_setters(items: Sequence[Item], project: str, context: FunctionContext) -> list[Item] | str:
    """Set the value of the project ID setter for every package in `items`. Return the items, or an error message."""
    changed_items = list(items)
    kptfiles = [number for number, item in enumerate(items) if item.kind == "Kptfile"]
    if not kptfiles:
        return "unable to find Kptfile: the function must receive the Kptfile of its package"
    for number in kptfiles:
        result = _set_setter(changed_items, changed_items[number], project, context)
        if isinstance(result, str):
            return f"error updating {changed_items[number].file}: {result}"
        changed_items = result
    return changed_items


def _set_setter(items: Sequence[Item], kptfile: Item, project: str, context: FunctionContext) -> list[Item] | str:
    """Set the project ID in the configuration of the pipeline function `apply-setters` of a package.

    The configuration is in the Kptfile, or in the file to which `configPath` in the Kptfile refers. Return the items,
    or an error message.
    """
    mutators = get_value_at(kptfile.data, _MUTATORS)
    entries = mutators if isinstance(mutators, list) else []
    for index, entry in enumerate(entries):
        if isinstance(entry, Mapping) and "apply-setters" in str(entry.get("image")):
            return _set_in_config(items, kptfile, index, entry, project, context)
    image = _APPLY_SETTERS if context.version < _NEW_SETTERS_VERSION else _NEW_APPLY_SETTERS
    apply_setters = {"image": image, "configMap": {PROJECT_ID_SETTER: project}}
    changed_kptfile = kptfile.with_values(
        charge_values([(_MUTATORS, [*entries, apply_setters])], kptfile, context.budget)
    )
    return [changed_kptfile if item is kptfile else item for item in items]


def _set_in_config(
    items: Sequence[Item],
    kptfile: Item,
    index: int,
    entry: Mapping[str, Any],
    project: str,
    context: FunctionContext,
) -> list[Item] | str:
    """Set the project ID in the configuration of one pipeline entry. Return the items, or an error message."""
    holder = kptfile
    path: DataPath = (*_MUTATORS, index, "configMap")
    if entry.get("configMap") is None:
        if not entry.get("configPath"):
            return "unable to find `ConfigMap` or `configPath` as the `functionConfig` for apply-setters"
        file = normpath(str(entry["configPath"]))
        # In the profile `compat`, resolve the path in the package whose pipeline runs, as kpt does. In `safe`, resolve
        # the path in the package of the Kptfile, which can be a subpackage.
        package = kptfile.package if context.profile == "safe" else context.package
        config_item = next((item for item in items if item.file == "/".join(filter(None, (package, file)))), None)
        if config_item is None:
            return f'file {file} doesn\'t exist, please ensure the file specified in "configPath" exists and retry'
        holder, path = config_item, ("data",)
    if get_value_at(holder.data, (*path, PROJECT_ID_SETTER)):
        return list(items)
    changed_item = holder.with_values(charge_values([((*path, PROJECT_ID_SETTER), project)], holder, context.budget))
    return [changed_item if item is holder else item for item in items]


_CONSTRAINTS = "constraints.gatekeeper.sh/v1beta1"
_FIELD = ("spec", "enforcementAction")
_ACTIONS = ("deny", "warn", "dryrun")


@report_errors_as_failure
def set_enforcement_action(
    items: Sequence[Item], config: FunctionConfig | None, context: FunctionContext
) -> FunctionOutput:
    """Set the enforcement action of every Gatekeeper constraint."""
    data = read_config_strings((config or {}).get("data"), "data")
    if list(data) != ["enforcementAction"]:
        return create_failure(items, _format_error("expecting exactly 1 enforcementAction as part of the ConfigMap"))
    action = data["enforcementAction"]
    if action not in _ACTIONS:
        expected = f"{', '.join(f'[{allowed_action}]' for allowed_action in _ACTIONS[:-1])} or [{_ACTIONS[-1]}]"
        return create_failure(
            items, _format_error(f'expected values for enforcementAction are {expected}, not "{action}"')
        )
    constraints = {item: None for item in items if item.api_version == _CONSTRAINTS and _has_enforcement_action(item)}
    if not constraints:
        return FunctionOutput(tuple(items), (FunctionResult(f"Found no policy to set to [{action}]", "warning"),))
    results = [FunctionResult(f"Policy name: [{item.name}]", file=item.file) for item in constraints]
    changed_items = tuple(item.with_values([(_FIELD, action)]) if item in constraints else item for item in items)
    return FunctionOutput(
        changed_items, (FunctionResult(f"Number of policies set to [{action}]: {len(constraints)}"), *results)
    )


def _has_enforcement_action(item: Item) -> bool:
    spec = get_value_at(item.data, ("spec",))
    return spec is None or isinstance(spec, dict)


def _format_error(reason: str) -> str:
    return f"failed to process policies: {reason}"
