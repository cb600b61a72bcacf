"""Source objects of Flux as upstreams."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping

from reconciler.adopt.documents import SourceDocument, get_mapping, get_text
from reconciler.adopt.requests import RepositoryReference, UpstreamReference
from reconciler.adopt.units import NotImported
from reconciler.redaction import has_credentials

_TAG_SUGGESTION = "Create a revision tag <package>/v1, and use spec.upstream.revision."


def build_folder_upstream(source: SourceDocument, path: str) -> UpstreamReference | NotImported:
    """Return the upstream for a folder of a GitRepository or OCIRepository."""
    url = get_text(source.spec, "url")
    if has_credentials(url):
        return source.report(("spec", "url"), "the URL contains credentials", "Move them to the settings.")
    folder = posixpath.normpath(path.removeprefix("./") or ".").strip("/")
    if source.data["kind"] == "GitRepository":
        if folder in (".", "") or folder.startswith(".."):
            reason = "the package must be in a folder of the repository"
            return source.report(("spec", "url"), f"{reason}, and not in {path!r}", "Move the files.")
        repository = _read_git_repository(source, url)
        if isinstance(repository, NotImported):
            return repository
        return UpstreamReference(repository, folder, (("revision", -1),))
    if source.data["kind"] == "OCIRepository":
        if folder not in (".", ""):
            return source.report(("spec", "url"), f"the folder {folder!r} of an artifact is used", "Use its root.")
        registry, _, package = url.rstrip("/").rpartition("/")
        repository = RepositoryReference("oci", registry)
        return UpstreamReference(repository, package, tuple(_read_oci_reference(source).items()))
    return source.report(("kind",), f"a {source.data['kind']} has no equivalent", "Copy the files to Git.")


def _read_git_repository(source: SourceDocument, url: str) -> RepositoryReference | NotImported:
    reference = get_mapping(source.spec, "ref")
    for name in ("commit", "tag", "semver", "name"):
        if reference.get(name):
            reason = f"ref.{name} is a version of the whole repository"
            return source.report(("spec", "ref", name), reason, _TAG_SUGGESTION)
    branch = get_text(reference, "branch")
    return RepositoryReference("git", url, "" if branch in ("", "main") else branch)


def _read_oci_reference(source: SourceDocument) -> Mapping[str, str]:
    reference = get_mapping(source.spec, "ref")
    for name, field in (("digest", "digest"), ("semver", "version"), ("tag", "tag")):
        if text := get_text(reference, name):
            return {field: text}
    return {"tag": "latest"}


def build_chart_upstream(source: SourceDocument, chart: str, version: str) -> UpstreamReference | NotImported:
    """Return the upstream for a chart of a HelmRepository, GitRepository or OCIRepository.

    Args:
        chart: The name of the chart or its path in Git. It is "" for an OCIRepository, which contains one chart.
    """
    url = get_text(source.spec, "url").rstrip("/")
    if has_credentials(url):
        return source.report(("spec", "url"), "the URL contains credentials", "Move them to the settings.")
    match source.data["kind"]:
        case "HelmRepository":
            return UpstreamReference(RepositoryReference("helm", url), chart, (("version", version or "*"),))
        case "OCIRepository":
            repository, _, name = url.rpartition("/")
            reference = {"version" if key == "tag" else key: text for key, text in _read_oci_reference(source).items()}
            if reference.get("version") == "latest":
                reference = {"version": "*"}
            return UpstreamReference(RepositoryReference("helm", repository), name, tuple(reference.items()))
        case _:
            return build_folder_upstream(source, chart)
