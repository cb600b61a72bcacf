"""The default values of a chart and its subcharts, as layers of values."""

from __future__ import annotations

from collections.abc import Iterator

from reconciler.api.helm import ChartManifest
from reconciler.catalog.files import FileTree
from reconciler.lazy_dataclasses import replace
from reconciler.packages.charts.metadata import read_chart_manifest
from reconciler.packages.charts.value_sources import DocumentLines, read_values_document
from reconciler.packages.charts.values import ValuesLayer
from reconciler.packages.parsing import ParseFailure

VALUES_FILE = "values.yaml"
_SUBCHARTS = "charts/"


def list_chart_layers(chart: FileTree, source: str, folder: str = "") -> tuple[ValuesLayer, ...]:
    """Return the layers of default values, from the lowest to the highest precedence.

    The values of a subchart are below the name or the alias of the subchart. A chart overrides the values of its
    subcharts. Subcharts that a condition disables are included, and packed subcharts (`.tgz`) are not.

    Args:
        source: The name of the chart for messages.
        folder: The folder of the chart in its package, with "/" at its end, for the file names of subcharts.
    """
    return (*_iterate_subchart_layers(chart, source, folder), *_iterate_own_layer(chart, source, folder))


def _iterate_own_layer(chart: FileTree, source: str, folder: str) -> Iterator[ValuesLayer]:
    file = chart.get(VALUES_FILE)
    document = read_values_document(file.data) if file else None
    if document is not None and not isinstance(document, ParseFailure):
        lines = DocumentLines(document)
        yield ValuesLayer("chart-default", source, document.data, file=folder + VALUES_FILE, find_line=lines)


def _iterate_subchart_layers(chart: FileTree, source: str, folder: str) -> Iterator[ValuesLayer]:
    manifest = read_chart_manifest(chart)
    names = sorted({path.split("/")[1] for path in chart if path.startswith(_SUBCHARTS) and path.count("/") > 1})
    for name in names:
        path = f"{_SUBCHARTS}{name}"
        subchart = chart.subtree(path)
        subchart_manifest = read_chart_manifest(subchart)
        if isinstance(subchart_manifest, ChartManifest) and isinstance(manifest, ChartManifest):
            layers = list_chart_layers(subchart, source, f"{folder}{path}/")
            for key in _list_keys(manifest, subchart_manifest.name):
                yield from (replace(layer, target=(key, *layer.target)) for layer in layers)


def _list_keys(manifest: ChartManifest, name: str) -> list[str]:
    """Return the keys in the values of a chart that contain the values of one of its subcharts.

    Each dependency on the subchart has its own key: its alias, or the name of the subchart if it has no alias.
    """
    keys = [dependency.alias or name for dependency in manifest.dependencies if dependency.name == name]
    return keys or [name]
