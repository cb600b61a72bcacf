"""Cost of `explain`, `verify` and `why` in a large fleet: `python benchmarks/verify.py [--clusters N]`.

The config is a repository with some hundred commits between the two published versions of `why`. Each command is a
separate process with the cache of an earlier pass. The table also contains the start of the program, which is part of
each command, and a loop of ten million additions, which compares machines.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(PROJECT))

from structlog.testing import capture_logs  # noqa: E402

from benchmarks.fleet_world import Sizes, build_world, change_a_region  # noqa: E402
from reconciler.bootstrap.publishers import build_push_publisher  # noqa: E402
from reconciler.bootstrap.services import build_services  # noqa: E402
from reconciler.reconcile.reconcile_pass import run_pass  # noqa: E402
from reconciler.settings import Settings  # noqa: E402

COMMITS = 150
ASKED = "cluster-0007"
COMMANDS = {
    "the start of the program": ("explain", "--help"),
    "explain a value": ("explain", f"{ASKED}/gateway", "ConfigMap/endpoints", "/data/auth"),
    "explain a package": ("explain", f"{ASKED}/gateway"),
    "explain a value as it was": (
        "explain",
        f"{ASKED}/gateway",
        "ConfigMap/endpoints",
        "/data/auth",
        "--at",
        f"clusters/{ASKED}",
    ),
    "verify one package": ("verify", f"{ASKED}/gateway"),
    "verify the fleet": ("verify",),
    "why": ("why", f"{ASKED}/gateway", "ConfigMap/endpoints", "/data/auth"),
}


def main() -> None:
    """Build the fleet, run the commands, and print their costs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clusters", type=int, default=1_000)
    clusters = parser.parse_args().clusters
    with tempfile.TemporaryDirectory(prefix="verify-") as temporary:
        folder = Path(temporary) / "world"
        folder.mkdir()
        _build(folder, clusters)
        began = time.perf_counter()
        sum(range(10_000_000))
        print(f"ten million additions: {time.perf_counter() - began:.2f} s")
        for name, arguments in COMMANDS.items():
            began, before = time.perf_counter(), _cpu_seconds()
            result = _run(folder, *arguments)
            seconds, cpu = time.perf_counter() - began, _cpu_seconds() - before
            print(f"{name}: {seconds:.1f} s, {cpu:.1f} s of CPU, ends with {result.splitlines()[-1].strip()!r}")


def _cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _build(folder: Path, clusters: int) -> None:
    build_world(folder, Sizes(clusters, 20, 8, 1))
    _git(folder, "init", "--quiet", "--initial-branch", "main")
    _commit(folder, "the config")
    _publish(folder)
    for number in range(COMMITS):
        _noise(folder, number)
    change_a_region(folder)
    _commit(folder, "another door")
    for number in range(COMMITS):
        _noise(folder, COMMITS + number)
    _publish(folder)


def _noise(folder: Path, number: int) -> None:
    (folder / "config" / "noise.yaml").write_text(
        f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: noise}}\ndata: {{a: '{number}'}}\n"
    )
    _commit(folder, f"noise {number}")


def _commit(folder: Path, message: str) -> None:
    _git(folder, "add", "--all")
    _git(folder, "commit", "--quiet", "-m", message)


def _git(folder: Path, *arguments: str) -> None:
    identity = ("-c", "user.name=Ada", "-c", "user.email=ada@example.com", "-c", "gc.auto=0")
    subprocess.run(["git", *identity, *arguments], cwd=folder / "config", check=True)


def _publish(folder: Path) -> None:
    """Run a pass, publish every draft, and run another pass."""
    _pass(folder)
    fleet = folder / "fleet-0.git"
    listed = ["git", "for-each-ref", "--format=%(refname) %(objectname)", "refs/heads/drafts"]
    refs = (line.split() for line in subprocess.check_output(listed, cwd=fleet, text=True).splitlines())
    moves = "".join(f"update {ref.replace('/drafts/', '/clusters/')} {commit}\n" for ref, commit in refs)
    subprocess.run(["git", "update-ref", "--stdin"], input=moves, cwd=fleet, text=True, check=True)
    _pass(folder)


def _pass(folder: Path) -> None:
    settings = Settings.model_validate({
        "fleet": {"url": str(folder / "fleet-0.git")}, "cache": str(folder / "cache"), "config": {"branch": "main"},
    })  # fmt: skip
    parts = build_services(settings, f"file://{folder / 'config'}")
    with parts.remotes as remotes, capture_logs():
        run_pass(parts.source, remotes, parts.pass_services, build_push_publisher(settings))


def _run(folder: Path, *arguments: str) -> str:
    places = ("--config", f"file://{folder / 'config'}", "--fleet", str(folder / "fleet-0.git"))
    command = [sys.executable, "-m", "reconciler", *arguments, *places, "--cache", str(folder / "cache")]
    return subprocess.check_output(command, env={**os.environ, "PYTHONPATH": str(PROJECT)}, text=True)


if __name__ == "__main__":
    main()
