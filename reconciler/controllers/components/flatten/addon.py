"""One addon during flattening: its known values, its fixed fields, and the reasons why it cannot be flattened."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from reconciler.cel import ExpressionBudget
from reconciler.controllers.components.codes import NOT_FLATTENABLE
from reconciler.controllers.components.component_plan import AddonUse
from reconciler.controllers.components.definitions import AddonPatch, ObjectTemplate
from reconciler.controllers.components.effective_values import EffectiveValues
from reconciler.controllers.components.field_findings import FieldFinding, build_field_finding
from reconciler.controllers.components.flatten.expressions import (
    AddonVariable,
    ExpressionRewriter,
    iter_programs,
    parse_field_steps,
)
from reconciler.controllers.components.flatten.fields import (
    FixedFields,
    find_fixed_fields,
    remove_fixed_fields,
    restrict_to_section,
)
from reconciler.controllers.components.model import derive_addon_key
from reconciler.controllers.components.schema import Schema
from reconciler.controllers.components.templates import CompiledTemplate
from reconciler.controllers.validation import quote_value
from reconciler.krm.yaml import DataPath

RENDER_VARIABLES: Final = ("target", "resources", "addon")
"""Variables of addons that component definitions do not have."""


@dataclass(frozen=True, eq=False)
class FlattenedAddon:
    """Addon that is flattened, with its values before any environment overrides them."""

    use: AddonUse
    values: EffectiveValues
    budget: ExpressionBudget

    @cached_property
    def key(self) -> str | None:
        """Field that contains the remaining values, or None if the name does not form a valid key."""
        return derive_addon_key(self.qualified_name)

    @property
    def qualified_name(self) -> str:
        """Name of the addon, with the instance id if it is set explicitly."""
        instance = self.use.instance
        return f"{instance.addon}-{instance.id}" if self.use.has_instance_id else instance.addon

    @property
    def known_variables(self) -> dict[str, Any]:
        """Known variables except for the values."""
        return {"instanceId": self.use.instance.id}

    @cached_property
    def bindings(self) -> dict[str, Any]:
        """Variable bindings for the templates that determine where the addon applies."""
        return {**self.values.bindings, **self.known_variables}

    @cached_property
    def fixed_fields(self) -> FixedFields:
        """Fixed fields: those that the type sets, and those that determine where the addon applies."""
        used_paths = {
            path
            for template, loop in self._list_placement_templates()
            for path in self._list_used_fields(template, loop)
        }
        return find_fixed_fields(self.use.schema, self.use.config, used_paths)

    @cached_property
    def rewriter(self) -> ExpressionRewriter:
        """Rewriter for the templates of the addon."""
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
            FieldFindingError: The condition failed.
        """
        return self.use.addon.condition.is_met(self.bindings, self.budget)

    @property
    def active_patches(self) -> Iterator[AddonPatch]:
        """Patches whose condition is true.

        Raises:
            FieldFindingError: A condition failed.
        """
        yield from (patch for patch in self.use.addon.patches if patch.condition.is_met(self.bindings, self.budget))

    def check_expressions(self) -> Iterator[FieldFinding]:
        """Yield an error for each expression that uses values which only a render has."""
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
        """Yield the rules that are not met, or that use values which are not fixed."""
        for rule in self.use.addon.rules:
            path = (*rule.path, "expression")
            if rule.program and not self.rewriter.rewrite_expression(rule.program, path)[1]:
                message = (
                    f"must only use fixed values, because a definition has no rules: {quote_value(rule.program.text)}"
                )
                yield build_field_finding(NOT_FLATTENABLE, path, message)
            elif failure := rule.check(self.bindings, self.budget):
                yield failure

    def get_remaining_fields(self, section: Schema) -> Schema | None:
        """Return the fields of a section that are not fixed."""
        return remove_fixed_fields(section, self.fixed_fields)

    def _list_placement_templates(self) -> Iterator[tuple[CompiledTemplate, str]]:
        """Yield the templates that determine where the addon applies, with their loop variable or ""."""
        yield self.use.addon.condition.template, ""
        if self.is_active:
            yield from ((patch.condition.template, "") for patch in self.use.addon.patches)
            yield from (item for patch in self.active_patches for item in _list_patch_templates(patch))

    def _list_used_fields(self, template: CompiledTemplate, loop: str) -> Iterator[DataPath]:
        for _, program in iter_programs(template.root):
            for position, name in program.variable_positions:
                if name in self.values.bindings and name != loop:
                    steps = parse_field_steps(program.text, position + len(name), self.use.schema)
                    yield tuple(step.name for step in steps)

    def _check_known_variables(self, template: CompiledTemplate, loop: str) -> Iterator[FieldFinding]:
        for path, program in iter_programs(template.root):
            for name in sorted(program.names - self.bindings.keys() - {loop}):
                message = f"must be known before a render, but {name} is not: {quote_value(program.text)}"
                yield build_field_finding(NOT_FLATTENABLE, path, message)


def iter_templates(entry: ObjectTemplate) -> Iterator[CompiledTemplate]:
    """Yield the templates of an entry."""
    yield from (template for template in (entry.include_when.template, entry.loop.template, entry.template) if template)


def _list_patch_templates(patch: AddonPatch) -> Iterator[tuple[CompiledTemplate, str]]:
    """Yield the templates that determine where a patch applies, with their loop variable or ""."""
    variable = ""
    if patch.loop.template:
        yield patch.loop.template, ""
        variable = patch.loop.variable
    yield patch.target, variable
    yield from ((operation.path, variable) for operation in patch.operations if operation.path)


def _check_render_variables(template: CompiledTemplate) -> Iterator[FieldFinding]:
    """Yield an error for each expression that uses a variable which definitions do not have."""
    for path, program in iter_programs(template.root):
        for name in RENDER_VARIABLES:
            if name in program.names:
                message = f"must not use {name}, which only a render has: {quote_value(program.text)}"
                yield build_field_finding(NOT_FLATTENABLE, path, message)
