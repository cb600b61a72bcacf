"""Fixtures for the scenario tests: all tests of a process use the same folder, so that they can copy prepared repositories."""

import subprocess
from pathlib import Path

import pytest

from tests.support.artifact_servers import registry
from tests.support.in_process_git.program import git_of_the_module

__all__ = ["git_of_the_module", "registry"]


@pytest.fixture
def tmp_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an empty folder that has the same path in all tests, because commits contain the URL of the upstream."""
    folder = tmp_path_factory.getbasetemp() / "scenario"
    if folder.exists():
        # A test leaves hundreds of files. The program deletes them in a third of the time of `shutil.rmtree`.
        subprocess.run(["rm", "-rf", folder], check=True)
    folder.mkdir()
    return folder
