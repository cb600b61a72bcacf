"""Compilation of all component types of a config to their kinds and their files for the status branch."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from typing import Any

from reconciler.api.openchoreo import API_VERSION
from reconciler.catalog.catalog import Catalog, ConfigObject
from reconciler.controllers.components.codes import ComponentCodes
from reconciler.controllers.components.compilation import CompilationResult, compile_component_type
from reconciler.controllers.components.component_plan import AddonUse, ComponentPlan
from reconciler.controllers.components.definition_index import (
    DefinitionIndex,
    build_definition_index,
    build_duplicate_findings,
    group_by_name,
)
from reconciler.controllers.components.definitions import read_addon, read_component_definition
from reconciler.controllers.components.flatten.definition import flatten_component_type
from reconciler.controllers.components.inputs import ComponentCache, ComponentControllerInputs
from reconciler.controllers.components.model import ComponentType, read_component_type
from reconciler.controllers.components.names import GROUP, KINDS, TYPE, derive_kind
from reconciler.controllers.components.schema.crd import build_crd
from reconciler.controllers.components.schema.openapi import build_json_schema
from reconciler.krm.findings import Finding, select_errors
from reconciler.krm.json_text import compute_digest
from reconciler.krm.yaml import WIDE_INDENT_STYLE, emit
from reconciler.lazy_dataclasses import dataclass, replace

TYPES_FOLDER = "types"
DEFINITION_FILE = "definition.yaml"


def build_type_files(plan: ComponentPlan, group: str) -> Mapping[str, bytes]:
    """Return the files that a ready component type generates on the status branch, by file name."""
    schema = json.dumps(build_json_schema(plan.schema), indent=2, ensure_ascii=False) + "\n"
    return {
        "crd.yaml": emit(build_crd(plan.kind, group, plan.schema), WIDE_INDENT_STYLE).encode(),
        "plan.yaml": emit(build_plan_data(plan), WIDE_INDENT_STYLE).encode(),
        "schema.json": schema.encode(),
    }


def build_plan_data(plan: ComponentPlan) -> dict[str, Any]:
    """Return the content of the file plan.yaml: the addons in execution order, with their digests and values."""
    definition = plan.definition.manifest
    return {
        "componentType": plan.manifest.key.name,
        "kind": plan.kind,
        "definition": {
            "name": definition.key.name, "version": plan.definition.version,
            "digest": compute_digest(definition.data["spec"]),
        },
        "platformAddons": [
            {**_build_platform_addon_data(use), "config": use.values.data} for use in plan.platform_uses
        ],
        "developerAddons": [_build_developer_addon_data(use) for use in plan.allowed_uses.values()],
    }  # fmt: skip


def build_type_status_fields(plan: ComponentPlan) -> dict[str, Any]:
    """Return the fields of the status of a ready component type."""
    return {
        "generatedCRD": {"apiVersion": API_VERSION, "kind": plan.kind},
        "appliedPlatformAddons": [_build_platform_addon_data(use) for use in plan.platform_uses],
        "developerAddons": [_build_developer_addon_data(use) for use in plan.allowed_uses.values()],
    }


def _build_platform_addon_data(use: AddonUse) -> dict[str, Any]:
    addon = use.addon
    return {"name": addon.name, "instanceId": use.instance.id, "version": addon.version, "digest": addon.digest}


def _build_developer_addon_data(use: AddonUse) -> dict[str, Any]:
    addon = use.addon
    return {"name": addon.name, "key": use.key, "version": addon.version, "digest": addon.digest}


@dataclass(frozen=True, eq=False)
class ComponentTypeResult:
    """Component type, the kind that the component type generates, and the result of the compilation.

    `kind` is "" if the name of the component type does not form a valid kind. `model` is None if the object is invalid.
    """

    manifest: ConfigObject
    kind: str
    compilation: CompilationResult
    model: ComponentType | None = None

    @property
    def not_ready_reason(self) -> str:
        """Messages of the errors that prevent the use of the component type, joined with "; "."""
        return "; ".join(error.message for error in select_errors(self.compilation.findings))


def compile_component_types(
    catalog: Catalog, index: DefinitionIndex, inputs: ComponentControllerInputs, cache: ComponentCache
) -> tuple[ComponentTypeResult, ...]:
    """Compile all component types of a config. The results are sorted by name."""
    objects_by_name = group_by_name(catalog, GROUP, TYPE)
    objects_by_kind: dict[str, list[ConfigObject]] = {}
    for name, objects in objects_by_name.items():
        objects_by_kind.setdefault(derive_kind(name) or "", []).extend(objects)
    results = []
    for name, objects in objects_by_name.items():
        kind = derive_kind(name) or ""
        duplicate_findings = build_duplicate_findings(objects) if len(objects) > 1 else [None]
        # If several objects have the same kind, namespace and name, return one result, because they share one status.
        for manifest, duplicate in {
            manifest.key: (manifest, finding) for manifest, finding in zip(objects, duplicate_findings, strict=True)
        }.values():
            error = _check_kind(manifest, kind, objects_by_kind[kind], inputs) or duplicate
            results.append(_compile_type(manifest, kind, error, index, inputs, cache))
    return tuple(results)


def _compile_type(
    manifest: ConfigObject,
    kind: str,
    error: Finding | None,
    index: DefinitionIndex,
    inputs: ComponentControllerInputs,
    cache: ComponentCache,
) -> ComponentTypeResult:
    component_type, type_findings = cache.read(read_component_type, manifest)
    if component_type is None or error:
        return ComponentTypeResult(
            manifest, kind, CompilationResult(None, (*type_findings, *([error] if error else ()))), component_type
        )
    # Compile the type again if its definition or one of its addons has changed.
    compilation = cache.get_or_create(
        (component_type, *index.list_used(component_type.definition, component_type.addon_names)),
        lambda: _compile_with_files(component_type, kind, index, inputs),
    )
    return ComponentTypeResult(
        manifest,
        kind,
        replace(compilation, findings=(*type_findings, *compilation.findings, *compilation.flatten_findings)),
        component_type,
    )


def _compile_with_files(
    component_type: ComponentType, kind: str, index: DefinitionIndex, inputs: ComponentControllerInputs
) -> CompilationResult:
    """Compile a component type. Add the generated files and, if the type requests it, the flattened definition."""
    compilation = compile_component_type(component_type, kind, index, inputs.cel_limits)
    if compilation.plan is None:
        return compilation
    files = build_type_files(compilation.plan, inputs.crd_group)
    flattened = (
        flatten_component_type(compilation.plan, component_type.flattened_name, inputs.cel_limits)
        if component_type.flattened_name
        else ()
    )
    if isinstance(flattened, dict):
        return replace(compilation, files={**files, DEFINITION_FILE: emit(flattened, WIDE_INDENT_STYLE).encode()})
    return replace(compilation, files=files, flatten_findings=flattened)


def _check_kind(
    manifest: ConfigObject, kind: str, objects: list[ConfigObject], inputs: ComponentControllerInputs
) -> Finding | None:
    """Return an error if `kind` is invalid, reserved or not unique. Otherwise, return None."""
    location = manifest.location_of(("metadata", "name"))
    if not kind:
        message = (
            "metadata.name must form a kind of at most 63 letters and digits that begins with a letter,"
            f' but is "{manifest.key.name}"'
        )
        return ComponentCodes.COMPONENT_TYPE_INVALID.finding(message, location)
    if kind in KINDS or kind in inputs.reserved_kinds:
        message = f'metadata.name generates the kind "{kind}", which is reserved; choose a different name'
        return ComponentCodes.GENERATED_KIND_RESERVED.finding(message, location)
    if len({other.key.name for other in objects}) > 1:
        names = " and ".join(sorted({str(other.key) for other in objects}))
        return ComponentCodes.GENERATED_KIND_COLLISION.finding(
            f'{names} generate the same kind "{kind}"; rename one of these types', location
        )
    return None


def index_by_kind(types: tuple[ComponentTypeResult, ...]) -> Mapping[str, ComponentTypeResult]:
    """Return the component types by the kind that they generate. Ready component types never share a kind."""
    return {result.kind: result for result in types if result.kind}


@dataclass(frozen=True)
class GeneratedKind:
    """Kind that a component type generates. `schema` is the JSON Schema of the field `spec`."""

    name: str
    component_type: str
    schema: Mapping[str, Any]


def list_generated_kinds(
    catalog: Catalog, inputs: ComponentControllerInputs
) -> tuple[tuple[GeneratedKind, ...], tuple[Finding, ...]]:
    """Return the kinds of all ready component types, and the errors of the component types that are not ready."""
    limits = inputs.cel_limits
    index = build_definition_index(
        catalog, partial(read_component_definition, limits=limits), partial(read_addon, limits=limits)
    )
    types = compile_component_types(catalog, index, inputs, ComponentCache())
    plans = [result.compilation.plan for result in types if result.compilation.plan]
    kinds = tuple(GeneratedKind(plan.kind, plan.manifest.key.name, build_json_schema(plan.schema)) for plan in plans)
    type_findings = (
        finding for result in types if result.compilation.plan is None for finding in result.compilation.findings
    )
    return kinds, tuple(select_errors((*index.findings, *type_findings)))
