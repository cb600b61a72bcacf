"""Expressions `${…}` in text: search, evaluation, and conversion of the results to YAML data."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from reconciler.api.openchoreo import EXPRESSION_START
from reconciler.cel import BudgetExceededError, CelProgram, ExpressionBudget, ExpressionError
from reconciler.cel.errors import CelCodes
from reconciler.cel.results import ResultConversionError, convert_to_data
from reconciler.controllers.components.codes import ComponentCodes
from reconciler.controllers.components.field_findings import FieldFinding, FieldFindingError, build_field_finding
from reconciler.krm.field_text import quote_value
from reconciler.krm.findings import FindingCode
from reconciler.krm.yaml import DataPath
from reconciler.lazy_dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class EmbeddedExpression:
    """CEL expression in a text, without the `${` and `}` around it."""

    text: str


Piece = str | EmbeddedExpression

# Detect a raw string such as r"\d", which has no escapes. An r at the end of a name does not begin a raw string.
_TOKEN = re.compile(r"\$\{|[{}]|//|(?<![A-Za-z0-9_])[bB]?[rR](?:'''|\"\"\"|['\"])|'''|\"\"\"|['\"]")
_TOKEN_IN_COMMENT = re.compile(r"\$\{|[{}]|\n")
_CLOSING_QUOTES = {
    "'": re.compile(r"[^'\\]*(?:\\.[^'\\]*)*'", re.DOTALL),
    '"': re.compile(r'[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL),
    "'''": re.compile(r"(?:[^'\\]|\\.|'(?!''))*'''", re.DOTALL),
    '"""': re.compile(r'(?:[^"\\]|\\.|"(?!""))*"""', re.DOTALL),
}


def split_expressions(text: str, path: DataPath) -> tuple[Piece, ...]:
    """Split a text into plain texts and expressions. Empty texts are omitted.

    Raises:
        FieldFindingError: An expression contains `${`, or its closing brace is missing.
    """
    pieces: list[Piece] = []
    position = 0
    while (start := text.find(EXPRESSION_START, position)) >= 0:
        end = _find_end(text, start, path)
        pieces += (text[position:start], EmbeddedExpression(text[start + len(EXPRESSION_START) : end]))
        position = end + 1
    return tuple(piece for piece in (*pieces, text[position:]) if piece != "")


def _find_end(text: str, start: int, path: DataPath) -> int:
    """Return the index of the closing brace of the expression that begins at `start`."""
    depth, position, pattern = 1, start + len(EXPRESSION_START), _TOKEN
    while token := pattern.search(text, position):
        matched, position = token[0], token.end()
        if matched == EXPRESSION_START:
            raise FieldFindingError(_build_nested_finding(text[start:], path))
        if matched in "{}":
            depth += 1 if matched == "{" else -1
            if not depth:
                return token.start()
        elif matched in ("//", "\n"):
            # Ignore quotes in a comment, because an apostrophe in a comment does not begin a string.
            pattern = _TOKEN_IN_COMMENT if matched == "//" else _TOKEN
        elif (position := _find_end_of_string(text, matched, position)) < 0:
            break
    raise FieldFindingError(_build_unterminated_finding(text[start:], path))


def _find_end_of_string(text: str, opening: str, start: int) -> int:
    """Return the index after a string literal. Return -1 if its closing quote is missing.

    `opening` is the opening quote with its prefix. `start` is the index after `opening`.
    """
    quotes = opening.lstrip("bBrR")
    if quotes != opening:
        end = text.find(quotes, start)
        return -1 if end < 0 else end + len(quotes)
    closing = _CLOSING_QUOTES[quotes].match(text, start)
    return closing.end() if closing else -1


def _build_nested_finding(text: str, path: DataPath) -> FieldFinding:
    message = f"must not contain ${{ inside an expression: {quote_value(text)}"
    return build_field_finding(ComponentCodes.TEMPLATE_NESTED, path, message)


def _build_unterminated_finding(text: str, path: DataPath) -> FieldFinding:
    message = f"must close every ${{ with }} outside of quotes, but no }} closes {quote_value(text)}"
    return build_field_finding(ComponentCodes.TEMPLATE_UNTERMINATED, path, message)


def evaluate_expression(
    program: CelProgram, bindings: Mapping[str, Any], budget: ExpressionBudget, path: DataPath
) -> Any:
    """Evaluate an expression. Return the result as YAML data, or `OMIT` if the expression returns `omit()`.

    Raises:
        FieldFindingError: The evaluation failed, or the result cannot be converted to YAML data.
    """
    try:
        return convert_to_data(program.evaluate(bindings, budget))
    except ExpressionError as error:
        hint = "; all expressions of the render share this limit" if error.code == CelCodes.CEL_BUDGET.name else ""
        raise _build_evaluation_error(CelCodes.by_name[error.code], program, path, f"{error}{hint}") from None
    except ResultConversionError as error:
        code = ComponentCodes.TEMPLATE_KEY_TYPE if error.is_about_key else CelCodes.CEL_CONVERSION
        raise _build_evaluation_error(code, program, path, str(error)) from None


def _build_evaluation_error(code: FindingCode, program: CelProgram, path: DataPath, reason: str) -> FieldFindingError:
    message = f"has the expression {quote_value(program.text)}, which failed: {reason}"
    return FieldFindingError(build_field_finding(code, path, message))


def charge_budget(budget: ExpressionBudget, steps: int, size: int, path: DataPath) -> None:
    """Subtract the cost of loops, copied data and other work outside of expressions from the render budget.

    Raises:
        FieldFindingError: The budget is exhausted.
    """
    try:
        budget.spend(steps)
        budget.allocate(size)
    except BudgetExceededError as error:
        message = f"exceeds the budget of the render: {error.message}"
        raise FieldFindingError(build_field_finding(CelCodes.CEL_BUDGET, path, message)) from None
