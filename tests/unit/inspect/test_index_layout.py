"""The layout of the stored index of the console has a version, which changes with the fields of the stored classes."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from enum import Enum
from hashlib import sha256
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest
from pydantic import BaseModel

from reconciler.inspect import index_cache
from reconciler.inspect.index_cache import LAYOUT_VERSION, IndexCache, IndexedTarget, StoredTarget
from reconciler.krm.objects import ObjectKey
from reconciler.output.fleet.model import TargetEntry

LAYOUTS = {1: "79a0217df50f58ce", 2: "372f376362208195"}
"""The digest of the fields for each version. Keep the earlier versions, so that no version is used twice."""
TARGETS = {
    ObjectKey("", "Repository", "default", "berlin"): StoredTarget(
        "definition", IndexedTarget(frozenset(), {}, TargetEntry("berlin", {}, "https://example.com", "main"))
    )
}


def describe_fields(kind: type) -> dict[str, str]:
    """Return the fields of a class with their types, as the source contains them."""
    if is_dataclass(kind):
        return {item.name: str(item.type) for item in fields(kind)}
    if issubclass(kind, BaseModel):
        return {name: str(item.annotation) for name, item in kind.model_fields.items()}
    if issubclass(kind, Enum):
        return {member.name: str(member.value) for member in kind}
    return dict.fromkeys(getattr(kind, "_fields", ()), "")


def list_stored_classes(annotation: Any, found: dict[type, dict[str, str]]) -> dict[type, dict[str, str]]:
    """Add the classes of a type and of its fields to `found`."""
    for argument in get_args(annotation):
        list_stored_classes(argument, found)
    if not isinstance(annotation, type) or annotation in found:
        return found
    described = describe_fields(annotation)
    if described:
        found[annotation] = described
        for hint in get_type_hints(annotation).values():
            list_stored_classes(hint, found)
    return found


def compute_layout() -> str:
    """Return a digest of all stored classes with their fields. The order of fields matters, because it is stored."""
    found = list_stored_classes(StoredTarget, {})
    lines = sorted(f"{kind.__module__}.{kind.__qualname__} {list(named.items())}" for kind, named in found.items())
    return sha256("\n".join(lines).encode()).hexdigest()[:16]


def test_changed_fields_have_a_new_version() -> None:
    layout = compute_layout()

    assert LAYOUTS.get(LAYOUT_VERSION) == layout, (
        f"the fields of the stored classes have changed: increase LAYOUT_VERSION in {index_cache.__name__}, and add its"
        f' digest "{layout}" to LAYOUTS'
    )
    assert max(LAYOUTS) == LAYOUT_VERSION


def test_the_layout_contains_the_classes_of_drafts_and_publications() -> None:
    names = {kind.__name__ for kind in list_stored_classes(StoredTarget, {})}

    assert {"IndexedTarget", "TargetEntry", "PackageRow", "IndexedDraft", "ConflictEntry", "Publication"} <= names


def test_a_file_of_another_layout_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "index"
    IndexCache(file, "scope").write(TARGETS)
    same = IndexCache(file, "scope").read()
    monkeypatch.setattr(index_cache, "LAYOUT_VERSION", LAYOUT_VERSION + 1)

    assert same == TARGETS
    assert IndexCache(file, "scope").read() == {}
