"""The catalog: every object of one config commit by identity, and what could not be read."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from typing import Any

from reconciler.krm import codes as yaml_codes
from reconciler.krm.codes import internal_error
from reconciler.krm.digest import digest
from reconciler.krm.findings import Finding, Where, by_name
from reconciler.krm.identity import ObjectKey, split_api_version
from reconciler.krm.ignores import read_ignores
from reconciler.krm.isolation import ScopeFailedError, boundary
from reconciler.krm.yaml import DEFAULT_LIMITS, Document, Path, YamlError, YamlLimits, parse
from reconciler.snapshot.codes import DUPLICATE_OBJECT, FILE_UNREADABLE, NAME_MISSING, UNKNOWN_KIND
from reconciler.snapshot.files import File, FileTree
from reconciler.snapshot.known_kinds import kind_suggestion
from reconciler.snapshot.objects import BlobId

_YAML = by_name(yaml_codes.CODES)
LOCAL_CONFIG = "config.kubernetes.io/local-config"
PORCH_GROUP = "config.porch.kpt.dev"
DEFAULT_NAMESPACE = "default"
# of these every object means something here; of others those that say where they go, or what is different there
_GROUPS_READ = frozenset({PORCH_GROUP, "core.kubeadmiral.io", "greenhouse.sap", "platform", "reconciler.dev"})
# Groups whose kinds are namespaced, with the exceptions: kinds that are cluster-scoped, or found by name alone.
_WITHOUT_NAMESPACE: Mapping[str, tuple[str, ...]] = {
    PORCH_GROUP: (),
    "greenhouse.sap": ("ClusterPluginDefinition", "Organization"),
    "platform": ("Addon", "ComponentDefinition", "ComponentType"),
}
_MARKS = ("kubeadmiral.io/", "reconciler.dev/")


@dataclass(frozen=True, eq=False)
class ConfigObject:
    """One object of the config repository; `data` is read-only by convention.

    `path` is where the object begins in its document: () for the whole document, `("items", 2)` for the third item of
    a `List`.
    """

    key: ObjectKey
    api_version: str
    file: str
    document: Document
    path: Path = ()

    @cached_property
    def data(self) -> dict[str, Any]:
        """The object as it is written, `status` included; an item of a typed list with its kind."""
        found: Any = self.document.data
        for step in self.path:
            found = found[step]
        data: dict[str, Any] = found
        if "apiVersion" in data and "kind" in data:
            return data
        return {"apiVersion": self.api_version, "kind": self.key.kind, **data}

    @property
    def line(self) -> int:
        """The line of the file where the object begins."""
        return self.document.line_of(self.path) if self.path else self.document.line

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
        return Where(self.file, self.line, str(self.key))

    def place_of(self, path: Path) -> tuple[int, int]:
        """Return the line and the column of a field in the file, or of its nearest ancestor that is written."""
        return self.document.place_of((*self.path, *path))

    def where_at(self, path: Path) -> Where:
        """The place of a field, or of its nearest ancestor that is written."""
        pointer = "".join(f"/{str(step).replace('~', '~0').replace('/', '~1')}" for step in path)
        return Where(self.file, self.document.line_of((*self.path, *path)), str(self.key), pointer)

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
class Settlement:
    """How conflicts between definitions end (`snapshot/claims.py`).

    `holders` are the file, and the place in its document, of the one definition that counts of an identity that is
    defined several times. `rejected` are objects without effect: others had their cluster or place before.
    """

    holders: Mapping[ObjectKey, tuple[str, Path]] = field(default_factory=dict)
    rejected: frozenset[ObjectKey] = frozenset()
    findings: tuple[Finding, ...] = ()

    def __or__(self, other: Settlement) -> Settlement:
        return Settlement(
            {**self.holders, **other.holders}, self.rejected | other.rejected, (*self.findings, *other.findings)
        )

    def __bool__(self) -> bool:
        return bool(self.findings)


@dataclass(frozen=True)
class _FileRead:
    """What one file has, by the id of its content: its objects, and what is wrong with those that count for none.

    `without_version` are findings about documents of a kind that is read, but without an apiVersion.
    """

    id: BlobId
    documents: tuple[Document, ...]
    objects: tuple[ConfigObject, ...]
    nameless: tuple[Finding, ...]
    without_version: tuple[Finding, ...] = ()

    @cached_property
    def by_key(self) -> Mapping[ObjectKey, ConfigObject]:
        """Its objects by identity."""
        return {one.key: one for one in self.objects}


@dataclass(frozen=True)
class Catalog:
    """What one config commit says. Objects that stand there twice count for nothing (design 10.2).

    `copies` are these, all of each: what they are meant for may still matter. `package_folders` have a Kptfile: they
    are packages beside the config. `doubts` are errors that come from a comparison with earlier passes: the config may
    lack objects that were not deleted, so that nothing counts as deleted. `settlement` is how conflicts between
    definitions ended.
    """

    objects: Mapping[ObjectKey, ConfigObject]
    unreadable: tuple[Unreadable, ...] = ()
    findings: tuple[Finding, ...] = ()
    duplicates: frozenset[ObjectKey] = frozenset()
    _by_kind: Mapping[tuple[str, str], tuple[ConfigObject, ...]] = field(default_factory=dict)
    copies: Mapping[ObjectKey, tuple[ConfigObject, ...]] = field(default_factory=dict)
    _files: Mapping[str, _FileRead] = field(default_factory=dict)
    package_folders: frozenset[str] = frozenset()
    doubts: tuple[Finding, ...] = ()
    settlement: Settlement = field(default_factory=Settlement)

    @property
    def is_whole(self) -> bool:
        """Whether every object of it is known by name: only then is one that is not there gone (design 10.5)."""
        unnamed = any(one.code == NAME_MISSING.name for one in self.findings)
        return not (self.unreadable or self.doubts or unnamed)

    def has(self, key: ObjectKey) -> bool:
        """Return whether an object is in the config, even if it is there twice or rejected."""
        return key in self.objects or key in self.duplicates or key in self.settlement.rejected

    def documents(self, path: str) -> tuple[Document, ...] | None:
        """Return the documents of a file; None for a file that is ignored, not config, or cannot be parsed."""
        read = self._files.get(path)
        return read.documents if read else None

    def find_in_file(self, path: str, key: ObjectKey) -> ConfigObject | None:
        """Return an object by the file that defines it, also one that other files define; None without it there."""
        read = self._files.get(path)
        return read.by_key.get(key) if read else None

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

    @property
    def kinds(self) -> Iterable[tuple[str, str]]:
        """The group and kind of all objects, sorted."""
        return self._by_kind.keys()

    def get(self, key: ObjectKey) -> ConfigObject | None:
        """Return an object by identity."""
        return self.objects.get(key)

    def excluding(self, keys: Iterable[ObjectKey]) -> Catalog:
        """Return this catalog with objects in doubt: they have no effect, and nothing they own is taken for deleted."""
        doubtful = frozenset(keys)
        if not doubtful:
            return self
        objects = {key: one for key, one in self.objects.items() if key not in doubtful}
        copies = {**self.copies, **{key: (self.objects[key],) for key in doubtful}}
        return replace(
            self,
            objects=objects,
            duplicates=self.duplicates | doubtful,
            copies=dict(sorted(copies.items())),
            _by_kind=_group(objects),
        )

    def settled(self, settlement: Settlement) -> Catalog:
        """Return this catalog with the end of conflicts: the holders count, and what is rejected has no effect."""
        if not settlement:
            return self
        holders = {
            key: next(one for one in self.copies[key] if (one.file, one.path) == place)
            for key, place in settlement.holders.items()
        }
        kept = {key: one for key, one in self.objects.items() if key not in settlement.rejected}
        objects = dict(sorted({**kept, **holders}.items()))
        ended = {one.where for key in holders for one in self.copies[key]}
        findings = (
            one for one in self.findings if not (one.code == DUPLICATE_OBJECT.name and one.where in ended)
        )  # fmt: skip
        return replace(
            self,
            objects=objects,
            duplicates=self.duplicates - holders.keys(),
            findings=(*findings, *settlement.findings),
            copies={key: same for key, same in self.copies.items() if key not in holders},
            settlement=self.settlement | settlement,
            _by_kind=_group(objects),
        )

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

    A file that cannot be parsed, or is named in `unread` with the reason why it could not even be read, is in the
    catalog as unreadable, with an error finding; as is a folder there, whose path ends in "/". An object that is
    equal to one at the same place of the catalog `before` is the same Python object, so that results can be reused.
    """
    memory = {} if memory is None else memory
    unreadable = [
        Unreadable(path, FILE_UNREADABLE.finding(f"{path}: {why}", Where(path)))
        for path, why in sorted((unread or {}).items())
        if is_config_path(path) or _is_folder(path)
    ]
    reads: dict[str, _FileRead] = {}
    for path, file in _config_files(files, unreadable):
        known = before._files.get(path) if before else None
        read = _read_config_file(path, file, memory, limits, known)
        if isinstance(read, Unreadable):
            unreadable.append(read)
        else:
            reads[path] = read
    folders = frozenset(posixpath.dirname(path) for path in files if posixpath.basename(path) == "Kptfile")
    return replace(_catalog(reads, tuple(unreadable), before), package_folders=folders)


