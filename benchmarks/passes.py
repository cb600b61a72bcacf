"""Measures passes of a long-lived service over a fleet on disk. The benchmarks of controllers share this module."""

from __future__ import annotations

import cProfile
import json
import os
import pstats
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from structlog.testing import capture_logs

from benchmarks.processes import cpu_seconds
from reconciler.bootstrap.console import build_fleet_indexer, observe_pass
from reconciler.bootstrap.publishers import build_push_publisher
from reconciler.bootstrap.services import build_services
from reconciler.git.errors import GitError
from reconciler.krm.findings import Finding
from reconciler.memory import relax_gc
from reconciler.reconcile.cache_files import CompletedPassStore
from reconciler.reconcile.pass_runner import PassRunner
from reconciler.reconcile.reconcile_pass import PassReport
from reconciler.service.index_thread import IndexThread
from reconciler.settings import Settings

PROJECT = Path(__file__).resolve().parents[1]
Remembers = Callable[[Settings], CompletedPassStore | None]
NEW = ("restart", "again")
"""The names of passes that are those of a new service."""
FLOOR = "unrelated"
"""The name of the pass that must look, for the config is another one, and finds nothing to do."""


@dataclass(frozen=True)
class Measure:
    """One pass: wall-clock seconds, CPU seconds, counts, and the peak of memory up to this pass."""

    name: str
    seconds: float
    cpu_seconds: float
    peak_mib: float
    renders: int
    drafts: int


def run_script(script: str, arguments: Sequence[str]) -> Any:
    """Return the data that a script writes. It runs in a separate process, so that its memory peak is its own."""
    command = [sys.executable, script, *arguments]
    return json.loads(subprocess.check_output(command, env={**os.environ, "PYTHONPATH": str(PROJECT)}))


def measure_in_process(script: str, build: Callable[[Path], None], profile: str) -> list[Measure]:
    """Build a fleet and return the costs of its passes, which the script measures in a separate process."""
    with tempfile.TemporaryDirectory(prefix=f"{Path(script).stem}-") as temporary:
        world = Path(temporary) / "world"
        build(world)
        result = run_script(script, ["--inside", str(world), *(("--profile", profile) if profile else ())])
    return [Measure(**item) for item in result]


def run_in_turn(
    folder: Path, names: Iterable[str], edits: Mapping[str, tuple[str, str, str]], profile: str
) -> Iterator[Measure]:
    """Yield the measured passes over a fleet by name, each after its edit of the config."""
    os.chdir(folder)
    passes = build_service()
    for name in names:
        if name in NEW:
            passes = build_service()
        if name in edits:
            edit(folder, *edits[name])
        yield measure_pass(name, passes, profiled=name == profile)


def edit(folder: Path, name: str, old: str, new: str) -> None:
    """Replace text in a file of the config once."""
    path = folder / "config" / name
    text = path.read_text()
    assert old in text, f"{name} has no {old!r}"
    path.write_text(text.replace(old, new, 1))


def format_table(title: str, names: Mapping[str, str], measures: Sequence[Measure]) -> str:
    """Return passes as a table with their titles from `names`, and CPU seconds relative to the floor."""
    (floor,) = (item.cpu_seconds for item in measures if item.name == FLOOR)
    lines = [f"{title}\n", "| pass | seconds | CPU seconds | to the floor | peak MiB | renders | drafts |"]
    lines += [f"|---|{'---:|' * 6}"]
    for measure in measures:
        ratio = f"{measure.cpu_seconds / floor:.2f}"
        figures = (measure.seconds, measure.cpu_seconds, ratio, measure.peak_mib, measure.renders, measure.drafts)
        lines += [f"| {names[measure.name]} | {' | '.join(map(str, figures))} |"]
    return "\n".join(lines)


def build_service(
    fleet: str = "./fleet.git",
    workers: int = 0,
    remembers: Remembers = lambda settings: None,
    config: str = "config",
    sources: Mapping[str, Any] = {},
    *,
    has_console: bool = False,
) -> PassRunner:
    """Return a new service for the fleet in this folder: `config`, its fleet and `cache`.

    `workers` is the number of render processes, 0 for one per core. `remembers` returns the store of completed passes.
    `sources` contains settings of the group `sources`. If `has_console` is True, a thread builds the index of the
    console after each pass.
    """
    relax_gc()
    settings = Settings.model_validate({
        "config": {"url": config}, "fleet": {"url": fleet}, "cache": str(Path("cache").absolute()),
        "rendering": {"workers": workers}, "sources": sources,
    })  # fmt: skip
    parts = build_services(settings, config)
    index_thread = IndexThread(build_fleet_indexer(settings, config))
    if has_console:
        index_thread.start()

    def observe(report: PassReport, failures: Mapping[str, GitError]) -> tuple[Finding, ...]:
        if has_console:
            index_thread.observe(observe_pass(report, failures, int(time.time())))
        return ()

    return PassRunner(
        parts.source, parts.remotes, parts.pass_services, build_push_publisher(settings), remembers(settings), observe
    )


def measure_pass(name: str, passes: PassRunner, *, profiled: bool) -> Measure:
    """Run a pass. CPU seconds include Git processes. A profile is written to stderr."""
    before, began = cpu_seconds(), time.perf_counter()
    with capture_logs():
        run_profiled(passes.run) if profiled else passes.run()
    seconds, cpu = time.perf_counter() - began, cpu_seconds() - before
    counts = {} if passes.summary.is_skipped else passes.summary.counts
    # Linux counts in KiB, macOS in bytes.
    unit = 2**20 if sys.platform == "darwin" else 2**10
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit
    return Measure(
        name, round(seconds, 2), round(cpu, 2), round(peak), counts.get("renders", 0), counts.get("drafted", 0)
    )


def run_profiled(work: Callable[[], object]) -> None:
    """Run a function and write its profile to stderr."""
    profile = cProfile.Profile()
    profile.runcall(work)
    pstats.Stats(profile, stream=sys.stderr).sort_stats("tottime").print_stats(35)
    pstats.Stats(profile, stream=sys.stderr).sort_stats("cumtime").print_stats(60)
