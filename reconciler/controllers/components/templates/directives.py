"""Fields that control how templates are rendered: conditions, loops and validation rules."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from reconciler.api.openchoreo import LOOP_VARIABLE
from reconciler.cel import OMIT, CelEnvironment, CelProgram, ExpressionBudget, ExpressionError
from reconciler.cel.errors import CelCodes
from reconciler.controllers.components.codes import ComponentCodes
from reconciler.controllers.components.field_findings import FieldFinding, FieldFindingError, build_field_finding
from reconciler.controllers.components.template_syntax import render_literal
from reconciler.controllers.components.templates.expressions import charge_budget, evaluate_expression
from reconciler.controllers.components.templates.nodes import (
    ExpressionNode,
    StaticNode,
    TemplateListNode,
    TemplateMapNode,
    ValueOrigin,
)
from reconciler.controllers.components.templates.template import (
    RESERVED_VARIABLES,
    CompiledTemplate,
    TemplateScope,
    compile_expression,
    compile_template,
)
from reconciler.krm.field_text import describe_value, format_path, quote_list, quote_value
from reconciler.krm.findings import FindingCode
from reconciler.krm.yaml import DataPath
from reconciler.lazy_dataclasses import dataclass


@dataclass(frozen=True, eq=False)
class TemplateCondition:
    """Compiled `condition` or `includeWhen` of a template. `field_findings` contains the errors of the compilation."""

    template: CompiledTemplate
    field_findings: tuple[FieldFinding, ...]

    @property
    def variables(self) -> frozenset[str]:
        """Names of the variables that the condition uses."""
        return self.template.variables

    def is_met(self, bindings: Mapping[str, Any], budget: ExpressionBudget) -> bool:
        """Return whether the condition is true.

        Raises:
            FieldFindingError: The evaluation failed, or its result is not a boolean.
        """
        if self.field_findings:
            raise FieldFindingError(self.field_findings[0])
        value = self.template.render(bindings, budget)
        if isinstance(value, bool):
            return value
        raise FieldFindingError(
            _build_result_finding(ComponentCodes.CONDITION_TYPE, self.template.path, _BOOLEAN, value)
        )


def compile_condition(data: Any, path: DataPath, scope: TemplateScope) -> TemplateCondition:
    """Compile the condition at `path`. If `data` is None, the condition is always true."""
    template = compile_template(True if data is None else data, path, scope)
    field_findings = template.field_findings
    if not field_findings and not _can_be_bool(template):
        field_findings = (_build_result_finding(ComponentCodes.CONDITION_TYPE, path, _BOOLEAN, data),)
    return TemplateCondition(template, field_findings)


def _can_be_bool(template: CompiledTemplate) -> bool:
    match template.root:
        case StaticNode(value=value):
            return isinstance(value, bool)
        case root:
            return isinstance(root, ExpressionNode)


def _build_result_finding(code: FindingCode, path: DataPath, requirement: str, value: Any) -> FieldFinding:
    text = "omit()" if value is OMIT else describe_value(value)
    return build_field_finding(code, path, f"must be {requirement}, but is {text}")


_BOOLEAN = "true, false, or an expression that returns one of them"
_ITEMS = "a list, a map, or an expression that returns one of them"
_ITERATION_BYTES: Final = 256
"""Bytes that each loop iteration subtracts from the budget of a render."""

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


@dataclass(frozen=True, eq=False)
class TemplateLoop:
    """Compiled `forEach`. If `template` is None, `forEach` is not set, and the content is rendered once.

    `scope` contains the variables for templates inside of the loop.
    """

    variable: str
    scope: TemplateScope
    template: CompiledTemplate | None
    field_findings: tuple[FieldFinding, ...] = ()

    @property
    def variables(self) -> frozenset[str]:
        """Names of the variables that the `forEach` expression uses."""
        return self.template.variables if self.template else frozenset()

    @property
    def origin(self) -> ValueOrigin | None:
        """Origin of the loop items. None if `forEach` is not a single expression."""
        root = self.template.root if self.template else None
        return ValueOrigin(root.path, root.text, root.reads) if isinstance(root, ExpressionNode) else None

    def iter_bindings(self, bindings: Mapping[str, Any], budget: ExpressionBudget) -> Iterator[Mapping[str, Any]]:
        """Yield the values of all variables for each iteration of the loop.

        If the loop iterates over a map, each item has the fields `key` and `value`, and the items are sorted by key.

        Raises:
            FieldFindingError: The evaluation of `forEach` failed, or its result is not a list or map.
        """
        if self.field_findings:
            raise FieldFindingError(self.field_findings[0])
        if self.template is None:
            yield bindings
            return
        items = self._render_items(self.template, bindings, budget)
        for item in items:
            charge_budget(budget, 1, _ITERATION_BYTES, self.template.path)
            yield {**bindings, self.variable: item}

    def _render_items(
        self, template: CompiledTemplate, bindings: Mapping[str, Any], budget: ExpressionBudget
    ) -> list[Any]:
        value = template.render(bindings, budget)
        match value:
            case list():
                return value
            case dict():
                return [{"key": key, "value": value[key]} for key in sorted(value)]
            case _:
                raise FieldFindingError(
                    _build_result_finding(ComponentCodes.FOR_EACH_TYPE, template.path, _ITEMS, value)
                )


def compile_loop(for_each: Any, variable: Any, path: DataPath, scope: TemplateScope) -> TemplateLoop:
    """Compile the loop of the entry at `path` from the values of its fields `forEach` and `var`."""
    if for_each is None:
        return TemplateLoop(LOOP_VARIABLE, scope, None)
    name = LOOP_VARIABLE if variable is None else variable
    field_findings = _check_variable_name(name, (*path, "var"))
    template = compile_template(for_each, (*path, "forEach"), scope)
    if not template.field_findings and not _can_have_items(template):
        field_findings = (
            _build_result_finding(ComponentCodes.FOR_EACH_TYPE, template.path, _ITEMS, for_each),
            *field_findings,
        )
    # Return a scope for an invalid loop as well, so that the errors inside of the loop are reported in the same pass.
    return TemplateLoop(
        str(name), scope.with_variable(str(name)), template, (*template.field_findings, *field_findings)
    )


def _check_variable_name(name: Any, path: DataPath) -> tuple[FieldFinding, ...]:
    if isinstance(name, str) and name in RESERVED_VARIABLES:
        reserved = quote_list(sorted(RESERVED_VARIABLES))
        message = f"must not be a reserved name, but is {quote_value(name)}; reserved names: {reserved}"
        return (build_field_finding(ComponentCodes.LOOP_VAR_RESERVED, path, message),)
    if not isinstance(name, str) or not _is_valid_name(name):
        requirement = "must be a name of letters, digits and _, and not a reserved word of CEL"
        message = f"{requirement}, but is {quote_value(name)}"
        return (build_field_finding(CelCodes.CEL_SYNTAX, path, message),)
    return ()


def _is_valid_name(name: str) -> bool:
    try:
        program = CelEnvironment({name: None}).compile(name)
    except ExpressionError:
        return False
    return _IDENTIFIER.fullmatch(name) is not None and name in program.names


def _can_have_items(template: CompiledTemplate) -> bool:
    match template.root:
        case StaticNode(value=value):
            return isinstance(value, list | dict)
        case root:
            return isinstance(root, ExpressionNode | TemplateListNode | TemplateMapNode)


@dataclass(frozen=True, eq=False)
class CompiledRule:
    """Compiled validation rule of an addon or component type.

    `program` is a CEL expression that is written without `${}`. `message` is a template.
    """

    name: str
    path: DataPath
    program: CelProgram | None
    message: CompiledTemplate
    field_findings: tuple[FieldFinding, ...]

    @property
    def variables(self) -> frozenset[str]:
        """Names of the variables that the expression and the message use."""
        return self.message.variables | (self.program.names if self.program else frozenset())

    def check(self, bindings: Mapping[str, Any], budget: ExpressionBudget) -> FieldFinding | None:
        """Return a finding if the rule fails or cannot be evaluated. Return None if the rule is met."""
        if self.program is None:
            return self.field_findings[0]
        path = (*self.path, "expression")
        try:
            value = evaluate_expression(self.program, bindings, budget, path)
        except FieldFindingError as error:
            return self._build_failure(bindings, budget, error.field_finding.message)
        if value is True:
            return None
        requirement = f"{quote_value(self.program.text)} must return true or false"
        return self._build_failure(
            bindings, budget, "" if value is False else f"{requirement}, but returns {describe_value(value)}"
        )

    def _build_failure(self, bindings: Mapping[str, Any], budget: ExpressionBudget, details: str) -> FieldFinding:
        assert self.program is not None
        name = f" {quote_value(self.name)}" if self.name else ""
        message = self._render_message(bindings, budget)
        if not message and not details:
            message = f"{quote_value(self.program.text)} must be true"
        return FieldFinding(
            ComponentCodes.VALIDATION_RULE_FAILED,
            self.path,
            f"the rule{name} at {format_path(self.path)} is not met: {'; '.join(filter(None, (message, details)))}",
        )

    def _render_message(self, bindings: Mapping[str, Any], budget: ExpressionBudget) -> str:
        try:
            message = self.message.render(bindings, budget)
        except FieldFindingError as error:
            return f"its message cannot be shown, because {error.field_finding.message}"
        return "" if message is None or message is OMIT else render_literal(message)


def compile_rule(name: str, expression: str, message: str, path: DataPath, scope: TemplateScope) -> CompiledRule:
    """Compile the validation rule at `path`. `expression` and `message` are fields of the rule."""
    message_template = compile_template(message, (*path, "message"), scope)
    try:
        program = compile_expression(expression, (*path, "expression"), scope)
    except FieldFindingError as error:
        return CompiledRule(name, path, None, message_template, (error.field_finding, *message_template.field_findings))
    return CompiledRule(name, path, program, message_template, message_template.field_findings)
