"""The options of charts in Applications."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from reconciler.adopt.argocd.contents import SourceContent
from reconciler.adopt.argocd.values_files import ValuesFile, ValuesFileError, ValuesSources
from reconciler.adopt.documents import find_wrong_type, get_list, get_mapping, get_text
from reconciler.adopt.helm_parameters import ParameterError, build_parameter_layers, parse_set_text, parse_set_value
from reconciler.adopt.requests import HelmRequest
from reconciler.adopt.units import NotImported
from reconciler.lazy_dataclasses import dataclass
from reconciler.packages.charts.values import ValuesLayer, merge_layers
from reconciler.packages.parsing import ParseFailure, parse_cached

_TYPES: Mapping[str, type] = {"valueFiles": list, "parameters": list, "valuesObject": dict, "values": str}
_HELM_FLAGS = {
    "skipTests": "skipTests", "skipSchemaValidation": "skipSchemaValidation",
    "ignoreMissingValueFiles": "ignoreMissingValuesFiles", "kubeVersion": "kubeVersion", "apiVersions": "apiVersions",
}  # fmt: skip


@dataclass(frozen=True)
class ConvertedChart:
    """The options of a chart, and the values files that are copied into the config."""

    request: HelmRequest
    files: Mapping[str, bytes]


def convert_chart(content: SourceContent, sources: ValuesSources) -> ConvertedChart | NotImported:
    """Return the options of a chart, or the reason why they cannot be imported.

    Args:
        sources: The sources with values files.
    """
    helm = get_mapping(content.data, "helm")
    if wrong := find_wrong_type(helm, _TYPES):
        return content.report(("helm", wrong[0]), wrong[1], "Correct the type of the value.")
    try:
        values = _read_values(helm)
    except ParameterError as error:
        return content.report(("helm",), str(error), "Correct this value in the Application.")
    files: list[ValuesFile] = []
    for index, name in enumerate(map(str, get_list(helm, "valueFiles"))):
        path = ("helm", "valueFiles", index)
        try:
            file = sources.find(name, content)
        except ValuesFileError as error:
            return content.report(path, str(error), "Copy the file into the chart, and change its path.")
        if file is not None:
            files.append(file)
        elif not helm.get("ignoreMissingValueFiles"):
            return content.report(path, f'the values file "{name}" does not exist', "Correct the path.")
    flags = {flag: helm[name] for name, flag in _HELM_FLAGS.items() if helm.get(name)}
    if helm.get("skipCrds"):
        flags["includeCRDs"] = False
    application = content.application
    release = get_text(helm, "releaseName") or application.application
    namespace = get_text(helm, "namespace") or application.namespace or "default"
    request = HelmRequest(release, namespace, tuple(file.path for file in files), values, {"hooks": "argocd", **flags})
    return ConvertedChart(request, {path: data for file in files for path, data in file.config_files.items()})


def _read_values(helm: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the values that override the values files: `valuesObject`, or else `values`, with the parameters."""
    text = parse_cached(get_text(helm, "values").encode())
    if isinstance(text, ParseFailure):
        raise ParameterError(f"helm.values cannot be parsed: {text.message}")
    data = text.documents[0].data if text.documents else None
    # In Argo CD, the field `valuesObject` replaces the field `values`.
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
            parse_set_text(value) if get_mapping(entry).get("forceString") else parse_set_value(value),
        )
