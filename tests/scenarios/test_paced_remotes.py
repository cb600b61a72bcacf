"""Pushes at the pace of a remote: what waits for its turn holds up nobody, and in the end nothing is missing."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from reconciler.bootstrap import build_push_publisher, build_services
from reconciler.reconcile.pass_runner import PassRunner
from reconciler.settings import Settings
from tests.support.git_repositories import git, make_bare, read_refs
from tests.support.world import World, catalog, package, repository, variant

CLUSTERS = tuple(f"c{index}" for index in range(7))

POLICY = "{approval.nephio.org/policy: always}"


class Paced:
    """The passes of a service over a fleet, and one repository that is nobody's; all clocks are ticked by hand."""

    def __init__(self, folder: Path, settings: Mapping[str, Any] | None = None, **limits: Any) -> None:
        self.world = World.create(folder)
        self.now = 1_500_000_000.0
        self.other = make_bare(folder / "other.git")
        self.world.release("web", "v1", package("web"))
        self.write("v1")
        own = {"fleet": {"url": str(self.world.fleet)}, "cache": str(folder / "cache")}
        self.settings = Settings.model_validate({**own, **(settings or {}), "git": limits})
        parts = build_services(
            self.settings,
            self.world.source,
            clock=lambda: self.now,
            monotonic_clock=lambda: self.now,
            wake_up=lambda: None,
        )
        self.passes = PassRunner(parts.source, parts.remotes, parts.pass_services, build_push_publisher(self.settings))

    def write(self, revision: str) -> None:
        """Let all clusters want this revision."""
        urls = {**dict.fromkeys(CLUSTERS, "./fleet.git"), "other": "./other.git"}
        for name, url in urls.items():
            expected = variant(f"web-{name}", name, "web", revision)
            self.world.write({f"{name}.yaml": f"{repository(name, url)}---\n{expected}"})
        self.world.write({"catalog.yaml": catalog()})

    def refs(self) -> Mapping[str, str]:
        """The refs of both repositories; of the status, which tells of every pass, what it says in the end."""
        mapping = {f"other {ref}": commit for ref, commit in read_refs(self.other).items()}
        status = git(self.world.fleet, "rev-parse", "refs/heads/reconciler/status^{tree}")
        return {**read_refs(self.world.fleet), **mapping, "refs/heads/reconciler/status": status}

    def drafted(self) -> set[str]:
        """The clusters of the fleet that have a draft."""
        return {ref.rpartition("/")[2] for ref in read_refs(self.world.fleet) if "/drafts/" in ref}

    def run(self) -> bool:
        """Run a pass; return whether it had nothing left to wait for."""
        assert self.passes.run()
        return "PushPostponed" not in {finding.code for finding in self.passes.summary.findings}

    def run_all(self) -> int:
        """Run passes whenever something is due, until nothing is; return how many that took."""
        for count in range(1, 60):
            self.run()
            if self.passes.summary.is_skipped:
                return count
            self.now += max(min(self.passes.seconds_until_due, 60.0), 1.0)
        raise AssertionError("it never came to an end")


def paced(folder: Path, per_minute: int = 2, refs: int = 3) -> Paced:
    limits = {"url": str(folder / "fleet.git"), "max_pushes_per_minute": per_minute, "max_refs_per_push": refs}
    return Paced(folder, remotes=[limits])


def test_what_is_over_the_pace_waits_and_other_remotes_do_not(tmp_path: Path) -> None:
    world = paced(tmp_path / "world")

    assert not world.run()
    assert "refs/heads/drafts/other" in read_refs(world.other)
    assert world.drafted() < set(CLUSTERS)
    assert 0 < world.passes.seconds_until_due <= 60
    assert not world.passes.summary.is_clean


def test_those_that_wait_go_on_where_it_stopped(tmp_path: Path) -> None:
    world = paced(tmp_path / "world")
    values = []
    for _ in range(30):
        world.run()
        values.append(world.drafted())
        if world.passes.summary.is_skipped:
            break
        world.now += 60

    assert world.passes.summary.is_skipped
    assert values[-1] == set(CLUSTERS)
    assert all(before <= after for before, after in pairwise(values))


def test_the_pace_holds_whatever_the_passes_do(tmp_path: Path) -> None:
    world = paced(tmp_path / "world")
    moved = []
    for _ in range(6):
        before = read_refs(world.world.fleet)
        world.run()
        after = read_refs(world.world.fleet)
        moved.append(sum(before.get(ref) != after.get(ref) for ref in after))

    # all within one minute: two pushes of three refs
    assert sum(moved) <= 2 * 3


def test_the_status_does_not_wait_for_all_drafts(tmp_path: Path) -> None:
    world = paced(tmp_path / "world", per_minute=1)
    for _ in range(3):
        world.run()
        world.now += 60

    assert "refs/heads/reconciler/status" in read_refs(world.world.fleet)
    assert world.drafted() < set(CLUSTERS)


@pytest.mark.parametrize(
    ("per_minute", "refs"),
    [
        pytest.param(1, 500, id="one-push-of-many-refs"),
        pytest.param(2, 3, id="two-pushes-of-a-cluster-each"),
        pytest.param(5, 3, id="five-pushes-of-a-cluster-each"),
    ],
)
def test_a_paced_fleet_ends_with_the_same_refs_as_one_without_limits(
    tmp_path: Path, per_minute: int, refs: int
) -> None:
    # the same folder, because states name the address
    free = Paced(tmp_path / "world")
    free.run_all()
    free.world.release("web", "v2", package("web", replicas=5))
    free.write("v2")
    free.run_all()
    expected = free.refs()
    shutil.rmtree(tmp_path / "world")

    world = paced(tmp_path / "world", per_minute, refs)
    world.run_all()
    world.world.release("web", "v2", package("web", replicas=5))
    world.write("v2")
    world.run_all()

    assert world.refs() == expected


def test_a_release_in_the_middle_loses_nothing(tmp_path: Path) -> None:
    world = paced(tmp_path / "world")
    world.run()
    world.world.release("web", "v2", package("web", replicas=5))
    world.write("v2")
    world.run_all()

    for name in CLUSTERS:
        assert "replicas: 5" in world.world.text(f"drafts/{name}", "web/deployment.yaml")


def test_what_annotations_approve_waits_for_its_turn_as_well(tmp_path: Path) -> None:
    folder = tmp_path / "world"
    limits = {"url": str(folder / "fleet.git"), "max_pushes_per_minute": 2}
    world = Paced(folder, {"approvals": {"by_annotation": True}}, remotes=[limits])
    for name in CLUSTERS:
        text = (world.world.config / f"{name}.yaml").read_text()
        world.world.write({f"{name}.yaml": f"{text}  annotations: {POLICY}\n"})
    world.run_all()

    for name in CLUSTERS:
        assert "replicas: 2" in world.world.text(f"clusters/{name}", "web/deployment.yaml")
