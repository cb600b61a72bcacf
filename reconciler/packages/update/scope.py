"""One package without its subpackages: its Kptfile, its resources and its other files (kpt.md 5.3, 5.5, 10)."""

from __future__ import annotations

from posixpath import basename, dirname

from reconciler.krm.conflicts import ABSENT, Conflict
from reconciler.krm.findings import Finding, Where, softened
from reconciler.krm.merge3 import MergeError
from reconciler.packages.codes import MERGE_IMPOSSIBLE
from reconciler.packages.kptfile import KPTFILE, Kptfile, read_kptfile
from reconciler.packages.package import Package, join
from reconciler.packages.update.difference import is_same_content, is_yaml
from reconciler.packages.update.kptfile_merge import merge_kptfile
from reconciler.packages.update.opaque import (
    DELETED_HERE,
    DELETED_UPSTREAM,
    merge_opaque_file,
    merge_whole_file,
    merged_mode,
    only,
    settle,
    shown,
)
from reconciler.packages.update.options import MergeOptions
from reconciler.packages.update.resources import merge_resource_files
from reconciler.packages.update.result import Updated, combined
from reconciler.packages.update.sides import Sides
from reconciler.snapshot.files import File, FileTree


def merge_package(sides: Sides, package: str, options: MergeOptions, *, is_root: bool, take_upstream: bool) -> Updated:
    """Return the files of one package after a resource merge; the sides hold nothing of other packages."""
    kptfile = merge_package_kptfile(sides, package, options, is_root=is_root, take_upstream=take_upstream)
    return combined([kptfile, merge_files(sides, options)])


def merge_both(sides: Sides, options: MergeOptions) -> Updated:
    """Return what two sides of one package come to, all of its packages and Kptfiles alike (git.md 3)."""
    packages = sorted(dirname(path) for path in sides.paths if basename(path) == KPTFILE)
    kptfiles = (_merge_whole_kptfile(sides, package, options) for package in packages)
    return combined([*kptfiles, merge_files(sides, options)])


def merge_files(sides: Sides, options: MergeOptions) -> Updated:
    """Return all files after the update but for Kptfiles, which are left out."""
    hidden = [_hidden(side) for side in sides]
    named = sides.each(_without_kptfiles)
    if options.profile == "compat":
        return _merge_as_upstream_does(named, hidden, options)
    # what one side does not take for resources is none, or its templates would never change
    opaque = [path for path in named.paths if not is_yaml(path) or any(path in each for each in hidden)]
    resources = named.each(lambda side: side.without(*opaque))
    return combined([merge_resource_files(resources, options), *_opaque(named, opaque, options)])


def merge_package_kptfile(
    sides: Sides, package: str, options: MergeOptions, *, is_root: bool, take_upstream: bool
) -> Updated:
    """Return the Kptfile of a package after the update, where one remains.

    A Kptfile that upstream took away is only removed where nothing in it was changed, and never from the root. In
    `compat` it always stays, and upstream's part of it goes.
    """
    path = join(package, KPTFILE)
    origin, updated, local = (side.get(path) for side in sides)
    if local is None:
        return _kptfile_gone_here(path, origin, updated, options)
    if updated is None and options.profile == "safe":
        return only(path, local) if is_root else _kptfile_gone(path, origin, local)
    if options.keep_untouched and origin == updated:
        return only(path, local)
    return _merge_kptfiles(sides, path, options, is_root=is_root, take_upstream=take_upstream)


def _kptfile_gone_here(path: str, origin: File | None, updated: File | None, options: MergeOptions) -> Updated:
    if origin is None or options.profile == "compat":
        return only(path, updated)
    conflict = Conflict("file", "", shown(origin), ABSENT, shown(updated), "local", DELETED_HERE, file=path)
    return only(path, None).noting([conflict] if updated not in (None, origin) else [])


def _kptfile_gone(path: str, origin: File | None, local: File) -> Updated:
    if origin is None:
        return only(path, local)
    if is_same_content(path, origin.data, local.data):
        return only(path, None)
    conflict = Conflict("file", "", shown(origin), shown(local), ABSENT, "local", DELETED_UPSTREAM, file=path)
    return only(path, local).noting([conflict])


def _merge_whole_kptfile(sides: Sides, package: str, options: MergeOptions) -> Updated:
    path = join(package, KPTFILE)
    origin, updated, local = (side.get(path) for side in sides)
    if updated is None or local is None or settle(origin, updated, local):
        return merge_whole_file(sides, path, "local", "D17")
    return _merge_kptfiles(sides, path, options, whole=True)


def _merge_kptfiles(
    sides: Sides,
    path: str,
    options: MergeOptions,
    *,
    is_root: bool = False,
    take_upstream: bool = False,
    whole: bool = False,
) -> Updated:
    read = [read_kptfile(side[path].data, path) if path in side else None for side in sides]
    origin, updated, local = (each if isinstance(each, Kptfile) else None for each in read)
    faults = [finding for each in read if isinstance(each, tuple) for finding in each]
    if local is None or faults:
        return _unreadable(sides, path, faults, isolated=options.isolate_broken and not (is_root and local is None))
    try:
        kptfile, conflicts = merge_kptfile(origin, updated, local, options, take_upstream=take_upstream, whole=whole)
    except MergeError as error:
        return only(path, sides.local[path]).noting((), [MERGE_IMPOSSIBLE.finding(str(error), Where(path))])
    mode = merged_mode(*(side.get(path) for side in sides))
    told = (Conflict(**{**vars(conflict), "file": path}) for conflict in conflicts)
    return only(path, File(kptfile.to_bytes(), mode)).noting(told)


def _unreadable(sides: Sides, path: str, faults: list[Finding], *, isolated: bool) -> Updated:
    if not isolated:
        return only(path, sides.local.get(path)).noting((), faults)
    return merge_whole_file(sides, path, "local", "D17").noting((), map(softened, faults))


def _merge_as_upstream_does(sides: Sides, hidden: list[set[str]], options: MergeOptions) -> Updated:
    """Hidden resource files count as absent on their side; the local ones stay as they are (kpt.md 6.3)."""
    opaque = [path for path in sides.paths if not is_yaml(path)]
    visible = Sides(*(side.without(*opaque, *gone) for side, gone in zip(sides, hidden, strict=True)))
    merged = merge_resource_files(visible, options)
    kept = {path: file for path, file in sides.local.items() if path in hidden[2] and is_yaml(path)}
    files = FileTree({**merged.files, **kept})
    return combined([Updated(files, merged.conflicts, merged.findings), *_opaque(sides, opaque, options)])


def _opaque(sides: Sides, paths: list[str], options: MergeOptions) -> list[Updated]:
    return [merge_opaque_file(sides, path, options) for path in paths]


def _hidden(files: FileTree) -> set[str]:
    package = Package(files)
    return {path for path in files if is_yaml(path) and package.is_ignored(path)}


def _without_kptfiles(files: FileTree) -> FileTree:
    return FileTree({path: file for path, file in files.items() if basename(path) != KPTFILE})
