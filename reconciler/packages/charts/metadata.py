"""The metadata of a chart from `Chart.yaml`, and the checks that need only this file."""

from __future__ import annotations

from reconciler.api.base import read_model
from reconciler.api.helm import ChartManifest
from reconciler.api.messages import MessageTemplates
from reconciler.catalog.files import File, FileTree
from reconciler.krm.findings import Finding
from reconciler.krm.version_ranges import parse_range, parse_version
from reconciler.packages.parsing import ParseFailure, parse_cached
from reconciler.packages.source_codes import SourceCodes
from reconciler.packages.source_kinds import CHART_FILE


def read_chart_manifest(chart: FileTree) -> ChartManifest | Finding:
    """Return the content of `Chart.yaml`, or the finding if the file cannot be read."""
    file = chart.get(CHART_FILE)
    problem = f"the folder contains no file {CHART_FILE}" if file is None else ""
    manifest = None if file is None else _parse_manifest(file)
    if isinstance(manifest, ChartManifest):
        return manifest
    return SourceCodes.CHART_RENDER_FAILED.finding(f"the chart cannot be read, because {problem or manifest}")


def _parse_manifest(file: File) -> ChartManifest | str:
    parsed = parse_cached(file.data)
    if isinstance(parsed, ParseFailure):
        return f"{CHART_FILE} cannot be parsed at line {parsed.line}: {parsed.message}"
    if len(parsed.documents) != 1:
        return f"{CHART_FILE} must contain one document, but contains {len(parsed.documents)}"
    result = read_model(ChartManifest, parsed.documents[0].data, MessageTemplates())
    if result.model is None:
        return f"{CHART_FILE} is not valid: {'; '.join(result.error_texts)}"
    return result.model if result.model.name else f"{CHART_FILE} has no name"


def format_chart(manifest: ChartManifest) -> str:
    """Return the name and version of a chart for messages, e.g. "chart podinfo 6.1.3"."""
    return f"chart {manifest.name} {manifest.version}".rstrip()


def check_chart_manifest(manifest: ChartManifest, kube_version: str) -> Finding | None:
    """Return a finding if the chart cannot be installed on a cluster with the Kubernetes version `kube_version`."""
    label = format_chart(manifest)
    if manifest.type == "library":
        message = (
            f'{label} has the type "library" and cannot be rendered. Next step: use a chart that contains it as a'
            " dependency"
        )
        return SourceCodes.CHART_NOT_INSTALLABLE.finding(message)
    required, version = parse_range(manifest.kube_version), parse_version(kube_version)
    if not manifest.kube_version or (required and version and required.matches(version)):
        return None
    return SourceCodes.CHART_KUBE_VERSION.finding(
        f'{label} requires Kubernetes "{manifest.kube_version}", but is rendered for Kubernetes {kube_version}. Next'
        " step: use another version of the chart. If the cluster has another Kubernetes version, set"
        " spec.helm.kubeVersion or the annotation reconciler.dev/kubernetes-version of the cluster to this version"
    )
