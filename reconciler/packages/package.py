"""Packages: the subpackages, ignored files and resources in a file tree.

`PackageTree` depends only on paths and ignore files. Packages of different clusters often have equal paths, and then
share one cached `PackageTree`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from posixpath import basename, dirname
from typing import TYPE_CHECKING, Any

from reconciler.catalog.files import FileTree, parse_ignore_file
from reconciler.krm.findings import CommonCodes, Finding, SourceLocation
from reconciler.krm.json_pointer import format_pointer
from reconciler.krm.yaml import DataPath, Document, YamlFile
from reconciler.lazy_dataclasses import dataclass, field
from reconciler.memory import cached
from reconciler.packages.codes import PackageCodes
from reconciler.packages.kptfile import KPTFILE, Kptfile, read_kptfile
from reconciler.packages.parsing import ParseFailure, parse_cached, parse_json_cached
from reconciler.packages.resource import KrmResource

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

KRMIGNORE = ".krmignore"
CHART_FUNCTION = "render-helm-chart"
"""The base name of the image of the function that renders charts of the package."""
KUSTOMIZATION_FILES = ("kustomization.yaml", "kustomization.yml", "Kustomization")
# The configuration file of SOPS, which contains no resources.
_SOPS_CONFIG = ".sops.yaml"
# Maximum number of cached trees. Packages with equal lists of paths share one tree. A render needs at most two trees
# per package: one before and one after the function calls. The size is sufficient for the packages of one cluster.
_MAX_CACHED_TREES = 1024


@dataclass(frozen=True)
class PackageTree:
    """The packages in a file tree, computed from the sorted `paths` and from the contents of the `.krmignore` files.

    `charts` are the folders of the charts that the function `render-helm-chart` renders. Their files are templates.
    """

    paths: tuple[str, ...]
    ignores: tuple[tuple[str, bytes], ...] = ()
    charts: tuple[str, ...] = ()

    @cached_property
    def subpackages(self) -> tuple[str, ...]:
        """The sorted paths of all packages below the root package. The root package is not included."""
        return tuple(sorted(dirname(path) for path in self.paths if basename(path) == KPTFILE and dirname(path)))

    def find_owning_package(self, path: str) -> str:
        """Return the path of the innermost package that contains the file `path`. The root package has the path ""."""
        folder = dirname(path)
        while folder and folder not in self._packages:
            folder = dirname(folder)
        return folder

    def is_ignored(self, path: str) -> bool:
        """Return whether renders skip the file `path`, because a `.krmignore` file excludes it or a chart contains it.

        A `.krmignore` file has no effect on the files of subpackages.
        """
        if any(path.startswith(f"{chart}/") for chart in self.charts):
            return True
        owner, ignored = self.find_owning_package(path), False
        for folder, spec in self._ignores.get(owner, ()):
            relative_path = path.removeprefix(f"{folder}/" if folder else "")
            if not folder or relative_path != path:
                is_excluded = spec.check_file(relative_path).include
                ignored = ignored if is_excluded is None else is_excluded
        return ignored

    @cached_property
    def krm_files(self) -> Mapping[str, str]:
        """The sorted paths of the files that a render reads, each with the path of its package."""
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
        # Sort by depth, because the patterns of a folder must come before the patterns of its subfolders. In
        # alphabetical order, the file of a subfolder can come first: "a/-b/.krmignore" < "a/.krmignore".
        ignores: dict[str, list[tuple[str, GitIgnoreSpec]]] = {}
        for path, content in sorted(self.ignores, key=lambda entry: entry[0].count("/")):
            ignores.setdefault(self.find_owning_package(path), []).append((dirname(path), parse_ignore_file(content)))
        return ignores


def build_package_tree(files: FileTree) -> PackageTree:
    """Return the package tree of `files`.

    The tree is cached. It depends on the paths, the `.krmignore` files and the charts, but not on other file contents.
    """
    return _package_tree(tuple(files), tuple(_iterate_ignore_files(files)), _find_charts(files))


def is_krm_file(path: str) -> bool:
    """Return whether a render reads files with this name: Kptfiles, YAML files and JSON files."""
    name = basename(path)
    return name == KPTFILE or (path.endswith((".yaml", ".yml", ".json")) and name != _SOPS_CONFIG)


_package_tree = cached(_MAX_CACHED_TREES)(PackageTree)


def _iterate_ignore_files(files: FileTree) -> Iterator[tuple[str, bytes]]:
    return ((path, files[path].data) for path in files if path.endswith(KRMIGNORE) and basename(path) == KRMIGNORE)


def _find_charts(files: FileTree) -> tuple[str, ...]:
    charts = tuple(dirname(path) for path in files if path.endswith("/Chart.yaml"))
    # Return charts only if a Kptfile contains the name `render-helm-chart`. In other packages, a folder with a
    # `Chart.yaml` can contain resources.
    return charts if charts and has_chart_function(list_kptfiles(files)) else ()


def list_kptfiles(files: FileTree) -> list[bytes]:
    """Return the contents of all Kptfiles of a package and its subpackages."""
    return [file.data for path, file in files.items() if basename(path) == KPTFILE]


def has_chart_function(kptfiles: Iterable[bytes]) -> bool:
    """Return whether Kptfiles contain the name of the function that renders charts."""
    return any(CHART_FUNCTION.encode() in content for content in kptfiles)


# Maximum number of files whose resources are cached. This number equals the number of cached parsed files in
# `packages/parsing.py`.
_MAX_CACHED_FILES = 2048


@dataclass(frozen=True)
class PackageResource(KrmResource):
    """One YAML or JSON document in the files of a package.

    Attributes:
        package: The path of the package, relative to the root package. The root package has the path "".
        path: The path of the file, relative to its package.
        index: The position of the document in the file, starting at 0.
    """

    package: str
    path: str
    index: int
    document: Document = field(compare=False)

    @property
    def data(self) -> Any:
        """The content of the document as read-only data."""
        return self.document.data

    @property
    def file(self) -> str:
        """The path of the file, relative to the root package."""
        return join_path(self.package, self.path)

    @property
    def location(self) -> SourceLocation:
        """The location of the document for findings: file, first line and identity."""
        return SourceLocation(self.file, self.document.line, self.key.reference)

    def locate(self, path: DataPath, object_key: str) -> SourceLocation:
        """Return the location of the field `path`. `object_key` is the object that the location refers to."""
        # Use line 0 for JSON files, because the JSON parser does not return line numbers.
        line = 0 if self.file.endswith(".json") else self.document.find_line(path)
        return SourceLocation(self.file, line, object_key, format_pointer(path))


@dataclass(frozen=True)
class Package:
    """A root package with its files, its Kptfile, and its subpackages."""

    files: FileTree

    @cached_property
    def kptfile(self) -> Kptfile | tuple[Finding, ...]:
        """The Kptfile of the root package, or findings with the reasons why the Kptfile cannot be read."""
        return self.read_kptfile_of("")

    def read_kptfile_of(self, package: str) -> Kptfile | tuple[Finding, ...]:
        """Return the Kptfile of the package at the path `package`, or findings if the Kptfile cannot be read.

        The root package has the path "".
        """
        path = join_path(package, KPTFILE)
        if path not in self.files:
            return (PackageCodes.KPTFILE_MISSING.finding(f"a package must have a {KPTFILE}", SourceLocation(path)),)
        return read_kptfile(self.files[path].data, path)

    @cached_property
    def _package_tree(self) -> PackageTree:
        return build_package_tree(self.files)

    @property
    def subpackages(self) -> tuple[str, ...]:
        """The sorted paths of all packages below the root package. The root package is not included."""
        return self._package_tree.subpackages

    def find_owning_package(self, path: str) -> str:
        """Return the path of the innermost package that contains the file `path`. The root package has the path ""."""
        return self._package_tree.find_owning_package(path)

    def is_ignored(self, path: str) -> bool:
        """Return whether renders skip the file `path`, because a `.krmignore` file excludes it or a chart contains it.

        A `.krmignore` file has no effect on the files of subpackages.
        """
        return self._package_tree.is_ignored(path)

    def iterate_krm_paths(self) -> Iterator[str]:
        """Yield the paths of the files that a render reads: Kptfiles, YAML and JSON files that are not ignored."""
        return iter(self._package_tree.krm_files)

    @cached_property
    def parse_result(self) -> tuple[tuple[PackageResource, ...], tuple[Finding, ...]]:
        """All resources in the order of their files, and a finding for each file that cannot be parsed."""
        resources: list[PackageResource] = []
        findings: list[Finding] = []
        for package, path, content in self.iterate_krm_files():
            parsed = parse_resources(package, path, content)
            if isinstance(parsed, ParseFailure):
                message = f"the file must be {'JSON' if path.endswith('.json') else 'YAML'}: {parsed.message}"
                findings.append(CommonCodes.YAML_SYNTAX.finding(message, SourceLocation(path, parsed.line)))
            else:
                resources += parsed
        return tuple(resources), tuple(findings)

    def iterate_krm_files(self) -> Iterator[tuple[str, str, bytes]]:
        """Yield each file that a render reads as a tuple: path of the package, path of the file, and content.

        The parsed resources of a file depend only on this tuple. Therefore, the tuple can be a cache key for them.
        """
        return ((owner, path, self.files[path].data) for path, owner in self._package_tree.krm_files.items())

    @property
    def resources(self) -> tuple[PackageResource, ...]:
        """The resources of all files that can be parsed. Resources are in the order of their files."""
        return self.parse_result[0]


# Maximum number of cached packages: those of a few renders, because several steps of a render read the same files.
_MAX_CACHED_PACKAGES = 64
get_package = cached(_MAX_CACHED_PACKAGES)(Package)
"""Return the package with the given files. Packages are cached."""


@cached(_MAX_CACHED_FILES)
def parse_resources(package: str, path: str, content: bytes) -> tuple[PackageResource, ...] | ParseFailure:
    """Return the resources of the file `path` in the package `package`. Return the parse failure if parsing fails."""
    documents = parse_documents(path, content)
    if isinstance(documents, ParseFailure):
        return documents
    relative_path = path.removeprefix(f"{package}/" if package else "")
    return tuple(PackageResource(package, relative_path, index, document) for index, document in enumerate(documents))


def is_kustomization_file(path: str) -> bool:
    """Return whether this is the file name of a Kustomization, which can omit `apiVersion` and `kind` as in kpt."""
    return basename(path) in KUSTOMIZATION_FILES


def parse_documents(path: str, content: bytes) -> tuple[Document, ...] | ParseFailure:
    """Return the documents of a file, or the failure if the parser rejects it. Only `.json` files are read as JSON."""
    if path.endswith(".json"):
        document = parse_json_cached(content)
        return document if isinstance(document, ParseFailure) else (document,)
    parsed = parse_cached(content)
    return parsed.documents if isinstance(parsed, YamlFile) else parsed


def join_path(folder: str, path: str) -> str:
    """Return the path of a file or folder below `folder`. The folder "" is the root."""
    return f"{folder}/{path}" if folder and path else folder or path
