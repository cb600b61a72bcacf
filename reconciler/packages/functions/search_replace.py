"""The function `search-replace`: find fields by value, path or file, and set their values or comments."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import re2

from reconciler.krm.field_text import format_path
from reconciler.krm.patterns import PatternError, compile_pattern
from reconciler.krm.yaml import DataPath
from reconciler.lazy_dataclasses import dataclass
from reconciler.packages.functions.field_edits import (
    EditError,
    convert_scalar_type,
    edit_items,
    parse_plain_scalar,
    quote_like,
    require_line_comments,
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
    report_errors_as_failure,
)
from reconciler.packages.functions.limits import FunctionBudget, LimitError, estimate_text_bytes

_KEYS = ("by-value", "by-file-path", "by-value-regex", "by-path", "put-value", "put-comment")
_GROUP = re2.compile(r"\$\{([0-9]+)\}")
_MAX_GLOB_LENGTH = 10_000
_GLOB = re2.compile(r"\*\*/|\*\*|\*|\?|\[[^\]]*\]|\{[^}]*\}|.")


@dataclass(frozen=True)
class _Search:
    value: str
    regex: Any
    path: tuple[str, ...]
    file: Any
    put_value: str
    put_comment: str

    @property
    def puts_by_path(self) -> bool:
        """Whether `path` selects exactly one field. Such a field is created if it is missing."""
        literal = bool(self.path) and all(part and "*" not in part and "[" not in part for part in self.path)
        return literal and bool(self.put_value) and not self.value and self.regex is None

    def charge(self, path: DataPath, text: str, budget: FunctionBudget) -> None:
        """Subtract the cost of checking one field from the budget.

        Raises:
            LimitError: Fewer steps remain.
        """
        size = self.regex.programsize if self.regex else 0
        # Multiply text length by program size, because RE2 executes each instruction at each character in the worst
        # case.
        budget.charge_steps(10 + len(self.path) * len(path) + len(text) * size // 1024)

    def matches(self, path: DataPath, text: str) -> bool:
        """Return whether the scalar `text` at `path` matches all configured conditions."""
        by_value = self.regex is not None or bool(self.value)
        value_holds = bool(self.value and text == self.value) or bool(self.regex and self.regex.search(text))
        path_holds = bool(self.path) and matches_path_pattern(format_path(path), self.path)
        return (by_value or bool(self.path)) and (value_holds or not by_value) and (path_holds or not self.path)

    def fill_groups(self, pattern: str, text: str, budget: FunctionBudget) -> str:
        """Replace `${1}`, `${2}` and so on in `pattern` by the groups that the regular expression captures in `text`.

        Raises:
            EditError: The pattern refers to a group that does not exist.
            LimitError: The result exceeds the remaining budget.
        """
        match = self.regex.search(text) if self.regex else None
        groups = enumerate(match.groups() if match else (), start=1)
        values = ((f"${{{number}}}", group or "") for number, group in groups)
        pattern = fill_placeholders(pattern, values, budget, "the result of put-value or put-comment")
        if self.regex and _GROUP.search(pattern):
            raise EditError("unable to resolve capture groups")
        return pattern


@dataclass(frozen=True)
class _FieldChange:
    """The change of one field.

    `new_text` is for the result message. `value` is a tuple with the new value, or () if the value does not change.
    """

    path: DataPath
    new_text: str
    value: tuple[Any, ...] = ()
    comment: str = ""
    result_field: str = ""
    """The field name in the function result. If it is "", the result contains `path`."""


@report_errors_as_failure
def search_replace(items: Sequence[Item], config: FunctionConfig | None, context: FunctionContext) -> FunctionOutput:
    """Search and replace fields. Return the items and one result for each match.

    If there is no match, return one result with the message "no matches".
    """
    try:
        search = _read_search(read_config_strings((config or {}).get("data"), "data"), context.budget)
        changed_items, results = edit_items(items, partial(_search_item, search, context.budget))
    except EditError as error:
        return create_failure(items, f"failed to perform search-replace operation: {quote_as_json(str(error))}")
    return FunctionOutput(changed_items, results or (FunctionResult("no matches"),))


def matches_path_pattern(path: str, pattern: Sequence[str]) -> bool:
    """Return whether a field path matches a pattern.

    In the pattern, `*` matches any one element, `**` any number of elements, and `name[*]` any index of `name`.
    """
    parts, positions = path.split("."), {0}
    for element in pattern:
        if element == "**":
            positions = set(range(min(positions, default=len(parts) + 1), len(parts) + 1))
        else:
            positions = {
                position + 1
                for position in positions
                if position < len(parts) and _is_element_match(parts[position], element)
            }
    return len(parts) in positions


def _is_element_match(part: str, pattern: str) -> bool:
    if pattern in ("*", part):
        return True
    name, bracket, index = part.partition("[")
    pattern_name, pattern_bracket, pattern_index = pattern.partition("[")
    is_named = pattern_name in ("*", name)
    return bool(bracket and pattern_bracket) and is_named and pattern_index in ("*]", index)


def _read_search(data: Mapping[str, str], budget: FunctionBudget) -> _Search:
    for key in data:
        if key not in _KEYS:
            raise EditError(f'invalid matcher "{key}", must be one of [{" ".join(map(quote_as_json, _KEYS))}]')
    if data.get("by-value") and data.get("by-value-regex"):
        raise EditError('only one of ["by-value", "by-value-regex"] can be provided')
    return _Search(
        value=data.get("by-value", ""),
        regex=_compile_regex(data.get("by-value-regex", ""), budget),
        path=tuple(data["by-path"].split(".")) if data.get("by-path") else (),
        file=_compile_regex(_convert_glob(data.get("by-file-path", "")), budget),
        put_value=data.get("put-value", ""),
        put_comment=data.get("put-comment", ""),
    )


def _compile_regex(pattern: str, budget: FunctionBudget) -> Any:
    try:
        compiled = compile_pattern(pattern, captures=True) if pattern else None
    except PatternError as error:
        raise EditError(f"{quote_as_json(pattern[:200])} must be a valid regular expression: {error}") from error
    if compiled:
        # Limit the groups, because RE2 stores the position of each group for each instruction of its program.
        budget.require_few_placeholders(compiled.groups, "the regular expression", pattern)
    return compiled


def _convert_glob(pattern: str) -> str:
    """Convert a glob with `**` into a regular expression.

    Raises:
        EditError: The glob is too long.
    """
    if len(pattern) > _MAX_GLOB_LENGTH:
        raise EditError(
            f"by-file-path must not have more than {_MAX_GLOB_LENGTH:,} characters, but has {len(pattern):,}"
        )
    wildcards = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    tokens = [match.group(0) for match in _GLOB.finditer(pattern)]
    return "".join(wildcards.get(token) or _convert_glob_token(token) for token in tokens)


def _convert_glob_token(token: str) -> str:
    if token.startswith("{") and len(token) > 1:
        return f"(?:{'|'.join(_convert_glob(choice) for choice in token[1:-1].split(','))})"
    if token.startswith("[") and len(token) > 1:
        return token.replace("[!", "[^", 1)
    return str(re2.escape(token))


def _search_item(search: _Search, budget: FunctionBudget, item: Item) -> tuple[Item, list[FunctionResult]]:
    if search.file is not None and not search.file.fullmatch(item.path):
        return item, []
    if search.puts_by_path:
        message = f"Mutated field value to {quote_as_json(search.put_value)}"
        changed_item = item.with_values(
            charge_values([(search.path, parse_plain_scalar(search.put_value))], item, budget)
        )
        return changed_item, [item.create_result(message, "info", search.path)]
    changes = [_find_change(item, path, text, search, budget) for path, text in _find_fields(item.data, search, budget)]
    changed_item = item.with_values([(change.path, value) for change in changes for value in change.value])
    changed_item = require_line_comments(
        changed_item, {change.path: change.comment for change in changes if change.comment}, budget
    )
    verb = "Mutated field value to" if search.put_value or search.put_comment else "Matched field value"
    return changed_item, [
        item.create_result(f"{verb} {quote_as_json(change.new_text)}", "info", change.result_field or change.path)
        for change in changes
    ]


def _find_fields(data: Any, search: _Search, budget: FunctionBudget) -> Iterator[tuple[DataPath, str | None]]:
    """Yield path and text of each matching field. The text of a list is None, because a list can only get a comment."""
    for path, value in walk_fields(data):
        text = format_scalar(value)
        search.charge(path, text or "", budget)
        if text is not None:
            yield from [(path, text)] if search.matches(path, text) else []
        elif search.put_comment and value and search.path and matches_path_pattern(format_path(path), search.path):
            yield path, None


def _find_change(item: Item, path: DataPath, text: str | None, search: _Search, budget: FunctionBudget) -> _FieldChange:
    """Return the change of one field.

    Raises:
        EditError: The new value or comment is invalid.
        LimitError: The change exceeds the remaining budget. The message contains the field.
    """
    try:
        return _create_change(item, path, text, search, budget)
    except LimitError as error:
        raise LimitError(f"{item.file}: {item.kind} {item.name}: {format_path(path)}: {error}") from None


def _create_change(
    item: Item, path: DataPath, text: str | None, search: _Search, budget: FunctionBudget
) -> _FieldChange:
    if text is None:
        budget.charge_output(estimate_text_bytes(search.put_comment), "the comment", search.put_comment)
        new_text = ", ".join(format_scalar(value) or "" for value in get_value_at(item.data, path))
        comment = f"# {search.put_comment}"
        # In the result message, use the configured path and the comment as the field name, as kpt does.
        return _FieldChange(path, f"[{new_text}]", comment=comment, result_field=f"{'.'.join(search.path)} {comment}")
    new_text = search.fill_groups(search.put_value, text, budget) if search.put_value else text
    # Check the budget before the comment is created. Also subtract the size of an unchanged value, because the result
    # message contains it.
    budget.charge_output(estimate_text_bytes(new_text, len(path)), "the value", new_text)
    value = (convert_scalar_type(new_text, item.document, path),) if search.put_value else ()
    comment = f"# {search.fill_groups(search.put_comment, text, budget)}" if search.put_comment else ""
    budget.charge_output(2 * estimate_text_bytes(comment), "the comment", comment)
    quoted_text = quote_like(new_text, item.document, path)
    return _FieldChange(path, f"{quoted_text} {comment}" if comment else quoted_text, value, comment)
