"""Field paths of `apply-replacements`, e.g. `spec.containers.[name=main].image`, and JSON or YAML in string fields.

An example of a string field with YAML is a file in a ConfigMap.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from typing import Any

from reconciler.krm.json_pointer import format_pointer
from reconciler.krm.patterns import PatternError, compile_pattern
from reconciler.krm.yaml import Document
from reconciler.lazy_dataclasses import dataclass
from reconciler.memory import cached
from reconciler.packages.functions.function import FieldError, copy_plain_data, format_scalar
from reconciler.packages.parsing import ParseFailure, edit_document, parse_cached
from reconciler.packages.sops import SopsMacError, check_sops_edit

# Maximum number of cached field paths. This number is sufficient for all packages that are rendered at the same time.
_MAX_CACHED_PATHS = 1024


class ReplacementPathError(ValueError):
    """A text is not a valid field path, or a regular expression in the path is invalid."""


@dataclass(frozen=True)
class NameSegment:
    """A path segment that is the key of a mapping, the index of a list element, `-` (last) or `*` (every element)."""

    text: str


@dataclass(frozen=True)
class MatchSegment:
    """A path segment that selects list elements whose field `field` has the value `value`, e.g. `[name=main]`.

    If `field` is "", the element itself must have this value.
    """

    field: str
    value: str


Segment = NameSegment | MatchSegment


@dataclass(frozen=True)
class FieldReference:
    """A field in plain data: a key of a mapping, or an index of a list.

    `holder` is the mapping or list. A new field is not in `holder` yet.
    """

    holder: Any
    key: str | int

    def read(self) -> Any:
        """Return the value of the field. Return None if the field does not exist."""
        if isinstance(self.holder, dict):
            return self.holder.get(self.key)
        assert isinstance(self.key, int)
        return self.holder[self.key] if self.key < len(self.holder) else None

    def write(self, value: Any) -> None:
        """Set the value of the field. If the last index is the length of the list, append the value."""
        if isinstance(self.holder, list) and self.key == len(self.holder):
            self.holder.append(value)
        else:
            self.holder[self.key] = value


@dataclass(frozen=True)
class ElementMatching:
    """The selection of list elements by a path segment.

    Attributes:
        by_pattern: Whether the value in the segment is a regular expression, which must match a part of the text. If
            false, the value must be equal.
        every: Whether all matching elements are selected. If false, only the first one is selected.
    """

    by_pattern: bool = False
    every: bool = True


EXACT = ElementMatching()


@cached(_MAX_CACHED_PATHS)
def parse_replacement_path(text: str) -> tuple[Segment, ...]:
    r"""Parse a field path. Return its segments.

    Dots separate segments, and `\.` is a dot in a key. `[a.b/c]` is one key. `[name=main]` selects list elements.
    """
    segments = tuple(_parse_segment(part) for part in _split_path(text))
    if not segments:
        raise ReplacementPathError("a field path must not be empty")
    return segments


def find_references(
    root: Any, path: tuple[Segment, ...], *, create: bool = False, matching: ElementMatching = EXACT
) -> list[FieldReference]:
    """Return all fields that a path selects, in the order of the document.

    If `create` is true, missing mappings and list elements on the path are created in `root`.
    """
    holders: list[Any] = [root]
    for segment, following in zip(path, (*path[1:], None), strict=True):
        references = [ref for holder in holders for ref in _find_step_references(holder, segment, create, matching)]
        if following is None:
            return references
        holders = [_get_or_create_container(ref, following, create) for ref in references]
        holders = [holder for holder in holders if holder is not None]
    return []


def _split_path(text: str) -> Iterator[str]:
    start = depth = position = 0
    while position < len(text):
        if text[position] == "\\" and depth == 0:
            position += 1
        elif text[position] == "[" and position == start:
            depth = 1
        elif text[position] == "]" and text[position + 1 : position + 2] in ("", "."):
            depth = 0
        elif text[position] == "." and depth == 0:
            yield text[start:position]
            start = position + 1
        position += 1
    yield from [text[start:]] if text else []


def _parse_segment(part: str) -> Segment:
    if part.startswith("[") and part.endswith("]"):
        field, equals, value = part[1:-1].partition("=")
        return MatchSegment(field, value) if equals else NameSegment(field)
    return NameSegment(part.replace("\\.", "."))


def _find_step_references(
    holder: Any, segment: Segment, create: bool, matching: ElementMatching
) -> Iterator[FieldReference]:
    if isinstance(holder, dict):
        if isinstance(segment, NameSegment) and (create or segment.text in holder):
            yield FieldReference(holder, segment.text)
    elif isinstance(holder, list):
        matches = (
            _find_matching_indices(holder, segment, matching)
            if isinstance(segment, MatchSegment)
            else _find_named_indices(holder, segment, matching)
        )
        indices = list(matches if matching.every else islice(matches, 1))
        if not indices and create:
            indices = list(_append_matching_element(holder, segment, matching))
        yield from (FieldReference(holder, index) for index in indices)


def _find_named_indices(holder: list[Any], segment: NameSegment, matching: ElementMatching) -> Iterator[int]:
    if segment.text == "*" and matching.every:
        yield from range(len(holder))
    elif segment.text == "-" and holder:
        yield len(holder) - 1
    elif segment.text.isdecimal() and int(segment.text) < len(holder):
        yield int(segment.text)


def _find_matching_indices(holder: list[Any], segment: MatchSegment, matching: ElementMatching) -> Iterator[int]:
    for index, element in enumerate(holder):
        value = element.get(segment.field) if segment.field and isinstance(element, dict) else element
        text = format_scalar(value)
        if (
            text is not None
            and (segment.field == "" or isinstance(element, dict))
            and _matches_value(text, segment, matching)
        ):
            yield index


def _matches_value(text: str, segment: MatchSegment, matching: ElementMatching) -> bool:
    if not matching.by_pattern:
        return text == segment.value
    try:
        return compile_pattern(segment.value).search(text) is not None
    except PatternError as error:
        raise ReplacementPathError(f'"{segment.value[:200]}" must be a valid regular expression: {error}') from error


def _append_matching_element(holder: list[Any], segment: Segment, matching: ElementMatching) -> Iterator[int]:
    if isinstance(segment, MatchSegment):
        holder.append({segment.field: segment.value} if segment.field else segment.value)
        yield len(holder) - 1
    elif segment.text == "-" or (matching.every and segment.text == str(len(holder))):
        yield len(holder)


def _get_or_create_container(reference: FieldReference, following: Segment, create: bool) -> Any:
    """Return the mapping or list that a field contains. If the field is empty and `create` is true, create it."""
    value = reference.read()
    if value is None and create:
        is_sequence = isinstance(following, MatchSegment) or following.text == "-"
        value = [] if is_sequence else {}
        reference.write(value)
    return value


def parse_structured_text(text: str) -> Any:
    """Return a copy of the mapping or list in a JSON or YAML text. Return None for any other text."""
    document = _parse_document(text)
    data = document.data if document else None
    return copy_plain_data(data) if isinstance(data, dict | list) else None


def format_structured_text(text: str, data: Any, *, keep_order: bool = True) -> str:
    """Return the JSON or YAML text with the new content `data`. JSON keeps its indentation. YAML keeps its comments.

    If `keep_order` is false, JSON keys are sorted and YAML has no line break at the end, as in kpt.

    Raises:
        FieldError: The text is a SOPS document, and SOPS could not decrypt the changed text.
    """
    document = _parse_document(text)
    assert document is not None
    try:
        check_sops_edit(document, data)
    except SopsMacError as error:
        raise FieldError(
            f"{format_pointer(error.path)} of a SOPS document in a text must not change, because {error.message}"
        ) from None
    if text.lstrip()[:1] in ("{", "["):
        layout = {"indent": 2} if "\n" in text and "  " in text else {"separators": (",", ":")}
        return json.dumps(data, ensure_ascii=False, sort_keys=not keep_order, **layout)
    edited = edit_document(document, data).text
    return edited if keep_order else edited.strip()


def _parse_document(text: str) -> Document | None:
    parsed = parse_cached(text.encode())
    return None if isinstance(parsed, ParseFailure) or len(parsed.documents) != 1 else parsed.documents[0]
