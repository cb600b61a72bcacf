"""The three sides of a merge, and how a package divides into parts that are merged on their own (kpt.md 1, 5.1)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from posixpath import dirname

from reconciler.packages.kptfile import KPTFILE, Kptfile, read_kptfile
from reconciler.packages.package import Package, join
from reconciler.snapshot.files import File, FileTree

# what mentions no upstream follows none: most Kptfiles of subpackages need no reading
_UPSTREAM = b"upstream"


@dataclass(frozen=True)
class Sides:
    """A package as it was upstream, as it is upstream now, and as it is locally; paths start at the root package."""

    origin: FileTree
    updated: FileTree
    local: FileTree

    def __iter__(self) -> Iterator[FileTree]:
        return iter((self.origin, self.updated, self.local))

    def each(self, change: Callable[[FileTree], FileTree]) -> Sides:
        """Return the sides, each of them changed."""
        return Sides(*map(change, self))

    @property
    def paths(self) -> tuple[str, ...]:
        """All paths of all sides, sorted."""
        return tuple(sorted({path for side in self for path in side}))

    def part(self, folder: str) -> Sides:
        """Return the files below a folder; paths stay."""
        return self.each(lambda side: part(side, folder))

    def divided(self, packages: Collection[str]) -> Mapping[str, Sides]:
        """Return the files by the nearest of these packages that holds them; "" has the rest. Paths stay."""
        apart = [_divided(side, packages) for side in self]
        return {
            package: Sides(*(FileTree(each.get(package)) for each in apart))
            for package in dict.fromkeys(("", *packages))
        }

    @property
    def packages(self) -> tuple[str, ...]:
        """The paths of all packages below the root on any side, parents before children."""
        return tuple(sorted({path for side in self for path in Package(side).subpackages}, key=_depth))

    def has_upstream(self, package: str) -> bool:
        """Tell whether the package follows an upstream of its own on any side."""
        return any(_follows(side, package) for side in self)


def part(files: FileTree, folder: str) -> FileTree:
    """Return the files below a folder; paths stay."""
    return FileTree({path: file for path, file in files.items() if is_below(path, folder)})


def _divided(files: FileTree, packages: Collection[str]) -> dict[str, dict[str, File]]:
    known, found = set(packages), dict[str, dict[str, File]]()
    for path, file in files.items():
        folder = dirname(path)
        while folder and folder not in known:
            folder = dirname(folder)
        found.setdefault(folder, {})[path] = file
    return found


def is_below(path: str, folder: str) -> bool:
    """Tell whether a file, or a folder, lies below a folder; everything lies below ""."""
    return not folder or path.startswith(f"{folder}/")


def kptfile_in(files: FileTree, package: str) -> Kptfile | None:
    """Return the Kptfile of a package; None when there is none, or none that can be read."""
    path = join(package, KPTFILE)
    read = read_kptfile(files[path].data, path) if path in files else None
    return read if isinstance(read, Kptfile) else None


def is_unfetched(kptfile: Kptfile | None) -> bool:
    """Tell whether a package names an upstream that it never got (kpt.md 1.3)."""
    return kptfile is not None and kptfile.upstream is not None and kptfile.upstream_lock is None


def _follows(files: FileTree, package: str) -> bool:
    path = join(package, KPTFILE)
    if path not in files or _UPSTREAM not in files[path].data:
        return False
    kptfile = kptfile_in(files, package)
    return kptfile is not None and kptfile.upstream is not None


def _depth(path: str) -> tuple[int, str]:
    return path.count("/"), path
