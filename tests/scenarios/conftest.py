"""Fixtures for the scenario tests: all tests of a process use the same folder, so that they can copy prepared repositories."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.artifact_servers import registry
from tests.support.in_process_git.program import git_of_the_module
from tests.support.world import PassResult, World

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


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Check after a test with the marker `second_pass` that another pass after its last pass moves no ref."""
    if item.get_closest_marker("second_pass") is None:
        return (yield)
    synced: list[World] = []
    sync = World.sync

    def record(world: World) -> PassResult:
        synced.append(world)
        return sync(world)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(World, "sync", record)
        result = yield
    for world in synced[-1:]:
        second = sync(world)
        moved = {name for name, _ in second.before.items() ^ second.after.items()}
        assert not moved, f"the pass after the last pass of the test moves {sorted(moved)}"
    return result
