"""A published fleet for each test."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.support.published_fleet import Fleet, publish_fleet


@pytest.fixture(scope="session")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return publish_fleet(tmp_path_factory.mktemp("operation"))


@pytest.fixture
def fleet(published: Path, tmp_path: Path) -> Fleet:
    """A copy of the published fleet, with a clone of its config in the folder `work`."""
    folder = tmp_path / "demo"
    shutil.copytree(published, folder)
    fleet = Fleet(folder)
    fleet.must_run("git clone --quiet config.git work")
    return fleet
