"""Cost of the pages of the console: time, size and requests of each page, and passes with ten open browsers.

    python -m benchmarks console_pages                    100 clusters with 10 packages each, a tenth on drafts
    python -m benchmarks console_pages --size 1000x10     1,000 clusters; some minutes, most of them for passes

The fleet is the fleet "published" of `console.py`. The first request for each page is not measured, because the service
keeps some results until the next pass. "Uncached" is the time of this first request.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import click

PROJECT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(PROJECT))

from starlette.types import ASGIApp, Message, Receive, Scope, Send  # noqa: E402
from structlog.testing import capture_logs  # noqa: E402

from benchmarks.console import REGIONS, Passes  # noqa: E402
from benchmarks.fleet_world import Sizes, build_world, change_a_region  # noqa: E402
from benchmarks.passes import run_script  # noqa: E402
from benchmarks.report import publish_drafts, write_sets  # noqa: E402
from reconciler.bootstrap.console import build_console  # noqa: E402
from reconciler.bootstrap.console_authentication import SignInState  # noqa: E402
from reconciler.memory import relax_gc  # noqa: E402
from reconciler.output.fleet.model import FleetIndex  # noqa: E402
from reconciler.server.api.routes import create_api_routes  # noqa: E402
from reconciler.server.application import create_app  # noqa: E402
from reconciler.server.console.context import ConsoleContext  # noqa: E402
from reconciler.server.console.events import EVENTS_PATH  # noqa: E402
from reconciler.server.console.routes import create_console_routes  # noqa: E402
from reconciler.server.http_server import HttpServer  # noqa: E402
from reconciler.server.limits import ServerLimits  # noqa: E402
from reconciler.server.rate_limit import RateLimit  # noqa: E402
from reconciler.server.request_origin import build_origin_rules  # noqa: E402
from reconciler.service.controls import ServiceControls  # noqa: E402
from reconciler.service.state import ServiceState  # noqa: E402

ROUNDS, BROWSERS, PASS_PAIRS = 30, 10, 5
_API_REQUESTS = 1_000_000


@dataclass(frozen=True)
class PageMeasure:
    """The times of a page in milliseconds, its size in kB without and with compression, and its requests.

    Attributes:
        requests: The number of requests of a first visit, with static files and without the stream of events.
    """

    page: str
    uncached: float
    median: float
    p95: float
    cpu: float
    kilobytes: float
    compressed: float
    requests: int


@dataclass(frozen=True)
class PassMeasure:
    """The median CPU seconds of the thread of a pass, and of the threads of the server for the requests after it."""

    browsers: int
    pass_seconds: float
    server_seconds: float


@click.command()
@click.option("--size", default="100x10", show_default=True, help="Clusters, and packages on each cluster.")
@click.option("--json", "as_json", is_flag=True, help="Figures as data.")
@click.option("--inside", type=click.Path(path_type=Path), hidden=True)
def main(size: str, as_json: bool, inside: Path | None) -> None:
    """Build a fleet and measure its pages."""
    clusters, packages = map(int, size.split("x"))
    if inside:
        os.chdir(inside)
        click.echo(json.dumps(_measure(inside)))
        return
    with tempfile.TemporaryDirectory(prefix="console-") as temporary:
        world = Path(temporary) / "world"
        build_world(world, Sizes(clusters, REGIONS, 5, 1))
        write_sets(world, packages)
        data = run_script(__file__, ["--inside", str(world)])
    click.echo(json.dumps(data, indent=2) if as_json else _format(size, data))


def _format(size: str, data: Mapping[str, Any]) -> str:
    lines = [
        f"{size} packages\n",
        "| page | uncached ms | median ms | p95 ms | CPU ms | kB | kB compressed | requests |",
        f"|---|{'---:|' * 7}",
    ]
    for item in (PageMeasure(**item) for item in data["pages"]):
        times = " | ".join(f"{value:.1f}" for value in (item.uncached, item.median, item.p95, item.cpu))
        lines.append(f"| {item.page} | {times} | {item.kilobytes:.1f} | {item.compressed:.1f} | {item.requests} |")
    lines += [
        "",
        "| browsers | CPU seconds of the pass | CPU seconds of the server | added percent |",
        f"|{'---:|' * 4}",
    ]
    measures = [PassMeasure(**item) for item in data["passes"]]
    for entry in measures:
        percent = 100 * (entry.server_seconds - measures[0].server_seconds) / entry.pass_seconds
        figures = f"{entry.pass_seconds:.3f} | {entry.server_seconds:.3f} | {percent:.1f}"
        lines.append(f"| {entry.browsers} | {figures} |")
    return "\n".join(lines)


def _measure(world: Path) -> dict[str, Any]:
    relax_gc()
    passes = Passes()
    passes.run()
    publish_drafts(world)
    change_a_region(world)
    observed = passes.run()
    controls = ServiceControls(lambda: None, lambda: None, lambda _url: None)
    console = build_console(passes.settings, "config", ServiceState(), controls, SignInState())
    assert console is not None
    console.context.index_thread.build(observed)
    app = create_console_app(console.context)
    with capture_logs():
        pages = list(measure_pages(app, console.context))
        found = measure_passes(app, passes, console.context, world)
    console.close()
    return {"pages": [asdict(page) for page in pages], "passes": [asdict(item) for item in found]}


def create_console_app(context: ConsoleContext) -> ASGIApp:
    """Return the application of the service with the routes of the console."""
    rules = build_origin_rules("127.0.0.1:0", (), "", ())
    routes = [*create_api_routes(lambda: context, RateLimit(_API_REQUESTS)), *create_console_routes(lambda: context)]
    return create_app(routes, ServerLimits(), lambda: rules)


def list_paths(index: FleetIndex) -> dict[str, str]:
    """Return a path for each page."""
    change, target = index.changes[0], index.targets[0]
    package = target.packages[0].package
    label = quote(next(f"{name}={value}" for name, value in target.labels.items()))
    return {
        "fleet": "/",
        "inbox": "/changes",
        "inbox, filters": f"/changes?q=gateway&state=waiting&target={label}",
        "change": f"/changes/{change.key}",
        "targets of a change": f"/changes/{change.key}/targets",
        "targets": "/targets",
        "targets, filters": f"/targets?q=1&state=published&labels={label}",
        "matrix": "/targets?view=matrix",
        "target": f"/targets/{target.name}",
        "package": f"/targets/{target.name}/packages/{package}",
        "findings": "/findings",
        "activity": "/activity",
        "activity, filters": "/activity?q=gateway&target=1",
        "search, many results": "/search?q=gateway",
        "search, one result": f"/search?q={quote(f'{target.name} {package}')}",
        "API, changes": "/api/v1/changes",
        "API, targets": "/api/v1/targets?limit=500",
        "API, activity": "/api/v1/activity",
    }


def measure_pages(app: ASGIApp, context: ConsoleContext) -> Iterator[PageMeasure]:
    """Yield the measures of all pages."""
    index = context.index
    assert index is not None
    for page, path in list_paths(index).items():
        yield asyncio.run(_measure_page(app, page, path))


async def _measure_page(app: ASGIApp, page: str, path: str) -> PageMeasure:
    began = time.perf_counter()
    body = await _request(app, path)
    uncached = time.perf_counter() - began
    times, cpu = [], time.process_time()
    for _ in range(ROUNDS):
        began = time.perf_counter()
        compressed = await _request(app, path)
        times.append((time.perf_counter() - began) * 1_000)
    cpu = (time.process_time() - cpu) / ROUNDS
    body = gzip.decompress(compressed) if compressed.startswith(b"\x1f\x8b") else compressed
    files = set(re.findall(rb'(?:src|href)="(/static/[^"]*)"', body))
    p95 = sorted(times)[int(ROUNDS * 0.95)]
    figures = (uncached * 1_000, statistics.median(times), p95, cpu * 1_000, len(body) / 1_000, len(compressed) / 1_000)
    return PageMeasure(page, *(round(figure, 1) for figure in figures), 1 + len(files))


async def _request(app: ASGIApp, path: str) -> bytes:
    """Return the body of a response as the server sends it."""
    pieces: list[bytes] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Message) -> None:
        assert message.get("status", 200) == 200, (path, message)
        pieces.append(message.get("body", b""))

    place, _, query = path.partition("?")
    headers = [(b"host", b"127.0.0.1"), (b"accept-encoding", b"gzip")]
    scope = {
        "type": "http", "asgi": {"version": "3.0", "spec_version": "2.3"}, "http_version": "1.1", "method": "GET",
        "scheme": "http", "path": place, "raw_path": place.encode(), "query_string": query.encode(),
        "headers": headers, "client": ("127.0.0.1", 5), "server": ("127.0.0.1", 80), "root_path": "",
    }  # fmt: skip
    await app(scope, receive, send)
    return b"".join(pieces)


# Each thread is a browser: it has an open stream, and requests its page after each event. The first event is the
# current index, for which it requests the page before the measured pass.
_BROWSERS = """
import http.client, sys, threading, time
port, count = int(sys.argv[1]), int(sys.argv[2])
paths = ["/", "/changes", "/targets", "/activity", "/findings"]

