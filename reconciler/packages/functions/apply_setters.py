"""apply-setters: values into the fields that `# kpt-set:` comments mark (kpt.md 15.5)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from reconciler.caching import cached
from reconciler.krm.yaml import Path
from reconciler.packages.functions.edits import EditError, all_commented, edit_each, visited_fields
from reconciler.packages.functions.function import (
    Config,
    FunctionContext,
    Item,
    Output,
    Result,
    charged,
    config_strings,
    failure,
    filled,
    quoted,
    reports_faults,
    scalar_text,
    value_at,
)
from reconciler.packages.functions.limits import Budget, FunctionLimits, LimitError
from reconciler.packages.functions.scalars import retyped
from reconciler.packages.functions.setters import (
    SETTER_COMMENT,
    only_setter,
    setter_names,
    setter_pattern,
    shown_values,
)
from reconciler.packages.kptfile import field_path
from reconciler.packages.parsing import Unparsable, parse_cached

# the resources of the packages in flight: most clusters give them the same values
_REMEMBERED_ITEMS = 1024


@reports_faults
def apply_setters(items: Sequence[Item], config: Config | None, context: FunctionContext) -> Output:
    """Return the items with the setters' values; one result for each field, or one that says nothing matched."""
    setters = config_strings((config or {}).get("data"), "data")
    try:
        changed, results = edit_each(items, partial(_set_and_charged, tuple(setters.items()), context.budget))
    except EditError as error:
        return failure(items, f"failed to apply setters: {error}")
    return Output(changed, results or (Result("no matches for input setter(s)"),))


def _set_and_charged(given: tuple[tuple[str, str], ...], budget: Budget, item: Item) -> tuple[Item, tuple[Result, ...]]:
    changed, results, steps, size = _set_fields(item, given, budget.limits)
    budget.spend(steps)
    budget.create(size, f"{item.file}: {item.kind} {item.name}: all its fields with setters")
    return changed, results


@cached(_REMEMBERED_ITEMS)
def _set_fields(
    item: Item, given: tuple[tuple[str, str], ...], limits: FunctionLimits
) -> tuple[Item, tuple[Result, ...], int, int]:
    """Return the item with its setters' values, the results, and the steps and bytes that this takes."""
    setters, budget = dict(given), Budget(limits)
    marked = list(_marked(item, setters, budget))
    texts: list[str] = []

    def values() -> Iterator[tuple[Path, Any]]:
        # one by one, so that each text is charged before the next one is made
        for path, pattern, _ in marked:
            texts.append(_text_for(item, path, pattern, setters, budget))
            is_list = isinstance(value_at(item.data, path), list)
            (budget.parse if is_list else budget.scan)(len(texts[-1]))
            yield path, _value(item, path, texts[-1])

    changed = item.with_values(charged(values(), item, budget))
    if changed is not item:
        # a list that becomes empty, or stops being so, may carry its comment at another place
        moved = {path: comment for path, _, comment in marked if changed.document.comment(path) != comment}
        changed = all_commented(changed, moved, budget)
    said = [(path, f"set field value to {quoted(text)}") for (path, _, _), text in zip(marked, texts, strict=True)]
    results = tuple(changed.result(message, "info", path) for path, message in said)
    return changed, results, limits.steps - budget.steps, limits.output_bytes - budget.bytes


def _marked(item: Item, setters: Mapping[str, str], budget: Budget) -> Iterator[tuple[Path, str, str]]:
    """Yield (path, pattern, comment) of the fields whose pattern names at least one setter with a value."""
    if item.base is None or SETTER_COMMENT not in item.base.text:
        return
    comments, lists = item.document.comments(), list[Path]()
    for path, old in visited_fields(item.data):
        comment = comments.get(path, "")
        pattern = setter_pattern(comment)
        if not pattern:
            continue
        budget.spend(len(setters) * (1 + len(pattern) // 64))
        is_named = any(f"${{{name}}}" in pattern for name in setters)
        # what stands inside a list that is replaced as a whole is gone with it
        if is_named and not any(path[: len(outer)] == outer for outer in lists):
            lists += [path] if isinstance(old, list) else []
            yield path, pattern, comment


def _text_for(item: Item, path: Path, pattern: str, setters: Mapping[str, str], budget: Budget) -> str:
    old = value_at(item.data, path)
    try:
        return _list_text(pattern, setters) if isinstance(old, list) else _text(pattern, old, setters, budget)
    except LimitError as error:
        raise LimitError(f"{item.file}: {item.kind} {item.name}: {field_path(path)}: {error}") from None


def _value(item: Item, path: Path, text: str) -> Any:
    return _list(text) if isinstance(value_at(item.data, path), list) else retyped(text, item.document, path)


def _text(pattern: str, old: Any, setters: Mapping[str, str], budget: Budget) -> str:
    """Return the pattern with values for its setters: those given, else those that the present value shows."""
    present = shown_values(pattern, scalar_text(old) or "", budget)
    values = ((f"${{{name}}}", value) for name, value in (*setters.items(), *present.items()))
    text = filled(pattern, values, budget, "the value that its setter comment makes")
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
