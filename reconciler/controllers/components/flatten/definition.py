"""Flattening of a component type into a component definition that needs no platform addons.

- Some fields of an addon become literals in the new definition: the fields that the component type sets, and the fields
  that conditions, targets, paths and loops of patches use. Environments can no longer override these fields. All other
  fields remain in `parameters` or `envOverrides`, below the key of the addon.
- Flattening evaluates the conditions, targets, paths and loops of patches. If the component type sets a condition for
  an addon, this condition must not use variables. An addon whose condition is false is omitted.
- Flattening checks the validation rules of an addon, because a definition cannot contain rules. The rules must only use
  fields that become literals.
- Developer addons are not flattened. However, flattening changes the effect of their `add` operations on a map or list
  that a platform addon set: without flattening, the new value is merged into the map or list. After flattening, it
  replaces the map or list. A developer addon cannot require a flattened addon.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from typing import Any

from reconciler.api.openchoreo import API_VERSION, ID_DESCRIPTION, ID_PATTERN
from reconciler.catalog.catalog import ConfigObject
from reconciler.cel import OMIT, ExpressionBudget, ExpressionLimits
from reconciler.cel.inspection import find_field_path
from reconciler.controllers.components.addon_order import is_order_declared
from reconciler.controllers.components.codes import ComponentCodes
from reconciler.controllers.components.compilation import find_missing_requirements
from reconciler.controllers.components.component_plan import AddonUse, ComponentPlan
from reconciler.controllers.components.definitions import (
    AddonPatch,
    CompiledOperation,
    ObjectTemplate,
    read_component_definition,
)
from reconciler.controllers.components.effective_values import ValueLayer, compute_effective_values
from reconciler.controllers.components.field_findings import FieldFinding, FieldFindingError, build_field_finding
from reconciler.controllers.components.flatten.addon import FlattenedAddon, iter_templates
from reconciler.controllers.components.flatten.expressions import (
    ExpressionRewriter,
    iter_programs,
    select_declared_accesses,
)
from reconciler.controllers.components.flatten.fields import ShorthandWriter
from reconciler.controllers.components.flatten.patches import (
    find_single_expression,
    is_patch_target,
    require_static_result,
)
from reconciler.controllers.components.model import AddonInstance
from reconciler.controllers.components.names import DEFINITION, GROUP, explain_invalid_addon_key
from reconciler.controllers.components.patching.budget import PatchBudget
from reconciler.controllers.components.patching.targets import PatchTarget, read_patch_target
from reconciler.controllers.components.patching.writers import WriteTracker
from reconciler.controllers.nested_values import get_value
from reconciler.krm.field_text import format_path, quote_value
from reconciler.krm.findings import Finding, select_errors
from reconciler.krm.objects import ObjectKey
from reconciler.krm.yaml import DataPath, Document, YamlError
from reconciler.lazy_dataclasses import dataclass, field, replace

COMPOSED_FROM_LABEL = "composedFrom"
COMPOSED_FROM, ADDONS = "platform/composed-from", "platform/addons"
_SPEC, _PARAMETERS, _ENV_OVERRIDES = "spec", "parameters", "envOverrides"
_SECTIONS = (_PARAMETERS, _ENV_OVERRIDES)
_SCHEMA, _TYPES, _REQUIRED = "schema", "types", "requiredByDefault"


def flatten_component_type(
    plan: ComponentPlan, name: str, limits: ExpressionLimits
) -> dict[str, Any] | tuple[Finding, ...]:
    """Return the flattened definition `name` of a component type. Return findings if the type cannot be flattened.

    A component can use the flattened definition instead of its component type. It then renders to the same files if it
    meets two conditions:

    - It sets the values of an addon below the key of the addon.
    - It sets no field that the component type sets.

    The findings refer to locations in the component type.
    """
    flattener = _Flattener(plan, name, limits, ExpressionBudget(limits))
    try:
        return flattener.flatten()
    except _FlattenError as error:
        return error.findings


class _FlattenError(Exception):
    """The component type cannot be flattened. `findings` contains the reasons."""

    def __init__(self, *findings: Finding) -> None:
        super().__init__(findings)
        self.findings = findings


_SCALAR_TYPES = frozenset({"string", "integer", "number", "boolean"})


@dataclass(eq=False)
class _PartialResource:
    """Resource of the flattened definition.

    `template` is the field that patches change. `entry` contains the other fields of the resource, e.g. `forEach`.
    """

    entry: dict[str, Any]
    template: Any
    write_tracker: WriteTracker
    created_by: str

    @property
    def id(self) -> str:
        """Id of the resource, with which patch targets can select the resource."""
        return str(self.entry["id"])

    @property
    def resource(self) -> dict[str, Any]:
        """Complete entry of the resource for the new definition."""
        return {**self.entry, "template": self.template}


@dataclass(eq=False)
class _Flattener:
    """Flattens one component type."""

    plan: ComponentPlan
    name: str
    limits: ExpressionLimits
    budget: ExpressionBudget
    resources: list[_PartialResource] = field(default_factory=list)
    patch_budget: PatchBudget = field(default_factory=PatchBudget)
    fields: dict[str, Any] = field(default_factory=dict)
    """JSON Schemas of the fields of the new definition. The fields of an addon are below the key of the addon."""

    def flatten(self) -> dict[str, Any]:
        addons = self._list_active_addons()
        self.fields |= self.plan.definition.schema.full["properties"]
        self.fields |= {addon.key: addon.use.addon.schema.full for addon in addons if addon.key}
        schema = self._build_schema([addon for addon in addons if addon.fixed_fields.has_open_fields])
        self._add_definition_resources(schema)
        for addon in addons:
            with self._attribute_errors(addon.use):
                self._add_created_resources(addon)
                self._apply_patches(addon)
        return self._validate(self._build_definition(addons, schema))

    def _list_active_addons(self) -> list[FlattenedAddon]:
        """Return the active platform addons.

        Raises:
            _FlattenError: At least one addon cannot be flattened. The error contains the findings of all addons.
        """
        active: list[FlattenedAddon] = []
        findings: list[Finding] = []
        for use in self.plan.platform_uses:
            try:
                active += self._evaluate_addon(use)
            except _FlattenError as error:
                findings += error.findings
        uses = [addon.use for addon in active]
        findings += find_missing_requirements(uses, {use.instance.addon for use in uses})
        if findings:
            raise _FlattenError(*findings)
        return active

    def _evaluate_addon(self, use: AddonUse) -> list[FlattenedAddon]:
        """Return a list that contains only the addon. Return an empty list if the addon is inactive.

        Raises:
            _FlattenError: The addon cannot be flattened.
        """
        layer = ValueLayer("platform", use.declared_by, use.config_path, use.config)
        addon = FlattenedAddon(use, compute_effective_values((layer,), use.schema, use.addon.schema), self.budget)
        with self._attribute_errors(use):
            is_selected = self._is_selected(use)
            findings = (tuple(addon.check_expressions()) if is_selected else ()) or tuple(addon.check_rules())
            if findings:
                raise _FlattenError(*(self._build_addon_finding(finding, use) for finding in findings))
            return [addon] if is_selected and addon.is_active else []

    def _is_selected(self, use: AddonUse) -> bool:
        if use.condition is None:
            return True
        for path, program in iter_programs(use.condition.template.root):
            if program.names:
                reason = "because their values are unknown when the type is flattened"
                message = f"must not use variables, {reason}; found the expression {quote_value(program.text)}"
                raise _FlattenError(
                    ComponentCodes.NOT_BAKEABLE.finding(
                        f"{format_path(path)} {message}", use.declared_by.location_of(path)
                    )
                )
        return use.condition.is_met({}, self.budget)

    def _build_schema(self, addons: list[FlattenedAddon]) -> dict[str, Any]:
        """Return the schema of the original definition, with additional fields for the addons.

        Fields of addons that become literals are not added.
        """
        new_schema = deepcopy(self.plan.definition.manifest.data["spec"].get(_SCHEMA) or {})
        findings = [finding for addon in addons for finding in self._check_key(addon, addons)]
        if findings:
            raise _FlattenError(*findings)
        writer = ShorthandWriter(
            dict(new_schema.get(_TYPES) or {}), required_by_default=new_schema.get(_REQUIRED) is True
        )
        for addon in addons:
            schema, key = addon.use.addon.schema, addon.key or ""
            for section, section_schema in zip(_SECTIONS, (schema.parameters, schema.env_overrides), strict=True):
                if remaining := addon.get_remaining_fields(section_schema):
                    new_schema[section] = {**(new_schema.get(section) or {}), key: writer.write_fields(remaining, key)}
        if writer.types:
            new_schema[_TYPES] = {**(new_schema.get(_TYPES) or {}), **writer.types}
        return new_schema

    def _check_key(self, addon: FlattenedAddon, addons: list[FlattenedAddon]) -> Iterator[Finding]:
        use, key = addon.use, addon.key
        location = use.declared_by.location_of((*use.path, "name"))
        other_instances = [other.use.instance for other in addons if other.key == key and other is not addon]
        if key is None:
            message = explain_invalid_addon_key(addon.qualified_name)
            yield ComponentCodes.ADDON_KEY_INVALID.finding(message, location)
        elif key in self.plan.definition.schema.full["properties"] or other_instances:
            owner = (
                f'the key of the addon instance "{other_instances[0]}"'
                if other_instances
                else "a field of the component definition"
            )
            message = (
                f'the addon instance "{use.instance}" has the key "{key}", which is also {owner}; keys must be unique'
            )
            yield ComponentCodes.ADDON_KEY_COLLISION.finding(message, location)

    def _add_definition_resources(self, schema: Mapping[str, Any]) -> None:
        """Add the resources of the original definition to the new definition.

        The expressions of these resources must name single fields, e.g. `spec.port`, because the whole value of `spec`
        would also contain the fields of the flattened addons.
        """
        definition = self.plan.definition
        for entry in definition.resources:
            self._require_named_fields(entry, schema)
            data = dict(get_value(definition.manifest.data, entry.path))
            template = deepcopy(data.pop("template"))
            self.resources.append(
                _PartialResource(data, template, self._build_write_tracker(None), str(definition.manifest.key))
            )

    def _require_named_fields(self, entry: ObjectTemplate, schema: Mapping[str, Any]) -> None:
        original = self.plan.definition.schema
        schemas = {_PARAMETERS: original.parameters, _ENV_OVERRIDES: original.env_overrides}
        extended = {
            name: section_schema
            for name, section_schema in schemas.items()
            if len(schema.get(name) or {}) > len(section_schema["properties"])
        }
        variables = {**extended, **({_SPEC: original.full} if extended else {})}
        for path, program in (
            entry_program for template in iter_templates(entry) for entry_program in iter_programs(template.root)
        ):
            for reference in program.references:
                schema_of_variable = variables.get(reference.name)
                if schema_of_variable and not [*select_declared_accesses(reference, schema_of_variable)]:
                    text = quote_value(program.text)
                    requirement = "must refer to single fields, such as spec.port"
                    message = (
                        f"{requirement}, because addons add fields to the same object; found the expression {text}"
                    )
                    raise _FlattenError(
                        self._build_finding(
                            build_field_finding(ComponentCodes.NOT_BAKEABLE, path, message),
                            self.plan.definition.manifest,
                            (),
                        )
                    )

    def _add_created_resources(self, addon: FlattenedAddon) -> None:
        """Add the resources that an addon creates."""
        instance, rewriter = addon.use.instance, addon.rewriter
        for index, entry in enumerate(addon.use.addon.creates):
            name = entry.id or f"{instance.addon}-{instance.id}-{index}"
            if not ID_PATTERN.fullmatch(name):
                raise FieldFindingError(
                    build_field_finding(
                        ComponentCodes.NOT_BAKEABLE,
                        (*entry.path, "id"),
                        f"must be {ID_DESCRIPTION}, but is {quote_value(name)}",
                    )
                )
            for other in self.resources:
                if other.id == name:
                    message = f"must be unique, but {other.created_by} also uses {quote_value(name)}"
                    raise FieldFindingError(
                        build_field_finding(ComponentCodes.NOT_BAKEABLE, (*entry.path, "id"), message)
                    )
            new_entry = _build_entry(name, entry, rewriter)
            if new_entry is not None:
                template = rewriter.rewrite_template(entry.template.root)
                self.resources.append(
                    _PartialResource(new_entry, template, self._build_write_tracker(instance), str(instance))
                )

    def _apply_patches(self, addon: FlattenedAddon) -> None:
        for patch in addon.active_patches:
            for loop_bindings in patch.loop.iter_bindings(addon.bindings, self.budget):
                target = read_patch_target(patch.target.render(loop_bindings, self.budget), patch.target.path)
                if not isinstance(target, PatchTarget):
                    raise FieldFindingError(target[0])
                known = {name: loop_bindings[name] for name in loop_bindings.keys() - addon.values.bindings.keys()}
                rewriter = replace(addon.rewriter, known_variables=known)
                matches = [
                    resource
                    for resource in self.resources
                    if is_patch_target(target, resource.template, resource.id, patch.target.path)
                ]
                for resource in matches:
                    for operation in patch.operations:
                        self._apply_operation(operation, patch, resource, loop_bindings, rewriter, addon.use.instance)

    def _apply_operation(
        self,
        compiled: CompiledOperation,
        patch: AddonPatch,
        resource: _PartialResource,
        loop_bindings: Mapping[str, Any],
        rewriter: ExpressionRewriter,
        instance: AddonInstance,
    ) -> None:
        path = compiled.path.render(loop_bindings, self.budget) if compiled.path else None
        value = rewriter.rewrite_template(compiled.value.root) if compiled.value else compiled.operation.value
        operation = compiled.operation.render(value, path)
        if value is not OMIT:
            require_static_result(
                resource.template,
                operation,
                resource.write_tracker,
                instance,
                self.patch_budget,
                self._is_scalar,
                skip_missing=patch.should_skip_missing,
            )
        resource.write_tracker.apply_patch(
            resource.template, operation, instance, self.patch_budget, skip_missing=patch.should_skip_missing
        )

    def _is_scalar(self, text: str) -> bool:
        """Return whether an expression is only a field path, e.g. `spec.port`, and the type of the field is scalar."""
        expression = find_single_expression(text)
        variable, *names = (find_field_path(expression) if expression else ()) or ("",)
        node: Any = {"properties": self.fields} if variable in (_SPEC, *_SECTIONS) else {}
        for name in names:
            node = (node.get("properties") or {}).get(name) or {}
        return node.get("type") in _SCALAR_TYPES and not node.get("x-kubernetes-int-or-string")

    def _build_definition(self, addons: list[FlattenedAddon], schema: dict[str, Any]) -> dict[str, Any]:
        source = self.plan.definition.manifest
        instances = ",".join(str(addon.use.instance) for addon in addons)
        metadata = {
            "name": self.name,
            "labels": {COMPOSED_FROM_LABEL: source.key.name},
            "annotations": {COMPOSED_FROM: source.key.name, ADDONS: instances},
        }
        resources = [resource.resource for resource in self.resources]
        spec = {**({_SCHEMA: schema} if schema else {}), "resources": resources}
        return {"apiVersion": API_VERSION, "kind": DEFINITION, "metadata": metadata, "spec": spec}

    def _validate(self, data: dict[str, Any]) -> dict[str, Any]:
        """Return the definition.

        Raises:
            _FlattenError: The definition is not valid, e.g. because an expression or schema exceeds a limit.
        """
        try:
            document = Document.from_data(data)
        except YamlError as error:
            raise _FlattenError(self._build_unusable_finding(str(error))) from None
        key = ObjectKey(GROUP, DEFINITION, "", self.name)
        _, findings = read_component_definition(ConfigObject(key, API_VERSION, "", document), self.limits)
        if found_errors := select_errors(findings):
            raise _FlattenError(*(self._build_unusable_finding(finding.message) for finding in found_errors))
        return data

    def _build_unusable_finding(self, reason: str) -> Finding:
        return ComponentCodes.NOT_BAKEABLE.finding(
            f'the flattened definition "{self.name}" is not valid: {reason}', self.plan.manifest.location
        )

    def _build_write_tracker(self, creator: AddonInstance | None) -> WriteTracker:
        constraints = self.plan.order_constraints
        return WriteTracker(lambda first, second: is_order_declared(first, second, constraints), creator)

    @contextmanager
    def _attribute_errors(self, use: AddonUse) -> Iterator[None]:
        """Convert a FieldFindingError to a _FlattenError with the location of the addon's entry in the type."""
        try:
            yield
        except FieldFindingError as error:
            raise _FlattenError(self._build_addon_finding(error.field_finding, use)) from None

    def _build_addon_finding(self, finding: FieldFinding, use: AddonUse) -> Finding:
        return self._build_finding(finding, use.addon.manifest, use.path)

    def _build_finding(self, finding: FieldFinding, manifest: ConfigObject, path: DataPath) -> Finding:
        """Return an error at `path` of the component type. The cause is `finding` in the object `manifest`."""
        return ComponentCodes.NOT_BAKEABLE.finding(
            f'{manifest.key} prevents the generation of the definition "{self.name}": {finding.message}',
            self.plan.manifest.location_of(path),
        )


def _build_entry(name: str, entry: ObjectTemplate, rewriter: ExpressionRewriter) -> dict[str, Any] | None:
    """Return the fields `id`, `includeWhen`, `forEach` and `var` of a resource that an addon creates.

    Return None if `includeWhen` is always false.
    """
    new_entry: dict[str, Any] = {"id": name}
    include_when = rewriter.rewrite_template(entry.include_when.template.root)
    if include_when is False:
        return None
    if include_when is not True:
        new_entry["includeWhen"] = include_when
    if entry.loop.template:
        new_entry |= {"forEach": rewriter.rewrite_template(entry.loop.template.root), "var": entry.loop.variable}
    return new_entry
