from __future__ import annotations

import pytest

from reconciler.retry_after import read_retry_after

NOW = 1_700_000_000.0


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        pytest.param("7", 7.0, id="seconds"),
        pytest.param(" 0 ", 0.0, id="now"),
        pytest.param("Tue, 14 Nov 2023 22:15:20 GMT", 120.0, id="date"),
        pytest.param("Tue, 14 Nov 2023 22:13:19 GMT", 0.0, id="past-date"),
        pytest.param("Mon, 01 Jan 0001 00:00:00 GMT", 0.0, id="first-year"),
        pytest.param("Mon, 01 Jan 0001 00:00:00 +2359", 0.0, id="before-the-first-year"),
        pytest.param("", None, id="empty"),
        pytest.param("-3", None, id="negative"),
        pytest.param("soon", None, id="words"),
        pytest.param("9" * 400, None, id="long-number"),
    ],
)
def test_header_is_read(value: str, seconds: float | None) -> None:
    assert read_retry_after(value, NOW) == seconds
