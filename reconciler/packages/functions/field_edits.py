"""Edits of fields in resources: list the fields, convert texts to values, and set line comments."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from reconciler.krm.yaml import DataPath, Document, YamlError
from reconciler.memory import cached
from reconciler.packages.functions.function import FunctionResult, Item, get_value_at, quote_as_json
from reconciler.packages.functions.limits import FunctionBudget
from reconciler.packages.parsing import ParseFailure, parse_cached


class EditError(ValueError):
    """A value or a comment cannot be set in a field. The message contains the reason."""


def edit_items(
    items: Sequence[Item], edit: Callable[[Item], tuple[Item, Sequence[FunctionResult]]]
) -> tuple[tuple[Item, ...], tuple[FunctionResult, ...]]:
    """Apply `edit` to each item. Return all edited items and the results of all edits."""
    edited = [edit(item) for item in items]
    return tuple(item for item, _ in edited), tuple(result for _, results in edited for result in results)


def walk_fields(value: Any, path: DataPath = ()) -> Iterator[tuple[DataPath, Any]]:
    """Yield the path and the value of each scalar, and of each list that is a value in a mapping.

    The lists of a mapping come before all other fields of this mapping.
    """
    if isinstance(value, dict):
        yield from (((*path, key), inner) for key, inner in value.items() if isinstance(inner, list))
        for key, inner in value.items():
            yield from walk_fields(inner, (*path, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from walk_fields(inner, (*path, index))
    else:
        yield path, value


def set_line_comments(
    item: Item, comments: Mapping[DataPath, str], budget: FunctionBudget
) -> tuple[Item, Mapping[DataPath, str]]:
    """Set line comments in an item. Return the changed item, and the errors by path.

    There is an error for each field at which a line comment cannot be written, e.g. because the field is in flow style.

    The caller must subtract the size of the comments from the budget before this call. This function subtracts only the
    cost of parsing.

    Args:
        comments: Maps the path of each field to its comment. Each comment starts with "# ".

    Raises:
        LimitError: The budget is too small.
    """
    if not comments:
        return item, {}
    document = item.document.with_comments(comments, {}, budget.charge_parse)
    errors = {path: _find_comment_error(document, path, comments[path], budget) for path in comments}
    changed_item = replace(item, data=document.data, base=document)
    return changed_item, {path: error for path, error in errors.items() if error}


def require_line_comments(item: Item, comments: Mapping[DataPath, str], budget: FunctionBudget) -> Item:
    """Set line comments in an item, as `set_line_comments` does. Return the changed item.

    Raises:
        EditError: A comment cannot be written at its field.
        LimitError: The budget is too small.
    """
    changed_item, errors = set_line_comments(item, comments, budget)
    if errors:
        raise EditError(next(iter(errors.values())))
    return changed_item


def _find_comment_error(document: Document, path: DataPath, comment: str, budget: FunctionBudget) -> str:
    if document.comment(path) == comment:
        return ""
    budget.charge_parse(len(document.text))
    try:
        document.with_comment(path, comment)
    except YamlError as error:
        return error.message
    return ""


@cached(4096)
def parse_plain_scalar(text: str) -> Any:
    """Return the YAML value of a text without quotes, e.g. "1" -> 1. Return the text unchanged if it is not a valid
    scalar.
    """
    parsed = parse_cached(text.encode())
    if isinstance(parsed, ParseFailure) or len(parsed.documents) != 1:
        return text
    value = parsed.documents[0].data
    return text if isinstance(value, str | dict | list) else value


def convert_scalar_type(text: str, document: Document, path: DataPath) -> Any:
    """Return the value that results if `text` replaces the scalar at `path`.

    A quoted scalar stays a string. A text such as "1.10" also stays a string if the old value is a string, because
    "1.10" is probably a version. As a float, "1.10" would become 1.1.
    """
    old, new = get_value_at(document.data, path), parse_plain_scalar(text)
    if is_quoted_scalar(document, path):
        return text
    return text if isinstance(new, float) and isinstance(old, str) and str(new) != text else new


def is_quoted_scalar(document: Document, path: DataPath) -> bool:
    """Return whether the value at `path` is a string in quotes or in block style."""
    old = get_value_at(document.data, path)
    if not isinstance(old, str):
        return False
    if parse_plain_scalar(old) != old or type(parse_plain_scalar(old)) is not str:
        return True
    return _get_first_character(document, path) in ('"', "'", "|", ">")


def quote_like(text: str, document: Document, path: DataPath) -> str:
    """Return the text in the same quotes as the scalar at `path`. If the scalar has no quotes, add no quotes."""
    first = _get_first_character(document, path) if isinstance(get_value_at(document.data, path), str) else ""
    if first == '"':
        return quote_as_json(text)
    return "'" + text.replace("'", "''") + "'" if first == "'" else text


def _get_first_character(document: Document, path: DataPath) -> str:
    lines = _split_lines(document)
    number = document.find_line(path) - document.line
    line = lines[number] if 0 <= number < len(lines) else ""
    value_text = line.partition(f"{path[-1]}:")[2] if isinstance(path[-1], str) else line.partition("- ")[2]
    return value_text.lstrip()[:1]


@cached(64)
def _split_lines(document: Document) -> list[str]:
    # Cache the lines, because functions read the lines of a document once per field.
    return document.text.splitlines()
