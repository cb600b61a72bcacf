"""The types of KRM functions: resources and a configuration are the input, resources and results are the output.

The module also contains the access to fields and configurations that many functions need.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, wraps
from typing import Any, Literal, Protocol

from reconciler.krm.isolation import ExpectedError
from reconciler.krm.yaml import DataPath, Document
from reconciler.memory import cached
from reconciler.packages.functions.limits import (
    FunctionBudget,
    LimitError,
    estimate_text_bytes,
    estimate_value_bytes,
    find_depth_error,
)
from reconciler.packages.kptfile import Profile, format_field_path
from reconciler.packages.parsing import build_document, edit_document
from reconciler.packages.resource import KrmResource

ResultSeverity = Literal["error", "warning", "info"]
FunctionConfig = Mapping[str, Any]
FunctionVersion = tuple[int, int, int]
# Large enough for the changes of one function in all packages in progress.
_MAX_CACHED_CHANGES = 4096


class FieldError(ValueError):
    """A field cannot be set. The message contains the field and the reason."""


@dataclass(frozen=True)
class FunctionResult:
    """One result of a function. `file` and `index` are the location of the document below the root package."""

    message: str
    severity: ResultSeverity = "info"
    resource: tuple[str, str, str, str] | None = None
    """apiVersion, kind, namespace, name."""
    field: str = ""
    current: Any = None
    proposed: Any = None
    file: str = ""
    index: int = 0
    tags: tuple[tuple[str, str], ...] = ()

    def as_data(self) -> dict[str, Any]:
        """Return the result in the format of a ResourceList."""
        data: dict[str, Any] = {"message": self.message, "severity": self.severity}
        data |= {"resourceRef": self._build_reference()} if self.resource else {}
        data |= {"field": self._build_field()} if self.field else {}
        data |= {"file": {"path": self.file} | ({"index": self.index} if self.index else {})} if self.file else {}
        return data | ({"tags": dict(self.tags)} if self.tags else {})

    def _build_reference(self) -> dict[str, str]:
        assert self.resource is not None
        names = ("apiVersion", "kind", "namespace", "name")
        return {name: value for name, value in zip(names, self.resource, strict=True) if value}

    def _build_field(self) -> dict[str, Any]:
        values = {"currentValue": self.current, "proposedValue": self.proposed}
        return {"path": self.field} | {name: value for name, value in values.items() if value is not None}


@dataclass(frozen=True, eq=False)
class Item(KrmResource):
    """A resource as functions see it: plain data with an optional source document.

    `id` identifies a resource that the function received; None is a new resource. `package`, `path` and `index` have
    the meaning of PackageResource. A new resource may have path "" and index -1 and then gets a default location.
    `data` is shared and read-only: to change it, take a `copy` and return `item.with_data(copy)`.
    """

    package: str
    path: str
    index: int
    data: Any = field(repr=False)
    id: int | None = None
    base: Document | None = field(default=None, repr=False)

    @property
    def file(self) -> str:
        """The file below the root package; "" for a new resource without a location."""
        return f"{self.package}/{self.path}" if self.package and self.path else self.path

    @cached_property
    def document(self) -> Document:
        """The resource as text. Unchanged parts keep the comments, order and quotes of the file."""
        if self.base is None:
            return build_document(self.data)
        return self.base if self.data is self.base.data else edit_document(self.base, self.data)

    def copy(self) -> Any:
        """Return a copy of the data that may be changed."""
        return copy_plain_data(self.data)

    def with_data(self, data: Any) -> Item:
        """Return the item with other data."""
        return replace(self, data=data)

    def with_shared_data(self, data: Any) -> Item:
        """Return the item with other data.

        Equal changes of an item return the same object, so that clusters share its text.
        """
        # Compare by `repr`. In contrast to ==, it distinguishes 1 from 1.0 and True, and orders of keys.
        return _replace_data(_Change(self, repr(data), data))

    def with_values(self, values: Iterable[tuple[DataPath, Any]]) -> Item:
        """Return the item with values set at these paths. Missing mappings on the way are created.

        Equal texts that are set in one item return the same object, which clusters share. Raises FieldError if a value
        on the way is not a mapping.
        """
        changed_values = [(path, value) for path, value in values if get_value_at(self.data, path, _ABSENT) != value]
        if not changed_values:
            return self
        # Only strings are compared exactly by ==. For example, 1 and True are equal.
        if all(value.__class__ is str for _, value in changed_values):
            return _set_texts(self, tuple(changed_values))
        return self.with_replaced_values(changed_values)

    def with_replaced_values(self, values: Iterable[tuple[DataPath, Any]]) -> Item:
        """Return the item with these values set, even if they are equal to the current values. Raises FieldError."""
        data = self.copy()
        try:
            for path, value in values:
                set_value_at(data, path, value)
        except FieldError as error:
            raise FieldError(f"{self.file}: {self.kind} {self.name}: {error}") from None
        return self.with_data(data)

    def with_comment(self, path: DataPath, comment: str | None) -> Item:
        """Return the item with another line comment at a path, with the leading "# "."""
        document = self.document.with_comment(path, comment)
        return replace(self, data=document.data, base=document)

    def with_location(self, path: str, index: int) -> Item:
        """Return the item at another path and index."""
        return self if (path, index) == (self.path, self.index) else replace(self, path=path, index=index)

    def create_result(
        self, message: str, severity: ResultSeverity = "info", path: DataPath | str = (), **values: Any
    ) -> FunctionResult:
        """Return a result about a field of this item."""
        field_name = path if isinstance(path, str) else format_field_path(path)
        return FunctionResult(message, severity, field=field_name, file=self.file, index=self.index, **values)


@dataclass(frozen=True)
class FunctionOutput:
    """Output of a function: the remaining resources in any order, results, and whether the function failed."""

    items: tuple[Item, ...]
    results: tuple[FunctionResult, ...] = ()
    has_failed: bool = False
    log: str = ""
    """The error output of the function."""
    exit_code: int = 0
    error: str = ""
    """The reason why the function failed or its output was rejected. Empty if a result contains the reason."""


@dataclass(frozen=True)
class FunctionContext:
    """The environment of a function call."""

    profile: Profile = "safe"
    version: FunctionVersion = (0, 0, 0)
    package: str = ""
    """The package whose pipeline runs, relative to the root."""
    budget: FunctionBudget = field(default_factory=FunctionBudget, compare=False, repr=False)
    """The remaining budget of this render. Functions with cached results must charge it outside of the cache."""


class KrmFunction(Protocol):
    """A pure function of its arguments: deterministic and without side effects.

    It never raises an exception for bad input.
    """

    def __call__(
        self, items: Sequence[Item], config: FunctionConfig | None, context: FunctionContext
    ) -> FunctionOutput:
        """Return the remaining resources and the results.

        `config` is None if the pipeline entry has no configuration.
        """
        ...


class InterruptedFunctionError(ExpectedError):
    """The environment interrupted a function or prevented its start, for example a timeout or a signal.

    This is not an error of the function. The same call is repeated later, and until then nothing is written.
    """


@dataclass(frozen=True)
class _Change:
    item: Item
    representation: str
    data: Any = field(compare=False)


@cached(_MAX_CACHED_CHANGES)
def _replace_data(change: _Change) -> Item:
    return change.item.with_data(change.data)


@cached(_MAX_CACHED_CHANGES)
def _set_texts(item: Item, values: tuple[tuple[DataPath, str], ...]) -> Item:
    return item.with_replaced_values(values)


def report_errors_as_failure(function: KrmFunction) -> KrmFunction:
    """Decorate a function so that FieldError and LimitError become a failed output."""

    @wraps(function)
    def wrapper(items: Sequence[Item], config: FunctionConfig | None, context: FunctionContext) -> FunctionOutput:
        try:
            return function(items, config, context)
        except (FieldError, LimitError) as error:
            return create_failure(items, str(error))

    return wrapper


def charge_values(
    values: Iterable[tuple[DataPath, Any]], item: Item, budget: FunctionBudget
) -> list[tuple[DataPath, Any]]:
    """Charge the YAML size of values before they are set in an item, and return the values. Raises LimitError."""
    charged_values = []
    for path, value in values:
        size = sum(estimate_text_bytes(part) for part in path[-1:] if isinstance(part, str)) + estimate_value_bytes(
            value, len(path)
        )
        budget.charge_steps(4 + len(path))
        if error := find_depth_error(value, len(path)):
            raise LimitError(f"{item.file}: {item.kind} {item.name}: {format_field_path(path)[:100]}: {error}")
        if size > budget.remaining_bytes:
            # The message is expensive, so that it is created only for an error.
            budget.charge_output(
                size, f"{item.file}: {item.kind} {item.name}: {format_field_path(path)}", str(value)[:100]
            )
        budget.charge_output(size)
        charged_values.append((path, value))
    return charged_values


def fill_placeholders(template: str, values: Iterable[tuple[str, str]], budget: FunctionBudget, value_name: str) -> str:
    """Replace placeholders in a text, one after the other.

    Raises LimitError if a replacement makes the text too large.
    """
    for placeholder, value in values:
        budget.charge_scan(len(template))
        if placeholder not in template:
            continue
        size = estimate_text_bytes(template) + template.count(placeholder) * max(
            0, estimate_text_bytes(value) - len(placeholder)
        )
        if size > budget.remaining_bytes:
            budget.charge_output(size, value_name, template)
        template = template.replace(placeholder, value)
    return template


def create_failure(items: Sequence[Item], message: str) -> FunctionOutput:
    """Return the output of a function that fails with one error."""
    return FunctionOutput(tuple(items), (FunctionResult(message, "error"),), has_failed=True)


def copy_plain_data(data: Any) -> Any:
    """Return a deep copy of plain data; scalars are shared."""
    if isinstance(data, dict):
        return {key: copy_plain_data(value) for key, value in data.items()}
    return [copy_plain_data(value) for value in data] if isinstance(data, list) else data


def get_value_at(data: Any, path: DataPath, default: Any = None) -> Any:
    """Return the value at a path, or the default if the path does not exist."""
    for part in path:
        in_list = isinstance(data, list) and isinstance(part, int) and 0 <= part < len(data)
        if in_list or (isinstance(data, dict) and part in data):
            data = data[part]
        else:
            return default
    return data


def set_value_at(data: Any, path: DataPath, value: Any) -> None:
    """Set the value at a path of plain data in place. Missing and null mappings on the way are created."""
    for depth, part in enumerate(path):
        is_settable = isinstance(data, dict) if isinstance(part, str) else isinstance(data, list) and part < len(data)
        if not is_settable:
            parent = format_field_path(path[:depth]) or "a resource"
            raise FieldError(
                f"{parent} must be a {'mapping' if isinstance(part, str) else 'list'}, not {repr(data)[:80]}"
            )
        if depth == len(path) - 1:
            data[part] = value
        elif isinstance(data, dict) and data.get(part) is None:
            data[part] = {}
        data = data[part]


def format_scalar(value: Any) -> str | None:
    """Return a scalar in YAML notation, or None for a mapping or a sequence."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict | list):
        return None
    return "null" if value is None else str(value)


