"""The resource files of a merge: parse them, match and order their resources, and write the merged files."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Literal, TypeAlias

from reconciler.catalog.files import File, FileTree
from reconciler.krm.findings import CommonCodes, FindingCode, SourceLocation, downgrade_to_warning
from reconciler.krm.merge3.rules import ChosenSide, Conflict
from reconciler.krm.yaml import Document, YamlFile
from reconciler.lazy_dataclasses import dataclass
from reconciler.packages.codes import PackageCodes
from reconciler.packages.parsing import ParseFailure, parse_cached
from reconciler.packages.update.matching import (
    IdentityKey,
    MergeEntry,
    ResourceGroup,
    find_duplicate_entries,
    get_move_key,
    match_by_position,
    match_resources,
)
from reconciler.packages.update.options import MergeOptions
from reconciler.packages.update.sides import MergeSides, UpdateResult
from reconciler.packages.update.whole_files import (
    DELETED_UPSTREAM,
    create_single_file_result,
    format_conflict_file,
    merge_executable_bit,
    merge_whole_file,
)


def order_resources(groups: Sequence[ResourceGroup], path: str) -> list[ResourceGroup]:
    """Order the merged resources of a file.

    The order is that of the local file. If upstream changed the order, resources that exist on all sides are in the
    upstream order. A new upstream resource follows the resource that precedes it in the upstream file.
    """
    local, updated = _list_side(groups, path, "local"), _list_side(groups, path, "updated")
    ordered = _apply_upstream_order(local, updated, _list_side(groups, path, "origin"))
    return _insert_new(ordered, updated, {id(group) for group in ordered})


def order_by_index(groups: Sequence[ResourceGroup]) -> list[ResourceGroup]:
    """Order the merged resources of a file by index.

    As in kpt, the index of a resource is the result of a three-way merge of its indexes on all sides.
    """
    return sorted(groups, key=_get_merged_index)


def _list_side(
    groups: Sequence[ResourceGroup], path: str, side: Literal["origin", "updated", "local"]
) -> list[ResourceGroup]:
    indexed_groups: list[tuple[int, ResourceGroup]] = []
    for group in groups:
        entry: MergeEntry | None = getattr(group, side)
        if entry and entry.path == path:
            indexed_groups.append((entry.index, group))
    return [group for _, group in sorted(indexed_groups, key=lambda pair: pair[0])]


def _apply_upstream_order(
    local: list[ResourceGroup], updated: list[ResourceGroup], origin: list[ResourceGroup]
) -> list[ResourceGroup]:
    """Return the resources of the local file, in the order of the local file.

    If upstream changed the order, the resources that exist on all sides are in the upstream order.
    """
    on_all = {id(group) for group in local} & {id(group) for group in updated} & {id(group) for group in origin}
    new_order = [group for group in updated if id(group) in on_all]
    if new_order == [group for group in origin if id(group) in on_all]:
        return list(local)
    following = iter(new_order)
    return [next(following) if id(group) in on_all else group for group in local]


def _insert_new(
    ordered: list[ResourceGroup], updated: list[ResourceGroup], placed_ids: set[int]
) -> list[ResourceGroup]:
    """Insert each new upstream resource after the resource that precedes it upstream. Return the complete order.

    New resources at the start of the upstream file are inserted before the upstream resource that follows them.
    """
    pending: list[ResourceGroup] = []
    predecessor: ResourceGroup | None = None
    for group in updated:
        if id(group) in placed_ids:
            if pending:
                position = _get_position(ordered, group)
                ordered[position:position] = pending
                pending = []
            predecessor = group
        elif predecessor is None:
            pending.append(group)
        else:
            ordered.insert(_get_position(ordered, predecessor) + 1, group)
            predecessor = group
    return ordered + pending


def _get_position(ordered: Sequence[ResourceGroup], group: ResourceGroup) -> int:
    return next(index for index, other in enumerate(ordered) if other is group)


def _get_merged_index(group: ResourceGroup) -> int:
    origin, updated, local = group.origin, group.updated, group.local
    if updated and (not origin or not local or updated.index != origin.index):
        return updated.index
    return local.index if local else 0


# The value of a field `name`, in YAML or JSON.
_NAME = re.compile(rb"""\bname["']?\s*:\s*["']?([^\s"',}#]+)""")
_FileError: TypeAlias = tuple[FindingCode, str, int]


