"""The catalog: every object of one config commit by identity, and what could not be read."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cached_property
from itertools import chain
from typing import Any

from reconciler.krm import codes as yaml_codes
from reconciler.krm.digest import digest
from reconciler.krm.findings import Finding, Where, by_name
from reconciler.krm.identity import ObjectKey, split_api_version
from reconciler.krm.ignores import read_ignores
from reconciler.krm.yaml import DEFAULT_LIMITS, Document, Path, YamlError, YamlLimits, parse
from reconciler.snapshot.codes import DUPLICATE_OBJECT, FILE_UNREADABLE, KIND_UNKNOWN, NAME_MISSING
from reconciler.snapshot.files import File, FileTree
from reconciler.snapshot.objects import BlobId

_YAML = by_name(yaml_codes.CODES)
LOCAL_CONFIG = "config.kubernetes.io/local-config"
PORCH_GROUP = "config.porch.kpt.dev"
DEFAULT_NAMESPACE = "default"
# of these every object means something here; of others those that say where they go, or what is different there
_GROUPS_READ = frozenset({PORCH_GROUP, "core.kubeadmiral.io", "greenhouse.sap", "platform", "reconciler.dev"})
_MARKS = ("kubeadmiral.io/", "reconciler.dev/")
_PORCH_KINDS = ("Repository", "PackageVariant", "PackageVariantSet")
# of Porch's own, which nobody reads here
_OTHER_KINDS = ("PackageRev", "PackageRevision", "PackageRevisionSet", "Function")
_ALIKE = 0.85


@dataclass(frozen=True, eq=False)
class ConfigObject:
    """One object of the config repository; `data` is read-only by convention."""

    key: ObjectKey
    api_version: str
    file: str
    document: Document

    @property
    def data(self) -> dict[str, Any]:
        """The object as it stands in the file, `status` included."""
        data: dict[str, Any] = self.document.data
        return data

    @property
    def labels(self) -> dict[str, str]:
        """Its labels; {} when there are none."""
        return _string_map(self.data["metadata"].get("labels"))

    @property
    def annotations(self) -> dict[str, str]:
        """Its annotations; {} when there are none."""
        return _string_map(self.data["metadata"].get("annotations"))

    @property
    def where(self) -> Where:
        """The place of the whole object."""
        return Where(self.file, self.document.line, str(self.key))

    def where_at(self, path: Path) -> Where:
        """The place of a field, or of its nearest ancestor that is written."""
        pointer = "".join(f"/{str(step).replace('~', '~0').replace('/', '~1')}" for step in path)
        return Where(self.file, self.document.line_of(path), str(self.key), pointer)

    @cached_property
    def digest(self) -> str:
        """What the object says, without `status`: equal digests mean that nothing a rule reads has changed."""
        return digest({key: value for key, value in self.data.items() if key != "status"})


@dataclass(frozen=True)
class Unreadable:
    """A file that could not be parsed: nothing in it counts as absent (design 10.5)."""

    file: str
    finding: Finding


Parsed = tuple[Document, ...] | YamlError
ParseMemory = MutableMapping[BlobId, Parsed]


@dataclass(frozen=True)
class _FileRead:
    """What one file has, by the id of its content: its objects, and what is wrong with those that count for none."""

    id: BlobId
    objects: tuple[ConfigObject, ...]
    nameless: tuple[Finding, ...]

    @cached_property
    def by_key(self) -> Mapping[ObjectKey, ConfigObject]:
        """Its objects by identity."""
        return {one.key: one for one in self.objects}

    @cached_property
    def misspelt(self) -> tuple[ConfigObject, ...]:
        """The objects whose kind nobody reads, though it looks like one that is read."""
        return tuple(one for one in self.objects if one.key.group == PORCH_GROUP and _is_misspelt(one.key.kind))


@dataclass(frozen=True)
class Catalog:
    """What one config commit says. Objects that stand there twice count for nothing (design 10.2).

    `copies` are these, all of each: what they are meant for may still matter.
    """

    objects: Mapping[ObjectKey, ConfigObject]
    unreadable: tuple[Unreadable, ...] = ()
    findings: tuple[Finding, ...] = ()
    duplicates: frozenset[ObjectKey] = frozenset()
    _by_kind: Mapping[tuple[str, str], tuple[ConfigObject, ...]] = field(default_factory=dict)
    copies: Mapping[ObjectKey, tuple[ConfigObject, ...]] = field(default_factory=dict)
    _files: Mapping[str, _FileRead] = field(default_factory=dict)

    @property
    def is_whole(self) -> bool:
        """Whether every object of it is known by name: only then is one that is not there gone (design 10.5)."""
        return not self.unreadable and not any(one.code == NAME_MISSING.name for one in self.findings)

    def of_kind(self, group: str, kind: str) -> tuple[ConfigObject, ...]:
        """Return the objects of one kind, sorted by namespace and name."""
        return self._by_kind.get((group, kind), ())

    def of_type(self, api_version: str, kind: str, namespace: str) -> tuple[ConfigObject, ...]:
        """Return the objects of exactly this apiVersion and kind that a variant of `namespace` may see.

        An object without a namespace is treated as being in `default` (porch 1).
        """
        group, _ = split_api_version(api_version)
        return tuple(
            found
            for found in self.of_kind(group, kind)
            if found.api_version == api_version and (found.key.namespace or DEFAULT_NAMESPACE) == namespace
        )

    def get(self, key: ObjectKey) -> ConfigObject | None:
        """Return an object by identity."""
        return self.objects.get(key)

    @cached_property
    def types(self) -> frozenset[tuple[str, str, str]]:
        """The (apiVersion, kind, namespace as of porch 1) of which there is at least one object."""
        return frozenset((api_version, kind, namespace) for api_version, kind, namespace, _ in self.named)

    @cached_property
    def named(self) -> Mapping[tuple[str, str, str, str], ConfigObject]:
        """Objects by (apiVersion, kind, namespace as of porch 1, name)."""
        return {
            (found.api_version, found.key.kind, found.key.namespace or DEFAULT_NAMESPACE, found.key.name): found
            for found in self.objects.values()
        }


def read_catalog(
    files: FileTree,
    memory: ParseMemory | None = None,
    limits: YamlLimits = DEFAULT_LIMITS,
    unread: Mapping[str, str] | None = None,
    before: Catalog | None = None,
) -> Catalog:
    """Read every object of a config tree; parsing is remembered by blob id in `memory` (design 4.3, 10.4).

    A file that cannot be parsed, or is named in `unread` with the reason why it could not even be read, is in
    the catalog as unreadable, with an error finding. An object that stands as it did in the catalog `before`, and at
    the same place, is that very object: whoever has made something of it can tell by that.
    """
    memory = {} if memory is None else memory
    unreadable = [
        Unreadable(path, FILE_UNREADABLE.finding(f"{path}: {why}", Where(path)))
        for path, why in sorted((unread or {}).items())
        if is_config_path(path)
    ]
    reads: dict[str, _FileRead] = {}
    for path, file in _config_files(files):
        known = before._files.get(path) if before else None
        parsed = _parse(file, memory, limits)
        if isinstance(parsed, YamlError):
            finding = _YAML[parsed.code].finding(f"{path}:{parsed.line}: {parsed.message}", Where(path, parsed.line))
            unreadable.append(Unreadable(path, finding))
        else:
            reads[path] = known if known and known.id == file.id else _read_file(path, file.id, parsed, known)
    return _catalog(reads, tuple(unreadable), before)


def _read_file(path: str, blob: BlobId, documents: Iterable[Document], before: _FileRead | None) -> _FileRead:
    known = {one.document: one for one in before.objects} if before else {}
    found = [(document, read) for document in documents if (read := _read_object(path, document)) is not None]
    objects = tuple(known.get(document, read) for document, read in found if not isinstance(read, Finding))
    return _FileRead(blob, objects, tuple(read for _, read in found if isinstance(read, Finding)))


def _catalog(reads: Mapping[str, _FileRead], unreadable: tuple[Unreadable, ...], before: Catalog | None) -> Catalog:
    found: dict[ObjectKey, ConfigObject] = {}
    for read in reads.values():
        found.update(read.by_key)
    is_plain = len(found) == sum(len(read.objects) for read in reads.values())
    twice = {} if is_plain else _twice(reads.values())
    misspelt: dict[ObjectKey, ConfigObject] = {}
    for one in chain.from_iterable(read.misspelt for read in reads.values()):
        misspelt.setdefault(one.key, one)
    findings = [
        *chain.from_iterable(read.nameless for read in reads.values()),
        *map(_misspelt, misspelt.values()),
        *(_duplicate(one, same) for same in twice.values() for one in same),
    ]
    # most of the time files change, and not what objects there are
    names = before.objects if before and before.objects.keys() == found.keys() else sorted(found)
    objects = {key: found[key] for key in names if key not in twice}
    copies = {key: tuple(twice[key]) for key in sorted(twice)}
    kinds = _group(objects)
    return Catalog(objects, unreadable, tuple(findings), frozenset(twice), kinds, copies, reads)


def _twice(reads: Iterable[_FileRead]) -> dict[ObjectKey, list[ConfigObject]]:
    found: dict[ObjectKey, list[ConfigObject]] = {}
    for one in chain.from_iterable(read.objects for read in reads):
        found.setdefault(one.key, []).append(one)
    return {key: same for key, same in found.items() if len(same) > 1}


def _config_files(files: FileTree) -> Iterator[tuple[str, File]]:
    ignored = _ignored(files)
    for path, file in files.items():
        if is_config_path(path) and not ignored(path):
            yield path, file


def is_config_path(path: str) -> bool:
    """Return whether a file of this path is read as config: YAML or JSON, and not hidden (design 10.4)."""
    hidden = any(segment.startswith(".") for segment in path.split("/"))
    return path.endswith((".yaml", ".yml", ".json")) and not hidden


def _ignored(files: FileTree) -> Any:
    specs = {
        posixpath.dirname(path): read_ignores(file.data)
        for path, file in files.items()
        if posixpath.basename(path) == ".krmignore"
    }

    def ignored(path: str) -> bool:
        return any(
            spec.match_file(posixpath.relpath(path, folder or "."))
            for folder, spec in specs.items()
            if not folder or path.startswith(folder + "/")
        )

    return ignored


def _parse(file: File, memory: ParseMemory, limits: YamlLimits) -> Parsed:
    if file.id not in memory:
        try:
            memory[file.id] = parse(file.data, limits).documents
        except YamlError as error:
            memory[file.id] = error
    return memory[file.id]


def _read_object(path: str, document: Document) -> ConfigObject | Finding | None:
    data = document.data
    if (
        not isinstance(data, dict)
        or not isinstance(data.get("apiVersion"), str)
        or not isinstance(data.get("kind"), str)
    ):
        return None
    metadata = data.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    group, _ = split_api_version(data["apiVersion"])
    if not isinstance(metadata, dict) or not isinstance(name, str) or not name:
        return _nameless(path, document, data) if _is_meant_to_count(group, metadata) else None
    if _is_local_config(metadata):
        return None
    namespace = metadata.get("namespace") or (DEFAULT_NAMESPACE if group == PORCH_GROUP else "")
    return ConfigObject(ObjectKey(group, data["kind"], str(namespace), name), data["apiVersion"], path, document)


def _is_meant_to_count(group: str, metadata: object) -> bool:
    """Tell whether an object would do something here if it had a name: what it has done so far is not to go with it."""
    if not isinstance(metadata, dict):
        return group in _GROUPS_READ
    marked = (name for field in ("labels", "annotations") for name in _string_map(metadata.get(field)))
    return not _is_local_config(metadata) and (group in _GROUPS_READ or any(name.startswith(_MARKS) for name in marked))


def _nameless(path: str, document: Document, data: Mapping[str, Any]) -> Finding:
    where = Where(path, document.line_of(("metadata", "name")), data["kind"], "/metadata/name")
    written = (data.get("metadata") or {}).get("name") if isinstance(data.get("metadata"), dict) else None
    what = "it is missing" if written is None else f"not {written!r}"
    return NAME_MISSING.finding(f"metadata.name must be a non-empty string, {what}", where)


def _is_misspelt(kind: str) -> bool:
    return kind not in (*_PORCH_KINDS, *_OTHER_KINDS) and bool(_meant(kind))


def _meant(kind: str) -> list[str]:
    return get_close_matches(kind, _PORCH_KINDS, 1, _ALIKE)


def _misspelt(one: ConfigObject) -> Finding:
    (meant,) = _meant(one.key.kind)
    message = f'kind "{one.key.kind}" of {PORCH_GROUP} is not read; did you mean "{meant}"?'
    return KIND_UNKNOWN.finding(message, one.where_at(("kind",)))


def _is_local_config(metadata: Mapping[str, Any]) -> bool:
    annotations = metadata.get("annotations")
    value = annotations.get(LOCAL_CONFIG) if isinstance(annotations, dict) else None
    return value not in (None, "", "false", False)


def _duplicate(one: ConfigObject, same: list[ConfigObject]) -> Finding:
    others = ", ".join(f"{other.file}:{other.document.line}" for other in same if other is not one)
    message = f"{one.key} must stand in one place only; it is also at {others}, and neither counts"
    return DUPLICATE_OBJECT.finding(message, one.where)


def _group(objects: Mapping[ObjectKey, ConfigObject]) -> dict[tuple[str, str], tuple[ConfigObject, ...]]:
    kinds: dict[tuple[str, str], list[ConfigObject]] = {}
    for key, found in objects.items():
        kinds.setdefault((key.group, key.kind), []).append(found)
    return {kind: tuple(found) for kind, found in kinds.items()}


def _string_map(value: Any) -> dict[str, str]:
    entries = value.items() if isinstance(value, dict) else ()
    return {key: text for key, text in entries if isinstance(key, str) and isinstance(text, str)}
