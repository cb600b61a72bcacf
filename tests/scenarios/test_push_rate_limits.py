"""Tests of push rate limits: other remotes are not delayed, and all refs are pushed after some passes."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from reconciler.bootstrap.publishers import build_push_publisher
from reconciler.bootstrap.services import build_services
from reconciler.reconcile.pass_runner import PassRunner
from reconciler.settings import Settings
from tests.support.git_repositories import git, make_bare, read_refs
from tests.support.world import World, catalog, package, repository, variant

CLUSTERS = tuple(f"c{index}" for index in range(7))

POLICY = "{approval.nephio.org/policy: always}"


class RateLimitedWorld:
    """A daemon's passes over a fleet and over one repository without limits. The test advances all clocks."""

    def __init__(self, folder: Path, settings: Mapping[str, Any] | None = None, **limits: Any) -> None:
        self.world = World.create(folder)
        self.now = 1_500_000_000.0
        self.other = make_bare(folder / "other.git")
        self.world.release("web", "v1", package("web"))
        self.request_revision("v1")
        base_settings = {"fleet": {"url": str(self.world.fleet)}, "cache": str(folder / "cache")}
        self.settings = Settings.model_validate({**base_settings, **(settings or {}), "git": limits})
        services = build_services(
            self.settings,
            self.world.source,
            clock=lambda: self.now,
            monotonic_clock=lambda: self.now,
            wake_up=lambda: None,
        )
        self.passes = PassRunner(
            services.source, services.remotes, services.pass_services, build_push_publisher(self.settings)
        )

    def request_revision(self, revision: str) -> None:
        """Request this revision on all clusters."""
        urls = {**dict.fromkeys(CLUSTERS, "./fleet.git"), "other": "./other.git"}
        for name, url in urls.items():
            expected = variant(f"web-{name}", name, "web", revision)
            self.world.write({f"{name}.yaml": f"{repository(name, url)}---\n{expected}"})
        self.world.write({"catalog.yaml": catalog()})

    def read_all_refs(self) -> Mapping[str, str]:
        """Return the refs of both repositories, and the tree of the status branch, which gets a commit in each pass."""
        mapping = {f"other {ref}": commit for ref, commit in read_refs(self.other).items()}
        status = git(self.world.fleet, "rev-parse", "refs/heads/reconciler/status^{tree}")
        return {**read_refs(self.world.fleet), **mapping, "refs/heads/reconciler/status": status}

    def list_drafted_clusters(self) -> set[str]:
        """Return the clusters of the fleet that have a draft."""
        return {ref.rpartition("/")[2] for ref in read_refs(self.world.fleet) if "/drafts/" in ref}

    def run_pass(self) -> bool:
        """Run a pass. Return whether it postponed no push."""
        assert self.passes.run()
        return "PushPostponed" not in {finding.code for finding in self.passes.summary.findings}

    def run_until_idle(self) -> int:
        """Run passes until no work is due. Return the number of passes."""
        for count in range(1, 60):
            self.run_pass()
            if self.passes.summary.is_skipped:
                return count
            self.now += max(min(self.passes.seconds_until_due, 60.0), 1.0)
        raise AssertionError("the passes do not become idle")


def build_rate_limited_world(folder: Path, per_minute: int = 2, refs: int = 3) -> RateLimitedWorld:
    limits = {"url": str(folder / "fleet.git"), "max_pushes_per_minute": per_minute, "max_refs_per_push": refs}
    return RateLimitedWorld(folder, remotes=[limits])


@pytest.mark.slow
def test_pushes_above_the_limit_wait_and_other_remotes_do_not(tmp_path: Path) -> None:
    world = build_rate_limited_world(tmp_path / "world")

    assert not world.run_pass()
    assert "refs/heads/drafts/other" in read_refs(world.other)
    assert world.list_drafted_clusters() < set(CLUSTERS)
    assert 0 < world.passes.seconds_until_due <= 60
    assert not world.passes.summary.is_clean


@pytest.mark.slow
@pytest.mark.emits("push_postponed")
def test_postponed_pushes_continue_in_later_passes(tmp_path: Path) -> None:
    world = build_rate_limited_world(tmp_path / "world")
    values = []
    for _ in range(30):
        world.run_pass()
        values.append(world.list_drafted_clusters())
        if world.passes.summary.is_skipped:
            break
        world.now += 60

    assert world.passes.summary.is_skipped
    assert values[-1] == set(CLUSTERS)
    assert all(before <= after for before, after in pairwise(values))


def test_the_rate_limit_applies_across_passes(tmp_path: Path) -> None:
    world = build_rate_limited_world(tmp_path / "world")
    moved = []
    for _ in range(6):
        before = read_refs(world.world.fleet)
        world.run_pass()
        after = read_refs(world.world.fleet)
        moved.append(sum(before.get(ref) != after.get(ref) for ref in after))

    # All passes run within one minute: two pushes of three refs.
    assert sum(moved) <= 2 * 3


def test_status_is_pushed_before_all_drafts_are_pushed(tmp_path: Path) -> None:
    world = build_rate_limited_world(tmp_path / "world", per_minute=1)
    for _ in range(3):
        world.run_pass()
        world.now += 60

    assert "refs/heads/reconciler/status" in read_refs(world.world.fleet)
    assert world.list_drafted_clusters() < set(CLUSTERS)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("per_minute", "refs"),
    [
        pytest.param(1, 500, id="one-push-of-many-refs"),
        pytest.param(2, 3, marks=pytest.mark.slow, id="two-pushes-of-a-cluster-each"),
        pytest.param(5, 3, id="five-pushes-of-a-cluster-each"),
    ],
)
def test_a_rate_limited_fleet_ends_with_the_same_refs_as_an_unlimited_one(
    tmp_path: Path, per_minute: int, refs: int
) -> None:
    # Both instances of World use the same folder, because states contain the address.
    free = RateLimitedWorld(tmp_path / "world")
    free.run_until_idle()
    free.world.release("web", "v2", package("web", replicas=5))
    free.request_revision("v2")
    free.run_until_idle()
    expected = free.read_all_refs()
    shutil.rmtree(tmp_path / "world")

    world = build_rate_limited_world(tmp_path / "world", per_minute, refs)
    world.run_until_idle()
    world.world.release("web", "v2", package("web", replicas=5))
    world.request_revision("v2")
    world.run_until_idle()

    assert world.read_all_refs() == expected


@pytest.mark.slow
def test_a_release_during_postponed_pushes_is_drafted_everywhere(tmp_path: Path) -> None:
    world = build_rate_limited_world(tmp_path / "world")
    world.run_pass()
    world.world.release("web", "v2", package("web", replicas=5))
    world.request_revision("v2")
    world.run_until_idle()

    for name in CLUSTERS:
        assert "replicas: 5" in world.world.text(f"drafts/{name}", "web/deployment.yaml")


def test_packages_approved_by_annotation_wait_for_the_rate_limit(tmp_path: Path) -> None:
    folder = tmp_path / "world"
    limits = {"url": str(folder / "fleet.git"), "max_pushes_per_minute": 2}
    world = RateLimitedWorld(folder, {"approvals": {"by_annotation": True}}, remotes=[limits])
    for name in CLUSTERS:
        text = (world.world.config / f"{name}.yaml").read_text()
        world.world.write({f"{name}.yaml": f"{text}  annotations: {POLICY}\n"})
    world.run_until_idle()

    for name in CLUSTERS:
        assert "replicas: 2" in world.world.text(f"clusters/{name}", "web/deployment.yaml")
