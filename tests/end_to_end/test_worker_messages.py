"""The plugin that omits messages of workers reports the same results as pytest-xdist without the plugin."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
CONFTEST = """
import os
from tests.support.worker_messages import WorkerMessages, can_omit_reports

def pytest_configure(config):
    if "PYTEST_XDIST_WORKER" in os.environ and can_omit_reports(config):
        config.pluginmanager.register(WorkerMessages())
"""
TESTS = """
import pytest

@pytest.fixture
def broken_setup():
    raise ValueError("setup")

@pytest.fixture
def broken_teardown():
    yield
    raise ValueError("teardown")

def test_passes(): pass
def test_fails(): assert 1 == 2
def test_fails_before(broken_setup): pass
def test_fails_after(broken_teardown): pass
def test_fails_twice(broken_teardown): assert 1 == 2

@pytest.mark.skip(reason="not here")
def test_skipped(): pass

@pytest.mark.xfail(reason="known")
def test_known_failure(): assert 1 == 2
"""


@pytest.mark.parametrize(
    "options",
    [
        pytest.param((), id="one-message"),
        pytest.param(("--durations=5", "-vv"), id="all-messages", marks=pytest.mark.slow),
    ],
)
def test_results_of_each_kind_are_reported(options: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_results.py").write_text(TESTS)
    command = [sys.executable, "-m", "pytest", "-n", "1", "-ra", "-p", "no:cacheprovider", *options, str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    process = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60, check=False
    )

    assert process.returncode == 1, process.stdout + process.stderr
    assert "2 failed, 2 passed, 1 skipped, 1 xfailed, 3 errors" in process.stdout
    assert ("0.00s setup" in process.stdout) is bool(options)
    summary = re.findall(r"^(ERROR|FAILED) test_results\.py::(\w+)", process.stdout, re.MULTILINE)
    assert sorted(summary) == [
        ("ERROR", "test_fails_after"),
        ("ERROR", "test_fails_before"),
        ("ERROR", "test_fails_twice"),
        ("FAILED", "test_fails"),
        ("FAILED", "test_fails_twice"),
    ]
