"""Metrics are scraped from a real service while its first pass renders 1,000 packages."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

import pytest
from prometheus_client.parser import text_string_to_metric_families

from benchmarks.fleet_world import Sizes, build_world
from tests.support.daemon import start_program, wait_for_event
from tests.support.http_connection import get
from tests.support.programs import make_program

PACKAGES = 1_000
TIMEOUT_SECONDS = 120.0
# The number of series must not depend on the number of packages and targets.
MAX_SERIES = 2_500


@contextmanager
def start_service(world: Path) -> Iterator[subprocess.Popen[str]]:
    with start_program(world, "run", "config", "--fleet", "./fleet-0.git", "--cache", "cache") as service:
        try:
            yield service
        finally:
            service.kill()


def scrape(port: int) -> str:
    response = get(port, "/metrics", TIMEOUT_SECONDS)
    assert response.status == 200
    return response.body.decode()


def read_values(exposition: str, name: str) -> dict[tuple[str, ...], float]:
    return {
        tuple(sample.labels.values()): sample.value
        for family in text_string_to_metric_families(exposition)
        for sample in family.samples
        if sample.name == name
    }


@pytest.mark.slow
def test_metrics_during_a_pass_with_many_packages(tmp_path: Path) -> None:
    world = tmp_path / "world"
    build_world(world, Sizes(clusters=PACKAGES, regions=5, files=5, repositories=1))
    (world / "reconciler.yaml").write_text("server: {listen: '127.0.0.1:0'}\nlog: {format: json}\n")
    scrapes: list[str] = []
    is_done = Event()
    with start_service(world) as service:
        port = int(str(wait_for_event(service, "server_started")["port"]))

        def scrape_until_done() -> None:
            while not is_done.wait(0.5):
                scrapes.append(scrape(port))

        scraper = Thread(target=scrape_until_done)
        scraper.start()
        try:
            completed = wait_for_event(service, "pass_completed")
        finally:
            is_done.set()
            scraper.join(TIMEOUT_SECONDS)
        last = scrape(port)
        service.send_signal(signal.SIGTERM)
        service.communicate(timeout=TIMEOUT_SECONDS)

    during = [text for text in scrapes if sum(read_values(text, "reconciler_pass_start_timestamp_seconds").values())]
    assert service.returncode == 0
    # The pass is partial if the rate limit of pushes postpones some drafts.
    assert completed["result"] in ("success", "partial")
    assert during
    assert read_values(last, "reconciler_packages")[("draft",)] == PACKAGES
    assert sum(not line.startswith("#") for line in last.splitlines()) < MAX_SERIES
    promtool = make_program("promtool")
    for text in (during[-1], last):
        check = promtool("check", "metrics", content=text)
        assert check.returncode == 0, check.stdout + check.stderr
