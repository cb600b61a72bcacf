"""Parsing and edits of package files. Results are cached by content, and parse errors are returned as values.

The packages of two clusters often differ only in the name of the cluster. `masked_names` replaces such names by
placeholders, so that texts that differ only in these names share one cache entry.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from reconciler.krm.json_text import parse_strict_json
from reconciler.krm.yaml import Document, NameMask, YamlError, YamlFile, emit, parse_yaml
from reconciler.krm.yaml.compare import is_equal_data
from reconciler.lazy_dataclasses import dataclass, field
from reconciler.memory import cached
from reconciler.packages.sops import check_sops_edit

# Maximum number of cached parse results. A pass renders one upstream package for many clusters, so the cache must
# contain all different files of the packages that are rendered at the same time.
_MAX_CACHED_FILES = 2048
# Maximum number of cached edits. Edits are cached, because most clusters apply the same edits to the same documents.
_MAX_CACHED_EDITS = 1024


@dataclass(frozen=True)
class ParseFailure:
    """The reason why a file cannot be parsed. `line` is the line of the error, starting at 1, or 0 if the line is
    unknown.
    """

    message: str
    line: int = 0


_NO_MASK = NameMask(())
# The names that are replaced by placeholders in cache keys. `masked_names` sets these names. They do not change a
# result: they only determine which texts share a cache entry.
_MASK: ContextVar[NameMask] = ContextVar("name_mask", default=_NO_MASK)


@contextmanager
def masked_names(*names: str) -> Iterator[None]:
    """Replace these names by placeholders in the keys of the caches while the context manager is active.

    The packages of different clusters can then share cached results, although the names of the clusters differ.
    """
    token = _MASK.set(NameMask.from_names(names))
    try:
        yield
    finally:
        _MASK.reset(token)


@cached(_MAX_CACHED_FILES)
def parse_cached(content: bytes) -> YamlFile | ParseFailure:
    """Parse a YAML file. Results are cached by content."""
    if shared := _parse_masked(content, _MASK.get()):
        return shared
    try:
        return parse_yaml(content)
    except YamlError as error:
        return ParseFailure(error.message, error.line)


def _parse_masked(content: bytes, mask: NameMask) -> YamlFile | None:
    """Parse the text with placeholders instead of names, and write the names into the result.

    Return None if the result could depend on the names (see `NameMask`).
    """
    if not any(name.encode() in content for name, _ in mask.pairs):
        return None
    text = content.decode(errors="replace")
    masked = mask.mask(text) if text.encode() == content else None
    parsed = parse_cached(masked.encode()) if masked else None
    return mask.unmask_file(parsed) if isinstance(parsed, YamlFile) else None


@cached(_MAX_CACHED_FILES)
def parse_json_cached(content: bytes) -> Document | ParseFailure:
    """Parse a JSON file into a document. Results are cached by content."""
    try:
        data = parse_strict_json(content)
    except json.JSONDecodeError as error:
        return ParseFailure(error.msg, error.lineno)
    except RecursionError as error:
        return ParseFailure(str(error))
    except ValueError as error:
        # Parse the text as YAML too, because the JSON parser reports no line here, and the YAML parser reports a line.
        as_yaml = parse_cached(content)
        return ParseFailure(str(error), as_yaml.line if isinstance(as_yaml, ParseFailure) else 0)
    try:
        return build_document(data)
    except YamlError as error:
        # Report a text that YAML cannot represent, e.g. a JSON string with half of a surrogate pair.
        return ParseFailure(error.message)


@dataclass(frozen=True)
class _Edit:
    document: Document
    representation: str
    data: Any = field(compare=False)


def edit_document(document: Document, data: Any) -> Document:
    """Return `document.with_data(data)`. Results are cached.

    All edits of package resources by rules use this function, so that no rule breaks the MAC of a SOPS document.

    Raises:
        SopsMacError: SOPS could not decrypt the edited document.
        YamlError: YAML cannot represent `data`.
    """
    if data is document.data:
        return document
    check_sops_edit(document, data)
    # Use `repr` in the cache key instead of ==, because 1 == True == 1.0, and == ignores the order of keys.
    return _edit_cached(_Edit(document, repr(data), data))


@cached(_MAX_CACHED_EDITS)
def _edit_cached(edit: _Edit) -> Document:
    return _edit_masked(edit, _MASK.get()) or edit.document.with_data(edit.data)


@dataclass(frozen=True)
class _MaskedEdit:
    text: str
    line: int
    representation: str
    mask: NameMask = field(compare=False)
    data: Any = field(compare=False)


def _edit_masked(edit: _Edit, mask: NameMask) -> Document | None:
    """Edit the text with placeholders instead of names, and write the names into the result.

    Return None if the result could depend on the names (see `NameMask`).
    """
    document, data = edit.document, edit.data
    if is_equal_data(document.data, data):
        return document
    if not (mask.is_used_in(document.text) or mask.is_used_in(edit.representation)):
        return None
    text, representation = mask.mask(document.text), mask.mask(edit.representation)
    if text is None or representation is None:
        return None
    edited = _edit_masked_text(_MaskedEdit(text, document.line, representation, mask, data))
    unmasked = mask.unmask_document(edited) if edited else None
    return unmasked if unmasked and is_equal_data(unmasked.data, data) else None


@cached(_MAX_CACHED_EDITS)
def _edit_masked_text(edit: _MaskedEdit) -> Document | None:
    parsed = parse_cached(edit.text.encode())
    if not isinstance(parsed, YamlFile) or len(parsed.documents) != 1 or parsed.documents[0].text != edit.text:
        return None
    try:
        return parsed.documents[0].with_data(edit.mask.mask_data(edit.data)).at_line(edit.line)
    except YamlError:
        return None


@dataclass(frozen=True)
class _MaskedContentEdit:
    content: bytes
    texts: tuple[str, ...]
    key: str
    edit: Callable[[bytes, tuple[str, ...]], bytes | None] = field(compare=False)


def edit_content_masked(
    content: bytes, texts: tuple[str, ...], key: str, edit: Callable[[bytes, tuple[str, ...]], bytes | None]
) -> bytes | None:
    """Call `edit` with the content of a YAML file and with `texts`, and return the new content. Results are cached.

    In the texts that `edit` receives, placeholders replace names such as the name of the cluster. The names are then
    written into the result, so that calls for different clusters share one cached result. `edit` must only copy the
    texts into values.

    Return None if placeholders cannot be used. The caller must then call `edit` without placeholders. The reason can be
    that the content or the key contains a name, that no text contains a name, or that YAML can read a value with a name
    as a different type.

    Args:
        key: A text that identifies the edit and contains all its inputs other than `content` and `texts`.
    """
    mask = _MASK.get()
    if mask.is_used_in(content.decode(errors="replace")) or mask.is_used_in(key):
        return None
    masked = tuple(text for text in map(mask.mask, texts) if text is not None)
    if masked == texts or len(masked) < len(texts):
        return None
    edited = _edit_masked_content(_MaskedContentEdit(content, masked, key, edit))
    parsed = parse_cached(edited) if edited is not None else None
    unmasked = mask.unmask_file(parsed) if isinstance(parsed, YamlFile) else None
    return unmasked.to_bytes() if unmasked else None


@cached(_MAX_CACHED_EDITS)
def _edit_masked_content(edit: _MaskedContentEdit) -> bytes | None:
    return edit.edit(edit.content, edit.texts)


def build_document(data: Any) -> Document:
    """Return a YAML document in the default style for data that was not parsed from a file."""
    return parse_yaml(emit(data)).documents[0]


def format_json(data: Any, like: bytes) -> bytes:
    """Return `data` as JSON text with the same indentation and the same final line break as the JSON text `like`."""
    text = json.dumps(data, indent=_detect_indentation(like), ensure_ascii=False)
    return (text + ("\n" if like.endswith(b"\n") or not like else "")).encode()


def _detect_indentation(content: bytes) -> int | str | None:
    lines = content.decode("utf-8", "replace").splitlines()[1:2]
    if not lines:
        return None if content else 2
    indentation = lines[0][: len(lines[0]) - len(lines[0].lstrip())]
    return indentation or 2
