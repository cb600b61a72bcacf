"""The types of KRM functions, which convert resources and a configuration into resources and results.

The module also contains code that many functions use to read and set fields and to read configurations.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, wraps
from typing import Any, Literal, Protocol, TypeVar

from reconciler.api.base import read_model
from reconciler.api.functions import FunctionConfigObject
from reconciler.api.profile import Profile
from reconciler.catalog.files import FileTree
from reconciler.krm.field_text import format_path
from reconciler.krm.internal_errors import ExpectedError
from reconciler.krm.yaml import DataPath, Document
from reconciler.lazy_dataclasses import dataclass, field, replace
from reconciler.memory import cached
from reconciler.packages.functions.limits import (
    FunctionBudget,
    LimitError,
    estimate_text_bytes,
    estimate_value_bytes,
    find_depth_error,
)
from reconciler.packages.parsing import build_document, edit_document
from reconciler.packages.resource import KrmResource

ResultSeverity = Literal["error", "warning", "info"]
FunctionConfig = Mapping[str, Any]
ConfigModel = TypeVar("ConfigModel", bound=FunctionConfigObject)
FunctionVersion = tuple[int, int, int]
# Maximum size of each cache of changed items. The size is sufficient for all packages that are rendered at the same
# time.
_MAX_CACHED_CHANGES = 4096


class FieldError(ValueError):
    """A field cannot be set or read. The message contains the field and the reason."""


@dataclass(frozen=True)
class FunctionResult:
    """One result of a function: a message for the user.

    `file` is the path relative to the root package, and `index` is the position of the document in this file.
    """

    message: str
    severity: ResultSeverity = "info"
    resource: tuple[str, str, str, str] | None = None
    """The resource of the result, as (apiVersion, kind, namespace, name)."""
    field: str = ""
    current: Any = None
    proposed: Any = None
    file: str = ""
    index: int = 0
    tags: tuple[tuple[str, str], ...] = ()

    def as_data(self) -> dict[str, Any]:
        """Return the result as a mapping in the format of `results` in a ResourceList."""
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
    """A resource that a function receives or returns.

    Attributes:
        package: The path of the package, relative to the root package.
        path: The path of the file, relative to the package. "" if a new resource has no location yet.
        index: The position of the document in the file. -1 if a new resource has no location yet.
        data: The content of the resource. Do not change this data. Change a `copy`, and return `item.with_data(copy)`.
        id: Identifies a resource that the function received. None for a new resource.
        base: The document from which the resource was read. None for a new resource.
    """

    package: str
    path: str
    index: int
    data: Any = field(repr=False)
    id: int | None = None
    base: Document | None = field(default=None, repr=False)

    @property
    def file(self) -> str:
        """The path of the file, relative to the root package. "" for a new resource without a location."""
        return f"{self.package}/{self.path}" if self.package and self.path else self.path

    @cached_property
    def document(self) -> Document:
        """The resource as a YAML document. Unchanged parts keep the comments, order and quotes of the file."""
        if self.base is None:
            return build_document(self.data)
        return self.base if self.data is self.base.data else edit_document(self.base, self.data)

    def copy(self) -> Any:
        """Return a deep copy of `data`, which the caller can change."""
        return copy_plain_data(self.data)

    def with_data(self, data: Any) -> Item:
        """Return the item with `data` as its content."""
        return replace(self, data=data)

    def with_shared_data(self, data: Any) -> Item:
        """Return the item with `data` as its content.

        The result is cached by item and data, so that packages of several clusters share one Python object.
        """
        # Use `repr` in the cache key instead of ==, because 1 == True == 1.0, and == ignores the order of keys.
        return _replace_data(_Change(self, repr(data), data))

    def with_values(self, values: Iterable[tuple[DataPath, Any]]) -> Item:
        """Set values at paths. Missing mappings on these paths are created. Return the changed item.

        If all changed values are strings, the result is cached, so that packages of several clusters share one Python
        object.

        Raises:
            FieldError: A value on a path is not a mapping.
        """
        changed_values = [(path, value) for path, value in values if get_value_at(self.data, path, _ABSENT) != value]
        if not changed_values:
            return self
        # Use the cache only for strings, because the cache compares values with ==, and 1 == True in Python.
        if all(value.__class__ is str for _, value in changed_values):
            return _set_texts(self, tuple(changed_values))
        return self.with_replaced_values(changed_values)

    def with_replaced_values(self, values: Iterable[tuple[DataPath, Any]]) -> Item:
        """Set values at paths. Values that are equal to the current values are written too. Return the changed item.

        Raises:
            FieldError: A value on a path is not a mapping.
        """
        data = self.copy()
        try:
            for path, value in values:
                set_value_at(data, path, value)
        except FieldError as error:
            raise FieldError(f"{self.file}: {self.kind} {self.name}: {error}") from None
        return self.with_data(data)

    def with_comment(self, path: DataPath, comment: str | None) -> Item:
        """Set the line comment of the field at `path`. The comment starts with "# ". None removes the comment."""
        document = self.document.with_comment(path, comment)
        return replace(self, data=document.data, base=document)

    def with_location(self, path: str, index: int) -> Item:
        """Return the item with a new file path and a new position in the file."""
        return self if (path, index) == (self.path, self.index) else replace(self, path=path, index=index)

    def create_result(
        self, message: str, severity: ResultSeverity = "info", path: DataPath | str = (), **values: Any
    ) -> FunctionResult:
        """Return a function result about the field of this item at `path`."""
        field_name = path if isinstance(path, str) else format_path(path)
        return FunctionResult(message, severity, field=field_name, file=self.file, index=self.index, **values)


@dataclass(frozen=True)
class FunctionOutput:
    """The output of a function: the resources that it returned, its results, and whether it failed.

    The order of the resources has no effect.
    """

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
    """The values of a render that a function can read, in addition to its resources and its configuration."""

    profile: Profile = "safe"
    version: FunctionVersion = (0, 0, 0)
    package: str = ""
    """The path of the package whose pipeline runs, relative to the root package."""
    budget: FunctionBudget = field(default_factory=FunctionBudget, compare=False, repr=False)
    """The remaining budget of this render. A function must also subtract the cost of cached results."""
    files: FileTree = field(default_factory=FileTree, compare=False, repr=False)
    """The files of the root package before the render, including files without resources, such as charts."""
    charts: FileTree = field(default_factory=FileTree, compare=False, repr=False)
    """The charts that were downloaded for the functions of the package, in one folder per chart."""


class KrmFunction(Protocol):
    """A KRM function. It must be deterministic and without side effects.

    It must report invalid input in its output instead of raising an exception.
    """

    def __call__(
        self, items: Sequence[Item], config: FunctionConfig | None, context: FunctionContext
    ) -> FunctionOutput:
        """Return the resources after the function call, and the results of the function.

        `config` is None if the pipeline entry has no configuration.
        """
        ...


class InterruptedFunctionError(ExpectedError):
    """A function was interrupted or could not start, for example because of a timeout or a signal.

    The input did not cause this error. A later pass calls the function again. Until then, the package is not written.
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
    """Decorate a function so that it returns a failed output instead of raising FieldError or LimitError."""

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
    """Subtract the YAML size of values from the budget before they are set in an item. Return the values.

    Raises:
        LimitError: The budget is too small, or a value has too many nesting levels.
    """
    charged_values = []
    for path, value in values:
        size = sum(estimate_text_bytes(part) for part in path[-1:] if isinstance(part, str)) + estimate_value_bytes(
            value, len(path)
        )
        budget.charge_steps(4 + len(path))
        if error := find_depth_error(value, len(path)):
            raise LimitError(f"{item.file}: {item.kind} {item.name}: {format_path(path)[:100]}: {error}")
        if size > budget.remaining_bytes:
            # Format the field path only for the error message, because formatting is slow.
            budget.charge_output(size, f"{item.file}: {item.kind} {item.name}: {format_path(path)}", str(value)[:100])
        budget.charge_output(size)
        charged_values.append((path, value))
    return charged_values


