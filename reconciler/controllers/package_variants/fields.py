"""Reader for the fields of PackageVariants. It collects error texts and finds the source location of each text."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from reconciler.catalog.catalog import ConfigObject
from reconciler.krm.findings import Finding, FindingCode

_FIELD_PATH = re.compile(r'\b(?:metadata|spec)\b(?:\.[A-Za-z]+|\[\d+\])*|\bapiVersion\b|(?<=^unknown field ")[A-Za-z]+')
_STEP = re.compile(r"([A-Za-z]+)|\[(\d+)\]")


@dataclass
class VariantFieldErrors:
    """Errors and deprecation warnings of one object. Errors are in reading order, and unknown fields are last."""

    errors: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def add(self, *messages: str) -> None:
        """Add error messages."""
        self.errors += messages

    def warn(self, message: str) -> None:
        """Add a warning about deprecated notation."""
        self.warnings.append(message)

    def list_all(self) -> tuple[str, ...]:
        """Return all errors. The errors about unknown fields are last."""
        return (*self.errors, *self.unknown)


class VariantFieldReader:
    """Reader of one mapping at a path such as `spec.targets[0].template`. A null value is treated as an absent field.

    If a field has a wrong type, the reader adds an error and treats the field as absent.
    """

    def __init__(self, path: str, data: object, errors: VariantFieldErrors) -> None:
        self.path = path
        self.errors = errors
        self.data: Mapping[Any, Any] = data if isinstance(data, Mapping) else {}
        if data is not None and not isinstance(data, Mapping):
            errors.add(f"{path} must be a mapping")

    def get_path(self, name: str) -> str:
        """Return the full path of a field, e.g. `spec.upstream.repo` for the field `repo` of `spec.upstream`."""
        return f"{self.path}.{name}" if self.path else name

    def has_value(self, name: str) -> bool:
        """Return whether a field has a value other than null."""
        return self.data.get(name) is not None

    def get_value(self, name: str) -> Any:
        """Return a field's value without checks. Return None if the field is absent."""
        return self.data.get(name)

    def read_text(self, name: str) -> str:
        """Return the string in a field. Return "" if the field is absent or is not a string."""
        value = self.data.get(name)
        if value is None or isinstance(value, str):
            return value or ""
        self.errors.add(f"{self.get_path(name)} must be a string, not {format_json_value(value)}")
        return ""

    def read_optional_text(self, name: str) -> str | None:
        """Return the string in a field. Return None if the field is absent. Use this method if "" and None differ."""
        return self.read_text(name) if self.has_value(name) else None

    def read_choice(self, name: str, allowed: Sequence[str], error_message: str = "") -> str | None:
        """Return one of the allowed strings. Return None if the value is absent, empty or not allowed."""
        value = self.data.get(name)
        for choice in allowed:
            if value == choice:
                return choice
        if value not in (None, ""):
            default_message = (
                f"{self.get_path(name)} can only be one of {', '.join(allowed)}, not {format_json_value(value)}"
            )
            self.errors.add(error_message or default_message)
        return None

    def read_mapping(self, name: str) -> VariantFieldReader:
        """Return a reader of the mapping in a field. If the field is absent, the mapping is empty."""
        return VariantFieldReader(self.get_path(name), self.data.get(name), self.errors)

    def read_string_map(self, name: str) -> dict[str, str]:
        """Return the mapping of strings to strings in a field. Return {} if the field is absent."""
        strings = {}
        for key, value in self.read_mapping(name).data.items():
            if isinstance(key, str) and isinstance(value, str):
                strings[key] = value
            else:
                self.errors.add(
                    f"{self.get_path(name)} must map strings to strings,"
                    f" not {format_json_value(key)} to {format_json_value(value)}"
                )
        return strings

    def iterate_items(self, name: str) -> Iterator[tuple[str, Any]]:
        """Yield the path and the value of each item of a list. Yield nothing if the list is absent."""
        value = self.data.get(name)
        if value is None:
            return
        if not isinstance(value, list | tuple):
            self.errors.add(f"{self.get_path(name)} must be a list")
            return
        for index, item in enumerate(value):
            yield f"{self.get_path(name)}[{index}]", item

    def iterate_mappings(self, name: str) -> Iterator[VariantFieldReader]:
        """Yield a reader for each item of a list of mappings."""
        for path, item in self.iterate_items(name):
            yield VariantFieldReader(path, {} if item is None else item, self.errors)

    def read_texts(self, name: str) -> tuple[str, ...]:
        """Return the strings of a list. Add an error for each item that is not a string."""
        strings = []
        for path, item in self.iterate_items(name):
            if isinstance(item, str):
                strings.append(item)
            else:
                self.errors.add(f"{path} must be a string, not {format_json_value(item)}")
        return tuple(strings)

    def convert_to_list(self, name: str) -> VariantFieldReader:
        """Return a reader in which the field `name` is a list. A single mapping becomes a list with one item and a
        warning.
        """
        if not isinstance(self.data.get(name), Mapping):
            return self
        self.errors.warn(f"{self.get_path(name)} is a mapping and is read as a list with one item")
        return self.replace_fields({name: [self.data[name]]})

    def replace_fields(self, changes: Mapping[str, Any]) -> VariantFieldReader:
        """Return a reader with changed fields. A change to None removes the field."""
        data = {name: value for name, value in {**self.data, **changes}.items() if value is not None}
        return VariantFieldReader(self.path, data, self.errors)

    def report_unknown_fields(self, *known: str) -> None:
        """Add an error for every field whose name is not in `known`."""
        unknown = (name for name in self.data if name not in known)
        self.errors.unknown += [
            f'unknown field "{self.get_path(str(name))}" (allowed: {", ".join(known)})' for name in unknown
        ]


def format_json_value(value: object) -> str:
    """Return a value as compact JSON with sorted keys."""
    return json.dumps(
        _convert_keys_to_text(value), sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=str
    )


def _convert_keys_to_text(value: object) -> object:
    if isinstance(value, Mapping):
        return {str(key): _convert_keys_to_text(item) for key, item in value.items()}
    return [_convert_keys_to_text(item) for item in value] if isinstance(value, list | tuple) else value


def create_field_findings(manifest: ConfigObject, texts: Iterable[str], code: FindingCode) -> tuple[Finding, ...]:
    """Return one finding for each text. Its location is the field that the text names."""
    return tuple(create_field_finding(manifest, text, code) for text in texts)


def create_field_finding(manifest: ConfigObject, text: str, code: FindingCode, field: str = "") -> Finding:
    """Return a finding with this text and the location of the field that the text names.

    If the text names no field, use the location of `field`. If `field` is empty, use the location of the object.
    """
    field_match = _FIELD_PATH.search(text)
    path = tuple(_parse_path(field_match[0] if field_match else field))
    return code.finding(text, manifest.location_of(path) if path else manifest.location)


def _parse_path(path: str) -> Iterator[str | int]:
    for name, index in _STEP.findall(path):
        yield name or int(index)
