"""The fleet repository of `reconciler demo`, whose content the reference pages show."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.command_line import run_in


@pytest.fixture(scope="session")
def demo_fleet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fleet")
    result = run_in(folder, {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null"}, "demo")
    assert result.returncode == 0, result.stderr
    return folder / "demo" / "fleet.git"


@pytest.fixture
def should_rewrite(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--rewrite-expected"))
