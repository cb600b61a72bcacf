"""Cluster variables in the overriders of a rule: `${cluster.name}` and other CEL expressions about the cluster.

The expression starts with `cluster`, or with function calls around it, e.g. `${size(cluster.name)}`. Any other `${…}`
is plain text, because shells and templates use the same syntax. `$${cluster…}` is an escaped variable: it becomes the
plain text `${cluster…}`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from reconciler.cel import CelEnvironment, ExpressionError
from reconciler.controllers.clusters.selection import Cluster
from reconciler.krm.yaml import DataPath
from reconciler.lazy_dataclasses import dataclass

_START_OF_VARIABLE = re.compile(r"(\$?)\$\{(?=\s*(?:[A-Za-z_][A-Za-z0-9_]*\(\s*)*cluster\s*[.\[])")
_ENVIRONMENT = CelEnvironment({"cluster": {"name": None, "labels": None}})
# Sample value that replaces variables when a policy is validated without a cluster. It is valid as a label value, an
# image tag and a path step.
_SAMPLE = "x"


@dataclass(frozen=True)
class InvalidVariable:
    """A variable that is invalid or has no value. `path` is the path of the string that contains the variable."""

    path: DataPath
    message: str


def has_variables(data: Any) -> bool:
    """Return whether a string in the data contains a variable or an escaped variable."""
    return any(_START_OF_VARIABLE.search(text) for _, text in _iterate_strings(data, ()))


def fill_with_samples(data: Any) -> tuple[Any, tuple[InvalidVariable, ...]]:
    """Replace every variable in the data by a sample value. Return the data and the invalid variables."""

    def sample(expression: str) -> Any:
        _ENVIRONMENT.compile(expression)
        return _SAMPLE

    return _replace_variables(data, sample)


def resolve_variables(data: Any, cluster: Cluster) -> tuple[Any, tuple[InvalidVariable, ...]]:
    """Replace every variable in the data by its value for a cluster. Return the data, and the variables that have no
    value.

    If a string consists of only one variable, the value may also be a number or a boolean. In a longer string, each
    value must be a string.
    """
    bindings = {"cluster": {"name": cluster.name, "labels": dict(cluster.labels)}}
    return _replace_variables(
        data, lambda expression: _ENVIRONMENT.compile(expression).evaluate(bindings), f'on cluster "{cluster.name}" '
    )


def _iterate_strings(data: Any, path: DataPath) -> Iterator[tuple[DataPath, str]]:
    if isinstance(data, str):
        yield path, data
    elif isinstance(data, Mapping):
        for key, value in data.items():
            yield from _iterate_strings(value, (*path, key))
    elif isinstance(data, list):
        for index, value in enumerate(data):
            yield from _iterate_strings(value, (*path, index))


def _replace_variables(
    data: Any, value_of: Callable[[str], Any], scope: str = ""
) -> tuple[Any, tuple[InvalidVariable, ...]]:
    """Replace every variable in the data. `scope` is the text about the cluster in messages."""
    errors: list[tuple[DataPath, _VariableError]] = []
    return _replace_in(data, (), value_of, errors), tuple(
        InvalidVariable(path, f"contains {error.variable}, but {scope}{error.problem}") for path, error in errors
    )


def _replace_in(
    data: Any, path: DataPath, value_of: Callable[[str], Any], errors: list[tuple[DataPath, _VariableError]]
) -> Any:
    if isinstance(data, Mapping):
        return {key: _replace_in(value, (*path, key), value_of, errors) for key, value in data.items()}
    if isinstance(data, list):
        return [_replace_in(value, (*path, index), value_of, errors) for index, value in enumerate(data)]
    if not isinstance(data, str) or not _START_OF_VARIABLE.search(data):
        return data
    try:
        return _replace_in_string(data, value_of)
    except _VariableError as error:
        errors.append((path, error))
        return data


class _VariableError(ValueError):
    """Raised if a variable has no closing brace, has no value, or has a value of a wrong type.

    `problem` is the end of a message about the variable.
    """

    def __init__(self, variable: str, problem: str) -> None:
        super().__init__(variable, problem)
        self.variable = variable
        self.problem = problem


def _replace_in_string(text: str, value_of: Callable[[str], Any]) -> Any:
    parts: list[str] = []
    position = 0
    while match := _START_OF_VARIABLE.search(text, position):
        parts.append(text[position : match.start()])
        end = _find_end(text, match.end())
        if match[1]:
            parts.append(text[match.start() + 1 : end])
        else:
            value = _evaluate(text[match.start() : end], value_of)
            is_whole = (match.start(), end) == (0, len(text))
            if type(value) is not str and not (is_whole and type(value) in (bool, int, float)):
                allowed = "a string, a number or a boolean" if is_whole else "a string"
                raise _VariableError(text[match.start() : end], f"its value must be {allowed}")
            if is_whole:
                return value
            parts.append(value)
        position = end
    return "".join([*parts, text[position:]])


def _evaluate(variable: str, value_of: Callable[[str], Any]) -> Any:
    try:
        return value_of(variable[2:-1])
    except ExpressionError as error:
        raise _VariableError(variable, f'this expression cannot be evaluated. CEL reports: "{error}"') from error


def _find_end(text: str, start: int) -> int:
    """Return the offset after the brace that closes an expression. Braces in strings of the expression are skipped."""
    depth, quote, position = 0, "", start
    while position < len(text):
        character = text[position]
        if quote:
            position += character == "\\"
            quote = "" if character == quote else quote
        elif character in "'\"":
            quote = character
        elif character == "}" and not depth:
            return position + 1
        else:
            depth += (character == "{") - (character == "}")
        position += 1
    raise _VariableError(f'"{text[start - 2 :]}"', "this variable has no closing brace")
