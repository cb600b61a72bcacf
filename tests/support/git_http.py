"""A small web server around `git http-backend`, for logins, refusals and redirects."""

from __future__ import annotations

import base64
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from urllib.parse import unquote

from tests.support.git_environment import HERMETIC
from tests.support.http_servers import LocalServer


@dataclass
class GitHost:
    """Behavior of the server: accepted logins, and status or redirect of its responses.

    Requests with `held` in their path wait until the `gate` is opened. The server calls `observe` while the client of
    a request waits. `authorizations` contains the values of that header, "" for a request without it.
    `permissions` contains logins with "read" or "write" and replaces `login`. `uses` contains the Git service and the
    login of each request with a known login. The clock of the server is `seconds_ahead` of the clock of this machine.
    """

    root: Path
    login: str = ""
    permissions: dict[str, str] = field(default_factory=dict)
    uses: list[tuple[str, str]] = field(default_factory=list)
    seconds_ahead: int = 0
    status: int = 0
    redirect: str = ""
    port: int = 0
    held: str | None = None
    gate: threading.Event = field(default_factory=threading.Event)
    seen: list[str] = field(default_factory=list)
    taken: list[str] = field(default_factory=list)
    authorizations: list[str] = field(default_factory=list)
    observe: Callable[[], None] = field(default=lambda: None)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


@contextmanager
def serve(host: GitHost) -> Iterator[GitHost]:
    """Serve the bare repositories below `host.root` on a free local port."""

    class HostHandler(Handler):
        git_host = host

    with LocalServer(HostHandler) as server:
        host.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield host
        finally:
            server.shutdown()
            thread.join()


class Handler(BaseHTTPRequestHandler):
    git_host: GitHost

    def do_GET(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self._answer()

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002  name of the base class
        self.git_host.seen.append(format % arguments)

    def date_time_string(self, timestamp: float | None = None) -> str:
        return super().date_time_string((timestamp or time.time()) + self.git_host.seconds_ahead)

    def _answer(self) -> None:
        body = self._read_body()
        self.git_host.taken.append(self.path)
        self.git_host.authorizations.append(self.headers.get("Authorization", ""))
        self.git_host.observe()
        if self.git_host.held is not None and self.git_host.held in self.path:
            self.git_host.gate.wait()
        expected = "Basic " + base64.b64encode(self.git_host.login.encode()).decode()
        if self.git_host.status:
            self.send_error(self.git_host.status)
        elif self.git_host.redirect and self.path.startswith("/elsewhere.git"):
            self.send_response(301)
            self.send_header("Location", self.git_host.redirect + self.path.removeprefix("/elsewhere.git"))
            self.send_header("Content-Length", "0")
            self.end_headers()
        elif self.git_host.permissions:
            self._serve_with_permission(body)
        elif self.git_host.login and self.headers.get("Authorization") != expected:
            self._request_login()
        else:
            self.serve_repository(body)

    def _serve_with_permission(self, body: bytes) -> None:
        encoded = self.headers.get("Authorization", "").removeprefix("Basic ")
        login = base64.b64decode(encoded).decode()
        if login not in self.git_host.permissions:
            self._request_login()
            return
        service = "git-receive-pack" if "git-receive-pack" in self.path else "git-upload-pack"
        self.git_host.uses.append((service, login))
        if service == "git-receive-pack" and self.git_host.permissions[login] == "read":
            self.send_error(403)
        else:
            self.serve_repository(body)

    def _request_login(self) -> None:
        self.send_response(401)
        self.send_header("WWW-Authenticate", 'Basic realm="git"')
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _read_body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        chunks = []
        while size := int(self.rfile.readline(), 16):
            chunks.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(chunks)

    def serve_repository(self, body: bytes) -> None:
        """Answer a request with the output of `git http-backend`."""
        path, _, query = self.path.partition("?")
        environment = HERMETIC | {
            "GIT_PROJECT_ROOT": str(self.git_host.root),
            "GIT_HTTP_EXPORT_ALL": "1",
            "PATH_INFO": unquote(path),
            "QUERY_STRING": query,
            "REQUEST_METHOD": self.command,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "CONTENT_LENGTH": str(len(body)),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
            "HTTP_GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
            "REMOTE_USER": "tester",
            "REMOTE_ADDR": "127.0.0.1",
        }
        process = subprocess.run(["git", "http-backend"], env=environment, input=body, capture_output=True, check=True)
        head, _, content = process.stdout.partition(b"\r\n\r\n")
        fields = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
        self.send_response(int(fields.pop("Status", "200").split()[0]))
        for name, value in fields.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)
