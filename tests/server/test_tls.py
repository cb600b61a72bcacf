"""TLS of the HTTP server: certificates, their replacement at run time, and slow handshakes."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from structlog.testing import capture_logs

from reconciler.server.application import create_app
from reconciler.server.health_client import NoResponseError, ServiceHealth, request_health
from reconciler.server.health_routes import create_health_routes
from reconciler.server.http_server import HttpServer
from reconciler.server.limits import ServerLimits
from reconciler.server.request_origin import OriginRules
from reconciler.server.tls import CertificateError, ServerCertificate
from reconciler.service.state import ServiceState
from tests.support.certificates import write_certificate
from tests.support.http_connection import build_request, connect, parse, read_to_end, send

LIMITS = ServerLimits(header_seconds=0.2)


async def answer(request: Request) -> Response:
    return PlainTextResponse(request.url.scheme)


@contextmanager
def create_server() -> Iterator[HttpServer]:
    rules = OriginRules(frozenset({"127.0.0.1"}))
    routes = [Route("/", answer), *create_health_routes(ServiceState(), lambda: rules)]
    with capture_logs(), HttpServer(create_app(routes, LIMITS, lambda: rules), LIMITS) as server:
        yield server


def connect_with_tls(port: int) -> ssl.SSLSocket:
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context.wrap_socket(connect(port))


def read_certificate(port: int) -> str:
    with connect_with_tls(port) as connection:
        certificate = connection.getpeercert(binary_form=True)
    assert certificate is not None
    return ssl.DER_cert_to_PEM_cert(certificate)


def test_requests_use_tls(tmp_path: Path) -> None:
    files = write_certificate(tmp_path, "server")
    with create_server() as server:
        server.listen("127.0.0.1:0", files)
        with connect_with_tls(server.port) as connection:
            connection.sendall(build_request())
            response = parse(read_to_end(connection))
        certificate = read_certificate(server.port)

    assert response.body == b"https"
    assert certificate == files[0].read_text()


@pytest.mark.emits("certificate_reloaded", "certificate_unreadable")
def test_changed_certificate_applies_to_new_connections(tmp_path: Path) -> None:
    files, others = write_certificate(tmp_path, "server"), write_certificate(tmp_path, "other")
    with create_server() as server, capture_logs() as log_events:
        server.listen("127.0.0.1:0", files)
        certificate = server._listener.certificate if server._listener else None
        assert certificate is not None
        first = read_certificate(server.port)
        # The certificate has changed, and its key not yet.
        files[0].write_bytes(others[0].read_bytes())
        asyncio.run(certificate.reload_if_changed())
        asyncio.run(certificate.reload_if_changed())
        between = read_certificate(server.port)
        files[1].write_bytes(others[1].read_bytes())
        asyncio.run(certificate.reload_if_changed())
        second = read_certificate(server.port)

    assert first == between
    assert second == others[0].read_text() != first
    assert [item["event"] for item in log_events[1:3]] == ["certificate_unreadable", "certificate_reloaded"]


def test_removed_certificate_stays_in_use(tmp_path: Path) -> None:
    files = write_certificate(tmp_path, "server")
    certificate = ServerCertificate(files)
    files[0].unlink()
    with capture_logs() as log_events:
        asyncio.run(certificate.reload_if_changed())

    assert [item["event"] for item in log_events] == ["certificate_unreadable"]
    assert "No such file or directory" in log_events[0]["message"]


def test_settings_can_switch_to_tls_without_another_port(tmp_path: Path) -> None:
    files = write_certificate(tmp_path, "server")
    with create_server() as server:
        server.listen("127.0.0.1:0")
        port = server.port
        plain = parse(send(port, build_request()))
        server.listen("127.0.0.1:0", files)
        certificate = read_certificate(server.port)

        assert server.port == port
    assert plain.body == b"http"
    assert certificate == files[0].read_text()


def test_slow_handshake_is_ended(tmp_path: Path) -> None:
    files = write_certificate(tmp_path, "server")
    with create_server() as server:
        server.listen("127.0.0.1:0", files)
        with connect(server.port) as connection:
            assert read_to_end(connection) == b""


def test_health_client_uses_tls(tmp_path: Path) -> None:
    files = write_certificate(tmp_path, "server")
    with create_server() as server:
        server.listen("127.0.0.1:0", files)
        url = f"https://127.0.0.1:{server.port}"
        health = request_health(url, should_verify=False)
        with pytest.raises(NoResponseError, match="certificate verify failed"):
            request_health(url)

    assert health == ServiceHealth("not ready", ("NoPassYet",))


@pytest.mark.parametrize("problem", ["no-certificate", "no-key", "other-key", "encrypted-key", "no-pem"])
def test_unusable_files_do_not_change_the_server(tmp_path: Path, problem: str) -> None:
    certificate, key = write_certificate(tmp_path, "server")
    match problem:
        case "no-certificate":
            certificate.unlink()
        case "no-key":
            key.unlink()
        case "other-key":
            key = write_certificate(tmp_path, "other")[1]
        case "encrypted-key":
            certificate, key = write_certificate(tmp_path, "encrypted", b"secret password")
        case "no-pem":
            certificate.write_text("no certificate")
    with create_server() as server:
        server.listen("127.0.0.1:0")
        with pytest.raises(CertificateError) as error:
            server.listen("127.0.0.1:0", (certificate, key))
        response = parse(send(server.port, build_request()))

    assert str(error.value).startswith(f"{certificate}, {key}: must be a certificate chain and its private key")
    assert response.body == b"http"
