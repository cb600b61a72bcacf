"""The switch of the golden cases and journeys, how many workers there are, and where what tests make is written."""

import gc
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.support.logs import unchanged_logs

# how long an example takes is the machine's affair
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")

MEMORY = Path("/dev/shm")
ROOM = 4 * 2**30


@pytest.fixture(autouse=True)
def _unchanged_logs() -> Iterator[None]:
    # a test that runs a command in this process would hide the events of the next one
    with unchanged_logs():
        yield


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--rewrite-expected", action="store_true", help="write fixtures/**/expected anew; review it as a diff"
    )


def pytest_xdist_auto_num_workers() -> int:
    # a worker mostly waits for git, or git for the disk: with one for each core a fifth of the machine stands idle
    return (os.cpu_count() or 1) + 1


def pytest_collection_finish() -> None:
    """Let nobody go through the tests themselves for cycles, again and again: they stay to the end."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000)


def pytest_configure(config: pytest.Config) -> None:
    """Choose where, once; workers and all that tests start inherit it."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        return
    if os.environ.pop("PYTHONDONTWRITEBYTECODE", None) and config.cache:
        # nothing is to be written beside the sources, but a thousand processes need not compile them each
        os.environ["PYTHONPYCACHEPREFIX"] = str(config.cache.mkdir("compiled"))
    # repositories by the thousand, of which each waits for the disk to have it
    if "TMPDIR" not in os.environ and os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > ROOM:
        os.environ["TMPDIR"] = tempfile.tempdir = str(MEMORY)
