"""Compilation of templates, and the variables that templates can use."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cached_property
from typing import Any, Final

from reconciler.api.openchoreo import EXPRESSION_START
from reconciler.cel import CelEnvironment, CelProgram, ExpressionBudget, ExpressionError, ExpressionLimits
from reconciler.cel.errors import CelCodes
from reconciler.controllers.components.codes import ComponentCodes
from reconciler.controllers.components.field_findings import FieldFinding, FieldFindingError, build_field_finding
from reconciler.controllers.components.templates.expressions import EmbeddedExpression, charge_budget, split_expressions
from reconciler.controllers.components.templates.nodes import (
    ExpressionNode,
    InterpolatedNode,
    RenderState,
    StaticNode,
    TemplateListNode,
    TemplateMapEntry,
    TemplateMapNode,
    TemplateNode,
    ValueOrigin,
)
from reconciler.krm.field_text import quote_value
from reconciler.krm.yaml import DataPath
from reconciler.lazy_dataclasses import dataclass, field, replace

COMPONENT_VARIABLES: Final = ("metadata", "spec", "parameters", "envOverrides", "build", "workload", "env")
"""Names of the variables that templates in component definitions can use."""

ADDON_VARIABLES: Final = (*COMPONENT_VARIABLES, "instanceId", "addon", "resources")
"""Names of the variables that addons can use outside of patch operations."""

PATCH_VARIABLES: Final = (*ADDON_VARIABLES, "target")
"""Names of the variables that patch operations can use."""

RESERVED_VARIABLES: Final = frozenset({*PATCH_VARIABLES, "component"})
"""Names that a loop variable must not have.

