"""Packages: which files belong to which package, which files are ignored, and which documents are resources.

`PackageTree` depends on paths and ignore files only. Most packages of different clusters have equal paths, so that one
tree is computed for all of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from posixpath import basename, dirname
from typing import TYPE_CHECKING, Any

from reconciler.catalog.files import FileTree, parse_ignore_file
from reconciler.krm.findings import YAML_SYNTAX, Finding, SourceLocation
from reconciler.krm.yaml import Document, YamlFile
from reconciler.memory import cached
from reconciler.packages.codes import KPTFILE_MISSING
from reconciler.packages.kptfile import KPTFILE, Kptfile, read_kptfile
from reconciler.packages.parsing import ParseFailure, parse_cached, parse_json_cached
from reconciler.packages.resource import KrmResource

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

KRMIGNORE = ".krmignore"
# Large enough for all sets of paths of one cluster's packages, before and after their functions run.
_MAX_CACHED_TREES = 1024


@dataclass(frozen=True)
class PackageTree:
    """The packages in a file tree, computed from its sorted `paths` and the contents of its ignore files."""

    paths: tuple[str, ...]
    ignores: tuple[tuple[str, bytes], ...] = ()

    @cached_property
    def subpackages(self) -> tuple[str, ...]:
        """The sorted paths of all packages below the root, without the root itself."""
        return tuple(sorted(dirname(path) for path in self.paths if basename(path) == KPTFILE and dirname(path)))

    def find_owning_package(self, path: str) -> str:
        """Return the path of the nearest package that contains the file; "" is the root."""
        folder = dirname(path)
        while folder and folder not in self._packages:
            folder = dirname(folder)
        return folder

    def is_ignored(self, path: str) -> bool:
        """Return whether a .krmignore of the file's own package excludes the file from KRM processing."""
        owner, ignored = self.find_owning_package(path), False
        for folder, spec in self._ignores.get(owner, ()):
            relative_path = path.removeprefix(f"{folder}/" if folder else "")
            if not folder or relative_path != path:
                is_excluded = spec.check_file(relative_path).include
                ignored = ignored if is_excluded is None else is_excluded
        return ignored

    @cached_property
    def krm_files(self) -> Mapping[str, str]:
        """The files that a render reads, in order, each with the package that contains it."""
        return {
            path: self.find_owning_package(path)
            for path in self.paths
            if is_krm_file(path) and not self.is_ignored(path)
        }

    @cached_property
    def _packages(self) -> frozenset[str]:
        return frozenset(self.subpackages)

    @cached_property
    def _ignores(self) -> dict[str, list[tuple[str, GitIgnoreSpec]]]:
        # The rules of outer folders must come first. Sorted paths do not ensure this: "a-b/x" sorts before "a/x".
        ignores: dict[str, list[tuple[str, GitIgnoreSpec]]] = {}
        for path, content in sorted(self.ignores, key=lambda entry: entry[0].count("/")):
            ignores.setdefault(self.find_owning_package(path), []).append((dirname(path), parse_ignore_file(content)))
        return ignores


def build_package_tree(files: FileTree) -> PackageTree:
    """Return the package tree of the files."""
    return _package_tree(tuple(files), tuple(_iterate_ignore_files(files)))


def is_krm_file(path: str) -> bool:
    """Return whether a render reads files with this name."""
    return basename(path) == KPTFILE or path.endswith((".yaml", ".yml", ".json"))


_package_tree = cached(_MAX_CACHED_TREES)(PackageTree)


def _iterate_ignore_files(files: FileTree) -> Iterator[tuple[str, bytes]]:
    return ((path, files[path].data) for path in files if path.endswith(KRMIGNORE) and basename(path) == KRMIGNORE)


# Equal to the number of cached parsed files.
_MAX_CACHED_FILES = 2048
_KUSTOMIZATIONS = ("kustomization.yaml", "kustomization.yml", "Kustomization")


@dataclass(frozen=True)
class PackageResource(KrmResource):
    """One document of a package's files.

    `package` is the path of its package below the root ("" for the root). `path` is the file relative to that package.
    `index` is the position of the document in the file, from 0.
    """

    package: str
    path: str
    index: int
    document: Document = field(compare=False)

    @property
    def data(self) -> Any:
        """The document as plain data; read-only."""
        return self.document.data

    @property
    def file(self) -> str:
        """The file relative to the root package."""
        return join_path(self.package, self.path)

    @property
    def location(self) -> SourceLocation:
        """The location of the document, for findings."""
        return SourceLocation(self.file, self.document.line, str(self.key))


