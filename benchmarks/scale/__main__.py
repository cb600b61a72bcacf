"""What ten thousand packages cost, pass by pass, beside what the same bytes cost without us.

    python -m benchmarks scale                        1,000 clusters with ten packages each; about ten minutes
    python -m benchmarks scale --clusters 100         a small one
    python -m benchmarks scale --profile first        and where a pass spends its time

Each line has its ratio to the floors of the same run, and the limit that it is to keep, if any; so has the memory of
the first pass of 10,000 packages.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import click

PROJECT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(PROJECT))

from benchmarks.fleet_world import place_for  # noqa: E402
from benchmarks.processes import cpu_seconds, resident_mib  # noqa: E402
from benchmarks.scale.floors import floors_of, no_change_fetch, reading_of_states, refs_of  # noqa: E402
from benchmarks.scale.world import (  # noqa: E402
    PACKAGES_FOLDER,
    Sizes,
    build_world,
    change_objects,
    look_elsewhere,
    release,
)

VARIANTS, MOST_MIB = 10_000, 1_430
"""How many packages the limit of memory is for: 1.5 GB in all processes."""
TIMES = 3
"""How often what is soon done is done; the median counts."""


@dataclass(frozen=True)
class Row:
    """One pass: what it took, what it did, its floor in seconds, how many times that it may take, and what memory."""

    name: str
    seconds: float
    cpu_seconds: float
    peak_mib: float
    renders: int
    drafts: int
    floor: float
    floors: str
    limit: float | None
    most_mib: float | None = None

    @property
    def ratio(self) -> float:
        """How many times the floor it took."""
        return self.seconds / self.floor

    @property
    def is_over(self) -> bool:
        """Whether it took more than it may."""
        is_late = self.limit is not None and self.ratio > self.limit
        return is_late or (self.most_mib is not None and self.peak_mib > self.most_mib)


@click.command()
@click.option("--clusters", default=1_000, show_default=True)
@click.option("--region", default=100, show_default=True, help="Clusters of one region, which share a repository.")
@click.option("--folder", type=click.Path(path_type=Path), help="Where to build; default: a temporary folder.")
@click.option("--workers", default=0, show_default=True, help="Processes that render; 0: as many as there are cores.")
@click.option("--json", "as_json", is_flag=True, help="Figures as data.")
@click.option("--profile", default="", help="The pass of the service whose profile goes to the standard error.")
@click.option("--inside", type=click.Path(path_type=Path), hidden=True)
def main(
    clusters: int, region: int, folder: Path | None, workers: int, as_json: bool, profile: str, inside: Path | None
) -> None:
    """Build the world, run the passes, and tell each beside its floors."""
    if inside:
        _serve(inside, workers, profile)
        return
    if not PACKAGES_FOLDER.is_dir():
        raise SystemExit(f"the packages of this world are read from {PACKAGES_FOLDER}, which is not there")
    sizes = Sizes(clusters, region)
    with place_for(folder) as place:
        world = place / "world"
        build_world(world, sizes)
        rows = [*_rows(world, sizes, place, workers, profile)]
    if as_json:
        click.echo(json.dumps([{**asdict(one), "ratio": one.ratio} for one in rows], indent=2))
    else:
        click.echo(_table(sizes, rows))
    if any(row.is_over for row in rows):
        raise SystemExit(1)


def _rows(world: Path, sizes: Sizes, place: Path, workers: int, profile: str) -> Iterator[Row]:
    """Yield the passes of one service in turn, and of a new one in the end."""
    empty = refs_of(world)
    with _Service(world, workers, profile) as service:
        first = service.run("first")
        drafted = refs_of(world)
        floors = floors_of(world, empty, drafted, place / "floors")
        most = MOST_MIB if sizes.variants == VARIANTS else None
        yield replace(_row("first pass", first, floors.total, floors.words(), 4.0), most_mib=most)
        yield _middle(_idle(world, service) for _ in range(TIMES))
        yield _middle(_elsewhere(world, service, number) for number in range(TIMES))

        def changed(told: str, name: str, limit: float) -> Row:
            before = refs_of(world)
            one = service.run(name)
            floors = floors_of(world, before, refs_of(world), place / "floors")
            return _row(told, one, floors.total, floors.words(), limit)

        def objects(told: str, regions: int) -> Iterator[Row]:
            for number in range(TIMES):
                change_objects(world, f"{regions}-{number}", regions)
                yield changed(told, "objects", 3.0)

        yield _middle(objects(f"one injected object, of {sizes.region} packages", 1))
        if sizes.regions_of_one_percent > 1:
            yield _middle(objects("injected objects of 1 %", sizes.regions_of_one_percent))
        release(world)
        yield changed("a new version of one package of ten", "new version", 4.0)
    # the second reads what nobody has kept, and compares all of it: what that takes has no limit but should be known
    for name, forgets, limit in (("restart", False, 3.0), ("restart, with an empty cache of passes", True, None)):
        state = reading_of_states(world) + no_change_fetch(world)
        with _Service(world, workers, profile, forgets=forgets) as service:
            told = service.run(name)
        yield _row(name, told, state, f"states and fetch {state:.2f} s", limit)


def _idle(world: Path, service: _Service) -> Row:
    fetch = no_change_fetch(world)
    return _row("no change, in the service", service.run("no change"), fetch, f"fetch {fetch:.2f} s", 1.5)


def _elsewhere(world: Path, service: _Service, number: int) -> Row:
    look_elsewhere(world, number)
    fetch = no_change_fetch(world)
    return _row("a change that nobody reads", service.run("elsewhere"), fetch, f"fetch {fetch:.2f} s", 3.0)


def _middle(rows: Iterable[Row]) -> Row:
    """Return the row whose ratio is the median."""
    found = sorted(rows, key=lambda one: one.ratio)
    return found[len(found) // 2]


def _row(name: str, told: dict[str, float], floor: float, floors: str, limit: float | None) -> Row:
    return Row(
        name, told["seconds"], told["cpu_seconds"], told["peak_mib"], int(told["renders"]), int(told["drafts"]),
        floor, floors, limit,
    )  # fmt: skip


class _Service:
    """A service in a process of its own; its memory, and that of all it has started, is watched meanwhile."""

    def __init__(self, world: Path, workers: int, profile: str, *, forgets: bool = False) -> None:
        options = ["--inside", str(world), "--workers", str(workers), "--profile", profile]
        self._command = [sys.executable, "-m", "benchmarks", "scale", *options]
        self._environment = {**os.environ, "PYTHONPATH": str(PROJECT), "SCALE_FORGETS": "1" if forgets else ""}

    def __enter__(self) -> _Service:
        self._process = subprocess.Popen(
            self._command, cwd=PROJECT, env=self._environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._peak = 0.0
        threading.Thread(target=self._watch, daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        assert self._process.stdin
        self._process.stdin.close()
        self._process.wait()

    def run(self, name: str) -> dict[str, float]:
        """Run a pass, and return what it took."""
        assert self._process.stdin
        assert self._process.stdout
        self._peak = 0.0
        self._process.stdin.write(f"{name}\n")
        self._process.stdin.flush()
        told: dict[str, float] = json.loads(self._process.stdout.readline())
        return {**told, "peak_mib": round(self._peak)}

    def _watch(self) -> None:
        while self._process.poll() is None:
            self._peak = max(self._peak, resident_mib(self._process.pid))
            time.sleep(0.2)


def _serve(world: Path, workers: int, profile: str) -> None:
    """Run a pass for each line of the standard input, and answer with what it took."""
    from structlog.testing import capture_logs

    from benchmarks.passes import run_profiled, service
    from reconciler.bootstrap import build_pass_cache
    from reconciler.reconcile.pass_cache import FilePassStore
    from reconciler.settings import Settings

    def last_pass(settings: Settings) -> FilePassStore:
        memory = build_pass_cache(settings, "config")
        if os.environ.get("SCALE_FORGETS"):
            memory.save(None)
        return memory

    os.chdir(world)
    passes = service("./fleet-0.git", workers, last_pass)
    for line in sys.stdin:
        before, began = cpu_seconds(), time.perf_counter()
        with capture_logs():
            run_profiled(passes.run) if line.strip() == profile else passes.run()
        seconds, cpu = time.perf_counter() - began, cpu_seconds() - before
        counts = {} if passes.summary.is_skipped else passes.summary.counts
        told = {
            "seconds": round(seconds, 3), "cpu_seconds": round(cpu, 2),
            "renders": counts.get("renders", 0), "drafts": counts.get("drafted", 0),
        }  # fmt: skip
        print(json.dumps(told), flush=True)


def _table(sizes: Sizes, rows: list[Row]) -> str:
    lines = [f"{sizes.clusters} clusters with ten packages each, {sizes.regions} fleet repositories\n"]
    lines += ["| pass | seconds | CPU seconds | peak MiB | limit | renders | drafts | floor | ratio | limit | |"]
    lines += ["|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---|"]
    for one in rows:
        figures = (
            f"{one.seconds:.2f}", f"{one.cpu_seconds:.1f}", f"{one.peak_mib:.0f}", _bound(one.most_mib), one.renders,
            one.drafts, f"{one.floor:.2f}", f"{one.ratio:.2f}", _bound(one.limit), "over" if one.is_over else "",
        )  # fmt: skip
        lines += [f"| {one.name} | {' | '.join(map(str, figures))} |"]
    return "\n".join([*lines, "", *(f"{one.name}: {one.floors}" for one in rows)])


def _bound(most: float | None) -> str:
    return "" if most is None else f"{most:g}"


if __name__ == "__main__":
    main()
