"""A test that hangs fails with the stacks of all threads, by the configuration that every test run uses."""

import subprocess
import sys
from pathlib import Path

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


def test_a_hanging_test_fails_with_all_stacks_and_the_next_test_runs(tmp_path: Path) -> None:
    (tmp_path / "test_hanging.py").write_text(HANGING)
    command = [sys.executable, "-m", "pytest", "-c", str(REPOSITORY / "pyproject.toml"), "--rootdir", str(tmp_path)]
    shorter = ["-o", "timeout=0.5", "-p", "no:cacheprovider", "-p", "no:xdist", str(tmp_path)]

    process = subprocess.run([*command, *shorter], capture_output=True, text=True, timeout=60, check=False)

    assert process.returncode == 1
    assert "1 failed, 1 passed" in process.stdout
    assert "Timeout (>0.5s) from pytest-timeout" in process.stdout
    assert "in wait_in_a_thread" in process.stdout + process.stderr
