"""Rewriting of the expressions of a flattened addon.

References to fields with fixed values become literals. References to other fields get the key of the addon, e.g.
`spec.size` -> `spec.scratchDisk.size`. If a template uses only known values, the result replaces the template, so that
the patches of later addons can match the result.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from copy import deepcopy
from itertools import groupby
from typing import Any

from reconciler.api.openchoreo import EXPRESSION_START
from reconciler.cel import OMIT, CelProgram, ExpressionBudget, FieldAccess, VariableReference
from reconciler.controllers.components.codes import ComponentCodes
from reconciler.controllers.components.field_findings import FieldFindingError, build_field_finding
from reconciler.controllers.components.flatten.fields import FixedFields
from reconciler.controllers.components.schema.openapi import Schema
from reconciler.controllers.components.template_syntax import escape_template, format_cel_literal, render_literal
from reconciler.controllers.components.templates.expressions import (
    EmbeddedExpression,
    charge_budget,
    evaluate_expression,
    split_expressions,
)
from reconciler.controllers.components.templates.nodes import (
    ExpressionNode,
    InterpolatedNode,
    StaticNode,
    TemplateListNode,
    TemplateMapEntry,
    TemplateMapNode,
    TemplateNode,
)
from reconciler.controllers.nested_values import get_value
from reconciler.krm.field_text import quote_value
from reconciler.krm.merge3.rules import ABSENT
from reconciler.krm.yaml import DataPath
from reconciler.lazy_dataclasses import dataclass

_SPEC = "spec"
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


def select_declared_accesses(reference: VariableReference, schema: Schema) -> Iterator[FieldAccess]:
    """Yield the field accesses after a variable, e.g. `.cache` and `.size` in `spec.cache.size + 1`.

    The result ends before the first field that `schema` does not declare.
    """
    for access in reference.accesses:
        child: Schema | None = schema.get("properties", {}).get(access.name)
        if child is None:
            return
        schema = child
        yield access


def iter_programs(node: TemplateNode) -> Iterator[tuple[DataPath, CelProgram]]:
    """Yield each expression of a template, with the path of the expression in the document."""
    match node:
        case ExpressionNode(path, _, program):
            yield path, program
        case InterpolatedNode(path, _, pieces):
            yield from ((path, piece) for piece in pieces if isinstance(piece, CelProgram))
        case TemplateMapNode(entries):
            for entry in entries:
                yield from iter_programs(entry.key) if not isinstance(entry.key, str) else ()
                yield from iter_programs(entry.value)
        case TemplateListNode(items):
            for item in items:
                yield from iter_programs(item)


@dataclass(frozen=True, eq=False)
class AddonVariable:
    """Template variable with values of a flattened addon, e.g. `spec`.

    Attributes:
        key: Name of the field that contains the fields of the addon in the flattened definition.
        config: Values that the component type sets for the addon, in the order of the component type.
    """

    name: str
    key: str
    schema: Schema
    fixed_fields: FixedFields
    values: Mapping[str, Any]
    config: Mapping[str, Any]


@dataclass(frozen=True)
class _Occurrence:
    """Occurrence of a variable in the expression `text`. `path` is the path of the expression in the document."""

    reference: VariableReference
    text: str
    path: DataPath

    @property
    def dot(self) -> str:
        """The leading dot of the variable. "" if the variable has no leading dot."""
        return "." if self.reference.is_absolute else ""

    def get_text(self, access: FieldAccess) -> str:
        """Return the text of a field access in the expression."""
        return self.text[access.start : access.end]


@dataclass(frozen=True)
class _Replacement:
    """Text that replaces a part of an expression. The part starts with a variable and ends before the index `end`.

    `is_known` is true if `text` contains only values that are known before a render.
    """

    text: str
    end: int
    is_known: bool


@dataclass(frozen=True, eq=False)
class ExpressionRewriter:
    """Rewrites the expressions in the templates of one addon.

    `addon_variables` are the variables with the values of the addon. `known_variables` contains the values of other
    variables, e.g. a loop item. These values are known before a render.
    """

    addon_variables: Mapping[str, AddonVariable]
    known_variables: Mapping[str, Any]
    budget: ExpressionBudget

    @property
    def bindings(self) -> dict[str, Any]:
        """Values of all variables in `addon_variables` and `known_variables`."""
        return {**{name: root.values for name, root in self.addon_variables.items()}, **self.known_variables}

    def rewrite_template(self, node: TemplateNode) -> Any:
        """Return the template for the flattened definition. It renders to the same value as the template of the addon.

        Return OMIT if the template is an expression whose known result is `omit()`.

        Raises:
            FieldFindingError: The template cannot be rewritten.
        """
        match node:
            case StaticNode(value):
                return deepcopy(value)
            case ExpressionNode(path, _, program):
                text, is_known = self.rewrite_expression(program, path)
                value = self._evaluate(program, path) if is_known else ABSENT
                return _wrap(text) if value is ABSENT else value if value is OMIT else escape_template(value)
            case InterpolatedNode():
                return self._rewrite_text(node)
            case TemplateMapNode(entries):
                return self._rewrite_map(entries)
            case TemplateListNode(items):
                return [item for item in map(self.rewrite_template, items) if item is not OMIT]
        raise TypeError(f"unknown template node: {node!r}")

    def rewrite_expression(self, program: CelProgram, path: DataPath) -> tuple[str, bool]:
        """Return the rewritten expression, and whether all its values are known before a render.

        Raises:
            FieldFindingError: The expression cannot be rewritten.
        """
        text, is_known = program.text, True
        for reference in reversed(program.references):
            if reference.name not in self.addon_variables and reference.name not in self.known_variables:
                is_known = False
                continue
            replacement = self._replace_occurrence(_Occurrence(reference, program.text, path))
            is_known = is_known and replacement.is_known
            text = f"{text[: reference.start]}{replacement.text}{text[replacement.end :]}"
            charge_budget(self.budget, 1, len(text), path)
        return text, is_known

    def _replace_occurrence(self, occurrence: _Occurrence) -> _Replacement:
        name, end = occurrence.reference.name, occurrence.reference.end
        if name not in self.addon_variables:
            return _Replacement(format_cel_literal(self.known_variables[name]), end, is_known=True)
        variable, fixed_fields = self.addon_variables[name], self.addon_variables[name].fixed_fields
        field_path: DataPath = ()
        for access in select_declared_accesses(occurrence.reference, variable.schema):
            if access.name not in fixed_fields.fixed:
                end = occurrence.reference.end
                return _Replacement(f"{occurrence.dot}{variable.name}.{variable.key}", end, is_known=False)
            field_path, nested = (*field_path, access.name), fixed_fields.fixed[access.name]
            if nested is None or access.is_test:
                return _replace_fixed_field(variable, field_path, access, occurrence)
            if access.is_optional:
                container = _format_map({access.name: _format_object(variable, field_path, nested, occurrence)})
                return _Replacement(f"{container}{occurrence.get_text(access)}", access.end, is_known=False)
            fixed_fields, end = nested, access.end
        return _Replacement(
            _format_object(variable, field_path, fixed_fields, occurrence),
            end,
            is_known=not fixed_fields.has_open_fields,
        )

    def _evaluate(self, program: CelProgram, path: DataPath) -> Any:
        """Return the result of an expression that uses only known values. Return ABSENT if the evaluation fails.

        An expression that fails stays in the flattened definition, so that each render reports the error.
        """
        try:
            return evaluate_expression(program, self.bindings, self.budget, path)
        except FieldFindingError:
            return ABSENT

    def _rewrite_text(self, node: InterpolatedNode) -> str:
        """Return the text of a template in which all expressions are rewritten, or replaced by their known results."""
        pieces = [self._rewrite_piece(piece, node.path) for piece in node.pieces]
        joined = _join_texts(pieces)
        text = "".join(piece if isinstance(piece, str) else _wrap(piece.text) for piece in joined)
        match [piece for piece in joined if not isinstance(piece, str) or not piece.isspace()]:
            case [EmbeddedExpression()]:
                # Do not insert the known results. If only one expression and white space remained, the template would
                # render to the result of this expression, which may not be a string.
                pass
            case significant if not any(isinstance(piece, EmbeddedExpression) for piece in significant):
                return str(escape_template(text))
            case _ if _is_parsed_as(text, joined):
                return text
        return "".join(
            original if isinstance(original, str) else _wrap(self.rewrite_expression(original, node.path)[0])
            for original in node.pieces
        )

    def _rewrite_piece(self, piece: str | CelProgram, path: DataPath) -> str | EmbeddedExpression:
        if isinstance(piece, str):
            return piece
        text, is_known = self.rewrite_expression(piece, path)
        value = self._evaluate(piece, path) if is_known else ABSENT
        is_text = value is not ABSENT and value is not OMIT and value is not None
        return render_literal(value) if is_text else EmbeddedExpression(text)

    def _rewrite_map(self, entries: tuple[TemplateMapEntry, ...]) -> Any:
        result: dict[str, Any] = {}
        for entry in entries:
            key = entry.key if isinstance(entry.key, str) else self.rewrite_template(entry.key)
            if not isinstance(key, str):
                assert isinstance(entry.key, ExpressionNode), "all other keys are strings"
                # Keep the expression as the key, so that each render reports that the key is not a string.
                key = _wrap(self.rewrite_expression(entry.key.program, entry.path)[0])
            value = self.rewrite_template(entry.value)
            if value is OMIT:
                continue
            if key in result:
                raise _build_error(
                    entry.path, "must not have the same key as an earlier entry after flattening; found the key", key
                )
            result[key] = value
        return result


def _replace_fixed_field(
    variable: AddonVariable, field_path: DataPath, access: FieldAccess, occurrence: _Occurrence
) -> _Replacement:
    """Return the literal that replaces a field with a fixed value, e.g. `spec.size` -> `5`.

    For `has(spec.size)` and `spec.?size`, the literal replaces the parent, e.g. `has({"size": 5}.size)`.
    """
    value = get_value(variable.values, field_path)
    if value is not ABSENT and not access.is_test and not access.is_optional:
        return _Replacement(format_cel_literal(value), access.end, is_known=True)
    container = {} if value is ABSENT else {access.name: value}
    return _Replacement(f"{format_cel_literal(container)}{occurrence.get_text(access)}", access.end, is_known=True)


def _format_object(
    variable: AddonVariable, field_path: DataPath, fixed_fields: FixedFields, occurrence: _Occurrence
) -> str:
    """Return a CEL expression for an object. Some fields of the object can be literals.

    Example: `merge({"size": 5}, spec.scratchDisk)`. The literal fields have the same order as in the component type.
    """
    if not fixed_fields.has_open_fields:
        return format_cel_literal(get_value(variable.values, field_path))
    expression = f"{occurrence.dot}{variable.name}.{variable.key}{''.join(map(_format_step, field_path))}"
    if not fixed_fields.fixed:
        return expression
    config_value = get_value(variable.config, field_path)
    names = [name for name in config_value if name in fixed_fields.fixed] if isinstance(config_value, Mapping) else []
    has_other_values = any(
        name not in names and get_value(variable.values, (*field_path, name)) is not ABSENT
        for name in fixed_fields.fixed
    )
    if variable.name != _SPEC or has_other_values:
        # Raise an error, because the fields of a `merge` expression have a different order than the fields of a render.
        # A render puts defaults between other fields, and sorts `parameters` and `envOverrides` as in the schema.
        raise _build_error(
            occurrence.path,
            "must refer to single fields, such as spec.port, because the type sets some fields of the same object;"
            " found the expression",
            occurrence.text,
        )
    nested = {
        name: _format_object(variable, (*field_path, name), nested_fields, occurrence)
        for name in names
        if (nested_fields := fixed_fields.fixed[name])
    }
    texts = {
        name: nested.get(name) or format_cel_literal(get_value(variable.values, (*field_path, name))) for name in names
    }
    return f"merge({', '.join([_format_map(texts), expression, *([_format_map(nested)] if nested else [])])})"


def _join_texts(pieces: list[str | EmbeddedExpression]) -> list[str | EmbeddedExpression]:
    """Join adjacent texts, and remove empty texts."""
    joined: list[str | EmbeddedExpression] = []
    for is_text, group in groupby(pieces, lambda piece: isinstance(piece, str)):
        items = list(group)
        joined += ["".join(item for item in items if isinstance(item, str))] if is_text else items
    return [item for item in joined if item != ""]


def _is_parsed_as(text: str, pieces: list[str | EmbeddedExpression]) -> bool:
    try:
        return list(split_expressions(text, ())) == pieces
    except FieldFindingError:
        return False


def _wrap(text: str) -> str:
    return f"{EXPRESSION_START}{text}}}"


def _format_map(entries: Mapping[str, str]) -> str:
    return f"{{{', '.join(f'{format_cel_literal(name)}: {text}' for name, text in entries.items())}}}"


def _format_step(name: str | int) -> str:
    return f".{name}" if _IDENTIFIER.fullmatch(str(name)) else f"[{format_cel_literal(name)}]"


def _build_error(path: DataPath, message: str, text: str) -> FieldFindingError:
    return FieldFindingError(build_field_finding(ComponentCodes.NOT_BAKEABLE, path, f"{message} {quote_value(text)}"))
