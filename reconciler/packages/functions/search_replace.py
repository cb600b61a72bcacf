"""search-replace: find fields by value, path or file, and set their value or comment (kpt.md 16)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import re2

from reconciler.krm.patterns import PatternError, compile_pattern
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
from reconciler.packages.functions.limits import Budget, LimitError, text_bytes
from reconciler.packages.functions.scalars import in_quotes, resolved, retyped
from reconciler.packages.kptfile import field_path

_KEYS = ("by-value", "by-file-path", "by-value-regex", "by-path", "put-value", "put-comment")
_GROUP = re2.compile(r"\$\{([0-9]+)\}")
_LONGEST_GLOB = 10_000
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
        """Whether the path names one field outright, which is then made where it is missing."""
        literal = bool(self.path) and all(part and "*" not in part and "[" not in part for part in self.path)
        return literal and bool(self.put_value) and not self.value and self.regex is None

    def charge(self, path: Path, text: str, budget: Budget) -> None:
        """Charge what one look at a field costs; raises LimitError."""
        size = self.regex.programsize if self.regex else 0
        # at worst RE2 follows every instruction of its program at every character
        budget.spend(10 + len(self.path) * len(path) + len(text) * size // 1024)

    def matches(self, path: Path, text: str) -> bool:
        """Tell whether the scalar at a path is looked for; conditions that are given must all hold."""
        by_value = self.regex is not None or bool(self.value)
        value_holds = bool(self.value and text == self.value) or bool(self.regex and self.regex.search(text))
        path_holds = bool(self.path) and path_matches(field_path(path), self.path)
        return (by_value or bool(self.path)) and (value_holds or not by_value) and (path_holds or not self.path)

    def filled(self, pattern: str, text: str, budget: Budget) -> str:
        """Return a pattern with the capture groups of the value's match; raises EditError, LimitError."""
        match = self.regex.search(text) if self.regex else None
        groups = enumerate(match.groups() if match else (), start=1)
        values = ((f"${{{number}}}", group or "") for number, group in groups)
        pattern = filled(pattern, values, budget, "the value that put-value or put-comment makes")
        if self.regex and _GROUP.search(pattern):
            raise EditError("unable to resolve capture groups")
        return pattern


@dataclass(frozen=True)
class _Found:
    """A field that was found: what it shows in the end, the value it gets, if any, and the comment."""

    path: Path
    shown: str
    value: tuple[Any, ...] = ()
    comment: str = ""
    place: str = ""
    """What the result tells as its field, if not the path."""


@reports_faults
def search_replace(items: Sequence[Item], config: Config | None, context: FunctionContext) -> Output:
    """Return the items with what was found replaced; one result for each match, or one that says there is none."""
    try:
        search = _read(config_strings((config or {}).get("data"), "data"), context.budget)
        changed, results = edit_each(items, partial(_searched, search, context.budget))
    except EditError as error:
        return failure(items, f"failed to perform search-replace operation: {quoted(str(error))}")
    return Output(changed, results or (Result("no matches"),))


def path_matches(path: str, pattern: Sequence[str]) -> bool:
    """Tell whether a field path matches: `*` is any element, `**` any number of them, `name[*]` any index."""
    parts, reached = path.split("."), {0}
    for element in pattern:
        if element == "**":
            reached = set(range(min(reached, default=len(parts) + 1), len(parts) + 1))
        else:
            reached = {at + 1 for at in reached if at < len(parts) and _element_matches(parts[at], element)}
    return len(parts) in reached


def _element_matches(part: str, pattern: str) -> bool:
    if pattern in ("*", part):
        return True
    name, bracket, index = part.partition("[")
    wanted_name, wanted_bracket, wanted_index = pattern.partition("[")
    is_named = wanted_name in ("*", name)
    return bool(bracket and wanted_bracket) and is_named and wanted_index in ("*]", index)


def _read(data: Mapping[str, str], budget: Budget) -> _Search:
    for key in data:
        if key not in _KEYS:
            raise EditError(f'invalid matcher "{key}", must be one of [{" ".join(map(quoted, _KEYS))}]')
    if data.get("by-value") and data.get("by-value-regex"):
        raise EditError('only one of ["by-value", "by-value-regex"] can be provided')
    return _Search(
        value=data.get("by-value", ""),
        regex=_regex(data.get("by-value-regex", ""), budget),
        path=tuple(data["by-path"].split(".")) if data.get("by-path") else (),
        file=_regex(_glob(data.get("by-file-path", "")), budget),
        put_value=data.get("put-value", ""),
        put_comment=data.get("put-comment", ""),
    )


