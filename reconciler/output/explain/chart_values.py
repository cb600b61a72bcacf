"""Explanation of the values of charts: the layers of each value, from the defaults of the chart upward."""

from __future__ import annotations

from collections.abc import Sequence

from reconciler.catalog.files import FileTree
from reconciler.controllers.provenance import get_operation, redact_value
from reconciler.krm.helm_paths import check_option_name, parse_option_name
from reconciler.krm.json_pointer import PointerError, format_pointer, parse_pointer
from reconciler.lazy_dataclasses import replace
from reconciler.output.explain.ablation import MAX_ABLATED_VALUES
from reconciler.output.explain.builder import format_closest_names, parse_data_path
from reconciler.output.explain.model import (
    ExplainedValue,
    FieldDependencies,
    PackageExplanation,
    ValueNotFoundError,
    ValueStep,
)
from reconciler.packages.charts import value_history
from reconciler.packages.charts.values import ValuesLayer, format_values_path
from reconciler.packages.package import Package
from reconciler.planning.attribution.explained_sources import ExplainedChart
from reconciler.planning.attribution.re_render import ReRenderedPackage
from reconciler.planning.attribution.value_dependencies import FieldReference, find_value_dependencies
from reconciler.planning.model.sources import SourceContent, SourceFailedError


def explain_chart_values(package: ReRenderedPackage, location: str, source: str = "") -> PackageExplanation:
    """Return the explanation of the values of the charts of a package.

    Args:
        location: A path in the syntax of `helm --set`, or a JSON pointer. It selects a value, all values below it, or
            the list that contains it. "" selects all values.
        source: The name of the source whose chart is explained. "" selects all charts.

    Raises:
        ValueNotFoundError: The package has no such chart, a chart cannot be read, no layer sets a value at the
            location, or the charts of several sources have a value at the location.
    """
    charts = _select_charts(package, source)
    segments = _parse_location(location, package)
    histories = {chart.source.name: value_history.trace_values(_read_layers(package, chart)) for chart in charts}
    found = {
        name: selected
        for name, values in histories.items()
        if (selected := [history for history in values if _is_selected(history.path, segments)])
    }
    if not found:
        paths = [format_values_path(history.path) for values in histories.values() for history in values]
        names = format_closest_names(location, paths)
        subject = f"the value {location}" if location else "a value"
        raise ValueNotFoundError(
            f"{package.target}: no layer sets {subject}; existing values, closest match first: {names}"
        )
    if location and len(found) > 1:
        raise ValueNotFoundError(
            f"{package.target}: the charts of several sources have the value {location}; select one source with"
            f" --source (sources: {', '.join(found)})"
        )
    values = (_build_value(history, name) for name, selected in found.items() for history in selected)
    return PackageExplanation(package, tuple(values))


def _select_charts(package: ReRenderedPackage, source: str) -> Sequence[ExplainedChart]:
    charts = package.sources.charts if package.sources else ()
    if not charts:
        reason = f"the package is blocked: {package.blocked_reason}" if package.blocked_reason else "it has no chart"
        step = _format_next_step(package) if package.blocked_reason else ""
        raise ValueNotFoundError(f"{package.target}: the values of the package are unknown, because {reason}{step}")
    names = [chart.source.name for chart in charts if chart.source.name]
    if source and not names:
        raise ValueNotFoundError(f"{package.target}: --source {source}: the package has only one source; omit --source")
    if source and source not in names:
        raise ValueNotFoundError(
            f"{package.target}: --source {source}: the package has no source with this name and a chart; sources with"
            f" charts: {', '.join(names)}"
        )
    return [chart for chart in charts if source in ("", chart.source.name)]


def _read_layers(package: ReRenderedPackage, chart: ExplainedChart) -> tuple[ValuesLayer, ...]:
    try:
        return chart.layers
    except SourceFailedError as error:
        step = _format_next_step(package)
        raise ValueNotFoundError(f"{package.target}: the chart cannot be read: {error}{step}") from error


def _format_next_step(package: ReRenderedPackage) -> str:
    """Return the next step for a chart that cannot be read at an earlier commit. Return "" for the current commit."""
    if not package.commit:
        return ""
    return " (next step: make the recorded input available again, or omit --at to explain the current values)"


def add_field_dependencies(explanation: PackageExplanation, limit: int) -> PackageExplanation:
    """To each field that a chart creates, add the chart values on which the field depends.

    Args:
        limit: The maximum number of renders for each field.
    """
    sources = explanation.package.sources
    content = sources.content if sources and sources.charts else None
    if sources is None or content is None or len(explanation.values) > MAX_ABLATED_VALUES:
        return explanation
    values = (
        _add_dependencies(value, chart, content, limit) if (chart := sources.find_chart(value.file)) else value
        for value in explanation.values
    )
    return replace(explanation, values=tuple(values))


def _add_dependencies(
    value: ExplainedValue, chart: ExplainedChart, content: SourceContent, limit: int
) -> ExplainedValue:
    files, template = content.files, chart.files.get(content.templates.get(value.file, ""))
    resources = Package(FileTree({value.file: files[value.file]})).resources if value.file in files else ()
    resource = next(iter(resources), None)
    if resource is None or template is None:
        return value
    reference = FieldReference(resource.key.reference, parse_data_path(value.pointer, resource.data))
    text = template.data.decode(errors="replace")
    found = find_value_dependencies(chart.layers, text, reference, chart.render, limit)
    unknown = tuple(format_values_path(history.path) for history in found.unknown)
    values = tuple(_build_value(history, chart.source.name) for history in found.found)
    return replace(value, dependencies=FieldDependencies(values, unknown, found.unchecked_count))


def _parse_location(location: str, package: ReRenderedPackage) -> tuple[str, ...]:
    if location.startswith("/"):
        try:
            return parse_pointer(location)
        except PointerError as error:
            raise ValueNotFoundError(f"{package.target}: {error}") from error
    if location and (reason := check_option_name(location)):
        raise ValueNotFoundError(f"{package.target}: the path of a value {reason}: {location}")
    return tuple(str(step) for step in parse_option_name(location)) if location else ()


def _is_selected(path: Sequence[str | int], segments: Sequence[str]) -> bool:
    return all(str(step) == segment for step, segment in zip(path, segments, strict=False))


def _build_value(history: value_history.ValueHistory, source: str) -> ExplainedValue:
    steps = tuple(map(_build_step, history.steps))
    option = format_values_path(history.path)
    return ExplainedValue("", "", format_pointer(history.path), steps, option, source=source)


def _build_step(step: value_history.ValueStep) -> ValueStep:
    layer = step.layer
    built = ValueStep(
        layer.source, get_operation(step.before, step.after), redact_value(step.before, hides=False),
        redact_value(step.after, hides=False), layer.kind, layer.file, step.line, layer.field_path,
        commit=layer.revision,
    )  # fmt: skip
    return replace(built, expression=layer.expression) if layer.expression else built
