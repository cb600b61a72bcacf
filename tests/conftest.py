"""Options of the golden cases, the number of workers, and the folder for temporary files."""

import gc
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.support.logs import unchanged_logs

# The duration of an example depends on the machine.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")

MEMORY = Path("/dev/shm")
ROOM = 4 * 2**30


@pytest.fixture(autouse=True)
def _unchanged_logs() -> Iterator[None]:
    # A command that runs in this process would hide the log events of the next test.
    with unchanged_logs():
        yield


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--rewrite-expected", action="store_true", help="write fixtures/**/expected anew; review it as a diff"
    )


def pytest_xdist_auto_num_workers() -> int:
    # A worker mostly waits for Git or for the disk. With one worker per core, the machine is idle a fifth of the time.
    return (os.cpu_count() or 1) + 1


def pytest_collection_finish() -> None:
    """Exclude the collected tests from garbage collection: they live until the end."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000)


def pytest_configure(config: pytest.Config) -> None:
    """Choose the folder once. Workers and child processes inherit it."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        return
    if os.environ.pop("PYTHONDONTWRITEBYTECODE", None) and getattr(config, "cache", None):
        # Nothing is written beside the sources. A thousand processes share one cache of compiled modules.
        os.environ["PYTHONPYCACHEPREFIX"] = str(config.cache.mkdir("compiled"))
    # The tests create thousands of repositories. On a disk, each of them waits for a flush.
    if "TMPDIR" not in os.environ and os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > ROOM:
        os.environ["TMPDIR"] = tempfile.tempdir = str(MEMORY)
