"""The input and the result of a merge: three versions of a package, and merged files with conflicts and findings."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from posixpath import dirname

from reconciler.catalog.files import File, FileTree
from reconciler.krm.findings import Finding, select_errors
from reconciler.krm.merge3.rules import Conflict
from reconciler.packages.kptfile import KPTFILE, Kptfile, read_kptfile
from reconciler.packages.package import Package, join_path


@dataclass(frozen=True)
class UpdateResult:
    """The files of a package, or a part of it, after an update.

    `conflicts` are the changes of both sides in the same place. If `findings` contain an error, the files must not be
    used.
    """

    files: FileTree
    conflicts: tuple[Conflict, ...] = ()
    findings: tuple[Finding, ...] = ()

    @property
    def has_failed(self) -> bool:
        """Whether the files must not be used."""
        return bool(select_errors(self.findings))

    def with_details(self, conflicts: Iterable[Conflict] = (), findings: Iterable[Finding] = ()) -> UpdateResult:
        """Return the same files with additional conflicts and findings before the existing ones."""
        return replace(self, conflicts=(*conflicts, *self.conflicts), findings=(*findings, *self.findings))


def combine_results(results: Iterable[UpdateResult]) -> UpdateResult:
    """Return the union of results that share no path."""
    all_results = tuple(results)
    return UpdateResult(
        FileTree({path: file for result in all_results for path, file in result.files.items()}),
        tuple(conflict for result in all_results for conflict in result.conflicts),
        tuple(finding for result in all_results for finding in result.findings),
    )


# A Kptfile without this text has no upstream. Most Kptfiles of subpackages need not be parsed.
_UPSTREAM = b"upstream"


@dataclass(frozen=True)
class MergeSides:
    """The three versions of a package in a merge. All paths start at the root package.

    `origin` is the upstream package of the last merge, `updated` is the new upstream package, and `local` is the
    package in the target.
    """

    origin: FileTree
    updated: FileTree
    local: FileTree

    def __iter__(self) -> Iterator[FileTree]:
        return iter((self.origin, self.updated, self.local))

    def map_sides(self, change: Callable[[FileTree], FileTree]) -> MergeSides:
        """Return the sides with a function applied to each."""
        return MergeSides(*map(change, self))

    @property
    def paths(self) -> tuple[str, ...]:
        """The sorted paths of all sides."""
        return tuple(sorted({path for side in self for path in side}))

    def select_files_below(self, folder: str) -> MergeSides:
        """Return the files below a folder, with unchanged paths."""
        return self.map_sides(lambda side: select_files_below(side, folder))

    def split_by_package(self, packages: Collection[str]) -> Mapping[str, MergeSides]:
        """Return the files by the nearest of these packages that contains them; "" has all other files.

        Paths are unchanged.
        """
        parts = [_split_by_package(side, packages) for side in self]
        return {
            package: MergeSides(*(FileTree(part.get(package)) for part in parts))
            for package in dict.fromkeys(("", *packages))
        }

    @property
    def packages(self) -> tuple[str, ...]:
        """The paths of all packages below the root on any side, parents before children."""
        return tuple(sorted({path for side in self for path in Package(side).subpackages}, key=_get_depth_and_path))

    def has_upstream(self, package: str) -> bool:
        """Return whether the package has its own upstream on any side."""
        return any(_has_upstream(side, package) for side in self)


def select_files_below(files: FileTree, folder: str) -> FileTree:
    """Return the files below a folder, with unchanged paths."""
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
    """Return whether a file or folder is below a folder. Everything is below ""."""
    return not folder or path.startswith(f"{folder}/")


def find_kptfile(files: FileTree, package: str) -> Kptfile | None:
    """Return the Kptfile of a package, or None if there is none or it cannot be read."""
    path = join_path(package, KPTFILE)
    kptfile = read_kptfile(files[path].data, path) if path in files else None
    return kptfile if isinstance(kptfile, Kptfile) else None


def is_unfetched(kptfile: Kptfile | None) -> bool:
    """Return whether a package has an upstream, but its content was never fetched."""
    return kptfile is not None and kptfile.upstream is not None and kptfile.upstream_lock is None


def _has_upstream(files: FileTree, package: str) -> bool:
    path = join_path(package, KPTFILE)
    if path not in files or _UPSTREAM not in files[path].data:
        return False
    kptfile = find_kptfile(files, package)
    return kptfile is not None and kptfile.upstream is not None


def _get_depth_and_path(path: str) -> tuple[int, str]:
    return path.count("/"), path
