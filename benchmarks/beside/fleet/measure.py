"""Run the reconciler and scripts around other programs over the same fleet, and measure both runs of each."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.beside.fleet.kpt import Kpt
from benchmarks.beside.fleet.kustomize import Kustomize
from benchmarks.beside.fleet.outputs import Outputs, outputs_of
from benchmarks.beside.fleet.place import Cost, Place, Script, costs_of
from benchmarks.passes import run_script
from benchmarks.scale.world import Sizes, build_world
from reconciler import __version__

OURS = "reconciler"
_SERVICE = Path(__file__).parent / "__main__.py"


@dataclass(frozen=True)
class FleetRow:
    """One program: its number of processes, the costs of its start and both runs, and its results.

    Attributes:
        difference: The difference between the results and those of the reconciler. "" if all checks are equal.
    """

    tool: str
    version: str
    at_once: int
    first: Cost
    changed: Cost
    start: Cost
    difference: str = ""


def list_scripts(
    kustomize: str | None, kpt: str | None, labels: str | None
) -> Iterator[tuple[str, tuple[str, Script]]]:
    """Yield the scripts by name, with the version of the program. A script whose program is None is omitted."""
    if kustomize:
        yield "kustomize", (_read_version(kustomize), Kustomize(kustomize))
    if kpt and labels:
        version = _read_version(kpt)
        yield "kpt, by package", (version, Kpt(kpt, labels, by_cluster=False))
        yield "kpt, by cluster", (version, Kpt(kpt, labels, by_cluster=True))


def _read_version(tool: str) -> str:
    return subprocess.check_output([tool, "version"], text=True).split()[0]


def run_programs(
    sizes: Sizes, scripts: Mapping[str, tuple[str, Script]], at_once: int, report: Callable[[str], None]
) -> Iterator[FleetRow]:
    """Run both runs of each program in a separate fleet, and compare the results with the reconciler.

    Args:
        at_once: The number of processes.
        report: Receives one line about the results of each program.
    """
    with _build_place(sizes) as place:
        start, first, changed = _measure_service(place, at_once)
        ours = outputs_of(place)
    report(f"{OURS}, {at_once} at once: {ours.describe(ours)}")
    yield FleetRow(OURS, __version__, at_once, first, changed, start)
    for name, (version, script) in scripts.items():
        with _build_place(sizes) as place:
            first, changed = costs_of(script, place, at_once)
            theirs = outputs_of(place)
        report(f"{name}, {at_once} at once: {theirs.describe(ours)}")
        yield FleetRow(name, version, at_once, first, changed, Cost(0, 0), _find_difference(theirs, ours))


def _find_difference(theirs: Outputs, ours: Outputs) -> str:
    is_correct = not (theirs.unlabelled or theirs.unnamed or theirs.stale)
    return "" if is_correct and theirs.objects == ours.objects else theirs.describe(ours)


@contextmanager
def _build_place(sizes: Sizes) -> Iterator[Place]:
    with tempfile.TemporaryDirectory(prefix="beside-") as temporary:
        place = Place(Path(temporary).resolve(), sizes)
        build_world(place.world, sizes)
        yield place


def _measure_service(place: Place, workers: int) -> list[Cost]:
    """Return the costs of the service in a separate process: start, first pass, pass after the change."""
    result = run_script(str(_SERVICE), ["--inside", str(place.world), "--workers", str(workers)])
    return [Cost(**item) for item in result]
