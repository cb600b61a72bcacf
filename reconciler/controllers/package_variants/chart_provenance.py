"""Provenance of the values of a chart: the layers of each value, for status files."""

from __future__ import annotations

from typing import Any

from reconciler.catalog.catalog import ConfigObject
from reconciler.controllers.provenance import describe_objects, get_operation, redact_value
from reconciler.krm.json_pointer import format_pointer
from reconciler.krm.merge3.rules import ABSENT
from reconciler.lazy_dataclasses import dataclass
from reconciler.packages.charts.value_history import ValueHistory, ValueStep, trace_values
from reconciler.packages.charts.value_sources import ChartValues
from reconciler.packages.charts.values import format_values_path


@dataclass(frozen=True)
class ChartProvenance:
    """Provenance of the values of all charts in a package.

    At first, the values from files in charts and sources are missing. The render adds them.

    Attributes:
        values: The values of each chart.
        objects: The config objects that contain values.
    """

    values: tuple[ChartValues, ...]
    objects: tuple[ConfigObject, ...] = ()

    def list_layers(self) -> list[dict[str, Any]]:
        """Return the field `layers` of the status file: the layers of each value, without the defaults of charts."""
        return [_format_history(history) for chart in self.values for history in trace_values(chart.config_layers)]

    def list_applied_overrides(self) -> list[dict[str, str]]:
        """Return an empty list, because charts have no overrides of options."""
        return []

    def list_objects(self) -> list[dict[str, str]]:
        """Return the objects that contain values, in the format of status files."""
        return describe_objects({found: found.digest for found in self.objects})


def _format_history(history: ValueHistory) -> dict[str, Any]:
    return {
        "pointer": format_pointer(history.path),
        "option": format_values_path(history.path),
        "steps": [_format_step(step) for step in history.steps],
    }


def _format_step(step: ValueStep) -> dict[str, Any]:
    # Omit the line and the commit of a layer, because they can change although the package does not change.
    layer = step.layer
    data = {
        "layer": layer.kind,
        "by": layer.source,
        "file": layer.file,
        "where": layer.field_path,
        "op": get_operation(step.before, step.after),
        "before": redact_value(step.before, hides=False),
        "after": redact_value(step.after, hides=False),
        "expression": layer.expression or ABSENT,
    }
    return {name: value for name, value in data.items() if value is not ABSENT and value != ""}
