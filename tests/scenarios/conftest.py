"""One place for every journey of a process, so that worlds can be copied (tests/support/prepared_worlds.py)."""

import shutil
from pathlib import Path

import pytest


@pytest.fixture
def tmp_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an empty folder, always the same one: the commits of a world tell where its upstream is."""
    folder = tmp_path_factory.getbasetemp() / "journey"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    return folder
