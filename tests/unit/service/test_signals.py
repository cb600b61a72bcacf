"""The signals of the service: wake-ups, and the second signal that ends the process at once."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from reconciler.service.loop import Wakeup, WakeupQueue
from reconciler.service.signals import handle_signals
from reconciler.service.state import ServiceState
from tests.support.manual_clock import ManualClock

PROJECT = Path(__file__).parents[3]
TIMEOUT_SECONDS = 60


@pytest.mark.parametrize(
    ("number", "reason", "stop_signal"),
    [
        pytest.param(signal.SIGTERM, Wakeup.STOP, "SIGTERM", id="term"),
        pytest.param(signal.SIGINT, Wakeup.STOP, "SIGINT", id="int"),
        pytest.param(signal.SIGHUP, Wakeup.RELOAD, "", id="hup"),
        pytest.param(signal.SIGUSR1, Wakeup.NOW, "", id="usr1"),
    ],
)
def test_signals_become_wakeups(number: signal.Signals, reason: Wakeup, stop_signal: str) -> None:
    wakeups, state = WakeupQueue(), ServiceState()
    with handle_signals(wakeups, state):
        os.kill(os.getpid(), number)
        reasons = wakeups.wait(TIMEOUT_SECONDS)

    assert (reasons, wakeups.stop_signal) == ({reason}, stop_signal)
    assert (state.stopping_since is not None) == bool(stop_signal)


@pytest.mark.parametrize(
    ("numbers", "seconds", "aborted"),
    [
        pytest.param([signal.SIGTERM], 1, [], id="one-signal"),
        pytest.param([signal.SIGTERM, signal.SIGTERM], 1, [signal.SIGTERM], id="two-signals"),
        pytest.param([signal.SIGTERM, signal.SIGINT], 1, [signal.SIGINT], id="two-different-signals"),
        pytest.param([signal.SIGTERM, signal.SIGTERM], 0.05, [], id="repeated-signal"),
        pytest.param([signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1], 1, [], id="other-signals"),
    ],
)
def test_second_signal_aborts(numbers: list[signal.Signals], seconds: float, aborted: list[signal.Signals]) -> None:
    clock, aborts = ManualClock(), list[int]()
    with handle_signals(WakeupQueue(), ServiceState(), aborts.append, clock):
        for number in numbers:
            os.kill(os.getpid(), number)
            clock.now += seconds

    assert aborts == aborted


def test_handlers_are_restored() -> None:
    before = signal.getsignal(signal.SIGUSR1)
    with handle_signals(WakeupQueue(), ServiceState()):
        pass

    assert signal.getsignal(signal.SIGUSR1) is before


# Start a child in its own process group, as Git processes are, and print its ID. After the first signal, wait until a
# second signal has an effect.
PROGRAM = """
import subprocess, time
from reconciler.service import signals
from reconciler.service.loop import WakeupQueue
from reconciler.service.state import ServiceState

wakeups = WakeupQueue()
with signals.handle_signals(wakeups, ServiceState()):
    child = subprocess.Popen(["sleep", "600"], start_new_session=True)
    print(child.pid, flush=True)
    wakeups.wait(600)
    time.sleep(2 * signals._MIN_SECONDS_BETWEEN_SIGNALS)
    print("stopping", flush=True)
    wakeups.wait(600)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads the child processes from /proc")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_abort_ends_child_processes(number: signal.Signals) -> None:
    environment = {**os.environ, "PYTHONPATH": str(PROJECT)}
    command = [sys.executable, "-c", PROGRAM]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        child = os.pidfd_open(int(process.stdout.readline()))
        process.send_signal(signal.SIGTERM)
        assert process.stdout.readline() == "stopping\n"
        process.send_signal(number)
        status = process.wait(TIMEOUT_SECONDS)

    ended, _, _ = select.select([child], [], [], TIMEOUT_SECONDS)
    os.close(child)
    assert (status, ended) == (128 + number, [child])
