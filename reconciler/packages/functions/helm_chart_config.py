"""The configuration of the function `render-helm-chart`, and the charts that it requires from chart repositories.

This module is used before a render. Therefore, it does not import the engine for charts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from posixpath import normpath
from typing import Any, Final

from reconciler.api.functions import HelmChartEntry, RenderHelmChart
from reconciler.api.kpt import FunctionSpec
from reconciler.catalog.files import FileTree
from reconciler.krm.json_text import compute_hash
from reconciler.krm.version_ranges import is_exact_version
from reconciler.packages.charts.dependencies import RequiredChart
from reconciler.packages.functions.function import (
    FieldError,
    FunctionConfig,
    read_config_object,
    read_config_strings,
)
from reconciler.packages.functions.registry import split_image
from reconciler.packages.kptfile import Kptfile
from reconciler.packages.package import CHART_FUNCTION, Package, join_path, parse_documents
from reconciler.packages.parsing import ParseFailure

INSTEAD: Final = "use the chart as an upstream, with spec.upstream.chart of a PackageVariant"
_BOOLEANS = {"true": True, "false": False}
_OCI = "oci://"
_URL_STARTS = ("https://", "http://", _OCI)
_HASH_LENGTH = 16


def read_chart_config(config: FunctionConfig | None) -> RenderHelmChart:
    """Return the configuration. Raises FieldError."""
    kind, api_version = (config or {}).get("kind"), str((config or {}).get("apiVersion", ""))
    if config and (api_version, kind) == ("v1", "ConfigMap"):
        config = _convert_config_map(read_config_strings(config.get("data"), "data"))
    elif not config or (api_version.partition("/")[0], kind) != ("fn.kpt.dev", "RenderHelmChart"):
        raise FieldError(
            f'the configuration must be a ConfigMap or a RenderHelmChart of fn.kpt.dev, but is "{kind or ""}"'
        )
    settings = read_config_object(RenderHelmChart, config)
    if not settings.helm_charts:
        raise FieldError("the configuration's helmCharts must contain a chart")
    for field, value in _iterate_unsupported(settings):
        if value:
            raise FieldError(f"the configuration's {field} is not supported: {INSTEAD}")
    return settings


def _convert_config_map(data: Mapping[str, str]) -> dict[str, Any]:
    globals_ = {name: data[name] for name in ("chartHome", "configHome") if name in data}
    arguments = {name: data[name] for name in ("name", "version", "repo", "registry") if name in data}
    options: dict[str, Any] = {
        name: data[name] for name in ("releaseName", "namespace", "nameTemplate") if name in data
    }
    for name in ("includeCRDs", "skipTests"):
        if name in data:
            options[name] = _BOOLEANS.get(data[name], data[name])
    if "valuesFile" in data:
        options["values"] = {"valuesFiles": [data["valuesFile"]]}
    entry = {"chartArgs": arguments, "templateOptions": options}
    return {
        "apiVersion": "fn.kpt.dev/v1alpha1", "kind": "RenderHelmChart", "helmGlobals": globals_, "helmCharts": [entry],
    }  # fmt: skip


def _iterate_unsupported(settings: RenderHelmChart) -> Iterator[tuple[str, object]]:
    yield "helmGlobals.configHome", settings.helm_globals.config_home
    for index, entry in enumerate(settings.helm_charts):
        yield f"helmCharts[{index}].chartArgs.auth", entry.chart_args.auth
        yield f"helmCharts[{index}].templateOptions.nameTemplate", entry.template_options.name_template


def read_repository_chart(entry: HelmChartEntry, index: int) -> RequiredChart | None:
    """Return the chart that an entry requires from a chart repository or an OCI registry.

    Return None if the chart is in the package.

    Raises:
        FieldError: A field of the entry is invalid.
    """
    arguments, field = entry.chart_args, f"helmCharts[{index}].chartArgs"
    if arguments.repo and arguments.registry:
        raise FieldError(f"{field} must contain only one of repo and registry")
    registry = arguments.registry if "://" in arguments.registry else f"{_OCI}{arguments.registry}"
    url = arguments.repo or (registry if arguments.registry else "")
    if not url:
        return None
    name = "repo" if arguments.repo else "registry"
    if not url.startswith(_URL_STARTS):
        raise FieldError(f'{field}.{name} must be the URL of a Repository with type helm, but is "{url}"')
    if not is_exact_version(arguments.version):
        raise FieldError(f'{field}.version must be an exact version, such as "1.2.3", but is "{arguments.version}"')
    # Two different charts of a package must not have the same folder. Therefore, the folder contains the URL (as a
    # hash), the name and the version.
    folder = f"{compute_hash(url.rstrip('/'))[:_HASH_LENGTH]}/{arguments.name}-{arguments.version}"
    return RequiredChart(arguments.name, arguments.version, url, folder, field, "the package")


def find_required_charts(files: FileTree, functions: Iterable[FunctionSpec]) -> tuple[RequiredChart, ...]:
    """Return the charts that a package requires from chart repositories or OCI registries.

    The package requires these charts with `render-helm-chart` entries in its pipelines. Errors in the configurations of
    these entries are not reported here, because the function itself reports them.

    Args:
        functions: Additional pipeline entries, which belong to the root package.
    """
    charts = (
        chart
        for package, spec in _iterate_functions(files, functions)
        if not spec.exec and split_image(spec.image)[0] == CHART_FUNCTION
        for chart in _read_charts(files, package, spec)
    )
    return tuple(dict.fromkeys(charts))


def _iterate_functions(files: FileTree, functions: Iterable[FunctionSpec]) -> Iterator[tuple[str, FunctionSpec]]:
    """Yield each pipeline entry with the path of its package."""
    package = Package(files)
    for path in ("", *package.subpackages):
        kptfile = package.read_kptfile_of(path)
        if isinstance(kptfile, Kptfile):
            pipeline = kptfile.pipeline
            yield from ((path, spec) for spec in (*pipeline.mutators, *pipeline.validators))
    yield from (("", spec) for spec in functions)


def _read_charts(files: FileTree, package: str, spec: FunctionSpec) -> Iterator[RequiredChart]:
    try:
        settings = read_chart_config(_read_function_config(files, package, spec))
    except FieldError:
        return
    for index, entry in enumerate(settings.helm_charts):
        try:
            chart = read_repository_chart(entry, index)
        except FieldError:
            continue
        if chart:
            yield chart


def _read_function_config(files: FileTree, package: str, spec: FunctionSpec) -> FunctionConfig | None:
    if spec.config_path is None:
        return {"apiVersion": "v1", "kind": "ConfigMap", "data": dict(spec.config_map or {})}
    path = join_path(package, normpath(spec.config_path))
    documents = parse_documents(path, files[path].data) if path in files else ()
    if isinstance(documents, ParseFailure) or len(documents) != 1 or not isinstance(documents[0].data, dict):
        return None
    return documents[0].data
