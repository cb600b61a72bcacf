"""The two merges of whole packages: an update from upstream, and a merge of two versions with independent changes."""

from __future__ import annotations

from dataclasses import replace

from reconciler.api.kpt import KptfileUpstream, UpdateStrategy
from reconciler.catalog.files import FileTree
from reconciler.krm.findings import SourceLocation
from reconciler.packages.clone import ResolvedUpstream, add_merge_comments
from reconciler.packages.codes import PackageCodes
from reconciler.packages.kptfile import KPTFILE, Kptfile
from reconciler.packages.package import Package, join_path
from reconciler.packages.update.options import MergeOptions
from reconciler.packages.update.package_diff import is_resource_file, list_changed_files
from reconciler.packages.update.sides import (
    MergeSides,
    UpdateResult,
    combine_results,
    find_kptfile,
    is_below,
    is_unfetched,
)
from reconciler.packages.update.single_package import merge_package_kptfile, merge_two_sides
from reconciler.packages.update.strategies import UpdateUnit, resolve_missing_package, update_unit


def update_package_tree(
    sides: MergeSides, strategy: UpdateStrategy, options: MergeOptions, *, is_locked: bool = False
) -> UpdateResult:
    """Update the root package with `strategy`. Update each subpackage that has an upstream with its own strategy.

    The new content of these subpackages comes from the new upstream version of the root package. The upstreams of the
    subpackages are not fetched.
    """
    remote = [path for path in sides.packages if sides.has_upstream(path)]
    if strategy == "copy-merge":
        return update_unit(UpdateUnit("", sides, options, is_root=True, is_locked=is_locked), strategy)
    sides_by_package = sides.split_by_package(remote)
    results = [update_unit(UpdateUnit("", sides_by_package[""], options, is_root=True, is_locked=is_locked), strategy)]
    copied_packages: list[str] = []
    for package in remote:
        if any(is_below(package, folder) for folder in copied_packages):
            continue
        # Skip all packages inside a package with the strategy copy-merge, because this strategy copies them too.
        if options.vendored and _read_strategy(sides.local, package) == "copy-merge":
            copied_packages.append(package)
        package_sides = sides.select_files_below(package) if package in copied_packages else sides_by_package[package]
        results.append(_update_remote(package_sides, package, options))
    return combine_results(results)


def _update_remote(sides: MergeSides, package: str, options: MergeOptions) -> UpdateResult:
    if not options.vendored:
        return UpdateResult(sides.local)
    kptfile = join_path(package, KPTFILE)
    exists = sides.map_sides(lambda side: FileTree({path: file for path, file in side.items() if path == kptfile}))
    return resolve_missing_package(sides, package, exists, options) or _update_fetched(sides, package, options)


def _update_fetched(sides: MergeSides, package: str, options: MergeOptions) -> UpdateResult:
    is_origin_unfetched, is_update_unfetched = (
        is_unfetched(find_kptfile(side, package)) for side in (sides.origin, sides.updated)
    )
    if is_update_unfetched:
        kptfile = merge_package_kptfile(sides, package, options, is_root=False, take_upstream=True)
        return combine_results([kptfile, UpdateResult(sides.local.without_files(join_path(package, KPTFILE)))])
    if is_origin_unfetched and (options.profile == "compat" or list_changed_files(sides.origin, sides.local)):
        text = (
            f'no origin available for subpackage "{package}": the upstream package did not contain its files when this '
            "package was cloned"
        )
        return UpdateResult(
            sides.local, (), (PackageCodes.NO_ORIGIN.finding(text, SourceLocation(join_path(package, KPTFILE))),)
        )
    return update_unit(UpdateUnit(package, sides, options, is_root=False), _read_strategy(sides.local, package))


def _read_strategy(files: FileTree, package: str) -> UpdateStrategy:
    kptfile = find_kptfile(files, package)
    return (kptfile.upstream.update_strategy if kptfile and kptfile.upstream else None) or "resource-merge"


def update_package(
    origin: FileTree,
    updated: FileTree,
    local: FileTree,
    strategy: UpdateStrategy,
    options: MergeOptions,
    lock: ResolvedUpstream | None = None,
) -> UpdateResult:
    """Apply the upstream changes from `origin` to `updated` to the local package. Nothing is fetched.

    If the update fails, the result contains the local files.

    Args:
        origin: The merge base: the upstream package of the last clone or update.
        updated: The new version of the upstream package.
        local: The package on the branch, with its local changes.
        lock: The new upstream for the root Kptfile. If the lock is set, resources in changed files also get merge
            comments.
    """
    result = update_package_tree(MergeSides(origin, updated, local), strategy, options, is_locked=lock is not None)
    if not result.has_failed and lock:
        result = _set_lock(result, lock)
    if result.has_failed:
        return replace(result, files=local)
    return add_comments_to_changed_files(result, local, options) if lock else result


def merge_packages(base: FileTree, theirs: FileTree, ours: FileTree, options: MergeOptions) -> UpdateResult:
    """Merge two versions of one package with independent changes. All fields of all Kptfiles are merged.

    In conflicts, `upstream` is the value of `theirs`, and `local` is the value of `ours`.
    """
    result = merge_two_sides(MergeSides(base, theirs, ours), options)
    return replace(result, files=ours) if result.has_failed else result


def get_update_strategy(upstream: KptfileUpstream | None) -> UpdateStrategy:
    """Return the update strategy of a package. The default is `resource-merge`."""
    return (upstream.update_strategy if upstream else None) or "resource-merge"


def add_comments_to_changed_files(result: UpdateResult, before: FileTree, options: MergeOptions) -> UpdateResult:
    """Return the result with merge comments on the resources of all changed files."""
    unchanged_paths = (
        path for path in result.files if is_resource_file(path) and result.files[path] == before.get(path)
    )
    skipped_paths = list(unchanged_paths) if options.keep_untouched else []
    files, findings = add_merge_comments(result.files.without_files(*skipped_paths), options.profile)
    all_files = FileTree({**result.files, **files})
    return UpdateResult(all_files, result.conflicts, (*result.findings, *findings))


def _set_lock(result: UpdateResult, lock: ResolvedUpstream) -> UpdateResult:
    kptfile = Package(result.files).kptfile
    if not isinstance(kptfile, Kptfile):
        return result.with_details((), kptfile)
    locked = kptfile.with_upstream(lock.repo, lock.directory, lock.ref, lock.commit)
    return replace(result, files=result.files.with_files({KPTFILE: locked.to_bytes()}))
