"""Tests of unreadable repositories: no command reports them as empty, and the exit status shows the error."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.support.command_line import run_in
from tests.support.prepared_worlds import published
from tests.support.world import World

pytestmark = pytest.mark.real_git

CONFIG = ("--config", "config")
COMMANDS = {
    "plan": (("config",), 1),
    "sync": (("config",), 1),
    "validate": (("config",), 1),
    "validate-rendered": (("config", "--rendered"), 1),
    "drafts": (("config",), 1),
    "show": (("berlin", *CONFIG), 1),
    "verify": ((*CONFIG,), 1),
    "explain": (("berlin/gateway", *CONFIG), 1),
    "why": (("berlin/gateway", "Deployment/gateway", *CONFIG), 3),
    "report": (("config",), 3),
    "status": ((), 3),
}
_CLAIMS = ("no changes", "nothing of ours", "no draft", "no findings", "nothing is")


@pytest.fixture(scope="module")
def unreadable_world(tmp_path_factory: pytest.TempPathFactory) -> World:
    """Return a published fleet with a missing repository that this cache never fetched."""
    world = published(tmp_path_factory.mktemp("unreadable"))
    world.fleet.rename(world.folder / "gone.git")
    shutil.rmtree(world.folder / "cache", ignore_errors=True)
    return world


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize("name", COMMANDS)
def test_an_unreadable_fleet_is_not_reported_as_empty(unreadable_world: World, name: str) -> None:
    arguments, status = COMMANDS[name]
    options = ("--fleet", "fleet.git", "--cache", "cache")

    result = run_in(unreadable_world.folder, _environment(), name.partition("-")[0], *arguments, *options)

    assert result.returncode == status, result.stdout + result.stderr
    assert "fleet.git" in result.stdout + result.stderr
    assert not [claim for claim in _CLAIMS if claim in result.stdout]


def _environment() -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "HOME": str(Path("/nonexistent"))}
