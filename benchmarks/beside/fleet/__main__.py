"""The same packages on the same clusters: the service, and scripts around kustomize and kpt, in one run.

    python -m benchmarks.beside.fleet                          20 clusters with ten packages each; about eight minutes
    python -m benchmarks.beside.fleet --clusters 50 --runs 3   a larger fleet, medians of three runs
    python -m benchmarks.beside.fleet --kustomize PATH --kpt PATH --set-labels PATH

Each program runs twice: a first run, and a run after a change of the object of one region in ten.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from statistics import median

import click
from structlog.testing import capture_logs

PROJECT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(PROJECT))

from benchmarks.beside.fleet.measure import OURS, FleetRow, list_scripts, run_programs  # noqa: E402
from benchmarks.beside.fleet.place import Cost, cost_of  # noqa: E402
from benchmarks.passes import build_service  # noqa: E402
from benchmarks.processes import cpu_seconds  # noqa: E402
from benchmarks.scale.world import PACKAGES_FOLDER, Sizes, change_objects  # noqa: E402

HOW_TO_GET = {
    "kustomize": "go install sigs.k8s.io/kustomize/kustomize/v5@v5.8.2",
    "kpt": "see https://kpt.dev/installation",
    "set-labels": "cd benchmarks/beside/set_labels && go build -o ~/go/bin/set-labels .",
}
AT_ONCE = (1, 2)
NOTES = """\
All: the label on all objects, the cluster's name in a ConfigMap of each package, the region's object in two packages;
  commits and a push for each cluster that has something new, to a branch of its own in repositories on this disk.
reconciler: the packages' own functions as well; a commit for each package with the reason, a status, its state, and a
  three-way merge with what people change. Its start, once, is not in the figures: {start:.1f} CPU seconds.
kustomize: of the packages' own functions the namespaces and two replacements. No comments, one file for each package;
  what people change there is overwritten. One process for each package, in each run.
kpt: of the packages' own functions none, for they are containers; the label is set by a program. One `kpt pkg get` for
  each package, only in the first run, for nothing new is upstream in the second; then `kpt fn render` of each package,
  or of each cluster with all that it has. What people change there is kept, as far as the functions keep it.
Both scripts: everything in each run, whatever has changed; no status, nothing for the case that others push, too.
"""


@click.command()
@click.option("--clusters", type=click.IntRange(min=4), default=20, show_default=True)
@click.option("--runs", default=1, show_default=True, help="Runs to take the medians of.")
@click.option("--kustomize", default="kustomize", show_default=True, help="The program, by name or path.")
@click.option("--kpt", default="kpt", show_default=True, help="The program, by name or path.")
@click.option("--set-labels", default="set-labels", show_default=True, help="A function for kpt, as a program.")
@click.option("--inside", type=click.Path(path_type=Path), hidden=True)
@click.option("--workers", default=1, hidden=True)
def main(clusters: int, runs: int, inside: Path | None, workers: int, **tools: str) -> None:
    """Run all available programs on the same fleet, compare their results, and print the costs."""
    if inside:
        click.echo(json.dumps([asdict(cost) for cost in _serve(inside, workers)]))
        return
    if not PACKAGES_FOLDER.is_dir():
        raise SystemExit(f"the packages are read from {PACKAGES_FOLDER}, which is not there")
    # About a tenth of the clusters share the object that changes.
    sizes = Sizes(clusters, max(1, clusters // 10))
    paths = {name.replace("_", "-"): shutil.which(path) for name, path in tools.items()}
    for name in (name for name, path in paths.items() if not path):
        click.echo(f"{name} is not there, so what needs it is left out; to get it: {HOW_TO_GET[name]}")
    scripts = dict(list_scripts(paths["kustomize"], paths["kpt"], paths["set-labels"]))
    measured = [
        [row for at_once in AT_ONCE for row in run_programs(sizes, scripts, at_once, click.echo)] for _ in range(runs)
    ]
    rows = [_middle(item) for item in zip(*measured, strict=True)]
    click.echo(
        f"\n{clusters} clusters with ten packages each, medians of {runs}; then an object of {sizes.region} changes\n"
    )
    click.echo("\n".join([*_table("first run", sizes, rows, "first"), "", *_table("changed", sizes, rows, "changed")]))
    click.echo(f"\n{NOTES.format(start=rows[0].start.cpu_seconds)}", nl=False)


def _serve(world: Path, workers: int) -> Iterator[Cost]:
    os.chdir(world)
    passes = build_service("./fleet-0.git", workers)
    yield Cost(0, cpu_seconds())
    with capture_logs():
        yield cost_of(passes.run)
        change_objects(world, "second")
        yield cost_of(passes.run)


def _middle(rows: Sequence[FleetRow]) -> FleetRow:
    """Return the medians of the rows of one program."""
    return replace(
        rows[0],
        first=_median([row.first for row in rows]),
        changed=_median([row.changed for row in rows]),
        start=_median([row.start for row in rows]),
    )


def _median(costs: Sequence[Cost]) -> Cost:
    return Cost(median(cost.seconds for cost in costs), median(cost.cpu_seconds for cost in costs))


def _table(title: str, sizes: Sizes, rows: Sequence[FleetRow], name: str) -> Iterator[str]:
    """Yield one run as a table. Ratios refer to the service with the same number of processes."""
    yield f"| {title} | version | at once | seconds | to ours | CPU seconds | CPU ms a package | to ours |"
    yield f"|---|---|{'---:|' * 6}"
    ours: dict[int, Cost] = {row.at_once: getattr(row, name) for row in rows if row.tool == OURS}
    for row in rows:
        cost: Cost = getattr(row, name)
        base = ours[row.at_once]
        figures = (
            row.tool, row.version, row.at_once, f"{cost.seconds:.1f}", f"{cost.seconds / base.seconds:.2f}",
            f"{cost.cpu_seconds:.1f}", f"{cost.cpu_seconds * 1000 / sizes.variants:.1f}",
            f"{cost.cpu_seconds / base.cpu_seconds:.2f}",
        )  # fmt: skip
        yield f"| {' | '.join(map(str, figures))} |"


if __name__ == "__main__":
    main()
