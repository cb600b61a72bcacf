"""The fleet repository of `reconciler demo`, whose content the reference pages show."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def demo_fleet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fleet")
    environment = {**os.environ, "PYTHONPATH": str(PROJECT), "GIT_CONFIG_GLOBAL": "/dev/null"}
    subprocess.run(
        [sys.executable, "-m", "reconciler", "demo"], cwd=folder, env=environment, check=True, capture_output=True
    )
    return folder / "demo" / "fleet.git"


@pytest.fixture
def should_rewrite(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--rewrite-expected"))
