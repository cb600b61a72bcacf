"""Planning and rendering of a first pass with one process and with two workers.

    python -m benchmarks workers                      2,000 distinct renders: 200 clusters with ten packages each
    python -m benchmarks workers --clusters 50        a small fleet
    python -m benchmarks workers --rounds 3           the median of three rounds

Every render is distinct, because each package contains the name of its cluster. Each pass runs in a new process and in
new repositories. "Bound" is the ratio that the CPU seconds allow on two cores without other load: the CPU seconds of
one process, divided by the larger of two times: half of all CPU seconds, or the CPU seconds of the main process.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import click

PROJECT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(PROJECT))

from benchmarks.processes import cpu_seconds  # noqa: E402
from benchmarks.scale.world import PACKAGES, PACKAGES_FOLDER, Sizes, build_world  # noqa: E402

_WORKERS = (1, 2)
_CORES = 2


@click.command()
@click.option("--clusters", default=200, show_default=True)
@click.option("--rounds", default=1, show_default=True, help="The table contains the medians of the rounds.")
@click.option("--json", "as_json", is_flag=True, help="Figures as data.")
@click.option("--inside", type=click.Path(path_type=Path), hidden=True)
@click.option("--workers", default=0, hidden=True)
def main(clusters: int, rounds: int, as_json: bool, inside: Path | None, workers: int) -> None:
    """Measure planning and rendering with one process and with two workers, and print the ratios."""
    if inside:
        click.echo(json.dumps(_measure(inside, workers)))
        return
    if not PACKAGES_FOLDER.is_dir():
        raise SystemExit(f"the packages of this world are read from {PACKAGES_FOLDER}, which is not there")
    measured = [[_run(clusters, count) for count in _WORKERS] for _ in range(rounds)]
    rows = [_take_medians([round_of[index] for round_of in measured]) for index in range(len(_WORKERS))]
    if as_json:
        click.echo(json.dumps(dict(zip(_WORKERS, rows, strict=True)), indent=2))
    else:
        click.echo(_format_table(clusters, rows))


def _run(clusters: int, workers: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory(prefix="workers-") as folder:
        world = Path(folder) / "world"
        build_world(world, Sizes(clusters))
        command = [sys.executable, __file__, "--inside", str(world), "--workers", str(workers)]
        output = subprocess.check_output(command, env={**os.environ, "PYTHONPATH": str(PROJECT)})
    figures: dict[str, float] = json.loads(output)
    return figures


def _measure(world: Path, workers: int) -> dict[str, float]:
    """Run a first pass, and return the seconds of its planning and rendering, and the CPU seconds of the pass."""
    from structlog.testing import capture_logs

    from benchmarks.passes import build_service
    from reconciler.telemetry.phases import measure_phases

    os.chdir(world)
    passes = build_service("./fleet-0.git", workers)
    all_before, main_before = cpu_seconds(), time.process_time()
    with capture_logs(), measure_phases() as phases:
        passes.run()
    seconds = phases.durations["plan"] + phases.durations.get("render", 0.0)
    return {"seconds": seconds, "cpu": cpu_seconds() - all_before, "main_cpu": time.process_time() - main_before}


def _take_medians(rounds: list[dict[str, float]]) -> dict[str, float]:
    return {name: statistics.median(figures[name] for figures in rounds) for name in rounds[0]}


def _format_table(clusters: int, rows: list[dict[str, float]]) -> str:
    one, two = rows
    lines = [f"{clusters * len(PACKAGES):,} distinct renders\n"]
    lines += [
        "| workers | seconds of planning and rendering | CPU seconds of the pass | of these in the main process |"
    ]
    lines += ["|---:|---:|---:|---:|"]
    for workers, row in zip(_WORKERS, rows, strict=True):
        lines += [f"| {workers} | {row['seconds']:.1f} | {row['cpu']:.1f} | {row['main_cpu']:.1f} |"]
    bound = one["cpu"] / max(two["cpu"] / _CORES, two["main_cpu"])
    return "\n".join([*lines, f"\nmeasured ratio {one['seconds'] / two['seconds']:.2f}, bound {bound:.2f}"])


if __name__ == "__main__":
    main()
