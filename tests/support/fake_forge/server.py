"""Serves the API of one product on loopback: HTTP requests, responses with ETags, and a log of calls."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any, Protocol
from urllib.parse import parse_qsl, urlsplit

from tests.support.fake_forge.core import FakeForge
from tests.support.http_servers import LocalServer


@dataclass(frozen=True)
class ApiRequest:
    """A request. The path is not decoded. Header names are in lower case."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes

    def has_json(self) -> bool:
        """Return whether the content type of the body is JSON."""
        return self.headers.get("content-type", "").partition(";")[0].strip() == "application/json"


@dataclass(frozen=True)
class Answer:
    """A response. `content` is sent as JSON; bytes are sent unchanged; None sends no body."""

    status: int
    content: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)


class Wire(Protocol):
    """The API of one product on top of a forge."""

    @property
    def forge(self) -> FakeForge: ...

    def answer(self, requests: ApiRequest) -> Answer:
        """Return the response of the product. Calls never run at the same time."""
        ...


@contextmanager
def serve(wire: Wire) -> Iterator[str]:
    """Serve a forge and yield its URL, such as `http://127.0.0.1:40123`. Errors of the server are raised at the end."""
    broken: list[BaseException] = []

    class Handler(_Handler):
        product_api = wire
        breaks = broken

    with LocalServer(Handler) as server:
        # A thread that waits on a keep-alive connection must not block the shutdown.
        server.daemon_threads, server.block_on_close = True, False
        wire.forge.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield wire.forge.url
        finally:
            server.shutdown()
            thread.join()
    if broken:
        raise AssertionError("the fake forge broke") from broken[0]


class _Handler(BaseHTTPRequestHandler):
    product_api: Wire
    breaks: list[BaseException]
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002  name of the base class
        """Write no log. The forge records the calls."""

    def _answer(self) -> None:
        path, query = urlsplit(self.path).path, dict(parse_qsl(urlsplit(self.path).query, keep_blank_values=True))
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        headers = {name.lower(): value for name, value in self.headers.items()}
        forge = self.product_api.forge
        with forge.lock:
            forge.calls.append((self.command, path))
            try:
                answer = self.product_api.answer(ApiRequest(self.command, path, query, headers, body))
            except Exception as error:  # noqa: BLE001  every error fails the test
                self.breaks.append(error)
                answer = Answer(500, {"message": "the fake is broken"})
        self._send(answer, headers.get("if-none-match"))

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _answer  # noqa: N815  the base class looks for these names

    def _send(self, answer: Answer, known: str | None) -> None:
        content = answer.content
        if not isinstance(content, bytes):
            content = b"" if content is None else json.dumps(content).encode()
        headers = {"Content-Type": "application/json; charset=utf-8"} | dict(answer.headers)
        status = answer.status
        if self.command == "GET" and status == 200:
            headers["ETag"] = f'W/"{hashlib.sha256(content).hexdigest()}"'
            if headers["ETag"] == known:
                status, content = 304, b""
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if status not in {204, 304}:
            self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)
