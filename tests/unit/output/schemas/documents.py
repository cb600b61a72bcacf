"""Documents for schema tests: valid documents with every field, whole configs, and documents with one change."""

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


def read_full_documents() -> Iterator[Document]:
    """Yield the valid documents that contain every field between them."""
    for file in sorted(FULL.glob("*.yaml")):
        yield from parse_documents(file.read_bytes())


def parse_documents(text: str | bytes) -> Iterator[Document]:
    """Yield the objects of a YAML text, or nothing for an invalid text."""
    try:
        read = parse_yaml(text if isinstance(text, bytes) else text.encode()).documents
    except YamlError:
        return
    for document in read:
        metadata = document.data.get("metadata") if isinstance(document.data, dict) else None
        name = metadata.get("name") if isinstance(metadata, dict) else None
        if isinstance(name, str) and name and {"apiVersion", "kind"} <= document.data.keys():
            # A schema validates JSON, so that values without a JSON form are skipped.
            yield json.loads(json.dumps(document.data, default=str))


def read_documents_below(folder: Path) -> Iterator[tuple[str, Document]]:
    """Yield the objects of all files below a folder and of the config of each case, with their location."""
    for file in sorted(folder.rglob("*")):
        if file.suffix in (".yaml", ".yml") or file.name == "Kptfile":
            for document in parse_documents(file.read_bytes()):
                yield f"{file.relative_to(folder)} {document['kind']}/{document['metadata']['name']}", document
            for text in _list_case_texts(file):
                for document in parse_documents(text):
                    yield f"{file.relative_to(folder)} {document['kind']}/{document['metadata']['name']}", document


def _list_case_texts(file: Path) -> Iterator[str]:
    try:
        (case,) = (document.data for document in parse_yaml(file.read_bytes()).documents)
    except (YamlError, ValueError):
        return
    if isinstance(case, dict) and isinstance(case.get("config"), dict):
        yield from (text for text in case["config"].values() if isinstance(text, str))


def walk_values(value: Any, at: Place = ()) -> Iterator[tuple[Place, Any]]:
    """Yield every value of a document with its path."""
    yield at, value
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, item in items:
        yield from walk_values(item, (*at, step))


def replace_value(value: Any, at: Place, new: Any) -> Any:
    """Return the value with another value at one of its paths."""
    if not at:
        return new
    first, *rest = at
    if isinstance(value, Mapping):
        return {**value, str(first): replace_value(value.get(str(first)), tuple(rest), new)}
    return [replace_value(item, tuple(rest), new) if index == first else item for index, item in enumerate(value)]


def remove_value(value: Any, at: Place) -> Any:
    """Return the value without the content of one of its paths."""
    *parent, last = at
    inner = value
    for step in parent:
        inner = inner[step]
    items = inner.items() if isinstance(inner, dict) else enumerate(inner)
    remaining = [(step, item) for step, item in items if step != last]
    return replace_value(
        value, tuple(parent), dict(remaining) if isinstance(inner, dict) else [item for _, item in remaining]
    )


def get_field_names(at: Place) -> tuple[str, ...]:
    """Return the field names of a path, without list indexes."""
    return tuple(step for step in at if isinstance(step, str))
