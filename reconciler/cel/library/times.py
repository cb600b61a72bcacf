"""Methods of CEL timestamps and durations."""

from __future__ import annotations

from collections.abc import Callable

from reconciler.cel.budget import ExpressionBudget
from reconciler.cel.library.signatures import DURATION, STRING, TIMESTAMP, FunctionTable, Overload, create_overload
from reconciler.cel.timestamps import (
    NANOSECONDS_PER_SECOND,
    Duration,
    Timestamp,
    count_whole_units,
    read_calendar_field,
)

ZONE_STEPS = 200
"""Number of budget steps for one time zone lookup, which can read the time zone database from the disk."""


def _create_field_function(name: str) -> tuple[Overload, ...]:
    def read(budget: ExpressionBudget, moment: Timestamp, zone: str = "") -> int:
        budget.spend(ZONE_STEPS if zone else 1)
        return read_calendar_field(moment, name, zone)

    return create_overload(read, TIMESTAMP), create_overload(read, TIMESTAMP, STRING)


def _create_whole_function(unit: int) -> Callable[[ExpressionBudget, Duration], int]:
    def read(budget: ExpressionBudget, duration: Duration) -> int:
        return count_whole_units(duration, unit)

    return read


def milliseconds(budget: ExpressionBudget, duration: Duration) -> int:
    """Evaluate `duration.getMilliseconds()`: milliseconds without whole seconds, e.g. 500 for 61.5s, as in cel-go."""
    count = count_whole_units(duration, NANOSECONDS_PER_SECOND // 1000)
    return count % 1000 if count >= 0 else -(-count % 1000)


METHODS: FunctionTable = {
    "getFullYear": _create_field_function("year"),
    "getMonth": _create_field_function("month"),
    "getDate": _create_field_function("date"),
    "getDayOfMonth": _create_field_function("day_of_month"),
    "getDayOfWeek": _create_field_function("day_of_week"),
    "getDayOfYear": _create_field_function("day_of_year"),
    "getHours": (
        *_create_field_function("hours"),
        create_overload(_create_whole_function(3600 * NANOSECONDS_PER_SECOND), DURATION),
    ),
    "getMinutes": (
        *_create_field_function("minutes"),
        create_overload(_create_whole_function(60 * NANOSECONDS_PER_SECOND), DURATION),
    ),
    "getSeconds": (
        *_create_field_function("seconds"),
        create_overload(_create_whole_function(NANOSECONDS_PER_SECOND), DURATION),
    ),
    "getMilliseconds": (*_create_field_function("milliseconds"), create_overload(milliseconds, DURATION)),
}
