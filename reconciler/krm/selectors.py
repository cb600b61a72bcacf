"""Kubernetes label selectors: mappings (`matchLabels`, `matchExpressions`) and query strings (`app=web,!legacy`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal, get_args

import re2

from reconciler.krm.names import validate_label_key, validate_label_value
from reconciler.lazy_dataclasses import dataclass

SelectorOperator = Literal["In", "NotIn", "Exists", "DoesNotExist"]
_OPERATORS: tuple[str, ...] = get_args(SelectorOperator)
SELECTOR_FIELDS = ("matchLabels", "matchExpressions")
_REQUIREMENT_FIELDS = ("key", "operator", "values")
_OPERATORS_WITH_VALUES = ("In", "NotIn")


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


def read_label_selector(data: object) -> tuple[LabelSelector | None, tuple[str, ...]]:
    """Parse a label selector, and collect all errors.

    A field other than `matchLabels` and `matchExpressions` is an error. If `data` is None, the selector matches all
    labels.

    Returns:
        (selector, ()) if the selector is valid. Otherwise (None, errors), where each error begins with the field name.
    """
    data = {} if data is None else data
    if not isinstance(data, Mapping):
        return None, ("must be a mapping",)
    errors = tuple(_validate_selector(data))
    return (None, errors) if errors else (_create_selector(data), ())


def _create_selector(data: Mapping[str, Any]) -> LabelSelector:
    requirements = {
        LabelRequirement(entry["key"], entry["operator"], tuple(sorted(set(entry.get("values") or ()))))
        for entry in data.get("matchExpressions") or ()
    }
    return LabelSelector(tuple(sorted((data.get("matchLabels") or {}).items())), tuple(sorted(requirements)))


def _validate_selector(data: Mapping[Any, Any]) -> Iterator[str]:
    yield from (f'unknown field "{field}"' for field in data if field not in SELECTOR_FIELDS)
    yield from _validate_labels(data.get("matchLabels"))
    expressions = data.get("matchExpressions") or ()
    if not isinstance(expressions, list | tuple):
        yield "matchExpressions must be a list"
        return
    for index, entry in enumerate(expressions):
        yield from (f"matchExpressions[{index}]{error}" for error in _validate_requirement(entry))


def _validate_labels(labels: object) -> Iterator[str]:
    if labels is None:
        return
    if not isinstance(labels, Mapping):
        yield "matchLabels must be a mapping"
        return
    for key, value in labels.items():
        if not isinstance(key, str) or not isinstance(value, str):
            yield f"matchLabels must map strings to strings, not {key!r} to {value!r}"
            continue
        yield from (
            f"matchLabels: {error}" for error in (validate_label_key(key), validate_label_value(value)) if error
        )


def _validate_requirement(entry: object) -> Iterator[str]:
    if not isinstance(entry, Mapping):
        yield " must be a mapping"
        return
    yield from (f' has an unknown field "{field}"' for field in entry if field not in _REQUIREMENT_FIELDS)
    key, operator = entry.get("key"), entry.get("operator")
    error = validate_label_key(key) if isinstance(key, str) else "must be a string"
    if error:
        yield f".key: {error}"
    if operator not in _OPERATORS:
        yield f'.operator must be one of {", ".join(_OPERATORS)}, not "{operator}"'
        return
    yield from _validate_values(str(operator), entry.get("values"))


def _validate_values(operator: str, values: object) -> Iterator[str]:
    if values is not None and not isinstance(values, list | tuple):
        yield ".values must be a list"
        return
    if bool(values) != (operator in _OPERATORS_WITH_VALUES):
        rule = "must not be empty" if operator in _OPERATORS_WITH_VALUES else "must be empty"
        yield f".values {rule} for operator {operator}"
        return
    for value in values or ():
        error = validate_label_value(value) if isinstance(value, str) else f"must contain strings, not {value!r}"
        if error:
            yield f".values: {error}"


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
    # Evaluate every requirement, so that an invalid requirement is reported even if an earlier requirement does not
    # match.
    results = [_matches_requirement(requirement, labels) for requirement in _split_requirements(query)]
    return all(results)


def _split_requirements(query: str) -> list[str]:
    parts, depth, start = [], 0, 0
    for index, character in enumerate(query):
        depth += (character == "(") - (character == ")")
        if character == "," and depth == 0:
            parts.append(query[start:index])
            start = index + 1
    return [part.strip() for part in (*parts, query[start:]) if part.strip()]


def _matches_requirement(requirement: str, labels: Mapping[str, Any]) -> bool:
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
    raise LabelQueryError(f'"{requirement}" must be a label requirement, for example key=value or key in (a, b)')
