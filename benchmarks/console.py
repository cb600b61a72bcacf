"""Cost of the index behind the console: its first build, updates, memory, and one page of a list.

    python -m benchmarks console                    100 clusters in 20 regions with 10 packages each; half a minute
    python -m benchmarks console --size 1000x10     1,000 clusters; some minutes, most of them for the passes
    python -m benchmarks console --profile drafted  profiles of the steps of one fleet

The fleet is the fleet of `report.py`. "drafted" is the state after the first pass, with every package on a draft.
"published" is the state after all merges and a change of one region.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

import click

PROJECT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(PROJECT))

from structlog.testing import capture_logs  # noqa: E402

from benchmarks.fleet_world import Sizes, build_world, change_a_region  # noqa: E402
from benchmarks.passes import run_profiled, run_script  # noqa: E402
from benchmarks.processes import cpu_seconds  # noqa: E402
from benchmarks.report import publish_drafts, write_sets  # noqa: E402
from reconciler.bootstrap.console import build_fleet_indexer, observe_pass  # noqa: E402
from reconciler.bootstrap.publishers import build_push_publisher  # noqa: E402
from reconciler.bootstrap.services import build_services  # noqa: E402
from reconciler.git.errors import GitError  # noqa: E402
from reconciler.inspect.fleet_index import FleetIndexer, ObservedPass  # noqa: E402
from reconciler.krm.findings import Finding  # noqa: E402
from reconciler.memory import relax_gc  # noqa: E402
from reconciler.output.fleet.builder import build_fleet_index  # noqa: E402
from reconciler.output.fleet.model import FleetIndex, PackageRow  # noqa: E402
from reconciler.reconcile.pass_runner import PassRunner  # noqa: E402
from reconciler.reconcile.reconcile_pass import PassReport  # noqa: E402
from reconciler.settings import Settings  # noqa: E402

REGIONS, PAGE_ROWS, ROUNDS = 20, 100, 5
CHANGED = "cluster-0007"
FLEETS = ("drafted", "published")
_CODE = (type, ModuleType, FunctionType, BuiltinFunctionType, MethodType)


@dataclass(frozen=True)
class Measure:
    """One step: its wall-clock seconds, and its CPU seconds with Git processes."""

    fleet: str
    name: str
    seconds: float
    cpu_seconds: float


@dataclass(frozen=True)
class IndexSize:
    """The counts of an index, and its memory for each package in kB. The memory includes the data of the indexer."""

    fleet: str
    packages: int
    drafts: int
    changes: int
    variants: int
    package_kilobytes: float


@click.command()
@click.option("--size", default="100x10", show_default=True, help="Clusters, and packages on each cluster.")
@click.option("--profile", default="", type=click.Choice(["", *FLEETS]), help="The fleet whose profiles go to stderr.")
@click.option("--json", "as_json", is_flag=True, help="Figures as data.")
@click.option("--inside", type=click.Path(path_type=Path), hidden=True)
def main(size: str, profile: str, as_json: bool, inside: Path | None) -> None:
    """Build a fleet and measure its index."""
    clusters, packages = map(int, size.split("x"))
    if inside:
        os.chdir(inside)
        click.echo(json.dumps(_measure(inside, profile)))
        return
    with tempfile.TemporaryDirectory(prefix="console-") as temporary:
        world = Path(temporary) / "world"
        build_world(world, Sizes(clusters, REGIONS, 5, 1))
        write_sets(world, packages)
        data = run_script(__file__, ["--inside", str(world), *(("--profile", profile) if profile else ())])
    click.echo(json.dumps(data, indent=2) if as_json else _format(size, data))


def _format(size: str, data: Mapping[str, Any]) -> str:
    lines = [f"{size} packages\n", "| fleet | step | seconds | CPU seconds |\n|---|---|---:|---:|"]
    for measure in (Measure(**item) for item in data["steps"]):
        lines.append(f"| {measure.fleet} | {measure.name} | {measure.seconds:.3f} | {measure.cpu_seconds:.3f} |")
    lines += ["", "| fleet | packages | drafts | changes | variants | kB per package |", f"|---|{'---:|' * 5}"]
    for item in (IndexSize(**item) for item in data["sizes"]):
        counts = (item.packages, item.drafts, item.changes, item.variants, f"{item.package_kilobytes:.1f}")
        lines.append(f"| {item.fleet} | {' | '.join(map(str, counts))} |")
    return "\n".join(lines)


def _measure(world: Path, profile: str) -> dict[str, Any]:
    relax_gc()
    steps: list[Measure] = []
    sizes: list[IndexSize] = []
    passes = Passes()
    for fleet in FLEETS:
        if fleet == "published":
            publish_drafts(world)
            change_a_region(world)
        index = _Steps(fleet, steps, is_profiled=fleet == profile)
        sizes.append(index.measure(world, passes))
    return {"steps": [asdict(step) for step in steps], "sizes": [asdict(size) for size in sizes]}


class Passes:
    """Passes of a service, and the data of each pass for the index."""

    def __init__(self) -> None:
        self.settings = Settings.model_validate({
            "config": {"url": "config"}, "fleet": {"url": "./fleet-0.git"}, "cache": str(Path("cache").absolute()),
            "console": {"enabled": True},
        })  # fmt: skip
        parts = build_services(self.settings, "config")
        self._observed: list[ObservedPass] = []
        self._runner = PassRunner(
            parts.source, parts.remotes, parts.pass_services, build_push_publisher(self.settings), observe=self._observe
        )

    def run(self) -> ObservedPass:
        """Run one pass."""
        with capture_logs():
            self._runner.run()
        return self._observed[-1]

    def _observe(self, report: PassReport, failures: Mapping[str, GitError]) -> tuple[Finding, ...]:
        self._observed.append(observe_pass(report, failures, int(time.time())))
        return ()


class _Steps:
    """The measured steps of one fleet."""

    def __init__(self, fleet: str, steps: list[Measure], *, is_profiled: bool) -> None:
        self._fleet = fleet
        self._steps = steps
        self._is_profiled = is_profiled

    def measure(self, world: Path, passes: Passes) -> IndexSize:
        """Measure all steps, and return the size of the index."""
        observed = passes.run()
        for file in (world / "cache").glob("console_index*"):
            file.unlink()
        indexer = build_fleet_indexer(passes.settings, "config")
        index = self._update("first build", indexer, observed)
        indexer.store()
        restarted = build_fleet_indexer(passes.settings, "config")
        self._update("first build after a restart", restarted, observed)
        del restarted
        size = _measure_size(self._fleet, index, indexer)
        self._update("update without a change", indexer, observed)
        publish_drafts(world, CHANGED)
        self._update("update after one changed target", indexer, passes.run())
        self._time("index of unchanged entries", lambda: build_fleet_index(1, 0, "", index.targets, ()), ROUNDS)
        self._time("list: filter, sort, 100 rows", lambda: _list_page(index), ROUNDS)
        return size

    def _update(self, name: str, indexer: FleetIndexer, observed: ObservedPass) -> FleetIndex:
        built: list[FleetIndex] = []
        self._time(name, lambda: built.append(indexer.update(observed, lambda done, total: None)))
        return built[0]

    def _time(self, name: str, work: Callable[[], object], rounds: int = 1) -> None:
        before, began = cpu_seconds(), time.perf_counter()
        if self._is_profiled:
            sys.stderr.write(f"\n{self._fleet}: {name}\n")
            run_profiled(work)
        else:
            for _ in range(rounds):
                work()
        seconds, cpu = time.perf_counter() - began, cpu_seconds() - before
        self._steps.append(Measure(self._fleet, name, round(seconds / rounds, 4), round(cpu / rounds, 3)))


def _list_page(index: FleetIndex) -> list[PackageRow]:
    """Return the last page of the packages of all targets of one role whose path contains a text, the newest first."""
    rows = [
        row
        for target in index.targets
        if target.labels.get("role") == "edge"
        for row in target.packages
        if "gateway" in row.package
    ]
    rows.sort(key=lambda row: (-(row.since or 0), row.target, row.package))
    return rows[-PAGE_ROWS:]


def _measure_size(fleet: str, index: FleetIndex, indexer: FleetIndexer) -> IndexSize:
    drafts = sum(len(target.drafts) for target in index.targets)
    variants = sum(len(change.variants) for change in index.changes)
    total = sum(map(sys.getsizeof, _iterate_objects(index, indexer)))
    packages = index.package_count
    return IndexSize(fleet, packages, drafts, len(index.changes), variants, round(total / packages / 1000, 2))


def _iterate_objects(*roots: object) -> Iterator[object]:
    """Yield all objects that these objects refer to, each once. Code is not included."""
    found = set(map(id, roots))
    pending: list[object] = list(roots)
    while pending:
        item = pending.pop()
        yield item
        for inner in gc.get_referents(item):
            if id(inner) not in found and not isinstance(inner, _CODE):
                found.add(id(inner))
                pending.append(inner)


if __name__ == "__main__":
    main()
