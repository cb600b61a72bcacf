"""list-setters: which setters a package has, with their values, and how many fields each of them sets (kpt.md 16)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from posixpath import normpath
from typing import Any

from reconciler.packages.functions.edits import visited_fields
from reconciler.packages.functions.function import (
    Config,
    FunctionContext,
    Item,
    Output,
    Result,
    reports_faults,
    scalar_text,
    string_map,
    value_at,
)
from reconciler.packages.functions.limits import Budget
from reconciler.packages.functions.setters import (
    SETTER_COMMENT,
    list_values,
    only_setter,
    setter_pattern,
    shown_values,
)
from reconciler.packages.kptfile import KPTFILE

_TYPES: Mapping[type, str] = {bool: "bool", int: "int", float: "float", type(None): "null"}
_TEXT = "str"
_LIST = "array"


@dataclass(frozen=True)
class _Setter:
    name: str
    value: str
    type: str
    count: int


@reports_faults
def list_setters(items: Sequence[Item], config: Config | None, context: FunctionContext) -> Output:
    """Return the items as they are, and one result for each setter in the pipeline's configuration and in comments."""
    setters: dict[tuple[str, bool], _Setter] = {}
    used = (seen for item in items for seen in _used(item, context.budget))
    for setter in (*_configured(items, context), *used):
        known = setters.get((setter.name, setter.type == _LIST))
        setters[setter.name, setter.type == _LIST] = _joined(known, setter) if known else setter
    # a name may stand for a list in one place and for a scalar in another; lists come first
    ordered = sorted(setters.values(), key=lambda setter: (setter.name, setter.type != _LIST))
    said = [Result(f"Name: {s.name}, Value: {s.value}, Type: {s.type}, Count: {s.count}") for s in ordered]
    return Output(tuple(items), tuple(said) or (Result("no setters found", "warning"),))


def _joined(known: _Setter, seen: _Setter) -> _Setter:
    """Return a setter that was seen once more: its first value, and the first type that says more than text."""
    return replace(known, count=known.count + seen.count, type=seen.type if known.type == _TEXT else known.type)


def _configured(items: Sequence[Item], context: FunctionContext) -> Iterator[_Setter]:
    """Yield what the package's pipeline configures, later functions over earlier ones."""
    files = {item.path: item for item in reversed(items) if item.package == context.package}
    values: dict[str, str] = {}
    for function in _mutators(files.get(KPTFILE)):
        if "apply-setters" in str(function.get("image")):
            path = normpath(str(function.get("configPath") or ""))
            data = value_at(files[path].data, ("data",)) if path in files else None
            values |= string_map(function["configMap"] if function.get("configMap") else data)
    for name, text in values.items():
        elements = list_values(text)
        yield _Setter(name, text, _TEXT, 0) if elements is None else _list_setter(name, elements, 0)


def _mutators(kptfile: Item | None) -> list[Mapping[str, Any]]:
    mutators = value_at(kptfile.data, ("pipeline", "mutators")) if kptfile else None
    return [entry for entry in mutators if isinstance(entry, Mapping)] if isinstance(mutators, list) else []


def _used(item: Item, budget: Budget) -> Iterator[_Setter]:
    if item.base is None or SETTER_COMMENT not in item.base.text:
        return
    comments = item.document.comments()
    for path, value in visited_fields(item.data):
        pattern = setter_pattern(comments.get(path))
        if pattern and isinstance(value, list):
            elements = sorted(scalar_text(element) or "" for element in value)
            yield _list_setter(only_setter(pattern) or pattern, elements, 1)
        elif pattern:
            shown = shown_values(pattern, scalar_text(value) or "", budget)
            yield from (_Setter(name, text, _TYPES.get(type(value), _TEXT), 1) for name, text in shown.items())


def _list_setter(name: str, elements: Sequence[str], count: int) -> _Setter:
    return _Setter(name, f"[{', '.join(elements)}]", _LIST, count)
