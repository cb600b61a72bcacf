"""Conversion of the fields `source` and `sources` of Applications to upstreams with render options."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping, Sequence
from typing import Literal

from reconciler.adopt.argocd.charts import convert_chart
from reconciler.adopt.argocd.contents import GROUP, ApplicationSource, SourceContent
from reconciler.adopt.argocd.names import choose_source_name
from reconciler.adopt.argocd.values_files import ValuesSources
from reconciler.adopt.documents import get_list, get_mapping, get_text, has_kind, read_documents
from reconciler.adopt.overlays import ConvertedOverlay, OverlayError, OverlaySource
from reconciler.adopt.requests import HelmRequest, KustomizeRequest, RepositoryReader, SourceRequest, UpstreamReference
from reconciler.adopt.resources import YAML_SUFFIXES
from reconciler.adopt.units import MOVE_CREDENTIALS, NotImported
from reconciler.lazy_dataclasses import dataclass, field
from reconciler.packages.package import KUSTOMIZATION_FILES
from reconciler.packages.source_kinds import CHART_FILE
from reconciler.redaction import has_credentials

_UNSUPPORTED = {
    ("plugin",): (
        "the import does not run config management plugins",
        "Write the output of the plugin to a folder, and adopt this folder.",
    ),
    ("helm", "fileParameters"): (
        "the import does not support fileParameters",
        "Write the values to a values file, and name this file in valueFiles.",
    ),
    ("helm", "passCredentials"): (
        "the import does not copy passCredentials",
        "Delete the field, run the command again, and set spec.helm.passCredentials of the Repository.",
    ),
    ("directory", "jsonnet"): (
        "the import does not evaluate Jsonnet",
        "Write the rendered manifests to a folder, and adopt this folder.",
    ),
    ("directory", "include"): (
        "the import does not support directory.include",
        "Move the included files to their own folder.",
    ),
    ("directory", "exclude"): (
        "the import does not support directory.exclude",
        "Move the excluded files to another folder.",
    ),
}
_SUBSTITUTED = (("helm", "parameters"), ("helm", "valueFiles"), ("kustomize", "images"))
_BUILD_VARIABLE = re.compile(r"\$\{?(?:ARGOCD|KUBE)_")
_NO_EFFECT = ("version", "forceCommonAnnotations")
"""Options of Kustomize that have no effect on the result."""


@dataclass(frozen=True)
class ConvertedSource:
    """The source of an Application, converted to an upstream with render options.

    Attributes:
        sources: If the package has several sources, all sources. `upstream` is then the upstream of the first source.
    """

    upstream: UpstreamReference
    helm: HelmRequest | None = None
    kustomize: KustomizeRequest | None = None
    config_files: Mapping[str, bytes] = field(default_factory=dict)
    sources: tuple[SourceRequest, ...] = ()


def convert_source(source: ApplicationSource, read_repository: RepositoryReader) -> ConvertedSource | NotImported:
    """Convert the source or the sources of an Application. If they cannot be imported, return the reason."""
    spec = source.spec
    if "sourceHydrator" in spec:
        return source.report(
            ("sourceHydrator",),
            "the import does not support the source hydrator",
            "Adopt the branch to which it writes.",
        )
    entries = [
        (("sources", index), entry)
        for index, entry in enumerate(get_list(spec, "sources"))
        if isinstance(entry, Mapping)
    ]
    references = {get_text(entry, "ref"): entry for _, entry in entries if get_text(entry, "ref")}
    contents = [
        SourceContent(source, entry, place, read_repository)
        for place, entry in entries
        if get_text(entry, "path") or get_text(entry, "chart") or not get_text(entry, "ref")
    ]
    if not entries:
        contents = [SourceContent(source, get_mapping(spec, "source"), ("source",), read_repository)]
    if not contents:
        return source.report(("sources",), "the Application has no source with resources", "Add `path` or `chart`.")
    values = ValuesSources(references, is_copied=len(contents) == 1)
    converted: list[ConvertedSource] = []
    for content in contents:
        result = _convert_content(content, values)
        if isinstance(result, NotImported):
            return result
        converted.append(result)
    return converted[0] if len(converted) == 1 else _combine(contents, converted, values)


def _combine(
    contents: Sequence[SourceContent], converted: Sequence[ConvertedSource], values: ValuesSources
) -> ConvertedSource:
    """Return all sources as one package. Each source after the first one has its own folder."""
    charts = [entry.helm for entry in converted if entry.helm]
    only_chart = charts[0] if len(charts) == 1 else None
    used = {source.name for source in values.sources}
    sources: list[SourceRequest] = []
    for content, entry in zip(contents, converted, strict=True):
        name = choose_source_name(get_text(content.data, "chart") or posixpath.basename(content.path), used)
        sources.append(
            SourceRequest(
                name, entry.upstream, name if sources else "", True, None if only_chart else entry.helm, entry.kustomize
            )
        )
    files = {path: data for entry in converted for path, data in entry.config_files.items()}
    return ConvertedSource(converted[0].upstream, only_chart, None, files, (*sources, *values.sources))


def _convert_content(content: SourceContent, values: ValuesSources) -> ConvertedSource | NotImported:
    if problem := _find_problem(content):
        return problem
    kind = _detect_kind(content)
    package, options = content.path, None
    if kind == "kustomize":
        built = _read_overlay(content)
        if isinstance(built, NotImported):
            return built
        package, options = built.package, built.request
    elif content.type == "oci" and content.path != ".":
        reason = "the path selects only a part of the artifact"
        return content.report(("path",), reason, "Publish the folder as an artifact of its own.")
    elif kind == "manifests" and (problem := _find_folder_problem(content)):
        return problem
    upstream = content.build_upstream(package)
    if isinstance(upstream, NotImported):
        return upstream
    if kind != "helm":
        return ConvertedSource(upstream, None, options)
    chart = convert_chart(content, values)
    return chart if isinstance(chart, NotImported) else ConvertedSource(upstream, chart.request, None, chart.files)


def _find_problem(content: SourceContent) -> NotImported | None:
    """Return the reason if a field of a source prevents the import. Do not check the files of the source."""
    for path, (reason, suggestion) in _UNSUPPORTED.items():
        if get_mapping(content.data, *path[:-1]).get(path[-1]):
            return content.report(path, reason, suggestion)
    for path in _SUBSTITUTED:
        if _BUILD_VARIABLE.search(str(get_mapping(content.data, path[0]).get(path[1]))):
            reason = "the field contains variables such as $ARGOCD_APP_NAME, which only Argo CD can replace"
            return content.report(path, reason, "Write the values instead of the variables.")
    if not content.url:
        return content.report(("repoURL",), "repoURL is missing", "Add the URL of the repository.")
    if has_credentials(content.url):
        return content.report(("repoURL",), "the URL contains credentials", MOVE_CREDENTIALS)
    if content.type == "git" and (content.path == "." or content.path.startswith("..")):
        return content.report(
            ("path",), "the package must be in a folder below the root of the repository", "Move the files to a folder."
        )
    return None


def _find_folder_problem(content: SourceContent) -> NotImported | None:
    """Return the reason if a folder of plain manifests cannot be a package.

    Argo CD may ignore some files of the folder, or the folder may contain Applications, which are imported themselves.
    """
    files = content.files_below_path
    is_recursive = bool(get_mapping(content.data, "directory").get("recurse"))
    if not is_recursive and any("/" in path and path.endswith(YAML_SUFFIXES) for path in files):
        reason = "the folder has YAML files in subfolders, but directory.recurse is not true"
        return content.report(
            ("path",), reason, "Set directory.recurse to true, or move the subfolders to another place."
        )
    if any(path.endswith(".jsonnet") and (is_recursive or "/" not in path) for path in files):
        reason, suggestion = _UNSUPPORTED["directory", "jsonnet"]
        return content.report(("path",), reason, suggestion)
    documents, _ = read_documents(files, GROUP)
    if any(has_kind(document, GROUP, ("Application", "ApplicationSet")) for document in documents):
        reason = "the folder contains Applications, so that the import does not copy its resources as a package"
        return content.report(("path",), reason, "Move the other resources to a folder of their own.")
    return None


def _detect_kind(content: SourceContent) -> Literal["helm", "kustomize", "manifests"]:
    files = content.files_below_path
    if content.type == "helm" or "helm" in content.data or CHART_FILE in files:
        return "helm"
    is_overlay = "kustomize" in content.data or any(name in files for name in KUSTOMIZATION_FILES)
    return "kustomize" if is_overlay else "manifests"


def _read_overlay(content: SourceContent) -> ConvertedOverlay | NotImported:
    options = {name: value for name, value in get_mapping(content.data, "kustomize").items() if name not in _NO_EFFECT}
    try:
        files = content.files if content.type == "git" else None
        converted = OverlaySource(files, content.path, options).convert()
    except OverlayError as error:
        return content.report(
            ("kustomize", error.field), str(error), "Correct the option, or write it into the kustomization file."
        )
    if content.type == "git" and not converted.package:
        reason = "the overlay and its bases have no common folder below the root of the repository"
        return content.report(("path",), reason, "Move the overlay and its bases to one folder.")
    return converted