`component` is reserved, although this variable does not exist. Templates cannot read the component, because an addon
must not depend on its component.
"""

ValueShape = Mapping[str, Any] | None
"""Known fields of a value, by name. None means that any field can exist. {} means that no field exists."""

_SCALAR_SHAPE: Final[ValueShape] = {}
_FIXED_SHAPES: Final[Mapping[str, ValueShape]] = {
    "metadata": {"name": _SCALAR_SHAPE, "namespace": _SCALAR_SHAPE, "labels": None, "annotations": None},
    "instanceId": _SCALAR_SHAPE,
    "addon": {"name": _SCALAR_SHAPE, "instanceId": _SCALAR_SHAPE},
    "resources": _SCALAR_SHAPE,
}
_DEFAULT_LIMITS: Final = ExpressionLimits()
_MAX_SHAPE_DEPTH: Final = 16
"""Maximum nesting depth at which the compilation checks the names of fields in expressions."""


@dataclass(frozen=True, eq=False)
class TemplateScope:
    """Variables that a template can use, with their known fields, and the limits of expressions."""

    shapes: Mapping[str, ValueShape]
    limits: ExpressionLimits = _DEFAULT_LIMITS

    @cached_property
    def environment(self) -> CelEnvironment:
        """CEL environment in which the expressions are compiled."""
        return CelEnvironment(self.shapes, openchoreo_functions=True, limits=self.limits)

    def with_variable(self, variable: str) -> TemplateScope:
        """Return a scope that also contains a loop variable. The loop variable can have any fields."""
        return replace(self, shapes={**self.shapes, variable: None})


def build_scope(
    variables: tuple[str, ...],
    spec: Mapping[str, Any],
    parameters: Mapping[str, Any],
    env_overrides: Mapping[str, Any],
    limits: ExpressionLimits = _DEFAULT_LIMITS,
) -> TemplateScope:
    """Return a scope with these variables.

    `spec`, `parameters` and `env_overrides` are OpenAPI schemas of the variables with these names.
    """
    schemas = {"spec": spec, "parameters": parameters, "envOverrides": env_overrides}
    shapes = {**_FIXED_SHAPES, **{name: build_shape(schema) for name, schema in schemas.items()}}
    return TemplateScope({name: shapes.get(name) for name in variables}, limits)


def build_shape(schema: Mapping[str, Any], depth: int = 0) -> ValueShape:
    """Return the fields that an OpenAPI schema declares. Return None if any field is allowed, as in a map."""
    schema_type = schema.get("type")
    if schema_type is None or depth == _MAX_SHAPE_DEPTH:
        return None
    if schema_type != "object":
        return _SCALAR_SHAPE
    if "additionalProperties" in schema or schema.get("x-kubernetes-preserve-unknown-fields"):
        return None
    return {name: build_shape(field, depth + 1) for name, field in schema.get("properties", {}).items()}


MAX_EXPRESSIONS: Final = 4096
"""Maximum number of expressions in one template, because the budget of a render does not limit the compilation."""

MAX_TEMPLATE_DEPTH: Final = 128
"""Maximum number of nested lists and maps in a template."""

_NODE_BYTES: Final = 64
"""Bytes that each node subtracts from the budget of a render. This is about the size of a map entry."""

# Matches shell expansions such as `${HOME:-/root}`. The error message explains how to write them as text.
_SHELL_EXPANSION = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(:?[-=+?#%/^,@].*)?", re.DOTALL)
_UNQUOTED_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\s*:")
_CODES_WITH_HINT: Final = frozenset({"CelUndeclared", "CelSyntax"})


@dataclass(frozen=True, eq=False)
class CompiledTemplate:
    """Compiled template. A template with errors cannot be rendered.

    Attributes:
        steps: Number of steps that one render subtracts from its budget, in addition to the expressions.
        size: Number of bytes that one render subtracts from its budget, in addition to the results of expressions.
    """

    path: DataPath
    field_findings: tuple[FieldFinding, ...]
    variables: frozenset[str]
    root: TemplateNode
    steps: int
    size: int

    @property
    def is_static(self) -> bool:
        """Whether the template contains no expression."""
        return isinstance(self.root, StaticNode)

    def render(self, bindings: Mapping[str, Any], budget: ExpressionBudget) -> Any:
        """Return the rendered value, or `OMIT`. `bindings` contains the values of the variables.

        Raises:
            FieldFindingError: The render failed. The error contains the path of the failed expression in the document.
        """
        return self._render(RenderState(bindings, budget))

    def render_with_origins(
        self, bindings: Mapping[str, Any], budget: ExpressionBudget
    ) -> tuple[Any, Mapping[DataPath, ValueOrigin]]:
        """Return the rendered value, and a mapping from the path of each part of the value to its origin.

        If an expression returns a list or map, the mapping contains one origin for the whole list or map.
        """
        origins: dict[DataPath, ValueOrigin] = {}
        return self._render(RenderState(bindings, budget, origins)), origins

    def _render(self, state: RenderState) -> Any:
        if self.field_findings:
            raise FieldFindingError(self.field_findings[0])
        charge_budget(state.budget, self.steps, self.size, self.path)
        return self.root.render(state, ())


def compile_template(data: Any, path: DataPath, scope: TemplateScope) -> CompiledTemplate:
    """Compile the template at `path` of a document, and collect all errors."""
    compiler = _Compiler(scope)
    root = compiler.compile_node(data, path, 0)
    return CompiledTemplate(
        path, tuple(compiler.findings), frozenset(compiler.names), root, compiler.steps, compiler.size
    )


def compile_expression(text: str, path: DataPath, scope: TemplateScope) -> CelProgram:
    """Compile a CEL expression.

    Raises:
        FieldFindingError: The expression is not valid.
    """
    try:
        return scope.environment.compile(text)
    except ExpressionError as error:
        reason = f"{error}{_build_hint(error)}"
        message = f"has the expression {quote_value(text)}, which is not valid: {reason}"
        raise FieldFindingError(build_field_finding(CelCodes.by_name[error.code], path, message)) from None


def _build_hint(error: ExpressionError) -> str:
    """Return a hint if the error is one of two frequent errors: a map key without quotes, or a shell expansion."""
    if error.code not in _CODES_WITH_HINT:
        return ""
    lines = error.expression.split("\n")
    before = "\n".join((*lines[: error.line - 1], lines[error.line - 1][: error.column - 1]))
    after = error.expression[len(before) :]
    if _UNQUOTED_KEY.match(after) and before.rstrip().endswith(("{", ",")):
        return "; write string keys in quotes"
    if _SHELL_EXPANSION.fullmatch(error.expression):
        return f'; to write {EXPRESSION_START}…}} as text, use {EXPRESSION_START}"{EXPRESSION_START}…}}"}}'
    return ""


@dataclass
class _Compiler:
    """Compiles one template, and collects the errors."""

    scope: TemplateScope
    findings: list[FieldFinding] = field(default_factory=list)
    names: set[str] = field(default_factory=set)
    expressions: int = 0
    steps: int = 0
    size: int = 0

    def compile_node(self, data: Any, path: DataPath, depth: int) -> TemplateNode:
        self.steps += 1
        self.size += _NODE_BYTES
        match data:
            case str():
                return self._compile_text(data, path)
            case dict() | list() if depth == MAX_TEMPLATE_DEPTH:
                return self._reject_depth(path)
            case dict():
                entries = tuple(self._compile_entry(key, value, (*path, key), depth + 1) for key, value in data.items())
                is_static = all(isinstance(entry.key, str) and isinstance(entry.value, StaticNode) for entry in entries)
                return StaticNode(data) if is_static else TemplateMapNode(entries)
            case list():
                items = tuple(self.compile_node(item, (*path, index), depth + 1) for index, item in enumerate(data))
                return (
                    StaticNode(data) if all(isinstance(item, StaticNode) for item in items) else TemplateListNode(items)
                )
            case _:
                return StaticNode(data)

    def _compile_entry(self, key: Any, value: Any, path: DataPath, depth: int) -> TemplateMapEntry:
        node = self.compile_node(value, path, depth)
        if not isinstance(key, str):
            message = f"must have strings as keys, but has the key {quote_value(key)}; put the key in quotes"
            self.findings.append(build_field_finding(ComponentCodes.TEMPLATE_KEY_TYPE, path, message))
            return TemplateMapEntry(path, str(key), node)
        key_node = self._compile_text(key, path)
        return TemplateMapEntry(path, key if isinstance(key_node, StaticNode) else key_node, node)

    def _compile_text(self, text: str, path: DataPath) -> StaticNode | ExpressionNode | InterpolatedNode:
        self.size += 4 * len(text)
        try:
            pieces = (
                tuple(self._compile_piece(piece, path) for piece in split_expressions(text, path))
                if EXPRESSION_START in text
                else ()
            )
        except FieldFindingError as error:
            self.findings.append(error.field_finding)
            return StaticNode(text)
        if not any(isinstance(piece, CelProgram) for piece in pieces):
            return StaticNode(text)
        match [piece for piece in pieces if not isinstance(piece, str) or not piece.isspace()]:
            case [CelProgram() as program]:
                return ExpressionNode(path, text.strip(), program)
            case _:
                return InterpolatedNode(path, text, pieces)

    def _compile_piece(self, piece: str | EmbeddedExpression, path: DataPath) -> str | CelProgram:
        if isinstance(piece, str):
            return piece
        self.expressions += 1
        if self.expressions > MAX_EXPRESSIONS + 1:
            return piece.text
        if self.expressions > MAX_EXPRESSIONS:
            message = f"exceeds the limit of {MAX_EXPRESSIONS} expressions in a template"
            raise FieldFindingError(build_field_finding(CelCodes.CEL_BUDGET, path, message))
        program = compile_expression(piece.text, path, self.scope)
        self.names |= program.names
        return program

    def _reject_depth(self, path: DataPath) -> StaticNode:
        message = f"must not be nested more than {MAX_TEMPLATE_DEPTH} levels deep"
        self.findings.append(build_field_finding(CelCodes.CEL_TOO_DEEP, path, message))
        return StaticNode(None)
