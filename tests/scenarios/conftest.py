"""Fixtures for the scenario tests: all tests of a process use the same folder, so that they can copy prepared worlds."""

import shutil
from pathlib import Path

import pytest

from tests.support.in_process_git.program import git_of_the_module

__all__ = ["git_of_the_module"]


@pytest.fixture
def tmp_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an empty folder that has the same path in all tests, because commits contain the URL of the upstream."""
    folder = tmp_path_factory.getbasetemp() / "scenario"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    return folder