def fill_placeholders(template: str, values: Iterable[tuple[str, str]], budget: FunctionBudget, value_name: str) -> str:
    """Replace each placeholder in `template` by its value, one after the other. Return the text.

    Raises:
        LimitError: The text would exceed the remaining budget.
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
    """Return the unchanged items and one error result as a failed output."""
    return FunctionOutput(tuple(items), (FunctionResult(message, "error"),), has_failed=True)


def copy_plain_data(data: Any) -> Any:
    """Return a deep copy of `data`. Immutable scalars are not copied."""
    if isinstance(data, dict):
        return {key: copy_plain_data(value) for key, value in data.items()}
    return [copy_plain_data(value) for value in data] if isinstance(data, list) else data


def get_value_at(data: Any, path: DataPath, default: Any = None) -> Any:
    """Return the value at `path` in `data`. Return `default` if the path does not exist."""
    for part in path:
        in_list = isinstance(data, list) and isinstance(part, int) and 0 <= part < len(data)
        if in_list or (isinstance(data, dict) and part in data):
            data = data[part]
        else:
            return default
    return data


def set_value_at(data: Any, path: DataPath, value: Any) -> None:
    """Set the value at `path` in `data`, in place. Missing or null values on the path become mappings.

    Raises:
        FieldError: A value on the path is not a mapping or list.
    """
    for depth, part in enumerate(path):
        is_settable = isinstance(data, dict) if isinstance(part, str) else isinstance(data, list) and part < len(data)
        if not is_settable:
            parent = format_path(path[:depth]) or "a resource"
            raise FieldError(
                f"{parent} must be a {'mapping' if isinstance(part, str) else 'list'}, but is {repr(data)[:80]}"
            )
        if depth == len(path) - 1:
            data[part] = value
        elif isinstance(data, dict) and data.get(part) is None:
            data[part] = {}
        data = data[part]


def format_scalar(value: Any) -> str | None:
    """Return the text of a scalar as in YAML, e.g. True -> "true". Return None for a mapping or a list."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict | list):
        return None
    return "null" if value is None else str(value)


