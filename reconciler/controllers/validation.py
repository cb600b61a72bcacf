"""Findings about fields of an object, and messages about label requirements that no object meets."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Protocol

from reconciler.api.base import FieldMessage
from reconciler.catalog.catalog import ConfigObject
from reconciler.krm.field_text import quote_list, quote_value, suggest_name
from reconciler.krm.findings import Finding, FindingCode
from reconciler.krm.selectors import LabelRequirement, LabelSelector

_MAX_VALUES = 8


def create_field_findings(
    manifest: ConfigObject,
    messages: Iterable[FieldMessage],
    code: FindingCode,
    codes: Mapping[str, FindingCode] = MappingProxyType({}),
) -> tuple[Finding, ...]:
    """Return a finding for each message about a field of the manifest.

    Args:
        code: The finding code for messages without a code.
        codes: Maps the names of codes in messages to finding codes.
    """
    return tuple(
        (codes[message.code] if message.code else code).finding(message.text, manifest.location_of(message.path))
        for message in messages
    )


class AnyLabelRequirement(Protocol):
    """One requirement for labels, from any type of selector."""

    @property
    def key(self) -> str:
        """The key of the label."""
        ...

    @property
    def operator(self) -> str:
        """The operator, for example `In` or `Exists`."""
        ...

    @property
    def values(self) -> tuple[str, ...]:
        """The values with which the operator compares the label."""
        ...


def list_requirements(selector: LabelSelector) -> tuple[LabelRequirement, ...]:
    """Return all requirements of a selector, from `matchLabels` and `matchExpressions`."""
    return (*require_values(selector.match_labels), *selector.match_expressions)


def require_values(labels: Iterable[tuple[str, str]]) -> tuple[LabelRequirement, ...]:
    """Return one requirement for each label, with the operator `In` and the value of the label."""
    return tuple(LabelRequirement(key, "In", (value,)) for key, value in labels)


def explain_no_match(
    requirements: Sequence[AnyLabelRequirement], label_sets: Collection[Mapping[str, str]], noun: str
) -> str:
    """Return why no object matches all requirements. The text is the end of a sentence.

    The text names the first requirement that no object meets, and the existing labels.

    Args:
        label_sets: The labels of each candidate object.
        noun: The term for the candidates in the message, for example "Cluster of org".
    """
    if not label_sets:
        return f"there is no {noun}"
    missing = next(_find_missing(requirements, label_sets, noun), "")
    return missing or f"no {noun} fulfills all requirements"


def _find_missing(
    requirements: Sequence[AnyLabelRequirement], label_sets: Collection[Mapping[str, str]], noun: str
) -> Iterator[str]:
    for requirement in requirements:
        existing_values = sorted({labels[requirement.key] for labels in label_sets if requirement.key in labels})
        if requirement.operator in ("In", "Exists", "Gt", "Lt") and not existing_values:
            keys = sorted({key for labels in label_sets for key in labels})
            yield f"no {noun} has the label {quote_value(requirement.key)}{suggest_name(requirement.key, keys)}"
        elif requirement.operator == "In" and not {*requirement.values} & {*existing_values}:
            required = quote_list([f"{requirement.key}={value}" for value in requirement.values], " or ")
            suggestion = (
                suggest_name(requirement.values[0], existing_values)
                if len(requirement.values) == 1 < len(existing_values)
                else ""
            )
            yield f"no {noun} has the label {required}; existing values: {_format_values(existing_values)}{suggestion}"
        elif requirement.operator == "DoesNotExist" and all(requirement.key in labels for labels in label_sets):
            yield f'every {noun} has the label "{requirement.key}"'


def _format_values(values: Sequence[str]) -> str:
    quoted = [*map(quote_value, values[:_MAX_VALUES])]
    more = f" and {len(values) - _MAX_VALUES} more" if len(values) > _MAX_VALUES else ""
    return f"{', '.join(quoted)}{more}"
