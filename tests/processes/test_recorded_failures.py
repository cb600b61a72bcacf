"""During the back-off of a call, its last failure replaces the call."""

from __future__ import annotations

from reconciler.processes.backoff import RecordedFailures
from reconciler.reconcile.remotes.scheduling import Backoff
from tests.support.manual_clock import ManualClock


def test_failure_until_the_end_of_the_back_off() -> None:
    clock = ManualClock()
    failures: RecordedFailures[str] = RecordedFailures(Backoff(10.0, 100.0, clock))
    assert failures.find("a") is None
    failures.add("a", "timeout")
    clock.now += 9.0
    assert (failures.find("a"), failures.find("b")) == ("timeout", None)
    clock.now += 1.0
    assert failures.find("a") is None


def test_wait_that_the_service_requests() -> None:
    clock = ManualClock()
    failures: RecordedFailures[str] = RecordedFailures(Backoff(10.0, 100.0, clock))
    failures.add("a", "too many requests", 60.0)
    clock.now += 59.0
    assert failures.find("a") == "too many requests"


def test_success_starts_with_the_shortest_wait_again() -> None:
    clock = ManualClock()
    failures: RecordedFailures[str] = RecordedFailures(Backoff(10.0, 100.0, clock))
    failures.add("a", "first")
    failures.add("a", "second")
    failures.remove("a")
    assert failures.find("a") is None
    failures.add("a", "third")
    clock.now += 10.0
    assert failures.find("a") is None


def test_success_of_another_call_keeps_its_wait() -> None:
    """Several objects can share one back-off. Only the object that has recorded the failure of a call ends its wait."""
    clock = ManualClock()
    backoff = Backoff(10.0, 100.0, clock)
    failures: RecordedFailures[str] = RecordedFailures(backoff)
    others: RecordedFailures[str] = RecordedFailures(backoff)
    failures.add("a", "timeout")
    others.remove("a")
    assert (failures.find("a"), others.find("a")) == ("timeout", None)
