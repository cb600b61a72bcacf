"""Kubernetes label selectors: reading one with all its faults, asking it, writing it back in one form."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from reconciler.krm.names import label_key_fault, label_value_fault

Operator = Literal["In", "NotIn", "Exists", "DoesNotExist"]
OPERATORS: tuple[str, ...] = get_args(Operator)
SELECTOR_FIELDS = ("matchLabels", "matchExpressions")
_REQUIREMENT_FIELDS = ("key", "operator", "values")
_WITH_VALUES = ("In", "NotIn")


@dataclass(frozen=True, order=True)
class Requirement:
    """One entry of matchExpressions."""

    key: str
    operator: Operator
    values: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Tell whether the labels meet this requirement; NotIn and DoesNotExist hold for an absent key."""
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
        """Return the requirement as it is written to YAML."""
        data: dict[str, Any] = {"key": self.key, "operator": self.operator}
        return data | {"values": list(self.values)} if self.values else data


@dataclass(frozen=True)
class LabelSelector:
    """A metav1.LabelSelector in one canonical order; the empty one matches everything."""

    match_labels: tuple[tuple[str, str], ...] = ()
    match_expressions: tuple[Requirement, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Tell whether the labels meet all of the selector."""
        return all(labels.get(key) == value for key, value in self.match_labels) and all(
            requirement.matches(labels) for requirement in self.match_expressions
        )

    def as_data(self) -> dict[str, Any]:
        """Return the selector as it is written to YAML: selectors that ask the same in another order are equal."""
        expressions = [requirement.as_data() for requirement in self.match_expressions]
        data = {"matchLabels": dict(self.match_labels), "matchExpressions": expressions}
        return {field: value for field, value in data.items() if value}


def read_label_selector(data: object) -> tuple[LabelSelector | None, tuple[str, ...]]:
    """Return the selector, or None and every fault, each starting with the field it is about.

    Fields other than matchLabels and matchExpressions are faults. None reads as {}, the selector of everything.
    """
    data = {} if data is None else data
    if not isinstance(data, Mapping):
        return None, ("must be a mapping",)
    faults = tuple(_selector_faults(data))
    return (None, faults) if faults else (_selector(data), ())


def _selector(data: Mapping[str, Any]) -> LabelSelector:
    requirements = {
        Requirement(entry["key"], entry["operator"], tuple(sorted(set(entry.get("values") or ()))))
        for entry in data.get("matchExpressions") or ()
    }
    return LabelSelector(tuple(sorted((data.get("matchLabels") or {}).items())), tuple(sorted(requirements)))


def _selector_faults(data: Mapping[Any, Any]) -> Iterator[str]:
    yield from (f'unknown field "{field}"' for field in data if field not in SELECTOR_FIELDS)
    yield from _label_faults(data.get("matchLabels"))
    expressions = data.get("matchExpressions") or ()
    if not isinstance(expressions, list | tuple):
        yield "matchExpressions must be a list"
        return
    for index, entry in enumerate(expressions):
        yield from (f"matchExpressions[{index}]{fault}" for fault in _requirement_faults(entry))


def _label_faults(labels: object) -> Iterator[str]:
    if labels is None:
        return
    if not isinstance(labels, Mapping):
        yield "matchLabels must be a mapping"
        return
    for key, value in labels.items():
        if not isinstance(key, str) or not isinstance(value, str):
            yield f"matchLabels must map strings to strings, not {key!r} to {value!r}"
            continue
        yield from (f"matchLabels: {fault}" for fault in (label_key_fault(key), label_value_fault(value)) if fault)


def _requirement_faults(entry: object) -> Iterator[str]:
    if not isinstance(entry, Mapping):
        yield " must be a mapping"
        return
    yield from (f' has an unknown field "{field}"' for field in entry if field not in _REQUIREMENT_FIELDS)
    key, operator = entry.get("key"), entry.get("operator")
    fault = label_key_fault(key) if isinstance(key, str) else "must be a string"
    if fault:
        yield f".key: {fault}"
    if operator not in OPERATORS:
        yield f'.operator must be one of {", ".join(OPERATORS)}, not "{operator}"'
        return
    yield from _values_faults(str(operator), entry.get("values"))


def _values_faults(operator: str, values: object) -> Iterator[str]:
    if values is not None and not isinstance(values, list | tuple):
        yield ".values must be a list"
        return
    if bool(values) != (operator in _WITH_VALUES):
        wanted = "must not be empty" if operator in _WITH_VALUES else "must be empty"
        yield f".values {wanted} for operator {operator}"
        return
    for value in values or ():
        fault = label_value_fault(value) if isinstance(value, str) else f"must hold strings, not {value!r}"
        if fault:
            yield f".values: {fault}"
