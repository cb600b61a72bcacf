"""The objects that Flux reads for one cluster: from the folder of the cluster, and from folders of Kustomizations."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping

from reconciler.adopt.documents import SourceDocument, get_mapping, get_text, parse_objects
from reconciler.adopt.overlays import find_kustomization
from reconciler.adopt.resources import YAML_SUFFIXES
from reconciler.adopt.units import AGENT_SUGGESTION, NotImported
from reconciler.catalog.files import FileTree
from reconciler.krm.yaml import DataPath
from reconciler.lazy_dataclasses import dataclass, field
from reconciler.packages.parsing import ParseFailure, parse_cached

FLUX_SUFFIX = "toolkit.fluxcd.io"
FLUX_SYSTEM = "flux-system"
SOURCE_KINDS = ("GitRepository", "OCIRepository", "HelmRepository", "HelmChart", "Bucket", "ExternalArtifact")
_ListedKey = tuple[str, str, str]


def is_flux_object(document: SourceDocument) -> bool:
    """Return whether an object belongs to Flux."""
    return str(document.data.get("apiVersion", "")).partition("/")[0].endswith(FLUX_SUFFIX)


def get_namespace(document: SourceDocument) -> str:
    """Return the namespace of an object."""
    return get_text(get_mapping(document.data, "metadata"), "namespace") or "default"


def report_verification(document: SourceDocument, path: DataPath) -> NotImported:
    """Return the `NotImported` entry for a field that requires signatures."""
    title = f"{document.data['kind']} {document.name}"
    reason = f"{title}: the import does not copy the verification of signatures, because a Secret contains the keys"
    return document.report(path, reason, "Set verify in the Repository, and store the keys as files.")


def report_missing_source(
    document: SourceDocument, path: DataPath, reference: Mapping[str, object], subject: str = ""
) -> NotImported:
    """Return the `NotImported` entry for a reference to a source object that does not exist.

    Args:
        path: The path of the field that contains the reference.
        subject: The start of the reason, e.g. "HelmRelease web: ".
    """
    reason = f"{subject}the source files contain no {get_text(reference, 'kind')} {get_text(reference, 'name')}"
    return document.report(path, reason, "Add the source object to the folder of the cluster.")


@dataclass
class ClusterObjects:
    """The objects that Flux reads for one cluster.

    Attributes:
        sources: Maps (kind, namespace, name) to a source object, e.g. a GitRepository, or to a ConfigMap.
        waiting: Kustomizations and HelmReleases that are not converted yet.
        others: Objects of other kinds.
        used: The keys of the entries in `sources` to which other objects refer.
        packages: The folders of the repository to which Kustomizations refer, except for folders with Flux objects.
    """

    cluster: str
    sources: dict[_ListedKey, SourceDocument] = field(default_factory=dict)
    waiting: list[SourceDocument] = field(default_factory=list)
    others: list[SourceDocument] = field(default_factory=list)
    used: set[_ListedKey] = field(default_factory=set)
    packages: set[str] = field(default_factory=set)

    def add(self, document: SourceDocument) -> None:
        """Add an object."""
        kind = document.data["kind"]
        if is_flux_object(document) and kind in ("Kustomization", "HelmRelease"):
            self.waiting.append(document)
        elif kind == "ConfigMap" or (is_flux_object(document) and kind in SOURCE_KINDS):
            self.sources[kind, get_namespace(document), document.name] = document
        else:
            self.others.append(document)

    def find(self, reference: Mapping[str, object], namespace: str) -> SourceDocument | None:
        """Return the object that a reference points to."""
        kind, name = get_text(reference, "kind"), get_text(reference, "name")
        key = (kind, get_text(reference, "namespace") or namespace, name)
        self.used.add(key)
        return self.sources.get(key)

    def list_unused(self) -> Iterator[NotImported]:
        """Yield a `NotImported` entry for each object that is not imported, not even as a part of a package.

        The objects of the Flux installation are skipped.
        """
        maps = (document for key, document in self.sources.items() if key[0] == "ConfigMap" and key not in self.used)
        for document in (*self.others, *maps):
            if FLUX_SYSTEM in document.file.split("/") or self._is_in_package(document.file):
                continue
            title = f"{document.data['kind']} {document.name}"
            if is_flux_object(document):
                yield document.report((), f"the import does not support {title}", AGENT_SUGGESTION)
            else:
                suggestion = "Move it to a folder without objects of Flux, and name this folder in a Kustomization."
                yield document.report(
                    (), f"{title} is not imported, because its folder contains objects of Flux", suggestion
                )

    def list_verifications(self) -> Iterator[NotImported]:
        """Yield an entry for each used source whose signatures Flux verifies. Flux reads the keys from a Secret."""
        for key in sorted(self.used):
            document = self.sources.get(key)
            if document and document.spec.get("verify"):
                yield report_verification(document, ("spec", "verify"))

    def _is_in_package(self, file: str) -> bool:
        """Return whether a file is in a folder of `packages`. The path of the file can be relative to --path."""
        folder = posixpath.dirname(file)
        while "/" in folder:
            if any(f"/{package}".endswith(f"/{folder}") for package in self.packages):
                return True
            folder = posixpath.dirname(folder)
        return False


@dataclass(frozen=True)
class FolderContent:
    """The objects below a folder.

    Attributes:
        overlay: The kustomization file that changes the resources, or "" if all objects are used as they are.
        has_kustomization: Whether the folder has a kustomization file.
    """

    documents: tuple[SourceDocument, ...]
    unreadable: tuple[NotImported, ...] = ()
    overlay: str = ""
    has_kustomization: bool = False


def read_folder(files: FileTree, folder: str) -> FolderContent:
    """Return the objects that Flux applies for a folder.

    If a kustomization file only lists resources, the listed files are read. Without a kustomization file, all files
    below the folder are read, as Flux does.
    """
    overlays: list[str] = []
    documents, unreadable = parse_objects(files, _list_paths(files, folder, overlays, set()))
    has_kustomization = find_kustomization(files, folder) is not None
    return FolderContent(tuple(documents), tuple(unreadable), next(iter(overlays), ""), has_kustomization)


def _list_paths(files: FileTree, folder: str, overlays: list[str], visited: set[str]) -> Iterator[str]:
    if folder in visited:
        return
    visited.add(folder)
    kustomization = find_kustomization(files, folder)
    if kustomization is None:
        start = f"{folder}/" if folder else ""
        yield from (path for path in files if path.startswith(start) and path.endswith(YAML_SUFFIXES))
        return
    parsed = parse_cached(files[kustomization].data)
    data = parsed.documents[0].data if not isinstance(parsed, ParseFailure) and parsed.documents else None
    fields = data if isinstance(data, Mapping) else {}
    if any(name not in ("apiVersion", "kind", "metadata", "resources") for name in fields):
        overlays.append(kustomization)
        return
    for resource in fields.get("resources") or []:
        path = posixpath.normpath(posixpath.join(folder, str(resource)))
        if path in files:
            yield path
        elif files.subtree(path):
            yield from _list_paths(files, path, overlays, visited)
        else:
            # The resource is a URL or does not exist. Treat the kustomization as an overlay, because it does not only
            # list files.
            overlays.append(kustomization)
