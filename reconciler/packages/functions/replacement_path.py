"""Field paths of replacements: `spec.containers.[name=main].image` (kpt.md 15.1 rule 4)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from reconciler.caching import cached
from reconciler.krm.patterns import PatternError, compile_pattern
from reconciler.packages.functions.function import scalar_text

# the field paths of the replacements in flight
_REMEMBERED_PATHS = 1024


class PathError(ValueError):
    """The text is not a field path, or leads through a field that has no parts."""


@dataclass(frozen=True)
class Name:
    """A key of a mapping, an index, `-` or `*` of a sequence."""

    text: str


@dataclass(frozen=True)
class Match:
    """The elements whose field has a value; the field "" is the element itself."""

    field: str
    value: str


Segment = Name | Match


@dataclass(frozen=True)
class Reference:
    """A place in plain data that can be read and written; `holder` is a dict or a list, the place may not exist yet."""

    holder: Any
    key: str | int

    def read(self) -> Any:
        """Return the value, None where there is none."""
        if isinstance(self.holder, dict):
            return self.holder.get(self.key)
        assert isinstance(self.key, int)
        return self.holder[self.key] if self.key < len(self.holder) else None

    def write(self, value: Any) -> None:
        """Set the value; an index just behind the end appends."""
        if isinstance(self.holder, list) and self.key == len(self.holder):
            self.holder.append(value)
        else:
            self.holder[self.key] = value


@dataclass(frozen=True)
class Matching:
    """How the elements of a list are chosen: by patterns that may match anywhere (D27), and whether more than one."""

    by_pattern: bool = False
    every: bool = True


EXACT = Matching()


@cached(_REMEMBERED_PATHS)
def parse_path(text: str) -> tuple[Segment, ...]:
    """Return the segments of a path: dots separate, `\\.` is a dot, `[a.b/c]` one key, `[k=v]` chooses elements."""
    segments = tuple(_segment(part) for part in _parts(text))
    if not segments:
        raise PathError("a field path must not be empty")
    return segments


def find(root: Any, path: tuple[Segment, ...], *, create: bool = False, matching: Matching = EXACT) -> list[Reference]:
    """Return the places that a path leads to, in document order.

    With `create` missing mappings and elements on the way are made, in `root`.
    """
    holders: list[Any] = [root]
    for segment, following in zip(path, (*path[1:], None), strict=True):
        references = [ref for holder in holders for ref in _step(holder, segment, create, matching)]
        if following is None:
            return references
        holders = [_entered(ref, following, create) for ref in references]
        holders = [holder for holder in holders if holder is not None]
    return []


def _parts(text: str) -> Iterator[str]:
    start = depth = at = 0
    while at < len(text):
        if text[at] == "\\" and depth == 0:
            at += 1
        elif text[at] == "[" and at == start:
            depth = 1
        elif text[at] == "]" and text[at + 1 : at + 2] in ("", "."):
            depth = 0
        elif text[at] == "." and depth == 0:
            yield text[start:at]
            start = at + 1
        at += 1
    yield from [text[start:]] if text else []


def _segment(part: str) -> Segment:
    if part.startswith("[") and part.endswith("]"):
        field, equals, value = part[1:-1].partition("=")
        return Match(field, value) if equals else Name(field)
    return Name(part.replace("\\.", "."))


def _step(holder: Any, segment: Segment, create: bool, matching: Matching) -> Iterator[Reference]:
    if isinstance(holder, dict):
        if isinstance(segment, Name) and (create or segment.text in holder):
            yield Reference(holder, segment.text)
    elif isinstance(holder, list):
        found = _matched(holder, segment, matching) if isinstance(segment, Match) else _named(holder, segment, matching)
        indices = list(found if matching.every else islice(found, 1))
        if not indices and create:
            indices = list(_appended(holder, segment, matching))
        yield from (Reference(holder, index) for index in indices)


def _named(holder: list[Any], segment: Name, matching: Matching) -> Iterator[int]:
    if segment.text == "*" and matching.every:
        yield from range(len(holder))
    elif segment.text == "-" and holder:
        yield len(holder) - 1
    elif segment.text.isdecimal() and int(segment.text) < len(holder):
        yield int(segment.text)


def _matched(holder: list[Any], segment: Match, matching: Matching) -> Iterator[int]:
    for index, element in enumerate(holder):
        value = element.get(segment.field) if segment.field and isinstance(element, dict) else element
        text = scalar_text(value)
        if text is not None and (segment.field == "" or isinstance(element, dict)) and _holds(text, segment, matching):
            yield index


def _holds(text: str, segment: Match, matching: Matching) -> bool:
    if not matching.by_pattern:
        return text == segment.value
    try:
        return compile_pattern(segment.value).search(text) is not None
    except PatternError as error:
        raise PathError(f'"{segment.value[:200]}" must be a regular expression: {error}') from error


def _appended(holder: list[Any], segment: Segment, matching: Matching) -> Iterator[int]:
    if isinstance(segment, Match):
        holder.append({segment.field: segment.value} if segment.field else segment.value)
        yield len(holder) - 1
    elif segment.text == "-" or (matching.every and segment.text == str(len(holder))):
        yield len(holder)


def _entered(reference: Reference, following: Segment, create: bool) -> Any:
    """Return the mapping or sequence at a place, made when it is missing and may be."""
    value = reference.read()
    if value is None and create:
        is_sequence = isinstance(following, Match) or following.text == "-"
        value = [] if is_sequence else {}
        reference.write(value)
    return value
