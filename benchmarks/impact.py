"""Time of `impact` over a large fleet: for a change of one region, of no package, and of every cluster.

    python benchmarks/impact.py                            1,000 clusters as branches of one fleet repository
    python benchmarks/impact.py --clusters 100 --json      a small fleet, as JSON
    python benchmarks/impact.py --profile                  a profile of the change of one region

The fleet is the fleet of `fleet.py` after one pass. Each change is a config commit. It is measured as a separate
process (`reconciler impact`), and a second time in one process with a loaded config and loaded states.
"""

from __future__ import annotations

import cProfile
import json
import os
import pstats
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import chdir
from dataclasses import asdict, dataclass
from pathlib import Path

import click

PROJECT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(PROJECT))

from benchmarks.fleet_world import Sizes, build_world, change_a_region  # noqa: E402
from benchmarks.processes import cpu_seconds  # noqa: E402
from reconciler.bootstrap.services import Services, build_services  # noqa: E402
from reconciler.inspect.impact import CommitRange, ConfigVersions, compute_impact  # noqa: E402
from reconciler.memory import relax_gc  # noqa: E402
from reconciler.output.impact.formats import format_impact_markdown  # noqa: E402
from reconciler.output.impact.overview import ImpactOverview, build_impact_overview  # noqa: E402
from reconciler.output.impact.result import build_impact_result  # noqa: E402
from reconciler.settings import Settings  # noqa: E402

GIT = ["git", "-c", "user.name=bench", "-c", "user.email=bench@example.com", "-C", "config"]
CHANGES = ("nothing", "one region", "every cluster")


@dataclass(frozen=True)
class Measure:
    """One measurement: wall-clock seconds, CPU seconds including Git, and counts of the result."""

    name: str
    seconds: float
    cpu_seconds: float
    packages: int
    groups: int


@click.command()
@click.option("--clusters", default=1_000, show_default=True)
@click.option("--regions", default=20, show_default=True)
@click.option("--files", default=10, show_default=True, help="Files of the package, its Kptfile included.")
@click.option("--json", "as_json", is_flag=True, help="Figures as data.")
@click.option("--profile", is_flag=True, help="Profile the change of one region, in a process that has loaded all.")
def main(clusters: int, regions: int, files: int, as_json: bool, profile: bool) -> None:
    """Build a fleet, run a pass, and measure the impact of three changes."""
    relax_gc()
    with tempfile.TemporaryDirectory(prefix="impact-") as folder, chdir(folder):
        build_world(Path(), Sizes(clusters, regions, files, 1))
        _prepare()
        if profile:
            _profile()
            return
        measures = [*_fresh(), *_loaded()]
    click.echo(
        json.dumps([asdict(measure) for measure in measures], indent=2) if as_json else _table(clusters, measures)
    )


def _prepare() -> None:
    """Commit the config, run a pass, and commit each change with a tag."""
    subprocess.run([*GIT, "init", "--quiet", "--initial-branch=main"], check=True)
    _commit("base")
    sync = ["sync", "config", "--fleet", "./fleet-0.git", "--cache", "cache", "-o", "json"]
    subprocess.run([sys.executable, "-m", "reconciler", *sync], env=_environment(), check=True, capture_output=True)
    Path("config/notes.yaml").write_text("# nothing that anybody reads\n")
    _commit("nothing")
    change_a_region(Path())
    _commit("one-region")
    package_set = Path("config/set.yaml")
    package_set.write_text(package_set.read_text().replace("namespace: edge", "namespace: outer"))
    _commit("every-cluster")


def _commit(tag: str) -> None:
    for words in (["add", "--all"], ["commit", "--quiet", "-m", tag], ["tag", tag]):
        subprocess.run([*GIT, *words], check=True)


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(PROJECT)}


def _fresh() -> Iterator[Measure]:
    for name in CHANGES:
        arguments = [_range(name), "--config", "config", "--fleet", "./fleet-0.git", "--cache", "cache", "-o", "json"]
        began, before = time.perf_counter(), os.times()
        process = subprocess.run(
            [sys.executable, "-m", "reconciler", "impact", *arguments],
            env=_environment(),
            check=False,
            capture_output=True,
        )
        seconds, after = time.perf_counter() - began, os.times()
        data = json.loads(process.stdout)
        cpu = after.children_user + after.children_system - before.children_user - before.children_system
        groups = sum(item["type"] == "change" for item in data["items"])
        yield Measure(f"{name}, a process of its own", seconds, cpu, data["summary"]["packages"], groups)


def _loaded() -> Iterator[Measure]:
    parts = _parts()
    with parts.remotes:
        _compute(parts, CHANGES[0])
        for name in CHANGES:
            began, before = time.perf_counter(), cpu_seconds()
            overview = _compute(parts, name)
            seconds, cpu = time.perf_counter() - began, cpu_seconds() - before
            yield Measure(f"{name}, all loaded", seconds, cpu, len(overview.affected), len(overview.groups))


def _profile() -> None:
    parts = _parts()
    with parts.remotes:
        _compute(parts, CHANGES[0])
        with cProfile.Profile() as profile:
            _compute(parts, CHANGES[1])
    pstats.Stats(profile).sort_stats("cumulative").print_stats(60)


def _parts() -> Services:
    own = {"config": {"url": "config"}, "fleet": {"url": "./fleet-0.git"}, "cache": str(Path("cache").absolute())}
    return build_services(Settings.model_validate(own), "config", should_treat_missing_as_empty=True)


def _compute(parts: Services, name: str) -> ImpactOverview:
    base, head = _range(name).split("..")
    overview = build_impact_overview(
        compute_impact(
            CommitRange(base, head),
            ConfigVersions(parts.source, parts.open_config_history(), "main"),
            parts.remotes,
            parts.pass_services,
        )
    )
    format_impact_markdown(build_impact_result(overview))
    return overview


def _range(name: str) -> str:
    names = ("base", *(change.replace(" ", "-") for change in CHANGES))
    head = name.replace(" ", "-")
    return f"{names[names.index(head) - 1]}..{head}"


def _table(clusters: int, measures: list[Measure]) -> str:
    lines = [
        f"{clusters} clusters\n",
        "| change | seconds | CPU seconds | packages | groups |",
        "|---|---:|---:|---:|---:|",
    ]
    lines += [
        f"| {measure.name} | {measure.seconds:.2f} | {measure.cpu_seconds:.2f} | {measure.packages}"
        f" | {measure.groups} |"
        for measure in measures
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
