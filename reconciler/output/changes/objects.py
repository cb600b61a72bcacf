"""KRM objects in the files of a package, and the objects that differ between two versions of the files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import cached_property
from typing import Annotated, Any, Literal

from pydantic import Field, PlainSerializer

from reconciler.catalog.files import FileTree
from reconciler.krm.json_text import compute_digest
from reconciler.krm.numbers import format_count
from reconciler.krm.objects import ObjectKey
from reconciler.lazy_dataclasses import dataclass, field
from reconciler.memory import cached
from reconciler.output.changes.fields import ABSENT_FIELD, FieldChange, find_field_changes
from reconciler.output.text import to_one_line
from reconciler.packages.kptfile import KPTFILE
from reconciler.packages.package import is_krm_file, parse_documents
from reconciler.packages.parsing import ParseFailure
from reconciler.packages.resource import KrmResource
from reconciler.packages.sops import SOPS, is_sops_document
from reconciler.redaction import (
    MASK,
    contains_secret,
    hide_ciphertexts,
    is_ciphertext,
    is_option_path,
    is_sealed_path,
    is_secret_path,
    list_secret_options,
)

# Cache parsed objects, because most files are equal on all clusters. This cache has the same size as the cache of
# parsed files, because the objects share the parsed data.
_CACHED_FILES = 2048


@dataclass(frozen=True, eq=False)
class FileObject(KrmResource):
    """One YAML document of a file. Two objects are equal only if they are the same Python object.

    All clusters with an equal file share this object, so that its derived properties are computed once.
    """

    file: str
    content: Any

    @property
    def data(self) -> Any:
        """The document as plain data, which callers must not change."""
        return self.content

    @cached_property
    def key(self) -> ObjectKey:
        """The group, kind, namespace and name of the object."""
        return super().key

    @cached_property
    def is_local_config(self) -> bool:
        """Whether only tools use the object, so that the object is never applied to a cluster."""
        return super().is_local_config

    @property
    def is_object(self) -> bool:
        """Whether the document is a KRM object with a name."""
        return bool(self.api_version and self.kind and self.name)

    @cached_property
    def has_secret(self) -> bool:
        """Whether the object is a Secret or contains a Secret."""
        return contains_secret(self.content)

    @cached_property
    def digest(self) -> str:
        """The digest of the document."""
        return compute_digest(self.content)


@dataclass(frozen=True)
class FileContent:
    """The KRM objects of a file, in the order of the file."""

    objects: tuple[FileObject, ...] = ()
    has_only_objects: bool = False


_NO_OBJECTS = FileContent()


def read_file_objects(path: str, content: bytes) -> FileContent:
    """Return the KRM objects of a file. A Kptfile, an invalid file and a file without KRM have no objects."""
    return _NO_OBJECTS if is_kptfile(path) or not is_krm_file(path) else _parse_objects(path, content)


def is_kptfile(path: str) -> bool:
    """Return whether the path is the path of a Kptfile."""
    return path == KPTFILE or path.endswith(f"/{KPTFILE}")


@cached(_CACHED_FILES)
def _parse_objects(path: str, content: bytes) -> FileContent:
    documents = parse_documents(path, content)
    if isinstance(documents, ParseFailure):
        return _NO_OBJECTS
    candidates = tuple(FileObject(path, document.data) for document in documents)
    objects = tuple(candidate for candidate in candidates if candidate.is_object)
    return FileContent(objects, has_only_objects=len(objects) == len(candidates))


ChangeType = Literal["removed", "changed", "added"]
CHANGE_TYPE_ORDER: tuple[ChangeType, ...] = ("removed", "changed", "added")
_WORKLOADS = frozenset({"CronJob", "DaemonSet", "Deployment", "Job", "Pod", "ReplicaSet", "StatefulSet"})
_FIELDS_PER_LINE = 3
# Cache changes, because the same change of a file occurs on many clusters. The cache has space for the changes of all
# objects in the cached files.
_CACHED_CHANGES = 4096


@dataclass(frozen=True)
class ObjectChange:
    """One KRM object that was added, removed or changed.

    Attributes:
        fields: The changed fields. Added and removed objects have no changed fields.
        digest: The digest of the change. Equal changes have equal digests. Do not show the digest, because it includes
            values of Secrets.
    """

    key: Annotated[
        ObjectKey, Field(serialization_alias="object"), PlainSerializer(ObjectKey.as_data, return_type=dict[str, str])
    ]
    change_type: Annotated[ChangeType, Field(serialization_alias="change")]
    files: Annotated[frozenset[str], PlainSerializer(sorted, return_type=list[str])]
    fields: tuple[FieldChange, ...] = ()
    is_local_config: Annotated[bool, Field(exclude=True)] = False
    digest: Annotated[str, Field(exclude=True)] = field(default="", repr=False)

    @property
    def name(self) -> str:
        """The name of the object as `Kind namespace/name`."""
        return to_one_line(str(self.key))

    @property
    def has_only_version_labels(self) -> bool:
        """Whether nothing has changed except for the labels with the version of the chart or application."""
        return bool(self.fields) and all(change.is_version_label for change in self.fields)

    def format_line(self) -> str:
        """Return the change on one line. Remove the prefix `spec.` from field paths."""
        if self.change_type != "changed":
            return f"{self.name}: {self.change_type}"
        # The labels with the version of the chart are last, because other changes are more important for reviewers.
        fields = sorted(self.fields, key=lambda change: change.is_version_label)
        changes = [change.format_line().removeprefix("spec.") for change in fields]
        return f"{self.name}: {join_field_changes(changes)}"

    def list_field_lines(self) -> tuple[str, ...]:
        """Return one line for each changed field. Remove the prefix `spec.` from field paths."""
        if self.change_type != "changed":
            return (f"{self.name}: {self.change_type}",)
        return tuple(f"{self.name}: {change.format_line().removeprefix('spec.')}" for change in self.fields)

    @cached_property
    def rank(self) -> tuple[int, int, ObjectKey]:
        """The sort key: by change type, removals first. In each type, workloads are first, and local config last."""
        importance = 2 if self.is_local_config else 0 if self.key.kind in _WORKLOADS else 1
        return CHANGE_TYPE_ORDER.index(self.change_type), importance, self.key


def join_field_changes(changes: list[str]) -> str:
    """Return the first field changes on one line, with the number of the remaining changes."""
    rest = len(changes) - _FIELDS_PER_LINE
    return "; ".join(changes[:_FIELDS_PER_LINE]) + (f"; and {format_count(rest, 'more field')}" if rest > 0 else "")


def find_object_changes(old: FileTree, new: FileTree) -> tuple[ObjectChange, ...]:
    """Return the changed objects between two file trees, sorted by `ObjectChange.rank`."""
    return tuple(sorted(_compare_objects(old, new), key=lambda change: change.rank))


def _compare_objects(old: FileTree, new: FileTree) -> list[ObjectChange]:
    # Handle a new package first, because most drafts add a package, and its objects need no comparison.
    if not old:
        return [_describe_added(added) for added in _iterate_objects(new)]
    before, after = _index_objects(old), _index_objects(new)
    present = (
        _compare_versions(before[key], file_object) if key in before else _describe_added(file_object)
        for key, file_object in after.items()
    )
    removed = (_describe_removed(file_object) for key, file_object in before.items() if key not in after)
    return [change for change in (*present, *removed) if change]


def _index_objects(files: FileTree) -> dict[tuple[ObjectKey, int], FileObject]:
    # Number the objects with equal keys. A package with such objects is invalid, but its changes must be visible.
    counts: Counter[ObjectKey] = Counter()
    numbered: dict[tuple[ObjectKey, int], FileObject] = {}
    for file_object in _iterate_objects(files):
        numbered[file_object.key, counts[file_object.key]] = file_object
        counts[file_object.key] += 1
    return numbered


def _iterate_objects(files: FileTree) -> Iterator[FileObject]:
    for path, file in files.items():
        yield from read_file_objects(path, file.data).objects


@cached(_CACHED_CHANGES)
def _describe_added(added: FileObject) -> ObjectChange:
    return ObjectChange(added.key, "added", frozenset({added.file}), (), added.is_local_config, added.digest)


@cached(_CACHED_CHANGES)
def _describe_removed(removed: FileObject) -> ObjectChange:
    return ObjectChange(removed.key, "removed", frozenset({removed.file}), (), removed.is_local_config, removed.digest)


@cached(_CACHED_CHANGES)
def _compare_versions(before: FileObject, after: FileObject) -> ObjectChange | None:
    changes = tuple(find_field_changes(before.data, after.data))
    if not changes:
        return None
    # The metadata of SOPS changes with each encryption. Show it only if nothing else has changed.
    shown = [change for change in changes if change.path[:1] != (SOPS,)] if is_sops_document(after.data) else ()
    visible = tuple(
        _mask_change(change, is_secret=_is_secret_change(change, before, after)) for change in shown or changes
    )
    files = frozenset({before.file, after.file})
    return ObjectChange(after.key, "changed", files, visible, after.is_local_config, _compute_digest(changes))


def _is_secret_change(change: FieldChange, before: FileObject, after: FileObject) -> bool:
    if is_option_path(change.path, list_secret_options(before.data, after.data)):
        return True
    is_secret_field = (after.group, after.kind) == ("", "Secret") and is_secret_path(change.path)
    is_sealed_field = (after.group, after.kind) == ("bitnami.com", "SealedSecret") and is_sealed_path(change.path)
    # An object of kind List can contain Secrets, but a field path in a List does not show the kind of the item.
    # Therefore, if the List contains a Secret, treat each field whose path ends like the path of a secret value, e.g.
    # `items[0].data.password`, as a secret.
    nested_paths = (change.path[start:] for start in range(1, len(change.path))) if after.has_secret else ()
    is_nested_field = any(is_secret_path(path) or is_sealed_path(path) for path in nested_paths)
    return is_secret_field or is_sealed_field or is_nested_field or contains_secret([change.before, change.after])


def _mask_change(change: FieldChange, *, is_secret: bool) -> FieldChange:
    before, after = (
        MASK if is_secret and value is not ABSENT_FIELD and not is_ciphertext(value) else hide_ciphertexts(value)
        for value in (change.before, change.after)
    )
    return FieldChange(change.path, before, after)


def _compute_digest(changes: tuple[FieldChange, ...]) -> str:
    return compute_digest([[change.path_text, _wrap(change.before), _wrap(change.after)] for change in changes])


def _wrap(value: Any) -> list[Any]:
    return [] if value is ABSENT_FIELD else [value]


def has_only_objects_in_file(path: str, files: FileTree) -> bool:
    """Return whether a file is absent, or contains only KRM objects."""
    return path not in files or read_file_objects(path, files[path].data).has_only_objects
