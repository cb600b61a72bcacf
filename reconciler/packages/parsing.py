"""Parsing of package files. Results are cached by content, and parse errors are returned as values."""

from __future__ import annotations

import json
from typing import Any

from reconciler.krm.json_text import parse_strict_json
from reconciler.krm.yaml import Document, YamlError, YamlFile, emit, parse_yaml
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


@cached(_MAX_CACHED_FILES)
def parse_cached(content: bytes) -> YamlFile | ParseFailure:
    """Parse a YAML file. Results are cached by content."""
    try:
        return parse_yaml(content)
    except YamlError as error:
        return ParseFailure(error.message, error.line)


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
    return edit.document.with_data(edit.data)


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
