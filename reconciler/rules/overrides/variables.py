"""Cluster variables: `${cluster.name}` and other expressions over the cluster, in the texts of a rule (kubeadmiral 12).

An expression begins with `cluster`, maybe inside of calls; any other `${…}` is text, as shells and templates write it.
`$${cluster…}` is the text `${cluster…}`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from reconciler.expressions import Environment, ExpressionError
from reconciler.krm.yaml import Path
from reconciler.rules.clusters.model import Cluster

_BEGIN = re.compile(r"(\$?)\$\{(?=\s*(?:[A-Za-z_][A-Za-z0-9_]*\(\s*)*cluster\s*[.\[])")
_ENVIRONMENT = Environment({"cluster": {"name": None, "labels": None}})
# stands for every variable while a policy is read: a sound label, tag and step of a path
_SAMPLE = "x"


@dataclass(frozen=True)
class Fault:
    """What is wrong with the variables of one text, at its path."""

    path: Path
    message: str


def has_variables(data: Any) -> bool:
    """Tell whether a text somewhere in the data has a variable, or an escaped one."""
    return any(_BEGIN.search(text) for _, text in _texts(data, ()))


def sampled(data: Any) -> tuple[Any, tuple[Fault, ...]]:
    """Return the data with a sample in the place of every variable, and what is wrong with the expressions."""

    def sample(expression: str) -> Any:
        _ENVIRONMENT.compile(expression)
        return _SAMPLE

    return _replaced(data, sample, "must have variables that mean something")


def resolved(data: Any, cluster: Cluster) -> tuple[Any, tuple[Fault, ...]]:
    """Return the data with the values that its variables have for a cluster, and what has none.

    A text that is one variable takes its value, be it a number or a boolean; inside of a text there are only strings.
    """
    bindings = {"cluster": {"name": cluster.name, "labels": dict(cluster.labels)}}
    must = f"must have variables that cluster {cluster.name} can answer"
    return _replaced(data, lambda expression: _ENVIRONMENT.compile(expression).evaluate(bindings), must)


def _texts(data: Any, path: Path) -> Iterator[tuple[Path, str]]:
    if isinstance(data, str):
        yield path, data
    elif isinstance(data, Mapping):
        for key, value in data.items():
            yield from _texts(value, (*path, key))
    elif isinstance(data, list):
        for index, value in enumerate(data):
            yield from _texts(value, (*path, index))


def _replaced(data: Any, value_of: Callable[[str], Any], must: str) -> tuple[Any, tuple[Fault, ...]]:
    found: list[tuple[Path, str]] = []
    return _walk(data, (), value_of, found), tuple(Fault(path, f"{must}: {why}") for path, why in found)


def _walk(data: Any, path: Path, value_of: Callable[[str], Any], faults: list[tuple[Path, str]]) -> Any:
    if isinstance(data, Mapping):
        return {key: _walk(value, (*path, key), value_of, faults) for key, value in data.items()}
    if isinstance(data, list):
        return [_walk(value, (*path, index), value_of, faults) for index, value in enumerate(data)]
    if not isinstance(data, str) or not _BEGIN.search(data):
        return data
    try:
        return _text(data, value_of)
    except _VariableError as error:
        faults.append((path, str(error)))
        return data


class _VariableError(ValueError):
    """A variable that is not closed, that has no value, or whose value cannot stand in a text."""


def _text(text: str, value_of: Callable[[str], Any]) -> Any:
    parts: list[str] = []
    at = 0
    while match := _BEGIN.search(text, at):
        parts.append(text[at : match.start()])
        end = _end(text, match.end())
        if match[1]:
            parts.append(text[match.start() + 1 : end])
        else:
            value = _value(text[match.start() : end], value_of)
            is_whole = (match.start(), end) == (0, len(text))
            if type(value) is not str and not (is_whole and type(value) in (bool, int, float)):
                allowed = "a string, a number or a boolean" if is_whole else "a string"
                raise _VariableError(f"{text[match.start() : end]} must be {allowed}")
            if is_whole:
                return value
            parts.append(value)
        at = end
    return "".join([*parts, text[at:]])


def _value(variable: str, value_of: Callable[[str], Any]) -> Any:
    try:
        return value_of(variable[2:-1])
    except ExpressionError as error:
        raise _VariableError(f"{variable}: {error}") from error


def _end(text: str, start: int) -> int:
    """Return the offset behind the brace that closes an expression; braces in its strings do not."""
    depth, quote, at = 0, "", start
    while at < len(text):
        character = text[at]
        if quote:
            at += character == "\\"
            quote = "" if character == quote else quote
        elif character in "'\"":
            quote = character
        elif character == "}" and not depth:
            return at + 1
        else:
            depth += (character == "{") - (character == "}")
        at += 1
    raise _VariableError(f'"{text[start - 2 :]}" must be closed by a brace')
