"""Kptfile changes: where a package comes from, its pipeline and its gates, told apart from its resources."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from reconciler.packages.package import documents_of
from reconciler.packages.parsing import Unparsable
from reconciler.reporting.fields import FieldChange, field_changes
from reconciler.reporting.object_changes import How, some_fields
from reconciler.reporting.sections import section
from reconciler.reporting.values import one_line
from reconciler.snapshot.files import FileTree

_ORIGIN = ("upstream", "upstreamLock")
_GATES = ("info", "readinessGates")


@dataclass(frozen=True)
class KptfileChange:
    """One Kptfile's changes: where it comes from as (before, after) in words, and its other fields."""

    path: str
    how: How
    upstream: tuple[str, str] | None = None
    pipeline: tuple[FieldChange, ...] = ()
    gates: tuple[FieldChange, ...] = ()
    other: tuple[FieldChange, ...] = ()

    @property
    def fields(self) -> tuple[FieldChange, ...]:
        """All fields but those of the upstream, the pipeline first."""
        return (*self.pipeline, *self.gates, *self.other)

    def words(self) -> str:
        """Return the change on one line; of a Kptfile that came or went only where it is from."""
        old, new = self.upstream or ("", "")
        if self.how != "changed":
            known = old if self.how == "removed" else new
            return f"{one_line(self.path)}: {self.how}{f', from {known}' if known else ''}"
        told = [f"upstream {old} → {new}"] if self.upstream else []
        told += [change.words() for change in self.fields]
        return f"{one_line(self.path)}: {some_fields(told) or 'reformatted'}"


def kptfile_change(path: str, old: FileTree, new: FileTree) -> KptfileChange:
    """Return how a Kptfile differs that stands in one of the trees at least; one that cannot be read is empty."""
    before, after = _read(path, old), _read(path, new)
    how: How = "added" if path not in old else "removed" if path not in new else "changed"
    origins = _origin(before), _origin(after)
    fields = [change for change in field_changes(before, after) if change.path[0] not in _ORIGIN]
    parts: dict[str, list[FieldChange]] = {"pipeline": [], "gates": [], "other": []}
    for change in fields:
        parts[_part(change)].append(change)
    named = {name: tuple(changes) for name, changes in parts.items()}
    return KptfileChange(path, how, origins if origins[0] != origins[1] else None, **named)


def kptfile_lock(files: FileTree) -> Mapping[str, str]:
    """Return `upstreamLock.git` of the package's own Kptfile; {} when there is none."""
    git = section(section(_read("Kptfile", files), "upstreamLock"), "git")
    return {field: value for field, value in git.items() if isinstance(value, str)}


def short_ref(ref: str, directory: str) -> str:
    """Return a ref as people speak of it: without the package's own path before the revision."""
    return ref.removeprefix(f"{directory.strip('/')}/")


def _part(change: FieldChange) -> str:
    if change.path[0] == "pipeline":
        return "pipeline"
    return "gates" if change.path[:2] == _GATES else "other"


def _read(path: str, files: FileTree) -> Mapping[str, Any]:
    documents = documents_of(path, files[path].data) if path in files else ()
    data = documents[0].data if not isinstance(documents, Unparsable) and documents else {}
    return data if isinstance(data, Mapping) else {}


def _origin(kptfile: Mapping[str, Any]) -> str:
    for name in reversed(_ORIGIN):
        if git := section(section(kptfile, name), "git"):
            directory, ref = str(git.get("directory", "")), str(git.get("ref", ""))
            commit = f" ({str(git['commit'])[:7]})" if git.get("commit") else ""
            return one_line(f"{directory}@{short_ref(ref, directory)}{commit}")
    return "none"
