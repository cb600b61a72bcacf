"""Tests of the thread that builds the index of the console, with an indexer that waits for the test."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from itertools import count
from queue import Queue

import pytest
from structlog.testing import capture_logs

from reconciler.git.errors import UnreachableError
from reconciler.inspect.fleet_index import FleetIndexer, ObservedPass
from reconciler.output.fleet.model import FleetIndex
from reconciler.service.index_thread import IndexProgress, IndexThread

SECONDS = 10.0
Progress = Callable[[int, int], None]


class SteppedIndexer(FleetIndexer):
    """An indexer that reports each start, and ends an update with the result or error that the test gives."""

    def __init__(self) -> None:
        self.started: Queue[tuple[str, Progress]] = Queue()
        self._errors: Queue[Exception | None] = Queue()
        self.store_count = 0

    def update(self, observed: ObservedPass, report_progress: Progress) -> FleetIndex:
        self.started.put((observed.config, report_progress))
        error = self._errors.get(timeout=SECONDS)
        if error:
            raise error
        return FleetIndex(1, observed.completed_at, observed.config)

    def store(self) -> None:
        self.store_count += 1

    def wait(self) -> str:
        """Wait until an update starts, and return its config."""
        return self.started.get(timeout=SECONDS)[0]

    def finish(self, error: Exception | None = None) -> None:
        """End the current update."""
        self._errors.put(error)


class EndlessIndexer(FleetIndexer):
    """An indexer that reports progress until the thread stops."""

    def __init__(self) -> None:
        self.has_started = threading.Event()

    def update(self, observed: ObservedPass, report_progress: Progress) -> FleetIndex:
        self.has_started.set()
        for number in count():
            report_progress(number, number)
        raise AssertionError

    def store(self) -> None:
        pass


@pytest.fixture
def indexer() -> SteppedIndexer:
    return SteppedIndexer()


@pytest.fixture
def thread(indexer: SteppedIndexer) -> Iterator[IndexThread]:
    thread = IndexThread(indexer)
    thread.start()
    yield thread
    indexer.finish()
    thread.close()


def list_threads() -> list[str]:
    return [thread.name for thread in threading.enumerate()]


def observe(thread: IndexThread, config: str) -> None:
    thread.observe(ObservedPass(config, 1, {}))


def finish_and_wait(thread: IndexThread, indexer: SteppedIndexer, error: Exception | None = None) -> None:
    """End the current update, and wait until the thread starts the next one, which follows its last effects."""
    observe(thread, "next")
    indexer.finish(error)
    assert indexer.wait() == "next"


def test_there_is_no_index_before_the_first_pass(thread: IndexThread) -> None:
    assert (thread.index, thread.progress, thread.error) == (None, None, "")


def test_index_of_a_pass_is_built(thread: IndexThread, indexer: SteppedIndexer) -> None:
    observe(thread, "a")
    indexer.wait()
    finish_and_wait(thread, indexer)

    assert thread.index is not None
    assert thread.index.config == "a"


def test_passes_that_end_during_an_update_are_one_request(thread: IndexThread, indexer: SteppedIndexer) -> None:
    observe(thread, "a")
    started = [indexer.wait()]
    for config in ("b", "c", "d"):
        observe(thread, config)
    indexer.finish()
    started.append(indexer.wait())
    finish_and_wait(thread, indexer)

    assert started == ["a", "d"]
    assert indexer.started.empty()


def test_entries_are_stored_when_the_thread_ends(thread: IndexThread, indexer: SteppedIndexer) -> None:
    observe(thread, "a")
    indexer.wait()
    finish_and_wait(thread, indexer)
    before = indexer.store_count
    indexer.finish()
    thread.close()

    assert (before, indexer.store_count) == (0, 1)


def test_progress_is_reported_during_an_update(thread: IndexThread, indexer: SteppedIndexer) -> None:
    observe(thread, "a")
    _, report_progress = indexer.started.get(timeout=SECONDS)
    report_progress(3, 10)
    during = thread.progress
    indexer.finish()
    observe(thread, "b")
    indexer.wait()

    assert during == IndexProgress(3, 10)
    assert thread.progress is None


@pytest.mark.parametrize(
    ("error", "message"),
    [
        pytest.param(UnreachableError("the cache is full"), "the cache is full", id="environment"),
        pytest.param(ZeroDivisionError("division"), "ZeroDivisionError", id="internal"),
    ],
)
def test_old_index_stays_after_an_error(
    thread: IndexThread, indexer: SteppedIndexer, error: Exception, message: str
) -> None:
    observe(thread, "a")
    indexer.wait()
    with capture_logs() as logs:
        finish_and_wait(thread, indexer)
        finish_and_wait(thread, indexer, error)
    assert thread.index is not None
    index, failed = thread.index.config, thread.error
    finish_and_wait(thread, indexer)

    assert index == "a"
    assert message in failed
    assert "console_index_failed" in [entry["event"] for entry in logs]
    assert (thread.index.config, thread.error) == ("next", "")


def test_thread_stops_while_it_waits(thread: IndexThread) -> None:
    thread.close()

    assert "console-index" not in list_threads()


def test_thread_stops_during_an_update() -> None:
    indexer = EndlessIndexer()
    thread = IndexThread(indexer)
    thread.start()
    observe(thread, "a")
    assert indexer.has_started.wait(SECONDS)
    thread.close()

    assert "console-index" not in list_threads()
    assert (thread.index, thread.progress, thread.error) == (None, None, "")


def test_request_is_not_started_after_the_stop(indexer: SteppedIndexer) -> None:
    thread = IndexThread(indexer)
    observe(thread, "a")
    thread.close()
    thread.start()
    thread.close()

    assert indexer.started.empty()


def test_thread_that_never_started_can_be_closed(indexer: SteppedIndexer) -> None:
    IndexThread(indexer).close()
