"""apply-setters: values into the fields that `# kpt-set:` comments mark (kpt.md 15.5)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from reconciler.krm.yaml import Path
from reconciler.packages.functions.edits import EditError, all_commented, edit_each, visited_fields
from reconciler.packages.functions.function import (
    Config,
    FunctionContext,
    Item,
    Output,
    Result,
    failure,
    quoted,
    reports_faults,
    scalar_text,
    string_map,
    value_at,
)
from reconciler.packages.functions.scalars import retyped
from reconciler.packages.functions.setters import (
    SETTER_COMMENT,
    only_setter,
    setter_names,
    setter_pattern,
    shown_values,
)
from reconciler.packages.parsing import Unparsable, parse_cached

# the resources of the packages in flight: most clusters give them the same values
_REMEMBERED_ITEMS = 1024


@reports_faults
def apply_setters(items: Sequence[Item], config: Config | None, context: FunctionContext) -> Output:
    """Return the items with the setters' values; one result for each field, or one that says nothing matched."""
    setters = string_map((config or {}).get("data"))
    try:
        changed, results = edit_each(items, lambda item: _set_fields(item, tuple(setters.items())))
    except EditError as error:
        return failure(items, f"failed to apply setters: {error}")
    return Output(changed, results or (Result("no matches for input setter(s)"),))


@lru_cache(maxsize=_REMEMBERED_ITEMS)
def _set_fields(item: Item, given: tuple[tuple[str, str], ...]) -> tuple[Item, tuple[Result, ...]]:
    setters = dict(given)
    marked = list(_marked(item, setters))
    texts = [_text_for(value_at(item.data, path), pattern, setters) for path, pattern, _ in marked]
    values = [(path, _value(item, path, text)) for (path, _, _), text in zip(marked, texts, strict=True)]
    changed = item.with_values(values)
    if changed is not item:
        # a list that becomes empty, or stops being so, may carry its comment at another place
        moved = {path: comment for path, _, comment in marked if changed.document.comment(path) != comment}
        changed = all_commented(changed, moved)
    said = [(path, f"set field value to {quoted(text)}") for (path, _, _), text in zip(marked, texts, strict=True)]
    return changed, tuple(changed.result(message, "info", path) for path, message in said)


def _marked(item: Item, setters: Mapping[str, str]) -> Iterator[tuple[Path, str, str]]:
    """Yield (path, pattern, comment) of the fields whose pattern names at least one setter with a value."""
    if item.base is None or SETTER_COMMENT not in item.base.text:
        return
    comments, lists = item.document.comments(), list[Path]()
    for path, old in visited_fields(item.data):
        comment = comments.get(path, "")
        pattern = setter_pattern(comment)
        is_named = any(f"${{{name}}}" in pattern for name in setters)
        # what stands inside a list that is replaced as a whole is gone with it
        if is_named and not any(path[: len(outer)] == outer for outer in lists):
            lists += [path] if isinstance(old, list) else []
            yield path, pattern, comment


def _text_for(old: Any, pattern: str, setters: Mapping[str, str]) -> str:
    return _list_text(pattern, setters) if isinstance(old, list) else _text(pattern, old, setters)


def _value(item: Item, path: Path, text: str) -> Any:
    return _list(text) if isinstance(value_at(item.data, path), list) else retyped(text, item.document, path)


def _text(pattern: str, old: Any, setters: Mapping[str, str]) -> str:
    """Return the pattern with values for its setters: those given, else those that the present value shows."""
    present = shown_values(pattern, scalar_text(old) or "")
    text = pattern
    for name, value in (*setters.items(), *present.items()):
        text = text.replace(f"${{{name}}}", value)
    missing = [f"${{{name}}}" for name in setter_names(text)]
    if missing:
        raise EditError(f"values for setters [{' '.join(missing)}] must be provided")
    return text


def _list_text(pattern: str, setters: Mapping[str, str]) -> str:
    name = only_setter(pattern)
    if name is None:
        raise EditError(f"invalid setter pattern for array node: {quoted(pattern)}")
    return setters[name]


def _list(text: str) -> list[Any]:
    parsed = parse_cached(text.encode())
    if not text.strip():
        return []
    values = None if isinstance(parsed, Unparsable) or len(parsed.documents) != 1 else parsed.documents[0].data
    if not isinstance(values, list):
        raise EditError(f"input to array setter must be an array of values, but found {quoted(text)}")
    return values
