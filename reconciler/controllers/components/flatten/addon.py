"""Addon that is included in a flattened definition: its conditions, fixed fields, and checks of its expressions."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any, Final

from reconciler.cel import ExpressionBudget
from reconciler.controllers.components.codes import ComponentCodes
from reconciler.controllers.components.component_plan import AddonUse
from reconciler.controllers.components.definitions import AddonPatch, ObjectTemplate
from reconciler.controllers.components.effective_values import EffectiveValues
from reconciler.controllers.components.field_findings import FieldFinding, build_field_finding
from reconciler.controllers.components.flatten.expressions import (
    AddonVariable,
    ExpressionRewriter,
    iter_programs,
    select_declared_accesses,
)
from reconciler.controllers.components.flatten.fields import (
    FixedFields,
    find_fixed_fields,
    remove_fixed_fields,
    restrict_to_section,
)
from reconciler.controllers.components.names import derive_addon_key
from reconciler.controllers.components.schema.openapi import Schema
from reconciler.controllers.components.templates.template import CompiledTemplate
from reconciler.krm.field_text import quote_value
from reconciler.krm.yaml import DataPath
from reconciler.lazy_dataclasses import dataclass

RENDER_VARIABLES: Final = ("target", "resources", "addon")
"""Variables that templates of addons can use, but templates of component definitions cannot."""


@dataclass(frozen=True, eq=False)
class FlattenedAddon:
    """Platform addon that is included in a flattened definition.

    `values` contains the defaults of the addon and the values that the component type sets, without overrides of
    environments.
    """

    use: AddonUse
    values: EffectiveValues
    budget: ExpressionBudget

    @cached_property
    def key(self) -> str | None:
        """Name of the component field for the values of the addon, e.g. `logLevel`. None if there is no valid name."""
        return derive_addon_key(self.qualified_name)

    @property
    def qualified_name(self) -> str:
        """Name of the addon, and the instance id if the type sets an id, e.g. `scratch-disk-cache`."""
        instance = self.use.instance
        return f"{instance.addon}-{instance.id}" if self.use.has_instance_id else instance.addon

    @property
    def known_variables(self) -> dict[str, Any]:
        """Variables whose values are known before a render, except `spec`, `parameters` and `envOverrides`."""
        return {"instanceId": self.use.instance.id}

    @cached_property
    def bindings(self) -> dict[str, Any]:
        """The values of variables before a render, to evaluate conditions, patch targets and patch paths."""
        return {**self.values.bindings, **self.known_variables}

    @cached_property
    def fixed_fields(self) -> FixedFields:
        """Fields of the addon whose values become literals in the flattened definition.

        These are the fields that the component type sets, and the fields that conditions, patch targets, patch paths
        and loops of patches use.
        """
        used_paths = {
            path
            for template, loop in self._list_placement_templates()
            for path in self._list_used_fields(template, loop)
        }
        return find_fixed_fields(self.use.schema, self.use.config, used_paths)

    @cached_property
    def rewriter(self) -> ExpressionRewriter:
        """Rewriter for the expressions in the templates of the addon."""
        schema = self.use.addon.schema
        schemas = {"spec": schema.full, "parameters": schema.parameters, "envOverrides": schema.env_overrides}
        variables = {
            name: AddonVariable(
                name,
                self.key or "",
                schema,
                restrict_to_section(schema, self.fixed_fields),
                self.values.bindings[name],
                self.use.config,
            )
            for name, schema in schemas.items()
        }
        return ExpressionRewriter(variables, self.known_variables, self.budget)

    @cached_property
    def is_active(self) -> bool:
        """Whether the condition of the addon is true.

        Raises:
            FieldFindingError: The evaluation of the condition failed.
        """
        return self.use.addon.condition.is_met(self.bindings, self.budget)

    @property
    def active_patches(self) -> Iterator[AddonPatch]:
        """All patches of the addon that have a true condition.

        Raises:
            FieldFindingError: The evaluation of a condition failed.
        """
        yield from (patch for patch in self.use.addon.patches if patch.condition.is_met(self.bindings, self.budget))

    def check_expressions(self) -> Iterator[FieldFinding]:
        """Yield an error for each expression that prevents the flattening of the addon.

        Each error contains the name of the variable that is the cause. The variable has no value before a render, or it
        is not available in templates of component definitions.
        """
        addon = self.use.addon
        findings = tuple(self._check_known_variables(addon.condition.template, ""))
        yield from findings
        if findings or not self.is_active:
            return
        for entry in addon.creates:
            yield from (finding for template in iter_templates(entry) for finding in _check_render_variables(template))
        for patch in addon.patches:
            yield from (
                finding
                for operation in patch.operations
                if operation.value
                for finding in _check_render_variables(operation.value)
            )
            findings = tuple(self._check_known_variables(patch.condition.template, ""))
            yield from findings
            if not findings and patch.condition.is_met(self.bindings, self.budget):
                yield from (
                    finding
                    for template in _list_patch_templates(patch)
                    for finding in self._check_known_variables(*template)
                )

    def check_rules(self) -> Iterator[FieldFinding]:
        """Yield an error for each validation rule that fails or that cannot be evaluated before a render."""
        for rule in self.use.addon.rules:
            path = (*rule.path, "expression")
            if rule.program and not self.rewriter.rewrite_expression(rule.program, path)[1]:
                text = quote_value(rule.program.text)
                message = (
                    "must only use fields that the type sets, because definitions cannot contain rules; found the"
                    f" expression {text}"
                )
                yield build_field_finding(ComponentCodes.NOT_BAKEABLE, path, message)
            elif failure := rule.check(self.bindings, self.budget):
                yield failure

    def get_remaining_fields(self, section: Schema) -> Schema | None:
        """Return the schema of `parameters` or `envOverrides` without the fields that become literals.

        Return None if no field remains.
        """
        return remove_fixed_fields(section, self.fixed_fields)

    def _list_placement_templates(self) -> Iterator[tuple[CompiledTemplate, str]]:
        """Yield the conditions of the addon, and the templates that determine where its patches apply.

        Each template comes with the name of its loop variable, or with "" outside of a loop.
        """
        yield self.use.addon.condition.template, ""
        if self.is_active:
            yield from ((patch.condition.template, "") for patch in self.use.addon.patches)
            yield from (item for patch in self.active_patches for item in _list_patch_templates(patch))

    def _list_used_fields(self, template: CompiledTemplate, loop: str) -> Iterator[DataPath]:
        for _, program in iter_programs(template.root):
            for reference in program.references:
                if reference.name in self.values.bindings and reference.name != loop:
                    yield tuple(access.name for access in select_declared_accesses(reference, self.use.schema))

    def _check_known_variables(self, template: CompiledTemplate, loop: str) -> Iterator[FieldFinding]:
        for path, program in iter_programs(template.root):
            for name in sorted(program.names - self.bindings.keys() - {loop}):
                message = (
                    f'must not use the variable "{name}", because its value is unknown before a render; found'
                    f" the expression {quote_value(program.text)}"
                )
                yield build_field_finding(ComponentCodes.NOT_BAKEABLE, path, message)


def iter_templates(entry: ObjectTemplate) -> Iterator[CompiledTemplate]:
    """Yield the templates of a resource entry: `includeWhen`, `forEach` and the resource itself."""
    yield from (template for template in (entry.include_when.template, entry.loop.template, entry.template) if template)


def _list_patch_templates(patch: AddonPatch) -> Iterator[tuple[CompiledTemplate, str]]:
    """Yield the templates that determine where a patch applies: its `forEach`, its target and its paths.

    Each template comes with the name of its loop variable, or with "" outside of a loop.
    """
    variable = ""
    if patch.loop.template:
        yield patch.loop.template, ""
        variable = patch.loop.variable
    yield patch.target, variable
    yield from ((operation.path, variable) for operation in patch.operations if operation.path)


def _check_render_variables(template: CompiledTemplate) -> Iterator[FieldFinding]:
    """Yield an error for each expression with a variable that component definitions do not have, e.g. `resources`."""
    for path, program in iter_programs(template.root):
        for name in RENDER_VARIABLES:
            if name in program.names:
                message = (
                    f'must not use the variable "{name}", because this variable does not exist in definitions; found'
                    f" the expression {quote_value(program.text)}"
                )
                yield build_field_finding(ComponentCodes.NOT_BAKEABLE, path, message)
