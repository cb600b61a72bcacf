from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.cel import CelEnvironment, Duration, ExpressionError, Timestamp
from reconciler.cel.timestamps import (
    MAX_TIMESTAMP,
    MIN_TIMESTAMP,
    NANOSECONDS_PER_SECOND,
    parse_duration,
    parse_timestamp,
    read_calendar_field,
)
from tests.support.examples import examples

ANY = CelEnvironment(frozenset({"t"}))
MOMENTS = st.datetimes()


def _build_timestamp(moment: datetime) -> Timestamp:
    return Timestamp(
        (moment.replace(tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(seconds=1) * NANOSECONDS_PER_SECOND
    )


@settings(max_examples=examples(150), deadline=None)
@given(MOMENTS)
def test_calendar_is_equal_to_that_of_python(moment: datetime) -> None:
    timestamp = _build_timestamp(moment)

    day = moment.timetuple()
    assert str(timestamp) == f"{moment.replace(microsecond=0).isoformat()}Z"
    assert [read_calendar_field(timestamp, name, "") for name in ("year", "month", "date", "day_of_month")] == [
        moment.year,
        moment.month - 1,
        moment.day,
        moment.day - 1,
    ]
    assert read_calendar_field(timestamp, "day_of_week", "UTC") == moment.isoweekday() % 7
    assert read_calendar_field(timestamp, "day_of_year", "") == day.tm_yday - 1
    assert [read_calendar_field(timestamp, name, "") for name in ("hours", "minutes", "seconds")] == [
        day[3],
        day[4],
        day[5],
    ]


@settings(max_examples=examples(100), deadline=None)
@given(st.integers(MIN_TIMESTAMP, MAX_TIMESTAMP))
def test_formatted_timestamps_are_parsed(nanoseconds: int) -> None:
    assert parse_timestamp(str(Timestamp(nanoseconds))) == Timestamp(nanoseconds)


@settings(max_examples=examples(100), deadline=None)
@given(st.integers(-(2**63), 2**63 - 1))
def test_formatted_durations_are_parsed(nanoseconds: int) -> None:
    assert parse_duration(str(Duration(nanoseconds))) == Duration(nanoseconds)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("string(timestamp('2024-02-29T23:59:59.120+01:30'))", "2024-02-29T22:29:59.12Z", id="offset"),
        pytest.param("string(duration('1h1m1.5s'))", "3661.5s", id="parts"),
        pytest.param("string(duration('-1ms2us3ns'))", "-0.001002003s", id="small-parts"),
        pytest.param(
            "string(timestamp('2024-03-01T00:00:00Z') - timestamp('2024-02-01T00:00:00Z'))", "2505600s", id="d"
        ),
        pytest.param("t.getHours('Europe/Berlin')", 2, id="summer-time"),
        pytest.param("t.getHours('-05:30')", 18, id="offset-before"),
        pytest.param("t.getDate('-05:30')", 30, id="the-day-before"),
        pytest.param("t.getDayOfWeek()", 1, id="monday"),
        pytest.param("timestamp('9999-12-31T23:00:00Z').getFullYear('+02:00')", 10000, id="beyond-the-last-year"),
        pytest.param("timestamp('0001-01-01T00:00:00Z').getFullYear('America/New_York')", 0, id="before-the-first"),
        pytest.param("timestamp(-1).getSeconds()", 59, id="before-1970"),
        pytest.param("duration('-90m').getHours()", -1, id="toward-zero"),
        pytest.param("duration('1.999s').getMilliseconds()", 999, id="milliseconds-beyond-the-seconds"),
        pytest.param("int(t)", 1719792000, id="seconds"),
    ],
)
def test_times(text: str, expected: object) -> None:
    moment = parse_timestamp("2024-07-01T00:00:00Z")

    assert ANY.compile(text).evaluate({"t": moment}) == expected


@pytest.mark.parametrize(
    ("text", "code"),
    [
        pytest.param("timestamp('2023-02-29T00:00:00Z')", "CelConversion", id="no-such-day"),
        pytest.param("timestamp('2023-13-01T00:00:00Z')", "CelConversion", id="no-such-month"),
        pytest.param("timestamp('2023-01-01T00:00:60Z')", "CelConversion", id="no-such-second"),
        pytest.param("timestamp('2023-01-01')", "CelConversion", id="only-a-day"),
        pytest.param("timestamp('0001-01-01T00:00:00+01:00')", "CelArithmetic", id="before-the-first-year"),
        pytest.param("timestamp('9999-12-31T23:59:59Z') + duration('1s')", "CelArithmetic", id="after-the-last"),
        pytest.param("duration('1')", "CelConversion", id="no-unit"),
        pytest.param("duration('.s')", "CelConversion", id="no-digits"),
        pytest.param("duration('')", "CelConversion", id="empty"),
        pytest.param("duration('300000h') + duration('2600000h')", "CelArithmetic", id="too-long"),
        pytest.param("timestamp(0).getHours('Nowhere/City')", "CelArgument", id="no-such-zone"),
        pytest.param("timestamp(0).getHours('../../etc/passwd')", "CelArgument", id="a-path"),
        pytest.param("timestamp(0).getHours('America')", "CelArgument", id="a-folder-of-zones"),
        pytest.param("timestamp(0).getHours('+24:00')", "CelArgument", id="no-such-offset"),
    ],
)
def test_invalid_times_are_refused(text: str, code: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        ANY.compile(text).evaluate({})

    assert caught.value.code == code
