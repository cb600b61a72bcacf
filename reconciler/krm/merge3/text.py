"""From merged data to a document: new entries as upstream wrote them, comments merged like values (kpt.md 7.5, D13)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

from reconciler.krm.conflicts import ABSENT
from reconciler.krm.merge3.lines import loses_lines, merge_lines
from reconciler.krm.merge3.lists import Keys, find_keys, same_text
from reconciler.krm.merge3.rules import MergeRules
from reconciler.krm.shapes import Shape
from reconciler.krm.yaml import Document, Original, Path
from reconciler.krm.yaml.align import Pair, align
from reconciler.krm.yaml.same import same

Pairing: TypeAlias = Callable[[Sequence[Any], Sequence[Any]], Iterable[Pair]]


class _Value(NamedTuple):
    """A value of one side, and where it stands there."""

    data: Any
    path: Path = ()


# what the local side, the origin and upstream have in one place
_Sides: TypeAlias = tuple[_Value | None, _Value | None, _Value | None]


def write_merged(
    local: Document,
    origin: Document | None,
    updated: Document,
    data: Any,
    shape: Shape,
    rules: MergeRules,
    pairing: Pairing = align,
) -> Document:
    """Return the local document changed to mean `data`, with upstream's text where upstream's values are new.

    `pairing` tells which elements are the same in lists that no key tells apart.
    """
    sides = (_Value(local.data), None if origin is None else _Value(origin.data), _Value(updated.data))
    writer = _Writer((local, origin, updated), rules, pairing)
    writer.visit((), data, sides, shape)
    edited = local.with_data(data, updated.lending(writer.originals))
    comments, heads = edited.comments(), edited.heads()
    top = () if _knows_top(edited, (local, origin, updated)) else ((), (_first_step(edited.data),))
    edited = edited.with_comments(
        {path: comment for path, comment in writer.beside.items() if comments.get(path) != comment},
        {path: lines for path, lines in writer.above.items() if heads.get(path, ()) != lines and path not in top},
    )
    return _with_lines_of_both(edited, local, origin, updated) if rules.keeps_lines and origin else edited


def _with_lines_of_both(edited: Document, local: Document, origin: Document, updated: Document) -> Document:
    """Return the merged document with the lines of both sides, if its text has lost some that a merge of text keeps.

    These are comments that belong to no value, such as those at the end, and formatting.
    """
    lost = _lost_lines(edited, local, origin, updated)
    text = merge_lines(origin.text, local.text, updated.text) if lost else None
    merged = local.with_meaning_of(edited, text) if text is not None else None
    return merged if merged and _lost_lines(merged, local, origin, updated) < lost else edited


def _lost_lines(edited: Document, local: Document, origin: Document, updated: Document) -> int:
    return sum(loses_lines(origin.text, side.text, edited.text) for side in (local, updated))


def _knows_top(edited: Document, sides: tuple[Document, Document | None, Document]) -> bool:
    """Tell whether the first entry's comments can be told from the document's own, such as a licence.

    Where another entry is the first now, what stood above the old one has stayed there.
    """
    local, origin, updated = sides
    first, heads, theirs = _first_step(edited.data), edited.heads(), updated.heads()
    if any(_first_step(side.data) != first for side in (origin, updated) if side is not None):
        return False
    is_clean = all(heads.get(path, ()) in ((), theirs.get(path, ())) for path in ((), (first,)))
    return is_clean or _first_step(local.data) == first


class _Taken(NamedTuple):
    """What of a value is upstream's because it stands in something that is."""

    text: bool = False
    comments: bool = False


_OURS = _Taken()


