"""Passes of a long-lived service over a world on disk, measured; the benchmarks of rules share it."""

from __future__ import annotations

import cProfile
import gc
import json
import os
import pstats
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from structlog.testing import capture_logs

from reconciler.__main__ import VALUES_BETWEEN_COLLECTIONS
from reconciler.daemon.passes import Passes
from reconciler.settings import Settings
from reconciler.wiring import build_parts, build_push

PROJECT = Path(__file__).resolve().parents[1]


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


def service() -> Passes:
    """Return a service that knows nothing yet of the world in this folder: `config`, `fleet.git` and `cache`."""
    gc.set_threshold(VALUES_BETWEEN_COLLECTIONS)
    settings = Settings.model_validate(
        {"config": {"url": "config"}, "fleet": {"url": "./fleet.git"}, "cache": str(Path("cache").absolute())}
    )
    parts = build_parts(settings, "config")
    return Passes(parts.source, parts.remotes, parts.tools, build_push(settings))


def measured(name: str, passes: Passes, *, profiled: bool) -> Measure:
    """Run a pass; CPU seconds count git's processes, too, and a profile goes to the standard error."""
    before, began = os.times(), time.perf_counter()
    with capture_logs():
        _profiled(passes.run) if profiled else passes.run()
    seconds, after = time.perf_counter() - began, os.times()
    cpu = sum(after[:4]) - sum(before[:4])
    counts = {} if passes.told.skipped else passes.told.counts
    # Linux counts in KiB, macOS in bytes
    unit = 2**20 if sys.platform == "darwin" else 2**10
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit
    return Measure(
        name, round(seconds, 2), round(cpu, 2), round(peak), counts.get("renders", 0), counts.get("drafted", 0)
    )


def _profiled(work: Callable[[], object]) -> None:
    profile = cProfile.Profile()
    profile.runcall(work)
    pstats.Stats(profile, stream=sys.stderr).sort_stats("tottime").print_stats(35)
    pstats.Stats(profile, stream=sys.stderr).sort_stats("cumtime").print_stats(60)
