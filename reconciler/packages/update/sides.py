"""The input and the result of a merge: three versions of a package, and merged files with conflicts and findings."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from posixpath import dirname

from reconciler.catalog.files import File, FileTree
from reconciler.krm.findings import Finding, select_errors
from reconciler.krm.merge3.rules import Conflict
from reconciler.lazy_dataclasses import dataclass, replace
from reconciler.packages.kptfile import KPTFILE, Kptfile, read_kptfile
from reconciler.packages.package import Package, join_path


@dataclass(frozen=True)
class UpdateResult:
    """The files of a package, or of a part of a package, after an update.

    Attributes:
        files: The merged files. Do not use them if `findings` contains an error.
        conflicts: The fields and files that both sides changed differently.
    """

    files: FileTree
    conflicts: tuple[Conflict, ...] = ()
    findings: tuple[Finding, ...] = ()

    @property
    def has_failed(self) -> bool:
        """Whether `findings` contains an error. If so, do not use the files."""
        return bool(select_errors(self.findings))

    def with_details(self, conflicts: Iterable[Conflict] = (), findings: Iterable[Finding] = ()) -> UpdateResult:
        """Return this result with more conflicts and findings. The new conflicts and findings come before the existing
        conflicts and findings.
        """
        return replace(self, conflicts=(*conflicts, *self.conflicts), findings=(*findings, *self.findings))


def combine_results(results: Iterable[UpdateResult]) -> UpdateResult:
    """Combine results for different files into one result. No path may occur in two results."""
    all_results = tuple(results)
    return UpdateResult(
        FileTree({path: file for result in all_results for path, file in result.files.items()}),
        tuple(conflict for result in all_results for conflict in result.conflicts),
        tuple(finding for result in all_results for finding in result.findings),
    )


# Do not parse a Kptfile that does not contain this text, because it has no upstream. Most subpackages have no upstream.
_UPSTREAM = b"upstream"


@dataclass(frozen=True)
class MergeSides:
    """The three versions of a package in a merge. All paths are relative to the root package.

    Attributes:
        origin: The merge base: the upstream package of the last clone or update.
        updated: The new version of the upstream package.
        local: The package on the branch, with its local changes.
    """

    origin: FileTree
    updated: FileTree
    local: FileTree

    def __iter__(self) -> Iterator[FileTree]:
        return iter((self.origin, self.updated, self.local))

    def map_sides(self, change: Callable[[FileTree], FileTree]) -> MergeSides:
        """Apply `change` to the files of each side, and return the results."""
        return MergeSides(*map(change, self))

    @property
    def paths(self) -> tuple[str, ...]:
        """The sorted paths of all files that exist on at least one side."""
        return tuple(sorted({path for side in self for path in side}))

    def select_files_below(self, folder: str) -> MergeSides:
        """Return only the files in `folder` and its subfolders. Paths stay relative to the root package."""
        return self.map_sides(lambda side: select_files_below(side, folder))

    def split_by_package(self, packages: Collection[str]) -> Mapping[str, MergeSides]:
        """Return the files of each package. A file belongs to the innermost package in `packages` that contains it.

        In the result, the key "" contains all other files. Paths stay relative to the root package.
        """
        parts = [_split_by_package(side, packages) for side in self]
        return {
            package: MergeSides(*(FileTree(part.get(package)) for part in parts))
            for package in dict.fromkeys(("", *packages))
        }

    @property
    def packages(self) -> tuple[str, ...]:
        """The paths of all subpackages that exist on at least one side. Parents come before their children."""
        return tuple(sorted({path for side in self for path in Package(side).subpackages}, key=_get_depth_and_path))

    def has_upstream(self, package: str) -> bool:
        """Return whether the Kptfile of `package` has the section `upstream` on at least one side."""
        return any(_has_upstream(side, package) for side in self)


def select_files_below(files: FileTree, folder: str) -> FileTree:
    """Return only the files in `folder` and its subfolders. Paths do not change."""
    return FileTree({path: file for path, file in files.items() if is_below(path, folder)})


def _split_by_package(files: FileTree, packages: Collection[str]) -> dict[str, dict[str, File]]:
    package_set, files_by_package = set(packages), dict[str, dict[str, File]]()
    for path, file in files.items():
        folder = dirname(path)
        while folder and folder not in package_set:
            folder = dirname(folder)
        files_by_package.setdefault(folder, {})[path] = file
    return files_by_package


def is_below(path: str, folder: str) -> bool:
    """Return whether `path` is inside `folder`, at any depth. If `folder` is "", return True."""
    return not folder or path.startswith(f"{folder}/")


def find_kptfile(files: FileTree, package: str) -> Kptfile | None:
    """Return the Kptfile of a package. Return None if the Kptfile does not exist or cannot be read."""
    path = join_path(package, KPTFILE)
    kptfile = read_kptfile(files[path].data, path) if path in files else None
    return kptfile if isinstance(kptfile, Kptfile) else None


def is_unfetched(kptfile: Kptfile | None) -> bool:
    """Return whether a package has an upstream but no `upstreamLock`, because no upstream content was fetched yet."""
    return kptfile is not None and kptfile.upstream is not None and kptfile.upstream_lock is None


def _has_upstream(files: FileTree, package: str) -> bool:
    path = join_path(package, KPTFILE)
    if path not in files or _UPSTREAM not in files[path].data:
        return False
    kptfile = find_kptfile(files, package)
    return kptfile is not None and kptfile.upstream is not None


def _get_depth_and_path(path: str) -> tuple[int, str]:
    return path.count("/"), path
