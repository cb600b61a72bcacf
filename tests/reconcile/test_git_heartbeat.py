"""The heartbeat in Git: one commit per interval, without effects on passes, and a warning after a failure."""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from reconciler.bootstrap.heartbeat import build_heartbeat
from reconciler.bootstrap.services import build_services
from reconciler.git.mirror import Mirror
from reconciler.planning.model.shard import Shard
from reconciler.service.git_heartbeat import GitHeartbeat, NoHeartbeat
from reconciler.settings import Settings
from tests.support.git_repositories import git, make_bare, read_ref, read_refs
from tests.support.world import World, small_world

REF = "refs/reconciler/heartbeat/2-of-3"


class Scene:
    """A repository, and the heartbeats of daemons with a manual clock."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.remote = make_bare(folder / "fleet.git")
        self.now = 1_700_000_000.0
        self.heartbeat = self.start()

    def start(self) -> GitHeartbeat:
        open_mirror = partial(Mirror.open, self.folder / "cache", str(self.remote))
        return GitHeartbeat(open_mirror, Shard(2, 3), 600, lambda: self.now)

    def record(self, result: str = "success") -> str:
        """Record a pass, wait for the push, and return the commit of the ref, or ""."""
        self.heartbeat.record_pass(result)
        self.heartbeat.wait()
        return read_ref(self.remote, REF) or ""


def test_the_commit_is_replaced_once_per_interval(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    first = scene.record()
    scene.now += 599
    early = scene.record()
    scene.now += 1
    second = scene.record("partial")

    assert (early, second != first) == (first, True)
    line = "1700000600 heartbeat: shard 2/3 completed a pass with the result partial"
    assert git(scene.remote, "log", "--format=%ct %s", REF) == line
    assert git(scene.remote, "ls-tree", "-r", REF) == ""
    assert set(read_refs(scene.remote)) == {REF}


def test_a_daemon_with_an_empty_cache_replaces_the_commit(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    first = scene.record()
    shutil.rmtree(tmp_path / "cache")
    scene.heartbeat = scene.start()
    scene.now += 5

    assert scene.record() not in {"", first}


@pytest.mark.emits("heartbeat_push_failed")
def test_a_failed_push_is_logged_and_tried_again(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    scene.remote.rename(tmp_path / "away")
    with capture_logs() as events:
        scene.record()
        scene.record()
        (tmp_path / "away").rename(scene.remote)
        scene.now += 600
        last = scene.record()

    (failed,) = events
    assert (failed["event"], failed["log_level"], failed["ref"]) == ("heartbeat_push_failed", "warning", REF)
    assert "fleet.git" in failed["message"]
    assert last != ""


def build(world: World, *, minutes: int = 5, is_read_only: bool = False) -> GitHeartbeat | NoHeartbeat:
    """Build the heartbeat of a daemon for a world."""
    data = {
        "fleet": {"url": str(world.fleet)}, "cache": f"{world.folder}/cache", "status": {"heartbeat_minutes": minutes}
    }  # fmt: skip
    settings = Settings.model_validate(data)
    return build_heartbeat(settings, build_services(settings, world.source).inputs, is_read_only=is_read_only)


@pytest.mark.slow
def test_a_heartbeat_starts_no_work_in_passes(tmp_path: Path) -> None:
    world = small_world(tmp_path)
    passes = world.service()
    passes.run()
    heartbeat = build(world)
    assert isinstance(heartbeat, GitHeartbeat)
    heartbeat.record_pass("success")
    heartbeat.wait()
    passes.run()

    assert "refs/reconciler/heartbeat/1-of-1" in read_refs(world.fleet)
    assert passes.summary.is_skipped


def test_the_heartbeat_is_off_by_default_and_in_a_standby(tmp_path: Path) -> None:
    world = small_world(tmp_path)

    assert isinstance(build(world, is_read_only=True), NoHeartbeat)
    assert isinstance(build(world, minutes=0), NoHeartbeat)
