"""The differences between two versions of a package in results: the models of `-o json`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any

from pydantic import Field, InstanceOf, PlainSerializer

from reconciler.catalog.files import FileTree
from reconciler.output.changes.diffs import format_file_diffs
from reconciler.output.changes.fields import ABSENT_FIELD, FieldChange
from reconciler.output.changes.objects import ChangeType, ObjectChange
from reconciler.output.changes.package_changes import FileChangeType, KptfileChange, PackageChanges
from reconciler.output.envelope import OutputModel


class FieldChangeEntry(OutputModel):
    """One changed field. `before` is absent for an added field, and `after` for a removed field."""

    path: str = Field(description="The field, such as `spec.template.spec.containers[web].image`.")
    before: Any = ABSENT_FIELD
    after: Any = ABSENT_FIELD


class ObjectChangeEntry(OutputModel):
    """One changed KRM object. Added and removed objects have no `fields`."""

    group: str
    kind: str
    namespace: str
    name: str
    change: ChangeType
    files: tuple[str, ...]
    fields: tuple[FieldChangeEntry, ...] = ()


class UpstreamChange(OutputModel):
    """The upstream in a Kptfile before and after the change."""

    before: str
    after: str


class KptfileChangeEntry(OutputModel):
    """One changed Kptfile."""

    path: str
    change: ChangeType
    upstream: UpstreamChange | None = None
    fields: tuple[FieldChangeEntry, ...] = ()


class FileChangeEntry(OutputModel):
    """One changed file, for changes that are not changes of KRM objects or Kptfiles."""

    path: str
    change: FileChangeType
    moved_from: str = ""


class ChangesEntry(OutputModel):
    """All differences between two versions of a package."""

    objects: tuple[ObjectChangeEntry, ...] = ()
    kptfiles: tuple[KptfileChangeEntry, ...] = ()
    files: tuple[FileChangeEntry, ...] = ()


class FileDiff(OutputModel):
    """The unified diff of one file, with masked secrets. The paths in the diff start at the root of the branch."""

    path: str = Field(description="The path in the package.")
    diff: str


def build_changes_entry(changes: PackageChanges) -> ChangesEntry:
    """Return the entry of the differences between two versions of a package."""
    return ChangesEntry(
        objects=tuple(map(_build_object_entry, changes.objects)),
        kptfiles=tuple(map(_build_kptfile_entry, changes.kptfiles)),
        files=tuple(
            FileChangeEntry(path=file.path, change=file.change_type, moved_from=file.former_path)
            for file in changes.files
        ),
    )


SerializedChanges = Annotated[
    InstanceOf[PackageChanges], PlainSerializer(build_changes_entry, return_type=ChangesEntry)
]
"""The differences between two versions of a package. JSON data contains the `ChangesEntry`."""


def build_diffs(before: FileTree, after: FileTree, folder: str, max_lines: int) -> tuple[FileDiff, ...]:
    """Return the diffs of the changed files.

    Args:
        before: The files before the change.
        after: The files after the change.
        folder: The path of the package on its branch, without a slash at the end.
        max_lines: The maximum number of lines per diff. The value 0 omits all diffs.
    """
    diffs = format_file_diffs(before, after, folder, max_lines) if max_lines else ()
    return tuple(FileDiff(path=path, diff=diff) for path, diff in diffs)


def _build_object_entry(change: ObjectChange) -> ObjectChangeEntry:
    return ObjectChangeEntry(
        **change.key.as_data(),
        change=change.change_type,
        files=tuple(sorted(change.files)),
        fields=_build_field_entries(change.fields),
    )


def _build_kptfile_entry(change: KptfileChange) -> KptfileChangeEntry:
    upstream = UpstreamChange(before=change.upstream[0], after=change.upstream[1]) if change.upstream else None
    return KptfileChangeEntry(
        path=change.path, change=change.change_type, upstream=upstream, fields=_build_field_entries(change.fields)
    )


def _build_field_entries(changes: Iterable[FieldChange]) -> tuple[FieldChangeEntry, ...]:
    return tuple(
        FieldChangeEntry(path=change.path_text, before=change.before, after=change.after) for change in changes
    )