def _read_config_file(
    path: str, file: File, memory: ParseMemory, limits: YamlLimits, known: _FileRead | None
) -> _FileRead | Unreadable:
    try:
        with boundary(path):
            parsed = _parse(file, memory, limits)
            if not isinstance(parsed, YamlError):
                return known if known and known.id == file.id else _read_file(path, file.id, parsed, known)
    except ScopeFailedError as error:
        return Unreadable(path, internal_error(error.failure, Where(path)))
    finding = _YAML[parsed.code].finding(f"{path}:{parsed.line}: {parsed.message}", Where(path, parsed.line))
    return Unreadable(path, finding)


def _read_file(path: str, blob: BlobId, documents: tuple[Document, ...], before: _FileRead | None) -> _FileRead:
    known = {(one.document, one.path): one for one in before.objects} if before else {}
    items = ((document, item) for document in documents for item in manifests_of(document.data))
    found = [read for document, item in items if (read := _read_object(path, document, item)) is not None]
    objects = tuple(known.get((one.document, one.path), one) for one in found if isinstance(one, ConfigObject))
    nameless = tuple(one for one in found if isinstance(one, Finding))
    without_version = tuple(told for document in documents if (told := _without_version(path, document)))
    return _FileRead(blob, documents, objects, nameless, without_version)


