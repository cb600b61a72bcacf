"""The sources of a package, for explanations: the origin of each file, and the charts with the layers of their values.

The files and renders of a source are read when they are used for the first time.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, Protocol

from reconciler.catalog.files import FileTree
from reconciler.controllers.results import PackageSource, UpstreamPackage
from reconciler.lazy_dataclasses import dataclass, replace
from reconciler.packages.charts.chart_defaults import list_chart_layers
from reconciler.packages.charts.value_sources import CHART, ChartValues, ValuesSource
from reconciler.packages.charts.values import ValuesLayer
from reconciler.packages.kptfile import KPTFILE
from reconciler.packages.package import join_path
from reconciler.planning.model.sources import SourceContent, SourceFailedError


class SourceReader(Protocol):
    """Reads the sources of packages."""

    def read_source(self, upstream: UpstreamPackage) -> SourceContent:
        """Return the rendered files of an upstream package. Raises SourceFailedError."""
        ...

    def read_unrendered_source(self, upstream: UpstreamPackage) -> FileTree:
        """Return the files of an upstream package before a render. Raises SourceFailedError."""
        ...


@dataclass(frozen=True)
class FileOrigin:
    """The origin of a file of a package.

    Attributes:
        source: The source that contains the file. The name is "" for a package with one upstream.
        file: The file in the repository of the source: the template of a chart, or the copied file. "" if it is not
            known, and for an overlay.
        is_copied: Whether the file is copied, so that a field has the same line in both files.
    """

    source: PackageSource
    file: str
    is_copied: bool = False

    @property
    def title(self) -> str:
        """The source with its version, for messages."""
        upstream, name = self.source.upstream, self.source.name
        prefix = f"source {name}: " if name else ""
        overlay = f", {upstream.overlay.label}" if upstream.overlay else ""
        return f"{prefix}{upstream.title} {upstream.ref}{overlay}"


@dataclass(frozen=True)
class ExplainedSources:
    """All sources of a package.

    Attributes:
        config_commit: The commit of the config. "" if the config is a plain folder.
    """

    upstream: UpstreamPackage
    reader: SourceReader
    config_commit: str

    @cached_property
    def files(self) -> FileTree:
        """The files of all sources before a render. Raises SourceFailedError if a source cannot be read."""
        return self.reader.read_unrendered_source(self.upstream)

    @cached_property
    def content(self) -> SourceContent | None:
        """The rendered sources. None if a source cannot be rendered."""
        try:
            return self.reader.read_source(self.upstream)
        except SourceFailedError:
            return None

    @cached_property
    def charts(self) -> tuple[ExplainedChart, ...]:
        """The charts, in the order of the sources."""
        return tuple(ExplainedChart(source, self) for source in self._sources.values() if source.upstream.chart)

    @cached_property
    def _sources(self) -> Mapping[str, PackageSource]:
        """The sources by name, as in `UpstreamPackage.named_packages`."""
        return {source.name: source for source in self.upstream.named_packages}

    def find_origin(self, file: str) -> FileOrigin | None:
        """Return the origin of a file of the package before local changes. Return None if no source contains it."""
        source = self._find_source(file)
        if source is None:
            return None
        upstream = source.upstream
        if upstream.chart:
            # Keep `is_copied` False, because a field of the rendered file has no fixed line in the template: templates
            # are programs.
            template = self.content.templates.get(file, "") if self.content else ""
            return FileOrigin(source, join_path(upstream.directory, template) if template else "")
        if upstream.overlay:
            return FileOrigin(source, "")
        folder = f"{source.directory}/" if source.directory and file != KPTFILE else ""
        return FileOrigin(source, join_path(upstream.directory, file.removeprefix(folder)), is_copied=True)

    def _find_source(self, file: str) -> PackageSource | None:
        if not self.upstream.sources:
            return self._sources[""]
        return self._sources.get(self.content.source_names.get(file, "")) if self.content else None

    def find_chart(self, file: str) -> ExplainedChart | None:
        """Return the chart whose render contains a file of the package. Return None for other files."""
        source = self._find_source(file)
        return next((chart for chart in self.charts if chart.source is source), None)


@dataclass(frozen=True)
class ExplainedChart:
    """One chart of a package.

    The attributes `files` and `layers` raise SourceFailedError if the chart cannot be read.
    """

    source: PackageSource
    package: ExplainedSources

    @cached_property
    def files(self) -> FileTree:
        """The files of the chart."""
        return self._read_files(self.source)

    def _read_files(self, source: PackageSource) -> FileTree:
        return self.package.files.subtree(source.name) if source.name else self.package.files

    @cached_property
    def layers(self) -> tuple[ValuesLayer, ...]:
        """The layers of values, from the defaults of subcharts to the parameters of the PackageVariant."""
        upstream = self.source.upstream
        sources = {source.name: self._build_values_source(source) for source in self.package.upstream.sources}
        resolved = upstream.values.resolve({**sources, CHART: self._build_values_source(self.source)})
        defaults = list_chart_layers(self.files, f"{upstream.title} {upstream.ref}")
        return (*map(self._locate_default, defaults), *map(self._add_config_commit, resolved.layers))

    def _build_values_source(self, source: PackageSource) -> ValuesSource:
        return ValuesSource(self._read_files(source), source.upstream.commit, source.upstream.directory)

    def _locate_default(self, layer: ValuesLayer) -> ValuesLayer:
        upstream = self.source.upstream
        return replace(layer, file=join_path(upstream.directory, layer.file), revision=str(upstream.commit))

    def _add_config_commit(self, layer: ValuesLayer) -> ValuesLayer:
        return layer if layer.revision else replace(layer, revision=self.package.config_commit)

    def render(self, values: dict[str, Any]) -> FileTree | None:
        """Render the chart with these values, and return the files. Return None if this render fails."""
        upstream = replace(self.source.upstream, values=ChartValues((ValuesLayer("values", "", values),)))
        try:
            return self.package.reader.read_source(upstream).files
        except SourceFailedError:
            return None


def find_explained_sources(source: object, reader: SourceReader, config_commit: str) -> ExplainedSources | None:
    """Return the sources of a package. Return None for a package without an upstream."""
    return ExplainedSources(source, reader, config_commit) if isinstance(source, UpstreamPackage) else None