def quote_as_json(text: str) -> str:
    """Return text in double quotes, as the messages of kpt's functions do."""
    return json.dumps(text, ensure_ascii=False)


def read_string_map(data: Any) -> dict[str, str]:
    """Return the scalars of a mapping as strings. Other values are left out."""
    texts = {key: format_scalar(value) for key, value in data.items()} if isinstance(data, Mapping) else {}
    return {str(key): text for key, text in texts.items() if text is not None}


def read_config_strings(data: Any, field: str, *, strict: bool = False) -> dict[str, str]:
    """Return a mapping of strings from a function's configuration. Raises FieldError for other types.

    kpt's functions read such a mapping in one of two ways: some accept every scalar, others (`strict`) only strings. A
    missing mapping is empty.
    """
    if data is None:
        return {}
    if not isinstance(data, Mapping):
        raise FieldError(f"the configuration's {field} must be a mapping of strings, not {repr(data)[:80]}")
    for key, value in data.items():
        if isinstance(value, dict | list) or (strict and not isinstance(value, str)):
            hint = "" if isinstance(value, dict | list) else "; put it in quotes"
            raise FieldError(
                f"the configuration's {field}.{str(key)[:80]} must be a string, not {repr(value)[:80]}{hint}"
            )
    return read_string_map(data)


def read_config_fields(config: FunctionConfig, *names: str) -> dict[str, str]:
    """Return string fields of a configuration; missing fields are "". Raises FieldError for other types."""
    fields = {name: "" if config.get(name) is None else config[name] for name in names}
    for name, value in fields.items():
        if not isinstance(value, str):
            hint = "" if isinstance(value, dict | list) else "; put it in quotes"
            raise FieldError(f"the configuration's {name} must be a string, not {repr(value)[:80]}{hint}")
    return fields


_ABSENT = object()
