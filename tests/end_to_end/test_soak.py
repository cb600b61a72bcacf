"""Two services with different shards and a read-only standby run under kills, and no ref gets wrong content.

RECONCILER_SOAK_SECONDS sets the duration. The default is three minutes, and a nightly run uses one hour. The seed of
the random actions is in the output.
"""

from __future__ import annotations

import itertools
import os
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from benchmarks.fleet_world import Sizes, build_world
from tests.support.command_line import run_in
from tests.support.daemon import ENVIRONMENT, start_program
from tests.support.git_repositories import assert_sound, git, read_refs

SECONDS = float(os.environ.get("RECONCILER_SOAK_SECONDS", "180"))
TIMEOUT_SECONDS = 120.0
SIZES = Sizes(clusters=12, regions=3, files=4, repositories=1)
SERVICES = {
    "shard-1": ("--shard", "1/2"),
    "shard-2": ("--shard", "2/2"),
    "standby": ("--read-only",),
}
SETTINGS = "poll_seconds: 1\npoll_jitter_percent: 50\nserver: {listen: ''}\n"
FLEET = "fleet-0.git"


class Services:
    """The processes of one world. A process that was killed is started again by `keep_running`."""

    def __init__(self, world: Path) -> None:
        self.world = world
        self.processes: dict[str, subprocess.Popen[str]] = {}
        self.starts = 0

    def keep_running(self) -> None:
        """Start each process that does not run."""
        for name, options in SERVICES.items():
            process = self.processes.get(name)
            if process is None or process.poll() is not None:
                arguments = ("run", "config", "--fleet", f"./{FLEET}", "--cache", f"cache-{name}", *options)
                with (self.world / f"{name}.log").open("ab") as log:
                    self.processes[name] = start_program(self.world, *arguments, output=log)
                self.starts += 1

    def stop(self) -> dict[str, int]:
        """End all processes with TERM, and return their exit statuses."""
        for process in self.processes.values():
            process.send_signal(signal.SIGTERM)
        return {name: process.wait(TIMEOUT_SECONDS) for name, process in self.processes.items()}


@contextmanager
def run_services(world: Path) -> Iterator[Services]:
    services = Services(world)
    try:
        yield services
    finally:
        for process in services.processes.values():
            process.kill()
            process.wait()


def sync(world: Path) -> None:
    result = run_in(world, ENVIRONMENT, "sync", "config", "--fleet", f"./{FLEET}", "--cache", "cache-sync")
    assert result.returncode == 0, result.stdout + result.stderr


def change_config(world: Path, number: int) -> None:
    """Change a value that all packages use, or the value of one region."""
    if number % 3 == 0:
        file = world / "config" / "set.yaml"
        names = ("namespace: edge", "namespace: rim")
        old, new = names if names[0] in file.read_text() else names[::-1]
        file.write_text(file.read_text().replace(old, new))
    else:
        file = sorted((world / "config").rglob("*region*"))[number % SIZES.regions]
        kept = [line for line in file.read_text().splitlines() if not line.startswith("  soak:")]
        file.write_text("\n".join([*kept, f"  soak: step-{number}", ""]))


def read_contents(fleet: Path) -> dict[str, str]:
    """Return the tree of each cluster and draft branch without the status files, whose numbers depend on the order."""
    refs = [ref for ref in read_refs(fleet) if ref.startswith(("refs/heads/clusters/", "refs/heads/drafts/"))]
    lines = {ref: git(fleet, "ls-tree", "-r", ref).splitlines() for ref in refs}
    return {ref: "\n".join(line for line in lines[ref] if ".reconciler/" not in line) for ref in refs}


@pytest.mark.slow
@pytest.mark.timeout(SECONDS + 300)
def test_services_under_kills_leave_the_refs_of_one_undisturbed_sync(tmp_path: Path) -> None:
    world, undisturbed = tmp_path / "world", tmp_path / "undisturbed"
    build_world(world, SIZES)
    (world / "reconciler.yaml").write_text(SETTINGS)
    shutil.copytree(world, undisturbed)
    seed = random.SystemRandom().randrange(1_000_000)
    chance = random.Random(seed)
    print(f"seed {seed}")
    kills = 0
    with run_services(world) as services:
        end = time.monotonic() + SECONDS
        for number in itertools.count(1):
            services.keep_running()
            time.sleep(chance.uniform(0.2, 3))
            if time.monotonic() > end:
                break
            change_config(world, number)
            if chance.random() < 0.6:
                process = chance.choice([*services.processes.values()])
                process.send_signal(chance.choice((signal.SIGKILL, signal.SIGTERM)))
                # Wait, so that `keep_running` starts the process again, and no process gets a second TERM.
                process.wait(TIMEOUT_SECONDS)
                kills += 1
        statuses = services.stop()
    print(f"{number} changes, {kills} kills, {services.starts} starts")
    sync(world)
    after = read_refs(world / FLEET)
    sync(world)
    shutil.copytree(world / "config", undisturbed / "config", dirs_exist_ok=True)
    sync(undisturbed)

    assert set(statuses.values()) == {0}
    assert read_refs(world / FLEET) == after
    assert read_contents(world / FLEET) == read_contents(undisturbed / FLEET)
    assert read_refs(world / FLEET).keys() == read_refs(undisturbed / FLEET).keys()
    assert_sound(world / FLEET)


def test_a_read_only_service_changes_no_ref(tmp_path: Path) -> None:
    world = tmp_path / "world"
    build_world(world, SIZES)
    (world / "reconciler.yaml").write_text("server: {listen: '127.0.0.1:0'}\nlog: {format: json}\n")
    before = read_refs(world / FLEET)
    arguments = ("run", "config", "--fleet", f"./{FLEET}", "--read-only", "--cache", "cache")
    with start_program(world, *arguments) as service:
        assert service.stderr
        events = list(itertools.takewhile(lambda line: '"pass_completed"' not in line, service.stderr))
        service.send_signal(signal.SIGTERM)
        events += service.stderr.readlines()
        status = service.wait(TIMEOUT_SECONDS)

    assert status == 0
    assert not [line for line in events if "draft_pushed" in line]
    assert read_refs(world / FLEET) == before
