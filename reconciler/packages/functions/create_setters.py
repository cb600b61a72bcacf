"""create-setters: the comments that make a setter of every field with one of the given values (kpt.md 16)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import re2

from reconciler.caching import cached
from reconciler.krm.patterns import PatternError, compile_pattern
from reconciler.krm.yaml import Path
from reconciler.packages.functions.edits import EditError, commented, edit_each, visited_fields
from reconciler.packages.functions.function import (
    Config,
    FunctionContext,
    Item,
    Output,
    Result,
    config_strings,
    failure,
    quoted,
    reports_faults,
    scalar_text,
    value_at,
)
from reconciler.packages.functions.limits import Budget, FunctionLimits, text_bytes
from reconciler.packages.functions.setters import SETTER_COMMENT, list_values
from reconciler.packages.parsing import Unparsable, parse_cached

# the configurations, and the resources, of the packages in flight
_REMEMBERED_SETTERS = 256
_REMEMBERED_ITEMS = 1024


@dataclass(frozen=True, eq=False)
class _Setters:
    """What becomes a setter; equal configurations are the same one."""

    texts: Mapping[str, str]
    """Setter by value, the longest value first, so that no value hides in a longer one."""
    lists: Mapping[tuple[str, ...], str]
    """Setter by sorted elements."""

    @cached_property
    def _values(self) -> Any:
        try:
            return compile_pattern("|".join(re2.escape(value) for value in self.texts))
        except PatternError as error:
            raise EditError(f"the values of the setters are too many or too long to search for: {error}") from error

    def pattern(self, text: str, budget: Budget) -> str:
        """Return the text with every value in it replaced by its setter; raises LimitError."""
        if not self.texts:
            return text
        budget.scan(len(text) * (1 + self._values.programsize // 64))
        places = [(*match.span(), self.texts[match.group(0)]) for match in self._values.finditer(text)]
        if not places:
            return text
        # twice, for the message
        size = 2 * (text_bytes(text) + sum(text_bytes(name) for _, _, name in places))
        budget.create(size, "the setter comment of this value", text)
        ends = [0, *(end for _, end, _ in places)]
        pieces = [f"{text[end:start]}${{{name}}}" for end, (start, _, name) in zip(ends, places, strict=False)]
        return "".join(pieces) + text[ends[-1] :]


@reports_faults
def create_setters(items: Sequence[Item], config: Config | None, context: FunctionContext) -> Output:
    """Return the items with setter comments on the fields that hold the values; that none does is an error."""
    try:
        setters = _read(tuple(config_strings((config or {}).get("data"), "data").items()))
        changed, results = edit_each(items, partial(_marked_and_charged, setters, context.budget))
    except EditError as error:
        return failure(items, f"failed to create setters: {error}")
    if not results:
        return failure(items, "failed to create setters: no matches for the input list of setters")
    return Output(changed, results)


@cached(_REMEMBERED_SETTERS)
def _read(data: tuple[tuple[str, str], ...]) -> _Setters:
    if not data:
        raise EditError("config map cannot be empty")
    texts: dict[str, str] = {}
    lists: dict[tuple[str, ...], str] = {}
    for name, text in sorted(data, key=lambda entry: (-len(entry[1]), entry[0])):
        parsed = parse_cached(text.encode())
        if isinstance(parsed, Unparsable) or len(parsed.documents) != 1:
            raise EditError(f"parsing error: the value of {name} must be a scalar or a list, not {quoted(text)}")
        elements = list_values(text)
        if elements is not None:
            lists.setdefault(tuple(sorted(elements)), name)
        elif not isinstance(parsed.documents[0].data, dict):
            texts.setdefault(text, name)
    return _Setters(texts, lists)


def _marked_and_charged(setters: _Setters, budget: Budget, item: Item) -> tuple[Item, tuple[Result, ...]]:
    changed, results, steps, size = _marked(item, setters, budget.limits)
    budget.spend(steps)
    budget.create(size, f"{item.file}: {item.kind} {item.name}: all its setter comments")
    return changed, results


@cached(_REMEMBERED_ITEMS)
def _marked(item: Item, setters: _Setters, limits: FunctionLimits) -> tuple[Item, tuple[Result, ...], int, int]:
    """Return the item with its setter comments, the results, and the steps and bytes that this takes."""
    budget = Budget(limits)
    fields = list(_comments(item.data, setters, budget))
    for path, _, _ in fields:
        item = _with_place(item, path, budget)
    item, faults = commented(item, {path: comment for path, comment, _ in fields}, budget)
    said = tuple(_said(item, path, comment, shown, faults.get(path, "")) for path, comment, shown in fields)
    return item, said, limits.steps - budget.steps, limits.output_bytes - budget.bytes


def _said(item: Item, path: Path, comment: str, shown: str, fault: str) -> Result:
    if fault:
        return item.result(f"no line comment for {quoted(shown)}: {fault}", "warning", path)
    message = f"Added line comment {quoted(comment.removeprefix('# '))} for field with value {quoted(shown)}"
    return item.result(message, "info", path)


def _with_place(item: Item, path: Path, budget: Budget) -> Item:
    """Return the item with the list that the field is, or stands in, one element per line."""
    outer = path if isinstance(value_at(item.data, path), list) else path[:-1]
    elements = value_at(item.data, outer)
    on_one_line = item.document.line_of(outer) == item.document.line_of((*outer, 0))
    if not isinstance(elements, list) or not elements or not on_one_line:
        return item
    # both edits parse the whole document
    budget.parse(2 * len(item.document.text))
    # a list that is filled anew is written in the style of the file
    emptied = item.with_values([(outer, [])]).document
    return replace(item, data=emptied.data, base=emptied).with_values([(outer, elements)])


def _comments(data: Any, setters: _Setters, budget: Budget) -> Iterator[tuple[Path, str, str]]:
    """Yield (path, comment, value) of the fields that become setters; texts of several lines never do."""
    for path, value in visited_fields(data):
        if isinstance(value, list):
            elements = sorted(scalar_text(element) or "" for element in value)
            if name := setters.lists.get(tuple(elements)):
                yield path, f"{SETTER_COMMENT}${{{name}}}", f"[{' '.join(elements)}]"
            continue
        text = scalar_text(value) or ""
        pattern = setters.pattern(text, budget)
        if pattern != text and "\n" not in text and value is not None:
            yield path, f"{SETTER_COMMENT}{pattern}", text
