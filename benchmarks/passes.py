"""Passes of a long-lived service over a world on disk, measured; the benchmarks of rules share it."""

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
from reconciler.bootstrap import build_push, build_services
from reconciler.memory import relax_gc
from reconciler.reconcile.pass_cache import CompletedPassStore
from reconciler.reconcile.pass_runner import PassRunner
from reconciler.settings import Settings

PROJECT = Path(__file__).resolve().parents[1]
Remembers = Callable[[Settings], CompletedPassStore | None]
NEW = ("restart", "again")
"""The names of passes that are those of a new service."""
FLOOR = "beside"
"""The name of the pass that must look, for the config is another one, and finds nothing to do."""


@dataclass(frozen=True)
class Measure:
    """One pass: seconds of the clock and of CPU, what it came to, and the peak of memory so far."""

    name: str
    seconds: float
    cpu_seconds: float
    peak_mib: float
    renders: int
    drafts: int


def in_a_process(script: str, arguments: Sequence[str]) -> Any:
    """Return the data that a script writes when it is run alone, so that its peak of memory is its own."""
    command = [sys.executable, script, *arguments]
    return json.loads(subprocess.check_output(command, env={**os.environ, "PYTHONPATH": str(PROJECT)}))


def measured_in_a_process(script: str, build: Callable[[Path], None], profile: str) -> list[Measure]:
    """Build a world, and return what its passes cost, which the script runs when it is asked for those inside."""
    with tempfile.TemporaryDirectory(prefix=f"{Path(script).stem}-") as temporary:
        world = Path(temporary) / "world"
        build(world)
        found = in_a_process(script, ["--inside", str(world), *(("--profile", profile) if profile else ())])
    return [Measure(**one) for one in found]


def run_in_turn(
    folder: Path, names: Iterable[str], edits: Mapping[str, tuple[str, str, str]], profile: str
) -> Iterator[Measure]:
    """Yield the passes over a world by name, one after the other, each with the edit of the config before it."""
    os.chdir(folder)
    passes = service()
    for name in names:
        if name in NEW:
            passes = service()
        if name in edits:
            edit(folder, *edits[name])
        yield measured(name, passes, profiled=name == profile)


def edit(folder: Path, name: str, old: str, new: str) -> None:
    """Change text of a file of the config, once."""
    path = folder / "config" / name
    text = path.read_text()
    assert old in text, f"{name} has no {old!r}"
    path.write_text(text.replace(old, new, 1))


def table(title: str, names: Mapping[str, str], measures: Sequence[Measure]) -> str:
    """Return passes as a table; `names` say what each is, and CPU seconds are compared with those of the floor."""
    (floor,) = (one.cpu_seconds for one in measures if one.name == FLOOR)
    lines = [f"{title}\n", "| pass | seconds | CPU seconds | to the floor | peak MiB | renders | drafts |"]
    lines += [f"|---|{'---:|' * 6}"]
    for one in measures:
        ratio = f"{one.cpu_seconds / floor:.2f}"
        figures = (one.seconds, one.cpu_seconds, ratio, one.peak_mib, one.renders, one.drafts)
        lines += [f"| {names[one.name]} | {' | '.join(map(str, figures))} |"]
    return "\n".join(lines)


def service(
    fleet: str = "./fleet.git", workers: int = 0, remembers: Remembers = lambda settings: None, config: str = "config"
) -> PassRunner:
    """Return a service that knows nothing yet of the world in this folder: `config`, its fleet and `cache`.

    `workers` are the processes that render, 0 for as many as there are cores; `remembers` gives what the last process
    has left.
    """
    relax_gc()
    settings = Settings.model_validate({
        "config": {"url": config}, "fleet": {"url": fleet}, "cache": str(Path("cache").absolute()),
        "rendering": {"workers": workers},
    })  # fmt: skip
    parts = build_services(settings, config)
    return PassRunner(parts.source, parts.remotes, parts.tools, build_push(settings), remembers(settings))


def measured(name: str, passes: PassRunner, *, profiled: bool) -> Measure:
    """Run a pass; CPU seconds count git's processes, too, and a profile goes to the standard error."""
    before, began = cpu_seconds(), time.perf_counter()
    with capture_logs():
        run_profiled(passes.run) if profiled else passes.run()
    seconds, cpu = time.perf_counter() - began, cpu_seconds() - before
    counts = {} if passes.summary.is_skipped else passes.summary.counts
    # Linux counts in KiB, macOS in bytes
    unit = 2**20 if sys.platform == "darwin" else 2**10
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit
    return Measure(
        name, round(seconds, 2), round(cpu, 2), round(peak), counts.get("renders", 0), counts.get("drafted", 0)
    )


def run_profiled(work: Callable[[], object]) -> None:
    """Run something, and write where it spent its time to the standard error."""
    profile = cProfile.Profile()
    profile.runcall(work)
    pstats.Stats(profile, stream=sys.stderr).sort_stats("tottime").print_stats(35)
    pstats.Stats(profile, stream=sys.stderr).sort_stats("cumtime").print_stats(60)