def quote_as_json(text: str) -> str:
    """Return the text in double quotes with JSON escapes, as in the messages of the original kpt functions."""
    return json.dumps(text, ensure_ascii=False)


def read_string_map(data: Any) -> dict[str, str]:
    """Return the scalar values of a mapping as strings. Mappings and lists in this mapping are omitted."""
    texts = {key: format_scalar(value) for key, value in data.items()} if isinstance(data, Mapping) else {}
    return {str(key): text for key, text in texts.items() if text is not None}


def read_config_strings(data: Any, field: str, *, strict: bool = False) -> dict[str, str]:
    """Read a mapping of strings from the configuration of a function. Return an empty mapping if the mapping is
    missing.

    Args:
        field: The name of the mapping for error messages.
        strict: Whether to accept only strings as values. By default, all scalars are accepted and converted to strings.
            Some of the original kpt functions are strict, and others are not.

    Raises:
        FieldError: `data` is not a mapping, or a value has the wrong type.
    """
    if data is None:
        return {}
    if not isinstance(data, Mapping):
        raise FieldError(f"the configuration's {field} must be a mapping of strings, but is {repr(data)[:80]}")
    for key, value in data.items():
        if isinstance(value, dict | list) or (strict and not isinstance(value, str)):
            hint = "" if isinstance(value, dict | list) else "; put it in quotes"
            raise FieldError(
                f"the configuration's {field}.{str(key)[:80]} must be a string, but is {repr(value)[:80]}{hint}"
            )
    return read_string_map(data)


def read_config_object(model: type[ConfigModel], config: FunctionConfig) -> ConfigModel:
    """Return a function configuration as an object of `model`. The kind of such a configuration is not ConfigMap.

    Raises:
        FieldError: The value of a field is invalid.
    """
    result = read_model(model, config, model.templates)
    if result.model is None:
        raise FieldError(result.errors[0].text)
    return result.model


_ABSENT = object()
