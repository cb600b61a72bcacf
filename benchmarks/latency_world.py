"""A Git host on this machine that delays each request, and writes one line per request to a log.

The host runs `git http-backend` in its own process, and keeps connections open as GitHub and GitLab do.
"""

from __future__ import annotations

import gzip
import itertools
import json
import multiprocessing
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from tests.support.git_http import GitHost, Handler
from tests.support.http_servers import LocalServer


@dataclass(frozen=True)
class Traffic:
    """The connections and requests of one pass.

    Attributes:
        operations: The number of requests by Git operation.
        versions: The versions of the Git protocol that the requests of fetches have.
        prefixes: The ref prefixes of each list of refs.
        wanted: The number of commits that the fetches requested.
    """

    connections: int
    operations: Counter[str]
    versions: set[str]
    prefixes: set[int]
    wanted: int

    @property
    def requests(self) -> int:
        """The number of all requests."""
        return self.operations.total()


@dataclass(frozen=True)
class SlowHost:
    """A running Git host: its address, its log and its process."""

    url: str
    log: Path
    pid: int

    def read_traffic(self, first_request: int) -> Traffic:
        """Return the traffic since the request with this number."""
        requests = [json.loads(line) for line in self.log.read_text().splitlines()[first_request:]]
        fetches = [request for request in requests if "receive-pack" not in request["operation"]]
        return Traffic(
            len({request["connection"] for request in requests}),
            Counter(request["operation"] for request in requests),
            {request["version"] for request in fetches},
            {request["prefixes"] for request in fetches if request["operation"] == "list refs"},
            sum(request["wanted"] for request in fetches),
        )

    def count_requests(self) -> int:
        """Return the number of requests so far."""
        return len(self.log.read_text().splitlines())


@contextmanager
def run_host(folder: Path, delay_seconds: float) -> Iterator[SlowHost]:
    """Serve the bare repositories of a folder, and delay each request."""
    log = folder / "requests.jsonl"
    log.touch()
    receiver, sender = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.Process(target=_serve, args=(folder, delay_seconds, log, sender), daemon=True)
    process.start()
    try:
        assert process.pid is not None
        yield SlowHost(f"http://127.0.0.1:{receiver.recv()}", log, process.pid)
    finally:
        process.terminate()
        process.join()


def _serve(folder: Path, delay_seconds: float, log: Path, sender: Connection) -> None:
    numbers = itertools.count()

    class DelayingHandler(Handler):
        git_host = GitHost(folder)
        protocol_version = "HTTP/1.1"

        def setup(self) -> None:
            super().setup()
            self.connection_number = next(numbers)

        def serve_repository(self, body: bytes) -> None:
            request = {"connection": self.connection_number, **_describe(self, body)}
            with log.open("a") as file:
                file.write(json.dumps(request) + "\n")
            time.sleep(delay_seconds)
            super().serve_repository(body)

    with LocalServer(DelayingHandler) as server:
        sender.send(server.server_address[1])
        server.serve_forever()


def _describe(handler: Handler, body: bytes) -> dict[str, Any]:
    if handler.headers.get("Content-Encoding") == "gzip":
        body = gzip.decompress(body)
    if handler.command == "GET":
        operation = f"capabilities, {handler.path.partition('service=git-')[2]}"
    elif b"command=ls-refs" in body:
        operation = "list refs"
    else:
        operation = "fetch" if handler.path.endswith("upload-pack") else "push, receive-pack"
    return {
        "operation": operation,
        "version": handler.headers.get("Git-Protocol", "version=0"),
        "prefixes": body.count(b"ref-prefix ") if operation == "list refs" else 0,
        "wanted": body.count(b"want ") if operation == "fetch" else 0,
    }
