"""Conversion of the Kustomizations and HelmReleases of all clusters to package requests."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from reconciler.adopt.documents import SourceDocument, get_mapping, get_text
from reconciler.adopt.flux.objects import (
    FLUX_SUFFIX,
    FLUX_SYSTEM,
    ClusterObjects,
    FolderContent,
    get_namespace,
    is_flux_object,
    read_folder,
    report_missing_source,
)
from reconciler.adopt.flux.releases import convert_release
from reconciler.adopt.flux.sources import (
    GitSource,
    build_artifact_upstream,
    find_source_problem,
    normalize_folder,
    read_git_source,
)
from reconciler.adopt.layout import Layout
from reconciler.adopt.overlays import ConvertedOverlay, OverlayError, OverlaySource
from reconciler.adopt.requests import (
    KustomizeRequest,
    PackageRequest,
    ReadRequests,
    RepositoryReader,
    UpstreamReference,
)
from reconciler.adopt.resources import YAML_SUFFIXES
from reconciler.adopt.units import AGENT_SUGGESTION, CLUSTER_IN_SECRET, NotImported
from reconciler.catalog.files import FileTree
from reconciler.krm.names import validate_dns_label, validate_dns_subdomain
from reconciler.lazy_dataclasses import dataclass
from reconciler.packages.package import is_kustomization_file

_SUBSTITUTION = re.compile(rb"\$\{[A-Za-z_]")
_REPORTED = {
    "decryption": "the import does not copy the decryption of Secrets",
    "dependsOn": "the import does not copy the order of Kustomizations",
    "healthChecks": "the import does not copy health checks",
    "healthCheckExprs": "the import does not copy health checks",
}
_OVERLAY_FIELDS = {
    "images": "images", "patches": "patches", "targetNamespace": "namespace", "namePrefix": "namePrefix",
    "nameSuffix": "nameSuffix", "components": "components", "commonMetadata": "commonMetadata",
    "ignoreMissingComponents": "ignoreMissingComponents",
}  # fmt: skip
_BUILD_SUGGESTION = "Render the Kustomization with `flux build`, and adopt the output."


def is_flux(files: FileTree) -> bool:
    """Return whether the imported files contain a Kustomization or HelmRelease of Flux."""
    markers = (f"kustomize.{FLUX_SUFFIX}".encode(), f"helm.{FLUX_SUFFIX}".encode())
    return any(
        path.endswith(YAML_SUFFIXES) and any(marker in file.data for marker in markers) for path, file in files.items()
    )


def read_flux(files: FileTree, layout: Layout, read_repository: RepositoryReader) -> ReadRequests:
    """Return the requests of all clusters.

    Args:
        layout: The folders of clusters.
        read_repository: Reads the repositories that GitRepositories name.
    """
    labels: dict[str, Mapping[str, str]] = {}
    folders: dict[str, list[str]] = {}
    not_imported: list[NotImported] = []
    for folder in _list_folders(files, len(layout.segments)):
        values = layout.match(folder.split("/"))
        if not values:
            continue
        if reason := validate_dns_label(values["cluster"]):
            not_imported.append(
                NotImported(folder, f"the name of the cluster is invalid: {reason}", "Rename the folder.")
            )
        else:
            folders.setdefault(values["cluster"], []).append(folder)
            labels[values["cluster"]] = {key: value for key, value in values.items() if key != "cluster"}
    requests: list[PackageRequest] = []
    for cluster, cluster_folders in sorted(folders.items()):
        visited = {("", folder) for folder in cluster_folders}
        reader = _ClusterReader(files, read_repository, ClusterObjects(cluster), {}, not_imported, visited)
        reader.read(cluster_folders)
        requests += reader.requests.values()
    return ReadRequests(tuple(requests), labels, tuple(not_imported))


def _list_folders(files: FileTree, depth: int) -> Sequence[str]:
    found = {"/".join(path.split("/")[:depth]) for path in files if path.count("/") >= depth}
    return sorted(found)


@dataclass(frozen=True)
class _ClusterReader:
    """Reads the objects of one cluster, and follows its Kustomizations.

    Attributes:
        visited: The folders whose Flux objects were read. An entry contains the repository and the path of a folder.
            For the folders of the cluster itself, the repository is "".
    """

    files: FileTree
    read_repository: RepositoryReader
    objects: ClusterObjects
    requests: dict[str, PackageRequest]
    not_imported: list[NotImported]
    visited: set[tuple[str, str]]

    def read(self, folders: Sequence[str]) -> None:
        """Convert all objects of the cluster."""
        for folder in folders:
            start = f"{folder}/"
            cluster_files = FileTree({path: file for path, file in self.files.items() if path.startswith(start)})
            # Read all files, because the Kustomization that the Flux installation creates applies all files.
            paths = [path for path in cluster_files if not is_kustomization_file(path)]
            content = read_folder(FileTree({path: cluster_files[path] for path in paths}), folder)
            self.not_imported.extend(content.unreadable)
            for document in content.documents:
                self.objects.add(document)
        releases: list[SourceDocument] = []
        while self.objects.waiting:
            document = self.objects.waiting.pop(0)
            if document.data["kind"] == "HelmRelease":
                # Convert releases at the end, because other folders can contain their sources.
                releases.append(document)
            elif (document.name, get_namespace(document)) != (FLUX_SYSTEM, FLUX_SYSTEM):
                self._convert_kustomization(document)
        for document in releases:
            self._add(document, convert_release(document, self.objects, self.read_repository, self.not_imported))
        self.not_imported.extend(self.objects.list_verifications())
        self.not_imported.extend(self.objects.list_unused())

    def _add(self, document: SourceDocument, request: PackageRequest | NotImported | None) -> None:
        if request is None:
            return
        if isinstance(request, NotImported):
            self.not_imported.append(request)
        elif reason := validate_dns_subdomain(request.package):
            self.not_imported.append(
                document.report(
                    ("metadata", "name"), f"the name is not valid for a package: {reason}", "Rename the object."
                )
            )
        elif request.package in self.requests:
            reason = f"another object also has the package {request.cluster}/{request.package}"
            self.not_imported.append(document.report((), reason, "Rename one of the objects."))
        else:
            self.requests[request.package] = request

    def _convert_kustomization(self, document: SourceDocument) -> None:
        spec = document.spec
        for name, reason in _REPORTED.items():
            if spec.get(name):
                text = f"Kustomization {document.name}: {reason}"
                self.not_imported.append(document.report(("spec", name), text, AGENT_SUGGESTION))
        if spec.get("kubeConfig"):
            reason, suggestion = CLUSTER_IN_SECRET
            text = f"Kustomization {document.name}: {reason}"
            self.not_imported.append(document.report(("spec", "kubeConfig"), text, suggestion))
            return
        if spec.get("suspend"):
            self.not_imported.append(
                document.report(("spec", "suspend"), "the import skips suspended objects", "Resume it.")
            )
            return
        self._add(document, self._read_package(document, spec))

    def _read_package(self, document: SourceDocument, spec: Mapping[str, Any]) -> PackageRequest | NotImported | None:
        """Return the request for the folder of a Kustomization, or the reason why the folder cannot be imported.

        Return None for a folder that contains only Flux objects.
        """
        reference = get_mapping(spec, "sourceRef")
        source = self.objects.find(reference, get_namespace(document))
        if source is None:
            return report_missing_source(document, ("spec", "sourceRef"), reference)
        path = get_text(spec, "path")
        if problem := find_source_problem(source, path):
            return problem
        if source.data["kind"] == "OCIRepository":
            return self._build_request(document, build_artifact_upstream(source))
        return self._read_git_package(document, read_git_source(source), normalize_folder(path))

    def _read_git_package(
        self, document: SourceDocument, source: GitSource, folder: str
    ) -> PackageRequest | NotImported | None:
        files = self.read_repository(source.url, source.revision.ref)
        if isinstance(files, str):
            if source.revision.kind != "branch":
                unusable = source.build_upstream(folder, self.read_repository)
                if isinstance(unusable, NotImported):
                    return unusable
            suggestion = "Add credentials for the repository. If SOURCE is a clone of it, add --repo-url instead."
            return document.report(
                ("spec", "sourceRef"), f"the repository {source.url} cannot be read: {files}", suggestion
            )
        # Check for variables before all other checks, because objects of Flux can contain variables too.
        if variables := self._find_substitutions(document, files, folder):
            return variables
        content = self._read_folder(document, source, files, folder)
        if content is None or isinstance(content, NotImported):
            return content
        package, kustomize = folder, None
        if content.has_kustomization:
            built = self._read_overlay(document, files, folder)
            if isinstance(built, NotImported):
                return built
            package, kustomize = built.package, built.request
        if variables := self._find_substitutions(document, files, package):
            return variables
        upstream = source.build_upstream(package, self.read_repository)
        return upstream if isinstance(upstream, NotImported) else self._build_request(document, upstream, kustomize)

    def _build_request(
        self, document: SourceDocument, upstream: UpstreamReference, kustomize: KustomizeRequest | None = None
    ) -> PackageRequest:
        return PackageRequest(
            document.name, document.name, self.objects.cluster, document.name, upstream, None, "", {}, document.file,
            kustomize,
        )  # fmt: skip

    def _read_folder(
        self, document: SourceDocument, source: GitSource, files: FileTree, folder: str
    ) -> FolderContent | NotImported | None:
        """Return the content of a folder of resources, or the reason why it is not imported.

        If the folder contains only Flux objects, add them to the objects of the cluster, and return None.
        """
        place = (f"{source.url} {source.revision.ref}", folder)
        if place in self.visited or ("", folder) in self.visited:
            return None
        content = read_folder(files, folder)
        self.not_imported.extend(content.unreadable)
        flux_objects = [entry for entry in content.documents if is_flux_object(entry)]
        others = [
            entry for entry in content.documents if not is_flux_object(entry) and entry.data["kind"] != "ConfigMap"
        ]
        options = [name for name in _OVERLAY_FIELDS if document.spec.get(name)]
        if flux_objects and not others and not content.overlay and not options:
            self.visited.add(place)
            for entry in content.documents:
                self.objects.add(entry)
            return None
        self.objects.packages.add(folder)
        if content.has_kustomization:
            return content
        if options:
            reason = f'Kustomization {document.name}: the folder "{folder}" has no kustomization file'
            return document.report(("spec", options[0]), reason, "Add a kustomization file to the folder.")
        if flux_objects:
            reason = f'Kustomization {document.name}: the folder "{folder}" contains Flux objects and other resources'
            return document.report(("spec", "path"), reason, "Move the resources to a folder of their own.")
        return content

    def _read_overlay(self, document: SourceDocument, files: FileTree, folder: str) -> ConvertedOverlay | NotImported:
        options = {target: document.spec.get(name) for name, target in _OVERLAY_FIELDS.items()}
        try:
            converted = OverlaySource(files, folder, options).convert()
        except OverlayError as error:
            names = {target: name for name, target in _OVERLAY_FIELDS.items()}
            return document.report(("spec", names.get(error.field, error.field)), str(error), _BUILD_SUGGESTION)
        if not converted.package:
            reason = f"Kustomization {document.name}: the overlay and its bases have no common folder"
            return document.report(
                ("spec", "path"), reason, "Move them to one folder below the root of the repository."
            )
        return converted

    def _find_substitutions(self, document: SourceDocument, files: FileTree, folder: str) -> NotImported | None:
        if not get_mapping(document.spec, "postBuild"):
            return None
        if not any(_SUBSTITUTION.search(file.data) for file in files.subtree(folder).values()):
            return None
        reason = f"Kustomization {document.name}: the resources contain variables that Flux replaces"
        return document.report(
            ("spec", "postBuild"),
            reason,
            "Write values instead of the variables, and change them with override policies.",
        )
