"""Tests of `status.downstreamTargets`: it contains the open draft, or the published package if there is no draft."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.world import World, package, small_world, variant

OWNER = "metrics-berlin"
FIRST, SECOND = "berlin.metrics.packagevariant-1", "berlin.metrics.packagevariant-2"
AT_V1 = {"metrics.yaml": variant(OWNER, "berlin", "metrics")}
AT_V2 = {"metrics.yaml": variant(OWNER, "berlin", "metrics", "v2")}


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Return a world where v1 of `metrics` is published, and v2 is on a draft."""
    world = small_world(tmp_path)
    world.sync()
    world.merge("berlin")
    world.sync()
    assert read_targets(world) == [FIRST]
    world.release("metrics", "v2", package("metrics", image="2.0"))
    world.write(AT_V2)
    world.sync()
    assert read_targets(world) == [SECOND]
    return world


def read_targets(world: World, name: str = OWNER) -> list[str]:
    downstream_targets = world.status("PackageVariant", name).get("downstreamTargets", [])
    assert isinstance(downstream_targets, list)
    return [item["name"] for item in downstream_targets]


@pytest.mark.parametrize(
    "end",
    [
        pytest.param(lambda world: world.delete("drafts/berlin"), id="the-draft-is-deleted"),
        pytest.param(lambda world: world.run_review_action("drop", "berlin/metrics"), id="the-draft-is-dropped"),
        pytest.param(lambda world: world.write(AT_V1), id="the-old-revision-is-set-again"),
    ],
)
def test_target_without_a_draft_is_the_published_package(world: World, end: Callable[[World], object]) -> None:
    end(world)
    world.sync()

    assert read_targets(world) == [FIRST]
    assert world.sync_until_unchanged().is_unchanged
    assert read_targets(world) == [FIRST]


def test_deleted_status_branch_is_restored_with_the_same_content(world: World) -> None:
    world.delete("drafts/berlin")
    world.sync()
    before = world.status("PackageVariant", OWNER)
    world.delete("reconciler/status")
    world.sync()

    assert world.status("PackageVariant", OWNER) == before


def test_second_draft_stays_the_target_after_its_publication(world: World) -> None:
    world.merge("berlin")
    world.sync()

    assert read_targets(world) == [SECOND]


INVALID = AT_V1["metrics.yaml"].replace("downstream:", "downstreem:")
NOT_FOUND = variant(OWNER, "berlin", "metrics", "v9")


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize(
    ("text", "reason"),
    [
        pytest.param(INVALID, "ValidationError", id="invalid"),
        pytest.param(NOT_FOUND, "UpstreamNotFound", id="upstream-not-found"),
    ],
)
@pytest.mark.parametrize(
    ("drafted", "expected"),
    [pytest.param(True, SECOND, id="with-a-draft"), pytest.param(False, FIRST, id="published-only")],
)
def test_stalled_variant_keeps_its_target(world: World, text: str, reason: str, drafted: bool, expected: str) -> None:
    if not drafted:
        world.delete("drafts/berlin")
        world.sync()
    world.write({"metrics.yaml": text})
    world.sync()

    assert world.reason(OWNER, "Stalled") == reason
    assert read_targets(world) == [expected]
    assert world.sync_until_unchanged().is_unchanged


def test_stalled_variant_without_a_package_has_no_target(world: World) -> None:
    world.write({"new.yaml": variant("new", "berlin", "new", "v9", upstream="metrics")})
    world.sync()

    assert read_targets(world, "new") == []