@dataclass(frozen=True)
class Package:
    """A root package with its Kptfile, and all packages nested in it."""

    files: FileTree

    @cached_property
    def kptfile(self) -> Kptfile | tuple[Finding, ...]:
        """The Kptfile of the root, or the reasons why it cannot be read."""
        return self.read_kptfile_of("")

    def read_kptfile_of(self, package: str) -> Kptfile | tuple[Finding, ...]:
        """Return the Kptfile of the root or a subpackage, or the reasons why it cannot be read."""
        path = join_path(package, KPTFILE)
        if path not in self.files:
            return (KPTFILE_MISSING.finding(f"a package must have a {KPTFILE}", SourceLocation(path)),)
        return read_kptfile(self.files[path].data, path)

    @cached_property
    def _package_tree(self) -> PackageTree:
        return build_package_tree(self.files)

    @property
    def subpackages(self) -> tuple[str, ...]:
        """The sorted paths of all packages below the root, without the root itself."""
        return self._package_tree.subpackages

    def find_owning_package(self, path: str) -> str:
        """Return the path of the nearest package that contains the file; "" is the root."""
        return self._package_tree.find_owning_package(path)

    def is_ignored(self, path: str) -> bool:
        """Return whether a .krmignore of the file's own package excludes the file from KRM processing."""
        return self._package_tree.is_ignored(path)

    def iterate_krm_paths(self) -> Iterator[str]:
        """Yield the files that a render reads: Kptfile, *.yaml, *.yml and *.json, unless they are ignored."""
        return iter(self._package_tree.krm_files)

    def iterate_opaque_paths(self) -> Iterator[str]:
        """Yield the files that a render does not read."""
        return (path for path in self.files if path not in self._package_tree.krm_files)

    @cached_property
    def parse_result(self) -> tuple[tuple[PackageResource, ...], tuple[Finding, ...]]:
        """All resources in the order of their files, and a finding for every file that cannot be parsed."""
        resources: list[PackageResource] = []
        findings: list[Finding] = []
        for package, path, content in self.iterate_krm_files():
            parsed = parse_resources(package, path, content)
            if isinstance(parsed, ParseFailure):
                message = f"the file must be {'JSON' if path.endswith('.json') else 'YAML'}: {parsed.message}"
                findings.append(YAML_SYNTAX.finding(message, SourceLocation(path, parsed.line)))
            else:
                resources += parsed
        return tuple(resources), tuple(findings)

    def iterate_krm_files(self) -> Iterator[tuple[str, str, bytes]]:
        """Yield the files that a render reads: the owning package, the path and the content.

        Use these three values as a cache key for data that is computed from each resource alone, as `parse_resources`
        does.
        """
        return ((owner, path, self.files[path].data) for path, owner in self._package_tree.krm_files.items())

    @property
    def resources(self) -> tuple[PackageResource, ...]:
        """The resources of all files that can be parsed, in the order of their files."""
        return self.parse_result[0]


@cached(_MAX_CACHED_FILES)
def parse_resources(package: str, path: str, content: bytes) -> tuple[PackageResource, ...] | ParseFailure:
    """Return the resources of the file at `path`, which belongs to `package`, or the parse failure."""
    documents = parse_documents(path, content)
    if isinstance(documents, ParseFailure):
        return documents
    relative_path = path.removeprefix(f"{package}/" if package else "")
    return tuple(PackageResource(package, relative_path, index, document) for index, document in enumerate(documents))


def is_kustomization_file(path: str) -> bool:
    """Return whether the file name is a Kustomization. kpt exempts such files from the check for KRM fields."""
    return basename(path) in _KUSTOMIZATIONS


def parse_documents(path: str, content: bytes) -> tuple[Document, ...] | ParseFailure:
    """Return the documents of a YAML or JSON file, by its extension, or the parse failure."""
    if path.endswith(".json"):
        document = parse_json_cached(content)
        return document if isinstance(document, ParseFailure) else (document,)
    parsed = parse_cached(content)
    return parsed.documents if isinstance(parsed, YamlFile) else parsed


def join_path(folder: str, path: str) -> str:
    """Return a path below a folder; "" is the root folder."""
    return f"{folder}/{path}" if folder else path
