"""Units: the root or a remote subpackage, each with its local subpackages, updated by one strategy (kpt.md 5)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from reconciler.krm.conflicts import ABSENT, Conflict
from reconciler.krm.findings import Where
from reconciler.packages.codes import FAST_FORWARD_LOCAL_CHANGES, SUBPACKAGE_ADDED_TWICE
from reconciler.packages.kptfile import KPTFILE, Kptfile, Strategy
from reconciler.packages.package import join
from reconciler.packages.update.difference import is_minimal_kptfile, package_diff, without_render_status
from reconciler.packages.update.opaque import DELETED_HERE, DELETED_UPSTREAM
from reconciler.packages.update.options import MergeOptions
from reconciler.packages.update.result import Updated, combined
from reconciler.packages.update.scope import merge_package, merge_package_kptfile
from reconciler.packages.update.sides import Sides, kptfile_in
from reconciler.snapshot.files import FileTree


@dataclass(frozen=True)
class Unit:
    """A package that is updated as a whole: `sides` hold its files and those of its local subpackages.

    `is_root` is the package that the update began with; it keeps its upstream, unless a strategy takes all of it.
    """

    package: str
    sides: Sides
    options: MergeOptions
    is_root: bool
    is_locked: bool = False
    """Whether the caller says what the root follows from now on."""

    @cached_property
    def local_packages(self) -> tuple[str, ...]:
        """The subpackages that the unit's strategy takes care of, parents before children."""
        return tuple(path for path in self.sides.packages if path != self.package)

    @cached_property
    def scopes(self) -> Mapping[str, Sides]:
        """The files of each package of the unit, without those of the packages below it."""
        return self.sides.divided((self.package, *self.local_packages))


def update_unit(unit: Unit, strategy: Strategy) -> Updated:
    """Return the files of the unit after an update by this strategy (kpt.md 5.3)."""
    match strategy:
        case "resource-merge":
            return _resource_merge(unit)
        case "fast-forward":
            return _fast_forward(unit)
        case "force-delete-replace":
            return _replace(unit)
        case "copy-merge":
            return _copy_merge(unit)


def settle_package(sides: Sides, package: str, exists: Sides, options: MergeOptions) -> Updated | None:
    """Return what a package comes to that one side lacks, and None when all sides have it (kpt.md 5.2).

    `exists` holds what tells whether a side has the package; it must be empty where the side has not.
    """
    match tuple(bool(side) for side in exists):
        case (True, True, True):
            return None
        case (False, True, False):
            return Updated(sides.updated)
        case (False, True, True):
            return _added_twice(sides, package, options)
        case (True, True, False):
            changed = bool(package_diff(sides.origin, sides.updated))
            return Updated(sides.local).noting([_conflict(sides, package, DELETED_HERE)] if changed else [])
        case (True, False, True):
            if not package_diff(sides.origin, sides.local):
                return Updated(FileTree())
            return Updated(sides.local).noting([_conflict(sides, package, DELETED_UPSTREAM)])
        case _:
            return Updated(sides.local)


def _resource_merge(unit: Unit) -> Updated:
    if not unit.is_root and _is_repointed(unit):
        return Updated(unit.sides.local)
    parts = [_merge_scope(unit, unit.package)]
    for package in unit.local_packages:
        exists = unit.sides.part(package)
        parts.append(settle_package(unit.scopes[package], package, exists, unit.options) or _merge_scope(unit, package))
    return combined(parts)


def _is_repointed(unit: Unit) -> bool:
    """Tell whether somebody made the local package follow another upstream than the one it came with."""
    followed = [kptfile_in(side, unit.package) for side in (unit.sides.origin, unit.sides.local)]
    origin, local = (kptfile.upstream.git if kptfile and kptfile.upstream else None for kptfile in followed)
    return origin != local


def _merge_scope(unit: Unit, package: str) -> Updated:
    is_root = unit.is_root and package == unit.package
    return merge_package(unit.scopes[package], package, unit.options, is_root=is_root, take_upstream=not is_root)


def _fast_forward(unit: Unit) -> Updated:
    changed = [path for package in (unit.package, *unit.local_packages) for path in _changed_locally(unit, package)]
    if changed:
        text = f"local package files have been modified: {', '.join(changed)}; fast-forward needs them as they came"
        finding = FAST_FORWARD_LOCAL_CHANGES.finding(f"{text}: use a different update --strategy", Where(changed[0]))
        return Updated(unit.sides.local, (), (finding,))
    replaced = _replace(unit)
    kptfile = kptfile_in(replaced.files, unit.package)
    if kptfile is None or "status" not in kptfile.data:
        return replaced
    path = join(unit.package, KPTFILE)
    return replace(replaced, files=replaced.files.with_files({path: _without_status(kptfile).to_bytes()}))


def _changed_locally(unit: Unit, package: str) -> Iterator[str]:
    both = unit.sides.part(package)
    if package != unit.package and bool(both.local) != bool(both.origin):
        yield f"{package} (package)"
        return
    scope, kptfile = unit.scopes[package], join(package, KPTFILE)
    for path in package_diff(scope.origin, scope.local):
        # upstream needs no Kptfile: the local one was made when the package came
        made = path == kptfile and path not in scope.origin and is_minimal_kptfile(scope.local[path].data)
        if not made or package != unit.package:
            yield path


def _without_status(kptfile: Kptfile) -> Kptfile:
    status = without_render_status(kptfile.data["status"])
    rest = {key: value for key, value in kptfile.data.items() if key != "status"}
    return kptfile.with_data({**rest, "status": status} if status else rest)


def _replace(unit: Unit) -> Updated:
    kptfile = _taken_kptfile(unit)
    path = join(unit.package, KPTFILE)
    return combined([kptfile, Updated(unit.sides.updated.without(path))])


def _copy_merge(unit: Unit) -> Updated:
    path = join(unit.package, KPTFILE)
    origin, updated, local = (side.without(path) for side in unit.sides)
    stale = [path for path in local if path in origin and path not in updated]
    return combined([_taken_kptfile(unit), Updated(local.without(*stale).with_files(updated))])


def _taken_kptfile(unit: Unit) -> Updated:
    """Return the unit's Kptfile, merged, with upstream's own upstream in it."""
    scope = unit.scopes[unit.package]
    # upstream's tool compares with nothing here, so that functions removed upstream stay
    sides = Sides(FileTree(), scope.updated, scope.local) if unit.options.profile == "compat" else scope
    take_upstream = not (unit.is_root and unit.is_locked)
    return merge_package_kptfile(sides, unit.package, unit.options, is_root=unit.is_root, take_upstream=take_upstream)


def _added_twice(sides: Sides, package: str, options: MergeOptions) -> Updated:
    if options.profile == "safe" and not package_diff(sides.updated, sides.local):
        return Updated(sides.local)
    finding = SUBPACKAGE_ADDED_TWICE.finding(
        f'subpackage "{package}" added in both upstream and local, with different content: rename or remove one',
        Where(join(package, KPTFILE)),
    )
    return Updated(sides.local, (), (finding,))


def _conflict(sides: Sides, package: str, rule: str) -> Conflict:
    origin, updated, local = (str(side.id) if side else ABSENT for side in sides)
    return Conflict("package", "", origin, local, updated, "local", rule, file=package)
