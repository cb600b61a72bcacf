"""CEL expressions that contain the name or a label of a cluster."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from reconciler.cel import CelEnvironment, ExpressionError

CLUSTER_NAME = "repository.name"
_ENVIRONMENT = CelEnvironment(frozenset({"repository"}))
_SHORT_ESCAPES = {"\\": r"\\", "'": r"\'", "\n": r"\n", "\r": r"\r", "\t": r"\t"}


def generalize(text: str, cluster: str, labels: Mapping[str, str]) -> list[str]:
    """Divide a text into literals and CEL expressions for the name and the labels of the cluster.

    Expressions, such as `repository.name`, have odd indexes in the result. Literals have even indexes.
    """
    variables = {cluster: CLUSTER_NAME}
    for key, value in sorted(labels.items()):
        variables.setdefault(value, f"repository.labels[{quote(key)}]")
    words = sorted(filter(None, variables), key=len, reverse=True)
    pattern = "|".join(map(re.escape, words))
    parts = re.split(rf"(?<![A-Za-z0-9])({pattern})(?![A-Za-z0-9])", text)
    return [variables[part] if index % 2 else part for index, part in enumerate(parts)]


def format_expression(parts: Sequence[str]) -> str:
    """Return the CEL expression for the parts that `generalize` returns."""
    texts = [part if index % 2 else quote(part) for index, part in enumerate(parts) if part]
    return " + ".join(texts)


def quote(text: str) -> str:
    """Return a CEL literal. The literal has one line, and no character that is invisible in an editor."""
    return f"'{''.join(map(_escape, text))}'"


def _escape(character: str) -> str:
    if character.isprintable() and character not in _SHORT_ESCAPES:
        return character
    return _SHORT_ESCAPES.get(character) or f"\\U{ord(character):08x}"


def format_literal(value: Any) -> str:
    """Return the CEL expression for a JSON value.

    The expression has a dynamic type, because CEL otherwise requires the same type for all results of a choice.
    """
    return f"dyn({_format(value)})"


def _format(value: Any) -> str:
    match value:
        case str():
            return quote(value)
        case list():
            return f"[{', '.join(map(_format, value))}]"
        case dict():
            return "{" + ", ".join(f"{quote(key)}: {_format(item)}" for key, item in value.items()) + "}"
        case _:
            return json.dumps(value)


def is_valid(expression: str) -> bool:
    """Return whether an expression is within the limits of CEL, for example for its length and for integers."""
    try:
        _ENVIRONMENT.compile(expression)
    except ExpressionError:
        return False
    return True
