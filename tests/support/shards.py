"""Worlds whose passes are those of several shards, each through a daemon and a cache of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain

from reconciler.reconcile.reconcile_pass import PassReport
from tests.support.git_env import read_refs
from tests.support.world import Pass, World


def shard_of(world: World, text: str, cache: str = "") -> World:
    """Return the same world through the daemon of a shard; its cache is its own unless one is named."""
    settings = {**world._settings, "shard": text, "cache": str(world.folder / (cache or f"cache-{text[0]}-{text[-1]}"))}
    other = World(world.folder, **settings)
    other.now = world.now
    return other


def shards_of(world: World, count: int) -> list[World]:
    """Return the world through the daemons of all shards, the first one first."""
    return [shard_of(world, f"{index}/{count}") for index in range(1, count + 1)]


class Sharded(World):
    """A world in which a pass is one of each shard, from the last to the first, which so tells of all others."""

    count = 3

    @classmethod
    def around(cls, world: World, count: int = 3) -> Sharded:
        """Return a world with these shards for its one daemon."""
        other = cls(world.folder, **world._settings)
        other.now, other.count = world.now, count
        return other

    def sync(self) -> Pass:
        """Run a pass of every shard; the report has what all of them decided and rendered."""
        before = read_refs(self.fleet)
        passes = [world.sync() for world in reversed(shards_of(self, self.count))]
        return Pass(_joined([pass_result.report for pass_result in passes]), before, read_refs(self.fleet))


def _joined(reports: Sequence[PassReport]) -> PassReport:
    first = reports[-1]
    destinations = tuple(chain.from_iterable(pass_report.plan.targets for pass_report in reports))
    findings = tuple(dict.fromkeys(chain.from_iterable(pass_report.plan.findings for pass_report in reports)))
    plan = replace(first.plan, targets=destinations, findings=findings)
    return replace(first, plan=plan, render_count=sum(pass_report.render_count for pass_report in reports))
