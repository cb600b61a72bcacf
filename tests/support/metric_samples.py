"""Reads exported metrics in tests."""

from __future__ import annotations

from reconciler.telemetry.metrics import render_metrics


def read_metric(name: str) -> dict[str, float]:
    """Return the values of one metric by its labels, such as `{state="ready"}`. Values of 0 are omitted."""
    lines = [line for line in render_metrics("")[0].decode().splitlines() if line.startswith((f"{name}{{", f"{name} "))]
    values = {line.rpartition(" ")[0].removeprefix(name): float(line.rpartition(" ")[2]) for line in lines}
    return {labels: value for labels, value in values.items() if value}
