"""The signals of the service: stop, reload, start a pass, and abort."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import NoReturn

from reconciler.service.loop import Wakeup, WakeupQueue
from reconciler.service.state import ServiceState

SIGNAL_WAKEUPS = {
    signal.SIGTERM: Wakeup.STOP,
    signal.SIGINT: Wakeup.STOP,
    signal.SIGHUP: Wakeup.RELOAD,
    signal.SIGUSR1: Wakeup.NOW,
}
# Ignore a signal that repeats within this time, because programs such as `timeout` send each signal twice: to the
# process and to its group.
_MIN_SECONDS_BETWEEN_SIGNALS = 0.1


def abort_process(number: int) -> NoReturn:
    """End the process and its child processes now, with the exit status 128 + `number`.

    An interrupted push leaves no invalid refs on the remote, because each push is atomic. The next pass repeats the
    work that was not pushed.
    """
    if sys.platform == "linux":
        for process in _list_children():
            # Also kill the process group. Each Git process is the leader of a group, which contains its child processes
            # such as ssh.
            for kill in (os.killpg, os.kill):
                with suppress(ProcessLookupError, PermissionError):
                    kill(process, signal.SIGKILL)
    os._exit(128 + number)


def _list_children() -> list[int]:
    children: list[int] = []
    for file in Path("/proc/self/task").glob("*/children"):
        with suppress(OSError):
            children += map(int, file.read_text().split())
    return children


@contextmanager
def handle_signals(
    wakeups: WakeupQueue,
    state: ServiceState,
    abort: Callable[[int], None] = abort_process,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[None]:
    """Convert the signals TERM and INT to STOP, HUP to RELOAD, and USR1 to NOW, until the end of the `with` block.

    The second signal that stops the service calls `abort` with the number of the signal.
    """
    first_stop_at: float | None = None

    def handle(number: int, _: FrameType | None) -> None:
        nonlocal first_stop_at
        reason = SIGNAL_WAKEUPS[signal.Signals(number)]
        if reason is Wakeup.STOP:
            now = clock()
            if first_stop_at is None:
                first_stop_at = now
                state.stop()
                wakeups.stop_signal = signal.Signals(number).name
            elif now - first_stop_at >= _MIN_SECONDS_BETWEEN_SIGNALS:
                abort(number)
        wakeups.add(reason)

    previous = {number: signal.signal(number, handle) for number in SIGNAL_WAKEUPS}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
