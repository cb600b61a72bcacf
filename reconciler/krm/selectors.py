"""Kubernetes label selectors, and query strings such as `app=web,!legacy`.

The models in `api/` read selectors from manifests.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import re2

from reconciler.lazy_dataclasses import dataclass

SelectorOperator = Literal["In", "NotIn", "Exists", "DoesNotExist"]
SELECTOR_FIELDS = ("matchLabels", "matchExpressions")


@dataclass(frozen=True, order=True)
class LabelRequirement:
    """One entry of `matchExpressions` in a label selector."""

    key: str
    operator: SelectorOperator
    values: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Return whether the labels satisfy this requirement.

        If the key is absent, NotIn and DoesNotExist are satisfied.
        """
        match self.operator:
            case "In":
                return labels.get(self.key) in self.values
            case "NotIn":
                return labels.get(self.key) not in self.values
            case "Exists":
                return self.key in labels
            case "DoesNotExist":
                return self.key not in labels

    def as_data(self) -> dict[str, Any]:
        """Return the requirement as a mapping for YAML."""
        data: dict[str, Any] = {"key": self.key, "operator": self.operator}
        return data | {"values": list(self.values)} if self.values else data


@dataclass(frozen=True)
class LabelSelector:
    """A Kubernetes label selector with sorted requirements. A selector without requirements matches all labels."""

    match_labels: tuple[tuple[str, str], ...] = ()
    match_expressions: tuple[LabelRequirement, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Return whether the labels satisfy all requirements of the selector."""
        return all(labels.get(key) == value for key, value in self.match_labels) and all(
            requirement.matches(labels) for requirement in self.match_expressions
        )

    def as_data(self) -> dict[str, Any]:
        """Return the selector as a mapping for YAML, without empty fields. The requirements are sorted."""
        expressions = [requirement.as_data() for requirement in self.match_expressions]
        data = {"matchLabels": dict(self.match_labels), "matchExpressions": expressions}
        return {field: value for field, value in data.items() if value}


_SET = re2.compile(r"([^\s,!=()]+)\s+(in|notin)\s+\(([^()]*)\)")
_EQUALITY = re2.compile(r"([^\s,!=()]+)\s*(=|==|!=)\s*([^\s,!=()]*)")
_PRESENCE = re2.compile(r"(!?)\s*([^\s,!=()]+)")


class LabelQueryError(ValueError):
    """A string that is not a valid label query."""


def matches_label_query(query: str, labels: Mapping[str, Any]) -> bool:
    """Return whether labels satisfy a query such as `app=web,tier in (a, b),!legacy`.

    An empty query matches all labels.

    Raises:
        LabelQueryError: A requirement of the query is invalid.
    """
    return parse_label_query(query).matches(labels)


def parse_label_query(query: str) -> LabelSelector:
    """Return the selector of a query such as `app=web,tier in (a, b),!legacy`.

    Raises:
        LabelQueryError: A requirement of the query is invalid.
    """
    return LabelSelector(match_expressions=tuple(map(_parse_requirement, _split_requirements(query))))


def _split_requirements(query: str) -> list[str]:
    parts, depth, start = [], 0, 0
    for index, character in enumerate(query):
        depth += (character == "(") - (character == ")")
        if character == "," and depth == 0:
            parts.append(query[start:index])
            start = index + 1
    return [part.strip() for part in (*parts, query[start:]) if part.strip()]


def _parse_requirement(requirement: str) -> LabelRequirement:
    if match := _SET.fullmatch(requirement):
        key, operator, values = match.groups()
        listed = tuple(value.strip() for value in values.split(","))
        return LabelRequirement(key, "In" if operator == "in" else "NotIn", listed)
    if match := _EQUALITY.fullmatch(requirement):
        key, operator, value = match.groups()
        return LabelRequirement(key, "NotIn" if operator == "!=" else "In", (value,))
    if match := _PRESENCE.fullmatch(requirement):
        negated, key = match.groups()
        return LabelRequirement(key, "DoesNotExist" if negated else "Exists")
    raise LabelQueryError(f'"{requirement}" must be a label requirement, for example key=value or key in (a, b)')
