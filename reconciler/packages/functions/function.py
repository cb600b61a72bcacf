"""What a function is: resources and a configuration in, resources and results out, nothing else (kpt.md 12, 13)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, wraps
from typing import Any, Literal, Protocol

from reconciler.caching import cached
from reconciler.krm.isolation import ExpectedError
from reconciler.krm.yaml import Document, Path
from reconciler.packages.functions.limits import (
    Budget,
    LimitError,
    depth_fault,
    text_bytes,
    value_bytes,
)
from reconciler.packages.kptfile import Profile, field_path
from reconciler.packages.parsing import edited_document, fresh_document
from reconciler.packages.resource import Described

ResultSeverity = Literal["error", "warning", "info"]
Config = Mapping[str, Any]
Version = tuple[int, int, int]
# what one function sets in the resources of the packages in flight
_REMEMBERED_CHANGES = 4096


class FieldError(ValueError):
    """A field cannot be set; the message says which and why."""


@dataclass(frozen=True)
class Result:
    """One thing a function says; `file` and `index` are the document's place below the root package."""

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
        """Return the result as it is written to YAML, in the wire format of kpt.md 12."""
        data: dict[str, Any] = {"message": self.message, "severity": self.severity}
        data |= {"resourceRef": self._reference()} if self.resource else {}
        data |= {"field": self._field()} if self.field else {}
        data |= {"file": {"path": self.file} | ({"index": self.index} if self.index else {})} if self.file else {}
        return data | ({"tags": dict(self.tags)} if self.tags else {})

    def _reference(self) -> dict[str, str]:
        assert self.resource is not None
        names = ("apiVersion", "kind", "namespace", "name")
        return {name: value for name, value in zip(names, self.resource, strict=True) if value}

    def _field(self) -> dict[str, Any]:
        values = {"currentValue": self.current, "proposedValue": self.proposed}
        return {"path": self.field} | {name: value for name, value in values.items() if value is not None}


@dataclass(frozen=True, eq=False)
class Item(Described):
    """A resource as functions see it: plain data over a document whose text is only touched when it must be.

    `id` ties it to what the function was given; None is a new resource. `package`, `path` and `index` are as in
    PackageResource; a new resource may leave path "" and index -1, and is given a place. `data` is shared and
    read-only: take a `copy`, change that, and return `item.with_data(copy)`.
    """

    package: str
    path: str
    index: int
    data: Any = field(repr=False)
    id: int | None = None
    base: Document | None = field(default=None, repr=False)

    @property
    def file(self) -> str:
        """The file below the root package; "" for a new resource without a place."""
        return f"{self.package}/{self.path}" if self.package and self.path else self.path

    @cached_property
    def document(self) -> Document:
        """The resource as text; comments, order and quoting of what did not change are those of the file."""
        if self.base is None:
            return fresh_document(self.data)
        return self.base if self.data is self.base.data else edited_document(self.base, self.data)

    def copy(self) -> Any:
        """Return the data, free to change."""
        return plain_copy(self.data)

    def with_data(self, data: Any) -> Item:
        """Return the item with other data."""
        return replace(self, data=data)

    def with_shared_data(self, data: Any) -> Item:
        """Return the item with other data, the very same for equal data: other clusters have its text already."""
        # unlike ==, the text of plain data tells 1 from 1.0 and True, and one order of keys from another
        return _with_data(_Change(self, repr(data), data))

    def with_values(self, values: Iterable[tuple[Path, Any]]) -> Item:
        """Return the item with values set at these paths, one after the other; missing mappings are made.

        Equal texts set in one item, which clusters share, are the same item. Raises FieldError where what stands on the
        way is no mapping.
        """
        changed = [(path, value) for path, value in values if value_at(self.data, path, _ABSENT) != value]
        if not changed:
            return self
        # other values may be equal and yet not the same, such as 1 and True
        if all(value.__class__ is str for _, value in changed):
            return _with_texts(self, tuple(changed))
        return self.with_set(changed)

    def with_set(self, changed: Iterable[tuple[Path, Any]]) -> Item:
        """Return the item with these values set, whatever stands there; raises FieldError as `with_values` does."""
        data = self.copy()
        try:
            for path, value in changed:
                set_at(data, path, value)
        except FieldError as error:
            raise FieldError(f"{self.file}: {self.kind} {self.name}: {error}") from None
        return self.with_data(data)

    def with_comment(self, path: Path, comment: str | None) -> Item:
        """Return the item with another line comment ("# …" included) at a path."""
        document = self.document.with_comment(path, comment)
        return replace(self, data=document.data, base=document)

    def moved(self, path: str, index: int) -> Item:
        """Return the item at another place."""
        return self if (path, index) == (self.path, self.index) else replace(self, path=path, index=index)

    def result(self, message: str, severity: ResultSeverity = "info", path: Path | str = (), **values: Any) -> Result:
        """Return a result about a field of this item."""
        shown = path if isinstance(path, str) else field_path(path)
        return Result(message, severity, field=shown, file=self.file, index=self.index, **values)


@dataclass(frozen=True)
class Output:
    """What a function returns: the resources that remain, in any order, what it says, and whether it failed."""

    items: tuple[Item, ...]
    results: tuple[Result, ...] = ()
    failed: bool = False
    log: str = ""
    """What the function printed."""
    exit_code: int = 0
    error: str = ""
    """Why it failed, or why what it returned is refused, where no result of its own says so."""


@dataclass(frozen=True)
class FunctionContext:
    """What a function may know besides its resources and its configuration."""

    profile: Profile = "safe"
    version: Version = (0, 0, 0)
    package: str = ""
    """The package whose pipeline runs, relative to the root."""
    budget: Budget = field(default_factory=Budget, compare=False, repr=False)
    """What is left of the limits of this render. Functions whose results are remembered must charge it outside."""


