"""The merge of resources: select the resource files to parse, and merge each resource."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from reconciler.catalog.files import File, FileTree
from reconciler.krm.findings import Finding
from reconciler.krm.merge3 import MergeError, merge3
from reconciler.krm.merge3.rules import ABSENT, Conflict
from reconciler.krm.schema import MergeSchemas
from reconciler.krm.schema.merge_schemas import MergeSchema
from reconciler.krm.yaml import Document, YamlError
from reconciler.lazy_dataclasses import dataclass, replace
from reconciler.packages.clone import MERGE_COMMENT, add_comments_to_content
from reconciler.packages.codes import PackageCodes
from reconciler.packages.parsing import ParseFailure
from reconciler.packages.update.matching import MergeEntry, ResourceGroup
from reconciler.packages.update.options import MergeOptions
from reconciler.packages.update.package_diff import is_same_resource, is_same_text
from reconciler.packages.update.resource_files import (
    PlacedResource,
    ResourceFiles,
    find_common_additions,
    find_moved_files,
    find_remaining_file,
    parse_entries,
    write_file,
)
from reconciler.packages.update.sides import MergeSides, UpdateResult, combine_results
from reconciler.packages.update.whole_files import (
    DELETED_LOCALLY,
    DELETED_UPSTREAM,
    create_single_file_result,
    resolve_one_sided,
)

_CRD = "CustomResourceDefinition"


def merge_resource_files(sides: MergeSides, options: MergeOptions) -> UpdateResult:
    """Merge the resource files of one package. A file that only one side changed is not parsed."""
    additions = find_common_additions(sides) if options.follow_moves else ()
    resolved = {
        path: file
        for path in sides.paths
        if path not in additions and (file := _resolve_without_parsing(sides, path, options)) is not None
    }
    paths_to_parse = [path for path in sides.paths if path not in resolved]
    paths_to_parse += (
        find_moved_files(sides, paths_to_parse, options) if options.follow_moves or options.match_identifiers else []
    )
    resource_files = ResourceFiles(sides, tuple(sorted(paths_to_parse)), options)
    whole_files = combine_results(
        create_single_file_result(path, file[0]) for path, file in resolved.items() if path not in resource_files.paths
    )
    return combine_results([whole_files, *resource_files.iterate_unmerged_files(), _merge_files(resource_files)])


def _resolve_without_parsing(sides: MergeSides, path: str, options: MergeOptions) -> tuple[File | None] | None:
    """Return the merged file, or None if the file must be parsed to merge it.

    A merged file is in a tuple with one element. `(None,)` means that the file is deleted.
    """
    origin, updated, local = (side.get(path) for side in sides)
    if origin == updated:
        return (local,) if options.keep_untouched else None
    if not options.take_untouched:
        return None
    return resolve_one_sided(origin, updated, local) or _resolve_with_comments(origin, updated, local, options)


def _resolve_with_comments(
    origin: File | None, updated: File | None, local: File | None, options: MergeOptions
) -> tuple[File | None] | None:
    """Return the upstream file with merge comments, as `_resolve_without_parsing` returns it.

    Return None if the local file differs from the origin in more than merge comments.
    """
    if local is None or origin is None or MERGE_COMMENT.encode() not in local.data:
        return None
    if _add_comments(origin, options) != local:
        return None
    return (_add_comments(updated, options) if updated else None,)


def _add_comments(file: File, options: MergeOptions) -> File:
    """Return the file with merge comments. Return the file unchanged if it cannot be parsed."""
    content = add_comments_to_content(file.data, options.profile)
    return file if isinstance(content, ParseFailure) else File(content, file.executable)


def _merge_files(resource_files: ResourceFiles) -> UpdateResult:
    schemas = _KnownSchemas(resource_files)
    outcomes = [_merge_resource(group, schemas, resource_files.options) for group in resource_files.groups]
    placed_resources = [outcome.placed for outcome in outcomes if outcome.placed]
    if not placed_resources and resource_files.options.profile == "compat":
        # Reproduce kpt: if the merge removes all resources, kpt writes no files, so the local resources are kept.
        placed_resources = [
            PlacedResource(group, group.local.path, group.local.document)
            for group in resource_files.groups
            if group.local
        ]
    paths = sorted({*resource_files.merged_paths, *(resource.path for resource in placed_resources)})
    files = {path: write_file(resource_files.sides, path, placed_resources, resource_files.options) for path in paths}
    emptied = [path for path, file in files.items() if file is None]
    remaining_files = {
        path: remaining
        for path in emptied
        if (remaining := find_remaining_file(resource_files.sides, path, placed_resources, resource_files.options))
    }
    files |= {path: remaining.file for path, remaining in remaining_files.items()}
    return UpdateResult(
        FileTree({path: file for path, file in files.items() if file}),
        (
            *(conflict for outcome in outcomes for conflict in outcome.conflicts),
            *(remaining.conflict for remaining in remaining_files.values()),
        ),
        tuple(finding for outcome in outcomes for finding in outcome.findings),
    )


@dataclass(frozen=True)
class _KnownSchemas:
    """The merge schemas of resources. CRDs in the package are read only if a kind has no other schema."""

    resource_files: ResourceFiles

    def get_schema(self, entry: MergeEntry) -> MergeSchema:
        """Return the schema that defines how the fields and lists of the resource are merged."""
        schemas = self.resource_files.options.schemas
        kind = (entry.api_version, entry.kind)
        return (schemas if kind in schemas.schemas else self._with_crds).find_schema(*kind)

    @cached_property
    def _with_crds(self) -> MergeSchemas:
        options, sides = self.resource_files.options, self.resource_files.sides
        crd_sides = (sides.updated, sides.local, sides.origin) if options.crds_of_all_sides else (sides.local,)
        crds = [entry.data for side in crd_sides for path in side for entry in _iterate_crds(path, side[path].data)]
        return options.schemas.with_crds(*crds, compat=options.profile == "compat")


def _iterate_crds(path: str, content: bytes) -> Iterator[MergeEntry]:
    if _CRD.encode() in content:
        yield from (entry for entry in parse_entries(path, content) if entry.kind == _CRD)


@dataclass(frozen=True)
class _Outcome:
    placed: PlacedResource | None = None
    conflicts: tuple[Conflict, ...] = ()
    findings: tuple[Finding, ...] = ()


def _merge_resource(group: ResourceGroup, schemas: _KnownSchemas, options: MergeOptions) -> _Outcome:
    match group:
        case ResourceGroup(updated=None, local=None):
            return _Outcome()
        case ResourceGroup(origin=None, updated=None, local=MergeEntry() as local):
            return _Outcome(PlacedResource(group, local.path, local.document))
        case ResourceGroup(origin=None, updated=MergeEntry() as updated, local=None):
            return _Outcome(PlacedResource(group, updated.path, updated.document))
        case ResourceGroup(origin=MergeEntry() as origin, updated=None, local=MergeEntry() as local):
            return _merge_deleted_upstream(group, origin, local, options)
        case ResourceGroup(origin=MergeEntry() as origin, updated=MergeEntry() as updated, local=None):
            return _merge_deleted_locally(origin, updated, options)
        case _:
            return _merge_changed(group, schemas, options)


def _merge_deleted_upstream(
    group: ResourceGroup, origin: MergeEntry, local: MergeEntry, options: MergeOptions
) -> _Outcome:
    is_untouched = is_same_resource(origin.document, local.document, options.profile)
    # In the profile `safe`, keep a resource whose formatting was changed locally. kpt ignores changes of the
    # formatting.
    if is_untouched and (options.profile == "compat" or is_same_text(origin.document, local.document)):
        return _Outcome()
    conflict = Conflict("resource", "", origin.data, local.data, ABSENT, "local", DELETED_UPSTREAM)
    return _Outcome(PlacedResource(group, local.path, local.document), (_locate_conflict(conflict, local),))


def _merge_deleted_locally(origin: MergeEntry, updated: MergeEntry, options: MergeOptions) -> _Outcome:
    if is_same_resource(origin.document, updated.document, options.profile):
        return _Outcome()
    conflict = Conflict("resource", "", origin.data, ABSENT, updated.data, "local", DELETED_LOCALLY)
    return _Outcome(None, (_locate_conflict(conflict, origin),))


def _merge_changed(group: ResourceGroup, schemas: _KnownSchemas, options: MergeOptions) -> _Outcome:
    entry = group.first
    origin, updated, local = (_get_document(side) for side in (group.origin, group.updated, group.local))
    try:
        merged = merge3(origin, updated, local, schemas.get_schema(entry), options.rules)
    except (MergeError, YamlError) as error:
        finding = PackageCodes.MERGE_IMPOSSIBLE.finding(str(error), entry.location)
        return _Outcome(PlacedResource(group, entry.path, entry.document), (), (finding,))
    path = _get_merged_path(group)
    conflicts = tuple(replace(_locate_conflict(conflict, entry), file=path) for conflict in merged.conflicts)
    return _Outcome(PlacedResource(group, path, merged.document) if merged.document else None, conflicts)


def _get_merged_path(group: ResourceGroup) -> str:
    """Return the path of the file for a merged resource.

    This is the local path if a local change moved the resource, and the upstream path otherwise.
    """
    origin, updated, local = group.origin, group.updated, group.local
    assert updated is not None
    assert local is not None
    return updated.path if origin and local.path == origin.path else local.path


def _get_document(entry: MergeEntry | None) -> Document | None:
    return entry.document if entry else None


def _locate_conflict(conflict: Conflict, entry: MergeEntry) -> Conflict:
    return replace(conflict, file=entry.path, resource=entry.key.reference if entry.kind else "")
