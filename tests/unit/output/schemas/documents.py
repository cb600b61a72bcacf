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
    for one in read:
        metadata = one.data.get("metadata") if isinstance(one.data, dict) else None
        name = metadata.get("name") if isinstance(metadata, dict) else None
        if isinstance(name, str) and name and {"apiVersion", "kind"} <= one.data.keys():
            # what JSON cannot say no schema can be asked
            yield json.loads(json.dumps(one.data, default=str))


def documents_below(folder: Path) -> Iterator[tuple[str, Document]]:
    """Yield the objects of all files below a folder, and of all texts of the config of each case, with their place."""
    for file in sorted(folder.rglob("*")):
        if file.suffix in (".yaml", ".yml") or file.name == "Kptfile":
            for one in documents(file.read_bytes()):
                yield f"{file.relative_to(folder)} {one['kind']}/{one['metadata']['name']}", one
            for text in _texts_of_case(file):
                for one in documents(text):
                    yield f"{file.relative_to(folder)} {one['kind']}/{one['metadata']['name']}", one


def _texts_of_case(file: Path) -> Iterator[str]:
    try:
        (case,) = (one.data for one in parse_yaml(file.read_bytes()).documents)
    except (YamlError, ValueError):
        return
    if isinstance(case, dict) and isinstance(case.get("config"), dict):
        yield from (text for text in case["config"].values() if isinstance(text, str))


def places(value: Any, at: Place = ()) -> Iterator[tuple[Place, Any]]:
    """Yield every value of a document with its place."""
    yield at, value
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, one in items:
        yield from places(one, (*at, step))


def changed(value: Any, at: Place, new: Any) -> Any:
    """Return a value with another one at a place of it."""
    if not at:
        return new
    first, *rest = at
    if isinstance(value, Mapping):
        return {**value, str(first): changed(value.get(str(first)), tuple(rest), new)}
    return [changed(one, tuple(rest), new) if index == first else one for index, one in enumerate(value)]


def without(value: Any, at: Place) -> Any:
    """Return a value without what is at a place of it."""
    *parent, last = at
    inner = value
    for step in parent:
        inner = inner[step]
    items = inner.items() if isinstance(inner, dict) else enumerate(inner)
    kept = [(step, one) for step, one in items if step != last]
    return changed(value, tuple(parent), dict(kept) if isinstance(inner, dict) else [one for _, one in kept])


def names(at: Place) -> tuple[str, ...]:
    """Return a place without the numbers of items: the names of the fields that lead there."""
    return tuple(step for step in at if isinstance(step, str))
