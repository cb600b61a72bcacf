"""The generated reference page of metrics. Its tables come from `reconciler/telemetry/metrics.py`."""

from __future__ import annotations

from collections.abc import Iterator

from kind_pages import GENERATED

from reconciler.telemetry.instruments import Instrument, LabelValues
from reconciler.telemetry.metrics import REGISTRY

_INTRODUCTION = """\
# Metrics

The daemon exports metrics at the path `/metrics` of its [HTTP server](settings.md#server). The guide
[Observe the service](../how-to/observe.md) describes how Prometheus reads them. The format is OpenMetrics if the header
`Accept` of the request contains `application/openmetrics-text`. Otherwise, it is the Prometheus text format.

- The names, the labels and the values of labels are [stable interfaces](compatibility.md#interfaces).
- No label contains a package, an object or a commit.
- All series with fixed values of labels exist when the daemon starts.
- If a metric contains a time, its first value is the start time of the daemon. The description names exceptions.

The daemon also exports the metrics `process_*` and `python_gc_*` of the Prometheus client library.

## Values of labels

The tables below list the values of labels with fixed values. The other labels have these values:

| label | values |
|---|---|
| `channel` | The name of the channel in the setting `notifications.channels`. At most 20 values, and `other`. |
| `code` of `reconciler_findings` | The code of the [finding](findings.md). At most 160 values, and `other`. |
| `code` of `reconciler_http_requests_total` | The status of the response. At most 20 values, and `other`. |
| `event` | The name of the [notification event](notifications.md). |
| `host` | The host of the forge, chart repository or registry. At most 20 or 50 values, and `other`. |
| `python`, `revision` | The version of Python. The Git commit that the program was installed from, or `unknown`. |
| `remote` of `reconciler_credential_expiry_timestamp_seconds` | The host of the forge, or `server`. |
| `remote` | The value that the setting [`metrics.remote_label`](settings.md#metrics) selects. |
| `resource` | The name of a rate limit of the forge, such as `core`. At most 10 values, and `other`. |
| `route` | The [path](http.md#paths) of the request, or `unmatched`. |
| `version` | The version of the program. |
"""
_TARGETS = """\
## Single targets

These metrics exist only with the setting [`metrics.per_target`](settings.md#metrics). If there are more targets than
`metrics.max_targets`, the daemon logs `metrics_limited` and exports none of them.

| metric | type | labels | meaning |
|---|---|---|---|
| `reconciler_target_info` | gauge | `target`, `state` | The state of each target. The value is always 1. |
| `reconciler_target_packages` | gauge | `target`, `state` | The number of packages of each target. |
"""


def build_metrics_page() -> str:
    """Return the text of the page."""
    rows = [_format_row(instrument) for instrument in REGISTRY.instruments]
    table = ["| metric | type | labels | meaning |", "|---|---|---|---|", *rows]
    return "\n".join([GENERATED, "", _INTRODUCTION, "## All metrics", "", *table, "", _TARGETS])


def _format_row(instrument: Instrument) -> str:
    labels = "; ".join(_format_labels(instrument))
    kind = instrument.prometheus_type.lower()
    return f"| `{instrument.name}` | {kind} | {labels} | {instrument.description} |"


def _format_labels(instrument: Instrument) -> Iterator[str]:
    for name, label in instrument.labels.items():
        has_list = not isinstance(label, LabelValues) and name != "version"
        yield f"`{name}`: {', '.join(f'`{value}`' for value in label)}" if has_list else f"`{name}`"
