"""The options of charts in Applications."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping
from typing import Any

from reconciler.adopt.argocd.contents import SourceContent
from reconciler.adopt.documents import get_list, get_mapping, get_text
from reconciler.adopt.helm_parameters import ParameterError, build_parameter_layers, parse_set_value
from reconciler.adopt.requests import HelmRequest, UpstreamReference
from reconciler.adopt.revisions import read_git_revision
from reconciler.adopt.units import NotImported
from reconciler.lazy_dataclasses import dataclass
from reconciler.packages.charts.values import ValuesLayer, merge_layers
from reconciler.packages.parsing import ParseFailure, parse_cached

_HELM_FLAGS = {
    "skipTests": "skipTests", "skipSchemaValidation": "skipSchemaValidation",
    "ignoreMissingValueFiles": "ignoreMissingValuesFiles", "kubeVersion": "kubeVersion", "apiVersions": "apiVersions",
}  # fmt: skip


@dataclass(frozen=True)
class ConvertedChart:
    """The options of a chart, and the values files that are copied into the config."""

    request: HelmRequest
    files: Mapping[str, bytes]


def convert_chart(
    content: SourceContent, upstream: UpstreamReference, references: Mapping[str, Mapping[str, Any]]
) -> ConvertedChart | NotImported:
    """Return the options of a chart, or the reason why they cannot be imported.

    Args:
        references: The sources with values files, by their name in the field `ref`.
    """
    helm = get_mapping(content.data, "helm")
    try:
        values = _read_values(helm)
    except ParameterError as error:
        return content.report(("helm",), str(error), "Correct the Application.")
    values_files: list[str] = []
    config_files: dict[str, bytes] = {}
    for index, name in enumerate(get_list(helm, "valueFiles")):
        found = _find_values_file(str(name), content, references)
        if isinstance(found, str):
            if found:
                return content.report(("helm", "valueFiles", index), found, "Copy the file into the chart.")
            values_files.append(posixpath.normpath(str(name)))
        elif found is not None:
            copied, text = found
            config_files[copied] = text
            values_files.append(f"$config/{copied}")
        elif not helm.get("ignoreMissingValueFiles"):
            reason = f"the values file {name} does not exist"
            return content.report(("helm", "valueFiles", index), reason, "Correct the path.")
    flags = {flag: helm[name] for name, flag in _HELM_FLAGS.items() if helm.get(name)}
    if helm.get("skipCrds"):
        flags["includeCRDs"] = False
    application = content.application
    release = get_text(helm, "releaseName") or application.application
    namespace = get_text(helm, "namespace") or application.namespace or "default"
    request = HelmRequest(release, namespace, tuple(values_files), values, {"hooks": "argocd", **flags})
    return ConvertedChart(request, config_files)


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
    name: str, content: SourceContent, references: Mapping[str, Mapping[str, Any]]
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
        url = get_text(entry, "repoURL")
        revision = read_git_revision(url, get_text(entry, "targetRevision"), content.read_repository)
    else:
        path = posixpath.normpath(posixpath.join("/", content.path, name)).strip("/")
        if content.type != "git" or path.startswith(f"{content.path}/"):
            return ""
        url, revision = content.url, content.revision
    files = content.read_repository(url, revision.ref)
    if isinstance(files, str):
        return f"the values file {name} cannot be read: {files}"
    path = posixpath.normpath(path)
    file = files.get(path)
    repository = posixpath.basename(url.rstrip("/")).removesuffix(".git")
    return (f"values/{repository}/{path}", file.data) if file else None
