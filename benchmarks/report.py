"""Cost and size of the report of a large fleet: with all packages drafted, and with most of them published.

    python benchmarks/report.py                                    1,000 clusters in 20 regions, 10 packages each
    python benchmarks/report.py --clusters 100 --folder ./small    keeps the fleet and its pages

The fleet is the fleet of `fleet.py`, with its set written ten times. "drafted" is the state after the first pass, with
every package on a draft. "published" is the state after all merges and a change of one region.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import click

PROJECT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(PROJECT))

from benchmarks.fleet_world import SET, Sizes, build_world, change_a_region, open_folder  # noqa: E402

PLACES = ["config", "--fleet", "./fleet-0.git", "--cache", "cache"]


@dataclass(frozen=True)
class Measure:
    """One report: wall-clock seconds, CPU seconds, peak memory, and the size of the page, plain and compressed."""

    name: str
    seconds: float
    cpu_seconds: float
    peak_mib: float
    bytes: int
    zipped_bytes: int


@click.command()
@click.option("--clusters", default=1_000, show_default=True)
@click.option("--packages", default=10, show_default=True)
@click.option("--regions", default=20, show_default=True)
@click.option("--folder", type=click.Path(path_type=Path), help="Where to build; default: a temporary folder.")
@click.option("--json", "as_json", is_flag=True, help="Figures as data.")
def main(clusters: int, packages: int, regions: int, folder: Path | None, as_json: bool) -> None:
    """Build a fleet and measure its report."""
    with open_folder(folder) as place:
        world = place / "world"
        build_world(world, Sizes(clusters, regions, 5, 1))
        write_sets(world, packages)
        measures = list(_measures(world))
    if as_json:
        click.echo(json.dumps([asdict(item) for item in measures], indent=2))
        return
    click.echo(f"{clusters} clusters with {packages} packages\n")
    click.echo("| report | seconds | CPU seconds | peak MiB | MB | MB zipped |\n|---|---:|---:|---:|---:|---:|")
    for measure in measures:
        sizes = f"{measure.bytes / 1e6:.2f} | {measure.zipped_bytes / 1e6:.2f}"
        click.echo(
            f"| {measure.name} | {measure.seconds:.1f} | {measure.cpu_seconds:.1f} | {measure.peak_mib:.0f} | {sizes} |"
        )


def write_sets(world: Path, packages: int) -> None:
    """Write the set of the fleet as often as each cluster has packages."""
    sets = [_set(index) for index in range(packages)]
    (world / "config" / "set.yaml").write_text("---\n".join(sets))


def _set(index: int) -> str:
    named = SET.replace("  name: gateway\n", f"  name: gateway-{index}\n", 1)
    return named.replace("      template:\n", f"      template:\n        downstream: {{package: gateway-{index}}}\n")


def _measures(world: Path) -> Iterator[Measure]:
    _run(world, "sync", *PLACES)
    yield _report(world, "drafted")
    publish_drafts(world)
    change_a_region(world)
    _run(world, "sync", *PLACES)
    yield _report(world, "published")


def publish_drafts(world: Path, drafts: str = "") -> None:
    """Set target branches to the heads of their drafts, as a fast-forward merge does. The default is every branch."""
    fleet = world / "fleet-0.git"
    pattern = f"refs/heads/drafts/{drafts}"
    rows = subprocess.check_output(
        ["git", "for-each-ref", "--format=%(objectname) %(refname:lstrip=3)", pattern], cwd=fleet, text=True
    )
    updates = [f"update refs/heads/clusters/{name} {head}\n" for head, name in map(str.split, rows.splitlines())]
    subprocess.run(["git", "update-ref", "--stdin"], cwd=fleet, input="".join(updates), text=True, check=True)


def _report(world: Path, name: str) -> Measure:
    page = world / f"{name}.html"
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    _run(world, "report", *PLACES, "--output", str(page))
    seconds, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = sum(getattr(after, field) - getattr(before, field) for field in ("ru_utime", "ru_stime"))
    zipped = subprocess.check_output(["gzip", "--stdout", str(page)])
    peak = _peak(world)
    return Measure(name, round(seconds, 2), round(cpu, 2), peak, page.stat().st_size, len(zipped))


def _peak(world: Path) -> float:
    """Return the peak memory of one more report, as the process itself counts it."""
    code = (
        "import resource, sys; from reconciler.cli.entry import run; run(sys.argv[1:]);"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    )
    out = _python(world, "-c", code, "report", *PLACES, "--output", os.devnull)
    unit = 2**20 if sys.platform == "darwin" else 2**10
    return int(out.split()[-1]) / unit


def _run(world: Path, *arguments: str) -> None:
    _python(world, "-m", "reconciler", *arguments)


def _python(world: Path, *arguments: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(PROJECT)}
    return subprocess.run(
        [sys.executable, *arguments], cwd=world, env=environment, stdout=subprocess.PIPE, text=True, check=True
    ).stdout


if __name__ == "__main__":
    main()
