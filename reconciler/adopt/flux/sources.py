"""Conversion of the source objects of Flux to upstreams."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping

from reconciler.adopt.documents import SourceDocument, get_mapping, get_text
from reconciler.adopt.requests import RepositoryReader, RepositoryReference, UpstreamReference
from reconciler.adopt.revisions import GitRevision, UnusableRevision, build_git_upstream, parse_full_ref
from reconciler.adopt.units import MOVE_CREDENTIALS, NotImported
from reconciler.krm.names import validate_package_path
from reconciler.krm.version_ranges import is_exact_version
from reconciler.lazy_dataclasses import dataclass, replace
from reconciler.redaction import has_credentials

_CHANGED_FILES = {
    "include": "Copy the files of the other repository to the folder.",
    "ignore": "Move the other files to another folder.",
    "layerSelector": "Adopt the output of flux build, or write the Repository by hand.",
}
"""The fields with which a source object changes the files of the source, with a suggestion for each field."""
FLUX_BRANCH = "master"
"""The branch of a GitRepository without the field `spec.ref`."""


@dataclass(frozen=True)
class GitSource:
    """A GitRepository.

    Attributes:
        field: The field of `spec.ref` that determines the revision, or "".
    """

    document: SourceDocument
    url: str
    revision: GitRevision
    field: str

    def build_upstream(self, package: str, read_repository: RepositoryReader) -> UpstreamReference | NotImported:
        """Return the upstream for the folder `package`, or the reason why the folder cannot be imported."""
        if reason := validate_package_path(package):
            text = f"the folder {package!r} is not valid for a package: {reason}"
            return self.document.report(("spec", "url"), text, "Rename the folder.")
        upstream = build_git_upstream(self.url, self.revision, package, read_repository)
        if isinstance(upstream, UnusableRevision):
            path = ("spec", "ref", self.field)
            return self.document.report(path, upstream.reason, upstream.suggestion)
        return upstream


def read_git_source(source: SourceDocument) -> GitSource:
    """Return the URL and the revision of a GitRepository."""
    url, reference = get_text(source.spec, "url"), get_mapping(source.spec, "ref")
    # Use the same precedence as Flux.
    for name in ("commit", "name", "semver", "tag", "branch"):
        if text := get_text(reference, name):
            return GitSource(source, url, _read_revision(name, text), name)
    return GitSource(source, url, GitRevision("branch", FLUX_BRANCH), "")


def _read_revision(field: str, text: str) -> GitRevision:
    match field:
        case "commit" | "tag" | "branch":
            return GitRevision(field, text)
        case "semver":
            return GitRevision("range", text)
        case _:
            return parse_full_ref(text)


def find_source_problem(source: SourceDocument, path: str) -> NotImported | None:
    """Return the reason if a folder of a source cannot be a package."""
    if has_credentials(get_text(source.spec, "url")):
        return source.report(("spec", "url"), "the URL contains credentials", MOVE_CREDENTIALS)
    for name, suggestion in _CHANGED_FILES.items():
        if source.spec.get(name):
            return source.report(
                ("spec", name), f"the import does not support {name}, which changes the files of the source", suggestion
            )
    folder = normalize_folder(path)
    match source.data["kind"]:
        case "GitRepository":
            if folder == "." or folder.startswith(".."):
                reason = "the package must be in a folder below the root of the repository"
                return source.report(("spec", "url"), f"{reason}, not in {path!r}", "Move the files to a folder.")
        case "OCIRepository":
            if folder != ".":
                reason = f"the package must be in the root folder of the artifact, not in {folder!r}"
                return source.report(("spec", "url"), reason, "Move the files to the root of the artifact.")
        case kind:
            return source.report(("kind",), f"the import does not support the kind {kind}", "Copy the files to Git.")
    return None


def normalize_folder(path: str) -> str:
    """Return the path of a folder. "." is the root folder."""
    return posixpath.normpath(path.strip("/") or ".")


def build_artifact_upstream(source: SourceDocument) -> UpstreamReference:
    """Return the upstream for the artifact of an OCIRepository."""
    registry, _, package = get_text(source.spec, "url").rstrip("/").rpartition("/")
    repository = RepositoryReference("oci", registry, is_insecure=source.spec.get("insecure") is True)
    return UpstreamReference(repository, package, tuple(_read_oci_reference(source).items()))


def _read_oci_reference(source: SourceDocument) -> Mapping[str, str]:
    reference = get_mapping(source.spec, "ref")
    for name, field in (("digest", "digest"), ("semver", "version"), ("tag", "tag")):
        if text := get_text(reference, name):
            return {field: text}
    return {"tag": "latest"}


def build_chart_upstream(
    source: SourceDocument, chart: str, version: str, read_repository: RepositoryReader
) -> UpstreamReference | NotImported:
    """Return the upstream for a chart of a HelmRepository, GitRepository or OCIRepository.

    Args:
        chart: The name of the chart or its path in Git. It is "" for an OCIRepository, which contains one chart.
    """
    url = get_text(source.spec, "url").rstrip("/")
    if has_credentials(url):
        return source.report(("spec", "url"), "the URL contains credentials", MOVE_CREDENTIALS)
    match source.data["kind"]:
        case "HelmRepository":
            repository = RepositoryReference("helm", url, is_insecure=source.spec.get("insecure") is True)
            return UpstreamReference(repository, chart, (("version", version or "*"),))
        case "OCIRepository":
            return _build_registry_upstream(source)
        case _:
            if problem := find_source_problem(source, chart):
                return problem
            return read_git_source(source).build_upstream(normalize_folder(chart), read_repository)


def _build_registry_upstream(source: SourceDocument) -> UpstreamReference:
    """Return the upstream for the chart of an OCIRepository.

    If the reference of the OCIRepository is not a version, the chart is read as an artifact.
    """
    upstream = build_artifact_upstream(source)
    fields = dict(upstream.fields)
    version = str(fields.get("version") or fields.get("tag", ""))
    if "version" not in fields and not is_exact_version(version):
        return upstream
    repository = replace(upstream.repository, type="helm")
    return UpstreamReference(repository, upstream.package, (("version", version),))
