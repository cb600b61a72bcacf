"""A test that hangs fails with the stacks of all threads, by the configuration and the plugins that every test run uses."""

import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
HANGING = """
import threading

def wait_in_a_thread(event):
    event.wait()

def test_that_waits():
    event = threading.Event()
    threading.Thread(target=wait_in_a_thread, args=(event,), daemon=True).start()
    event.wait()

def test_after_it():
    pass
"""

BLOCKED = """
import signal, threading

def test_that_blocks():
    # The signal of pytest-timeout has no effect, as in a call in a C library.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})
    threading.Event().wait()
"""
LONG = """
import threading

import pytest

@pytest.mark.timeout(60)
def test_with_its_own_limit():
    threading.Event().wait(1.5)
"""
GUARD = """
from tests.support import stall_guard

stall_guard.LIMIT = 1

def pytest_configure(config):
    config.pluginmanager.register(stall_guard.StallGuard())
"""


def run_pytest(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-c", str(REPOSITORY / "pyproject.toml"), "--rootdir", str(folder)]
    switched_off = ["-p", "no:cacheprovider", "-p", "no:xdist"]
    return subprocess.run(
        [*command, *switched_off, *options, str(folder)],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


@pytest.mark.slow
def test_a_hanging_test_fails_with_all_stacks_and_the_next_test_runs(tmp_path: Path) -> None:
    (tmp_path / "test_hanging.py").write_text(HANGING)
    process = run_pytest(tmp_path, "-o", "timeout=0.5")

    assert process.returncode == 1
    assert "1 failed, 1 passed" in process.stdout
    assert "Timeout (>0.5s) from pytest-timeout" in process.stdout
    assert "in wait_in_a_thread" in process.stdout + process.stderr


def test_a_test_that_no_signal_interrupts_ends_the_process_with_all_stacks(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(GUARD)
    (tmp_path / "test_blocked.py").write_text(BLOCKED)
    process = run_pytest(tmp_path, "-o", "timeout=0.5")

    assert process.returncode == 1
    assert "Timeout (0:00:01)!" in process.stderr
    assert "in test_that_blocks" in process.stderr


@pytest.mark.slow
def test_a_test_with_a_higher_limit_of_its_own_is_not_ended(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(GUARD)
    # The limit of the second test is the usual limit again.
    (tmp_path / "test_blocked.py").write_text(LONG + BLOCKED)
    process = run_pytest(tmp_path, "-o", "timeout=0.5")

    assert process.returncode == 1
    assert "in test_that_blocks" in process.stderr
    assert "in test_with_its_own_limit" not in process.stderr