def browse(number):
    stream = http.client.HTTPConnection("127.0.0.1", port)
    stream.request("GET", "/events")
    for line in stream.getresponse():
        if line.startswith(b"event:"):
            page = http.client.HTTPConnection("127.0.0.1", port)
            page.request("GET", paths[number % len(paths)], headers={"Accept-Encoding": "gzip"})
            page.getresponse().read()
            page.close()

for number in range(count):
    threading.Thread(target=browse, args=(number,), daemon=True).start()
time.sleep(1)
print("open", flush=True)
sys.stdin.read()
"""


@contextmanager
def _open_browsers(port: int, count: int) -> Iterator[None]:
    """Run a process with browsers, and wait until their streams are open."""
    command = [sys.executable, "-c", _BROWSERS, str(port), str(count)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield
        process.terminate()


class _CountedApp:
    """The application of the service, and the number of its completed pages."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self.completed = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app(scope, receive, send)
        self.completed += scope.get("path") != EVENTS_PATH


def measure_passes(app: ASGIApp, passes: Passes, context: ConsoleContext, world: Path) -> list[PassMeasure]:
    """Return the CPU time of passes after a change of one region. Passes with and without open browsers take turns.

    Open browsers delay a pass at most by the CPU time of the threads of the server, even if all their requests
    run during the pass. This limit does not depend on other load of the machine.
    """
    results: dict[int, list[tuple[float, float]]] = {0: [], BROWSERS: []}
    counted = _CountedApp(app)
    with HttpServer(counted, ServerLimits()) as server:
        server.listen("127.0.0.1:0")
        for number, count in enumerate((0, BROWSERS) * PASS_PAIRS):
            with _open_browsers(server.port, count):
                # The first event is the current index. Its pages are not measured.
                _wait_for_pages(counted, count)
                change_a_region(world, f"login-{number}")
                pages, before, began = counted.completed, _read_server_threads(), time.thread_time()
                observed = passes.run()
                seconds = time.thread_time() - began
                context.index_thread.build(observed)
                _wait_for_pages(counted, pages + count)
                after = _read_server_threads()
                server_seconds = sum(after[thread] - before.get(thread, 0.0) for thread in after)
                results[count].append((seconds, server_seconds))
                counted.completed = 0
    return [
        PassMeasure(count, *(round(statistics.median(values), 4) for values in zip(*found, strict=True)))
        for count, found in results.items()
    ]


def _wait_for_pages(app: _CountedApp, count: int) -> None:
    while app.completed < count:
        time.sleep(0.01)


def _read_server_threads() -> Mapping[int, float]:
    """Return the CPU seconds of each thread of the HTTP server."""
    return {
        thread.ident: time.clock_gettime(time.pthread_getcpuclockid(thread.ident))
        for thread in threading.enumerate()
        if thread.ident and (thread.name == "http-server" or thread.name.startswith("AnyIO worker"))
    }


if __name__ == "__main__":
    main()
