"""The catalog: all objects of one config commit by identity, and the files of this commit that could not be read."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, MutableMapping, Sequence
from functools import cached_property
from itertools import chain
from typing import Any

from reconciler.catalog.codes import CatalogCodes
from reconciler.catalog.files import BlobId, File, FileTree, parse_ignore_file
from reconciler.catalog.known_kinds import PORCH_GROUP, suggest_kind
from reconciler.catalog.manifests import DEFAULT_NAMESPACE, Manifest, is_local_config, list_manifests
from reconciler.catalog.tenants import EXPORT_ANNOTATION, NO_TENANTS, PACKAGE_OWNER_KINDS, Tenants
from reconciler.krm.field_text import quote_value
from reconciler.krm.findings import CommonCodes, Finding, SourceLocation, create_internal_error_finding
from reconciler.krm.internal_errors import ScopeFailedError, isolation_boundary
from reconciler.krm.json_text import compute_digest
from reconciler.krm.objects import ObjectKey, split_api_version
from reconciler.krm.yaml import DEFAULT_YAML_LIMITS, DataPath, Document, YamlError, YamlLimits, parse_yaml
from reconciler.lazy_dataclasses import dataclass, field, replace

# The reconciler reads every object of these API groups. An object of any other group is read only if it has a label
# or annotation with a prefix of `_OWN_PREFIXES`.
_CONFIG_GROUPS = frozenset({PORCH_GROUP, "core.kubeadmiral.io", "greenhouse.sap", "platform", "reconciler.dev"})
_OWN_PREFIXES = ("kubeadmiral.io/", "reconciler.dev/")


@dataclass(frozen=True, eq=False)
class ConfigObject:
    """One object of the config repository. Do not modify `data`.

    `path` is the position of the object in its YAML document: `()` if the object is the whole document, or for example
    `("items", 2)` for the third item of a `List`.
    """

    key: ObjectKey
    api_version: str
    file: str
    document: Document
    path: DataPath = ()

    @cached_property
    def data(self) -> dict[str, Any]:
        """The fields of the object as the file contains them, including `status`.

        If an item of a typed list omits `apiVersion` or `kind`, the value is derived from the list.
        """
        value: Any = self.document.data
        for step in self.path:
            value = value[step]
        data: dict[str, Any] = value
        if "apiVersion" in data and "kind" in data:
            return data
        return {"apiVersion": self.api_version, "kind": self.key.kind, **data}

    @property
    def line(self) -> int:
        """The number of the line where the object begins in its file."""
        return self.document.find_line(self.path) if self.path else self.document.line

    @property
    def labels(self) -> dict[str, str]:
        """The labels of the object. Labels whose values are not strings are omitted."""
        return _select_strings(self.data["metadata"].get("labels"))

    @property
    def annotations(self) -> dict[str, str]:
        """The annotations of the object. Annotations whose values are not strings are omitted."""
        return _select_strings(self.data["metadata"].get("annotations"))

    @property
    def location(self) -> SourceLocation:
        """The location of the object in the config: file, first line, and identity."""
        return SourceLocation(self.file, self.line, self.key.reference)

    def find_line_and_column(self, path: DataPath) -> tuple[int, int]:
        """Return line and column of the field `path`. If the field is absent, use its nearest existing parent field."""
        return self.document.find_line_and_column((*self.path, *path))

    def location_of(self, path: DataPath) -> SourceLocation:
        """Return the location of the field `path`. An absent field has the line of its nearest existing parent."""
        pointer = "".join(f"/{str(step).replace('~', '~0').replace('/', '~1')}" for step in path)
        return SourceLocation(self.file, self.document.find_line((*self.path, *path)), self.key.reference, pointer)

    @cached_property
    def digest(self) -> str:
        """The digest of the object without `status`, because controllers do not read the field `status`."""
        return compute_digest({key: value for key, value in self.data.items() if key != "status"})


@dataclass(frozen=True)
class UnreadableFile:
    """A config file that cannot be read or parsed.

    While such a file exists, no object of the file's tenant is considered deleted.
    """

    file: str
    finding: Finding


ParseResult = tuple[Document, ...] | YamlError
ParseCache = MutableMapping[BlobId, ParseResult]


@dataclass(frozen=True)
class ConflictResolution:
    """The resolution of conflicts between config objects that define the same object, cluster or target.

    Attributes:
        effective_definitions: For each object with several definitions, the file and the `ConfigObject.path` of the
            definition that has an effect.
        rejected: Objects without effect, because an earlier object defines the same cluster or target.
        findings: One finding for each rejected definition.
    """

    effective_definitions: Mapping[ObjectKey, tuple[str, DataPath]] = field(default_factory=dict)
    rejected: frozenset[ObjectKey] = frozenset()
    findings: tuple[Finding, ...] = ()

    def __or__(self, other: ConflictResolution) -> ConflictResolution:
        return ConflictResolution(
            {**self.effective_definitions, **other.effective_definitions},
            self.rejected | other.rejected,
            (*self.findings, *other.findings),
        )

    def __bool__(self) -> bool:
        return bool(self.findings)


@dataclass(frozen=True)
class _FileContent:
    """The content of one file.

    Attributes:
        nameless: Findings about objects without a name.
        without_version: Findings about documents without an apiVersion whose kind is known or similar to a known kind.
    """

    id: BlobId
    documents: tuple[Document, ...]
    objects: tuple[ConfigObject, ...]
    nameless: tuple[Finding, ...]
    without_version: tuple[Finding, ...] = ()

    @cached_property
    def by_key(self) -> Mapping[ObjectKey, ConfigObject]:
        return {config_object.key: config_object for config_object in self.objects}

    def without_objects(self, excluded: Collection[ConfigObject]) -> _FileContent:
        return replace(self, objects=tuple(value for value in self.objects if value not in excluded))


@dataclass(frozen=True)
class Catalog:
    """The objects of one config commit. An object that is defined several times has no effect.

    Attributes:
        copies: All definitions of each object that is defined several times.
        package_folders: Config folders that contain a Kptfile. Each of these folders is a package.
        chart_folders: Folders that contain a Helm chart. Their files are not config.
        unproven_deletions: Errors about files that no longer define an object of an earlier pass, but do not prove
            its deletion. While there are such errors, no object of the file's tenant is considered deleted.
        resolution: The resolution of conflicts between objects that define the same object, cluster or target.
        tenants: The tenants of the config.
        _excluded: The definitions that `without_definitions` excluded. They are still in `_files`.
        _present: The definitions in `_excluded` whose identities the catalog still contains.
    """

    objects: Mapping[ObjectKey, ConfigObject]
    unreadable: tuple[UnreadableFile, ...] = ()
    findings: tuple[Finding, ...] = ()
    duplicates: frozenset[ObjectKey] = frozenset()
    _by_kind: Mapping[tuple[str, str], tuple[ConfigObject, ...]] = field(default_factory=dict)
    copies: Mapping[ObjectKey, tuple[ConfigObject, ...]] = field(default_factory=dict)
    _files: Mapping[str, _FileContent] = field(default_factory=dict)
    package_folders: frozenset[str] = frozenset()
    chart_folders: tuple[str, ...] = ()
    unproven_deletions: tuple[Finding, ...] = ()
    resolution: ConflictResolution = field(default_factory=ConflictResolution)
    tenants: Tenants = NO_TENANTS
    _excluded: tuple[ConfigObject, ...] = ()
    _present: tuple[ConfigObject, ...] = ()

    @property
    def is_complete(self) -> bool:
        """Whether the identity of every object in the config is known.

        If this is false, an absent object is not considered deleted, because an unreadable file may contain the object.
        """
        return not self.uncertain_tenants

    @cached_property
    def uncertain_tenants(self) -> frozenset[str]:
        """The tenants with config files or objects that cannot be read.

        An absent object of such a tenant can be in a file that cannot be read. The name "" means that absent objects of
        all tenants can be in such a file.
        """
        return frozenset(map(self._find_owner_of_unknown_objects, self._list_uncertain_paths()))

    def _list_uncertain_paths(self) -> Iterator[str]:
        yield from (file.file for file in self.unreadable)
        yield from (finding.location.file for finding in self.unproven_deletions)
        yield from (
            finding.location.file for finding in self.findings if finding.code == CatalogCodes.NAME_MISSING.name
        )

    def _find_owner_of_unknown_objects(self, path: str) -> str:
        # The path of an error about the whole config is not the path of a config file. Such an error belongs to no
        # tenant.
        can_belong_to_tenant = is_config_path(path) or path.endswith(("/", ".krmignore"))
        return self.tenants.find_owner_of_unknown_objects(path) if can_belong_to_tenant else ""

    def contains(self, key: ObjectKey) -> bool:
        """Return whether the config contains an object, even if the object is rejected or defined several times."""
        return key in self.objects or key in self.duplicates or key in self.resolution.rejected

    def documents(self, path: str) -> tuple[Document, ...] | None:
        """Return the YAML documents of a file. Return None if the file is ignored, not config, or cannot be parsed."""
        content = self._files.get(path)
        return content.documents if content else None

    def get_file_id(self, path: str) -> BlobId | None:
        """Return the blob ID of a config file. Return None if the file is ignored, not config, or cannot be parsed."""
        content = self._files.get(path)
        return content.id if content else None

    def find_in_file(self, path: str, key: ObjectKey) -> ConfigObject | None:
        """Return the definition of the object `key` in the file `path`, even if other files define the same object.

        Return None if the file does not define the object.
        """
        content = self._files.get(path)
        return content.by_key.get(key) if content else None

    def objects_of_kind(self, group: str, kind: str) -> tuple[ConfigObject, ...]:
        """Return the objects of one kind, sorted by namespace and name."""
        return self._by_kind.get((group, kind), ())

    def objects_of_type(self, api_version: str, kind: str, namespace: str) -> tuple[ConfigObject, ...]:
        """Return the objects with this apiVersion and kind in `namespace`.

        As in Porch, an object without a namespace is in the namespace `default`.
        """
        group, _ = split_api_version(api_version)
        return tuple(
            config_object
            for config_object in self.objects_of_kind(group, kind)
            if config_object.api_version == api_version
            and (config_object.key.namespace or DEFAULT_NAMESPACE) == namespace
        )

    @property
    def kinds(self) -> Iterable[tuple[str, str]]:
        """The API group and the kind of all objects, as sorted pairs without duplicates."""
        return self._by_kind.keys()

    def get(self, key: ObjectKey) -> ConfigObject | None:
        """Return the object with the identity `key`. Return None if the catalog has no such object."""
        return self.objects.get(key)

    def without_objects(self, keys: Iterable[ObjectKey]) -> Catalog:
        """Return a catalog in which the objects with these identities have no effect.

        The returned catalog still contains these identities, so the packages of the objects are not deleted.
        """
        excluded = frozenset(keys)
        if not excluded:
            return self
        objects = {key: value for key, value in self.objects.items() if key not in excluded}
        copies = {**self.copies, **{key: (self.objects[key],) for key in excluded}}
        return replace(
            self,
            objects=objects,
            duplicates=self.duplicates | excluded,
            copies=dict(sorted(copies.items())),
            _by_kind=_group_by_kind(objects),
        )

    def hide_objects(self, keys: Iterable[ObjectKey]) -> Catalog:
        """Return a catalog that does not contain the objects with these identities."""
        hidden = frozenset(keys)
        objects = {key: value for key, value in self.objects.items() if key not in hidden}
        return replace(self, objects=objects, _by_kind=_group_by_kind(objects)) if hidden else self

    @property
    def definitions(self) -> Iterator[ConfigObject]:
        """All definitions in all files, including several definitions of one object."""
        return chain.from_iterable(content.objects for content in self._files.values())

    def without_definitions(self, excluded: Sequence[ConfigObject], present: Iterable[ConfigObject]) -> Catalog:
        """Return a catalog in which the definitions in `excluded` have no effect.

        The excluded definitions do not conflict with other definitions of the same object. Definitions that an earlier
        call excluded stay excluded.

        Args:
            present: A subset of `excluded`. The identities of these definitions stay in the catalog, so that the
                packages of the objects are not deleted.
        """
        if not excluded:
            return self
        all_excluded = (*self._excluded, *excluded)
        all_present = tuple(dict.fromkeys((*self._present, *present)))
        rejected, changed_files = frozenset(all_excluded), {value.file for value in all_excluded}
        contents = {
            path: content.without_objects(rejected) if path in changed_files else content
            for path, content in self._files.items()
        }
        catalog = _create_catalog(contents, self.unreadable, None)
        kept: dict[ObjectKey, tuple[ConfigObject, ...]] = {}
        for value in all_present:
            if value.key not in catalog.objects and value.key not in catalog.duplicates:
                kept[value.key] = (*kept.get(value.key, ()), value)
        return replace(
            catalog,
            duplicates=catalog.duplicates | kept.keys(),
            copies=dict(sorted({**catalog.copies, **kept}.items())),
            _files=self._files,
            package_folders=self.package_folders,
            chart_folders=self.chart_folders,
            tenants=self.tenants,
            _excluded=all_excluded,
            _present=all_present,
        )

    def select_visible(self, tenant: str) -> Catalog:
        """Return a catalog with only the objects that packages of a tenant can use. The platform team has the name "".

        The result contains the objects of the tenant, the objects of the platform team, and the exported objects of
        other tenants that the tenant may reference. The platform team sees only its own objects.
        """
        if not self.tenants:
            return self
        if tenant not in self._tenant_views:
            self._tenant_views[tenant] = self._create_tenant_view(tenant)
        return self._tenant_views[tenant]

    @cached_property
    def _tenant_views(self) -> dict[str, Catalog]:
        # Cache the catalog of each tenant, so that the controllers and the renderer use the same Python objects.
        return {}

    def _create_tenant_view(self, tenant: str) -> Catalog:
        objects = {key: value for key, value in self.objects.items() if self._is_visible(value, tenant)}
        copies = {
            key: values
            for key, values in self.copies.items()
            if any(self.tenants.find_owner(value.file) in ("", tenant) for value in values)
        }
        return replace(
            self,
            objects=objects,
            unreadable=tuple(file for file in self.unreadable if self._may_hide_visible_objects(file.file, tenant)),
            findings=tuple(
                finding for finding in self.findings if self._may_hide_visible_objects(finding.location.file, tenant)
            ),
            duplicates=self.duplicates & copies.keys(),
            copies=copies,
            unproven_deletions=tuple(
                finding
                for finding in self.unproven_deletions
                if self._may_hide_visible_objects(finding.location.file, tenant)
            ),
            _by_kind=_group_by_kind(objects),
        )

    def _may_hide_visible_objects(self, path: str, tenant: str) -> bool:
        """Return whether an unreadable file may contain an object that a tenant can see."""
        owner, reader = self._find_owner_of_unknown_objects(path), self.tenants.by_name.get(tenant)
        return owner in ("", tenant) or (reader is not None and reader.may_reference_tenant(owner))

    def _is_visible(self, config_object: ConfigObject, tenant: str) -> bool:
        owner = self.tenants.find_owner(config_object.file)
        if owner == tenant:
            return True
        if owner == "":
            # Hide package owners of the platform team, such as PackageVariants, from tenants. The controllers process
            # these owners only for the platform team.
            return (config_object.key.group, config_object.key.kind) not in PACKAGE_OWNER_KINDS
        # Read the annotations last, to save time: most tenants may not reference most objects.
        reader = self.tenants.by_name.get(tenant)
        may_reference = reader is not None and reader.may_reference(owner, config_object.key.name)
        return may_reference and config_object.annotations.get(EXPORT_ANNOTATION) == "true"

    def with_resolution(self, resolution: ConflictResolution) -> Catalog:
        """Return a copy of the catalog to which the result of a conflict resolution is applied.

        If an object is defined several times, its effective definition becomes the object. Rejected objects are removed
        from `objects`.
        """
        if not resolution:
            return self
        effective = {
            key: next(copy for copy in self.copies[key] if (copy.file, copy.path) == position)
            for key, position in resolution.effective_definitions.items()
        }
        accepted = {key: value for key, value in self.objects.items() if key not in resolution.rejected}
        objects = dict(sorted({**accepted, **effective}.items()))
        resolved_locations = {copy.location for key in effective for copy in self.copies[key]}
        findings = (
            finding
            for finding in self.findings
            if not (finding.code == CatalogCodes.DUPLICATE_OBJECT.name and finding.location in resolved_locations)
        )
        return replace(
            self,
            objects=objects,
            duplicates=self.duplicates - effective.keys(),
            findings=(*findings, *resolution.findings),
            copies={key: copies for key, copies in self.copies.items() if key not in effective},
            resolution=self.resolution | resolution,
            _by_kind=_group_by_kind(objects),
        )

    @cached_property
    def types(self) -> frozenset[tuple[str, str, str]]:
        """The (apiVersion, kind, namespace) of all objects. Objects without a namespace are in `default`."""
        return frozenset((api_version, kind, namespace) for api_version, kind, namespace, _ in self.objects_by_name)

    @cached_property
    def objects_by_name(self) -> Mapping[tuple[str, str, str, str], ConfigObject]:
        """All objects by (apiVersion, kind, namespace, name). Objects without a namespace are in `default`."""
        return {
            (value.api_version, value.key.kind, value.key.namespace or DEFAULT_NAMESPACE, value.key.name): value
            for value in self.objects.values()
        }


def read_catalog(
    files: FileTree,
    cache: ParseCache | None = None,
    limits: YamlLimits = DEFAULT_YAML_LIMITS,
    unreadable_paths: Mapping[str, str] | None = None,
    previous: Catalog | None = None,
) -> Catalog:
    """Read all objects of a config tree.

    Args:
        cache: Maps blob IDs to results of the YAML parser. New results are added to this cache.
        unreadable_paths: Maps files and folders that could not be read to the reasons. Folder paths end in "/".
        previous: An earlier catalog. Unchanged objects are taken from this catalog, so that results that were computed
            for these Python objects can be reused.

    Returns:
        The catalog. Its attribute `unreadable` contains the unreadable files and folders, each with an error finding.
    """
    cache = {} if cache is None else cache
    unreadable = [
        UnreadableFile(path, CatalogCodes.FILE_UNREADABLE.finding(f"{path}: {reason}", SourceLocation(path)))
        for path, reason in sorted((unreadable_paths or {}).items())
        if is_config_path(path) or _is_folder(path)
    ]
    contents: dict[str, _FileContent] = {}
    chart_folders = tuple(_iterate_chart_folders(files))
    for path, file in _iterate_config_files(files, unreadable, chart_folders):
        previous_content = previous._files.get(path) if previous else None
        content = _read_config_file(path, file, cache, limits, previous_content)
        if isinstance(content, UnreadableFile):
            unreadable.append(content)
        else:
            contents[path] = content
    folders = frozenset(posixpath.dirname(path) for path in files if posixpath.basename(path) == "Kptfile")
    catalog = _create_catalog(contents, tuple(unreadable), previous)
    return replace(catalog, package_folders=folders, chart_folders=chart_folders)


def _read_config_file(
    path: str, file: File, cache: ParseCache, limits: YamlLimits, previous: _FileContent | None
) -> _FileContent | UnreadableFile:
    try:
        with isolation_boundary(path):
            parsed = _parse(file, cache, limits)
            if not isinstance(parsed, YamlError):
                is_unchanged = previous is not None and previous.id == file.id
                return previous if previous and is_unchanged else _read_file(path, file.id, parsed, previous)
    except ScopeFailedError as error:
        return UnreadableFile(path, create_internal_error_finding(error.failure, SourceLocation(path)))
    finding = CommonCodes.by_name[parsed.code].finding(
        f"{path}:{parsed.line}: {parsed.message}", SourceLocation(path, parsed.line)
    )
    return UnreadableFile(path, finding)


def _read_file(path: str, blob: BlobId, documents: tuple[Document, ...], previous: _FileContent | None) -> _FileContent:
    previous_objects = {(value.document, value.path): value for value in previous.objects} if previous else {}
    manifests = ((document, manifest) for document in documents for manifest in list_manifests(document.data))
    results = [_read_object(path, document, manifest) for document, manifest in manifests]
    objects = tuple(
        previous_objects.get((value.document, value.path), value)
        for value in results
        if isinstance(value, ConfigObject)
    )
    nameless = tuple(result for result in results if isinstance(result, Finding))
    without_version = tuple(filter(None, (_check_version(path, document) for document in documents)))
    return _FileContent(blob, documents, objects, nameless, without_version)


def _create_catalog(
    contents: Mapping[str, _FileContent], unreadable: tuple[UnreadableFile, ...], previous: Catalog | None
) -> Catalog:
    by_key: dict[ObjectKey, ConfigObject] = {}
    for content in contents.values():
        by_key.update(content.by_key)
    has_duplicates = len(by_key) < sum(len(content.objects) for content in contents.values())
    duplicates = _find_duplicates(contents.values()) if has_duplicates else {}
    findings = [
        *chain.from_iterable(content.nameless for content in contents.values()),
        *chain.from_iterable(content.without_version for content in contents.values()),
        *(_create_duplicate_finding(copy, copies) for copies in duplicates.values() for copy in copies),
    ]
    # Use the order of the previous catalog if it has the same objects, because sorting all keys takes longer.
    keys = previous.objects if previous and previous.objects.keys() == by_key.keys() else sorted(by_key)
    objects = {key: by_key[key] for key in keys if key not in duplicates}
    copies = {key: tuple(duplicates[key]) for key in sorted(duplicates)}
    kinds = _group_by_kind(objects)
    return Catalog(objects, unreadable, tuple(findings), frozenset(duplicates), kinds, copies, contents)


def _find_duplicates(contents: Iterable[_FileContent]) -> dict[ObjectKey, list[ConfigObject]]:
    by_key: dict[ObjectKey, list[ConfigObject]] = {}
    for config_object in chain.from_iterable(content.objects for content in contents):
        by_key.setdefault(config_object.key, []).append(config_object)
    return {key: copies for key, copies in by_key.items() if len(copies) > 1}


def _iterate_config_files(
    files: FileTree, unreadable: list[UnreadableFile], chart_folders: Sequence[str]
) -> Iterator[tuple[str, File]]:
    """Yield the path and the content of each config file.

    Files below an invalid `.krmignore` file are skipped, because its patterns may exclude them from the config. Files
    of charts are skipped, because their templates are not YAML.
    """
    is_ignored = _create_ignore_filter(files, unreadable)
    charts = tuple(f"{folder}/" for folder in chart_folders)
    for path, file in files.items():
        if is_config_path(path) and not is_ignored(path) and not path.startswith(charts):
            yield path, file


def _iterate_chart_folders(files: FileTree) -> Iterator[str]:
    """Yield the folders with a Helm chart. The root folder of the config is never a chart."""
    for path, file in files.items():
        folder, _, name = path.rpartition("/")
        if name == "Chart.yaml" and folder and _is_chart(file):
            yield folder


def _is_chart(file: File) -> bool:
    try:
        documents = parse_yaml(file.data).documents
    except YamlError:
        return False
    data = documents[0].data if len(documents) == 1 else None
    return isinstance(data, dict) and "kind" not in data and {"apiVersion", "name", "version"} <= data.keys()


def is_config_path(path: str) -> bool:
    """Return whether a file with this path is a config file: a YAML or JSON file that is not hidden."""
    return path.endswith((".yaml", ".yml", ".json")) and not _is_hidden(path)


def _is_hidden(path: str) -> bool:
    return any(segment.startswith(".") and segment != ".." for segment in path.split("/"))


def _is_folder(path: str) -> bool:
    """Return whether a path belongs to a folder that can contain config files: it ends in "/" and is not hidden.

    The root folder has the path "./".
    """
    return path.endswith("/") and not _is_hidden(path.removeprefix("./"))


def _create_ignore_filter(files: FileTree, unreadable: list[UnreadableFile]) -> Callable[[str], bool]:
    patterns: dict[str, Any] = {}
    unreadable_folders: list[str] = []
    for path, file in files.items():
        if posixpath.basename(path) == ".krmignore":
            folder = posixpath.dirname(path)
            try:
                with isolation_boundary(path):
                    patterns[folder] = parse_ignore_file(file.data)
            except ScopeFailedError as error:
                unreadable_folders.append(f"{folder}/" if folder else "")
                unreadable.append(
                    UnreadableFile(path, create_internal_error_finding(error.failure, SourceLocation(path)))
                )

    def is_ignored(path: str) -> bool:
        return path.startswith(tuple(unreadable_folders)) or any(
            pattern.match_file(posixpath.relpath(path, folder or "."))
            for folder, pattern in patterns.items()
            if not folder or path.startswith(folder + "/")
        )

    return is_ignored


def _parse(file: File, cache: ParseCache, limits: YamlLimits) -> ParseResult:
    if file.id not in cache:
        try:
            cache[file.id] = parse_yaml(file.data, limits).documents
        except YamlError as error:
            cache[file.id] = error
    return cache[file.id]


def _read_object(path: str, document: Document, manifest: Manifest) -> ConfigObject | Finding | None:
    if not isinstance(manifest.data, dict) or manifest.api_version is None or manifest.kind is None:
        return None
    group, _ = split_api_version(manifest.api_version)
    if (key := manifest.key) is None:
        is_config = _would_have_effect(group, manifest.data.get("metadata"))
        return _create_nameless_finding(path, document, manifest) if is_config else None
    if manifest.is_local_config:
        return None
    return ConfigObject(key, manifest.api_version, path, document, manifest.path)


def _check_version(path: str, document: Document) -> Finding | None:
    """Return a warning if a document without apiVersion has a kind similar to a known kind. Otherwise, return None."""
    data = document.data
    if not isinstance(data, dict) or isinstance(data.get("apiVersion"), str) or not isinstance(data.get("kind"), str):
        return None
    looks_like_object = isinstance(data.get("metadata"), dict) or isinstance(data.get("spec"), dict)
    suggestion = suggest_kind(data["kind"]) if looks_like_object else ""
    metadata = data.get("metadata")
    if not suggestion or (isinstance(metadata, dict) and is_local_config(metadata)):
        return None
    reason = f"must be a string, but is {quote_value(data['apiVersion'])}" if "apiVersion" in data else "is missing"
    message = f"the document of kind {data['kind']} is ignored, because apiVersion {reason}; did you mean {suggestion}?"
    return CatalogCodes.UNKNOWN_KIND.finding(message, SourceLocation(path, document.line, data["kind"]))


def _would_have_effect(group: str, metadata: object) -> bool:
    """Return whether the reconciler would read an object without a name if the object had a name.

    If true, the missing name is an error. No package is deleted until this error is fixed, because the identity of the
    object is unknown.
    """
    if not isinstance(metadata, dict):
        return group in _CONFIG_GROUPS
    names = (name for field in ("labels", "annotations") for name in _select_strings(metadata.get(field)))
    has_own_prefix = any(name.startswith(_OWN_PREFIXES) for name in names)
    return not is_local_config(metadata) and (group in _CONFIG_GROUPS or has_own_prefix)


def _create_nameless_finding(path: str, document: Document, manifest: Manifest) -> Finding:
    line = document.find_line((*manifest.path, "metadata", "name"))
    metadata = manifest.data.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    actual = "but the field is missing" if name is None else f"but is {quote_value(name)}"
    location = SourceLocation(path, line, manifest.kind or "", "/metadata/name")
    return CatalogCodes.NAME_MISSING.finding(f"metadata.name must be a non-empty string, {actual}", location)


def _create_duplicate_finding(config_object: ConfigObject, copies: list[ConfigObject]) -> Finding:
    other_locations = ", ".join(f"{copy.file}:{copy.line}" for copy in copies if copy is not config_object)
    rule = f"{config_object.key} must be defined only once"
    message = f"{rule}, but is also defined at {other_locations}; no definition has an effect"
    return CatalogCodes.DUPLICATE_OBJECT.finding(message, config_object.location)


def _group_by_kind(objects: Mapping[ObjectKey, ConfigObject]) -> dict[tuple[str, str], tuple[ConfigObject, ...]]:
    kinds: dict[tuple[str, str], list[ConfigObject]] = {}
    for key, config_object in objects.items():
        kinds.setdefault((key.group, key.kind), []).append(config_object)
    return {kind: tuple(members) for kind, members in kinds.items()}


def _select_strings(value: Any) -> dict[str, str]:
    entries = value.items() if isinstance(value, dict) else ()
    return {key: text for key, text in entries if isinstance(key, str) and isinstance(text, str)}
