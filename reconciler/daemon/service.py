"""The service: passes until told to stop, each after a wakeup or a jittered pause (design 4.1, 7)."""

from __future__ import annotations

import math
import random
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from reconciler.daemon.events import log
from reconciler.daemon.wakeups import Wakeup, Wakeups, watching
from reconciler.gitio.errors import GitError

SIGNALS = {
    signal.SIGTERM: Wakeup.STOP,
    signal.SIGINT: Wakeup.STOP,
    signal.SIGHUP: Wakeup.RELOAD,
    signal.SIGUSR1: Wakeup.NOW,
}


@dataclass(frozen=True)
class Rhythm:
    """How often: the pause between passes, how much it varies so that replicas spread, the longest after failures."""

    poll_seconds: float
    jitter_percent: int
    max_backoff_seconds: float

    def pause(self, failures: int, chance: float) -> float:
        """Return the seconds to the next pass; `chance` in 0..1 places it within the jitter."""
        pause = min(self.poll_seconds * 2.0 ** min(failures, 30), max(self.max_backoff_seconds, self.poll_seconds))
        return pause * (1 + self.jitter_percent / 100 * (2 * chance - 1))


@dataclass(frozen=True)
class Work:
    """What the service drives: one pass, its rhythm, the folders worth watching.

    `run_pass` returns whether the world let it finish; `hurry` lets resting remotes be asked at once; `due_in` gives
    the seconds to the next moment at which something is to be done though nothing moves; `gather_seconds` is the
    pause after a webhook, so that all those of one push end in one pass, and so do remotes that come late; `collect`
    lets the next pass only take what those brought; `close` ends what goes on beside the passes.
    """

    run_pass: Callable[[], bool]
    hurry: Callable[[], None]
    rhythm: Rhythm
    folders: Sequence[Path]
    due_in: Callable[[], float] = lambda: math.inf
    gather_seconds: float = 0.0
    collect: Callable[[], None] = lambda: None
    close: Callable[[], None] = lambda: None


def serve(
    build: Callable[[], Work],
    wakeups: Wakeups,
    chance: Callable[[], float] = random.random,
    clock: Callable[[], float] = time.monotonic,
) -> None:
    """Run passes until a STOP: a pass that is under way ends with its push. A RELOAD builds the work anew."""
    work = build()
    try:
        while True:
            with watching(work.folders, wakeups):
                reasons = _passes(work, wakeups, chance, clock)
            if Wakeup.STOP in reasons:
                log.info("stopped")
                return
            work = _rebuilt(build, work)
    finally:
        work.close()


def _passes(work: Work, wakeups: Wakeups, chance: Callable[[], float], clock: Callable[[], float]) -> frozenset[Wakeup]:
    failures = 0
    next_poll = -math.inf
    reasons = frozenset({Wakeup.NOW})
    while not reasons & {Wakeup.STOP, Wakeup.RELOAD}:
        if Wakeup.NOW in reasons or Wakeup.FOLDER in reasons:
            work.hurry()
        is_late = reasons == {Wakeup.REMOTE}
        if is_late:
            work.collect()
        failures = 0 if _one_pass(work) else failures + 1
        pause = work.rhythm.pause(failures, chance())
        if is_late:
            # who comes late does not put off when all others are asked again
            pause = max(min(pause, next_poll - clock()), 0.0)
        else:
            next_poll = clock() + pause
        # after a failure what is due waits, too: it would be asked for in vain, and at once
        reasons = wakeups.wait(pause if failures else min(pause, max(work.due_in(), 0.0)))
        if reasons <= {Wakeup.WEBHOOK, Wakeup.REMOTE}:
            reasons |= wakeups.gather(work.gather_seconds)
        log.debug("woken", reasons=sorted(reasons))
    return reasons


def _one_pass(work: Work) -> bool:
    try:
        return work.run_pass()
    except GitError as error:
        log.error("pass_failed", why=error.message, next_step=error.next_step)
        return False


def _rebuilt(build: Callable[[], Work], work: Work) -> Work:
    try:
        rebuilt = build()
    except UnusableSettingsError as error:
        # a typo in a reloaded file must not end a service that works
        log.error("settings_refused", why=str(error))
        return work
    work.close()
    log.info("settings_reloaded")
    return rebuilt


class UnusableSettingsError(Exception):
    """Settings that were read anew cannot be used; the service goes on with those it has."""


@contextmanager
def signals_as(wakeups: Wakeups) -> Iterator[list[int]]:
    """Turn TERM and INT into STOP, HUP into RELOAD and USR1 into NOW, until the block is left.

    Yields the numbers of the signals that asked for a stop, as they come.
    """
    stops: list[int] = []

    def handle(number: int, _: FrameType | None) -> None:
        reason = SIGNALS[signal.Signals(number)]
        if reason is Wakeup.STOP:
            stops.append(number)
        wakeups.wake(reason)

    before = {number: signal.signal(number, handle) for number in SIGNALS}
    try:
        yield stops
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
