"""Tests of durations in the format of Go."""

from __future__ import annotations

import pytest

from reconciler.krm.times import parse_duration_seconds


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        pytest.param("0", 0, id="zero"),
        pytest.param("0s", 0, id="zero-with-a-unit"),
        pytest.param("10m", 600, id="minutes"),
        pytest.param("1h30m", 5400, id="hours-and-minutes"),
        pytest.param("1.1m", 66, id="a-fraction-is-exact"),
        pytest.param(".5h", 1800, id="no-digit-before-the-point"),
        pytest.param("2.s", 2, id="no-digit-after-the-point"),
        pytest.param("250ms", 1, id="less-than-a-second-rounds-up"),
        pytest.param("1000000µs", 1, id="micro-sign"),
        pytest.param("1000000μs", 1, id="greek-mu"),
        pytest.param("10", None, id="no-unit"),
        pytest.param("m", None, id="no-number"),
        pytest.param(".s", None, id="only-a-point"),
        pytest.param("10m ", None, id="trailing-blank"),
        pytest.param("-1m", None, id="negative"),
        pytest.param("1d", None, id="days-are-not-a-unit"),
        pytest.param("", None, id="nothing"),
        pytest.param("2562047h", 9223369200, id="as-long-as-go-can-count"),
        pytest.param("2562048h", None, id="longer-than-go-can-count"),
    ],
)
def test_parse_duration_seconds(text: str, seconds: int | None) -> None:
    assert parse_duration_seconds(text) == seconds
