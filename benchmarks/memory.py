"""Memory of one service over thousands of changes of a small config, with one pass and its drafts for each.

    python -m benchmarks memory                    5,000 changes of the demo; about half an hour
    python -m benchmarks memory --changes 500

Each change sets a new value in one object that is injected into two packages. After each pass, a thread builds the
index of the console. The figure is the resident memory of the process after each tenth of the changes. The figure
should stay level: a pass must not leave data in memory.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import click

PROJECT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(PROJECT))

from structlog.testing import capture_logs  # noqa: E402

from benchmarks.passes import build_service  # noqa: E402
from reconciler.memory import relax_gc  # noqa: E402

OBJECT, VALUE = "config/regions.yaml", "auth.eu-west"


@dataclass(frozen=True)
class Reading:
    """State of the process after a number of changes: MiB of memory, and the loose objects in its cache."""

    changes: int
    mib: float
    loose_objects: int


@click.command()
@click.option("--changes", default=5_000, show_default=True)
def main(changes: int) -> None:
    """Run the passes and print a table."""
    relax_gc()
    with tempfile.TemporaryDirectory(prefix="memory-") as temporary:
        world = Path(temporary).resolve() / "world"
        subprocess.run(
            [sys.executable, "-m", "reconciler", "demo", str(world)], check=True, stdout=subprocess.DEVNULL, cwd=PROJECT
        )
        click.echo("| changes | MiB | loose objects |\n|---:|---:|---:|")
        for reading in measure_changes(world, changes):
            click.echo(f"| {reading.changes} | {reading.mib:.1f} | {reading.loose_objects} |")


def measure_changes(world: Path, changes: int) -> Iterator[Reading]:
    """Change the object repeatedly; yield a reading after each tenth of the changes."""
    os.chdir(world)
    _git("init", "--quiet", "--initial-branch=main")
    text = Path(OBJECT).read_text()
    passes = build_service("./fleet.git", workers=1, config=f"file://{world / 'config'}", has_console=True)
    for number in range(1, changes + 1):
        Path(OBJECT).write_text(text.replace(VALUE, f"auth{number}.eu-west"))
        _git("add", ".")
        _git("-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "--quiet", "-m", f"change {number}")
        with capture_logs():
            passes.run()
        if number % max(changes // 10, 1) == 0:
            yield Reading(number, _resident_mib(), sum(1 for _ in Path("cache").glob("*/objects/??/*")))


def _git(*arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd="config", check=True)


def _resident_mib() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


if __name__ == "__main__":
    main()
