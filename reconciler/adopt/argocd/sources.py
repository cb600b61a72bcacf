"""The fields `source` and `sources` of Applications as upstreams with render options."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from reconciler.adopt.documents import SourceDocument, get_list, get_mapping, get_text
from reconciler.adopt.helm_parameters import ParameterError, build_parameter_layers, parse_set_value
from reconciler.adopt.overlays import OverlayError, find_build_root, read_options
from reconciler.adopt.requests import (
    HelmRequest,
    KustomizeRequest,
    RepositoryReader,
    RepositoryReference,
    UpstreamReference,
)
from reconciler.adopt.revisions import is_version_range
from reconciler.adopt.units import NotImported
from reconciler.catalog.files import FileTree
from reconciler.lazy_dataclasses import dataclass, field, replace
from reconciler.packages.charts.values import ValuesLayer, merge_layers
from reconciler.packages.package import KUSTOMIZATION_FILES
from reconciler.packages.parsing import ParseFailure, parse_cached
from reconciler.packages.source_kinds import CHART_FILE
from reconciler.redaction import has_credentials

_COMMIT = re.compile(r"[0-9a-f]{7,40}")
_TAG = re.compile(r"v?[0-9]+(?:\.[0-9]+)+.*")
_HELM_FLAGS = {
    "skipTests": "skipTests", "skipSchemaValidation": "skipSchemaValidation",
    "ignoreMissingValueFiles": "ignoreMissingValuesFiles", "kubeVersion": "kubeVersion", "apiVersions": "apiVersions",
}  # fmt: skip
_UNSUPPORTED = {
    ("plugin",): ("config management plugins are programs, which are not executed", "Adopt the output of the plugin."),
    ("helm", "fileParameters"): ("fileParameters has no equivalent", "Use valuesFiles."),
    ("helm", "passCredentials"): ("passCredentials is a field of the Repository", "Set spec.helm.passCredentials."),
    ("directory", "jsonnet"): ("Jsonnet is template code, which is not executed", "Adopt the rendered manifests."),
    ("directory", "include"): ("directory.include has no equivalent", "Move the files to their own folder."),
    ("directory", "exclude"): ("directory.exclude has no equivalent", "Move the files to another folder."),
}


@dataclass(frozen=True)
class ApplicationSource:
    """The source of one Application, with its place in the document."""

    application: str
    document: SourceDocument
    path: tuple[str, ...]
    spec: Mapping[str, Any]
    namespace: str

    def report(self, path: Sequence[str | int], reason: str, suggestion: str) -> NotImported:
        """Return the entry for a field below `spec`."""
        return self.document.report(
            (*self.path, "spec", *path), f"Application {self.application}: {reason}", suggestion
        )


@dataclass(frozen=True)
class ConvertedSource:
    """An upstream with its render options."""

    upstream: UpstreamReference
    helm: HelmRequest | None = None
    kustomize: KustomizeRequest | None = None
    config_files: Mapping[str, bytes] = field(default_factory=dict)


def convert_source(source: ApplicationSource, read_repository: RepositoryReader) -> ConvertedSource | NotImported:
    """Return the upstream of an Application, or the reason why it cannot be imported."""
    spec = source.spec
    if "sourceHydrator" in spec:
        return source.report(("sourceHydrator",), "the source hydrator has no equivalent", "Adopt its output branch.")
    entries = [entry for entry in get_list(spec, "sources") if isinstance(entry, Mapping)]
    references = {get_text(entry, "ref"): entry for entry in entries if get_text(entry, "ref")}
    contents = [entry for entry in entries if get_text(entry, "path") or get_text(entry, "chart")]
    if not entries:
        contents = [get_mapping(spec, "source")]
    if len(contents) != 1:
        reason = f"the Application has {len(contents)} sources with resources"
        return source.report(("sources",), reason, "Divide it into one Application per source.")
    (content,) = contents
    place: tuple[str | int, ...] = ("sources", entries.index(content)) if entries else ("source",)
    for path, (reason, suggestion) in _UNSUPPORTED.items():
        if path[-1] in get_mapping(content, *path[:-1]) and get_mapping(content, *path[:-1])[path[-1]]:
            return source.report((*place, *path), reason, suggestion)
    upstream = _read_upstream(source, content, place)
    if isinstance(upstream, NotImported):
        return upstream
    files = _read_folder(upstream, read_repository)
    kind = _detect_kind(content, upstream, files)
    if upstream.repository.type == "oci" and kind != "kustomize" and _read_path(content) != ".":
        reason = "only a part of the artifact is used"
        return source.report((*place, "path"), reason, "Publish the folder as an artifact of its own.")
    if kind == "kustomize":
        return _convert_overlay(source, content, place, upstream, read_repository)
    if kind == "manifests":
        return ConvertedSource(upstream)
    return _convert_chart(source, content, place, upstream, references, read_repository)


def _read_upstream(
    source: ApplicationSource, content: Mapping[str, Any], place: Sequence[str | int]
) -> UpstreamReference | NotImported:
    url, revision, chart = (get_text(content, name) for name in ("repoURL", "targetRevision", "chart"))
    if not url:
        return source.report((*place, "repoURL"), "repoURL is missing", "Correct the Application.")
    if has_credentials(url):
        return source.report((*place, "repoURL"), "the URL contains credentials", "Move them to the settings.")
    if chart:
        has_scheme = url.startswith(("https://", "http://", "oci://"))
        repository = RepositoryReference("helm", url.rstrip("/") if has_scheme else f"oci://{url.rstrip('/')}")
        return UpstreamReference(repository, chart, (("version", revision or "*"),))
    if url.startswith("oci://"):
        registry, _, package = url.rstrip("/").rpartition("/")
        repository = RepositoryReference("oci", registry)
        return UpstreamReference(repository, package, (_read_artifact_version(revision),))
    if _COMMIT.fullmatch(revision) or _TAG.fullmatch(revision):
        reason = f"targetRevision {revision!r} is a commit or tag of the whole repository"
        return source.report(
            (*place, "targetRevision"), reason, "Create a revision tag <package>/v1, and use spec.upstream.revision."
        )
    branch = revision.removeprefix("refs/heads/")
    path = _read_path(content)
    if path == "." or path.startswith(".."):
        return source.report((*place, "path"), "the package must be in a folder of the repository", "Move the files.")
    repository = RepositoryReference("git", url, "" if branch in ("", "HEAD") else branch)
    return UpstreamReference(repository, path, (("revision", -1),))


def _read_path(content: Mapping[str, Any]) -> str:
    """Return the path of the folder. "." is the root folder."""
    return posixpath.normpath(get_text(content, "path").strip("/") or ".")


def _read_artifact_version(revision: str) -> tuple[str, str]:
    if revision.startswith("sha256:"):
        return "digest", revision
    return ("version", revision) if is_version_range(revision) else ("tag", revision or "latest")


def _read_folder(upstream: UpstreamReference, read_repository: RepositoryReader) -> FileTree:
    if upstream.repository.type != "git":
        return FileTree()
    files = read_repository(upstream.repository.url, upstream.repository.branch)
    return FileTree() if isinstance(files, str) else files.subtree(upstream.package)


def _detect_kind(content: Mapping[str, Any], upstream: UpstreamReference, files: FileTree) -> str:
    if upstream.repository.type == "helm" or "helm" in content or CHART_FILE in files:
        return "helm"
    if "kustomize" in content or any(name in files for name in KUSTOMIZATION_FILES):
        return "kustomize"
    return "manifests"


def _convert_overlay(
    source: ApplicationSource,
    content: Mapping[str, Any],
    place: Sequence[str | int],
    upstream: UpstreamReference,
    read_repository: RepositoryReader,
) -> ConvertedSource | NotImported:
    path = _read_path(content)
    if upstream.repository.type == "git":
        read = read_repository(upstream.repository.url, upstream.repository.branch)
        root = find_build_root(FileTree() if isinstance(read, str) else read, path)
        if not root:
            reason = "the overlay reads files of the whole repository"
            return source.report((*place, "path"), reason, "Move the overlay and its bases to one folder.")
        upstream, path = replace(upstream, package=root), posixpath.relpath(path, root)
    options = {name: value for name, value in get_mapping(content, "kustomize").items() if name != "version"}
    try:
        kustomize = read_options(options, path)
    except OverlayError as error:
        return source.report((*place, "kustomize", error.field), str(error), "Write it into the overlay.")
    return ConvertedSource(upstream, None, kustomize)


def _convert_chart(
    source: ApplicationSource,
    content: Mapping[str, Any],
    place: Sequence[str | int],
    upstream: UpstreamReference,
    references: Mapping[str, Mapping[str, Any]],
    read_repository: RepositoryReader,
) -> ConvertedSource | NotImported:
    helm = get_mapping(content, "helm")
    path = (*place, "helm")
    try:
        values = _read_values(helm)
    except ParameterError as error:
        return source.report(path, str(error), "Correct the Application.")
    values_files: list[str] = []
    config_files: dict[str, bytes] = {}
    for index, name in enumerate(get_list(helm, "valueFiles")):
        found = _find_values_file(str(name), upstream, references, read_repository)
        if isinstance(found, str):
            if found:
                return source.report((*path, "valueFiles", index), found, "Copy the file into the chart.")
            values_files.append(posixpath.normpath(str(name)))
        elif found is not None:
            copied, text = found
            config_files[copied] = text
            values_files.append(f"$config/{copied}")
        elif not helm.get("ignoreMissingValueFiles"):
            reason = f"the values file {name} does not exist"
            return source.report((*path, "valueFiles", index), reason, "Correct the path.")
    flags = {flag: helm[name] for name, flag in _HELM_FLAGS.items() if helm.get(name)}
    if helm.get("skipCrds"):
        flags["includeCRDs"] = False
    release = get_text(helm, "releaseName") or source.application
    namespace = get_text(helm, "namespace") or source.namespace or "default"
    request = HelmRequest(release, namespace, tuple(values_files), values, {"hooks": "argocd", **flags})
    return ConvertedSource(upstream, request, config_files=config_files)


def _read_values(helm: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the values above the values files: `valuesObject`, or else `values`, with the parameters."""
    text = parse_cached(get_text(helm, "values").encode())
    if isinstance(text, ParseFailure):
        raise ParameterError(f"helm.values cannot be parsed: {text.message}")
    data = text.documents[0].data if text.documents else None
    # valuesObject replaces values in Argo CD.
    base = get_mapping(helm, "valuesObject") or (data if isinstance(data, Mapping) else {})
    merged = merge_layers([ValuesLayer("values", "helm.values", dict(base)), *build_parameter_layers(_iterate(helm))])
    if merged.problems:
        raise ParameterError(merged.problems[0].message)
    return merged.values


