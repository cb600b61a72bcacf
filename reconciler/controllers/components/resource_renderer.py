"""Rendering of the resources of one component: first the component definition, then one addon after another."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from typing import Any

from reconciler.catalog.catalog import ConfigObject
from reconciler.cel import OMIT, ExpressionBudget
from reconciler.controllers.components.codes import ComponentCodes
from reconciler.controllers.components.component_plan import AddonUse, ComponentPlan
from reconciler.controllers.components.definitions import AddonPatch, CompiledOperation, ObjectTemplate
from reconciler.controllers.components.effective_values import EffectiveValues
from reconciler.controllers.components.field_findings import FieldFinding, FieldFindingError, build_field_finding
from reconciler.controllers.components.model import AddonInstance
from reconciler.controllers.components.patching.budget import PatchBudget
from reconciler.controllers.components.patching.operations import Write
from reconciler.controllers.components.patching.targets import (
    PatchTarget,
    estimate_match_cost,
    is_target_match,
    read_patch_target,
)
from reconciler.controllers.components.patching.writers import IsOrdered, WriteTracker
from reconciler.controllers.components.templates.directives import TemplateLoop
from reconciler.controllers.components.templates.nodes import ValueOrigin
from reconciler.controllers.resource_findings import ResourceIssue
from reconciler.krm.field_text import format_path, quote_value
from reconciler.krm.findings import Finding
from reconciler.krm.objects import ObjectKey, split_api_version
from reconciler.krm.yaml import DataPath
from reconciler.lazy_dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class ResourceChange:
    """One change of a rendered resource: its creation, or one write of a patch operation.

    Attributes:
        manifest: Component definition or addon that contains the template or the patch.
        instance: Addon instance that made the change. None for the component definition.
        path: Path of the template or the patch operation in `manifest`.
        write: Change that the patch operation made. None for the creation.
        origins: Maps the path of a value in the rendered template to the expression that set the value.
        loop: `forEach` of the template or the patch.
    """

    manifest: ConfigObject
    instance: AddonInstance | None
    path: DataPath
    write: Write | None = None
    origins: Mapping[DataPath, ValueOrigin] = field(default_factory=dict)
    loop: TemplateLoop | None = None


@dataclass(eq=False)
class RenderedResource:
    """One resource of a component. Patches change `data` in place.

    `original` is a copy of `data` before the first patch. It is empty if no patch was applied.
    """

    id: str
    data: dict[str, Any]
    write_tracker: WriteTracker
    created_by: AddonInstance | None
    changes: list[ResourceChange]
    original: dict[str, Any] = field(default_factory=dict)
    _key: ObjectKey | None = None

    def begin_change(self) -> None:
        """Prepare a change of `data`: save the original data before the first change, and clear the cached `key`."""
        self._key = None
        if not self.original:
            self.original = deepcopy(self.data)

    @property
    def key(self) -> ObjectKey:
        """Group, kind, namespace and name of the resource."""
        if self._key is None:
            self._key = _build_key(self.data)
        return self._key


def _build_key(data: Mapping[str, Any]) -> ObjectKey:
    metadata = data.get("metadata")
    metadata_fields = metadata if isinstance(metadata, dict) else {}
    group, _ = split_api_version(str(data.get("apiVersion")))
    return ObjectKey(
        group, str(data.get("kind")), str(metadata_fields.get("namespace", "")), str(metadata_fields.get("name"))
    )


def describe_creators(first: RenderedResource, second: RenderedResource) -> str:
    """Return a text that names the template entries of two resources with the same group, kind, namespace and name."""
    first_text, second_text = (
        f"the resource {quote_value(resource.id)} of {_describe_creator(resource)}" for resource in (first, second)
    )
    return f"two iterations of {first_text}" if first_text == second_text else f"{first_text} and {second_text}"


def _describe_creator(resource: RenderedResource) -> str:
    return f'the addon "{resource.created_by}"' if resource.created_by else "the definition"


def sort_resources(resources: list[RenderedResource]) -> Iterator[RenderedResource]:
    """Yield the resources sorted by kind, API version, namespace and name."""

    def sort_key(resource: RenderedResource) -> tuple[str, ...]:
        return resource.key.kind, resource.data["apiVersion"], resource.key.namespace, resource.key.name

    yield from sorted(resources, key=sort_key)


VariableBindings = Mapping[str, Any]


class ComponentRenderError(Exception):
    """A template or patch failed during the render of a component."""

    def __init__(self, manifest: ConfigObject, field_finding: FieldFinding, instance: AddonInstance | None) -> None:
        super().__init__(field_finding.message)
        self.manifest = manifest
        self.field_finding = field_finding
        self.instance = instance


@dataclass
class ResourceRenderer:
    """Renders the resources of one component, and collects findings about the resources."""

    bindings: VariableBindings
    budget: ExpressionBudget
    is_ordered: IsOrdered
    resources: list[RenderedResource] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    patch_budget: PatchBudget = field(default_factory=PatchBudget)
    _resources_by_key: dict[ObjectKey, RenderedResource] = field(default_factory=dict)

    def render_definition(self, plan: ComponentPlan) -> None:
        """Render the resources of the component definition."""
        manifest = plan.definition.manifest
        with attribute_errors(manifest, None):
            for entry in plan.definition.resources:
                self._create(entry, entry.id, self.bindings, manifest, None)

    def build_bindings(self, use: AddonUse, values: EffectiveValues) -> VariableBindings:
        """Return the template variables of an addon. `resources` contains copies of the current resources."""
        instance = use.instance
        bindings = {
            **self.bindings, **values.bindings,
            "instanceId": instance.id, "addon": {"name": instance.addon, "instanceId": instance.id},
        }  # fmt: skip
        if "resources" in use.addon.variables:
            with attribute_errors(use.addon.manifest, instance):
                bindings["resources"] = [
                    self.patch_budget.copy_for_expressions(resource.data, ("spec",)) for resource in self.resources
                ]
        return bindings

    def is_active(self, use: AddonUse, bindings: VariableBindings) -> bool:
        """Return whether the condition in the component type and the condition of the addon are both true."""
        with attribute_errors(use.declared_by, use.instance):
            if use.condition and not use.condition.is_met(self.bindings, self.budget):
                return False
        with attribute_errors(use.addon.manifest, use.instance):
            return use.addon.condition.is_met(bindings, self.budget)

    def apply_addon(self, use: AddonUse, bindings: VariableBindings) -> None:
        """Create the resources of an addon, and then apply its patches."""
        addon, instance = use.addon, use.instance
        with attribute_errors(addon.manifest, instance):
            for index, entry in enumerate(addon.creates):
                name = entry.id or f"{instance.addon}-{instance.id}-{index}"
                self._create(entry, name, bindings, addon.manifest, instance)
            for patch in addon.patches:
                self._patch(patch, bindings, addon.manifest, instance)

    def _create(
        self,
        entry: ObjectTemplate,
        name: str,
        bindings: VariableBindings,
        manifest: ConfigObject,
        instance: AddonInstance | None,
    ) -> None:
        """Create the resources of a template entry. If the entry has a `forEach`, create one resource for each item."""
        if not entry.include_when.is_met(bindings, self.budget):
            return
        for loop_bindings in entry.loop.iter_bindings(bindings, self.budget):
            data, origins = entry.template.render_with_origins(loop_bindings, self.budget)
            if data is OMIT:
                continue
            change = ResourceChange(manifest, instance, entry.template.path, origins=origins, loop=entry.loop)
            resource = RenderedResource(name, data, WriteTracker(self.is_ordered, instance), instance, [change])
            other = self._resources_by_key.get(resource.key)
            # Compare the keys again, because a patch can have renamed the other resource after its creation.
            if other and other.key == resource.key:
                message = (
                    f"must not create {resource.key} again; the object is created by"
                    f" {describe_creators(other, resource)}"
                )
                raise FieldFindingError(build_field_finding(ComponentCodes.OBJECT_DUPLICATE, entry.path, message))
            self._resources_by_key[resource.key] = resource
            self.resources.append(resource)

    def _patch(
        self, patch: AddonPatch, bindings: VariableBindings, manifest: ConfigObject, instance: AddonInstance
    ) -> None:
        if not patch.condition.is_met(bindings, self.budget):
            return
        has_match = False
        iterations = 0
        for loop_bindings in patch.loop.iter_bindings(bindings, self.budget):
            iterations += 1
            target = _render_target(patch, loop_bindings, self.budget)
            for resource in self._select_resources(target, patch.target.path):
                has_match = True
                for operation in patch.operations:
                    self._write(operation, patch, resource, loop_bindings, manifest, instance)
        if iterations and not has_match:
            target_path = format_path(patch.target.path)
            message = f'the patch of the addon "{instance}" has no effect, because {target_path} matches no resource'
            self.findings.append(
                ComponentCodes.PATCH_TARGET_NOT_FOUND.finding(message, manifest.location_of((*patch.path, "target")))
            )

    def _select_resources(self, target: PatchTarget, field_path: DataPath) -> list[RenderedResource]:
        self.patch_budget.charge_reads(
            sum(estimate_match_cost(target, resource.data) for resource in self.resources), field_path
        )
        return [resource for resource in self.resources if is_target_match(target, resource.data, resource.id)]

    def _write(
        self,
        compiled: CompiledOperation,
        patch: AddonPatch,
        resource: RenderedResource,
        loop_bindings: VariableBindings,
        manifest: ConfigObject,
        instance: AddonInstance,
    ) -> None:
        field_path = compiled.operation.field_path
        target_binding = (
            {"target": self.patch_budget.copy_for_expressions(resource.data, field_path)}
            if "target" in compiled.variables
            else {}
        )
        bindings = {**loop_bindings, **target_binding}
        path = compiled.path.render(bindings, self.budget) if compiled.path else None
        value, origins = _render_value(compiled, bindings, self.budget)
        operation = compiled.operation.render(value, path)
        resource.begin_change()
        result = resource.write_tracker.apply_patch(
            resource.data, operation, instance, self.patch_budget, skip_missing=patch.should_skip_missing
        )
        resource.changes += (
            ResourceChange(manifest, instance, compiled.operation.field_path, write, origins, patch.loop)
            for write in result.writes
        )
        self.findings += (
            _build_note_finding(note, resource, manifest, compiled.operation.field_path) for note in result.notes
        )


@contextmanager
def attribute_errors(manifest: ConfigObject, instance: AddonInstance | None) -> Iterator[None]:
    """Convert a FieldFindingError to a ComponentRenderError that contains the object with the failed template."""
    try:
        yield
    except FieldFindingError as error:
        raise ComponentRenderError(manifest, error.field_finding, instance) from None


def _render_value(
    compiled: CompiledOperation, bindings: VariableBindings, budget: ExpressionBudget
) -> tuple[Any, Mapping[DataPath, ValueOrigin]]:
    return compiled.value.render_with_origins(bindings, budget) if compiled.value else (compiled.operation.value, {})


def _render_target(patch: AddonPatch, bindings: VariableBindings, budget: ExpressionBudget) -> PatchTarget:
    target = read_patch_target(patch.target.render(bindings, budget), patch.target.path)
    if not isinstance(target, PatchTarget):
        raise FieldFindingError(target[0])
    return target


def _build_note_finding(
    note: ResourceIssue, resource: RenderedResource, manifest: ConfigObject, path: DataPath
) -> Finding:
    """Return a finding for an issue that a patch operation found in a resource.

    `manifest` contains the patch operation, and `path` is its path.
    """
    return note.code.finding(f"in {resource.key}, {note.message}", manifest.location_of(path))