@dataclass(frozen=True)
class Manifest:
    """One manifest of a document: a document by itself, or an item of a `List`.

    `path` leads to it in the document. `api_version` and `kind` are None where the manifest does not have them as text.
    """

    path: Path
    data: Any
    api_version: str | None
    kind: str | None

    @property
    def name(self) -> str:
        """The name of the object, "" without one."""
        metadata = self.data.get("metadata") if isinstance(self.data, dict) else None
        name = metadata.get("name") if isinstance(metadata, dict) else None
        return name if isinstance(name, str) else ""

    @property
    def is_local_config(self) -> bool:
        """Whether its author declared it as input of local tools, which passes do not read."""
        metadata = self.data.get("metadata") if isinstance(self.data, dict) else None
        return isinstance(metadata, dict) and _is_local_config(metadata)

    @property
    def key(self) -> ObjectKey | None:
        """The identity of the object; None for other data, and without a name."""
        if self.api_version is None or self.kind is None or not self.name:
            return None
        group, _ = split_api_version(self.api_version)
        own = self.data["metadata"].get("namespace")
        namespace = own or (DEFAULT_NAMESPACE if is_namespaced(group, self.kind) else "")
        return ObjectKey(group, self.kind, str(namespace), self.name)


def manifests_of(
    data: Any, path: Path = (), api_version: str | None = None, kind: str | None = None
) -> Iterator[Manifest]:
    """Yield the manifests of a document: those of a list item by item, as kubectl reads it.

    A list is a `v1` `List`, or a typed list such as `PackageVariantList`: a kind that ends in `List`, with `items` and
    without a name. Items of a typed list may leave out `apiVersion` and `kind`: `api_version` and `kind` are then those
    of the list.
    """
    own = data if isinstance(data, dict) else {}
    found = Manifest(path, data, _text(own.get("apiVersion", api_version)), _text(own.get("kind", kind)))
    items = _items(found)
    if items is None:
        yield found
        return
    item_kind = (found.kind or "").removesuffix("List")
    of_items = (found.api_version, item_kind) if item_kind else (None, None)
    for index, item in enumerate(items):
        yield from manifests_of(item, (*path, "items", index), *of_items)


