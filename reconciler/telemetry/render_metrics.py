"""Measurements of renders and function calls, for metrics and traces.

Worker processes return their measurements with the rendered packages.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from reconciler.telemetry import metrics
from reconciler.telemetry.traces import EndedSpan, add_render_span

_CONTROLLERS = {
    "config.porch.kpt.dev": "package_variants",
    "greenhouse.sap": "plugin_presets",
    "platform": "components",
    "reconciler.dev": "placement",
}


class FunctionCall(NamedTuple):
    """One call of a function. `runtime` and `result` are label values of the metric.

    Attributes:
        name: The image or the program of the function.
        started_at: The start of the call, in seconds since 1970.
    """

    runtime: str
    result: str
    seconds: float
    name: str = ""
    started_at: float = 0.0


class RenderTiming(NamedTuple):
    """The duration of one render, its start in seconds since 1970, and its function calls."""

    started_at: float
    seconds: float
    function_calls: tuple[FunctionCall, ...] = ()


_collected: list[FunctionCall] | None = None


@contextmanager
def collect_function_calls() -> Iterator[list[FunctionCall]]:
    """Collect the function calls in the `with` block instead of exporting them."""
    global _collected  # noqa: PLW0603 - a process renders one package at a time
    _collected = []
    try:
        yield _collected
    finally:
        _collected = None


def record_function_calls(calls: Iterable[FunctionCall]) -> None:
    """Export calls of functions, or collect them inside of `collect_function_calls`."""
    for call in calls:
        if _collected is not None:
            _collected.append(call)
        else:
            metrics.FUNCTION_DURATION.observe(call.seconds, call.runtime, call.result)


def record_render(owner_group: str, timing: RenderTiming, *, has_failed: bool) -> None:
    """Export the render of one package. `owner_group` is the API group of the object that requests the package."""
    metrics.RENDERS.add("failed" if has_failed else "rendered")
    metrics.RENDER_DURATION.observe(timing.seconds, _CONTROLLERS.get(owner_group, "package_variants"))


def trace_render(package: str, timing: RenderTiming) -> None:
    """Add the render of a package to the trace of the running pass. `package` is `target/package`."""
    calls = [
        EndedSpan(
            f"reconciler.function {call.name}",
            call.started_at,
            call.seconds,
            {"function.runtime": call.runtime, "function.result": call.result},
        )
        for call in timing.function_calls
    ]
    add_render_span(EndedSpan(f"reconciler.render {package}", timing.started_at, timing.seconds, {}, calls))
