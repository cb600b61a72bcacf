"""Metrics of renders and function calls. Worker processes return their measurements with the rendered packages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from reconciler.telemetry import metrics

_CONTROLLERS = {
    "config.porch.kpt.dev": "package_variants",
    "greenhouse.sap": "plugin_presets",
    "platform": "components",
    "reconciler.dev": "placement",
}


class FunctionCall(NamedTuple):
    """One call of a function. `runtime` and `result` are label values of the metric."""

    runtime: str
    result: str
    seconds: float


_collected: list[FunctionCall] | None = None


@contextmanager
def collect_function_calls() -> Iterator[list[FunctionCall]]:
    """Collect the calls of the `with` block instead of exporting them, in a worker process."""
    global _collected  # noqa: PLW0603 - a worker renders one package at a time
    _collected = []
    try:
        yield _collected
    finally:
        _collected = None


def record_function_calls(calls: Iterable[FunctionCall]) -> None:
    """Export calls of functions, or collect them in a worker process."""
    for call in calls:
        if _collected is not None:
            _collected.append(call)
        else:
            metrics.FUNCTION_DURATION.observe(call.seconds, call.runtime, call.result)


def record_render(owner_group: str, seconds: float, *, has_failed: bool) -> None:
    """Export the render of one package. `owner_group` is the API group of the object that requests the package."""
    metrics.RENDERS.add("failed" if has_failed else "rendered")
    metrics.RENDER_DURATION.observe(seconds, _CONTROLLERS.get(owner_group, "package_variants"))
