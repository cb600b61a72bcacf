"""Cost of pull requests in a pass: 500 drafts at once, opened within a limit, then a pass without change.

    python benchmarks/requests.py                      500 clusters in 20 regions, 200 new requests an hour
    python benchmarks/requests.py --clusters 50 --json

The forge is an object in memory that answers immediately, so that the figures contain only our own cost. A real forge
needs a few tenths of a second per call; the table counts the calls. Each pass is a pass of a long-lived service, and
"restarted" is a pass of a new service over the same fleet. The clock is manual.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import click

PROJECT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(PROJECT))

from structlog.testing import capture_logs  # noqa: E402

from benchmarks.fleet_world import Sizes, build_world, change_a_region  # noqa: E402
from benchmarks.processes import cpu_seconds  # noqa: E402
from reconciler.bootstrap.publishers import build_push_publisher  # noqa: E402
from reconciler.bootstrap.services import build_services  # noqa: E402
from reconciler.catalog.files import CommitId  # noqa: E402
from reconciler.forge.port import MergeMethod, NewRequest, PullRequest, Verdict  # noqa: E402
from reconciler.forge.rate_limits import RateLimiter  # noqa: E402
from reconciler.git.mirror import Mirror  # noqa: E402
from reconciler.reconcile.pass_runner import PassRunner  # noqa: E402
from reconciler.reconcile.pull_requests.open_requests import ForgeLookup, PullRequestCache  # noqa: E402
from reconciler.reconcile.pull_requests.request_updates import PullRequestOptions  # noqa: E402
from reconciler.reconcile.pull_requests.synchronizer import PullRequests  # noqa: E402
from reconciler.reconcile.remotes.scheduling import Backoff  # noqa: E402
from reconciler.settings import Settings  # noqa: E402

HOUR = 3_600


@dataclass
class Clock:
    """Seconds since 1970. The benchmark changes the time."""

    now: float = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


class MemoryForge:
    """A forge in memory. The heads of its pull requests are the branches of a bare repository."""

    def __init__(self, bare: Path, budget: RateLimiter) -> None:
        self._mirror = Mirror.open(bare.parent / "forge", str(bare))
        self._open: dict[int, PullRequest] = {}
        self.budget = budget
        self.calls: Counter[str] = Counter()

    def list_open_requests(self) -> Sequence[PullRequest]:
        self.calls["list"] += 1
        self._mirror.fetch("target")
        refs = self._mirror.refs()
        known = {
            number: replace(pull_request, commit=refs[f"refs/heads/{pull_request.head}"])
            for number, pull_request in self._open.items()
        }
        return [pull_request for _, pull_request in sorted(known.items())]

    def get_request(self, number: int) -> PullRequest:
        self.calls["read"] += 1
        return self._open[number]

    def find(self, head: str, base: str) -> PullRequest | None:
        self.calls["find"] += 1
        return next(
            (
                pull_request
                for pull_request in self._open.values()
                if (pull_request.head, pull_request.base) == (head, base)
            ),
            None,
        )

    def create(self, new: NewRequest) -> PullRequest:
        self.budget.count_new_request()
        self.calls["create"] += 1
        number = len(self._open) + 1
        self._open[number] = PullRequest(
            number, f"https://forge/{number}", new.title, new.body, new.head, new.base, CommitId(""), draft=new.draft
        )
        return self._open[number]

    def update(self, request: PullRequest, title: str, body: str) -> PullRequest:
        self.calls["update"] += 1
        self._open[request.number] = replace(request, title=title, body=body)
        return self._open[request.number]

    def set_draft(self, request: PullRequest, draft: bool) -> None:
        self.calls["draft"] += 1
        self._open[request.number] = replace(request, draft=draft)

    def close(self, request: PullRequest) -> None:
        self.calls["close"] += 1
        del self._open[request.number]

    def set_check(self, commit: CommitId, verdict: Verdict) -> None:
        self.calls["check"] += 1

    def merge(self, request: PullRequest, method: MergeMethod, message: str) -> None:
        raise NotImplementedError("nothing is merged here")


@dataclass(frozen=True)
class Measure:
    """One pass: wall-clock seconds, CPU seconds including Git, calls, and the number of open pull requests."""

    name: str
    seconds: float
    cpu_seconds: float
    renders: int
    calls: dict[str, int]
    open: int


@click.command()
@click.option("--clusters", default=500, show_default=True)
@click.option("--regions", default=20, show_default=True)
@click.option("--new-per-hour", default=200, show_default=True)
@click.option("--json", "as_json", is_flag=True, help="Figures as data.")
def main(clusters: int, regions: int, new_per_hour: int, as_json: bool) -> None:
    """Build a fleet on a forge and measure its passes."""
    with tempfile.TemporaryDirectory(prefix="requests-") as temporary:
        folder = Path(temporary) / "world"
        build_world(folder, Sizes(clusters, regions, 10, 1))
        measures = list(_measures(folder, new_per_hour))
    click.echo(json.dumps([asdict(measure) for measure in measures], indent=2) if as_json else _table(measures))


def _measures(folder: Path, new_per_hour: int) -> Iterator[Measure]:
    os.chdir(folder)
    clock = Clock()
    forge = MemoryForge(folder / "fleet-0.git", RateLimiter(0, new_per_hour, clock))
    passes = _service(forge, clock)
    yield _measure("first", passes, forge)
    while forge.calls["create"]:
        clock.now += HOUR
        yield _measure("an hour later", passes, forge)
    yield _measure("no change", passes, forge)
    change_a_region(folder)
    yield _measure("one region changed", passes, forge)
    yield _measure("restarted", _service(forge, clock), forge)


def _service(forge: MemoryForge, clock: Clock) -> PassRunner:
    settings = Settings.model_validate(
        {"config": {"url": "config"}, "fleet": {"url": "./fleet-0.git"}, "cache": str(Path("cache").absolute())}
    )
    parts = build_services(settings, "config", clock=clock)

    def forge_of(url: str) -> MemoryForge | None:
        return forge if "fleet" in url else None

    board = PullRequestCache(
        ForgeLookup(forge_of, lambda url: "memory" if forge_of(url) else None), Backoff(5, 900, clock)
    )
    requests = PullRequests(board, PullRequestOptions(), Backoff(5, 900, clock), lambda repo, commit: "")
    return PassRunner(
        parts.source,
        parts.remotes,
        replace(parts.pass_services, pull_requests=requests),
        build_push_publisher(settings),
    )


def _measure(name: str, passes: PassRunner, forge: MemoryForge) -> Measure:
    forge.calls.clear()
    before, began = cpu_seconds(), time.perf_counter()
    with capture_logs():
        passes.run()
    seconds, cpu = time.perf_counter() - began, cpu_seconds() - before
    renders = passes.summary.counts.get("renders", 0) if not passes.summary.is_skipped else 0
    return Measure(name, round(seconds, 2), round(cpu, 2), renders, dict(forge.calls), len(forge._open))


def _table(measures: Sequence[Measure]) -> str:
    lines = [
        "| pass | seconds | CPU seconds | renders | calls to the forge | requests open |",
        "|---|---:|---:|---:|---|---:|",
    ]
    for measure in measures:
        calls = ", ".join(f"{count} {name}" for name, count in sorted(measure.calls.items()))
        lines.append(
            f"| {measure.name} | {measure.seconds} | {measure.cpu_seconds} | {measure.renders} | {calls}"
            f" | {measure.open} |"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
