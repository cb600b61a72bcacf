"""The reference page of metrics lists exactly the exported metrics, and Prometheus accepts the exported text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciler.telemetry.instruments import Counter, Instrument, LabelValues
from reconciler.telemetry.metrics import (
    FORGE_RATE_LIMIT_REMAINING,
    FORGE_RATE_LIMIT_RESET,
    HTTP_REQUESTS,
    REGISTRY,
    render_metrics,
)
from reconciler.telemetry.target_metrics import TARGET_METRICS, TargetNumbers
from tests.support.programs import make_program

PAGE = Path(__file__).resolve().parents[2] / "docs/reference/metrics.md"
_ROW = re.compile(r"^\| `(?P<name>reconciler_\w+)` \| (?P<kind>\w+) \| (?P<labels>.*?) \| .+ \|$", re.MULTILINE)
_SAMPLE = re.compile(r"^(?P<name>reconciler_\w+?)(?:_bucket|_sum|_count)?(?:\{(?P<labels>.*)\})? \S+$", re.MULTILINE)
_TYPE = re.compile(r"^# TYPE (?P<name>reconciler_\w+) (?P<kind>\w+)$", re.MULTILINE)


@pytest.fixture(scope="module")
def exposition() -> Iterator[str]:
    """Return the exported text of a daemon with one remote, one finding and one target."""
    with REGISTRY.export(TARGET_METRICS):
        TARGET_METRICS.set_limit(1)
        TARGET_METRICS.update([TargetNumbers("berlin", "ready", {"published": 1})])
        for instrument in REGISTRY.instruments:
            for label in instrument.labels.values():
                if isinstance(label, LabelValues):
                    label.limit("example")
        # These metrics have no series before their first value.
        FORGE_RATE_LIMIT_REMAINING.set(1, "example", "example")
        FORGE_RATE_LIMIT_RESET.set(1, "example", "example")
        HTTP_REQUESTS.add("GET", "example", "200")
        yield render_metrics("")[0].decode()
        TARGET_METRICS.set_limit(0)


def read_page() -> dict[str, tuple[str, frozenset[str]]]:
    """Return the type and the labels of each metric on the page."""
    rows = _ROW.finditer(PAGE.read_text())
    return {
        row["name"]: (
            row["kind"],
            frozenset(re.findall(r"(?:^|; |, )`(\w+)`(?=:|;|,|$)", re.sub(r": [^;]*", ":", row["labels"]))),
        )
        for row in rows
    }


def test_the_page_lists_exactly_the_exported_metrics(exposition: str) -> None:
    kinds = {match["name"]: match["kind"] for match in _TYPE.finditer(exposition)}
    labels: dict[str, frozenset[str]] = {}
    for sample in _SAMPLE.finditer(exposition):
        name = sample["name"] if sample["name"] in kinds else sample[0].partition("{")[0].partition(" ")[0]
        names = frozenset(re.findall(r"(\w+)=", sample["labels"] or "")) - {"le"}
        labels[name] = labels.get(name, frozenset()) | names

    assert {name: (kind, labels[name]) for name, kind in kinds.items()} == read_page()


def test_names_follow_the_rules_of_prometheus() -> None:
    def is_valid(instrument: Instrument) -> bool:
        is_counter = isinstance(instrument, Counter)
        is_time = "timestamp" in instrument.name or "duration" in instrument.name
        return instrument.name.endswith("_total") == is_counter and (
            not is_time or instrument.name.endswith("_seconds")
        )

    assert [instrument.name for instrument in REGISTRY.instruments if not is_valid(instrument)] == []


def test_prometheus_accepts_the_exported_text(exposition: str) -> None:
    process = make_program("promtool")("check", "metrics", content=exposition)

    assert (process.returncode, process.stdout + process.stderr) == (0, "")
