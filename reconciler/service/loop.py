"""The loop of the service. It runs a pass after each wake-up, or after a delay with jitter, until a signal stops it.

A wake-up contains only its reason, and the pass determines what has changed. Therefore, one pass handles several
wake-ups.
"""

from __future__ import annotations

import math
import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path

import watchfiles

from reconciler.git.errors import GitError
from reconciler.lazy_dataclasses import dataclass
from reconciler.telemetry.event_log import log
from reconciler.telemetry.metrics import SETTINGS_RELOAD_SUCCESS, SETTINGS_RELOAD_TIME
from reconciler.telemetry.progress import progress

# The maximal time between two signs of progress while the service waits.
_MAX_WAIT_SECONDS = 10.0
# The maximal time to wait for the watcher thread, which checks its stop event twice per second.
_WATCHER_STOP_SECONDS = 5.0


class Wakeup(StrEnum):
    """The reason of a wake-up."""

    START = "start"
    TIMER = "timer"
    FOLDER = "folder"
    NOW = "now"
    RETRY = "retry"
    WEBHOOK = "webhook"
    REMOTE = "remote"
    RELOAD = "reload"
    STOP = "stop"


_URGENT = frozenset({Wakeup.NOW, Wakeup.RELOAD, Wakeup.STOP})
# A pass with one of these reasons does not wait for the back-off of remotes.
_RETRYING = frozenset({Wakeup.START, Wakeup.RELOAD, Wakeup.NOW, Wakeup.FOLDER})