def _iterate(helm: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for entry in get_list(helm, "parameters"):
        value = get_text(entry, "value")
        yield (
            get_text(entry, "name"),
            value if get_mapping(entry).get("forceString") else parse_set_value(value),
        )


def _find_values_file(
    name: str,
    upstream: UpstreamReference,
    references: Mapping[str, Mapping[str, Any]],
    read_repository: RepositoryReader,
) -> tuple[str, bytes] | str | None:
    """Return the path in the config and the content of a values file outside of the chart.

    Return "" for a file of the chart, the reason if the file cannot be imported, or None if it does not exist.
    """
    if "://" in name:
        return f"the values file {name} is a URL"
    if name.startswith("$"):
        reference, _, path = name[1:].partition("/")
        entry = references.get(reference)
        if entry is None:
            return f"the values file {name} names an unknown source"
        url, branch = get_text(entry, "repoURL"), get_text(entry, "targetRevision")
    else:
        path = posixpath.normpath(posixpath.join("/", upstream.package, name)).strip("/")
        if upstream.repository.type == "helm" or path.startswith(f"{upstream.package}/"):
            return ""
        url, branch = upstream.repository.url, upstream.repository.branch
    files = read_repository(url, branch)
    if isinstance(files, str):
        return f"the values file {name} cannot be read: {files}"
    path = posixpath.normpath(path)
    file = files.get(path)
    repository = posixpath.basename(url.rstrip("/")).removesuffix(".git")
    return (f"values/{repository}/{path}", file.data) if file else None
