"""Options of the golden cases, the number of workers, the folder for temporary files, and the limit of stalled tests."""

import gc
import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.support.emitted_events import collect_events
from tests.support.logs import unchanged_logs
from tests.support.shared_imports import import_share
from tests.support.stall_guard import StallGuard
from tests.support.worker_messages import WorkerMessages, can_omit_reports

# The duration of an example depends on the machine.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")

MEMORY = Path("/dev/shm")
ROOM = 4 * 2**30


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol() -> Iterator[None]:
    # A command that runs in this process would hide the log events of the next test.
    with unchanged_logs():
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Check that a test with the marker `emits` emits the log events that the marker names."""
    expected = {name for marker in item.iter_markers("emits") for name in marker.args}
    if not expected:
        return (yield)
    with collect_events() as events:
        result = yield
    assert expected <= events, f"the test emitted only {sorted(events)}"
    return result


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--rewrite-expected", action="store_true", help="write fixtures/**/expected anew; review it as a diff"
    )


def pytest_xdist_auto_num_workers() -> int:
    # A worker mostly waits for Git or for the disk. With one worker per core, the machine is idle a fifth of the time.
    return (os.cpu_count() or 1) + 1


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """Stop garbage collection during the collection of the tests: nearly all of these objects live until the end."""
    gc.disable()
    if "PYTEST_XDIST_WORKER" in os.environ:
        import_share(session.config)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep every n-th case of tests with the marker `quick_cases(every=n)` in the first test run. Mark the rest as slow."""
    numbers: Counter[str] = Counter()
    for item in items:
        marker = item.get_closest_marker("quick_cases")
        if marker is not None:
            test = item.nodeid.partition("[")[0]
            if numbers[test] % marker.kwargs["every"]:
                item.add_marker("slow")
            numbers[test] += 1


def pytest_collection_finish() -> None:
    """Exclude the collected tests from garbage collection, and run it rarely: tests create few reference cycles."""
    gc.freeze()
    gc.set_threshold(100_000, 50, 100)
    gc.enable()


def pytest_configure(config: pytest.Config) -> None:
    """Start the guard, and choose the folder once. Workers and child processes inherit the folder."""
    config.pluginmanager.register(StallGuard())
    if "PYTEST_XDIST_WORKER" in os.environ:
        if can_omit_reports(config):
            config.pluginmanager.register(WorkerMessages())
        return
    # A thousand processes share the compiled modules.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    # The tests create thousands of repositories. On a disk, each of them waits for a flush.
    if "TMPDIR" not in os.environ and os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > ROOM:
        os.environ["TMPDIR"] = tempfile.tempdir = str(MEMORY)
