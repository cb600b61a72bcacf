"""Packages: which files belong to which package, what is hidden, and which documents are resources (kpt.md 1)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from posixpath import basename
from typing import Any

from reconciler.caching import cached
from reconciler.krm.codes import YAML_SYNTAX
from reconciler.krm.findings import Finding, Where
from reconciler.krm.yaml import Document, YamlFile
from reconciler.packages.codes import KPTFILE_MISSING
from reconciler.packages.kptfile import KPTFILE, Kptfile, read_kptfile
from reconciler.packages.nesting import Nesting, nesting_of
from reconciler.packages.parsing import Unparsable, parse_cached, parse_json_cached
from reconciler.packages.resource import Described
from reconciler.snapshot.files import FileTree

# as many as are remembered parsed
_REMEMBERED_FILES = 2048
_KUSTOMIZATIONS = ("kustomization.yaml", "kustomization.yml", "Kustomization")


@dataclass(frozen=True)
class PackageResource(Described):
    """One document of a package's files.

    `package` is the path of its package below the root ("" for the root), `path` the file relative to
    that package, `index` the document's place in the file, from 0.
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
        return join(self.package, self.path)

    @property
    def where(self) -> Where:
        """The document's place, for findings."""
        return Where(self.file, self.document.line, str(self.key))


@dataclass(frozen=True)
class Package:
    """A package with all that lies below it: a root with a Kptfile, and the packages nested in it."""

    files: FileTree

    @cached_property
    def kptfile(self) -> Kptfile | tuple[Finding, ...]:
        """The root's Kptfile, or why it cannot be read."""
        return self.kptfile_of("")

    def kptfile_of(self, package: str) -> Kptfile | tuple[Finding, ...]:
        """Return the Kptfile of a (sub)package, or why it cannot be read."""
        path = join(package, KPTFILE)
        if path not in self.files:
            return (KPTFILE_MISSING.finding(f"a package must have a {KPTFILE}", Where(path)),)
        return read_kptfile(self.files[path].data, path)

    @cached_property
    def _nesting(self) -> Nesting:
        return nesting_of(self.files)

    @property
    def subpackages(self) -> tuple[str, ...]:
        """The paths of all packages below the root, sorted; the root itself is not in it."""
        return self._nesting.subpackages

    def owner(self, path: str) -> str:
        """Return the path of the nearest package that holds a file; "" is the root."""
        return self._nesting.owner(path)

    def is_ignored(self, path: str) -> bool:
        """Tell whether a .krmignore of the file's own package hides it from KRM reading (kpt.md 1.6)."""
        return self._nesting.is_ignored(path)

    def krm_files(self) -> Iterator[str]:
        """Yield the files that render reads: Kptfile, *.yaml, *.yml and *.json that nothing hides."""
        return iter(self._nesting.krm_files)

    def opaque_files(self) -> Iterator[str]:
        """Yield the files that render does not read."""
        return (path for path in self.files if path not in self._nesting.krm_files)

    @cached_property
    def reading(self) -> tuple[tuple[PackageResource, ...], tuple[Finding, ...]]:
        """All resources in the order of their files, and a finding for every file that does not parse."""
        resources: list[PackageResource] = []
        findings: list[Finding] = []
        for package, path, content in self.contents():
            read = resources_of(package, path, content)
            if isinstance(read, Unparsable):
                message = f"the file must be {'JSON' if path.endswith('.json') else 'YAML'}: {read.message}"
                findings.append(YAML_SYNTAX.finding(message, Where(path, read.line)))
            else:
                resources += read
        return tuple(resources), tuple(findings)

    def contents(self) -> Iterator[tuple[str, str, bytes]]:
        """Yield the files that render reads, each with the package that holds it, its path and what it holds.

        Whoever wants something of every resource by itself remembers it by these, as `resources_of` does.
        """
        return ((owner, path, self.files[path].data) for path, owner in self._nesting.krm_files.items())

    @property
    def resources(self) -> tuple[PackageResource, ...]:
        """The resources of every file that parses, in the order of their files."""
        return self.reading[0]


@cached(_REMEMBERED_FILES)
def resources_of(package: str, path: str, content: bytes) -> tuple[PackageResource, ...] | Unparsable:
    """Return the resources of the file at `path` below the root, which `package` holds, or why it does not parse."""
    documents = documents_of(path, content)
    if isinstance(documents, Unparsable):
        return documents
    inside = path.removeprefix(f"{package}/" if package else "")
    return tuple(PackageResource(package, inside, index, document) for index, document in enumerate(documents))


def is_kustomization_file(path: str) -> bool:
    """Tell whether the file is a Kustomization by its name, which exempts it from the KRM check (kpt.md 1.8)."""
    return basename(path) in _KUSTOMIZATIONS


def documents_of(path: str, content: bytes) -> tuple[Document, ...] | Unparsable:
    """Return the documents of a file by its name's ending, or why it does not parse."""
    if path.endswith(".json"):
        document = parse_json_cached(content)
        return document if isinstance(document, Unparsable) else (document,)
    parsed = parse_cached(content)
    return parsed.documents if isinstance(parsed, YamlFile) else parsed


def join(folder: str, path: str) -> str:
    """Return a path below a folder; "" is the root."""
    return f"{folder}/{path}" if folder else path
