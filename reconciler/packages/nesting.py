"""Nesting: which package holds which file, and which files render reads, by the paths and the ignore files alone.

Clusters have most packages at the same paths, whatever is in their files: this is worked out once for all of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from posixpath import basename, dirname
from typing import TYPE_CHECKING

from reconciler.caching import cached
from reconciler.krm.ignores import read_ignores
from reconciler.packages.kptfile import KPTFILE
from reconciler.snapshot.files import FileTree

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

KRMIGNORE = ".krmignore"
# room for every shape of the packages of a cluster, before and after its functions
_REMEMBERED_SHAPES = 1024


@dataclass(frozen=True)
class Nesting:
    """The packages of a tree: its `paths`, sorted, and the contents of its ignore files."""

    paths: tuple[str, ...]
    ignores: tuple[tuple[str, bytes], ...] = ()

    @cached_property
    def subpackages(self) -> tuple[str, ...]:
        """The paths of all packages below the root, sorted; the root itself is not in it."""
        return tuple(sorted(dirname(path) for path in self.paths if basename(path) == KPTFILE and dirname(path)))

    def owner(self, path: str) -> str:
        """Return the path of the nearest package that holds a file; "" is the root."""
        folder = dirname(path)
        while folder and folder not in self._packages:
            folder = dirname(folder)
        return folder

    def is_ignored(self, path: str) -> bool:
        """Tell whether a .krmignore of the file's own package hides it from KRM reading (kpt.md 1.6)."""
        owner, ignored = self.owner(path), False
        for folder, spec in self._ignores.get(owner, ()):
            inside = path.removeprefix(f"{folder}/" if folder else "")
            if not folder or inside != path:
                verdict = spec.check_file(inside).include
                ignored = ignored if verdict is None else verdict
        return ignored

    @cached_property
    def krm_files(self) -> Mapping[str, str]:
        """The files that render reads, in their order, each with the package that holds it."""
        return {path: self.owner(path) for path in self.paths if is_krm_file(path) and not self.is_ignored(path)}

    @cached_property
    def _packages(self) -> frozenset[str]:
        return frozenset(self.subpackages)

    @cached_property
    def _ignores(self) -> dict[str, list[tuple[str, GitIgnoreSpec]]]:
        # files come sorted, but "a-b/x" sorts before "a/x": the outermost folder must speak first
        ignores: dict[str, list[tuple[str, GitIgnoreSpec]]] = {}
        for path, content in sorted(self.ignores, key=lambda one: one[0].count("/")):
            ignores.setdefault(self.owner(path), []).append((dirname(path), read_ignores(content)))
        return ignores


def nesting_of(files: FileTree) -> Nesting:
    """Return how the packages of a tree lie in each other."""
    return _nesting(tuple(files), tuple(_ignore_files(files)))


def is_krm_file(path: str) -> bool:
    """Tell whether render reads a file of this name."""
    return basename(path) == KPTFILE or path.endswith((".yaml", ".yml", ".json"))


_nesting = cached(_REMEMBERED_SHAPES)(Nesting)


def _ignore_files(files: FileTree) -> Iterator[tuple[str, bytes]]:
    return ((path, files[path].data) for path in files if path.endswith(KRMIGNORE) and basename(path) == KRMIGNORE)
