"""Label queries: Kubernetes' selector text, as `app=web,tier in (a, b),!legacy`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import re2

_SET = re2.compile(r"([^\s,!=()]+)\s+(in|notin)\s+\(([^()]*)\)")
_EQUALITY = re2.compile(r"([^\s,!=()]+)\s*(=|==|!=)\s*([^\s,!=()]*)")
_PRESENCE = re2.compile(r"(!?)\s*([^\s,!=()]+)")


class LabelQueryError(ValueError):
    """The text is not a label query."""


def matches_query(query: str, labels: Mapping[str, Any]) -> bool:
    """Tell whether labels meet every requirement of the query; an empty one is always met. Raises LabelQueryError."""
    # each is asked: what is no requirement must not hide behind one that is not met
    met = [_matches(requirement, labels) for requirement in _requirements(query)]
    return all(met)


def _requirements(query: str) -> list[str]:
    parts, depth, start = [], 0, 0
    for at, character in enumerate(query):
        depth += (character == "(") - (character == ")")
        if character == "," and depth == 0:
            parts.append(query[start:at])
            start = at + 1
    return [part.strip() for part in (*parts, query[start:]) if part.strip()]


def _matches(requirement: str, labels: Mapping[str, Any]) -> bool:
    if match := _SET.fullmatch(requirement):
        key, operator, values = match.groups()
        is_in = labels.get(key) in {value.strip() for value in values.split(",")}
        return is_in == bool(operator == "in")
    if match := _EQUALITY.fullmatch(requirement):
        key, operator, value = match.groups()
        is_equal = bool(labels.get(key) == value)
        return is_equal == bool(operator != "!=")
    if match := _PRESENCE.fullmatch(requirement):
        negated, key = match.groups()
        return (key in labels) != bool(negated)
    raise LabelQueryError(f'"{requirement}" must be a label requirement, as key=value or key in (a, b)')
