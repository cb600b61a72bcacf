"""Passes over a slow network: seconds, connections, requests, and the time that the requests need at least.

    python -m benchmarks latency                                          10 repositories, then 1,000
    python -m benchmarks latency --repositories 100 --delay 200           another fleet, with 200 ms per request
    python -m benchmarks latency --repositories 1000 --max-fetches 64     another value of the setting git.max_fetches

A Git host on this machine delays each request of the smart HTTP protocol. Each repository has one cluster. "minimum" is
the delay of all requests, divided by the number of fetches or pushes at the same time.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import click
from structlog.testing import capture_logs

PROJECT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(PROJECT))

from benchmarks.fleet_world import Sizes, build_world, change_a_region  # noqa: E402
from benchmarks.latency_world import SlowHost, Traffic, run_host  # noqa: E402
from benchmarks.processes import cpu_seconds  # noqa: E402
from reconciler.bootstrap.publishers import build_push_publisher  # noqa: E402
from reconciler.bootstrap.services import build_services  # noqa: E402
from reconciler.reconcile.pass_runner import PassRunner  # noqa: E402
from reconciler.settings import Settings  # noqa: E402

PASSES = ("first pass", "no change", "one changed package", "one commit of a person")
_FILES = 10


@dataclass(frozen=True)
class Measure:
    """One pass: elapsed seconds, CPU seconds of the daemon with its Git processes, and the traffic."""

    name: str
    seconds: float
    cpu_seconds: float
    traffic: Traffic


@click.command()
@click.option("--repositories", multiple=True, type=click.IntRange(min=8), help="Default: 10, then 1,000.")
@click.option("--delay", default=50, show_default=True, help="Milliseconds that the host waits before each response.")
@click.option("--max-fetches", default=8, show_default=True, help="The setting git.max_fetches, and also max_pushes.")
def main(repositories: Sequence[int], delay: int, max_fetches: int) -> None:
    """Run the passes of a service over each fleet, and print a table."""
    for count in repositories or (10, 1_000):
        with tempfile.TemporaryDirectory(prefix="latency-") as temporary:
            folder = Path(temporary).resolve()
            build_world(folder, Sizes(count, count, _FILES, count))
            with run_host(folder, delay / 1000) as host:
                _use_host(folder, host)
                measures = list(_run_passes(folder, host, max_fetches))
        click.echo(f"\n{count:,} repositories, {delay} ms per request, {max_fetches} fetches and pushes at a time\n")
        click.echo("\n".join(_format_table(measures, delay / 1000 / max_fetches)))


def _use_host(folder: Path, host: SlowHost) -> None:
    """Replace the paths of the repositories by addresses of the host."""
    for name in ("catalog.yaml", "clusters.yaml"):
        file = folder / "config" / name
        file.write_text(file.read_text().replace("repo: ./", f"repo: {host.url}/"))


def _run_passes(folder: Path, host: SlowHost, max_fetches: int) -> Iterator[Measure]:
    os.chdir(folder)
    settings = Settings.model_validate({
        "config": {"url": "config"}, "fleet": {"url": f"{host.url}/fleet-0.git"}, "cache": str(folder / "cache"),
        "git": {"max_fetches": max_fetches, "max_pushes": max_fetches, "allowed_urls": [f"{host.url}/"]},
    })  # fmt: skip
    parts = build_services(settings, "config")
    passes = PassRunner(parts.source, parts.remotes, parts.pass_services, build_push_publisher(settings))
    for name in PASSES:
        if name == "one changed package":
            change_a_region(folder)
        elif name == "one commit of a person":
            _commit_as_person(folder / "fleet-1.git")
        first_request, before, began = host.count_requests(), _read_cpu_seconds(host), time.perf_counter()
        with capture_logs():
            passes.run()
        seconds, cpu = time.perf_counter() - began, _read_cpu_seconds(host) - before
        yield Measure(name, seconds, cpu, host.read_traffic(first_request))


def _read_cpu_seconds(host: SlowHost) -> float:
    """Return the CPU seconds of this process and its Git processes, without those of the host."""
    return cpu_seconds() - cpu_seconds(host.pid)


def _commit_as_person(repository: Path) -> None:
    """Add a commit to the first draft branch of a repository."""
    branch = _run_git(repository, "for-each-ref", "--count=1", "--format=%(refname)", "refs/heads/drafts")
    identity = ("-c", "user.name=Ada", "-c", "user.email=ada@example.com")
    commit = _run_git(repository, *identity, "commit-tree", f"{branch}^{{tree}}", "-p", branch, "-m", "review")
    _run_git(repository, "update-ref", branch, commit)


def _run_git(repository: Path, *arguments: str) -> str:
    return subprocess.check_output(["git", *arguments], cwd=repository, text=True).strip()


def _format_table(measures: Sequence[Measure], seconds_per_request: float) -> Iterator[str]:
    yield "| pass | seconds | minimum | CPU seconds | connections | requests | requests by operation | wanted commits |"
    yield f"|---|{'---:|' * 5}---|---:|"
    for measure in measures:
        traffic = measure.traffic
        operations = ", ".join(f"{count:,} {name}" for name, count in sorted(traffic.operations.items()))
        figures = (
            f"{measure.seconds:.2f}", f"{traffic.requests * seconds_per_request:.2f}", f"{measure.cpu_seconds:.1f}",
            f"{traffic.connections:,}", f"{traffic.requests:,}", operations, f"{traffic.wanted:,}",
        )  # fmt: skip
        yield f"| {measure.name} | {' | '.join(figures)} |"
    versions = set().union(*(measure.traffic.versions for measure in measures))
    prefixes = set().union(*(measure.traffic.prefixes for measure in measures))
    yield f"\nProtocol of fetches: {json.dumps(sorted(versions))}. Ref prefixes of a list of refs: {sorted(prefixes)}."


if __name__ == "__main__":
    main()
