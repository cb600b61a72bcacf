"""All metrics of the daemon. The page `docs/reference/metrics.md` describes them.

Names, labels and label values are part of the API. Labels never contain a package, an object, a commit or a URL.
"""

from __future__ import annotations

import time

from reconciler import __version__
from reconciler.telemetry.instruments import LabelValues, MetricRegistry

REGISTRY = MetricRegistry(time.time)

BUILD_INFO = REGISTRY.gauge(
    "reconciler_build_info",
    "The version of the program, its Git commit, and the version of Python. The value is always 1.",
    version=(__version__,),
    revision=LabelValues(1),
    python=LabelValues(1),
)
SHARD_INDEX = REGISTRY.gauge("reconciler_shard_index", "The number of the shard of this process, starting at 1.")
SHARD_COUNT = REGISTRY.gauge("reconciler_shard_count", "The number of shards.")


def render_metrics(accept: str) -> tuple[bytes, str]:
    """Return the current values of all metrics, and their content type.

    Args:
        accept: The header `Accept` of the request. It selects OpenMetrics or the Prometheus text format.
    """
    return REGISTRY.render(accept)
