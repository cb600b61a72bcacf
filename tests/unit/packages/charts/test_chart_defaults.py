"""Tests of the default values of charts and subcharts."""

from __future__ import annotations

from typing import Any

from reconciler.catalog.files import File, FileTree
from reconciler.packages.charts.chart_defaults import list_chart_layers
from reconciler.packages.charts.values import merge_layers
from tests.support.charts import read_source


def build_chart(**changes: str) -> FileTree:
    return FileTree(
        {
            path: File(text.encode())
            for path, text in {**read_source("subcharts"), "charts/packed.tgz": "", **changes}.items()
        }
    )


def list_origins(chart: FileTree) -> list[tuple[Any, ...]]:
    return [(layer.target, layer.file, layer.find_line(("size",))) for layer in list_chart_layers(chart, "sha256:1")]


def test_layers() -> None:
    """The values of a subchart are below its aliases or its name, and the chart overrides them."""
    assert list_origins(build_chart()) == [
        (("redis",), "charts/cache/values.yaml", 1),
        (("orders", "lib"), "charts/db/charts/lib/values.yaml", 1),
        (("orders",), "charts/db/values.yaml", 2),
        (("users", "lib"), "charts/db/charts/lib/values.yaml", 1),
        (("users",), "charts/db/values.yaml", 2),
        ((), "values.yaml", 1),
    ]
    assert merge_layers(list_chart_layers(build_chart(), "")).values == {
        "redis": {"port": 6379},
        "orders": {"lib": {"debug": False}, "size": 5},
        "users": {"lib": {"debug": False}, "size": 1},
        "replicas": 1,
    }


def test_chart_without_readable_values() -> None:
    """Values that are absent, empty or invalid are no layer. The render of the chart reports the error."""
    for text in ("", "[1]", "{"):
        chart = FileTree({"Chart.yaml": File(b"{name: a, version: 1.0.0}"), "values.yaml": File(text.encode())})
        assert list_chart_layers(chart, "") == ()
    assert list_chart_layers(FileTree(), "") == ()
