"""The wakeups of the service: reasons accumulate between waits, and equal reasons count once."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from reconciler.service import loop
from reconciler.service.loop import Wakeup, WakeupQueue, watch_folders
from reconciler.telemetry.progress import progress

PATIENCE = 20.0


@pytest.mark.parametrize(
    ("reasons", "expected"),
    [
        pytest.param([], {Wakeup.TIMER}, id="timeout-without-wakeup"),
        pytest.param([Wakeup.NOW], {Wakeup.NOW}, id="one-reason"),
        pytest.param([Wakeup.NOW, Wakeup.NOW], {Wakeup.NOW}, id="the-same-reason-twice-is-one"),
        pytest.param([Wakeup.NOW, Wakeup.STOP], {Wakeup.NOW, Wakeup.STOP}, id="all-different-reasons"),
    ],
)
def test_wait_returns_the_reasons_since_the_last_wait(reasons: list[Wakeup], expected: set[Wakeup]) -> None:
    wakeups = WakeupQueue()
    for reason in reasons:
        wakeups.add(reason)

    assert wakeups.wait(0) == expected


def test_a_reason_is_returned_once() -> None:
    wakeups = WakeupQueue()
    wakeups.add(Wakeup.NOW)
    wakeups.wait(0)

    assert wakeups.wait(0) == {Wakeup.TIMER}


def test_a_long_wait_is_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "_MAX_WAIT_SECONDS", 0.01)
    progress.update("before")
    WakeupQueue().wait(0.02)

    assert progress.last[1] == "wait"


def test_a_wake_from_another_thread_ends_the_wait() -> None:
    wakeups = WakeupQueue()
    thread = threading.Thread(target=wakeups.add, args=(Wakeup.STOP,))
    thread.start()

    assert wakeups.wait(PATIENCE) == {Wakeup.STOP}
    thread.join()


@pytest.mark.parametrize(
    ("seconds", "reasons"),
    [
        pytest.param(0.01, {Wakeup.WEBHOOK, Wakeup.FOLDER}, id="others-wait-with-us"),
        pytest.param(0.01, set(), id="timeout"),
        pytest.param(PATIENCE, {Wakeup.WEBHOOK, Wakeup.STOP}, id="a-stop-ends-it"),
        pytest.param(PATIENCE, {Wakeup.RELOAD}, id="so-does-a-reload"),
        pytest.param(PATIENCE, {Wakeup.NOW}, id="request-of-a-person"),
    ],
)
def test_the_wait_for_more_reasons_ends_early_for_urgent_reasons(seconds: float, reasons: set[Wakeup]) -> None:
    wakeups = WakeupQueue()
    for reason in reasons:
        wakeups.add(reason)

    assert wakeups.wait_for_more(seconds) == reasons
    assert wakeups.wait(0) == {Wakeup.TIMER}


def test_a_changed_file_of_a_watched_folder_is_a_wakeup(tmp_path: Path) -> None:
    wakeups = WakeupQueue()
    with watch_folders([tmp_path], wakeups):
        reasons: frozenset[Wakeup] = frozenset({Wakeup.TIMER})
        for attempt in range(100):
            # The watcher first reads the folder, which takes a moment.
            (tmp_path / "regions.yaml").write_text(f"attempt: {attempt}\n")
            reasons = wakeups.wait(PATIENCE / 100)
            if Wakeup.FOLDER in reasons:
                break

    assert reasons == {Wakeup.FOLDER}


def test_without_folders_nothing_is_watched() -> None:
    before = threading.active_count()

    with watch_folders([], WakeupQueue()):
        assert threading.active_count() == before
