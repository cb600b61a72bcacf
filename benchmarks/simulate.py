"""A simulated year of a large fleet: refs, objects, packs, pushes, and the waiting time at the rate limit of a host.

    python -m benchmarks simulate                                  10,000 and 100,000 clusters with 100 packages each
    python -m benchmarks simulate --clusters 2000 --packages 20    another fleet
    python -m benchmarks simulate --clusters 10000                 a million packages

`python -m benchmarks scale` measures the cost of one draft, ref or package. The simulation replays a year by day: the
repositories with changes, the number of pushes, and the time of the last push.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import click

MINUTES_OF_A_DAY = 24 * 60


@dataclass(frozen=True)
class Costs:
    """Measured costs: bytes and seconds of one item. Sources: `python -m benchmarks scale`, docs/explanation/large-
    fleets.md.
    """

    draft_seconds: float = 0.006
    draft_objects: float = 8.7
    draft_pack_bytes: float = 3_300
    state_pack_bytes: float = 500
    ref_bytes: float = 75
    ref_seconds: float = 12e-6
    remote_seconds: float = 0.02
    # Memory of a daemon, for each package of the fleet in every shard, and for each package of the shard. Source:
    # `python benchmarks/fleet.py --packages 10 --shard 2/4`.
    drafted_bytes: tuple[float, float] = (15_000, 17_500)
    restarted_bytes: tuple[float, float] = (15_000, 9_000)


@dataclass(frozen=True)
class Limits:
    """Limits of a host for one repository, from the recommendations of GitHub."""

    branches: int = 5_000
    pushes_a_minute: int = 6
    bytes_whole: float = 10e9
    bytes_pushed: float = 2e9
    requests_an_hour: int = 500


@dataclass(frozen=True)
class Layout:
    """Layout of a fleet: the number of clusters per repository, with a draft branch per package or per cluster."""

    name: str
    clusters_each: int
    branch_of_each_package: bool = False


@dataclass(frozen=True)
class Fleet:
    """Size of the fleet and its changes: changed regions per day, released packages per week."""

    clusters: int
    packages: int
    region: int = 100
    changes_a_day: int = 5
    releases_a_week: int = 10

    @property
    def variants(self) -> int:
        """The number of packages on all clusters."""
        return self.clusters * self.packages


LAYOUTS = (
    Layout("one repository", 10**9),
    Layout("a repository for 1,000 clusters", 1_000),
    Layout("a repository for each region of 100", 100),
    Layout("the same, a branch for each package", 100, branch_of_each_package=True),
    Layout("a repository for each cluster", 1),
)


_TITLES = (
    "layout", "repositories", "branches in one", "refs", "advertised by one", "fetches of a pass",
    "pack of one, a year", "objects of one", "pushes a year", "longest wait", "over",
)  # fmt: skip


SHARDS = (1, 4, 8, 16)
_SHARD_TITLES = (
    "shards", "packages of one", "first drafts of one, one core", "memory of one, after the first drafts",
    "memory of one, after a restart", "fetches of a pass",
)  # fmt: skip


@dataclass
class Year:
    """The result of a year in one layout. Maximum values refer to one repository."""

    repositories: int
    branches: int
    refs: int
    first_pushes: int
    first_hours: float
    pushes: int = 0
    drafts: int = 0
    longest_hours: float = 0.0
    pack_bytes: float = 0.0
    objects: float = 0.0


def replay(fleet: Fleet, layout: Layout, costs: Costs, limits: Limits, refs_per_push: int = 500) -> Year:
    """Return the result of a year of a fleet in a layout."""
    result = min(layout.clusters_each, fleet.clusters)
    count = math.ceil(fleet.clusters / result)
    drafts_each = fleet.packages if layout.branch_of_each_package else 1
    # The target branch, the open drafts, and the state.
    branches = result * (1 + drafts_each)
    first = math.ceil(result * (2 + drafts_each) / refs_per_push) + math.ceil(result / refs_per_push)
    year = Year(count, branches, count * (branches + result), first, first / limits.pushes_a_minute / 60)
    year.drafts = fleet.variants
    waiting = [0.0] * count
    for clusters_moved in _days(fleet):
        _one_day(year, waiting, clusters_moved, fleet, result, refs_per_push, limits)
    year.pushes += first * count
    year.pack_bytes = year.drafts / count * costs.draft_pack_bytes + result * fleet.packages * costs.state_pack_bytes
    year.objects = year.drafts / count * costs.draft_objects
    return year


def _days(fleet: Fleet) -> Iterator[list[tuple[int, int]]]:
    """Yield the changes of each day: the first cluster with a draft, and the number of clusters from there on."""
    for day in range(365):
        moved = [((day * fleet.changes_a_day + item) * fleet.region % fleet.clusters, fleet.region)
                 for item in range(fleet.changes_a_day)]  # fmt: skip
        if day % 7 == 0:
            moved += [(0, fleet.clusters)] * fleet.releases_a_week
        yield moved


def _one_day(
    year: Year, waiting: list[float], moved: list[tuple[int, int]], fleet: Fleet, number: int, most: int, limits: Limits
) -> None:
    """Push the changes of one day. `waiting` contains the minutes of queued pushes of each repository."""
    for index, minutes in enumerate(waiting):
        waiting[index] = max(0.0, minutes - MINUTES_OF_A_DAY)
    for first, clusters in moved:
        year.drafts += min(clusters, fleet.clusters)
        for repository in range(first // number, min(math.ceil((first + clusters) / number), len(waiting))):
            here = min(number, clusters)
            # A draft with its state, then the status of that day. After the merge, the draft is deleted.
            pushes = math.ceil(2 * here / most) + math.ceil(2 * here / most)
            year.pushes += pushes
            waiting[repository] += pushes / limits.pushes_a_minute
            year.longest_hours = max(year.longest_hours, waiting[repository] / 60)


def format_fleet(fleet: Fleet, costs: Costs, limits: Limits) -> Iterator[str]:
    """Yield the figures of a fleet as Markdown."""
    first = fleet.variants * costs.draft_seconds
    yield f"{fleet.clusters:,} clusters with {fleet.packages} packages each: {fleet.variants:,} variants\n"
    yield (
        f"First pass: {_hours(first)} of one core, by {costs.draft_seconds * 1000:g} ms a draft. All drafts by pull"
        f" requests: {fleet.clusters / limits.requests_an_hour:.0f} hours at {limits.requests_an_hour} an hour.\n"
    )
    yield f"| {' | '.join(_TITLES)} |"
    yield f"|---|{'---:|' * (len(_TITLES) - 2)}---|"
    for layout in LAYOUTS:
        year = replay(fleet, layout, costs, limits)
        refs_of_one = year.refs / year.repositories
        figures = (
            f"{year.repositories:,}", f"{year.branches:,}", f"{year.refs:,}", _bytes(refs_of_one * costs.ref_bytes),
            _fetches(year, costs), _bytes(year.pack_bytes), f"{year.objects:,.0f}", f"{year.pushes:,}",
            f"{year.longest_hours:.1f} h", ", ".join(_over(year, limits)),
        )  # fmt: skip
        yield f"| {layout.name} | {' | '.join(figures)} |"


def format_shards(fleet: Fleet, layout: Layout, costs: Costs, limits: Limits) -> Iterator[str]:
    """Yield the cost of one shard as Markdown. Each shard fetches all repositories and evaluates the whole config."""
    year = replay(fleet, layout, costs, limits)
    yield f"{layout.name}, divided among shards\n"
    yield f"| {' | '.join(_SHARD_TITLES)} |"
    yield f"|{'---:|' * len(_SHARD_TITLES)}"
    for count in SHARDS:
        variants = fleet.variants / count
        drafted, restarted = (_memory(fleet, variants, item) for item in (costs.drafted_bytes, costs.restarted_bytes))
        figures = (
            str(count), f"{variants:,.0f}", _hours(variants * costs.draft_seconds), _bytes(drafted), _bytes(restarted),
            _fetches(year, costs),
        )  # fmt: skip
        yield f"| {' | '.join(figures)} |"
    yield (
        f"\nFirst drafts at {limits.pushes_a_minute} pushes a minute to each repository: {year.first_pushes} pushes to"
        f" each of {year.repositories:,} repositories, {year.first_hours * 60:.1f} minutes."
    )


def _memory(fleet: Fleet, variants: float, costs: tuple[float, float]) -> float:
    """Return the bytes of a shard with this number of packages."""
    return fleet.variants * costs[0] + variants * costs[1]


def _fetches(year: Year, costs: Costs) -> str:
    return f"{year.repositories * costs.remote_seconds + year.refs * costs.ref_seconds:,.1f} s"


def _over(year: Year, limits: Limits) -> Iterator[str]:
    if year.branches > limits.branches:
        yield f"{limits.branches:,} branches"
    if year.pack_bytes > limits.bytes_whole:
        yield _bytes(limits.bytes_whole)
    if year.longest_hours > 1:
        yield "an hour of pushes in a row"


def _bytes(count: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1_000:
            return f"{count:.3g} {unit}"
        count /= 1_000
    return f"{count:.3g} TB"


def _hours(seconds: float) -> str:
    return f"{seconds / 60:.0f} minutes" if seconds < 7_200 else f"{seconds / 3600:.1f} hours"


@click.command()
@click.option("--clusters", type=int, help="Default: 10,000, then 100,000.")
@click.option("--packages", default=100, show_default=True)
@click.option("--pushes", default=6, show_default=True, help="Pushes a minute that a host takes for one repository.")
def main(clusters: int | None, packages: int, pushes: int) -> None:
    """Print the results of a year."""
    for count in (clusters,) if clusters else (10_000, 100_000):
        fleet = Fleet(count, packages)
        limits = Limits(pushes_a_minute=pushes)
        click.echo("\n".join(format_fleet(fleet, Costs(), limits)) + "\n")
        for layout in (LAYOUTS[1], LAYOUTS[2]):
            click.echo("\n".join(format_shards(fleet, layout, Costs(), limits)) + "\n")


if __name__ == "__main__":
    main()
