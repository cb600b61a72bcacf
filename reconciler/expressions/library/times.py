"""The fields of timestamps and durations."""

from __future__ import annotations

from collections.abc import Callable

from reconciler.expressions.budget import Budget
from reconciler.expressions.library.signatures import DURATION, STRING, TIMESTAMP, Functions, Overload, overload
from reconciler.expressions.timestamps import SECOND, Duration, Timestamp, field, whole

ZONE_STEPS = 200
"""What it costs to look a time zone up, at worst in vain and in a database on disk."""


def _field(name: str) -> tuple[Overload, ...]:
    def read(budget: Budget, moment: Timestamp, zone: str = "") -> int:
        budget.spend(ZONE_STEPS if zone else 1)
        return field(moment, name, zone)

    return overload(read, TIMESTAMP), overload(read, TIMESTAMP, STRING)


def _whole(unit: int) -> Callable[[Budget, Duration], int]:
    def read(budget: Budget, duration: Duration) -> int:
        return whole(duration, unit)

    return read


def milliseconds(budget: Budget, duration: Duration) -> int:
    """`duration.getMilliseconds()`: those beyond the whole seconds, as the reference engines have it."""
    count = whole(duration, SECOND // 1000)
    return count % 1000 if count >= 0 else -(-count % 1000)


METHODS: Functions = {
    "getFullYear": _field("year"),
    "getMonth": _field("month"),
    "getDate": _field("date"),
    "getDayOfMonth": _field("day_of_month"),
    "getDayOfWeek": _field("day_of_week"),
    "getDayOfYear": _field("day_of_year"),
    "getHours": (*_field("hours"), overload(_whole(3600 * SECOND), DURATION)),
    "getMinutes": (*_field("minutes"), overload(_whole(60 * SECOND), DURATION)),
    "getSeconds": (*_field("seconds"), overload(_whole(SECOND), DURATION)),
    "getMilliseconds": (*_field("milliseconds"), overload(milliseconds, DURATION)),
}
