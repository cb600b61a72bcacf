"""Texts that strings hold: what they mean as data, and how they change to mean other data (kubeadmiral 12.1)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Protocol

from reconciler.krm.yaml import YamlError, YamlFile, parse
from reconciler.packages.parsing import edited_document, json_text
from reconciler.rules.overrides.ini import IniText
from reconciler.rules.overrides.model import TextFormat
from reconciler.rules.overrides.sectioned import TextError
from reconciler.rules.overrides.toml import TomlText


class Text(Protocol):
    """One form of text."""

    def read(self, text: str) -> Any:
        """Return the data that the text means; raises TextError or YamlError."""
        ...

    def edit(self, text: str, data: Any) -> str:
        """Return the text changed to mean `data`; raises TextError or YamlError."""
        ...


class YamlText:
    """YAML, which keeps its comments, quotes and order."""

    def read(self, text: str) -> Any:
        """Return the one document."""
        return _one(text).documents[0].data

    def edit(self, text: str, data: Any) -> str:
        """Return the text with the smallest edit."""
        file = _one(text)
        return file.replace(0, edited_document(file.documents[0], data)).to_bytes().decode()


class JsonText:
    """JSON, which keeps its lines where that is possible, and its indentation elsewhere."""

    def read(self, text: str) -> Any:
        """Return the value."""
        try:
            return json.loads(text, object_pairs_hook=_without_repeats)
        except (json.JSONDecodeError, RecursionError) as error:
            raise TextError(str(error)) from error

    def edit(self, text: str, data: Any) -> str:
        """Return the text edited as the YAML that JSON also is, or written anew."""
        try:
            edited = YamlText().edit(text, data)
            if json.loads(edited) == data:
                return edited
        except (YamlError, ValueError):
            return _anew(text, data)
        return _anew(text, data)


TEXTS: Mapping[TextFormat, Text] = {"yaml": YamlText(), "json": JsonText(), "toml": TomlText(), "ini": IniText()}


def _one(text: str) -> YamlFile:
    file = parse(text)
    if len(file.documents) != 1:
        raise TextError(f"it holds {len(file.documents)} documents")
    return file


def _anew(text: str, data: Any) -> str:
    try:
        return json_text(data, text.encode()).decode()
    except UnicodeEncodeError as error:
        raise TextError("it holds half a character, which UTF-8 does not have") from error


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise TextError("a key stands twice in one object")
    return found
