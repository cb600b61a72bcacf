"""The function `render-helm-chart`: adds the resources of charts to a package.

The files of a chart are in the package, or they were downloaded with the other sources before the render. The function
downloads nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from posixpath import join, normpath
from typing import Any, Final, Protocol

from reconciler.api.functions import ChartTemplateOptions, HelmChartEntry, RenderHelmChart
from reconciler.catalog.files import FileTree
from reconciler.krm.findings import Finding, Severity, join_messages, select_errors
from reconciler.krm.json_text import format_canonical_json
from reconciler.krm.objects import ObjectKey
from reconciler.krm.values_tree import merge_maps
from reconciler.krm.yaml import Document, parse_yaml
from reconciler.lazy_dataclasses import dataclass
from reconciler.packages.charts.metadata import read_chart_manifest
from reconciler.packages.charts.request import ChartRequest, RenderedSource
from reconciler.packages.charts.value_sources import read_values_document
from reconciler.packages.functions.function import (
    FieldError,
    FunctionConfig,
    FunctionContext,
    FunctionOutput,
    FunctionResult,
    InterruptedFunctionError,
    Item,
    create_failure,
    report_errors_as_failure,
)
from reconciler.packages.functions.helm_chart_config import INSTEAD, read_chart_config, read_repository_chart
from reconciler.packages.functions.registry import FunctionMatch, FunctionUnavailable
from reconciler.packages.parsing import ParseFailure
from reconciler.packages.source_codes import TEMPORARY_CODES
from reconciler.packages.source_kinds import CHART_FILE

_NO_PROGRAM: Final = "the program helm is not available"
_DOWNLOAD_RULE: Final = (
    "charts are downloaded only in renders of PackageVariants, for the configuration in the upstream package"
)


class ChartRenderer(Protocol):
    """Renders charts with the program helm."""

    def identity(self) -> str:
        """Return the identity of the program. Return "" if the program is not available now."""
        ...

    def render(self, chart: FileTree, request: ChartRequest) -> RenderedSource:
        """Return the resources of a chart, or findings with errors."""
        ...


class ChartFunctions:
    """Provides the function `render-helm-chart`.

    Args:
        get_renderer: Returns the renderer of charts. It is called only if a pipeline uses the function.
        kube_version: The Kubernetes version for charts, e.g. "1.34.0".
    """

    def __init__(self, get_renderer: Callable[[], ChartRenderer], kube_version: str) -> None:
        self._get_renderer = get_renderer
        self._kube_version = kube_version

    @cached_property
    def _renderer(self) -> ChartRenderer:
        return self._get_renderer()

    def find(self) -> FunctionMatch | FunctionUnavailable:
        """Return the function `render-helm-chart`, or the reason why the program helm is not available now."""
        identity = self._renderer.identity()
        if not identity:
            return FunctionUnavailable(f"{_NO_PROGRAM}; install it, or set `sources.helm.program`", _NO_PROGRAM)
        function = _RenderHelmChart(self._renderer, self._kube_version)
        return FunctionMatch(report_errors_as_failure(function), (0, 0, 0), identity=f"{identity} {self._kube_version}")


@dataclass(frozen=True)
class _RenderHelmChart:
    renderer: ChartRenderer
    kube_version: str

    def __call__(
        self, items: Sequence[Item], config: FunctionConfig | None, context: FunctionContext
    ) -> FunctionOutput:
        settings = read_chart_config(config)
        current = {item.key: item for item in items if item.package == context.package}
        changed: dict[ObjectKey, Item] = {}
        results: list[FunctionResult] = []
        for index, entry in enumerate(settings.helm_charts):
            chart = _find_chart(settings, index, context)
            request = self._build_request(entry, index, chart, context)
            rendered = self.renderer.render(chart, request)
            if errors := select_errors(rendered.findings):
                return _create_failure(items, errors)
            results += map(_create_result, rendered.findings)
            for document in (parse_yaml(file.data).documents[0] for file in rendered.files.values()):
                item = _create_item(document, context.package)
                if item.key in changed:
                    raise FieldError(f"helmCharts[{index}]: {item.kind} {item.name} is also in another chart")
                changed[item.key] = current[item.key].with_data(item.data) if item.key in current else item
        remaining = [
            changed.pop(item.key) if item.key in changed and item is current.get(item.key) else item for item in items
        ]
        return FunctionOutput((*remaining, *changed.values()), tuple(results))

    def _build_request(
        self, entry: HelmChartEntry, index: int, chart: FileTree, context: FunctionContext
    ) -> ChartRequest:
        options = entry.template_options
        if not options.release_name:
            raise FieldError(f"helmCharts[{index}].templateOptions.releaseName must be set")
        return ChartRequest(
            release_name=options.release_name,
            namespace=options.namespace,
            kube_version=self.kube_version,
            values=format_canonical_json(_merge_values(options, index, chart, context)),
            api_versions=options.api_versions,
            set_namespace="none",
            include_crds=options.include_crds,
            skip_tests=options.skip_tests,
        )


def _find_chart(settings: RenderHelmChart, index: int, context: FunctionContext) -> FileTree:
    """Return the files of a chart in the package, or of a chart that was downloaded. Raises FieldError."""
    entry = settings.helm_charts[index]
    required = read_repository_chart(entry, index)
    folder = _resolve(join(settings.helm_globals.chart_home, entry.chart_args.name), "helmGlobals.chartHome", context)
    chart = context.files.subtree(folder)
    if CHART_FILE in chart:
        _check_version(entry, index, chart, folder)
        return chart
    if required is None:
        raise FieldError(
            f'helmCharts[{index}].chartArgs.name refers to the chart "{folder}", which the package does not contain.'
            f" Next step: add its files, set repo, or {INSTEAD}"
        )
    if not required.is_in(context.charts):
        raise FieldError(f"{required.create_finding().message} ({_DOWNLOAD_RULE})")
    return context.charts.subtree(required.folder)


def _check_version(entry: HelmChartEntry, index: int, chart: FileTree, folder: str) -> None:
    """Raise FieldError if the version of a chart in the package differs from the version in its entry."""
    version, manifest = entry.chart_args.version, read_chart_manifest(chart)
    if version and not isinstance(manifest, Finding) and manifest.version != version:
        raise FieldError(
            f'helmCharts[{index}].chartArgs.version is "{version}", and "{folder}" has version "{manifest.version}"'
        )


def _merge_values(options: ChartTemplateOptions, index: int, chart: FileTree, context: FunctionContext) -> Any:
    """Return the values that helm merges over the defaults of the chart. Raises FieldError."""
    inline = options.values.values_inline
    if options.values.values_merge == "replace":
        return inline
    field = f"helmCharts[{index}].templateOptions.values.valuesFiles"
    files: dict[str, Any] = {}
    for path in options.values.values_files:
        files = merge_maps(files, _read_values(context.files, _resolve(path, field, context), field))
    if options.values.values_merge == "override":
        return merge_maps(files, inline)
    if not options.values.values_files and "values.yaml" in chart:
        # As in kpt, use the default values of the chart if no values file is set.
        files = _read_values(chart, "values.yaml", field)
    return merge_maps(inline, files)


def _read_values(files: FileTree, path: str, field: str) -> dict[str, Any]:
    if path not in files:
        raise FieldError(f'{field}: the package contains no file "{path}"')
    document = read_values_document(files[path].data)
    if isinstance(document, ParseFailure):
        raise FieldError(f"{field}: {path}:{document.line}: {document.message}")
    return document.data if document else {}


def _resolve(path: str, field: str, context: FunctionContext) -> str:
    """Return a path relative to the root package. Raises FieldError for a URL and for a path outside of the package."""
    normalized = normpath(path)
    if "://" in path or path.startswith("/") or normalized.split("/")[0] == "..":
        raise FieldError(f'{field} must be a path in the package, but is "{path}": {INSTEAD}')
    return normpath(join(context.package, path))


def _create_item(document: Document, package: str) -> Item:
    return Item(package, "", -1, document.data)


def _create_result(finding: Finding) -> FunctionResult:
    return FunctionResult(finding.message, "warning" if finding.severity == Severity.WARNING else "info")


def _create_failure(items: Sequence[Item], errors: Sequence[Finding]) -> FunctionOutput:
    message = join_messages(error.message for error in errors)
    if any(error.code in TEMPORARY_CODES for error in errors):
        raise InterruptedFunctionError(message)
    return create_failure(items, message)
