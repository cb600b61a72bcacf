"""Fixtures for the scenario tests, and the check of a second pass."""

from collections.abc import Iterator

import pytest

from tests.support.artifact_servers import registry
from tests.support.in_process_git.program import git_of_the_module
from tests.support.prepared_worlds import tmp_path
from tests.support.world import PassResult, World

__all__ = ["git_of_the_module", "registry", "tmp_path"]


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