class Function(Protocol):
    """A pure function of its arguments: deterministic, without input or output, and never raising for bad input."""

    def __call__(self, items: Sequence[Item], config: Config | None, context: FunctionContext) -> Output:
        """Return the resources that remain and what there is to say; `config` is None where none is given."""
        ...


class InterruptedFunctionError(ExpectedError):
    """The world ended a function, or kept it from starting: a time-out, a kill, an engine that cannot be reached.

    That is no finding about the function: the same call is to be tried again, and until then nothing is written
    (design 10.19).
    """


@dataclass(frozen=True)
class _Change:
    item: Item
    shown: str
    data: Any = field(compare=False)


@cached(_REMEMBERED_CHANGES)
def _with_data(change: _Change) -> Item:
    return change.item.with_data(change.data)


@cached(_REMEMBERED_CHANGES)
def _with_texts(item: Item, changed: tuple[tuple[Path, str], ...]) -> Item:
    return item.with_set(changed)


def reports_faults(function: Function) -> Function:
    """Return the function with a field that cannot be set as its failure, not as an exception."""

    @wraps(function)
    def reporting(items: Sequence[Item], config: Config | None, context: FunctionContext) -> Output:
        try:
            return function(items, config, context)
        except (FieldError, LimitError) as error:
            return failure(items, str(error))

    return reporting


def charged(values: Iterable[tuple[Path, Any]], item: Item, budget: Budget) -> list[tuple[Path, Any]]:
    """Return the values to set in an item after charging their size as YAML text; raises LimitError."""
    paid = []
    for path, value in values:
        size = sum(text_bytes(part) for part in path[-1:] if isinstance(part, str)) + value_bytes(value, len(path))
        budget.spend(4 + len(path))
        if fault := depth_fault(value, len(path)):
            raise LimitError(f"{item.file}: {item.kind} {item.name}: {field_path(path)[:100]}: {fault}")
        if size > budget.bytes:
            # the message is long to make: only where it is needed
            budget.create(size, f"{item.file}: {item.kind} {item.name}: {field_path(path)}", str(value)[:100])
        budget.create(size)
        paid.append((path, value))
    return paid


def filled(template: str, values: Iterable[tuple[str, str]], budget: Budget, what: str) -> str:
    """Return a text with placeholders replaced, one after the other; no step may make it too large (LimitError)."""
    for placeholder, value in values:
        budget.scan(len(template))
        if placeholder not in template:
            continue
        size = text_bytes(template) + template.count(placeholder) * max(0, text_bytes(value) - len(placeholder))
        if size > budget.bytes:
            budget.create(size, what, template)
        template = template.replace(placeholder, value)
    return template


def failure(items: Sequence[Item], message: str) -> Output:
    """Return the output of a function that fails with one error."""
    return Output(tuple(items), (Result(message, "error"),), failed=True)


def plain_copy(data: Any) -> Any:
    """Return a deep copy of plain data; scalars are shared."""
    if isinstance(data, dict):
        return {key: plain_copy(value) for key, value in data.items()}
    return [plain_copy(value) for value in data] if isinstance(data, list) else data


def value_at(data: Any, path: Path, default: Any = None) -> Any:
    """Return the value at a path, or the default where the path does not exist."""
    for part in path:
        in_list = isinstance(data, list) and isinstance(part, int) and 0 <= part < len(data)
        if in_list or (isinstance(data, dict) and part in data):
            data = data[part]
        else:
            return default
    return data


def set_at(data: Any, path: Path, value: Any) -> None:
    """Set the value at a path of plain data in place; missing and null mappings on the way are made."""
    for depth, part in enumerate(path):
        is_place = isinstance(data, dict) if isinstance(part, str) else isinstance(data, list) and part < len(data)
        if not is_place:
            around = field_path(path[:depth]) or "a resource"
            raise FieldError(
                f"{around} must be a {'mapping' if isinstance(part, str) else 'list'}, not {repr(data)[:80]}"
            )
        if depth == len(path) - 1:
            data[part] = value
        elif isinstance(data, dict) and data.get(part) is None:
            data[part] = {}
        data = data[part]


def scalar_text(value: Any) -> str | None:
    """Return a scalar as YAML spells it, or None for a mapping or a sequence."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict | list):
        return None
    return "null" if value is None else str(value)


def quoted(text: str) -> str:
    """Return text between double quotes, as upstream's messages show values."""
    return json.dumps(text, ensure_ascii=False)


def string_map(data: Any) -> dict[str, str]:
    """Return a mapping of scalars with its values as text; anything else in it is left out."""
    texts = {key: scalar_text(value) for key, value in data.items()} if isinstance(data, Mapping) else {}
    return {str(key): text for key, text in texts.items() if text is not None}


def config_strings(data: Any, field: str, *, strict: bool = False) -> dict[str, str]:
    """Return a mapping of strings in a function's configuration; raises FieldError for another type.

    Upstream's functions read such a mapping in one of two ways: some take the text of any scalar, others (`strict`)
    only strings. A missing mapping is empty.
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
    return string_map(data)


def config_fields(config: Config, *names: str) -> dict[str, str]:
    """Return fields of a configuration of its own kind, absent ones as ""; raises FieldError for other than strings."""
    found = {name: "" if config.get(name) is None else config[name] for name in names}
    for name, value in found.items():
        if not isinstance(value, str):
            hint = "" if isinstance(value, dict | list) else "; put it in quotes"
            raise FieldError(f"the configuration's {name} must be a string, not {repr(value)[:80]}{hint}")
    return found


_ABSENT = object()
