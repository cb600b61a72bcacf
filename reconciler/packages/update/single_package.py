"""The merge of one package without its subpackages: its Kptfile, its resources, and its opaque files.

Opaque files are files that are not read as resources.
"""

from __future__ import annotations

from posixpath import basename, dirname

from reconciler.catalog.files import File, FileTree
from reconciler.krm.findings import Finding, SourceLocation, downgrade_to_warning
from reconciler.krm.merge3 import MergeError
from reconciler.krm.merge3.rules import ABSENT, Conflict
from reconciler.packages.codes import PackageCodes
from reconciler.packages.kptfile import KPTFILE, Kptfile, read_kptfile
from reconciler.packages.package import Package, is_krm_file, join_path
from reconciler.packages.sops_files import has_sops_document
from reconciler.packages.update.kptfile_merge import merge_kptfile
from reconciler.packages.update.options import MergeOptions
from reconciler.packages.update.package_diff import is_resource_file, is_same_content
from reconciler.packages.update.resource_merge import merge_resource_files
from reconciler.packages.update.sides import MergeSides, UpdateResult, combine_results
from reconciler.packages.update.sops_merge import merge_sops_file
from reconciler.packages.update.whole_files import (
    DELETED_LOCALLY,
    DELETED_UPSTREAM,
    create_single_file_result,
    format_conflict_file,
    merge_executable_bit,
    merge_opaque_file,
    merge_whole_file,
    resolve_one_sided,
)


def merge_package(
    sides: MergeSides, package: str, options: MergeOptions, *, is_root: bool, take_upstream: bool
) -> UpdateResult:
    """Merge the files of one package, resource by resource. `sides` must not contain files of subpackages."""
    kptfile = merge_package_kptfile(sides, package, options, is_root=is_root, take_upstream=take_upstream)
    return combine_results([kptfile, merge_files(sides, options)])


def merge_two_sides(sides: MergeSides, options: MergeOptions) -> UpdateResult:
    """Merge two versions of one package with independent changes. All fields of all Kptfiles are merged."""
    packages = sorted(dirname(path) for path in sides.paths if basename(path) == KPTFILE)
    kptfiles = (_merge_whole_kptfile(sides, package, options) for package in packages)
    return combine_results([*kptfiles, merge_files(sides, options)])


def merge_files(sides: MergeSides, options: MergeOptions) -> UpdateResult:
    """Merge all files of a package except for Kptfiles."""
    sops_paths = [path for path in sides.paths if _is_sops_file(sides, path)]
    sops_files = [merge_sops_file(sides, path, options) for path in sops_paths]
    if sops_paths:
        sides = sides.map_sides(lambda side: side.without_files(*sops_paths))
    ignored_paths = [_find_ignored(side) for side in sides]
    files_without_kptfiles = sides.map_sides(_remove_kptfiles)
    if options.profile == "compat":
        return combine_results([_merge_like_kpt(files_without_kptfiles, ignored_paths, options), *sops_files])
    # Merge a file as a whole if `.krmignore` excludes it on any side, so that upstream changes of this file are
    # applied.
    opaque = [
        path
        for path in files_without_kptfiles.paths
        if not is_resource_file(path) or any(path in paths for paths in ignored_paths)
    ]
    resources = files_without_kptfiles.map_sides(lambda side: side.without_files(*opaque))
    return combine_results(
        [
            merge_resource_files(resources, options),
            *_merge_opaque_files(files_without_kptfiles, opaque, options),
            *sops_files,
        ]
    )


def _is_sops_file(sides: MergeSides, path: str) -> bool:
    """Return whether a file contains a SOPS document on at least one side. Such a file is merged as a whole."""
    is_read = is_krm_file(path) and basename(path) != KPTFILE
    return is_read and any(has_sops_document(path, side[path].data) for side in sides if path in side)


def merge_package_kptfile(
    sides: MergeSides, package: str, options: MergeOptions, *, is_root: bool, take_upstream: bool
) -> UpdateResult:
    """Merge the Kptfile of a package. The result has no file if the package has no Kptfile after the merge.

    If upstream deleted the Kptfile, the local Kptfile is deleted too. The Kptfile is kept if it has local changes or
    belongs to the root package. The profile `compat` keeps every local Kptfile, without the fields that came from
    upstream.
    """
    path = join_path(package, KPTFILE)
    origin, updated, local = (side.get(path) for side in sides)
    if local is None:
        return _merge_deleted_kptfile(path, origin, updated, options)
    if updated is None and options.profile == "safe":
        return create_single_file_result(path, local) if is_root else _merge_removed_kptfile(path, origin, local)
    if options.keep_untouched and origin == updated:
        return create_single_file_result(path, local)
    return _merge_kptfiles(sides, path, options, is_root=is_root, take_upstream=take_upstream)


