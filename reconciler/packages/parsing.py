"""Parsing the files of packages: each content once, and errors as values."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from reconciler.caching import cached
from reconciler.krm.strict_json import read_json
from reconciler.krm.yaml import Document, YamlError, YamlFile, emit, parse

# a pass renders one upstream package for many clusters; room for every distinct file of the packages in flight
_REMEMBERED_FILES = 2048
# clusters differ in few files: most edits are the same ones, over and over
_REMEMBERED_EDITS = 1024


@dataclass(frozen=True)
class Unparsable:
    """Why a file could not be parsed, and in which line (from 1; 0: unknown)."""

    message: str
    line: int = 0


@cached(_REMEMBERED_FILES)
def parse_cached(content: bytes) -> YamlFile | Unparsable:
    """Return the parsed YAML file, or why it is none; equal bytes are parsed once."""
    try:
        return parse(content)
    except YamlError as error:
        return Unparsable(error.message, error.line)


@cached(_REMEMBERED_FILES)
def parse_json_cached(content: bytes) -> Document | Unparsable:
    """Return a JSON file as a document, or why it is none; equal bytes are parsed once."""
    try:
        data = read_json(content)
    except json.JSONDecodeError as error:
        return Unparsable(error.msg, error.lineno)
    except RecursionError as error:
        return Unparsable(str(error))
    except ValueError as error:
        # JSON is read without places. As YAML, the same text is refused for the same reason, at its line.
        as_yaml = parse_cached(content)
        return Unparsable(str(error), as_yaml.line if isinstance(as_yaml, Unparsable) else 0)
    try:
        return fresh_document(data)
    except YamlError as error:
        # JSON may hold what no text can, such as half of a character
        return Unparsable(error.message)


@dataclass(frozen=True)
class _Edit:
    document: Document
    shown: str
    data: Any = field(compare=False)


def edited_document(document: Document, data: Any) -> Document:
    """Return `document.with_data(data)`; equal edits of equal documents are made once. Raises YamlError."""
    if data is document.data:
        return document
    # unlike ==, the text of plain data tells 1 from 1.0 and True, and one order of keys from another
    return _edited(_Edit(document, repr(data), data))


@cached(_REMEMBERED_EDITS)
def _edited(edit: _Edit) -> Document:
    return edit.document.with_data(edit.data)


def fresh_document(data: Any) -> Document:
    """Return data that has no text yet as a document in our own style."""
    return parse(emit(data)).documents[0]


def json_text(data: Any, like: bytes) -> bytes:
    """Return data as a JSON file, indented and ended as the file that it replaces."""
    text = json.dumps(data, indent=_indentation(like), ensure_ascii=False)
    return (text + ("\n" if like.endswith(b"\n") or not like else "")).encode()


def _indentation(content: bytes) -> int | str | None:
    lines = content.decode("utf-8", "replace").splitlines()[1:2]
    if not lines:
        return None if content else 2
    blank = lines[0][: len(lines[0]) - len(lines[0].lstrip())]
    return blank or 2
