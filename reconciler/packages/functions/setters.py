"""The functions `apply-setters`, `create-setters` and `list-setters`, and the setter comments that they use.

A setter comment follows a field on the same line. For example, the comment `# kpt-set: nginx:${tag}` means that the
setter `tag` determines a part of the field.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, partial
from posixpath import normpath
from typing import Any

import re2

from reconciler.krm.field_text import format_path
from reconciler.krm.patterns import PatternError, compile_pattern
from reconciler.krm.yaml import DataPath
from reconciler.lazy_dataclasses import dataclass, replace
from reconciler.memory import cached
from reconciler.packages.functions.field_edits import (
    EditError,
    convert_scalar_type,
    edit_items,
    require_line_comments,
    set_line_comments,
    walk_fields,
)
from reconciler.packages.functions.function import (
    FunctionConfig,
    FunctionContext,
    FunctionOutput,
    FunctionResult,
    Item,
    charge_values,
    create_failure,
    fill_placeholders,
    format_scalar,
    get_value_at,
    quote_as_json,
    read_config_strings,
    read_string_map,
    report_errors_as_failure,
)
from reconciler.packages.functions.limits import FunctionBudget, FunctionLimits, LimitError, estimate_text_bytes
from reconciler.packages.kptfile import KPTFILE
from reconciler.packages.parsing import ParseFailure, parse_cached

SETTER_COMMENT = "# kpt-set: "
_PLACEHOLDER = re2.compile(r"\$\{([^}]*)\}")


def parse_setter_comment(comment: str | None) -> str:
    """Return the pattern of a setter comment, e.g. `nginx:${tag}`. Return "" for any other comment."""
    return comment.removeprefix(SETTER_COMMENT).strip() if comment and comment.startswith(SETTER_COMMENT) else ""


def find_setter_names(pattern: str) -> list[str]:
    """Return the names of the setters in a pattern, in order."""
    return [match.group(1) for match in _PLACEHOLDER.finditer(pattern)]


def get_single_setter(pattern: str) -> str | None:
    """Return the setter name if the pattern is a single setter, e.g. `${tag}`. Return None for any other pattern."""
    match = _PLACEHOLDER.fullmatch(pattern)
    return match.group(1) if match else None


def extract_setter_values(pattern: str, text: str, budget: FunctionBudget) -> dict[str, str]:
    """Extract the setter values from the text of a field, e.g. `nginx:${tag}` and `nginx:1.2` -> `{"tag": "1.2"}`.

    The result is empty if the text does not match the pattern, or if a value is empty. Each value is on one line and as
    long as possible, as with a greedy regular expression. No regular expression is used, because long regular
    expressions need too much memory.

    Raises:
        LimitError: The pattern has too many placeholders, or the budget is too small.
    """
    budget.require_few_placeholders(pattern.count("${"), "the setter comment", pattern)
    names, parts = find_setter_names(pattern), _PLACEHOLDER.split(pattern)[::2]
    budget.charge_scan(len(pattern) + len(text) * max(map(len, parts)))
    values = next((texts for line in text.split("\n") if (texts := _split_line(line, parts)) is not None), [])
    return dict(zip(names, values, strict=True)) if values and all(values) else {}


def _split_line(line: str, parts: list[str]) -> list[str] | None:
    """Return the texts between `parts` in a line. Return None if the line does not contain all parts in order.

    If a line can be split in several ways, earlier texts are as long as possible.
    """
    start = line.find(parts[0])
    if start < 0:
        return None
    begin, end = start + len(parts[0]), len(line)
    spans = []
    # Search from the end of the line, so that the text before each part is as long as possible.
    for part in reversed(parts[1:]):
        position = line.rfind(part, begin, end)
        if position < 0:
            return None
        spans.append((position, position + len(part)))
        end = position
    starts = [begin, *(end_of_part for _, end_of_part in reversed(spans))]
    return [
        line[begin_of_text:end_of_text]
        for begin_of_text, (end_of_text, _) in zip(starts, reversed(spans), strict=False)
    ]


def parse_list_value(text: str) -> list[str] | None:
    """Return the elements of a YAML list as strings. Return None if `text` is not a YAML list."""
    parsed = parse_cached(text.encode())
    values = None if isinstance(parsed, ParseFailure) or len(parsed.documents) != 1 else parsed.documents[0].data
    return [format_scalar(value) or "" for value in values] if isinstance(values, list) else None


# Results are cached by item, because most clusters set the same values in the same resources.
_MAX_CACHED_ITEMS = 1024


@report_errors_as_failure
def apply_setters(items: Sequence[Item], config: FunctionConfig | None, context: FunctionContext) -> FunctionOutput:
    """Set fields with setter comments to the configured values. Return the items and one result for each field.

    If no field has one of the setters, return one result that reports this.
    """
    setters = read_config_strings((config or {}).get("data"), "data")
    try:
        changed_items, results = edit_items(items, partial(_set_and_charge, tuple(setters.items()), context.budget))
    except EditError as error:
        return create_failure(items, f"failed to apply setters: {error}")
    return FunctionOutput(changed_items, results or (FunctionResult("no matches for input setter(s)"),))


def _set_and_charge(
    setter_items: tuple[tuple[str, str], ...], budget: FunctionBudget, item: Item
) -> tuple[Item, tuple[FunctionResult, ...]]:
    changed_item, results, steps, size = _set_fields(item, setter_items, budget.limits)
    budget.charge_steps(steps)
    budget.charge_output(size, f"{item.file}: {item.kind} {item.name}: all its fields with setters")
    return changed_item, results


@cached(_MAX_CACHED_ITEMS)
def _set_fields(
    item: Item, setter_items: tuple[tuple[str, str], ...], limits: FunctionLimits
) -> tuple[Item, tuple[FunctionResult, ...], int, int]:
    """Set the fields of one item. Return the item, the results, and the used steps and bytes."""
    setters, budget = dict(setter_items), FunctionBudget(limits)
    fields = list(_find_setter_fields(item, setters, budget))
    texts: list[str] = []

    def values() -> Iterator[tuple[DataPath, Any]]:
        # Compute values one after the other, so that the budget is checked before the next value is created.
        for path, pattern, _ in fields:
            texts.append(_compute_text(item, path, pattern, setters, budget))
            is_list = isinstance(get_value_at(item.data, path), list)
            (budget.charge_parse if is_list else budget.charge_scan)(len(texts[-1]))
            yield path, _convert_text(item, path, texts[-1])

    changed_item = item.with_values(charge_values(values(), item, budget))
    if changed_item is not item:
        # Restore missing comments. A comment can move when its list becomes empty, or when an empty list gets an
        # element.
        lost_comments = {path: comment for path, _, comment in fields if changed_item.document.comment(path) != comment}
        changed_item = require_line_comments(changed_item, lost_comments, budget)
    messages = [
        (path, f"set field value to {quote_as_json(text)}") for (path, _, _), text in zip(fields, texts, strict=True)
    ]
    results = tuple(changed_item.create_result(message, "info", path) for path, message in messages)
    return changed_item, results, limits.steps - budget.remaining_steps, limits.output_bytes - budget.remaining_bytes


def _find_setter_fields(
    item: Item, setters: Mapping[str, str], budget: FunctionBudget
) -> Iterator[tuple[DataPath, str, str]]:
    """Yield path, pattern and comment of each field whose pattern contains at least one of the setters."""
    if item.base is None or SETTER_COMMENT not in item.base.text:
        return
    comments, lists = item.document.comments(), list[DataPath]()
    for path, value in walk_fields(item.data):
        comment = comments.get(path, "")
        pattern = parse_setter_comment(comment)
        if not pattern:
            continue
        budget.charge_steps(len(setters) * (1 + len(pattern) // 64))
        is_named = any(f"${{{name}}}" in pattern for name in setters)
        # Skip the fields inside a list that a setter replaces, because the setter removes all elements of the list.
        if is_named and not any(path[: len(list_path)] == list_path for list_path in lists):
            lists += [path] if isinstance(value, list) else []
            yield path, pattern, comment


def _compute_text(item: Item, path: DataPath, pattern: str, setters: Mapping[str, str], budget: FunctionBudget) -> str:
    old = get_value_at(item.data, path)
    try:
        return (
            _get_list_text(pattern, setters) if isinstance(old, list) else _fill_pattern(pattern, old, setters, budget)
        )
    except LimitError as error:
        raise LimitError(f"{item.file}: {item.kind} {item.name}: {format_path(path)}: {error}") from None


def _convert_text(item: Item, path: DataPath, text: str) -> Any:
    return (
        _parse_list(text)
        if isinstance(get_value_at(item.data, path), list)
        else convert_scalar_type(text, item.document, path)
    )


def _fill_pattern(pattern: str, old: Any, setters: Mapping[str, str], budget: FunctionBudget) -> str:
    """Fill a pattern with setter values. A setter that is not configured keeps its value from the current text."""
    current_values = extract_setter_values(pattern, format_scalar(old) or "", budget)
    values = ((f"${{{name}}}", value) for name, value in (*setters.items(), *current_values.items()))
    text = fill_placeholders(pattern, values, budget, "the value of its setter comment")
    missing_setters = [f"${{{name}}}" for name in find_setter_names(text)]
    if missing_setters:
        raise EditError(f"values for setters [{' '.join(missing_setters)}] must be provided")
    return text


def _get_list_text(pattern: str, setters: Mapping[str, str]) -> str:
    name = get_single_setter(pattern)
    if name is None:
        raise EditError(f"invalid setter pattern for array node: {quote_as_json(pattern)}")
    return setters[name]


def _parse_list(text: str) -> list[Any]:
    parsed = parse_cached(text.encode())
    if not text.strip():
        return []
    values = None if isinstance(parsed, ParseFailure) or len(parsed.documents) != 1 else parsed.documents[0].data
    if not isinstance(values, list):
        raise EditError(f"input to array setter must be an array of values, but found {quote_as_json(text)}")
    return values


# Maximum numbers of cached configurations and resources. They are sufficient for all packages that are rendered at the
# same time.
_MAX_CACHED_SETTERS = 256
_MAX_CACHED_CREATED_ITEMS = 1024


@dataclass(frozen=True, eq=False)
class _SetterValues:
    """The values for which `create-setters` creates setter comments, and the setter name of each value.

    Equal configurations share one `_SetterValues` object, because the cache compares these objects by identity.
    """

    texts: Mapping[str, str]
    """Names of setters by value. Longer values come first, because they can contain shorter values."""
    lists: Mapping[tuple[str, ...], str]
    """Names of setters by list value. The list elements are sorted."""

    @cached_property
    def _values(self) -> Any:
        try:
            return compile_pattern("|".join(re2.escape(value) for value in self.texts))
        except PatternError as error:
            raise EditError(f"the values of the setters are too many or too long to search for: {error}") from error

    def build_pattern(self, text: str, budget: FunctionBudget) -> str:
        """Replace each value in a text by its setter, e.g. `nginx:1.2` -> `nginx:${tag}`.

        Raises:
            LimitError: The result exceeds the remaining budget.
        """
        if not self.texts:
            return text
        budget.charge_scan(len(text) * (1 + self._values.programsize // 64))
        matches = [(*match.span(), self.texts[match.group(0)]) for match in self._values.finditer(text)]
        if not matches:
            return text
        # Count the size twice, because both the comment and the result message contain the pattern.
        size = 2 * (estimate_text_bytes(text) + sum(estimate_text_bytes(name) for _, _, name in matches))
        budget.charge_output(size, "the setter comment of this value", text)
        ends = [0, *(end for _, end, _ in matches)]
        pieces = [f"{text[end:start]}${{{name}}}" for end, (start, _, name) in zip(ends, matches, strict=False)]
        return "".join(pieces) + text[ends[-1] :]


@report_errors_as_failure
def create_setters(items: Sequence[Item], config: FunctionConfig | None, context: FunctionContext) -> FunctionOutput:
    """Add setter comments to all fields that contain a configured value.

    If no field contains such a value, the function fails.
    """
    try:
        setters = _read_setter_values(tuple(read_config_strings((config or {}).get("data"), "data").items()))
        changed_items, results = edit_items(items, partial(_create_and_charge, setters, context.budget))
    except EditError as error:
        return create_failure(items, f"failed to create setters: {error}")
    if not results:
        return create_failure(items, "failed to create setters: no matches for the input list of setters")
    return FunctionOutput(changed_items, results)


@cached(_MAX_CACHED_SETTERS)
def _read_setter_values(setter_items: tuple[tuple[str, str], ...]) -> _SetterValues:
    if not setter_items:
        raise EditError("config map cannot be empty")
    texts: dict[str, str] = {}
    lists: dict[tuple[str, ...], str] = {}
    for name, text in sorted(setter_items, key=lambda entry: (-len(entry[1]), entry[0])):
        parsed = parse_cached(text.encode())
        if isinstance(parsed, ParseFailure) or len(parsed.documents) != 1:
            raise EditError(
                f"parsing error: the value of {name} must be a scalar or a list, but is {quote_as_json(text)}"
            )
        elements = parse_list_value(text)
        if elements is not None:
            lists.setdefault(tuple(sorted(elements)), name)
        elif not isinstance(parsed.documents[0].data, dict):
            texts.setdefault(text, name)
    return _SetterValues(texts, lists)


def _create_and_charge(
    setters: _SetterValues, budget: FunctionBudget, item: Item
) -> tuple[Item, tuple[FunctionResult, ...]]:
    changed_item, results, steps, size = _create_comments(item, setters, budget.limits)
    budget.charge_steps(steps)
    budget.charge_output(size, f"{item.file}: {item.kind} {item.name}: all its setter comments")
    return changed_item, results


@cached(_MAX_CACHED_CREATED_ITEMS)
def _create_comments(
    item: Item, setters: _SetterValues, limits: FunctionLimits
) -> tuple[Item, tuple[FunctionResult, ...], int, int]:
    """Add setter comments to one item. Return the item, the results, and the used steps and bytes."""
    budget = FunctionBudget(limits)
    fields = list(_find_commented_fields(item.data, setters, budget))
    for path, _, _ in fields:
        item = _split_list_lines(item, path, budget)
    item, errors = set_line_comments(item, {path: comment for path, comment, _ in fields}, budget)
    results = tuple(
        _create_comment_result(item, path, comment, text, errors.get(path, "")) for path, comment, text in fields
    )
    return item, results, limits.steps - budget.remaining_steps, limits.output_bytes - budget.remaining_bytes


def _create_comment_result(item: Item, path: DataPath, comment: str, text: str, error: str) -> FunctionResult:
    if error:
        return item.create_result(f"no line comment for {quote_as_json(text)}: {error}", "warning", path)
    message = (
        f"Added line comment {quote_as_json(comment.removeprefix('# '))} for field with value {quote_as_json(text)}"
    )
    return item.create_result(message, "info", path)


def _split_list_lines(item: Item, path: DataPath, budget: FunctionBudget) -> Item:
    """Write a list with one element per line, so that its lines can have comments.

    The list is the field at `path`, or contains this field.
    """
    list_path = path if isinstance(get_value_at(item.data, path), list) else path[:-1]
    elements = get_value_at(item.data, list_path)
    on_one_line = item.document.find_line(list_path) == item.document.find_line((*list_path, 0))
    if not isinstance(elements, list) or not elements or not on_one_line:
        return item
    # Count the length twice, because the two edits below parse the whole document each.
    budget.charge_parse(2 * len(item.document.text))
    # Empty the list first: the writer then writes the elements on separate lines, in the style of the file.
    emptied = item.with_values([(list_path, [])]).document
    return replace(item, data=emptied.data, base=emptied).with_values([(list_path, elements)])


def _find_commented_fields(
    data: Any, setters: _SetterValues, budget: FunctionBudget
) -> Iterator[tuple[DataPath, str, str]]:
    """Yield path, comment and text of each field that gets a setter comment. Texts with several lines are skipped."""
    for path, value in walk_fields(data):
        if isinstance(value, list):
            elements = sorted(format_scalar(element) or "" for element in value)
            if name := setters.lists.get(tuple(elements)):
                yield path, f"{SETTER_COMMENT}${{{name}}}", f"[{' '.join(elements)}]"
            continue
        text = format_scalar(value) or ""
        pattern = setters.build_pattern(text, budget)
        if pattern != text and "\n" not in text and value is not None:
            yield path, f"{SETTER_COMMENT}{pattern}", text


_TYPES: Mapping[type, str] = {bool: "bool", int: "int", float: "float", type(None): "null"}
_TEXT = "str"
_LIST = "array"


@dataclass(frozen=True)
class _ListedSetter:
    name: str
    value: str
    type: str
    count: int


@report_errors_as_failure
def list_setters(items: Sequence[Item], config: FunctionConfig | None, context: FunctionContext) -> FunctionOutput:
    """Return the unchanged items, and one result for each setter in the pipeline or in a setter comment."""
    setters: dict[tuple[str, bool], _ListedSetter] = {}
    uses = (use for item in items for use in _find_used_setters(item, context.budget))
    for setter in (*_find_configured_setters(items, context), *uses):
        listed = setters.get((setter.name, setter.type == _LIST))
        setters[setter.name, setter.type == _LIST] = _combine_uses(listed, setter) if listed else setter
    # Return the list first, because one setter can have two results: a list in one field, and a scalar in another
    # field.
    ordered = sorted(setters.values(), key=lambda setter: (setter.name, setter.type != _LIST))
    results = [
        FunctionResult(f"Name: {setter.name}, Value: {setter.value}, Type: {setter.type}, Count: {setter.count}")
        for setter in ordered
    ]
    return FunctionOutput(tuple(items), tuple(results) or (FunctionResult("no setters found", "warning"),))


def _combine_uses(listed: _ListedSetter, use: _ListedSetter) -> _ListedSetter:
    """Add the count of `use` to the setter `listed`. If the type of `listed` is `str`, use the type of `use`."""
    return replace(listed, count=listed.count + use.count, type=use.type if listed.type == _TEXT else listed.type)


def _find_configured_setters(items: Sequence[Item], context: FunctionContext) -> Iterator[_ListedSetter]:
    """Yield the setters in the pipeline of the package. Values of later functions override earlier values."""
    files = {item.path: item for item in reversed(items) if item.package == context.package}
    values: dict[str, str] = {}
    for function in _get_mutators(files.get(KPTFILE)):
        if "apply-setters" in str(function.get("image")):
            path = normpath(str(function.get("configPath") or ""))
            data = get_value_at(files[path].data, ("data",)) if path in files else None
            values |= read_string_map(function["configMap"] if function.get("configMap") else data)
    for name, text in values.items():
        elements = parse_list_value(text)
        yield _ListedSetter(name, text, _TEXT, 0) if elements is None else _list_setter(name, elements, 0)


def _get_mutators(kptfile: Item | None) -> list[Mapping[str, Any]]:
    mutators = get_value_at(kptfile.data, ("pipeline", "mutators")) if kptfile else None
    return [entry for entry in mutators if isinstance(entry, Mapping)] if isinstance(mutators, list) else []


def _find_used_setters(item: Item, budget: FunctionBudget) -> Iterator[_ListedSetter]:
    if item.base is None or SETTER_COMMENT not in item.base.text:
        return
    comments = item.document.comments()
    for path, value in walk_fields(item.data):
        pattern = parse_setter_comment(comments.get(path))
        if pattern and isinstance(value, list):
            elements = sorted(format_scalar(element) or "" for element in value)
            yield _list_setter(get_single_setter(pattern) or pattern, elements, 1)
        elif pattern:
            values = extract_setter_values(pattern, format_scalar(value) or "", budget)
            yield from (_ListedSetter(name, text, _TYPES.get(type(value), _TEXT), 1) for name, text in values.items())


def _list_setter(name: str, elements: Sequence[str], count: int) -> _ListedSetter:
    return _ListedSetter(name, f"[{', '.join(elements)}]", _LIST, count)
