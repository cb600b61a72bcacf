"""Tests of the thread that builds the index of the console."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from reconciler.git.errors import UnreachableError
from reconciler.inspect.fleet_index import FleetIndexer, ObservedPass
from reconciler.output.fleet.model import FleetIndex
from reconciler.service.index_thread import IndexThread

OBSERVED = ObservedPass("41ab", 1_700_000_000, {})


class FailingIndexer(FleetIndexer):
    """Fails if `error` is set."""

    def __init__(self) -> None:
        self.error: Exception | None = None

    def update(self, observed: ObservedPass, report_progress: object) -> FleetIndex:
        if self.error:
            raise self.error
        return FleetIndex(1, observed.completed_at, observed.config)


@pytest.mark.emits("console_index_failed")
def test_the_last_index_remains_if_an_update_fails() -> None:
    indexer = FailingIndexer()
    thread = IndexThread(indexer)
    thread.build(OBSERVED)
    first = thread.index
    indexer.error = UnreachableError("the cache cannot be read")
    thread.build(OBSERVED)

    assert first is not None
    assert thread.index is first
    assert "the cache cannot be read" in thread.error


@pytest.mark.emits("console_index_failed")
@pytest.mark.parametrize("error", [UnreachableError("no disk"), ValueError("a bug")], ids=["git", "bug"])
def test_the_thread_continues_after_repeated_failures(error: Exception) -> None:
    indexer = FailingIndexer()
    indexer.error = error
    thread = IndexThread(indexer)
    for _ in range(3):
        thread.build(OBSERVED)
    failure = thread.error
    indexer.error = None
    thread.build(OBSERVED)

    assert failure
    assert thread.index is not None
    assert (thread.error, thread.progress) == ("", None)


class EndlessIndexer(FleetIndexer):
    """Reads targets until the thread stops it."""

    def __init__(self) -> None:
        self.has_started = threading.Event()

    def update(self, observed: ObservedPass, report_progress: Callable[[int, int], None]) -> FleetIndex:
        while True:
            report_progress(1, 2)
            self.has_started.set()
            time.sleep(0.01)

    def store(self) -> None:
        pass


def test_the_thread_stops_while_it_builds_an_index() -> None:
    indexer = EndlessIndexer()
    thread = IndexThread(indexer)
    before = set(threading.enumerate())
    thread.start()
    thread.observe(OBSERVED)
    assert indexer.has_started.wait(20)
    thread.close()

    assert set(threading.enumerate()) <= before
    assert (thread.index, thread.progress) == (None, None)