@dataclass(frozen=True)
class ResourceFiles:
    """The files whose resources a merge parses and merges one by one.

    If a file has an error, e.g. invalid YAML, its resources are not merged. The whole file is taken from one side.
    """

    sides: MergeSides
    paths: tuple[str, ...]
    options: MergeOptions

    @cached_property
    def errors_by_path(self) -> dict[str, _FileError]:
        """The reasons why files cannot be merged, by the path of the file."""
        results = ((path, self._find_file_error(path)) for path in self.paths)
        return {path: error for path, error in results if error}

    def _find_file_error(self, path: str) -> _FileError | None:
        errors = (_find_file_error(path, side[path].data) for side in self.sides if path in side)
        return next((error for error in errors if error), None)

    @cached_property
    def merged_paths(self) -> tuple[str, ...]:
        """The paths of the files whose resources are merged."""
        return tuple(path for path in self.paths if path not in self.errors_by_path and any(self._count_entries(path)))

    def _count_entries(self, path: str) -> Iterator[int]:
        return (len(parse_entries(path, side[path].data)) for side in self.sides if path in side)

    @cached_property
    def groups(self) -> tuple[ResourceGroup, ...]:
        """The matched resources of all files in `merged_paths`."""
        entries = [
            [entry for path in self.merged_paths if path in side for entry in parse_entries(path, side[path].data)]
            for side in self.sides
        ]
        groups = match_resources(
            entries, follow_moves=self.options.follow_moves, use_annotations=self.options.match_identifiers
        )
        return match_by_position(groups) if self.options.match_positions else groups

    def iterate_unmerged_files(self) -> Iterator[UpdateResult]:
        """Yield a result for each file that has an error or no resources: the complete file of one side."""
        for path in self.paths:
            if path in self.errors_by_path:
                yield self._take_whole_file(path, *self.errors_by_path[path])
            elif path not in self.merged_paths:
                yield merge_whole_file(self.sides, path, self.options.rules.winner, "D17")

    def _take_whole_file(self, path: str, code: FindingCode, message: str, line: int) -> UpdateResult:
        if not self.options.isolate_broken:
            return create_single_file_result(path, self.sides.local.get(path)).with_details(
                (), [code.finding(message, SourceLocation(path, line))]
            )
        winner = self._choose_winner(path)
        result = merge_whole_file(self.sides, path, winner, "D17")
        text = (
            f"{message}. The file was not merged, and the whole {winner} file is used" if result.conflicts else message
        )
        return result.with_details((), [downgrade_to_warning(code.finding(text, SourceLocation(path, line)))])

    def _choose_winner(self, path: str) -> ChosenSide:
        """Return the side whose file is used. A file without errors is preferred over a file with errors."""
        updated, local = (
            _find_file_error(path, side[path].data) if path in side else None
            for side in (self.sides.updated, self.sides.local)
        )
        return self.options.rules.winner if (updated is None) == (local is None) else "local" if updated else "upstream"


def _find_file_error(path: str, content: bytes) -> _FileError | None:
    """Return the reason why a file cannot be merged resource by resource. Return None if the file can be merged."""
    parsed = parse_cached(content)
    if isinstance(parsed, ParseFailure):
        return CommonCodes.YAML_SYNTAX, f"the file cannot be parsed: {parsed.message}", parsed.line
    for first, second in find_duplicate_entries(parse_entries(path, content)):
        lines = f"{first.document.line} and {second.document.line}"
        text = f"a file must contain each resource once, but {first.key} occurs on lines {lines}"
        return PackageCodes.DUPLICATE_RESOURCE, text, second.document.line
    return None


