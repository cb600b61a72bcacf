"""Durations as Go writes them."""

from __future__ import annotations

import pytest

from reconciler.rules.variants.durations import duration_seconds


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        pytest.param("0", 0.0, id="zero"),
        pytest.param("10m", 600.0, id="minutes"),
        pytest.param("1h30m", 5400.0, id="hours-and-minutes"),
        pytest.param("1.5s", 1.5, id="fraction"),
        pytest.param("250ms", 0.25, id="milliseconds"),
        pytest.param("10", None, id="no-unit"),
        pytest.param("m", None, id="no-number"),
        pytest.param("10m ", None, id="trailing-blank"),
        pytest.param("-1m", None, id="negative"),
        pytest.param("1d", None, id="days-are-not-a-unit"),
    ],
)
def test_duration_seconds(text: str, seconds: float | None) -> None:
    assert duration_seconds(text) == seconds
