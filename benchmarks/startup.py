"""Start-up of commands: CPU time, imported modules and Git processes on the unchanged demo.

    python -m benchmarks startup              medians of seven runs
    python -m benchmarks startup --runs 21    more runs, on a machine with other load

The demo is created with `reconciler demo`, and then synced once. "without bytecode" is the time if Python compiles the
modules of reconciler at each start, for example after an editable installation with PYTHONDONTWRITEBYTECODE.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import click

PROJECT = Path(__file__).resolve().parents[1]
WITH_BYTECODE, WITHOUT_BYTECODE = "compiled", "source"
IGNORE_BYTECODE = shutil.ignore_patterns("__pycache__")
PLAN = ("plan", "config", "--fleet", "fleet.git")
COMMANDS: Mapping[str, Sequence[str]] = {
    "--version": ("--version",),
    "--help": ("--help",),
    "plan --help": ("plan", "--help"),
    "plan, no change": PLAN,
    "plan, empty cache": (*PLAN, "--cache", "empty-cache"),
}
# Writes the number of imported modules to a file, because the command uses the standard output.
COUNT_MODULES = """
import sys
from reconciler.__main__ import main
try:
    main()
finally:
    with open(sys.argv[0], "w") as file:
        print(len(sys.modules), sum(name.partition(".")[0] == "reconciler" for name in sys.modules), file=file)
"""


@dataclass(frozen=True)
class Measure:
    """The start-up of one command. CPU seconds include the processes of git."""

    command: str
    cpu_seconds: float
    cpu_seconds_without_bytecode: float
    modules: int
    own_modules: int
    git_processes: int


@click.command()
@click.option("--runs", default=7, show_default=True)
@click.option("--json", "as_json", is_flag=True, help="Figures as data.")
def main(runs: int, as_json: bool) -> None:
    """Measure the start-up of commands."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        demo = create_demo(folder)
        for source in (WITH_BYTECODE, WITHOUT_BYTECODE):
            shutil.copytree(PROJECT / "reconciler", folder / source / "reconciler", ignore=IGNORE_BYTECODE)
        python = measure_cpu(folder, [sys.executable, "-c", "pass"], runs)
        measures = [measure(folder, demo, title, arguments, runs) for title, arguments in COMMANDS.items()]
    if as_json:
        click.echo(json.dumps({"python": python, "commands": [asdict(item) for item in measures]}, indent=2))
        return
    click.echo(f"python -c pass: {python:.3f} CPU seconds\n")
    click.echo("| command | CPU seconds | without bytecode | modules | of reconciler | git processes |")
    click.echo("|---|---:|---:|---:|---:|---:|")
    for item in measures:
        times = f"{item.cpu_seconds:.3f} | {item.cpu_seconds_without_bytecode:.3f}"
        click.echo(f"| {item.command} | {times} | {item.modules} | {item.own_modules} | {item.git_processes} |")


def create_demo(folder: Path) -> Path:
    """Create the demo below a folder, and sync it once."""
    run_command(folder, folder, "demo", "demo")
    run_command(folder, folder / "demo", "sync", *PLAN[1:])
    return folder / "demo"


def measure(folder: Path, demo: Path, title: str, arguments: Sequence[str], runs: int) -> Measure:
    """Measure one command."""
    command = [sys.executable, "-m", "reconciler", *arguments]
    modules, own_modules, git_processes = count(folder, demo, arguments)
    return Measure(
        title,
        measure_cpu(folder, command, runs, demo, {"PYTHONPATH": str(folder / WITH_BYTECODE)}),
        measure_cpu(
            folder, command, runs, demo,
            {"PYTHONPATH": str(folder / WITHOUT_BYTECODE), "PYTHONDONTWRITEBYTECODE": "1"},
        ),
        modules, own_modules, git_processes,
    )  # fmt: skip


def measure_cpu(
    folder: Path, command: Sequence[str], runs: int, cwd: Path | None = None, environment: Mapping[str, str] = {}
) -> float:
    """Return the median of the user and system seconds of a command and its child processes."""
    seconds = []
    for _ in range(runs + 1):
        shutil.rmtree((cwd or folder) / "empty-cache", ignore_errors=True)
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        run_process(folder, cwd or folder, command, environment)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    # The first run writes bytecode and fills the caches of the operating system.
    return round(median(seconds[1:]), 3)


def count(folder: Path, demo: Path, arguments: Sequence[str]) -> tuple[int, int, int]:
    """Return the numbers of imported modules, of modules of this program, and of Git processes of a command."""
    shutil.rmtree(demo / "empty-cache", ignore_errors=True)
    programs, calls, script = folder / "programs", folder / "calls", folder / "count.py"
    programs.mkdir(exist_ok=True)
    calls.write_text("")
    wrapper = programs / "git"
    wrapper.write_text(f'#!/bin/sh\necho "$@" >> {calls}\nexec {shutil.which("git")} "$@"\n')
    wrapper.chmod(0o755)
    script.write_text(COUNT_MODULES.replace("sys.argv[0]", repr(str(folder / "modules"))))
    path = f"{programs}{os.pathsep}{os.environ['PATH']}"
    run_process(folder, demo, [sys.executable, str(script), *arguments], {"PATH": path})
    modules, own_modules = map(int, (folder / "modules").read_text().split())
    return modules, own_modules, len(calls.read_text().splitlines())


def run_command(folder: Path, cwd: Path, *arguments: str) -> None:
    """Run a command of the program."""
    run_process(folder, cwd, [sys.executable, "-m", "reconciler", *arguments])


def run_process(folder: Path, cwd: Path, command: Sequence[str], environment: Mapping[str, str] = {}) -> None:
    """Run a process with its own home folder. Fail if the process fails."""
    own = {"PYTHONPATH": str(PROJECT), "HOME": str(folder), "XDG_CACHE_HOME": str(folder / "cache")}
    own |= {"PYTHONPYCACHEPREFIX": "", "PYTHONDONTWRITEBYTECODE": ""}
    subprocess.run(command, cwd=cwd, env={**os.environ, **own, **environment}, stdout=subprocess.DEVNULL, check=True)


if __name__ == "__main__":
    main()
