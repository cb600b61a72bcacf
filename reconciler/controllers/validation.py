"""Readers that validate the fields of an object, and functions for validation messages.

Each error becomes a finding with its line, and reading continues. Therefore, one pass reports all errors of an object.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Protocol, Self

from reconciler.api.base import FieldMessage
from reconciler.catalog.catalog import ConfigObject
from reconciler.krm.field_text import describe_value, format_path, suggest_name
from reconciler.krm.findings import Finding, FindingCode, SourceLocation
from reconciler.krm.selectors import LabelRequirement, LabelSelector
from reconciler.krm.yaml import DataPath
from reconciler.lazy_dataclasses import dataclass, field

_MAX_VALUES = 8


def create_field_findings(
    manifest: ConfigObject,
    messages: Iterable[FieldMessage],
    code: FindingCode,
    codes: Mapping[str, FindingCode] = MappingProxyType({}),
) -> tuple[Finding, ...]:
    """Return a finding for each message about a field of the manifest.

    Args:
        code: The finding code for messages that do not name one.
        codes: The finding codes that messages can name, by name.
    """
    return tuple(
        (codes[message.code] if message.code else code).finding(message.text, manifest.location_of(message.path))
        for message in messages
    )


@dataclass
class FieldFindings:
    """The findings of one object, in reading order. `code` is the finding code if `add` receives no other code."""

    where_at: Callable[[DataPath], SourceLocation]
    code: FindingCode
    findings: list[Finding] = field(default_factory=list)

    def add(self, path: DataPath, message: str, code: FindingCode | None = None) -> None:
        """Add a finding about a field. Its text is the path and the message, e.g. "spec.kind must be a string"."""
        self.findings.append((code or self.code).finding(f"{format_path(path)} {message}", self.where_at(path)))


class FieldReader:
    """Reader of one mapping. A null value is treated as an absent field.

    If a field has a wrong type, the reader adds an error and treats the field as absent. A field that is not in `known`
    is an error, unless `known` is None. If `quotes` is False, no message contains a value or field name of this mapping
    or of nested mappings, because they may contain secrets.
    """

    def __init__(
        self, value: object, path: DataPath, faults: FieldFindings, known: Sequence[str] | None, *, quotes: bool = True
    ) -> None:
        self.path = path
        self.faults = faults
        self.quotes = quotes
        self.data: Mapping[Any, Any] = value if isinstance(value, Mapping) else {}
        if value is not None and not isinstance(value, Mapping):
            faults.add(path, f"must be a mapping{self._format_found_value(value)}")
        if known is not None:
            self._refuse_unknown(known)

    def _refuse_unknown(self, known: Sequence[str]) -> None:
        allowed = ", ".join(known)
        for name in map(str, (name for name in self.data if name not in known)):
            suggestion = suggest_name(name, known)
            if self.quotes or suggestion:
                self.add_finding(name, f"is unknown; allowed are {allowed}{suggestion}")
            else:
                self.faults.add(self.path, f"must have no other fields than {allowed}")

    def _format_found_value(self, value: object) -> str:
        return f", not {describe_value(value)}" if self.quotes else ""

    def add_finding(self, name: str, message: str, code: FindingCode | None = None) -> None:
        """Add a finding about the field `name` of this mapping."""
        self.faults.add((*self.path, name), message, code)

    def has_value(self, name: str) -> bool:
        """Return whether a field has a value other than null."""
        return self.data.get(name) is not None

    def read_text(self, name: str, *, required: bool = False) -> str:
        """Return the string in a field. Return "" if the field is absent. A required string must not be empty."""
        value = self.data.get(name)
        if value is not None and not isinstance(value, str):
            self.add_finding(name, f"must be a string{self._format_found_value(value)}: quote it")
        elif required and not value:
            self.add_finding(name, "must be a string that is not empty")
        return value if isinstance(value, str) else ""

    def read_choice(self, name: str, allowed: Sequence[str], default: str = "", code: FindingCode | None = None) -> str:
        """Return one of the allowed strings. Return the default if the value is absent, empty or not allowed."""
        value = self.data.get(name)
        if value in (None, "") and default:
            return default
        if isinstance(value, str) and value in allowed:
            return value
        self.add_finding(name, f"must be one of {', '.join(allowed)}{self._format_found_value(value)}", code)
        return default or allowed[0]

    def read_mapping(self, name: str, known: Sequence[str] | None, *, quotes: bool = True) -> Self:
        """Return a reader of the mapping in a field. If the field is absent, the mapping is empty.

        If `quotes` is False and the value is not a mapping, the message does not contain the value.
        """
        value = self.data.get(name)
        if not quotes and value is not None and not isinstance(value, Mapping):
            self.add_finding(name, "must be a mapping")
            value = None
        return type(self)(value, (*self.path, name), self.faults, known, quotes=self.quotes)

    def iterate_items(self, name: str) -> Iterator[tuple[DataPath, Any]]:
        """Yield the path and the value of each item of a list. Yield nothing if the list is absent."""
        value = self.data.get(name)
        if value is None:
            return
        if not isinstance(value, list):
            self.add_finding(name, f"must be a list{self._format_found_value(value)}")
            return
        for index, item in enumerate(value):
            yield (*self.path, name, index), item

    def iterate_mappings(self, name: str, known: Sequence[str] | None) -> Iterator[Self]:
        """Yield a reader for each item of a list of mappings."""
        for path, item in self.iterate_items(name):
            if isinstance(item, Mapping):
                yield type(self)(item, path, self.faults, known, quotes=self.quotes)
            else:
                self.faults.add(path, f"must be a mapping{self._format_found_value(item)}")

    def read_texts(self, name: str) -> tuple[str, ...]:
        """Return the strings of a list. Return () if the list is absent."""
        texts = []
        for path, item in self.iterate_items(name):
            if isinstance(item, str):
                texts.append(item)
            else:
                self.faults.add(path, f"must be a string{self._format_found_value(item)}: quote it")
        return tuple(texts)

    def read_string_map(self, name: str) -> dict[str, str]:
        """Return the mapping of strings to strings in a field. Return {} if the field is absent."""
        value, strings = self.data.get(name), {}
        if value is not None and not isinstance(value, Mapping):
            self.add_finding(name, f"must be a mapping{self._format_found_value(value)}")
            return {}
        for key, text in (value or {}).items():
            if isinstance(text, str):
                strings[key] = text
            else:
                path = (*self.path, name, key) if self.quotes else (*self.path, name)
                self.faults.add(path, f"must be a string{self._format_found_value(text)}: quote it")
        return strings

    def require(self, name: str, requirement: str, code: FindingCode | None = None) -> None:
        """Add the finding "must be <requirement>" if a field has no value."""
        if not self.has_value(name):
            self.add_finding(name, f"must be {requirement}", code)


class AnyLabelRequirement(Protocol):
    """One requirement for labels. It can be from any type of selector."""

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
        """The label values with which the operator compares."""
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

    It names the first requirement that no object meets, and the labels that exist.

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
            yield f"no {noun} has a label {requirement.key}{suggest_name(requirement.key, keys)}"
        elif requirement.operator == "In" and not {*requirement.values} & {*existing_values}:
            required = " or ".join(f"{requirement.key}={value}" for value in requirement.values)
            suggestion = (
                suggest_name(requirement.values[0], existing_values)
                if len(requirement.values) == 1 < len(existing_values)
                else ""
            )
            yield f"no {noun} has {required}; existing values: {_format_values(existing_values)}{suggestion}"
        elif requirement.operator == "DoesNotExist" and all(requirement.key in labels for labels in label_sets):
            yield f"every {noun} has a label {requirement.key}"


def _format_values(values: Sequence[str]) -> str:
    quoted = [value or '""' for value in values[:_MAX_VALUES]]
    more = f" and {len(values) - _MAX_VALUES} more" if len(values) > _MAX_VALUES else ""
    return f"{', '.join(quoted)}{more}"
