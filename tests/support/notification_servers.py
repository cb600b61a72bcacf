"""A local HTTP server and a local mail server that record what channels send to them."""

from __future__ import annotations

import json
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage
from http.server import BaseHTTPRequestHandler
from threading import Event, Thread
from typing import Any

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult, Envelope, LoginPassword

from tests.support.http_servers import LocalServer


@dataclass(frozen=True)
class RecordedRequest:
    """One request: its path, headers with lower-case names, and body."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def data(self) -> Any:
        return json.loads(self.body)


@dataclass
class HttpRecorder:
    """The recorded requests of a server, and the responses that it sends next: status, headers and body.

    `arrived` is set after each request. If `hangs` has an event, the server responds only after this event.
    """

    port: int = 0
    requests: list[RecordedRequest] = field(default_factory=list)
    responses: list[tuple[int, dict[str, str], bytes]] = field(default_factory=list)
    arrived: Event = field(default_factory=Event)
    hangs: Event | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


@contextmanager
def http_server(tls: ssl.SSLContext | None = None) -> Iterator[HttpRecorder]:
    """Run an HTTP server on a free port, with TLS if there is a context."""
    recorder = HttpRecorder()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            recorder.requests.append(RecordedRequest(self.path, headers, body))
            recorder.arrived.set()
            if recorder.hangs:
                recorder.hangs.wait()
            status, more, content = recorder.responses.pop(0) if recorder.responses else (200, {}, b"ok")
            # A test can kill the client before the response.
            with suppress(BrokenPipeError, ConnectionResetError):
                self.send_response(status)
                for name, value in {**more, "Content-Length": str(len(content))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(content)

        def log_message(self, format: str, *_: object) -> None:  # noqa: A002  name of the base class
            """Log nothing."""

    server = LocalServer(Handler)
    recorder.port = server.server_port
    if tls:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield recorder
    finally:
        if recorder.hangs:
            recorder.hangs.set()
        server.shutdown()
        thread.join()
        server.server_close()


@dataclass
class MailRecorder:
    """The e-mails that a mail server received, and the logins."""

    port: int = 0
    mails: list[EmailMessage] = field(default_factory=list)
    recipients: list[list[str]] = field(default_factory=list)
    logins: list[tuple[bytes, bytes]] = field(default_factory=list)
    refusal: str = ""

    async def handle_DATA(self, _server: object, _session: object, envelope: Envelope) -> str:  # noqa: N802  name of aiosmtpd
        if self.refusal:
            return self.refusal
        assert isinstance(envelope.content, bytes)
        mail = message_from_bytes(envelope.content, policy=policy.default)
        assert isinstance(mail, EmailMessage)
        self.mails.append(mail)
        self.recipients.append([str(address) for address in envelope.rcpt_tos])
        return "250 OK"


class _FreePortController(Controller):
    """A controller whose server uses a free port."""

    def _trigger_server(self) -> None:
        self.port = self.server.sockets[0].getsockname()[1]
        if not self.ssl_context:
            super()._trigger_server()
            return
        # aiosmtpd uses the context of the server for its own client, which is an error.
        connection = socket.create_connection((self.hostname, self.port))
        with ssl._create_unverified_context().wrap_socket(connection) as encrypted:
            encrypted.recv(1)


@contextmanager
def mail_server(tls: ssl.SSLContext | None = None, *, has_implicit_tls: bool = False) -> Iterator[MailRecorder]:
    """Run a mail server on a free port. With a TLS context, it requires STARTTLS and the login ops/secret.

    With `has_implicit_tls`, connections use TLS from the start, and need no login.
    """
    recorder = MailRecorder()

    def log_in(_server: object, _session: object, _envelope: object, _mechanism: str, login: object) -> AuthResult:
        assert isinstance(login, LoginPassword)
        recorder.logins.append((login.login, login.password))
        return AuthResult(success=login.password == b"secret", handled=False)

    options: dict[str, Any] = {}
    if tls and has_implicit_tls:
        options = {"ssl_context": tls}
    elif tls:
        options = {"tls_context": tls, "require_starttls": True, "auth_required": True, "authenticator": log_in}
    controller = _FreePortController(recorder, hostname="127.0.0.1", port=0, **options)
    controller.start()
    recorder.port = controller.port
    try:
        yield recorder
    finally:
        controller.stop()
