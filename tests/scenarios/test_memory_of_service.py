"""Tests of the memory of a service: a pass and an index update free the contents of repositories at their end."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciler.controllers.override_policies.package_overrides import PackageOverrider
from reconciler.git.object_reader import ObjectReader
from reconciler.reconcile import pass_runner
from reconciler.reconcile.pass_context import PassContext
from reconciler.reconcile.remotes.repository import Remote
from tests.support.prepared_worlds import begin, published
from tests.support.world import REGIONS, World, config_map


@pytest.fixture
def world(tmp_path: Path) -> World:
    return begin(tmp_path, published)


@pytest.fixture
def disabled_collection(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Disable the garbage collection. Only objects that are in no reference cycle are then freed."""
    monkeypatch.setattr(pass_runner, "release_pass_memory", lambda: None)
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def count_objects() -> Counter[str]:
    """Return the number of objects that contain data of repositories, by class."""
    classes = (ObjectReader, PackageOverrider, PassContext, Remote)
    return Counter(type(item).__name__ for item in gc.get_objects() if isinstance(item, classes))


def change_endpoints(world: World, number: int) -> None:
    """Change objects that the packages of all clusters use."""
    world.write({
        f"regions/{region}.yaml": config_map(f"region-{region}", api=f"api-{number}.{region}")
        for region in REGIONS.values()
    })  # fmt: skip


@pytest.mark.slow
@pytest.mark.usefixtures("disabled_collection")
def test_pass_frees_the_contents_of_repositories_without_garbage_collection(world: World) -> None:
    passes, before = world.service(), count_objects()
    for number in range(3):
        change_endpoints(world, number)
        passes.run()
        assert passes.summary.drafts
    assert count_objects() == before


@pytest.mark.usefixtures("disabled_collection")
def test_index_update_frees_the_contents_of_repositories_without_garbage_collection(world: World) -> None:
    indexer, observed = world.create_indexer(), world.observe_pass()
    before = count_objects()
    index = indexer.update(observed, lambda done, total: None)
    assert index.targets
    assert count_objects() == before
