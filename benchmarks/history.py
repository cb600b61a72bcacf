"""A long run of one service: thousands of config commits, one pass for each, with memory and time per pass.

    python -m benchmarks history                     10,000 commits; about a quarter of an hour
    python -m benchmarks history --commits 1000

Every tenth commit changes an object that is injected into ten packages. The other commits change an unused object. All
drafts are published regularly. The figures should not grow. Each line is the mean of a tenth of the passes.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import click

PROJECT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(PROJECT))

from structlog.testing import capture_logs  # noqa: E402

from benchmarks.passes import build_service  # noqa: E402
from benchmarks.scale.world import PACKAGES_FOLDER, Sizes, build_world, change_objects, change_unused_object  # noqa: E402
from reconciler.reconcile.pass_runner import PassRunner  # noqa: E402

SIZES = Sizes(clusters=40, region=10)
AN_OBJECT_EVERY = 10
PUBLISHED_EVERY = 100


@dataclass(frozen=True)
class Stretch:
    """Consecutive passes: the mean of their seconds, and the memory of the process after them."""

    passes: int
    seconds: float
    mib: float
    cache_mib: float
    drafts: int


@click.command()
@click.option("--commits", default=10_000, show_default=True)
def main(commits: int) -> None:
    """Run the passes and print the table."""
    if not PACKAGES_FOLDER.is_dir():
        raise SystemExit(f"the packages of this world are read from {PACKAGES_FOLDER}, which is not there")
    with tempfile.TemporaryDirectory(prefix="history-") as temporary:
        world = Path(temporary).resolve()
        build_world(world, SIZES)
        click.echo("| passes | seconds a pass | MiB | MiB of cache | drafts |\n|---:|---:|---:|---:|---:|")
        for stretch in _stretches(world, commits):
            click.echo(
                f"| {stretch.passes} | {stretch.seconds:.3f} | {stretch.mib:.0f} | {stretch.cache_mib:.0f}"
                f" | {stretch.drafts} |"
            )


def _stretches(world: Path, commits: int) -> Iterator[Stretch]:
    os.chdir(world)
    _git("init", "--quiet", "--initial-branch=main")
    _commit("first")
    passes = build_service("./fleet-0.git", workers=1, config=f"file://{world / 'config'}")
    _run(passes)
    size, began, drafts = max(commits // 10, 1), time.perf_counter(), 0
    for number in range(1, commits + 1):
        change_unused_object(world, number)
        if number % AN_OBJECT_EVERY == 0:
            change_objects(world, f"word-{number}")
        if number % PUBLISHED_EVERY == 0:
            _publish(world)
        _commit(f"commit {number}")
        drafts += _run(passes)
        if number % size == 0:
            yield Stretch(number, (time.perf_counter() - began) / size, _resident_mib(), _cache_mib(world), drafts)
            began, drafts = time.perf_counter(), 0


def _run(passes: PassRunner) -> int:
    with capture_logs():
        passes.run()
    return 0 if passes.summary.is_skipped else passes.summary.counts["drafted"]


def _commit(message: str) -> None:
    _git("add", ".")
    _git("-c", "user.name=somebody", "-c", "user.email=somebody@example.com", "commit", "--quiet", "-m", message)


def _git(*arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd="config", check=True)


def _publish(world: Path) -> None:
    """Set every target branch to its draft, as a fast-forward merge does."""
    for repository in world.glob("fleet-*.git"):
        listed = subprocess.check_output(
            ["git", "for-each-ref", "--format=%(objectname) %(refname)", "refs/heads/drafts"], cwd=repository, text=True
        )
        rows = (line.split() for line in listed.splitlines())
        moves = "".join(f"update {ref.replace('/drafts/', '/clusters/')} {commit}\n" for commit, ref in rows)
        subprocess.run(["git", "update-ref", "--stdin"], cwd=repository, input=moves, text=True, check=True)


def _resident_mib() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def _cache_mib(world: Path) -> float:
    return sum(path.stat().st_size for path in (world / "cache").rglob("*") if path.is_file()) / 2**20


if __name__ == "__main__":
    main()
