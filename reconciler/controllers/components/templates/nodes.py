"""Nodes of a compiled template. Each node has a method `render`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from reconciler.cel import OMIT, CelProgram, ExpressionBudget
from reconciler.controllers.components.codes import ComponentCodes
from reconciler.controllers.components.field_findings import FieldFindingError, build_field_finding
from reconciler.controllers.components.template_syntax import render_literal
from reconciler.controllers.components.templates.expressions import charge_budget, evaluate_expression
from reconciler.krm.field_text import describe_value, quote_value
from reconciler.krm.findings import FindingCode
from reconciler.krm.yaml import DataPath
from reconciler.lazy_dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class ValueOrigin:
    """Origin of a rendered value: the path and the text of the template that rendered the value.

    `reads` contains the fields of variables that the expressions read, e.g. `("spec", "size")` for `spec.size`.
    """

    path: DataPath
    text: str
    reads: frozenset[tuple[str, ...]] = field(default=frozenset(), compare=False)


@dataclass(frozen=True, slots=True)
class RenderState:
    """Inputs of one render, and the collected origins of the rendered values.

    The keys of `origins` are paths in the rendered data. If `origins` is None, no origins are collected.
    """

    bindings: Mapping[str, Any]
    budget: ExpressionBudget
    origins: dict[DataPath, ValueOrigin] | None = None


class TemplateNode(Protocol):
    """Node of a compiled template."""

    def render(self, state: RenderState, value_path: DataPath) -> Any:
        """Return a new rendered value, or `OMIT`. `value_path` is the path of the value in the rendered data.

        `value_path` is not used if `state.origins` is None.
        """


@dataclass(frozen=True, slots=True)
class StaticNode:
    """Part of a template that contains no expressions."""

    value: Any

    def render(self, state: RenderState, value_path: DataPath) -> Any:
        """Return a copy of the static data."""
        return _copy_data(self.value)


@dataclass(frozen=True, slots=True)
class ExpressionNode:
    """String in a template that is exactly one expression. The rendered value has the type of the result."""

    path: DataPath
    text: str
    program: CelProgram

    def render(self, state: RenderState, value_path: DataPath) -> Any:
        """Return the result of the expression, or `OMIT`. Record the origin of the result."""
        value = evaluate_expression(self.program, state.bindings, state.budget, self.path)
        if state.origins is not None and value is not OMIT:
            state.origins[value_path] = ValueOrigin(self.path, self.text, self.reads)
        return value

    @property
    def reads(self) -> frozenset[tuple[str, ...]]:
        """Fields of variables that the expression reads, e.g. `("spec", "size")` for `spec.size`."""
        return self.program.field_reads


@dataclass(frozen=True, slots=True)
class InterpolatedNode:
    """String in a template that contains expressions and other text."""

    path: DataPath
    text: str
    pieces: tuple[str | CelProgram, ...]

    def render(self, state: RenderState, value_path: DataPath) -> str:
        """Return the text with the results of its expressions, and record the origin of the text."""
        text = "".join(
            piece if isinstance(piece, str) else self._evaluate_to_text(piece, state) for piece in self.pieces
        )
        charge_budget(state.budget, 0, 4 * len(text), self.path)
        if state.origins is not None:
            state.origins[value_path] = ValueOrigin(self.path, self.text, self.reads)
        return text

    @property
    def reads(self) -> frozenset[tuple[str, ...]]:
        """Fields of variables that the expressions read, e.g. `("spec", "size")` for `spec.size`."""
        return frozenset().union(*(piece.field_reads for piece in self.pieces if not isinstance(piece, str)))

    def _evaluate_to_text(self, program: CelProgram, state: RenderState) -> str:
        value = evaluate_expression(program, state.bindings, state.budget, self.path)
        if value is None:
            raise self._build_result_error(
                ComponentCodes.TEMPLATE_NULL_IN_TEXT, program, "null", 'use "" for empty text'
            )
        if value is OMIT:
            raise self._build_result_error(
                ComponentCodes.TEMPLATE_OMIT_IN_TEXT, program, "omit()", "omit() can only remove a complete value"
            )
        return render_literal(value)

    def _build_result_error(self, code: FindingCode, program: CelProgram, result: str, hint: str) -> FieldFindingError:
        message = (
            f"contains the expression {quote_value(program.text)} inside a text, but the expression returns {result};"
            f" {hint}"
        )
        return FieldFindingError(build_field_finding(code, self.path, message))


@dataclass(frozen=True, slots=True)
class TemplateMapEntry:
    """Entry of a map in a template. `path` ends with the key as written in the template, e.g. `${spec.name}`."""

    path: DataPath
    key: str | ExpressionNode | InterpolatedNode
    value: TemplateNode


@dataclass(frozen=True, slots=True)
class TemplateMapNode:
    """Map in a template that contains expressions. The entries have the order of the template."""

    entries: tuple[TemplateMapEntry, ...]

    def render(self, state: RenderState, value_path: DataPath) -> dict[str, Any]:
        """Return the rendered map. Entries that render to `OMIT` are left out."""
        result: dict[str, Any] = {}
        for entry in self.entries:
            key = entry.key if isinstance(entry.key, str) else _render_key(entry, entry.key, state, value_path)
            value = entry.value.render(state, value_path if state.origins is None else (*value_path, key))
            if value is OMIT:
                continue
            if key in result:
                message = f"must not have the key {quote_value(key)} twice"
                raise FieldFindingError(build_field_finding(ComponentCodes.TEMPLATE_DUPLICATE_KEY, entry.path, message))
            result[key] = value
            if state.origins is not None and not isinstance(entry.key, str):
                # If the value has no recorded origin, record the origin of its key instead.
                state.origins.setdefault((*value_path, key), ValueOrigin(entry.path, entry.key.text, entry.key.reads))
        return result


@dataclass(frozen=True, slots=True)
class TemplateListNode:
    """List in a template that contains expressions."""

    items: tuple[TemplateNode, ...]

    def render(self, state: RenderState, value_path: DataPath) -> list[Any]:
        """Return the rendered list. Items that render to `OMIT` are left out."""
        result: list[Any] = []
        for item in self.items:
            value = item.render(state, value_path if state.origins is None else (*value_path, len(result)))
            if value is not OMIT:
                result.append(value)
        return result


def _render_key(
    entry: TemplateMapEntry, node: ExpressionNode | InterpolatedNode, state: RenderState, value_path: DataPath
) -> str:
    key = node.render(RenderState(state.bindings, state.budget), value_path)
    if isinstance(key, str):
        return key
    result = "omit()" if key is OMIT else describe_value(key)
    message = f"must have a string as key, but the expression of the key returns {result}; use string()"
    raise FieldFindingError(build_field_finding(ComponentCodes.TEMPLATE_KEY_TYPE, entry.path, message))


def _copy_data(value: Any) -> Any:
    match value:
        case dict():
            return {key: _copy_data(item) for key, item in value.items()}
        case list():
            return [_copy_data(item) for item in value]
        case _:
            return value
