"""Edited documents back in their files: all other bytes stay, in JSON as well as that is possible."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from reconciler.krm.yaml import Document, YamlFile
from reconciler.packages.package import PackageResource
from reconciler.packages.parsing import edited_document, json_text, parse_cached
from reconciler.snapshot.files import FileTree


def with_documents(files: FileTree, edited: Iterable[tuple[PackageResource, Document]]) -> FileTree:
    """Return the files with other documents in the place of resources; the very same files where none is another."""
    changed: dict[str, dict[int, Document]] = {}
    for resource, document in edited:
        if document is not resource.document:
            changed.setdefault(resource.file, {})[resource.index] = document
    written = {path: _content(path, files[path].data, documents) for path, documents in changed.items()}
    return files.with_files(written) if written else files


def _content(path: str, old: bytes, documents: Mapping[int, Document]) -> bytes:
    if path.endswith(".json"):
        return _json(old, documents[0].data)
    source = parse_cached(old)
    assert isinstance(source, YamlFile)  # its documents were read
    order = [(number, documents.get(number, one)) for number, one in enumerate(source.documents)]
    return source.arranged(order).to_bytes()


def _json(old: bytes, data: Any) -> bytes:
    """Return a JSON file with other data, edited as text where that is possible."""
    source = parse_cached(old)
    if isinstance(source, YamlFile) and len(source.documents) == 1:
        text = source.replace(0, edited_document(source.documents[0], data)).to_bytes()
        if _means(text, data):
            return text
    return json_text(data, old)


def _means(text: bytes, data: Any) -> bool:
    try:
        return bool(json.loads(text) == data)
    except ValueError:
        return False
