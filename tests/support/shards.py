"""Test fleets that several shards reconcile, each by a daemon with its own cache."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain

from reconciler.reconcile.reconcile_pass import PassReport
from tests.support.git_repositories import read_refs
from tests.support.world import PassResult, World


def shard_of(world: World, text: str, cache: str = "") -> World:
    """Return the same fleet for the daemon of one shard. Its cache is separate unless a cache is given."""
    settings = {**world._settings, "shard": text, "cache": str(world.folder / (cache or f"cache-{text[0]}-{text[-1]}"))}
    other = World(world.folder, **settings)
    other.now = world.now
    return other


def shards_of(world: World, count: int) -> list[World]:
    """Return the fleet for the daemon of each shard, the first shard first."""
    return [shard_of(world, f"{index}/{count}") for index in range(1, count + 1)]


class ShardedWorld(World):
    """A fleet with one pass of each shard per sync, from the last shard to the first."""

    count = 3

    @classmethod
    def with_shards(cls, world: World, count: int = 3) -> ShardedWorld:
        """Return a fleet with these shards instead of its one daemon."""
        other = cls(world.folder, **world._settings)
        other.now, other.count = world.now, count
        return other

    def sync(self) -> PassResult:
        """Run a pass of each shard. The report contains the decisions and renders of all of them."""
        before = read_refs(self.fleet)
        passes = [world.sync() for world in reversed(shards_of(self, self.count))]
        return PassResult(_merge_passes([pass_result.report for pass_result in passes]), before, read_refs(self.fleet))


def _merge_passes(reports: Sequence[PassReport]) -> PassReport:
    first = reports[-1]
    destinations = tuple(chain.from_iterable(pass_report.plan.targets for pass_report in reports))
    findings = tuple(dict.fromkeys(chain.from_iterable(pass_report.plan.findings for pass_report in reports)))
    plan = replace(first.plan, targets=destinations, findings=findings)
    return replace(first, plan=plan, render_count=sum(pass_report.render_count for pass_report in reports))
