"""The fields `source` and `sources` of Applications as upstreams with render options."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from reconciler.adopt.argocd.charts import convert_chart
from reconciler.adopt.argocd.contents import ApplicationSource, SourceContent
from reconciler.adopt.documents import get_list, get_mapping, get_text
from reconciler.adopt.overlays import ConvertedOverlay, OverlayError, OverlaySource
from reconciler.adopt.requests import HelmRequest, KustomizeRequest, RepositoryReader, UpstreamReference
from reconciler.adopt.units import NotImported
from reconciler.lazy_dataclasses import dataclass, field
from reconciler.packages.package import KUSTOMIZATION_FILES
from reconciler.packages.source_kinds import CHART_FILE
from reconciler.redaction import has_credentials

_UNSUPPORTED = {
    ("plugin",): ("config management plugins are programs, which are not executed", "Adopt the output of the plugin."),
    ("helm", "fileParameters"): ("fileParameters has no equivalent", "Use valuesFiles."),
    ("helm", "passCredentials"): ("passCredentials is a field of the Repository", "Set spec.helm.passCredentials."),
    ("directory", "jsonnet"): ("Jsonnet is template code, which is not executed", "Adopt the rendered manifests."),
    ("directory", "include"): ("directory.include has no equivalent", "Move the files to their own folder."),
    ("directory", "exclude"): ("directory.exclude has no equivalent", "Move the files to another folder."),
}
_NO_EFFECT = ("version", "forceCommonAnnotations")
"""Options of Kustomize that have no effect on the result."""


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
    return _convert_content(SourceContent(source, content, place, read_repository), references)


def _convert_content(
    content: SourceContent, references: Mapping[str, Mapping[str, Any]]
) -> ConvertedSource | NotImported:
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
        reason = "only a part of the artifact is used"
        return content.report(("path",), reason, "Publish the folder as an artifact of its own.")
    upstream = content.build_upstream(package)
    if isinstance(upstream, NotImported):
        return upstream
    if kind != "helm":
        return ConvertedSource(upstream, None, options)
    chart = convert_chart(content, upstream, references)
    return chart if isinstance(chart, NotImported) else ConvertedSource(upstream, chart.request, None, chart.files)


def _find_problem(content: SourceContent) -> NotImported | None:
    """Return the reason if a source has no equivalent, independent of its files."""
    for path, (reason, suggestion) in _UNSUPPORTED.items():
        if get_mapping(content.data, *path[:-1]).get(path[-1]):
            return content.report(path, reason, suggestion)
    if not content.url:
        return content.report(("repoURL",), "repoURL is missing", "Correct the Application.")
    if has_credentials(content.url):
        return content.report(("repoURL",), "the URL contains credentials", "Move them to the settings.")
    if content.type == "git" and (content.path == "." or content.path.startswith("..")):
        return content.report(("path",), "the package must be in a folder of the repository", "Move the files.")
    return None


def _detect_kind(content: SourceContent) -> Literal["helm", "kustomize", "manifests"]:
    files = content.files.subtree(content.path)
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
        return content.report(("kustomize", error.field), str(error), "Write it into the overlay.")
    if content.type == "git" and not converted.package:
        reason = "the overlay reads files of the whole repository"
        return content.report(("path",), reason, "Move the overlay and its bases to one folder.")
    return converted
