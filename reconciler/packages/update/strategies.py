"""The update strategies. A strategy updates a root package, or a subpackage with its own upstream.

Subpackages without their own upstreams are updated together with the package that contains them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property

from reconciler.api.kpt import UpdateStrategy
from reconciler.catalog.files import FileTree
from reconciler.krm.findings import SourceLocation
from reconciler.krm.merge3.rules import ABSENT, Conflict
from reconciler.lazy_dataclasses import dataclass, replace
from reconciler.packages.codes import PackageCodes
from reconciler.packages.kptfile import KPTFILE, Kptfile
from reconciler.packages.package import join_path
from reconciler.packages.update.options import MergeOptions
from reconciler.packages.update.package_diff import is_minimal_kptfile, list_changed_files, remove_render_status
from reconciler.packages.update.sides import MergeSides, UpdateResult, combine_results, find_kptfile
from reconciler.packages.update.single_package import merge_package, merge_package_kptfile
from reconciler.packages.update.whole_files import DELETED_LOCALLY, DELETED_UPSTREAM


@dataclass(frozen=True)
class UpdateUnit:
    """A package that is updated with one strategy, together with its subpackages that have no own upstream.

    Attributes:
        sides: The files of the package and of these subpackages.
        is_root: Whether this package is the root package of the update. A root package keeps its section `upstream`,
            unless the strategy replaces the Kptfile.
    """

    package: str
    sides: MergeSides
    options: MergeOptions
    is_root: bool
    is_locked: bool = False
    """Whether the caller sets `upstream` and `upstreamLock` of the root package after the update."""

    @cached_property
    def local_packages(self) -> tuple[str, ...]:
        """The paths of the subpackages that are updated with this package. Parents come before their children."""
        return tuple(path for path in self.sides.packages if path != self.package)

    @cached_property
    def scopes(self) -> Mapping[str, MergeSides]:
        """The files of this package and of each local subpackage, by package path. No file occurs in two packages."""
        return self.sides.split_by_package((self.package, *self.local_packages))


def update_unit(unit: UpdateUnit, strategy: UpdateStrategy) -> UpdateResult:
    """Update the files of a package with the given strategy."""
    match strategy:
        case "resource-merge":
            return _merge_resources(unit)
        case "fast-forward":
            return _update_fast_forward(unit)
        case "force-delete-replace":
            return _replace(unit)
        case "copy-merge":
            return _copy_merge(unit)


def resolve_missing_package(
    sides: MergeSides, package: str, exists: MergeSides, options: MergeOptions
) -> UpdateResult | None:
    """Return the merge result if the package is missing on at least one side. Otherwise, return None.

    Args:
        sides: The files to merge.
        exists: The existence of the package on each side. The value of a side is empty if the package is missing there.
    """
    match tuple(bool(side) for side in exists):
        case (True, True, True):
            return None
        case (False, True, False):
            return UpdateResult(sides.updated)
        case (False, True, True):
            return _resolve_added_twice(sides, package, options)
        case (True, True, False):
            has_upstream_changes = bool(list_changed_files(sides.origin, sides.updated))
            return UpdateResult(sides.local).with_details(
                [_create_conflict(sides, package, DELETED_LOCALLY)] if has_upstream_changes else []
            )
        case (True, False, True):
            if not list_changed_files(sides.origin, sides.local):
                return UpdateResult(FileTree())
            return UpdateResult(sides.local).with_details([_create_conflict(sides, package, DELETED_UPSTREAM)])
        case _:
            return UpdateResult(sides.local)


def _merge_resources(unit: UpdateUnit) -> UpdateResult:
    if not unit.is_root and _has_new_upstream(unit):
        return UpdateResult(unit.sides.local)
    parts = [_merge_scope(unit, unit.package)]
    for package in unit.local_packages:
        exists = unit.sides.select_files_below(package)
        parts.append(
            resolve_missing_package(unit.scopes[package], package, exists, unit.options) or _merge_scope(unit, package)
        )
    return combine_results(parts)


def _has_new_upstream(unit: UpdateUnit) -> bool:
    """Return whether the local Kptfile has a different upstream than the Kptfile in the merge base."""
    kptfiles = [find_kptfile(side, unit.package) for side in (unit.sides.origin, unit.sides.local)]
    origin, local = (kptfile.upstream.git if kptfile and kptfile.upstream else None for kptfile in kptfiles)
    return origin != local


def _merge_scope(unit: UpdateUnit, package: str) -> UpdateResult:
    is_root = unit.is_root and package == unit.package
    return merge_package(unit.scopes[package], package, unit.options, is_root=is_root, take_upstream=not is_root)


def _update_fast_forward(unit: UpdateUnit) -> UpdateResult:
    changed_paths = [
        path for package in (unit.package, *unit.local_packages) for path in _find_local_changes(unit, package)
    ]
    if changed_paths:
        text = (
            f"local package files have been modified: {', '.join(changed_paths)}; fast-forward requires unchanged files"
        )
        finding = PackageCodes.FAST_FORWARD_LOCAL_CHANGES.finding(
            f"{text}: use a different update --strategy", SourceLocation(changed_paths[0])
        )
        return UpdateResult(unit.sides.local, (), (finding,))
    replaced = _replace(unit)
    kptfile = find_kptfile(replaced.files, unit.package)
    if kptfile is None or "status" not in kptfile.data:
        return replaced
    path = join_path(unit.package, KPTFILE)
    return replace(replaced, files=replaced.files.with_files({path: _remove_status(kptfile).to_bytes()}))


def _find_local_changes(unit: UpdateUnit, package: str) -> Iterator[str]:
    package_sides = unit.sides.select_files_below(package)
    if package != unit.package and bool(package_sides.local) != bool(package_sides.origin):
        yield f"{package} (package)"
        return
    scope, kptfile = unit.scopes[package], join_path(package, KPTFILE)
    for path in list_changed_files(scope.origin, scope.local):
        # Ignore a generated Kptfile, which a clone creates if the upstream package has no Kptfile.
        is_generated = path == kptfile and path not in scope.origin and is_minimal_kptfile(scope.local[path].data)
        if not is_generated or package != unit.package:
            yield path


def _remove_status(kptfile: Kptfile) -> Kptfile:
    status = remove_render_status(kptfile.data["status"])
    other_sections = {key: value for key, value in kptfile.data.items() if key != "status"}
    return kptfile.with_data({**other_sections, "status": status} if status else other_sections)


def _replace(unit: UpdateUnit) -> UpdateResult:
    kptfile = _take_kptfile(unit)
    path = join_path(unit.package, KPTFILE)
    return combine_results([kptfile, UpdateResult(unit.sides.updated.without_files(path))])


def _copy_merge(unit: UpdateUnit) -> UpdateResult:
    path = join_path(unit.package, KPTFILE)
    origin, updated, local = (side.without_files(path) for side in unit.sides)
    removed_paths = [path for path in local if path in origin and path not in updated]
    return combine_results([_take_kptfile(unit), UpdateResult(local.without_files(*removed_paths).with_files(updated))])


def _take_kptfile(unit: UpdateUnit) -> UpdateResult:
    """Return the merged Kptfile, with the sections `upstream` and `upstreamLock` of the new upstream package.

    If `unit.is_locked` is True, the root package keeps these two sections of its local Kptfile, because the caller sets
    them after the update.
    """
    scope = unit.scopes[unit.package]
    # In the profile `compat`, use an empty merge base, as kpt does. As a result, functions that upstream removed stay
    # in the local Kptfile.
    sides = MergeSides(FileTree(), scope.updated, scope.local) if unit.options.profile == "compat" else scope
    take_upstream = not (unit.is_root and unit.is_locked)
    return merge_package_kptfile(sides, unit.package, unit.options, is_root=unit.is_root, take_upstream=take_upstream)


def _resolve_added_twice(sides: MergeSides, package: str, options: MergeOptions) -> UpdateResult:
    if options.profile == "safe" and not list_changed_files(sides.updated, sides.local):
        return UpdateResult(sides.local)
    finding = PackageCodes.SUBPACKAGE_ADDED_TWICE.finding(
        # The first words are the same as in the message of `kpt pkg update`.
        f'subpackage "{package}" added in both upstream and local, with different content. Next step: rename or remove'
        " one of the two",
        SourceLocation(join_path(package, KPTFILE)),
    )
    return UpdateResult(sides.local, (), (finding,))


def _create_conflict(sides: MergeSides, package: str, rule: str) -> Conflict:
    origin, updated, local = (str(side.id) if side else ABSENT for side in sides)
    return Conflict("package", "", origin, local, updated, "local", rule, file=package)