def _regex(pattern: str, budget: Budget) -> Any:
    try:
        compiled = compile_pattern(pattern, captures=True) if pattern else None
    except PatternError as error:
        raise EditError(f"{quoted(pattern[:200])} must be a regular expression: {error}") from error
    if compiled:
        # a match keeps the place of each group for each instruction of the program
        budget.require_few(compiled.groups, "the regular expression", pattern)
    return compiled


def _glob(pattern: str) -> str:
    """Return a doublestar glob as a regular expression; raises EditError."""
    if len(pattern) > _LONGEST_GLOB:
        raise EditError(f"by-file-path must not have more than {_LONGEST_GLOB:,} characters, not {len(pattern):,}")
    known = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    tokens = [match.group(0) for match in _GLOB.finditer(pattern)]
    return "".join(known.get(token) or _glob_token(token) for token in tokens)


def _glob_token(token: str) -> str:
    if token.startswith("{") and len(token) > 1:
        return f"(?:{'|'.join(_glob(choice) for choice in token[1:-1].split(','))})"
    if token.startswith("[") and len(token) > 1:
        return token.replace("[!", "[^", 1)
    return str(re2.escape(token))


def _searched(search: _Search, budget: Budget, item: Item) -> tuple[Item, list[Result]]:
    if search.file is not None and not search.file.fullmatch(item.path):
        return item, []
    if search.puts_by_path:
        message = f"Mutated field value to {quoted(search.put_value)}"
        changed = item.with_values(charged([(search.path, resolved(search.put_value))], item, budget))
        return changed, [item.result(message, "info", search.path)]
    found = [_found(item, path, text, search, budget) for path, text in _fields(item.data, search, budget)]
    changed = item.with_values([(one.path, value) for one in found for value in one.value])
    changed = all_commented(changed, {one.path: one.comment for one in found if one.comment}, budget)
    verb = "Mutated field value to" if search.put_value or search.put_comment else "Matched field value"
    return changed, [item.result(f"{verb} {quoted(one.shown)}", "info", one.place or one.path) for one in found]


def _fields(data: Any, search: _Search, budget: Budget) -> Iterator[tuple[Path, str | None]]:
    """Yield the matching fields with their text, None for a list that gets a comment."""
    for path, value in visited_fields(data):
        text = scalar_text(value)
        search.charge(path, text or "", budget)
        if text is not None:
            yield from [(path, text)] if search.matches(path, text) else []
        elif search.put_comment and value and search.path and path_matches(field_path(path), search.path):
            yield path, None


def _found(item: Item, path: Path, text: str | None, search: _Search, budget: Budget) -> _Found:
    """Return what is put at a path, and what the field shows then; raises EditError, LimitError with the field."""
    try:
        return _put(item, path, text, search, budget)
    except LimitError as error:
        raise LimitError(f"{item.file}: {item.kind} {item.name}: {field_path(path)}: {error}") from None


def _put(item: Item, path: Path, text: str | None, search: _Search, budget: Budget) -> _Found:
    if text is None:
        budget.create(text_bytes(search.put_comment), "the comment", search.put_comment)
        shown = ", ".join(scalar_text(value) or "" for value in value_at(item.data, path))
        comment = f"# {search.put_comment}"
        # upstream tells the path that was asked for, and the comment
        return _Found(path, f"[{shown}]", comment=comment, place=f"{'.'.join(search.path)} {comment}")
    shown = search.filled(search.put_value, text, budget) if search.put_value else text
    # before the next one is made; what is only looked at costs its message
    budget.create(text_bytes(shown, len(path)), "the value", shown)
    value = (retyped(shown, item.document, path),) if search.put_value else ()
    comment = f"# {search.filled(search.put_comment, text, budget)}" if search.put_comment else ""
    budget.create(2 * text_bytes(comment), "the comment", comment)
    written = in_quotes(shown, item.document, path)
    return _Found(path, f"{written} {comment}" if comment else written, value, comment)