def find_common_additions(sides: MergeSides) -> set[str]:
    """Return the paths of the files to which both sides add the same new resource, if these are different files."""
    origin, updated, local = sides
    new_upstream, new_locally = _find_new_names(updated, origin, local), _find_new_names(local, origin, updated)
    names = set().union(*new_locally.values()) & set().union(*new_upstream.values())
    # Parse only files that contain a common name, because a merge does not parse files that only one side changed.
    added_upstream, added_locally = (
        _index_resources(side, [path for path in new if not names.isdisjoint(new[path])])
        for side, new in ((updated, new_upstream), (local, new_locally))
    )
    common = added_upstream.keys() & added_locally.keys()
    if not common:
        return set()
    existing = _index_resources(
        origin, [path for path in origin if any(key[3].encode() in origin[path].data for key in common)]
    )
    different = (key for key in common - existing.keys() if added_locally[key] != added_upstream[key])
    return {path for key in different for path in (*added_locally[key], *added_upstream[key])}


def _find_new_names(side: FileTree, origin: FileTree, other: FileTree) -> dict[str, set[bytes]]:
    """Return the values of fields `name` that only this side adds to its files, by path."""
    names: dict[str, set[bytes]] = {}
    for path in side:
        before = origin.get(path)
        if side[path] not in (before, other.get(path)):
            names[path] = {*_NAME.findall(side[path].data)}.difference(_NAME.findall(before.data) if before else ())
    return names


def _index_resources(side: FileTree, paths: Iterable[str]) -> dict[IdentityKey, set[str]]:
    """Return the paths of the files in `paths` that contain a resource, by resource."""
    files: dict[IdentityKey, set[str]] = {}
    for path in paths:
        for key in map(get_move_key, parse_entries(path, side[path].data)):
            if key is not None:
                files.setdefault(key, set()).add(path)
    return files


def find_moved_files(sides: MergeSides, opened_paths: Sequence[str], options: MergeOptions) -> list[str]:
    """Return the paths of other files to which upstream or a local change moved resources.

    Only resources of the files in `opened_paths` are considered.
    """
    moved_files: list[str] = []
    missing_groups = _find_missing(sides, opened_paths, options)
    while missing_groups:
        new_files = [
            path
            for path in sides.paths
            if path not in {*opened_paths, *moved_files} and _contains_missing(sides, path, missing_groups)
        ]
        moved_files += new_files
        missing_groups = _find_missing(sides, [*opened_paths, *moved_files], options) if new_files else ()
    return moved_files


def _find_missing(sides: MergeSides, paths: Collection[str], options: MergeOptions) -> tuple[ResourceGroup, ...]:
    groups = ResourceFiles(sides, tuple(paths), options).groups
    return tuple(group for group in groups if group.origin and not group.is_complete and get_move_key(group.origin))


def _contains_missing(sides: MergeSides, path: str, missing_groups: Iterable[ResourceGroup]) -> bool:
    """Return whether the file `path` may contain one of the missing resources.

    A resource is missing if upstream or a local change has removed it from its original file. It can be in a different
    file now.
    """
    origin = sides.origin.get(path)
    changed_files = [file for file in (sides.updated.get(path), sides.local.get(path)) if file and file != origin]
    entries = [group.first for group in missing_groups]
    candidates = {
        file.data for file in changed_files if any(entry.identity[3].encode() in file.data for entry in entries)
    }
    keys: set[IdentityKey | None] = {get_move_key(entry) for entry in entries}
    return any(not keys.isdisjoint(_list_keys(path, data)) for data in sorted(candidates))


def _list_keys(path: str, content: bytes) -> Iterator[IdentityKey | None]:
    for entry in parse_entries(path, content):
        yield from (get_move_key(entry), entry.annotated_identity)


def parse_entries(path: str, content: bytes) -> tuple[MergeEntry, ...]:
    """Return the documents of a YAML file. Return an empty tuple if the file cannot be parsed."""
    parsed = parse_cached(content)
    if isinstance(parsed, ParseFailure):
        return ()
    return tuple(MergeEntry("", path, index, document) for index, document in enumerate(parsed.documents))


@dataclass(frozen=True)
class PlacedResource:
    """A merged resource, with the path of the file to which it is written."""

    group: ResourceGroup
    path: str
    document: Document