def _merge_deleted_kptfile(path: str, origin: File | None, updated: File | None, options: MergeOptions) -> UpdateResult:
    if origin is None or options.profile == "compat":
        return create_single_file_result(path, updated)
    conflict = Conflict(
        "file",
        "",
        format_conflict_file(origin),
        ABSENT,
        format_conflict_file(updated),
        "local",
        DELETED_LOCALLY,
        file=path,
    )
    return create_single_file_result(path, None).with_details([conflict] if updated not in (None, origin) else [])


def _merge_removed_kptfile(path: str, origin: File | None, local: File) -> UpdateResult:
    if origin is None:
        return create_single_file_result(path, local)
    if is_same_content(path, origin.data, local.data):
        return create_single_file_result(path, None)
    conflict = Conflict(
        "file",
        "",
        format_conflict_file(origin),
        format_conflict_file(local),
        ABSENT,
        "local",
        DELETED_UPSTREAM,
        file=path,
    )
    return create_single_file_result(path, local).with_details([conflict])


def _merge_whole_kptfile(sides: MergeSides, package: str, options: MergeOptions) -> UpdateResult:
    path = join_path(package, KPTFILE)
    origin, updated, local = (side.get(path) for side in sides)
    if updated is None or local is None or resolve_one_sided(origin, updated, local):
        return merge_whole_file(sides, path, "local", "D17")
    return _merge_kptfiles(sides, path, options, whole=True)


def _merge_kptfiles(
    sides: MergeSides,
    path: str,
    options: MergeOptions,
    *,
    is_root: bool = False,
    take_upstream: bool = False,
    whole: bool = False,
) -> UpdateResult:
    results = [read_kptfile(side[path].data, path) if path in side else None for side in sides]
    origin, updated, local = (result if isinstance(result, Kptfile) else None for result in results)
    findings = [finding for result in results if isinstance(result, tuple) for finding in result]
    if local is None or findings:
        return _take_unreadable(
            sides, path, findings, is_isolated=options.isolate_broken and not (is_root and local is None)
        )
    try:
        kptfile, conflicts = merge_kptfile(origin, updated, local, options, take_upstream=take_upstream, whole=whole)
    except MergeError as error:
        return create_single_file_result(path, sides.local[path]).with_details(
            (), [PackageCodes.MERGE_IMPOSSIBLE.finding(str(error), SourceLocation(path))]
        )
    mode = merge_executable_bit(*(side.get(path) for side in sides))
    located_conflicts = (Conflict(**{**vars(conflict), "file": path}) for conflict in conflicts)
    return create_single_file_result(path, File(kptfile.to_bytes(), mode)).with_details(located_conflicts)


def _take_unreadable(sides: MergeSides, path: str, findings: list[Finding], *, is_isolated: bool) -> UpdateResult:
    if not is_isolated:
        return create_single_file_result(path, sides.local.get(path)).with_details((), findings)
    return merge_whole_file(sides, path, "local", "D17").with_details((), map(downgrade_to_warning, findings))


def _merge_like_kpt(sides: MergeSides, ignored_paths: list[set[str]], options: MergeOptions) -> UpdateResult:
    """Merge files as kpt does. Resource files that a side ignores are treated as absent on this side.

    The result also contains the ignored resource files of the local side without changes.
    """
    opaque = [path for path in sides.paths if not is_resource_file(path)]
    visible = MergeSides(
        *(side.without_files(*opaque, *ignored) for side, ignored in zip(sides, ignored_paths, strict=True))
    )
    resources = merge_resource_files(visible, options)
    ignored_local_files = {
        path: file for path, file in sides.local.items() if path in ignored_paths[2] and is_resource_file(path)
    }
    files = FileTree({**resources.files, **ignored_local_files})
    return combine_results(
        [UpdateResult(files, resources.conflicts, resources.findings), *_merge_opaque_files(sides, opaque, options)]
    )


def _merge_opaque_files(sides: MergeSides, paths: list[str], options: MergeOptions) -> list[UpdateResult]:
    return [merge_opaque_file(sides, path, options) for path in paths]


def _find_ignored(files: FileTree) -> set[str]:
    package = Package(files)
    return {path for path in files if is_resource_file(path) and package.is_ignored(path)}


def _remove_kptfiles(files: FileTree) -> FileTree:
    return FileTree({path: file for path, file in files.items() if basename(path) != KPTFILE})
