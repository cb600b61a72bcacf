"""All differences between two versions of a package: the changed objects, Kptfiles and other files."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import Field

from reconciler.catalog.files import File, FileTree, TreeId
from reconciler.krm.numbers import format_count
from reconciler.lazy_dataclasses import dataclass, replace
from reconciler.output.changes.fields import ABSENT_FIELD, VERSION_LABELS, FieldChange, find_field_changes
from reconciler.output.changes.objects import (
    CHANGE_TYPE_ORDER,
    ChangeType,
    ObjectChange,
    find_object_changes,
    has_only_objects_in_file,
    is_kptfile,
    join_field_changes,
)
from reconciler.output.json_data import read_mapping
from reconciler.output.text import shorten_id, to_one_line
from reconciler.packages.clone import SEVERAL_SOURCES
from reconciler.packages.package import parse_documents
from reconciler.packages.parsing import ParseFailure

FileChangeType = Literal[
    "removed", "changed", "added", "moved", "reformatted", "made executable", "made not executable"
]


@dataclass(frozen=True)
class FileChange:
    """The change of a file that is neither a change of KRM objects nor a change of a Kptfile.

    Attributes:
        change_type: The type of the change. "reformatted" means that only the text changed, and not the KRM objects.
        former_path: The path before the change. The path is "" if the file was not moved.
        blobs: The IDs of the content before and after. An ID is "" if the file does not exist.
    """

    path: str
    change_type: Annotated[FileChangeType, Field(serialization_alias="change")]
    former_path: Annotated[str, Field(serialization_alias="movedFrom")] = ""
    blobs: Annotated[tuple[str, str], Field(exclude=True)] = ("", "")

    def format_line(self) -> str:
        """Return the change on one line."""
        origin = f" from {to_one_line(self.former_path)}" if self.former_path else ""
        return f"{to_one_line(self.path)}: {self.change_type}{origin}"


def find_file_changes(old: FileTree, new: FileTree, objects: Sequence[ObjectChange]) -> tuple[FileChange, ...]:
    """Return each file with at least one change that is not in `objects`. Kptfiles are omitted.

    Args:
        old: The old content of the changed files.
        new: The new content of the changed files.
        objects: The changed objects in these files.
    """
    moves = _find_moves(old, new)
    paths_of_objects = {path for change in objects for path in change.files}
    described = {path for path in paths_of_objects if _has_only_objects(path, old, new)}
    rest = {*old, *new} - described - set(moves.values())
    return tuple(
        _build_file_change(path, old, new, moves.get(path, "")) for path in sorted(rest) if not is_kptfile(path)
    )


def _find_moves(old: FileTree, new: FileTree) -> dict[str, str]:
    """Map the new path of each moved file to the former path. A moved file has the same content at both paths."""
    removed: dict[File, list[str]] = {}
    for path in sorted(old, reverse=True):
        if path not in new:
            removed.setdefault(old[path], []).append(path)
    added = [path for path in new if path not in old] if removed else []
    return {path: removed[new[path]].pop() for path in added if removed.get(new[path])}


def _has_only_objects(path: str, old: FileTree, new: FileTree) -> bool:
    return has_only_objects_in_file(path, old) and has_only_objects_in_file(path, new)


def _build_file_change(path: str, old: FileTree, new: FileTree, former_path: str) -> FileChange:
    before, after = old.get(former_path or path), new.get(path)
    blobs = before.id if before else "", after.id if after else ""
    return FileChange(path, "moved" if former_path else _get_change_type(path, old, new), former_path, blobs)


def _get_change_type(path: str, old: FileTree, new: FileTree) -> FileChangeType:
    before, after = old.get(path), new.get(path)
    if before is None or after is None:
        return "added" if after else "removed"
    if before.data == after.data:
        return "made executable" if after.executable else "made not executable"
    return "reformatted" if _has_only_objects(path, old, new) else "changed"


_UPSTREAM_FIELDS = ("upstream", "upstreamLock")
_GATES_PATH = ("info", "readinessGates")


@dataclass(frozen=True)
class KptfileChange:
    """The changes of one Kptfile.

    Attributes:
        upstream: The upstream as text, before and after the change. None if the upstream did not change.
    """

    path: str
    change_type: Annotated[ChangeType, Field(serialization_alias="change")]
    upstream: tuple[str, str] | None = None
    pipeline: tuple[FieldChange, ...] = ()
    gates: tuple[FieldChange, ...] = ()
    other: tuple[FieldChange, ...] = ()

    @property
    def fields(self) -> tuple[FieldChange, ...]:
        """All changed fields, except for the upstream. Changes of the pipeline come first."""
        return (*self.pipeline, *self.gates, *self.other)

    @property
    def has_effect(self) -> bool:
        """Whether functions or gates changed. Other changes have no effect on a cluster."""
        return bool(self.pipeline or self.gates)

    def format_line(self) -> str:
        """Return the change on one line. For an added or removed Kptfile, the line only contains the upstream."""
        old, new = self.upstream or ("", "")
        if self.change_type != "changed":
            upstream = old if self.change_type == "removed" else new
            return f"{to_one_line(self.path)}: {self.change_type}{f', from {upstream}' if upstream else ''}"
        changes = [f"upstream {old} → {new}"] if self.upstream else []
        changes += [change.format_line() for change in self.fields]
        return f"{to_one_line(self.path)}: {join_field_changes(changes) or 'reformatted'}"


def compare_kptfiles(path: str, old: FileTree, new: FileTree) -> KptfileChange:
    """Return the changes of a Kptfile that `old` or `new` contains. Treat an invalid Kptfile as empty."""
    before, after = _parse_kptfile(path, old), _parse_kptfile(path, new)
    change_type: ChangeType = "added" if path not in old else "removed" if path not in new else "changed"
    upstreams = _format_upstream(before), _format_upstream(after)
    changes = [change for change in find_field_changes(before, after) if change.path[0] not in _UPSTREAM_FIELDS]
    parts: dict[str, list[FieldChange]] = {"pipeline": [], "gates": [], "other": []}
    for change in changes:
        parts[_get_part(change)].append(change)
    fields = {name: tuple(part) for name, part in parts.items()}
    return KptfileChange(path, change_type, upstreams if upstreams[0] != upstreams[1] else None, **fields)


def read_upstream_lock(files: FileTree) -> Mapping[str, str]:
    """Return the fields `repo`, `directory`, `ref` and `commit` of `upstreamLock` in the Kptfile of the root folder.

    For a chart or OCI artifact, `ref` is the version, and `commit` is the digest. Return {} if there is no lock, or if
    the package has several sources.
    """
    git = _get_git_fields(read_mapping(_parse_kptfile("Kptfile", files), "upstreamLock"))
    return {field: value for field, value in git.items() if isinstance(value, str)}


def read_source_locks(files: FileTree) -> Mapping[str, Mapping[str, str]]:
    """Return the upstream locks of a package with several sources. Return {} for a package with one upstream.

    The result maps the name of a source to its lock. Each lock has the same fields as a result of `read_upstream_lock`.
    """
    generic = read_mapping(read_mapping(_parse_kptfile("Kptfile", files), "upstreamLock"), "generic")
    if generic.get("storeID") != SEVERAL_SOURCES:
        return {}
    return dict(_iterate_source_locks(generic))


def _iterate_source_locks(generic: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, str]]]:
    locations, versions = (
        dict(part.partition("=")[::2] for part in str(generic.get(name, "")).split(","))
        for name in ("resourceID", "resourceVersion")
    )
    for name, location in locations.items():
        yield name, _parse_stored(location, versions.get(name, ""))


def _parse_stored(location: str, version: str) -> Mapping[str, str]:
    repo, _, directory = location.rpartition("/")
    ref, _, digest = version.partition("@")
    return {"repo": repo, "directory": directory, "ref": ref, "commit": digest}


def _get_git_fields(section: Mapping[str, Any]) -> Mapping[str, Any]:
    generic = read_mapping(section, "generic")
    if not generic:
        return read_mapping(section, "git")
    if generic.get("storeID") == SEVERAL_SOURCES:
        return {}
    return _parse_stored(str(generic.get("resourceID", "")), str(generic.get("resourceVersion", "")))


def shorten_ref(ref: str, directory: str) -> str:
    """Remove the package directory from a ref, e.g. `gateway/v1` -> `v1`."""
    return ref.removeprefix(f"{directory.strip('/')}/")


def _get_part(change: FieldChange) -> str:
    if change.path[0] == "pipeline":
        return "pipeline"
    has_gates = change.path[:2] == _GATES_PATH or (
        change.path == _GATES_PATH[:1]
        and any(isinstance(value, Mapping) and _GATES_PATH[1] in value for value in (change.before, change.after))
    )
    return "gates" if has_gates else "other"


def _parse_kptfile(path: str, files: FileTree) -> Mapping[str, Any]:
    documents = parse_documents(path, files[path].data) if path in files else ()
    data = documents[0].data if not isinstance(documents, ParseFailure) and documents else {}
    return data if isinstance(data, Mapping) else {}


def _format_upstream(kptfile: Mapping[str, Any]) -> str:
    for name in reversed(_UPSTREAM_FIELDS):
        section = read_mapping(kptfile, name)
        generic = read_mapping(section, "generic")
        if generic.get("storeID") == SEVERAL_SOURCES:
            return to_one_line(", ".join(_format_lock(lock) for _, lock in _iterate_source_locks(generic)))
        if git := _get_git_fields(section):
            return to_one_line(_format_lock(git))
    return "none"


def _format_lock(lock: Mapping[str, Any]) -> str:
    directory, ref = str(lock.get("directory", "")), str(lock.get("ref", ""))
    commit = f" ({shorten_id(str(lock['commit']), 7)})" if lock.get("commit") else ""
    return f"{directory}@{shorten_ref(ref, directory)}{commit}"


_MAX_OBJECT_LINES = 3
# Cache changes, because the same change occurs on many clusters. The cache has space for the changes of one pass.
_CACHED_CHANGES = 128


@dataclass(frozen=True)
class PackageChanges:
    """All differences between two versions of a package. The boolean value is False if there are no differences."""

    objects: tuple[ObjectChange, ...] = ()
    kptfiles: tuple[KptfileChange, ...] = ()
    files: tuple[FileChange, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.objects or self.kptfiles or self.files)

    @property
    def comparison_key(self) -> list[Any]:
        """Data to compare the changes of different packages. Equal changes have equal data."""
        return [
            [[*change.key, change.change_type, change.digest] for change in self.objects],
            [[kptfile.path, kptfile.upstream, *map(_build_field_key, kptfile.fields)] for kptfile in self.kptfiles],
            [[*vars(file).values()] for file in self.files],
        ]

    def select_effects(self) -> PackageChanges:
        """Return the changes with an effect on a cluster.

        The result contains no local config, no reformatted files, and only the functions and gates of Kptfiles.
        """
        return PackageChanges(
            tuple(change for change in self.objects if not change.is_local_config),
            tuple(replace(kptfile, upstream=None, other=()) for kptfile in self.kptfiles if kptfile.has_effect),
            tuple(file for file in self.files if file.change_type != "reformatted"),
        )

    def format_summary_lines(self, limit: int = 10) -> tuple[str, ...]:
        """Return at most `limit` lines for changed objects, the most important first. The limit must be positive.

        Objects in which only the version labels of the chart or application change share one line, with their number.
        """
        return limit_lines([line for change_type in CHANGE_TYPE_ORDER for line in self._format(change_type)], limit)

    def list_lines(self) -> tuple[str, ...]:
        """Return one line for each changed field, and for each other change with an effect on a cluster."""
        effects = self.select_effects()
        lines = [line for change in effects.objects for line in change.list_field_lines()]
        lines += [
            f"{to_one_line(kptfile.path)}: {field.format_line()}"
            for kptfile in effects.kptfiles
            for field in kptfile.fields
        ]
        return (*lines, *(file.format_line() for file in effects.files))

    def format_file_lines(self, limit: int = 10) -> tuple[str, ...]:
        """Return at most `limit` lines for changed Kptfiles and other files. The limit must be positive."""
        kptfiles = [change.format_line() for change in self.kptfiles]
        return limit_lines([*kptfiles, *(change.format_line() for change in self.files)], limit)

    def _format(self, change_type: ChangeType) -> list[str]:
        objects = [change for change in self.objects if change.change_type == change_type]
        if change_type == "changed":
            return _format_changed(objects)
        if len(objects) <= _MAX_OBJECT_LINES:
            return [change.format_line() for change in objects]
        counts = Counter(to_one_line(change.key.kind) for change in objects)
        kinds = ", ".join(f"{number} {kind}" for kind, number in counts.items())
        return [f"{format_count(len(objects), 'object')} {change_type}: {kinds}"]


def _format_changed(objects: Sequence[ObjectChange]) -> list[str]:
    labeled = [change for change in objects if change.has_only_version_labels]
    if len(labeled) <= 1:
        return [change.format_line() for change in objects]
    changed_labels = {field.path[-1] for change in labeled for field in change.fields}
    names = [label for label in VERSION_LABELS if label in changed_labels]
    verbs = "labels {} change" if len(names) > 1 else "label {} changes"
    line = f"{format_count(len(labeled), 'object')}: only the {verbs.format(' and '.join(names))}"
    return [*(change.format_line() for change in objects if not change.has_only_version_labels), line]


_cache: OrderedDict[tuple[TreeId, TreeId], PackageChanges] = OrderedDict()


def compare_packages(before: FileTree, after: FileTree) -> PackageChanges:
    """Return the differences between two versions of a package.

    Objects are matched by group, kind, namespace and name, even if an object moved to another file. Only files that
    differ are parsed. A file without KRM objects is compared as a whole.
    """
    changes = _cache.pop((before.id, after.id), None)
    return cache_changes(before.id, after.id, changes if changes is not None else _compare(before, after))


def cache_changes(before: TreeId, after: TreeId, changes: PackageChanges) -> PackageChanges:
    """Add the differences between two trees to the cache, and return them. The caller computed the differences."""
    _cache[before, after] = changes
    if len(_cache) > _CACHED_CHANGES:
        _cache.popitem(last=False)
    return changes


def _compare(before: FileTree, after: FileTree) -> PackageChanges:
    old, new = select_differing_files(before, after)
    objects = find_object_changes(old, new)
    kptfiles = tuple(compare_kptfiles(path, old, new) for path in sorted({*old, *new}) if is_kptfile(path))
    return PackageChanges(objects, kptfiles, find_file_changes(old, new, objects))


def limit_lines(lines: list[str], limit: int) -> tuple[str, ...]:
    """Return at most `limit` lines. If there are more lines, the last line has the number of the omitted lines."""
    if len(lines) <= limit:
        return tuple(lines)
    return (*lines[: limit - 1], f"and {len(lines) - limit + 1} more")


def _build_field_key(change: FieldChange) -> list[Any]:
    return [change.path_text, *([] if value is ABSENT_FIELD else [value] for value in (change.before, change.after))]


def select_differing_files(before: FileTree, after: FileTree) -> tuple[FileTree, FileTree]:
    """Return the files before and after a change, without the files that are equal on both sides."""
    return _select_differing(before, after), _select_differing(after, before)


def _select_differing(files: FileTree, others: FileTree) -> FileTree:
    # Do not copy the files of a new package, because all of them differ.
    return FileTree({path: file for path, file in files.items() if others.get(path) != file}) if others else files