def write_file(sides: MergeSides, path: str, resources: Sequence[PlacedResource], options: MergeOptions) -> File | None:
    """Return the merged file `path` with the resources that belong to it. Return None if there are none.

    The resources are written into the text of the local file, or of the upstream file if there is no local file.
    """
    placed_by_group = {id(resource.group): resource for resource in resources if resource.path == path}
    if not placed_by_group:
        return None
    groups = [resource.group for resource in placed_by_group.values()]
    ordered = order_resources(groups, path) if options.profile == "safe" else order_by_index(groups)
    mode = merge_executable_bit(*(side.get(path) for side in sides))
    base = parse_cached((sides.local.get(path) or sides.updated[path]).data)
    assert isinstance(base, YamlFile)
    ordered_resources = (placed_by_group[id(group)] for group in ordered)
    documents = [(_find_index(resource, path, sides), resource.document) for resource in ordered_resources]
    file = base if _is_untouched(base, documents) else base.with_documents(documents)
    return File(
        (_add_new_comments(file, sides, path) if options.rules.merges_unattached_lines else file).to_bytes(), mode
    )


@dataclass(frozen=True)
class RemainingFile:
    """The remaining content of a file after the merge removed all of its resources, and the conflict about this file.

    `file` is None if nothing is kept.
    """

    file: File | None
    conflict: Conflict


def find_remaining_file(
    sides: MergeSides, path: str, resources: Sequence[PlacedResource], options: MergeOptions
) -> RemainingFile | None:
    """Find local changes outside of resources in a file from which the merge removed all resources.

    Such a change is a changed file mode, a changed byte order mark, or a new comment between documents.

    Returns:
        The content to keep: the whole local file, or only its comments if its resources moved to other files. None if
        there is no such change. The file is then deleted.
    """
    origin, updated, local = (side.get(path) for side in sides)
    if options.profile == "compat" or origin is None or local is None or not _has_other_changes(origin, local):
        return None
    has_moved = any(resource.group.local and resource.group.local.path == path for resource in resources)
    file = _extract_comments(local) if has_moved else local
    chosen: ChosenSide = "upstream" if file is None else "local"
    conflict = Conflict(
        "file",
        "",
        format_conflict_file(origin),
        format_conflict_file(local),
        format_conflict_file(updated),
        chosen,
        DELETED_UPSTREAM,
        file=path,
    )
    return RemainingFile(file, conflict)


def _has_other_changes(origin: File, local: File) -> bool:
    origin_file, local_file = (parse_cached(file.data) for file in (origin, local))
    if not isinstance(origin_file, YamlFile) or not isinstance(local_file, YamlFile):
        return False
    return (origin.executable, origin_file.bom) != (local.executable, local_file.bom) or bool(
        _find_new_comments(origin_file, local_file)
    )


def _find_new_comments(old: YamlFile, new: YamlFile) -> list[str]:
    """Return the comments between documents that `new` contains and `old` does not contain."""
    old_lines = old.comment_lines()
    return [line for line in new.comment_lines() if line not in old_lines]


def _extract_comments(local: File) -> File | None:
    parsed = parse_cached(local.data)
    lines = parsed.comment_lines() if isinstance(parsed, YamlFile) else ()
    return File("".join(f"{line}\n" for line in lines).encode(), local.executable) if lines else None


def _add_new_comments(file: YamlFile, sides: MergeSides, path: str) -> YamlFile:
    """Return the merged file with the comments that the new upstream version adds between documents."""
    if path not in sides.local or path not in sides.updated:
        return file
    origin = parse_cached(sides.origin[path].data if path in sides.origin else b"")
    updated = parse_cached(sides.updated[path].data)
    if not isinstance(origin, YamlFile) or not isinstance(updated, YamlFile):
        return file
    existing_lines = file.comment_lines()
    return file.with_comments_at_end(
        [line for line in _find_new_comments(origin, updated) if line not in existing_lines]
    )


def _find_index(resource: PlacedResource, path: str, sides: MergeSides) -> int | None:
    """Return the index of the resource in the local file, or in the upstream file if there is no local file.

    Return None if this file does not contain the resource.
    """
    entry = resource.group.local if path in sides.local else resource.group.updated
    return entry.index if entry and entry.path == path else None


def _is_untouched(base: YamlFile, documents: Sequence[tuple[int | None, Document]]) -> bool:
    return len(documents) == len(base.documents) and all(
        slot == index and document is base.documents[index] for index, (slot, document) in enumerate(documents)
    )