class WakeupQueue:
    """Collects the reasons of wake-ups while a pass runs. Signal handlers and threads can add reasons.

    Attributes:
        stop_signal: The name of the signal that stops the service, for the log.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        # Use a reentrant lock, because a signal handler can call `add` inside `wait` in the same thread.
        self._changed = threading.Condition(threading.RLock())
        self._reasons: set[Wakeup] = set()
        self.stop_signal = ""

    def take(self) -> frozenset[Wakeup]:
        """Return all reasons since the last call, without a wait."""
        with self._changed:
            reasons, self._reasons = frozenset(self._reasons), set()
        return reasons

    def add(self, reason: Wakeup) -> None:
        """Add the reason of a wake-up. If the service is waiting, the wait ends."""
        with self._changed:
            self._reasons.add(reason)
            self._changed.notify_all()

    def wait(self, seconds: float) -> frozenset[Wakeup]:
        """Wait up to `seconds` for a wake-up. Return all reasons since the last call, or TIMER if there are none."""
        with self._changed:
            end = self._clock() + seconds
            while not self._reasons and (remaining := end - self._clock()) > 0:
                # Wait in parts, because the health check needs signs that the main thread works.
                self._changed.wait_for(lambda: self._reasons, min(remaining, _MAX_WAIT_SECONDS))
                progress.update("wait")
            return self.take() or frozenset({Wakeup.TIMER})

    def wait_for_more(self, seconds: float) -> frozenset[Wakeup]:
        """Wait `seconds` for further wake-ups, and return their reasons. NOW, RELOAD and STOP end the wait."""
        with self._changed:
            self._changed.wait_for(lambda: self._reasons & _URGENT, max(seconds, 0))
            return self.take()


@contextmanager
def watch_folders(folders: Sequence[Path], wakeups: WakeupQueue) -> Iterator[None]:
    """Add the wake-up reason FOLDER when a file in one of the folders changes, until the end of the `with` block."""
    stop = threading.Event()
    thread = threading.Thread(target=_watch, args=(folders, wakeups, stop), name="watch", daemon=True)
    if folders:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        if folders:
            thread.join(_WATCHER_STOP_SECONDS)


def _watch(folders: Sequence[Path], wakeups: WakeupQueue, stop: threading.Event) -> None:
    changes = watchfiles.watch(
        *folders, stop_event=stop, rust_timeout=500, watch_filter=_is_relevant, raise_interrupt=False
    )
    for _ in changes:
        wakeups.add(Wakeup.FOLDER)


def _is_relevant(_: watchfiles.Change, path: str) -> bool:
    # Ignore lock files and objects, which Git writes before a ref moves. A push is complete when its ref moves.
    return not path.endswith(".lock") and "/objects/" not in path


@dataclass(frozen=True)
class PollSchedule:
    """The delays between passes. Because of the jitter, several daemons do not start their passes at the same time.

    After failures, the delay doubles up to `max_backoff_seconds`.
    """

    poll_seconds: float
    jitter_percent: int
    max_backoff_seconds: float

    def delay_seconds(self, failures: int, chance: float) -> float:
        """Return the seconds until the next pass. `chance` is a random number from 0 to 1 for the jitter."""
        delay = min(self.poll_seconds * 2.0 ** min(failures, 30), max(self.max_backoff_seconds, self.poll_seconds))
        return delay * (1 + self.jitter_percent / 100 * (2 * chance - 1))


@dataclass(frozen=True)
class ServiceWork:
    """The functions and settings of the service loop, built from the settings file.

    Attributes:
        run_pass: Runs one pass. The argument contains the reasons of the wake-up. Returns False if the pass should be
            repeated soon. Raises GitError.
        retry_now: Ends the back-off of all remotes, so that the next pass fetches them.
        folders: The folders in which a change starts a pass.
        seconds_until_due: Returns the seconds until a pass is due although no ref has moved.
        debounce_seconds: The delay after a webhook, or after the end of a late fetch or push, so that one pass handles
            several such events.
        collect_late_results: Makes the next pass use the results of late fetches, which are fetches that a pass did not
            wait for. The next pass does not fetch other remotes.
        close: Ends all work in background threads.
        report_failure: Receives the error of a failed pass, and the seconds until the next pass.
        changed_settings: The names of the settings that differ from the settings of the previous work.
    """

    run_pass: Callable[[frozenset[Wakeup]], bool]
    retry_now: Callable[[], None]
    schedule: PollSchedule
    folders: Sequence[Path]
    seconds_until_due: Callable[[], float] = lambda: math.inf
    debounce_seconds: float = 0.0
    collect_late_results: Callable[[], None] = lambda: None
    close: Callable[[], None] = lambda: None
    report_failure: Callable[[GitError, float], None] = lambda error, seconds: None
    changed_settings: Sequence[str] = ()


def serve(
    work: ServiceWork,
    rebuild: Callable[[], ServiceWork],
    wakeups: WakeupQueue,
    chance: Callable[[], float] = random.random,
    clock: Callable[[], float] = time.monotonic,
) -> None:
    """Run passes until the wake-up STOP. The wake-up RELOAD builds the work again with `rebuild`.

    A running pass completes its pushes before the service stops. A pass can end earlier with `StopRequested`.
    """
    _record_settings_read()
    # Take the wake-ups now, because a signal can stop the service before its first pass.
    reasons = frozenset({Wakeup.START}) | wakeups.take()
    try:
        while Wakeup.STOP not in reasons:
            if Wakeup.RELOAD in reasons:
                work = _rebuild(rebuild, work)
            try:
                with watch_folders(work.folders, wakeups):
                    reasons = _run_passes(work, wakeups, reasons, chance, clock)
            except StopRequested:
                break
        log.info("daemon_stopping", signal=wakeups.stop_signal)
    finally:
        work.close()


def _run_passes(
    work: ServiceWork,
    wakeups: WakeupQueue,
    reasons: frozenset[Wakeup],
    chance: Callable[[], float],
    clock: Callable[[], float],
) -> frozenset[Wakeup]:
    """Run passes until STOP or RELOAD. `reasons` are the reasons of the first pass."""
    failures = 0
    next_poll = -math.inf
    while True:
        if not reasons.isdisjoint(_RETRYING):
            work.retry_now()
        is_late = reasons == {Wakeup.REMOTE}
        if is_late:
            work.collect_late_results()
        error = None
        try:
            is_done = work.run_pass(reasons)
        except GitError as pass_error:
            is_done, error = False, pass_error
        failures = 0 if is_done else failures + 1
        delay = work.schedule.delay_seconds(failures, chance())
        if error:
            work.report_failure(error, delay)
        if is_late:
            # Do not change `next_poll`, because a pass for one late remote must not delay the next poll of all other
            # remotes.
            delay = max(min(delay, next_poll - clock()), 0.0)
        else:
            next_poll = clock() + delay
        # After a failed pass, always wait for the whole delay, even if a pass is due. Without the delay, this pass
        # would probably fail for the same reason.
        reasons = wakeups.wait(delay if failures else min(delay, max(work.seconds_until_due(), 0.0)))
        if reasons <= {Wakeup.WEBHOOK, Wakeup.REMOTE}:
            reasons |= wakeups.wait_for_more(work.debounce_seconds)
        log.debug("wakeup_received", reasons=sorted(reasons))
        if reasons & {Wakeup.STOP, Wakeup.RELOAD}:
            return reasons


def _rebuild(rebuild: Callable[[], ServiceWork], work: ServiceWork) -> ServiceWork:
    try:
        rebuilt = rebuild()
    except UnusableSettingsError as error:
        # Continue with the current settings, because an error in the new settings must not end a working service.
        log.error("settings_refused", message=str(error))
        SETTINGS_RELOAD_SUCCESS.set(0)
        return work
    work.close()
    log.info("settings_reloaded", changed=list(rebuilt.changed_settings))
    _record_settings_read()
    return rebuilt


def _record_settings_read() -> None:
    SETTINGS_RELOAD_SUCCESS.set(1)
    SETTINGS_RELOAD_TIME.set(time.time())


class StopRequested(BaseException):
    """Ends a pass that has not written anything yet, because the service has received a signal to stop.

    It is not an `Exception`, because the code that isolates unexpected exceptions must not catch it.
    """


class UnusableSettingsError(Exception):
    """The new settings are not valid. The service continues with its current settings."""