def _items(one: Manifest) -> Sequence[Any] | None:
    """Return the items of a list; None for any other manifest."""
    if one.kind is None or one.api_version is None or not one.kind.endswith("List"):
        return None
    items = one.data.get("items")
    if (one.api_version, one.kind) == ("v1", "List"):
        return items if isinstance(items, list) else ()
    return items if isinstance(items, list) and not one.name else None


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _catalog(reads: Mapping[str, _FileRead], unreadable: tuple[Unreadable, ...], before: Catalog | None) -> Catalog:
    found: dict[ObjectKey, ConfigObject] = {}
    for read in reads.values():
        found.update(read.by_key)
    is_plain = len(found) == sum(len(read.objects) for read in reads.values())
    twice = {} if is_plain else _twice(reads.values())
    findings = [
        *chain.from_iterable(read.nameless for read in reads.values()),
        *chain.from_iterable(read.without_version for read in reads.values()),
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


def _config_files(files: FileTree, unreadable: list[Unreadable]) -> Iterator[tuple[str, File]]:
    """Yield the files to be read as config; of what an unusable `.krmignore` may mean, none is read."""
    ignored = _ignored(files, unreadable)
    for path, file in files.items():
        if is_config_path(path) and not ignored(path):
            yield path, file


def is_config_path(path: str) -> bool:
    """Return whether a file of this path is read as config: YAML or JSON, and not hidden (design 10.4)."""
    return path.endswith((".yaml", ".yml", ".json")) and not _is_hidden(path)


def _is_hidden(path: str) -> bool:
    return any(segment.startswith(".") and segment != ".." for segment in path.split("/"))


def _is_folder(path: str) -> bool:
    # the content of a folder that cannot be listed is unknown; "./" are the files beside all folders
    return path.endswith("/") and not _is_hidden(path.removeprefix("./"))


def _ignored(files: FileTree, unreadable: list[Unreadable]) -> Callable[[str], bool]:
    specs: dict[str, Any] = {}
    unusable: list[str] = []
    for path, file in files.items():
        if posixpath.basename(path) == ".krmignore":
            folder = posixpath.dirname(path)
            try:
                with boundary(path):
                    specs[folder] = read_ignores(file.data)
            except ScopeFailedError as error:
                unusable.append(f"{folder}/" if folder else "")
                unreadable.append(Unreadable(path, internal_error(error.failure, Where(path))))

    def ignored(path: str) -> bool:
        return path.startswith(tuple(unusable)) or any(
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


def _read_object(path: str, document: Document, one: Manifest) -> ConfigObject | Finding | None:
    if not isinstance(one.data, dict) or one.api_version is None or one.kind is None:
        return None
    group, _ = split_api_version(one.api_version)
    if (key := one.key) is None:
        return _nameless(path, document, one) if _is_meant_to_count(group, one.data.get("metadata")) else None
    return None if one.is_local_config else ConfigObject(key, one.api_version, path, document, one.path)


def is_namespaced(group: str, kind: str) -> bool:
    """Return whether an object of this kind without a namespace is in the namespace `default`.

    Kinds of other groups are plain resources: one without a namespace is placed as it is written.
    """
    if group == "core.kubeadmiral.io":
        return kind in ("OverridePolicy", "PropagationPolicy")
    if group == "reconciler.dev":
        return kind == "Build"
    return group in _WITHOUT_NAMESPACE and kind not in _WITHOUT_NAMESPACE[group]


def _without_version(path: str, document: Document) -> Finding | None:
    """Return a warning for a document that looks like an object that is read, but has no apiVersion."""
    data = document.data
    if not isinstance(data, dict) or isinstance(data.get("apiVersion"), str) or not isinstance(data.get("kind"), str):
        return None
    looks_like_object = isinstance(data.get("metadata"), dict) or isinstance(data.get("spec"), dict)
    suggestion = kind_suggestion(data["kind"]) if looks_like_object else ""
    metadata = data.get("metadata")
    if not suggestion or (isinstance(metadata, dict) and _is_local_config(metadata)):
        return None
    written = f"apiVersion must be a text, not {data['apiVersion']!r}" if "apiVersion" in data else "has no apiVersion"
    message = f"the document of kind {data['kind']} {written}, and is not read; did you mean {suggestion}?"
    return UNKNOWN_KIND.finding(message, Where(path, document.line, data["kind"]))


def _is_meant_to_count(group: str, metadata: object) -> bool:
    """Tell whether an object would do something here if it had a name: what it has done so far is not to go with it."""
    if not isinstance(metadata, dict):
        return group in _GROUPS_READ
    marked = (name for field in ("labels", "annotations") for name in _string_map(metadata.get(field)))
    return not _is_local_config(metadata) and (group in _GROUPS_READ or any(name.startswith(_MARKS) for name in marked))


def _nameless(path: str, document: Document, one: Manifest) -> Finding:
    where = Where(path, document.line_of((*one.path, "metadata", "name")), one.kind or "", "/metadata/name")
    metadata = one.data.get("metadata")
    written = metadata.get("name") if isinstance(metadata, dict) else None
    what = "it is missing" if written is None else f"not {written!r}"
    return NAME_MISSING.finding(f"metadata.name must be a non-empty string, {what}", where)


def _is_local_config(metadata: Mapping[str, Any]) -> bool:
    annotations = metadata.get("annotations")
    value = annotations.get(LOCAL_CONFIG) if isinstance(annotations, dict) else None
    return value not in (None, "", "false", False)


def _duplicate(one: ConfigObject, same: list[ConfigObject]) -> Finding:
    others = ", ".join(f"{other.file}:{other.line}" for other in same if other is not one)
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
