"""Values files of charts in Applications: files of the chart, of another source, and copies in the config."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from typing import Any

from reconciler.adopt.argocd.contents import SourceContent
from reconciler.adopt.argocd.names import choose_source_name
from reconciler.adopt.documents import get_text
from reconciler.adopt.requests import RepositoryReference, SourceRequest, UpstreamReference
from reconciler.adopt.revisions import GitRevision, read_git_revision
from reconciler.api.helm_options import CONFIG_SOURCE
from reconciler.krm.names import validate_workspace_name
from reconciler.lazy_dataclasses import dataclass, field
from reconciler.redaction import has_credentials


class ValuesFileError(Exception):
    """A values file that cannot be imported."""


@dataclass(frozen=True)
class ValuesFile:
    """A values file for the field `valuesFiles`.

    Attributes:
        path: The path in `valuesFiles`.
        data: The content of a file that is copied into the config.
    """

    path: str
    data: bytes | None = None

    @property
    def config_files(self) -> Mapping[str, bytes]:
        """The copied file by its path in the config. Empty if no file is copied."""
        return {} if self.data is None else {self.path.removeprefix(f"${CONFIG_SOURCE}/"): self.data}


@dataclass(frozen=True)
class ValuesSources:
    """The sources of an Application that provide values files. The field `ref` contains the name of such a source.

    Attributes:
        entries: Maps the name of each such source to the source.
        is_copied: Whether the files are copied into the config, because the Application has only one other source.
        used: Maps names in `entries` to the sources of the package that were created from these entries.
    """

    entries: Mapping[str, Mapping[str, Any]]
    is_copied: bool
    used: dict[str, SourceRequest] = field(default_factory=dict)

    @property
    def sources(self) -> tuple[SourceRequest, ...]:
        """The sources of the package."""
        return tuple(self.used.values())

    def find(self, name: str, content: SourceContent) -> ValuesFile | None:
        """Return a values file. Return None if it does not exist.

        Raises:
            ValuesFileError: The file cannot be imported.
        """
        if "://" in name:
            raise ValuesFileError(f'the values file "{name}" is a URL, and the import downloads no files')
        if not name.startswith("$"):
            path = posixpath.normpath(posixpath.join("/", content.path, name)).strip("/")
            if content.type != "git" or path.startswith(f"{content.path}/"):
                return ValuesFile(posixpath.normpath(name))
            return _copy_file(name, path, content.url, content.revision, content)
        reference, _, path = name[1:].partition("/")
        entry = self.entries.get(reference)
        if entry is None:
            raise ValuesFileError(f'the values file "{name}" names the ref {reference!r}, which no source has')
        url, path = get_text(entry, "repoURL"), posixpath.normpath(path)
        revision = read_git_revision(url, get_text(entry, "targetRevision"), content.read_repository)
        copied = _copy_file(name, path, url, revision, content)
        source = None if self.is_copied else self._add_source(reference, url, revision)
        return ValuesFile(f"${source.name}/{path}") if copied and source else copied

    def _add_source(self, reference: str, url: str, revision: GitRevision) -> SourceRequest | None:
        """Return the package source for the source whose field `ref` is `reference`.

        Return None if `url` or `revision` cannot be used for an upstream.
        """
        if reference in self.used:
            return self.used[reference]
        repository = RepositoryReference("git", url, revision.name if revision.kind == "branch" else "")
        if (
            has_credentials(url)
            or revision.kind in ("commit", "range")
            or validate_workspace_name(revision.name or "x")
        ):
            return None
        version = -1 if revision.kind == "branch" else revision.name
        upstream = UpstreamReference(repository, "", (("revision", version),))
        name = choose_source_name(reference, {source.name for source in self.used.values()})
        self.used[reference] = SourceRequest(name, upstream, has_resources=False)
        return self.used[reference]


def _copy_file(name: str, path: str, url: str, revision: GitRevision, content: SourceContent) -> ValuesFile | None:
    files = content.read_repository(url, revision.ref)
    if isinstance(files, str):
        raise ValuesFileError(f'the values file "{name}" cannot be read: {files}')
    if path not in files:
        return None
    folder = content.application.folders.get(url, revision)
    return ValuesFile(f"${CONFIG_SOURCE}/{folder}/{path}", files[path].data)
