"""Cost of ten thousand packages by pass, compared with the floor for the same bytes.

    python -m benchmarks scale                        1,000 clusters with ten packages each; about ten minutes
    python -m benchmarks scale --clusters 100         a small fleet
    python -m benchmarks scale --profile first        a profile of one pass

Each line contains the ratio to the floors of the same run, and its limit, if any. The memory of the first pass of
10,000 packages has a limit, too.
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

from benchmarks.fleet_world import open_folder  # noqa: E402
from benchmarks.processes import cpu_seconds, resident_mib  # noqa: E402
from benchmarks.scale.floors import floors_of, no_change_fetch, refs_of, time_state_reads  # noqa: E402
from benchmarks.scale.world import (  # noqa: E402
    PACKAGES_FOLDER,
    Sizes,
    build_world,
    change_objects,
    change_unused_object,
    release,
)

VARIANTS, MOST_MIB = 10_000, 1_430
"""How many packages the limit of memory is for: 1.5 GB in all processes."""
TIMES = 3
"""How often what is soon done is done; the median counts."""


@dataclass(frozen=True)
class Row:
    """One pass: its time and counts, its floor in seconds, the permitted ratio, and its memory."""

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
        """The time as a multiple of the floor."""
        return self.seconds / self.floor

    @property
    def is_over(self) -> bool:
        """Whether the ratio is above its limit."""
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
    """Build the fleet, run the passes, and print each pass with its floors."""
    if inside:
        _serve(inside, workers, profile)
        return
    if not PACKAGES_FOLDER.is_dir():
        raise SystemExit(f"the packages of this world are read from {PACKAGES_FOLDER}, which is not there")
    sizes = Sizes(clusters, region)
    with open_folder(folder) as place:
        world = place / "world"
        build_world(world, sizes)
        rows = [*_rows(world, sizes, place, workers, profile)]
    if as_json:
        click.echo(json.dumps([{**asdict(row), "ratio": row.ratio} for row in rows], indent=2))
    else:
        click.echo(_table(sizes, rows))
    if any(row.is_over for row in rows):
        raise SystemExit(1)


def _rows(world: Path, sizes: Sizes, place: Path, workers: int, profile: str) -> Iterator[Row]:
    """Yield the passes of one service in turn, and one pass of a new service at the end."""
    empty = refs_of(world)
    with _Service(world, workers, profile) as service:
        first = service.run("first")
        drafted = refs_of(world)
        floors = floors_of(world, empty, drafted, place / "floors")
        most = MOST_MIB if sizes.variants == VARIANTS else None
        yield replace(_row("first pass", first, floors.total, floors.describe(), 4.0), most_mib=most)
        yield _middle(_idle(world, service) for _ in range(TIMES))
        yield _middle(_elsewhere(world, service, number) for number in range(TIMES))

        def changed(text: str, name: str, limit: float) -> Row:
            before = refs_of(world)
            output = service.run(name)
            floors = floors_of(world, before, refs_of(world), place / "floors")
            return _row(text, output, floors.total, floors.describe(), limit)

        def objects(content: str, regions: int) -> Iterator[Row]:
            for number in range(TIMES):
                change_objects(world, f"{regions}-{number}", regions)
                yield changed(content, "objects", 3.0)

        yield _middle(objects(f"one injected object, of {sizes.region} packages", 1))
        if sizes.regions_of_one_percent > 1:
            yield _middle(objects("injected objects of 1 %", sizes.regions_of_one_percent))
        release(world)
        yield changed("a new version of one package of ten", "new version", 4.0)
    # The second pass reads and compares all data without a cache. It has no limit, but its cost should be known.
    for name, forgets, limit in (("restart", False, 3.0), ("restart, with an empty cache of passes", True, None)):
        state = time_state_reads(world) + no_change_fetch(world)
        with _Service(world, workers, profile, forgets=forgets) as service:
            result = service.run(name)
        yield _row(name, result, state, f"states and fetch {state:.2f} s", limit)


def _idle(world: Path, service: _Service) -> Row:
    fetch = no_change_fetch(world)
    return _row("no change, in the service", service.run("no change"), fetch, f"fetch {fetch:.2f} s", 1.5)


def _elsewhere(world: Path, service: _Service, number: int) -> Row:
    change_unused_object(world, number)
    fetch = no_change_fetch(world)
    return _row("a change that no package depends on", service.run("elsewhere"), fetch, f"fetch {fetch:.2f} s", 3.0)


def _middle(rows: Iterable[Row]) -> Row:
    """Return the row with the median ratio."""
    actual_rows = sorted(rows, key=lambda row: row.ratio)
    return actual_rows[len(actual_rows) // 2]


def _row(name: str, mapping: dict[str, float], floor: float, floors: str, limit: float | None) -> Row:
    return Row(
        name,
        mapping["seconds"],
        mapping["cpu_seconds"],
        mapping["peak_mib"],
        int(mapping["renders"]),
        int(mapping["drafts"]),
        floor,
        floors,
        limit,
    )


class _Service:
    """A service in a separate process. The memory of the process and its descendants is measured during each pass."""

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
        """Run a pass and return its figures."""
        assert self._process.stdin
        assert self._process.stdout
        self._peak = 0.0
        self._process.stdin.write(f"{name}\n")
        self._process.stdin.flush()
        data: dict[str, float] = json.loads(self._process.stdout.readline())
        return {**data, "peak_mib": round(self._peak)}

    def _watch(self) -> None:
        while self._process.poll() is None:
            self._peak = max(self._peak, resident_mib(self._process.pid))
            time.sleep(0.2)


def _serve(world: Path, workers: int, profile: str) -> None:
    """Run a pass for each line of stdin, and answer with its figures."""
    from structlog.testing import capture_logs

    from benchmarks.passes import build_service, run_profiled
    from reconciler.bootstrap.services import build_pass_cache
    from reconciler.reconcile.cache_files import FilePassStore
    from reconciler.settings import Settings

    def last_pass(settings: Settings) -> FilePassStore:
        memory = build_pass_cache(settings, "config")
        if os.environ.get("SCALE_FORGETS"):
            memory.save(None)
        return memory

    os.chdir(world)
    passes = build_service("./fleet-0.git", workers, last_pass)
    for line in sys.stdin:
        before, began = cpu_seconds(), time.perf_counter()
        with capture_logs():
            run_profiled(passes.run) if line.strip() == profile else passes.run()
        seconds, cpu = time.perf_counter() - began, cpu_seconds() - before
        counts = {} if passes.summary.is_skipped else passes.summary.counts
        mapping = {
            "seconds": round(seconds, 3), "cpu_seconds": round(cpu, 2),
            "renders": counts.get("renders", 0), "drafts": counts.get("drafted", 0),
        }  # fmt: skip
        print(json.dumps(mapping), flush=True)


def _table(sizes: Sizes, rows: list[Row]) -> str:
    lines = [f"{sizes.clusters} clusters with ten packages each, {sizes.regions} fleet repositories\n"]
    lines += ["| pass | seconds | CPU seconds | peak MiB | limit | renders | drafts | floor | ratio | limit | |"]
    lines += ["|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---|"]
    for row in rows:
        figures = (
            f"{row.seconds:.2f}", f"{row.cpu_seconds:.1f}", f"{row.peak_mib:.0f}", _bound(row.most_mib), row.renders,
            row.drafts, f"{row.floor:.2f}", f"{row.ratio:.2f}", _bound(row.limit), "over" if row.is_over else "",
        )  # fmt: skip
        lines += [f"| {row.name} | {' | '.join(map(str, figures))} |"]
    return "\n".join([*lines, "", *(f"{item.name}: {item.floors}" for item in rows)])


def _bound(most: float | None) -> str:
    return "" if most is None else f"{most:g}"


if __name__ == "__main__":
    main()
