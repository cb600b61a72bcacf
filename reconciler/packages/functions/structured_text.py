"""Structured text: a string of a resource that holds JSON or YAML itself, such as a file in a ConfigMap."""

from __future__ import annotations

import json
from typing import Any

from reconciler.krm.yaml import Document
from reconciler.packages.functions.function import plain_copy
from reconciler.packages.parsing import Unparsable, edited_document, parse_cached


def structured(text: str) -> Any:
    """Return the mapping or list that a text holds, free to change; None for any other text."""
    document = _document(text)
    data = document.data if document else None
    return plain_copy(data) if isinstance(data, dict | list) else None


def restructured(text: str, data: Any, *, keeps_order: bool = True) -> str:
    """Return the text changed to hold `data`: JSON stays JSON, on one line or on several, and YAML keeps its comments.

    Without `keeps_order` the keys of JSON are sorted and YAML loses its last line break, as upstream does.
    """
    if text.lstrip()[:1] in ("{", "["):
        spread = {"indent": 2} if "\n" in text and "  " in text else {"separators": (",", ":")}
        return json.dumps(data, ensure_ascii=False, sort_keys=not keeps_order, **spread)
    document = _document(text)
    assert document is not None
    edited = edited_document(document, data).text
    return edited if keeps_order else edited.strip()


def _document(text: str) -> Document | None:
    parsed = parse_cached(text.encode())
    return None if isinstance(parsed, Unparsable) or len(parsed.documents) != 1 else parsed.documents[0]
