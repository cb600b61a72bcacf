"""A package with the remote subpackages that upstream distributes with it (kpt.md 5.1, 5.2)."""

from __future__ import annotations

from reconciler.krm.findings import Where
from reconciler.packages.codes import NO_ORIGIN
from reconciler.packages.kptfile import KPTFILE, Strategy
from reconciler.packages.package import join
from reconciler.packages.update.difference import package_diff
from reconciler.packages.update.options import MergeOptions
from reconciler.packages.update.result import Updated, combined
from reconciler.packages.update.scope import merge_package_kptfile
from reconciler.packages.update.sides import Sides, is_below, is_unfetched, kptfile_in
from reconciler.packages.update.unit import Unit, settle_package, update_unit
from reconciler.snapshot.files import FileTree


def update_tree(sides: Sides, strategy: Strategy, options: MergeOptions, *, is_locked: bool = False) -> Updated:
    """Return a whole package after an update: the root by this strategy, remote subpackages each by its own.

    A remote subpackage is updated from the files that upstream holds; it is not asked where those came from.
    """
    remote = [path for path in sides.packages if sides.has_upstream(path)]
    if strategy == "copy-merge":
        return update_unit(Unit("", sides, options, is_root=True, is_locked=is_locked), strategy)
    divided = sides.divided(remote)
    parts = [update_unit(Unit("", divided[""], options, is_root=True, is_locked=is_locked), strategy)]
    copied: list[str] = []
    for package in remote:
        if any(is_below(package, folder) for folder in copied):
            continue
        # whoever copies a package copies those in it, too
        if options.vendored and _strategy(sides.local, package) == "copy-merge":
            copied.append(package)
        whole = sides.part(package) if package in copied else divided[package]
        parts.append(_remote(whole, package, options))
    return combined(parts)


def _remote(sides: Sides, package: str, options: MergeOptions) -> Updated:
    if not options.vendored:
        return Updated(sides.local)
    kptfile = join(package, KPTFILE)
    exists = sides.each(lambda side: FileTree({path: file for path, file in side.items() if path == kptfile}))
    return settle_package(sides, package, exists, options) or _update(sides, package, options)


def _update(sides: Sides, package: str, options: MergeOptions) -> Updated:
    origin, updated = (is_unfetched(kptfile_in(side, package)) for side in (sides.origin, sides.updated))
    if updated:
        kptfile = merge_package_kptfile(sides, package, options, is_root=False, take_upstream=True)
        return combined([kptfile, Updated(sides.local.without(join(package, KPTFILE)))])
    if origin and (options.profile == "compat" or package_diff(sides.origin, sides.local)):
        text = f'no origin available for subpackage "{package}": upstream had not fetched it when this package came'
        return Updated(sides.local, (), (NO_ORIGIN.finding(text, Where(join(package, KPTFILE))),))
    return update_unit(Unit(package, sides, options, is_root=False), _strategy(sides.local, package))


def _strategy(files: FileTree, package: str) -> Strategy:
    kptfile = kptfile_in(files, package)
    return (kptfile.upstream.update_strategy if kptfile and kptfile.upstream else None) or "resource-merge"
