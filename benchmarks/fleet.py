"""Time and memory of a pass over a large fleet: first pass, pass without change, pass after a change of one region.

    python benchmarks/fleet.py                             1,000 clusters as branches of one fleet repository
    python benchmarks/fleet.py --repositories 1000         a repository for each cluster
    python benchmarks/fleet.py --clusters 100 --json       a small fleet, as JSON

Each pass is measured twice: as a separate process (`reconciler sync`), and in one long-lived process (`PassRunner`).
The table also contains the Git fetches of a pass alone, and the start of the program. Memory is the peak of the largest
process, including Git. The minimum is the memory of the measuring process (about 60 MiB).
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import click

PROJECT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(PROJECT))

from structlog.testing import capture_logs  # noqa: E402

from benchmarks.fleet_world import Sizes, build_world, change_a_region, open_folder  # noqa: E402
from benchmarks.report import write_sets  # noqa: E402
from reconciler.bootstrap.publishers import build_push_publisher  # noqa: E402
from reconciler.bootstrap.services import build_services  # noqa: E402
from reconciler.reconcile.pass_runner import PassRunner  # noqa: E402
from reconciler.settings import Settings  # noqa: E402

PASSES = ("first", "no change", "no change again", "one region")


@dataclass(frozen=True)
class Measure:
    """One measurement: wall-clock seconds, CPU seconds, peak memory, and counts of the pass."""

    name: str
    seconds: float
    user_seconds: float
    system_seconds: float
    peak_mib: float
    renders: int = 0
    refs_pushed: int = 0
    drafts: int = 0


@click.command()
@click.option("--clusters", default=1_000, show_default=True)
@click.option("--packages", default=1, show_default=True, help="Packages of each cluster.")
@click.option("--regions", default=20, show_default=True)
@click.option("--files", default=10, show_default=True, help="Files of the package, its Kptfile included.")
@click.option("--repositories", default=1, show_default=True, help="Fleet repositories that the clusters share.")
@click.option("--folder", type=click.Path(path_type=Path), help="Where to build; default: a temporary folder.")
@click.option("--shard", default="1/1", show_default=True, help="The shard that the passes process.")
@click.option("--json", "as_json", is_flag=True, help="Figures as data.")
@click.option("--inside", type=click.Path(path_type=Path), hidden=True)
def main(
    clusters: int,
    packages: int,
    regions: int,
    files: int,
    repositories: int,
    folder: Path | None,
    shard: str,
    as_json: bool,
    inside: Path | None,
) -> None:
    """Build a fleet and measure its passes."""
    if inside:
        click.echo(json.dumps([asdict(measure) for measure in _long_lived(inside, shard)]))
        return
    sizes = Sizes(clusters, regions, files, repositories)
    with open_folder(folder) as place:
        build_world(place / "cold", sizes)
        if packages > 1:
            write_sets(place / "cold", packages)
        shutil.copytree(place / "cold", place / "warm")
        cold = [_start(), *_cold(place / "cold", shard), _fetches(place / "cold", shard)]
        warm = _in_one_process(place / "warm", shard)
    mapping = {
        "sizes": asdict(sizes),
        "cold": [asdict(measure) for measure in cold],
        "warm": [asdict(measure) for measure in warm],
    }
    click.echo(json.dumps(mapping, indent=2) if as_json else _table(sizes, cold, warm))


# Each pass in a separate process.


def _cold(world: Path, shard: str) -> Iterator[Measure]:
    for name in PASSES:
        if name == "one region":
            change_a_region(world)
        yield _sync(name, world, shard)


def _sync(name: str, world: Path, shard: str) -> Measure:
    before = _refs(world)
    arguments = ["sync", "config", "--fleet", "./fleet-0.git", "--cache", "cache", "--shard", shard, "-o", "json"]
    measure, out = _run(name, [sys.executable, "-m", "reconciler", *arguments], world)
    after = _refs(world)
    moved = {ref for ref in before.keys() | after.keys() if before.get(ref) != after.get(ref)}
    counts = json.loads(out)["summary"]
    drafts = counts["install"] + counts["update"]
    return replace(measure, renders=counts["renders"], refs_pushed=len(moved), drafts=drafts)


def _start() -> Measure:
    measure, _ = _run("start of the program", [sys.executable, "-m", "reconciler", "--help"], PROJECT)
    return replace(measure, peak_mib=0)


def _run(name: str, command: list[str], folder: Path) -> tuple[Measure, bytes]:
    environment = {**os.environ, "PYTHONPATH": str(PROJECT)}
    with tempfile.TemporaryFile() as out:
        began = time.perf_counter()
        process = subprocess.Popen(command, cwd=folder, env=environment, stdout=out)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - began
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise SystemExit(f"{command} ended with {process.returncode}")
        out.seek(0)
        return _measure(name, seconds, usage), out.read()


def _measure(name: str, seconds: float, usage: resource.struct_rusage) -> Measure:
    # Linux counts in KiB, macOS in bytes.
    unit = 2**20 if sys.platform == "darwin" else 2**10
    return Measure(name, round(seconds, 3), round(usage.ru_utime, 3), round(usage.ru_stime, 3), usage.ru_maxrss // unit)


def _refs(world: Path) -> dict[str, str]:
    mapping = {}
    for repository in world.glob("fleet-*.git"):
        lines = subprocess.check_output(["git", "for-each-ref", "--format=%(refname) %(objectname)"], cwd=repository)
        rows = (line.split() for line in lines.decode().splitlines())
        mapping |= {f"{repository.name} {ref}": commit for ref, commit in rows}
    return mapping


# All passes in one process.


def _in_one_process(world: Path, shard: str) -> list[Measure]:
    command = [sys.executable, __file__, "--inside", str(world), "--shard", shard]
    return [Measure(**data) for data in json.loads(_run("", command, world)[1])]


def _long_lived(world: Path, shard: str) -> Iterator[Measure]:
    os.chdir(world)
    passes = PassRunner(*_parts(_settings(shard)))
    for name in PASSES:
        if name == "one region":
            change_a_region(world)
        before = _refs(world)
        measure, _ = _timed(name, passes.run)
        moved = sum(before.get(ref) != commit for ref, commit in _refs(world).items())
        counts = passes.summary.counts
        yield replace(measure, renders=counts.get("renders", 0), refs_pushed=moved, drafts=counts.get("drafted", 0))


def _parts(settings: Settings) -> tuple:
    parts = build_services(settings, settings.config.url)
    return parts.source, parts.remotes, parts.pass_services, build_push_publisher(settings)


def _settings(shard: str) -> Settings:
    return Settings.model_validate({
        "config": {"url": "config"}, "fleet": {"url": "./fleet-0.git"}, "cache": str(Path("cache").absolute()),
        "shard": shard,
    })  # fmt: skip


def _timed(name: str, work: Callable[[], object]) -> tuple[Measure, list]:
    whom = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    before = [resource.getrusage(item) for item in whom]
    began = time.perf_counter()
    with capture_logs() as events:
        work()
    seconds = time.perf_counter() - began
    after = [resource.getrusage(item) for item in whom]
    user, system = (
        sum(getattr(item, field) for item in after) - sum(getattr(item, field) for item in before)
        for field in ("ru_utime", "ru_stime")
    )
    peak = _measure(name, seconds, max(after, key=lambda value: value.ru_maxrss))
    return replace(peak, user_seconds=round(user, 3), system_seconds=round(system, 3)), events


def _fetches(world: Path, shard: str) -> Measure:
    """Yield the fetches of a pass without change. The mirrors exist, and the remotes have no new commits."""
    here = Path.cwd()
    os.chdir(world)
    source, remotes, services, _ = _parts(_settings(shard))
    urls = services.list_urls(services.read_catalog(source.read()))
    measure, _ = _timed("its git fetches alone", lambda: remotes.fetch(*urls))
    os.chdir(here)
    return replace(measure, peak_mib=0)


def _table(sizes: Sizes, cold: list[Measure], warm: list[Measure]) -> str:
    whole = f"{sizes.clusters} clusters in {sizes.regions} regions, {sizes.files} files a package"
    lines = [f"{whole}, {sizes.repositories} fleet repositories\n"]
    lines += ["| pass | seconds | user CPU | system CPU | peak MiB | renders | drafts | refs moved |"]
    lines += ["|---|---:|---:|---:|---:|---:|---:|---:|"]
    for kind, measures in (("process of its own", cold), ("long-lived process", warm)):
        lines += [f"| {_row(kind, measure)} |" for measure in measures]
    return "\n".join(lines)


def _row(kind: str, measure: Measure) -> str:
    figures = (
        f"{measure.seconds:.2f}",
        f"{measure.user_seconds:.2f}",
        f"{measure.system_seconds:.2f}",
        f"{measure.peak_mib:.0f}" if measure.peak_mib else "",
    )
    return " | ".join(
        [f"{measure.name}, {kind}", *figures, str(measure.renders), str(measure.drafts), str(measure.refs_pushed)]
    )


if __name__ == "__main__":
    main()
