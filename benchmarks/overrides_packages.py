"""Cost of overriding a package, relative to the time in which libyaml reads the same bytes.

    python benchmarks/overrides_packages.py PACKAGES    every package below a folder, with two policies

Both policies select all resources of the package and set two labels of each resource. One label is the name of the
cluster, on half of the fleet. The unit is the event loop of libyaml over the files, as in benchmarks/merge.py. The
other columns are multiples of it: medians of rounds in one process. The first column starts with empty caches, the
second with parsed files, the third with the render for another cluster that has the same rules.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

PROJECT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(PROJECT))

from benchmarks.merge import clear_caches, medians, read_events  # noqa: E402
from reconciler.catalog.catalog import read_catalog  # noqa: E402
from reconciler.catalog.files import File, FileTree  # noqa: E402
from reconciler.controllers.clusters.selection import Cluster  # noqa: E402
from reconciler.controllers.override_policies.package_overrides import PackageOverrider  # noqa: E402
from reconciler.controllers.override_policies.read_policies import OverridePolicies, read_override_policies  # noqa: E402
from reconciler.krm.yaml import emit  # noqa: E402
from reconciler.packages.package import Package  # noqa: E402

COLUMNS = ("read and overridden", "rules of its own", "the same rules as another")
EARLY, WIDE = {"ring": "early"}, {"ring": "wide"}


@click.command()
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--rounds", default=15, show_default=True)
def main(folder: Path, rounds: int) -> None:
    """Measure the cost of overrides for all packages below FOLDER."""
    packages = {file.parent: _package(file.parent) for file in sorted(folder.rglob("Kptfile"))}
    click.echo("| package | resources | libyaml, ms | " + " | ".join(COLUMNS) + " |")
    click.echo("|---|" + "---:|" * (2 + len(COLUMNS)))
    rows = [(len(Package(files).resources), *_measure(files, rounds)) for files in packages.values()]
    for place, row in zip(packages, rows, strict=True):
        click.echo(_line(place.relative_to(folder).as_posix(), *row))
    click.echo(_line(f"all {len(rows)}", *map(sum, zip(*rows, strict=True))))


def _package(place: Path) -> FileTree:
    paths = [path for path in sorted(place.rglob("*")) if path.is_file()]
    return FileTree({path.relative_to(place).as_posix(): File(path.read_bytes()) for path in paths})


def _measure(files: FileTree, rounds: int) -> Sequence[float]:
    """Return the seconds of libyaml, and the seconds of each column."""
    policies = _policies(files)
    texts = [
        files[path].data for path in sorted({package_resource.file for package_resource in Package(files).resources})
    ]
    overriding = PackageOverrider(policies)
    early = _clusters(EARLY)
    wide = _clusters(WIDE)
    return medians(
        (
            lambda: [read_events(text) for text in texts],
            lambda: (clear_caches(), PackageOverrider(policies).override(files, next(early), {})),
            lambda: overriding.override(files, next(early), {}),
            lambda: overriding.override(files, next(wide), {}),
        ),
        rounds,
    )


def _clusters(labels: dict[str, str]) -> Iterator[Cluster]:
    """Yield an endless sequence of different clusters."""
    number = 0
    while True:
        yield Cluster(f"cluster-{number:06}", labels)
        number += 1


def _policies(files: FileTree) -> OverridePolicies:
    kinds = sorted(
        {(package_resource.api_version, package_resource.kind) for package_resource in Package(files).resources}
    )
    own = {**_rule("site", "${cluster.name}"), "targetClusters": {"clusterSelector": EARLY}}
    spec = {
        "resourceSelectors": [{"apiVersion": version, "kind": kind} for version, kind in kinds],
        "overrideRules": [_rule("fleet", "all"), own],
    }
    mapping = {"apiVersion": "core.kubeadmiral.io/v1alpha1", "kind": "ClusterOverridePolicy", "spec": spec}
    texts = {f"{name}.yaml": emit({**mapping, "metadata": {"name": name}}) for name in ("first", "second")}
    return read_override_policies(read_catalog(FileTree({path: File(text.encode()) for path, text in texts.items()})))


def _rule(label: str, value: str) -> dict[str, object]:
    return {"overriders": {"labels": [{"operator": "set", "value": {label: value}}]}}


def _line(name: str, resources: float, unit: float, *rest: float) -> str:
    ratios = " | ".join(f"{value / unit:.2g}" for value in rest)
    return f"| {name} | {resources:.0f} | {unit * 1000:.2f} | {ratios} |"


if __name__ == "__main__":
    main()
