"""One source of an Application that has resources: its type, its files, and its upstream."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from reconciler.adopt.argocd.names import ValuesFolders
from reconciler.adopt.documents import SourceDocument, get_text
from reconciler.adopt.requests import RepositoryReader, RepositoryReference, UpstreamReference
from reconciler.adopt.revisions import (
    GitRevision,
    UnusableRevision,
    build_git_upstream,
    is_version_range,
    read_git_revision,
)
from reconciler.adopt.units import NotImported
from reconciler.api.package_sources import RepositoryType
from reconciler.catalog.files import FileTree
from reconciler.krm.names import validate_package_path
from reconciler.lazy_dataclasses import dataclass

GROUP = "argoproj.io"
_URL_SCHEMES = ("https://", "http://", "oci://")


@dataclass(frozen=True)
class ApplicationSource:
    """The spec of one Application, from which its sources are read.

    Attributes:
        folders: The folders of the config for values files of all Applications.
    """

    application: str
    document: SourceDocument
    path: tuple[str, ...]
    spec: Mapping[str, Any]
    namespace: str
    folders: ValuesFolders

    def report(self, path: Sequence[str | int], reason: str, suggestion: str) -> NotImported:
        """Return the `NotImported` entry for a field below `spec`."""
        return self.document.report(
            (*self.path, "spec", *path), f"Application {self.application}: {reason}", suggestion
        )


@dataclass(frozen=True)
class SourceContent:
    """One source of an Application that has resources.

    Attributes:
        place: The YAML path of the source below `spec`.
    """

    application: ApplicationSource
    data: Mapping[str, Any]
    place: tuple[str | int, ...]
    read_repository: RepositoryReader

    @property
    def url(self) -> str:
        """The URL of the repository."""
        return get_text(self.data, "repoURL")

    @property
    def type(self) -> RepositoryType:
        """The type of the repository."""
        if get_text(self.data, "chart"):
            return "helm"
        return "oci" if self.url.startswith("oci://") else "git"

    @property
    def path(self) -> str:
        """The path of the folder. "." is the root folder."""
        return posixpath.normpath(get_text(self.data, "path").strip("/") or ".")

    @cached_property
    def revision(self) -> GitRevision:
        """The revision of a Git repository."""
        return read_git_revision(self.url, get_text(self.data, "targetRevision"), self.read_repository)

    @cached_property
    def files(self) -> FileTree:
        """The files of a Git repository. Empty if the source is not in Git, or the repository cannot be read."""
        if self.type != "git":
            return FileTree()
        files = self.read_repository(self.url, self.revision.ref)
        return FileTree() if isinstance(files, str) else files

    @cached_property
    def files_below_path(self) -> FileTree:
        """The files of the folder `path`, with paths relative to this folder."""
        return self.files.subtree(self.path)

    def report(self, path: Sequence[str | int], reason: str, suggestion: str) -> NotImported:
        """Return the `NotImported` entry for a field of the source."""
        return self.application.report((*self.place, *path), reason, suggestion)

    def build_upstream(self, package: str) -> UpstreamReference | NotImported:
        """Return the upstream, or the reason why it cannot be imported.

        Args:
            package: The folder of the package in a Git repository.
        """
        version, url = get_text(self.data, "targetRevision"), self.url.rstrip("/")
        if self.type == "helm":
            repository = RepositoryReference("helm", url if url.startswith(_URL_SCHEMES) else f"oci://{url}")
            return UpstreamReference(repository, get_text(self.data, "chart"), (("version", version or "*"),))
        if self.type == "oci":
            registry, _, name = url.rpartition("/")
            if reason := validate_package_path(name):
                suggestion = "Publish the artifact with another name."
                return self.report(
                    ("repoURL",), f"the name {name!r} of the artifact is not valid for a package: {reason}", suggestion
                )
            return UpstreamReference(RepositoryReference("oci", registry), name, (_read_artifact_version(version),))
        if reason := validate_package_path(package):
            return self.report(
                ("path",), f"the folder {package!r} is not valid for a package: {reason}", "Rename the folder."
            )
        upstream = build_git_upstream(self.url, self.revision, package, self.read_repository)
        if isinstance(upstream, UnusableRevision):
            return self.report(("targetRevision",), upstream.reason, upstream.suggestion)
        return upstream


def _read_artifact_version(revision: str) -> tuple[str, str]:
    if revision.startswith("sha256:"):
        return "digest", revision
    return ("version", revision) if is_version_range(revision) else ("tag", revision or "latest")
