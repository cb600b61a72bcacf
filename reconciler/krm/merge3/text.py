"""Conversion of merged data to a YAML document with merged comments and formatting.

New values get the formatting of upstream. A merge of text lines keeps content that the data does not contain, such as
comments at the end, blank lines and the order of keys.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from typing import Any, NamedTuple, TypeAlias

from reconciler.krm.merge3.lists import ElementKeys, find_element_keys, is_equal_as_text
from reconciler.krm.merge3.rules import ABSENT, MergeRules
from reconciler.krm.schema.merge_schemas import MergeSchema
from reconciler.krm.yaml import DataPath, Document, FormattingSource
from reconciler.krm.yaml.compare import IndexPair, align_items, is_equal_data

# Limit the number of lines, because the time for comparing lines is quadratic in the worst case.
_MAX_LINES = 5_000


class _Hunk(NamedTuple):
    """One change of a side: `lines` replaces the lines of the origin from `start` to `end` (exclusive)."""

    start: int
    end: int
    lines: tuple[str, ...]


def merge_lines(origin: str, local: str, updated: str) -> str | None:
    """Merge texts line by line. Return None if a text has too many lines.

    If both sides changed the same lines, use the local lines. If both sides inserted lines at the same position, keep
    the lines of both sides, local lines first.
    """
    texts = [text.splitlines(keepends=True) for text in (origin, local, updated)]
    if any(len(lines) > _MAX_LINES for lines in texts):
        return None
    base, ours, theirs = texts
    hunks = sorted(
        _merge_hunks(_find_hunks(base, ours), _find_hunks(base, theirs)), key=lambda hunk: (hunk.start, hunk.end)
    )
    result: list[str] = []
    position = 0
    for hunk in hunks:
        result += [*base[position : hunk.start], *hunk.lines]
        position = max(position, hunk.end)
    return "".join(_end_lines([*result, *base[position:]]))


def count_missing_lines(origin: str, side: str, result: str) -> int:
    """Return the number of lines that `side` inserted and that `result` does not contain.

    If `side` only moved lines, return 1 if the lines have a different order in `result`, and 0 otherwise.
    """
    origin_counts, side_counts, result_counts = (_count_lines(text) for text in (origin, side, result))
    missing = sum(
        max(0, count - result_counts[line])
        for line, count in (side_counts - origin_counts).items()
        if side_counts[line] > result_counts[line]
    )
    return missing or int(side_counts == origin_counts and side != origin and not _has_same_order(side, result))


def _has_same_order(side: str, result: str) -> bool:
    side_lines, result_lines = side.splitlines(), result.splitlines()
    common = Counter(side_lines) & Counter(result_lines)
    return [line for line in side_lines if line in common] == [line for line in result_lines if line in common]


def _count_lines(text: str) -> Counter[str]:
    return Counter(line.rstrip() for line in text.splitlines())


def _find_hunks(base: Sequence[str], side: Sequence[str]) -> list[_Hunk]:
    matcher = SequenceMatcher(None, base, side, autojunk=False)
    return [
        _Hunk(start, end, tuple(side[first:last]))
        for tag, start, end, first, last in matcher.get_opcodes()
        if tag != "equal"
    ]


def _merge_hunks(ours: Sequence[_Hunk], theirs: Sequence[_Hunk]) -> Iterator[_Hunk]:
    # Skip each hunk of `theirs` that `ours` also contains, or that overlaps a hunk of `ours`: local changes win.
    yield from ours
    yield from (hunk for hunk in theirs if hunk not in ours and not any(_overlaps(hunk, other) for other in ours))


def _overlaps(hunk: _Hunk, other: _Hunk) -> bool:
    return hunk.start < other.end and other.start < hunk.end


def _end_lines(lines: Sequence[str]) -> Iterator[str]:
    """Yield the lines, and add a missing line end to each line except the last.

    A line end is missing if the text had no final newline and a side inserted lines after its last line.
    """
    newline = "\r\n" if any(line.endswith("\r\n") for line in lines) else "\n"
    for line in lines[:-1]:
        yield line if line.endswith(("\n", "\r")) else line + newline
    yield from lines[-1:]


ElementPairing: TypeAlias = Callable[[Sequence[Any], Sequence[Any]], Iterable[IndexPair]]


class _Value(NamedTuple):
    """A value of one side, and its path in the document of this side."""

    data: Any
    path: DataPath = ()


# The same value in the local document, in the origin and in the updated document. An item is None if its document does
# not contain the value.
_Sides: TypeAlias = tuple[_Value | None, _Value | None, _Value | None]


def write_merged_document(
    local: Document,
    origin: Document | None,
    updated: Document,
    data: Any,
    schema: MergeSchema,
    rules: MergeRules,
    pairing: ElementPairing = align_items,
) -> Document:
    """Return a copy of the local document that contains the merged data.

    New values are formatted as in `updated`. Comments are merged three ways.

    Args:
        pairing: Function that pairs the elements of two lists without merge keys.
    """
    sides = (_Value(local.data), None if origin is None else _Value(origin.data), _Value(updated.data))
    collector = _FormattingCollector((local, origin, updated), rules, pairing)
    collector.visit((), data, sides, schema)
    edited = local.with_data(data, updated.reuse_formatting(collector.sources))
    comments, leading = edited.comments(), edited.leading_comments()
    excluded = (
        () if _can_distinguish_top_comments(edited, (local, origin, updated)) else ((), (_get_first_key(edited.data),))
    )
    edited = edited.with_comments(
        {path: comment for path, comment in collector.line_comments.items() if comments.get(path) != comment},
        {
            path: lines
            for path, lines in collector.leading_comments.items()
            if leading.get(path, ()) != lines and path not in excluded
        },
    )
    if rules.merges_unattached_lines and origin:
        return _restore_missing_lines(edited, local, origin, updated)
    return edited


def _restore_missing_lines(edited: Document, local: Document, origin: Document, updated: Document) -> Document:
    """Return `edited`, or a line-by-line merge of the texts if this merge keeps more of the inserted lines.

    `edited` is the result of a merge of data. It can lack inserted comments that belong to no value, e.g. at the end.
    """
    missing_count = _count_all_missing_lines(edited, local, origin, updated)
    text = merge_lines(origin.text, local.text, updated.text) if missing_count else None
    merged = local.with_data_of(edited, text) if text is not None else None
    return merged if merged and _count_all_missing_lines(merged, local, origin, updated) < missing_count else edited


def _count_all_missing_lines(edited: Document, local: Document, origin: Document, updated: Document) -> int:
    return sum(count_missing_lines(origin.text, side.text, edited.text) for side in (local, updated))


def _can_distinguish_top_comments(edited: Document, sides: tuple[Document, Document | None, Document]) -> bool:
    """Return whether comments about the document and comments about its first field can be distinguished.

    Both kinds of comments are at the top of the text, e.g. a license and the description of a field. They cannot be
    distinguished if the merged documents begin with different fields.
    """
    local, origin, updated = sides
    first, leading, theirs = _get_first_key(edited.data), edited.leading_comments(), updated.leading_comments()
    if any(_get_first_key(side.data) != first for side in (origin, updated) if side is not None):
        return False
    is_clean = all(leading.get(path, ()) in ((), theirs.get(path, ())) for path in ((), (first,)))
    return is_clean or _get_first_key(local.data) == first


class _FromUpstream(NamedTuple):
    """The parts of the enclosing mapping or list that are copied from upstream.

    Attributes:
        text: Whether the text is copied.
        comments: Whether the comments are copied.
    """

    text: bool = False
    comments: bool = False


_NOTHING_FROM_UPSTREAM = _FromUpstream()


class _FormattingCollector:
    """Collects the formatting and the comments of all values in the merged data, from the documents of three sides."""

    def __init__(
        self, documents: tuple[Document, Document | None, Document], rules: MergeRules, pairing: ElementPairing
    ) -> None:
        self.rules = rules
        self.pairing = pairing
        self.line_comments_of_sides = [{} if document is None else document.comments() for document in documents]
        self.leading_comments_of_sides = [
            {} if document is None else document.leading_comments() for document in documents
        ]
        self.has_comments = any(self.line_comments_of_sides) or any(self.leading_comments_of_sides)
        self.sources: dict[DataPath, FormattingSource] = {}
        self.line_comments: dict[DataPath, str | None] = {}
        self.leading_comments: dict[DataPath, tuple[str, ...]] = {}

    def visit(
        self,
        path: DataPath,
        data: Any,
        sides: _Sides,
        schema: MergeSchema,
        from_upstream: _FromUpstream = _NOTHING_FROM_UPSTREAM,
    ) -> None:
        """Collect the formatting and the comments of `data` and of all values in `data`."""
        local, _, updated = sides
        if local is not None:
            if is_equal_data(local.data, data):
                if not self.has_comments:
                    return
            elif updated is not None and not isinstance(data, dict | list) and is_equal_data(updated.data, data):
                self.sources[path] = FormattingSource(updated.path)
        elif updated is None:
            return
        elif not from_upstream.text:
            whole = self._is_copied_whole(data, sides, schema)
            self.sources[path] = FormattingSource(updated.path, whole)
            if whole and not self.has_comments:
                return
            from_upstream = _FromUpstream(text=whole, comments=True)
        self._merge_comments(path, data, sides, is_from_upstream=from_upstream.comments)
        if self._is_list_of_upstream(data, sides, schema):
            from_upstream = from_upstream._replace(comments=True)
        for step, child, child_sides in self._iterate_children(data, sides, schema):
            inner = schema.element_schema if isinstance(step, int) else schema.find_field(step)
            self.visit((*path, step), child, child_sides, inner, from_upstream)

    def _is_copied_whole(self, data: Any, sides: _Sides, schema: MergeSchema) -> bool:
        """Return whether a new value is copied from upstream with its formatting.

        kpt copies the formatting only of scalars, empty values and atomic lists.
        """
        updated = sides[2]
        if updated is None or not is_equal_data(data, updated.data):
            return False
        return (
            self.rules.keeps_upstream_order
            or not data
            or not isinstance(data, dict | list)
            or self._is_atomic(sides, schema)
        )

    def _is_atomic(self, sides: _Sides, schema: MergeSchema) -> bool:
        return (
            all(side is None or isinstance(side.data, list) for side in sides)
            and self._find_keys(sides, schema) is None
        )

    def _find_keys(self, sides: _Sides, schema: MergeSchema) -> ElementKeys | None:
        lists = [side.data for side in sides if side is not None and isinstance(side.data, list)]
        keys = find_element_keys(lists, schema, self.rules)
        is_ambiguous = keys is not None and self.rules.strict_keys and not all(map(keys.identifies_all, lists))
        return None if is_ambiguous else keys

    def _iterate_children(
        self, data: Any, sides: _Sides, schema: MergeSchema
    ) -> Iterator[tuple[str | int, Any, _Sides]]:
        if isinstance(data, dict):
            for name, child in data.items():
                local, origin, updated = (_find_entry(side, name) for side in sides)
                yield name, child, (local, origin, updated)
        elif isinstance(data, list):
            keys = self._find_keys(sides, schema)
            elements = [self._match_elements(side, data, keys) for side in sides]
            for index, child in enumerate(data):
                local, origin, updated = (side.get(index) for side in elements)
                yield index, child, (local, origin, updated)

    def _match_elements(self, side: _Value | None, merged: list[Any], keys: ElementKeys | None) -> dict[int, _Value]:
        """Return a mapping from indexes in the merged list to the matching elements of one side."""
        if side is None or not isinstance(side.data, list):
            return {}
        pairs = self.pairing(side.data, merged) if keys is None else _pair_by_identity(side.data, merged, keys)
        return {
            merged_index: _Value(side.data[side_index], (*side.path, side_index))
            for side_index, merged_index in pairs
            if side_index is not None and merged_index is not None
        }

    def _is_list_of_upstream(self, data: Any, sides: _Sides, schema: MergeSchema) -> bool:
        """Return whether kpt does not merge a list, but uses the whole upstream list with its comments."""
        is_list = isinstance(data, list) and not self.rules.merges_comments
        return is_list and self._is_from_upstream(data, sides) and self._is_atomic(sides, schema)

    def _merge_comments(self, path: DataPath, data: Any, sides: _Sides, *, is_from_upstream: bool) -> None:
        """Merge and store the comments of a value. If `is_from_upstream` is true, use only the comments of upstream."""
        ours, base, theirs = _look_up(self.line_comments_of_sides, sides, None)
        ours_above, base_above, theirs_above = _look_up(self.leading_comments_of_sides, sides, ())
        if is_from_upstream:
            self.line_comments[path], self.leading_comments[path] = theirs, theirs_above
        elif self.rules.merges_comments:
            has_updated = sides[2] is not None
            self.line_comments[path] = (
                theirs
                if has_updated and (ours == base or self._describes_upstream_value(base, theirs, data, sides))
                else ours
            )
            self.leading_comments[path] = theirs_above if has_updated and ours_above == base_above else ours_above
        else:
            # kpt treats the comment after a scalar as a part of the scalar. Therefore, take this comment from the side
            # that the scalar comes from.
            is_part = not isinstance(data, dict | list) and self._is_from_upstream(data, sides)
            self.line_comments[path], self.leading_comments[path] = theirs if is_part else ours, ours_above

    def _describes_upstream_value(self, base: Any, theirs: Any, data: Any, sides: _Sides) -> bool:
        """Return whether the merge used the upstream value, and upstream also changed the comment of this value.

        In this case, the local comment describes a value that is not used any more. In all other cases, a changed local
        comment is kept, because the merge does not report removed comments.
        """
        local, origin, _ = sides
        if theirs == base or local is None or isinstance(data, dict | list) or not self._is_from_upstream(data, sides):
            return False
        return not is_equal_as_text(local.data, data) and (
            origin is None or not is_equal_as_text(local.data, origin.data)
        )

    def _is_from_upstream(self, data: Any, sides: _Sides) -> bool:
        _, origin, updated = sides
        if updated is None or not is_equal_as_text(data, updated.data):
            return False
        return not is_equal_as_text(updated.data, ABSENT if origin is None else origin.data)


def _get_first_key(data: Any) -> str | int:
    return next(iter(data), "") if isinstance(data, dict) else 0


def _find_entry(side: _Value | None, name: str) -> _Value | None:
    if side is None or not isinstance(side.data, dict) or name not in side.data:
        return None
    return _Value(side.data[name], (*side.path, name))


def _pair_by_identity(elements: list[Any], merged: list[Any], keys: ElementKeys) -> Iterator[tuple[int | None, int]]:
    indexes = {keys.get_identity(element): index for index, element in reversed(list(enumerate(elements)))}
    for index, element in enumerate(merged):
        identity = keys.get_identity(element)
        yield (None if identity is None else indexes.get(identity)), index


def _look_up(comments: list[Any], sides: _Sides, missing: Any) -> tuple[Any, ...]:
    return tuple(
        missing if side is None else of_side.get(side.path, missing)
        for of_side, side in zip(comments, sides, strict=True)
    )
