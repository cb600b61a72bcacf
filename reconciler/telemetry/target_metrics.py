"""Metrics of single targets, which the setting `metrics.per_target` turns on.

All series come from one immutable snapshot. A removed target therefore has no series.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from reconciler.lazy_dataclasses import dataclass
from reconciler.telemetry.event_log import log

if TYPE_CHECKING:
    from prometheus_client import Metric


@dataclass(frozen=True)
class TargetNumbers:
    """The state of one target, and the number of its packages by state."""

    name: str
    state: str
    packages: Mapping[str, int]


class TargetMetrics:
    """A collector of `prometheus_client` for the targets of the last pass."""

    def __init__(self) -> None:
        self._max_targets = 0
        self._targets: Sequence[TargetNumbers] = ()
        self._is_limited = False

    def set_limit(self, max_targets: int) -> None:
        """Export up to `max_targets` targets. 0 exports none."""
        self._max_targets = max_targets
        self._is_limited = False
        self._targets = ()

    def update(self, targets: Sequence[TargetNumbers]) -> None:
        """Replace the exported targets. If there are more than the limit, export none, and log this once."""
        if self._max_targets and len(targets) > self._max_targets:
            if not self._is_limited:
                log.warning("metrics_limited", targets=len(targets), max_targets=self._max_targets)
            self._is_limited, self._targets = True, ()
            return
        self._is_limited = False
        self._targets = targets if self._max_targets else ()

    def describe(self) -> Iterator[Metric]:
        """Return the metrics without values. The registry calls this method when the export starts."""
        return self._collect(())

    def collect(self) -> Iterator[Metric]:
        """Return the metrics of all targets, for one request of the path `/metrics`."""
        return self._collect(self._targets)

    def _collect(self, targets: Sequence[TargetNumbers]) -> Iterator[Metric]:
        from prometheus_client.core import GaugeMetricFamily

        info = GaugeMetricFamily(
            "reconciler_target_info", "The state of each target. The value is always 1.", labels=["target", "state"]
        )
        packages = GaugeMetricFamily(
            "reconciler_target_packages", "The number of packages of each target.", labels=["target", "state"]
        )
        for target in targets:
            info.add_metric([target.name, target.state], 1)
            for state, count in target.packages.items():
                packages.add_metric([target.name, state], count)
        if targets:
            yield info
            yield packages


TARGET_METRICS = TargetMetrics()
