"""Conversion of HelmReleases to package requests."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping
from typing import Any

from reconciler.adopt.documents import SourceDocument, find_wrong_type, get_list, get_mapping, get_text
from reconciler.adopt.flux.objects import ClusterObjects, get_namespace, report_missing_source, report_verification
from reconciler.adopt.flux.sources import build_chart_upstream
from reconciler.adopt.helm_parameters import ParameterError, build_parameter_layers, parse_target_value
from reconciler.adopt.requests import HelmRequest, PackageRequest, RepositoryReader, UpstreamReference
from reconciler.adopt.units import AGENT_SUGGESTION, CLUSTER_IN_SECRET, NotImported
from reconciler.packages.charts.chart_defaults import VALUES_FILE
from reconciler.packages.charts.values import ValuesLayer, merge_layers
from reconciler.packages.parsing import ParseFailure, parse_cached

_REPORTED = {
    "dependsOn": "the import does not copy the order of releases",
    "healthChecks": "the import does not copy health checks",
}
_REFUSED = {
    "postRenderers": ("the import does not support post-renderers", "Use pipeline.mutators or override policies."),
    "commonMetadata": ("the import does not support commonMetadata", "Use pipeline.mutators or override policies."),
    "kubeConfig": CLUSTER_IN_SECRET,
}


def convert_release(
    document: SourceDocument,
    objects: ClusterObjects,
    read_repository: RepositoryReader,
    not_imported: list[NotImported],
) -> PackageRequest | NotImported:
    """Convert a HelmRelease to a package request. If it cannot be imported, return the reason.

    For each field of the HelmRelease without an equivalent, add a report to `not_imported`.
    """
    spec, namespace = document.spec, get_namespace(document)
    for name, (reason, suggestion) in _REFUSED.items():
        if spec.get(name):
            return document.report(("spec", name), f"HelmRelease {document.name}: {reason}", suggestion)
    if spec.get("suspend"):
        return document.report(("spec", "suspend"), "the import skips suspended objects", "Resume it, or delete it.")
    not_imported += (
        document.report(("spec", name), f"HelmRelease {document.name}: {reason}", AGENT_SUGGESTION)
        for name, reason in _REPORTED.items()
        if spec.get(name)
    )
    if get_mapping(spec, "chart", "spec").get("verify"):
        not_imported.append(report_verification(document, ("spec", "chart", "spec", "verify")))
    chart, source = _find_chart(document, objects, namespace)
    upstream = _read_upstream(document, chart, source, read_repository)
    if isinstance(upstream, NotImported):
        return upstream
    values = _read_values(document, objects, namespace)
    if isinstance(values, NotImported):
        return values
    files = _read_values_files(document, chart, upstream)
    if isinstance(files, NotImported):
        return files
    target = get_text(spec, "targetNamespace")
    release = get_text(spec, "releaseName") or (f"{target}-{document.name}" if target else document.name)
    request = HelmRequest(release, target or namespace, files, values, _read_flags(spec))
    return PackageRequest(
        document.name, document.name, objects.cluster, document.name, upstream, request, request.namespace, {},
        document.file,
    )  # fmt: skip


def _read_flags(spec: Mapping[str, Any]) -> Mapping[str, Any]:
    install = get_mapping(spec, "install")
    flags: dict[str, Any] = {}
    if install.get("createNamespace"):
        flags["createNamespace"] = True
    if install.get("crds") == "Skip":
        flags["includeCRDs"] = False
    if install.get("disableSchemaValidation"):
        flags["skipSchemaValidation"] = True
    return flags


def _read_upstream(
    document: SourceDocument,
    chart: Mapping[str, Any],
    source: SourceDocument | None,
    read_repository: RepositoryReader,
) -> UpstreamReference | NotImported:
    if source is None:
        reference = get_mapping(document.spec, "chartRef")
        path: tuple[str, ...] = ("spec", "chartRef") if reference else ("spec", "chart", "spec")
        reference = reference or get_mapping(document.spec, *path[1:], "sourceRef")
        return report_missing_source(document, path, reference, f"HelmRelease {document.name}: ")
    name, version = get_text(chart, "chart").removeprefix("./"), get_text(chart, "version")
    return build_chart_upstream(source, name, version, read_repository)


def _find_chart(
    document: SourceDocument, objects: ClusterObjects, namespace: str
) -> tuple[Mapping[str, Any], SourceDocument | None]:
    """Return the fields of the chart, and its source object."""
    chart: Mapping[str, Any] = {}
    reference = get_mapping(document.spec, "chartRef")
    if not reference:
        chart = get_mapping(document.spec, "chart", "spec")
        reference = get_mapping(chart, "sourceRef")
    source = objects.find(reference, namespace)
    if source is not None and source.data["kind"] == "HelmChart":
        chart = source.spec
        source = objects.find(get_mapping(chart, "sourceRef"), get_namespace(source))
    return chart, source


def _read_values_files(
    document: SourceDocument, chart: Mapping[str, Any], upstream: UpstreamReference
) -> tuple[str, ...] | NotImported:
    """Return the paths of the values files, relative to the chart folder.

    In Flux, these files replace the file values.yaml of the chart. If the chart is in Git, the paths in the HelmRelease
    start at the root of the repository. Otherwise, they start at the chart folder.
    """
    names = [posixpath.normpath(str(name)) for name in get_list(chart, "valuesFiles")]
    start = f"{upstream.package}/" if upstream.repository.type == "git" else ""
    path = ("spec", "chart", "spec", "valuesFiles")
    if other := next((name for name in names if not name.startswith(start)), ""):
        reason = f'HelmRelease {document.name}: the values file "{other}" is not in the chart'
        return document.report(path, reason, "Move the file to the folder of the chart.")
    files = tuple(name.removeprefix(start) for name in names)
    if files and VALUES_FILE not in files:
        reason = f"HelmRelease {document.name}: valuesFiles excludes {VALUES_FILE}, but the reconciler always uses it"
        return document.report(
            path, reason, f"If the values in {VALUES_FILE} do not change the release, add this file to valuesFiles."
        )
    return files


def _read_values(document: SourceDocument, objects: ClusterObjects, namespace: str) -> Mapping[str, Any] | NotImported:
    """Return the merged values, or the reason why they cannot be read.

    In Flux, `values` has precedence over `valuesFrom`.
    """
    if wrong := find_wrong_type(document.spec, {"valuesFrom": list, "values": dict}):
        return document.report(("spec", wrong[0]), wrong[1], "Correct the type of the value.")
    layers: list[ValuesLayer] = []
    for index, reference in enumerate(get_list(document.spec, "valuesFrom")):
        try:
            layers += _read_reference(reference, objects, namespace)
        except ParameterError as error:
            suggestion = "Write the values into the HelmRelease, or use output: helmRelease."
            return document.report(("spec", "valuesFrom", index), f"HelmRelease {document.name}: {error}", suggestion)
    layers.append(ValuesLayer("values", "spec.values", dict(get_mapping(document.spec, "values"))))
    merged = merge_layers(layers)
    if merged.problems:
        reason = f"HelmRelease {document.name}: {merged.problems[0].message}"
        return document.report(("spec", "valuesFrom"), reason, "Correct targetPath.")
    return merged.values


def _read_reference(reference: Any, objects: ClusterObjects, namespace: str) -> Iterator[ValuesLayer]:
    kind, name = get_text(reference, "kind"), get_text(reference, "name")
    if kind != "ConfigMap":
        raise ParameterError(f'the import does not copy values of the {kind} "{name}"')
    key = get_text(reference, "valuesKey") or "values.yaml"
    source = objects.find({"kind": kind, "name": name}, namespace)
    text = get_mapping(source.data, "data").get(key) if source else None
    if not isinstance(text, str):
        if get_mapping(reference).get("optional"):
            return
        raise ParameterError(f'the source files contain no ConfigMap "{name}" with the key "{key}"')
    if target := get_text(reference, "targetPath"):
        yield from build_parameter_layers([(target, parse_target_value(text.strip()))])
        return
    parsed = parse_cached(text.encode())
    data = parsed.documents[0].data if not isinstance(parsed, ParseFailure) and parsed.documents else {}
    if isinstance(parsed, ParseFailure) or not isinstance(data, Mapping):
        raise ParameterError(f'the key "{key}" of ConfigMap "{name}" must contain a YAML mapping')
    yield ValuesLayer("values-from", f"ConfigMap/{name}", dict(data))
