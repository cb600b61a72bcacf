"""Tests of metric types: series that exist from the start, limits of label values, and values outside of an export."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import pytest

from reconciler.telemetry.instruments import LabelValues, MetricRegistry

START = 1_700_000_000.0


@pytest.fixture
def registry() -> MetricRegistry:
    return MetricRegistry(lambda: START)


def read_samples(registry: MetricRegistry, name: str) -> list[str]:
    """Return the lines of one metric in the Prometheus text format."""
    text = registry.render("")[0].decode()
    return [line for line in text.splitlines() if line.startswith(name)]


def test_every_combination_of_fixed_labels_exists_at_the_start(registry: MetricRegistry) -> None:
    registry.counter("a_total", "Counts.", result=("ok", "failed"), via=("x", "y"))

    with registry.export():
        samples = read_samples(registry, "a_total")

    assert samples == [
        'a_total{result="ok",via="x"} 0.0',
        'a_total{result="ok",via="y"} 0.0',
        'a_total{result="failed",via="x"} 0.0',
        'a_total{result="failed",via="y"} 0.0',
    ]


def test_a_new_limited_value_creates_its_series_in_all_metrics(registry: MetricRegistry) -> None:
    hosts = LabelValues(2)
    counter = registry.counter("a_total", "Counts.", host=hosts, result=("ok", "failed"))
    registry.gauge("b", "Shows.", host=hosts)

    with registry.export():
        counter.add("one.example", "ok")
        samples = [*read_samples(registry, "a_total"), *read_samples(registry, "b{")]

    assert samples == [
        'a_total{host="one.example",result="ok"} 1.0',
        'a_total{host="one.example",result="failed"} 0.0',
        'b{host="one.example"} 0.0',
    ]


def test_values_above_the_limit_are_counted_together(registry: MetricRegistry) -> None:
    hosts = LabelValues(2)
    counter = registry.counter("a_total", "Counts.", host=hosts)

    with registry.export():
        for number in range(10_000):
            counter.add(f"host-{number}")
        samples = read_samples(registry, "a_total")

    assert samples == ['a_total{host="host-0"} 1.0', 'a_total{host="host-1"} 1.0', 'a_total{host="other"} 9998.0']


def test_cleared_values_make_room_for_new_values(registry: MetricRegistry) -> None:
    hosts = LabelValues(1)
    counter = registry.counter("a_total", "Counts.", host=hosts)
    fixed = registry.counter("b_total", "Counts.", result=("ok",))

    with registry.export():
        counter.add("one.example")
        fixed.add("ok")
        registry.clear_limited_series(hosts)
        counter.add("two.example")
        samples = [*read_samples(registry, "a_total"), *read_samples(registry, "b_total")]

    assert samples == ['a_total{host="two.example"} 1.0', 'b_total{result="ok"} 1.0']


def test_a_timestamp_starts_with_the_time_of_the_start(registry: MetricRegistry) -> None:
    gauge = registry.timestamp("a_timestamp_seconds", "Shows a time.", result=("ok", "failed"))

    with registry.export():
        gauge.set(START + 5, "ok")
        samples = read_samples(registry, "a_timestamp_seconds")

    assert samples == [
        'a_timestamp_seconds{result="ok"} 1.700000005e+09',
        'a_timestamp_seconds{result="failed"} 1.7e+09',
    ]


@pytest.mark.parametrize(
    "record",
    [
        pytest.param(lambda registry: registry.counter("a_total", "A.").add(), id="counter"),
        pytest.param(lambda registry: registry.gauge("a", "A.").set(3), id="gauge"),
        pytest.param(lambda registry: registry.gauge("a", "A.").add(3), id="gauge-add"),
        pytest.param(lambda registry: registry.histogram("a", "A.", (1,)).observe(3), id="histogram"),
    ],
)
def test_a_value_before_the_export_has_no_effect(
    registry: MetricRegistry, record: Callable[[MetricRegistry], None]
) -> None:
    record(registry)

    with registry.export():
        values = {line.rpartition(" ")[2] for line in read_samples(registry, "a")}

    assert values == {"0.0"}


def test_a_second_export_starts_again_with_zero(registry: MetricRegistry) -> None:
    counter = registry.counter("a_total", "Counts.")
    with registry.export():
        counter.add()
    counter.add()

    with registry.export():
        samples = read_samples(registry, "a_total")

    assert samples == ["a_total 0.0"]


@pytest.mark.parametrize(
    ("accept", "content_type", "has_exemplar"),
    [
        pytest.param("", "text/plain; version=0.0.4; charset=utf-8", False, id="nothing"),
        pytest.param("text/plain;version=0.0.4", "text/plain; version=0.0.4; charset=utf-8", False, id="text"),
        pytest.param(
            "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5",
            "application/openmetrics-text; version=1.0.0; charset=utf-8; escaping=underscores",
            True,
            id="openmetrics",
        ),
    ],
)
def test_the_request_selects_the_format(
    registry: MetricRegistry, accept: str, content_type: str, has_exemplar: bool
) -> None:
    histogram = registry.histogram("a_seconds", "A.", (1, 300))
    with registry.export():
        histogram.observe(0.5, exemplar={"trace_id": "abc"})
        body, actual = registry.render(accept)

    assert (actual, b'# {trace_id="abc"}' in body) == (content_type, has_exemplar)
    assert b'a_seconds_bucket{le="300.0"} 1.0' in body
    assert b"_created" not in body


def test_declarations_do_not_import_the_library() -> None:
    program = """
import sys
from reconciler.telemetry.metrics import SHARD_INDEX
SHARD_INDEX.set(1)
sys.exit('prometheus_client' in sys.modules)
"""

    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
