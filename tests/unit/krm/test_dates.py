from __future__ import annotations

import pytest

from reconciler.krm.times import format_rfc3339


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        pytest.param(0, "1970-01-01T00:00:00Z", id="the-epoch"),
        pytest.param(946684800, "2000-01-01T00:00:00Z", id="what-stands-for-no-date"),
        pytest.param(1_709_208_000, "2024-02-29T12:00:00Z", id="a-leap-day"),
        pytest.param(2**32 - 1, "2106-02-07T06:28:15Z", id="the-last-date-of-a-commit-of-ours"),
        pytest.param(-1, "1970-01-01T00:00:00Z", id="before-the-epoch-is-clamped"),
        pytest.param(10**15, "9999-12-31T23:59:59Z", id="after-year-9999-is-clamped"),
    ],
)
def test_seconds_are_formatted_in_utc(seconds: int, expected: str) -> None:
    assert format_rfc3339(seconds) == expected
