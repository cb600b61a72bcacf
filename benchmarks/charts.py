"""Cost of Helm charts: one set on 1,000 clusters with equal values, ten distinct values, and a value per cluster.

    python -m benchmarks charts                               all fleets, about fifteen minutes
    python -m benchmarks charts --clusters 100 --distinct 100 one small fleet
    python -m benchmarks charts --chart FOLDER --value PATH   another chart with a map of labels at PATH in its values

The chart descheduler is the default; scripts/fetch_charts.sh downloads it. The program helm must be on the PATH. An
empty chart replaces each dependency in `Chart.lock` that the folder does not contain. The last fleet is a kpt package
with the rendered files. Each fleet has its own process. CPU seconds include the processes of helm and Git. A render is
an entry of the render cache: one process of helm, or three for a chart with random functions.
"""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import click

PROJECT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(PROJECT))

from benchmarks.fleet_world import SECONDS, repository  # noqa: E402
from benchmarks.passes import Measure, build_service, edit, measure_pass, run_script  # noqa: E402
from reconciler.git.local_repository import create_repository  # noqa: E402
from reconciler.git.mirror import Mirror  # noqa: E402
from reconciler.git.object_writer import NewCommit, PutFile  # noqa: E402
from reconciler.git.push_outcomes import PushUnit, RefUpdate  # noqa: E402
from reconciler.krm.yaml import parse_yaml  # noqa: E402

CHART = Path.home() / ".cache/reconciler-tests/charts/descheduler"
DISTINCT = (1, 10, 1_000)
PLAIN = 0
"""The number of distinct values of the fleet with a kpt package."""
PASSES = {
    "first": "first pass",
    "again": "no change, in a new service",
    "label": "one value changed",
}
NEW = ("first", "again")
SET = """\
apiVersion: config.porch.kpt.dev/v1alpha2
kind: PackageVariantSet
metadata: {name: web}
spec:
  upstream: {repo: catalog, package: web, revision: v1}
  targets:
    - repositorySelector: {matchLabels: {role: edge}}
"""
OPTIONS = """\
      template:
        helm:
          namespace: edge
          parameterExprs: [{name: %s.size, valueExpr: "repository.labels['size']"}]
"""


@click.command()
@click.option("--clusters", default=1_000, show_default=True)
@click.option("--distinct", type=int, help="Measure only the fleet with this number of distinct values.")
@click.option("--chart", type=click.Path(path_type=Path), default=CHART, show_default=True)
@click.option("--value", default="commonLabels", show_default=True, help="The value of the chart with labels.")
@click.option("--inside", type=click.Path(path_type=Path), hidden=True)
def main(clusters: int, distinct: int | None, chart: Path, value: str, inside: Path | None) -> None:
    """Build the fleets, and print the costs of their passes as a table."""
    if inside:
        click.echo(json.dumps([(asdict(measure), renders) for measure, renders in _measure_passes(inside)]))
        return
    click.echo("| distinct values | pass | seconds | CPU seconds | peak MiB | renders | drafts |")
    click.echo(f"|---|---|{'---:|' * 5}")
    with tempfile.TemporaryDirectory(prefix="charts-") as temporary:
        folder = Path(temporary)
        files = _read_chart(chart)
        for number in DISTINCT if distinct is None else (distinct,):
            files_of_fleet = _measure_fleet(folder / str(number), clusters, number, files, OPTIONS % value)
        if distinct is None:
            _measure_fleet(folder / "kpt", clusters, PLAIN, files_of_fleet, "")


def _read_chart(folder: Path) -> dict[str, bytes]:
    """Return the files of a chart, with an empty chart for each missing dependency."""
    files = {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    lock = parse_yaml(files.get("Chart.lock", b"{}")).documents[0].data
    for dependency in lock.get("dependencies", ()):
        name, version = dependency["name"], dependency["version"]
        stub = f"apiVersion: v2\nname: {name}\nversion: {version}\n".encode()
        files.setdefault(f"charts/{name}/Chart.yaml", stub)
    return files


def _measure_fleet(
    folder: Path, clusters: int, distinct: int, files: dict[str, bytes], options: str
) -> dict[str, bytes]:
    """Print the costs of one fleet. Return the files of a package without the Kptfile and the package context."""
    _build(folder, clusters, distinct, files, options)
    for measure, renders in run_script(__file__, ["--inside", str(folder)]):
        figures = (measure["seconds"], measure["cpu_seconds"], measure["peak_mib"], renders, measure["drafts"])
        name = str(distinct) if distinct else "kpt package"
        click.echo(f"| {name} | {PASSES[measure['name']]} | {' | '.join(map(str, figures))} |")
    files = _read_package(folder / "fleet.git")
    shutil.rmtree(folder)
    return files


def _read_package(fleet: Path) -> dict[str, bytes]:
    """Return the drafted files of the first cluster as a kpt package without options."""
    archive = subprocess.check_output(["git", "-C", str(fleet), "archive", "drafts/cluster-0000", "web"])
    files = {"Kptfile": b"apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata: {name: web}\n"}
    with tarfile.open(fileobj=io.BytesIO(archive)) as content:
        for entry in content:
            path, data = entry.name.removeprefix("web/"), content.extractfile(entry)
            if data and path not in ("Kptfile", "package-context.yaml"):
                files[path] = data.read()
    return files


def _build(folder: Path, clusters: int, distinct: int, files: dict[str, bytes], options: str) -> None:
    (folder / "config").mkdir(parents=True)
    for name in ("catalog", "fleet"):
        create_repository(folder / f"{name}.git")
    mirror = Mirror.open(folder / "cache", str(folder / "catalog.git"))
    puts = tuple(PutFile(f"web/{path}", data) for path, data in files.items())
    (commit,) = mirror.write_commits([NewCommit((), puts, "web", SECONDS)])
    updates = tuple(RefUpdate(ref, commit, None) for ref in ("refs/heads/main", "refs/tags/web/v1"))
    assert mirror.push([PushUnit("catalog", updates)]).is_complete
    (folder / "config/catalog.yaml").write_text(repository("catalog", "./catalog.git", "deployment: false", "main"))
    texts = (
        repository(
            f"cluster-{index:04}",
            "./fleet.git",
            "deployment: true",
            "",
            f"role: edge, size: s{index % (distinct or 1)}",
        )
        for index in range(clusters)
    )
    (folder / "config/clusters.yaml").write_text("---\n".join(texts))
    (folder / "config/set.yaml").write_text(SET + options)


def _measure_passes(folder: Path) -> Iterator[tuple[Measure, int]]:
    """Yield each pass with the number of its renders."""
    os.chdir(folder)
    renders = 0
    service = None
    for name in PASSES:
        if name in NEW or service is None:
            service = build_service(sources={"helm": {"program": shutil.which("helm")}})
        if name == "label":
            edit(folder, "clusters.yaml", "size: s0", "size: changed")
        measure = measure_pass(name, service, profiled=False)
        stored = len([*Path("cache/renders").glob("[0-9a-f]*")])
        yield measure, stored - renders
        renders = stored


if __name__ == "__main__":
    main()