class _Writer:
    """One walk over the merged data, with what each side has in its places."""

    def __init__(
        self, documents: tuple[Document, Document | None, Document], rules: MergeRules, pairing: Pairing
    ) -> None:
        self.rules = rules
        self.pairing = pairing
        self.comments = [{} if document is None else document.comments() for document in documents]
        self.heads = [{} if document is None else document.heads() for document in documents]
        self.has_comments = any(self.comments) or any(self.heads)
        self.originals: dict[Path, Original] = {}
        self.beside: dict[Path, str | None] = {}
        self.above: dict[Path, tuple[str, ...]] = {}

    def visit(self, path: Path, data: Any, sides: _Sides, shape: Shape, taken: _Taken = _OURS) -> None:
        """Find the originals and comments of `data` and all that is in it."""
        local, _, updated = sides
        if local is not None:
            if same(local.data, data):
                if not self.has_comments:
                    return
            elif updated is not None and not isinstance(data, dict | list) and same(updated.data, data):
                self.originals[path] = Original(updated.path)
        elif updated is None:
            return
        elif not taken.text:
            whole = self._is_whole(data, sides, shape)
            self.originals[path] = Original(updated.path, whole)
            if whole and not self.has_comments:
                return
            taken = _Taken(text=whole, comments=True)
        self._merge_comments(path, data, sides, are_theirs=taken.comments)
        if self._is_their_list(data, sides, shape):
            taken = taken._replace(comments=True)
        for step, child, child_sides in self._children(data, sides, shape):
            inner = shape.element if isinstance(step, int) else shape.child(step)
            self.visit((*path, step), child, child_sides, inner, taken)

    # originals

    def _is_whole(self, data: Any, sides: _Sides, shape: Shape) -> bool:
        """Tell whether a new value is taken as it stands; kpt takes only what has no parts (kpt.md 7.5)."""
        updated = sides[2]
        if updated is None or not same(data, updated.data):
            return False
        return self.rules.keeps_order or not data or not isinstance(data, dict | list) or self._is_atomic(sides, shape)

    def _is_atomic(self, sides: _Sides, shape: Shape) -> bool:
        return all(side is None or isinstance(side.data, list) for side in sides) and self._keys(sides, shape) is None

    def _keys(self, sides: _Sides, shape: Shape) -> Keys | None:
        lists = [side.data for side in sides if side is not None and isinstance(side.data, list)]
        keys = find_keys(lists, shape, self.rules)
        is_broken = keys is not None and self.rules.strict_keys and not all(map(keys.tell_apart, lists))
        return None if is_broken else keys

    # what stands below

    def _children(self, data: Any, sides: _Sides, shape: Shape) -> Iterator[tuple[str | int, Any, _Sides]]:
        if isinstance(data, dict):
            for name, child in data.items():
                local, origin, updated = (_entry(side, name) for side in sides)
                yield name, child, (local, origin, updated)
        elif isinstance(data, list):
            keys = self._keys(sides, shape)
            partners = [self._partners(side, data, keys) for side in sides]
            for index, child in enumerate(data):
                local, origin, updated = (side.get(index) for side in partners)
                yield index, child, (local, origin, updated)

    def _partners(self, side: _Value | None, merged: list[Any], keys: Keys | None) -> dict[int, _Value]:
        """Return what the side has for elements of the merged list, by their index there."""
        if side is None or not isinstance(side.data, list):
            return {}
        pairs = self.pairing(side.data, merged) if keys is None else _matched(side.data, merged, keys)
        return {
            there: _Value(side.data[here], (*side.path, here))
            for here, there in pairs
            if here is not None and there is not None
        }

    def _is_their_list(self, data: Any, sides: _Sides, shape: Shape) -> bool:
        """Tell whether kpt takes the list from upstream, with all comments in it (kpt.md 7.3)."""
        is_list = isinstance(data, list) and not self.rules.merges_comments
        return is_list and self._is_theirs(data, sides) and self._is_atomic(sides, shape)

    # comments

    def _merge_comments(self, path: Path, data: Any, sides: _Sides, *, are_theirs: bool) -> None:
        """Decide what stands beside and above a value; all of it is upstream's where `are_theirs`."""
        ours, base, theirs = _looked_up(self.comments, sides, None)
        ours_above, base_above, theirs_above = _looked_up(self.heads, sides, ())
        if are_theirs:
            self.beside[path], self.above[path] = theirs, theirs_above
        elif self.rules.merges_comments:
            is_there = sides[2] is not None
            self.beside[path] = (
                theirs if is_there and (ours == base or self._speaks_of_theirs(base, theirs, data, sides)) else ours
            )
            self.above[path] = theirs_above if is_there and ours_above == base_above else ours_above
        else:
            # kpt: a comment beside a scalar is part of it (kpt.md 7.5)
            is_part = not isinstance(data, dict | list) and self._is_theirs(data, sides)
            self.beside[path], self.above[path] = theirs if is_part else ours, ours_above

    def _speaks_of_theirs(self, base: Any, theirs: Any, data: Any, sides: _Sides) -> bool:
        """Tell whether upstream's new comment is about the value that won, and the local one about the value that lost.

        Without such a conflict a local comment is an edit that nobody would be told of.
        """
        local, origin, _ = sides
        if theirs == base or local is None or isinstance(data, dict | list) or not self._is_theirs(data, sides):
            return False
        return not same_text(local.data, data) and (origin is None or not same_text(local.data, origin.data))

    def _is_theirs(self, data: Any, sides: _Sides) -> bool:
        _, origin, updated = sides
        if updated is None or not same_text(data, updated.data):
            return False
        return not same_text(updated.data, ABSENT if origin is None else origin.data)


def _first_step(data: Any) -> str | int:
    return next(iter(data), "") if isinstance(data, dict) else 0


def _entry(side: _Value | None, name: str) -> _Value | None:
    if side is None or not isinstance(side.data, dict) or name not in side.data:
        return None
    return _Value(side.data[name], (*side.path, name))


def _matched(elements: list[Any], merged: list[Any], keys: Keys) -> Iterator[tuple[int | None, int]]:
    places = {keys.identity(element): index for index, element in reversed(list(enumerate(elements)))}
    for index, element in enumerate(merged):
        identity = keys.identity(element)
        yield (None if identity is None else places.get(identity)), index


def _looked_up(found: list[Any], sides: _Sides, missing: Any) -> tuple[Any, ...]:
    return tuple(
        missing if side is None else there.get(side.path, missing) for there, side in zip(found, sides, strict=True)
    )
