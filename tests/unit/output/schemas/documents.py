"""Documents that schemas are held against: sound ones with every field, whole configs, and one change of each."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from reconciler.krm.yaml import YamlError, parse_yaml

ROOT = Path(__file__).resolve().parents[4]
FULL = ROOT / "fixtures" / "schemas"
CASES = ROOT / "fixtures" / "cases"
SHOWCASE = ROOT / "fixtures" / "showcase"
ACCEPTANCE = ROOT / "../shared/cases"
Place = tuple[str | int, ...]
Document = dict[str, Any]
UNKNOWN = "somethingElse"


def full_documents() -> Iterator[Document]:
    """Yield the sound documents that have every field between them."""
    for file in sorted(FULL.glob("*.yaml")):
        yield from documents(file.read_bytes())


def documents(text: str | bytes) -> Iterator[Document]:
    """Yield the objects of a text, none of one that is no YAML."""
    try:
        read = parse_yaml(text if isinstance(text, bytes) else text.encode()).documents
    except YamlError:
        return
    for document in read:
        metadata = document.data.get("metadata") if isinstance(document.data, dict) else None
        name = metadata.get("name") if isinstance(metadata, dict) else None
        if isinstance(name, str) and name and {"apiVersion", "kind"} <= document.data.keys():
            # what JSON cannot say no schema can be asked
            yield json.loads(json.dumps(document.data, default=str))


def documents_below(folder: Path) -> Iterator[tuple[str, Document]]:
    """Yield the objects of all files below a folder, and of all texts of the config of each case, with their place."""
    for file in sorted(folder.rglob("*")):
        if file.suffix in (".yaml", ".yml") or file.name == "Kptfile":
            for document in documents(file.read_bytes()):
                yield f"{file.relative_to(folder)} {document['kind']}/{document['metadata']['name']}", document
            for text in _texts_of_case(file):
                for document in documents(text):
                    yield f"{file.relative_to(folder)} {document['kind']}/{document['metadata']['name']}", document


def _texts_of_case(file: Path) -> Iterator[str]:
    try:
        (case,) = (document.data for document in parse_yaml(file.read_bytes()).documents)
    except (YamlError, ValueError):
        return
    if isinstance(case, dict) and isinstance(case.get("config"), dict):
        yield from (text for text in case["config"].values() if isinstance(text, str))


def places(value: Any, at: Place = ()) -> Iterator[tuple[Place, Any]]:
    """Yield every value of a document with its place."""
    yield at, value
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, item in items:
        yield from places(item, (*at, step))


def changed(value: Any, at: Place, new: Any) -> Any:
    """Return a value with another one at a place of it."""
    if not at:
        return new
    first, *rest = at
    if isinstance(value, Mapping):
        return {**value, str(first): changed(value.get(str(first)), tuple(rest), new)}
    return [changed(item, tuple(rest), new) if index == first else item for index, item in enumerate(value)]


def without(value: Any, at: Place) -> Any:
    """Return a value without what is at a place of it."""
    *parent, last = at
    inner = value
    for step in parent:
        inner = inner[step]
    items = inner.items() if isinstance(inner, dict) else enumerate(inner)
    remaining = [(step, item) for step, item in items if step != last]
    return changed(
        value, tuple(parent), dict(remaining) if isinstance(inner, dict) else [item for _, item in remaining]
    )


def names(at: Place) -> tuple[str, ...]:
    """Return a place without the numbers of items: the names of the fields that lead there."""
    return tuple(step for step in at if isinstance(step, str))
