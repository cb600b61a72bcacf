"""The chart of a package, for explanations: its files, the layers of its values, and renders with changed values."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from reconciler.catalog.files import FileTree
from reconciler.controllers.results import UpstreamPackage
from reconciler.lazy_dataclasses import dataclass, replace
from reconciler.packages.charts.chart_defaults import list_chart_layers
from reconciler.packages.charts.value_sources import CHART, ChartValues, ValuesSource
from reconciler.packages.charts.values import ValuesLayer
from reconciler.packages.package import join_path
from reconciler.planning.model.sources import PackageContentStore, SourceContent, SourceFailedError


@dataclass(frozen=True)
class ExplainedChart:
    """The chart of a package. The files and the render are read when they are used for the first time.

    The attributes `files` and `layers` raise SourceFailedError if the chart cannot be read.

    Attributes:
        config_commit: The commit of the config. "" if the config is a plain folder.
    """

    upstream: UpstreamPackage
    contents: PackageContentStore
    config_commit: str

    @cached_property
    def files(self) -> FileTree:
        """The files of the chart."""
        return self.contents.read_unrendered_source(self.upstream)

    @cached_property
    def layers(self) -> tuple[ValuesLayer, ...]:
        """The layers of values, from the defaults of subcharts to the parameters of the PackageVariant."""
        upstream = self.upstream
        resolved = upstream.values.resolve({CHART: ValuesSource(self.files, upstream.commit)})
        defaults = list_chart_layers(self.files, f"{upstream.repository}/{upstream.package} {upstream.ref}")
        return tuple(map(self._add_revision, (*defaults, *resolved.layers)))

    def _add_revision(self, layer: ValuesLayer) -> ValuesLayer:
        """Add the commit or digest of the file."""
        if layer.revision or layer.kind == "chart-default":
            return replace(
                layer, file=join_path(self.upstream.directory, layer.file), revision=str(self.upstream.commit)
            )
        return replace(layer, revision=self.config_commit)

    @cached_property
    def content(self) -> SourceContent | None:
        """The rendered chart. None if the chart cannot be rendered."""
        return self._render(self.upstream.values)

    @property
    def templates(self) -> Mapping[str, str]:
        """The template file that wrote each file of the package. {} if the chart cannot be rendered."""
        return self.content.templates if self.content else {}

    def render(self, values: dict[str, Any]) -> FileTree | None:
        """Return the files of the package for other values. Return None if the chart cannot be rendered with them."""
        content = self._render(ChartValues((ValuesLayer("values", "", values),)))
        return content.files if content else None

    def _render(self, values: ChartValues) -> SourceContent | None:
        try:
            return self.contents.read_source(replace(self.upstream, values=values))
        except SourceFailedError:
            return None


def find_explained_chart(source: object, contents: PackageContentStore, config_commit: str) -> ExplainedChart | None:
    """Return the chart of a package. Return None for a package without a chart."""
    if not isinstance(source, UpstreamPackage) or source.chart is None:
        return None
    return ExplainedChart(source, contents, config_commit)
