"""Parsing of package files. Equal contents are parsed once, and errors are values."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from reconciler.krm.json_text import parse_strict_json
from reconciler.krm.yaml import Document, YamlError, YamlFile, emit, parse_yaml
from reconciler.memory import cached

# The cache is large enough for the distinct files of the packages in progress. A pass renders one upstream package for
# many clusters.
_MAX_CACHED_FILES = 2048
# Equal edits are cached, because most clusters apply the same edits to the same documents.
_MAX_CACHED_EDITS = 1024


@dataclass(frozen=True)
class ParseFailure:
    """The reason why a file cannot be parsed, and its line number (from 1; 0 if unknown)."""

    message: str
    line: int = 0


@cached(_MAX_CACHED_FILES)
def parse_cached(content: bytes) -> YamlFile | ParseFailure:
    """Parse a YAML file. Equal contents are parsed once."""
    try:
        return parse_yaml(content)
    except YamlError as error:
        return ParseFailure(error.message, error.line)


@cached(_MAX_CACHED_FILES)
def parse_json_cached(content: bytes) -> Document | ParseFailure:
    """Parse a JSON file as a document. Equal contents are parsed once."""
    try:
        data = parse_strict_json(content)
    except json.JSONDecodeError as error:
        return ParseFailure(error.msg, error.lineno)
    except RecursionError as error:
        return ParseFailure(str(error))
    except ValueError as error:
        # The JSON parser reports no position. The YAML parser rejects the same text for the same reason, with a line.
        as_yaml = parse_cached(content)
        return ParseFailure(str(error), as_yaml.line if isinstance(as_yaml, ParseFailure) else 0)
    try:
        return build_document(data)
    except YamlError as error:
        # JSON strings can contain values that are not valid text, such as half of a surrogate pair.
        return ParseFailure(error.message)


@dataclass(frozen=True)
class _Edit:
    document: Document
    representation: str
    data: Any = field(compare=False)


def edit_document(document: Document, data: Any) -> Document:
    """Return `document.with_data(data)`. Equal edits of equal documents are made once. Raises YamlError."""
    if data is document.data:
        return document
    # Compare by `repr`. In contrast to ==, it distinguishes 1 from 1.0 and True, and orders of keys.
    return _edit_cached(_Edit(document, repr(data), data))


@cached(_MAX_CACHED_EDITS)
def _edit_cached(edit: _Edit) -> Document:
    return edit.document.with_data(edit.data)


def build_document(data: Any) -> Document:
    """Return data without source text as a document in the default style."""
    return parse_yaml(emit(data)).documents[0]


def format_json(data: Any, like: bytes) -> bytes:
    """Return data as a JSON file with the indentation and the final line break of `like`."""
    text = json.dumps(data, indent=_detect_indentation(like), ensure_ascii=False)
    return (text + ("\n" if like.endswith(b"\n") or not like else "")).encode()


def _detect_indentation(content: bytes) -> int | str | None:
    lines = content.decode("utf-8", "replace").splitlines()[1:2]
    if not lines:
        return None if content else 2
    indentation = lines[0][: len(lines[0]) - len(lines[0].lstrip())]
    return indentation or 2
