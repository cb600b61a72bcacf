"""The server on a Unix socket: its file, its clients, and a proxy that connects through it."""

from __future__ import annotations

import socket
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.types import ASGIApp, Receive, Scope, Send
from structlog.testing import capture_logs

from reconciler.bootstrap.console_authentication import SignInState, build_authenticator
from reconciler.bootstrap.server import ServiceServer
from reconciler.review.permissions import ADMIN_PERMISSIONS
from reconciler.server.address import ListenError, get_socket_path
from reconciler.server.health_client import ServiceHealth, build_own_url, request_health
from reconciler.server.http_server import HttpServer
from reconciler.server.limits import ServerLimits
from reconciler.server.request_origin import OriginCheck, build_origin_rules
from reconciler.service.fleet_view import FleetView, PassRecord
from reconciler.service.state import ServiceState
from reconciler.settings import Settings, SettingsError
from reconciler.settings.server import ServerSettings
from tests.support.console import ConsoleClient, open_console, use_authentication
from tests.support.http_connection import TIMEOUT_SECONDS, RawResponse, build_request, parse, read_to_end
from tests.support.prepared_worlds import begin, drafted

SECRET = "proxy-secret-1"
IDENTITY = {
    "x_proxy_secret": SECRET, "x_forwarded_user": "u-17", "x_forwarded_preferred_username": "Ana Silva",
    "x_forwarded_email": "ana@example.com", "x_forwarded_groups": "engineering",
}  # fmt: skip


@pytest.fixture
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    # The path of a socket has at most 107 bytes.
    return tmp_path_factory.mktemp("s") / "http.sock"


@pytest.fixture(scope="module")
def console(tmp_path_factory: pytest.TempPathFactory) -> ConsoleClient:
    """A console that a proxy protects. Its settings contain no network of a proxy."""
    folder = tmp_path_factory.mktemp("fleet")
    client = open_console(begin(folder / "world", drafted))
    client.update()
    (folder / "secret").write_text(f"{SECRET}\n")
    roles = [{"role": "viewer", "groups": ["engineering"]}]
    use_authentication(client, auth=["proxy"], proxy={"secret_file": str(folder / "secret")}, roles=roles)
    return client


@pytest.fixture
def server(path: Path, console: ConsoleClient) -> Iterator[ServiceServer]:
    with capture_logs(), ServiceServer(ServiceState(), lambda: None) as created:
        created.apply(build_settings(path), console.context)
        yield created


def build_settings(path: Path) -> Settings:
    return Settings(server=ServerSettings(listen=f"unix:{path}"))


def send(path: Path, request: bytes) -> RawResponse:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(TIMEOUT_SECONDS)
        connection.connect(str(path))
        connection.sendall(request)
        return parse(read_to_end(connection))


@pytest.mark.usefixtures("server")
@pytest.mark.parametrize(
    ("changed", "status"),
    [
        pytest.param({}, 200, id="identity"),
        pytest.param({"x_forwarded_for": "203.0.113.9"}, 200, id="client-address"),
        pytest.param({"x_proxy_secret": "other"}, 401, id="wrong-secret"),
        pytest.param({"x_forwarded_user": ""}, 401, id="no-person"),
        pytest.param({"host": "attacker.example.com"}, 421, id="other-host"),
    ],
)
def test_a_proxy_identifies_people_through_the_socket(changed: dict[str, str], status: int, path: Path) -> None:
    headers = {"host": "localhost", **IDENTITY, **changed}

    assert send(path, build_request(path="/api/v1/targets", **headers)).status == status


def test_the_same_headers_through_tcp_identify_nobody(console: ConsoleClient) -> None:
    settings = Settings(server=ServerSettings(listen="127.0.0.1:0"))
    with capture_logs(), ServiceServer(ServiceState(), lambda: None) as server:
        server.apply(settings, console.context)
        with socket.create_connection(("127.0.0.1", server.port), TIMEOUT_SECONDS) as connection:
            connection.sendall(build_request(path="/api/v1/targets", **IDENTITY))
            response = parse(read_to_end(connection))

    assert response.status == 401


class RecordingApp:
    """Records the client and the scheme of each request."""

    def __init__(self) -> None:
        self.seen: list[tuple[object, str]] = []

    async def __call__(self, scope: Scope, _receive: Receive, send: Send) -> None:
        self.seen.append((scope["client"], scope["scheme"]))
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body"})


def test_the_client_address_is_the_last_address_that_the_proxy_added(path: Path) -> None:
    listen, recorded = f"unix:{path}", RecordingApp()
    app: ASGIApp = OriginCheck(recorded, lambda: build_origin_rules(listen, (), "", ("10.0.0.0/8",)))
    forwarded = {"x_forwarded_for": "198.51.100.7, 203.0.113.9, 10.1.1.1", "x_forwarded_proto": "https"}
    with capture_logs(), HttpServer(app, ServerLimits()) as server:
        server.listen(listen)
        send(path, build_request(host="localhost", **forwarded))
        send(path, build_request(host="localhost"))

    assert recorded.seen == [(("203.0.113.9", 0), "https"), (None, "http")]


@pytest.mark.usefixtures("server")
def test_only_the_user_and_the_group_of_the_service_can_connect(path: Path) -> None:
    assert stat.S_IMODE(path.stat().st_mode) == 0o660
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_the_file_is_deleted_at_the_end_and_with_another_address(path: Path) -> None:
    other = path.with_name("other.sock")
    with capture_logs(), ServiceServer(ServiceState(), lambda: None) as server:
        server.apply(build_settings(path))
        server.apply(build_settings(path))
        first = [path.exists(), other.exists()]
        server.apply(build_settings(other))
        second = [path.exists(), other.exists()]

    assert (first, second, other.exists()) == ([True, False], [False, True], False)


def test_the_file_of_a_process_that_has_crashed_is_replaced(path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as crashed:
        crashed.bind(str(path))
    with capture_logs(), ServiceServer(ServiceState(), lambda: None) as server:
        server.apply(build_settings(path))
        response = send(path, build_request(path="/healthz"))

    assert response.status == 200


def test_a_socket_that_another_process_uses_is_not_replaced(path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as other:
        other.bind(str(path))
        other.listen()
        with (
            capture_logs(),
            ServiceServer(ServiceState(), lambda: None) as server,
            pytest.raises(SettingsError, match=r"server\.listen: must be a free socket, and another process listens"),
        ):
            server.apply(build_settings(path))

    assert path.exists()


def test_another_file_is_not_replaced(path: Path) -> None:
    path.write_text("data")
    with (
        capture_logs(),
        ServiceServer(ServiceState(), lambda: None) as server,
        pytest.raises(SettingsError, match="is another file; delete it or use another path"),
    ):
        server.apply(build_settings(path))

    assert path.read_text() == "data"


@pytest.mark.parametrize(
    "name", [pytest.param("missing/a.sock", id="no-folder"), pytest.param("a" * 120, id="too-long")]
)
def test_a_path_that_cannot_be_used_is_an_error(name: str, path: Path) -> None:
    with HttpServer(RecordingApp(), ServerLimits()) as server, pytest.raises(ListenError, match="must be the path of"):
        server.listen(f"unix:{path.parent / name}")


def test_a_tcp_socket_of_systemd_is_not_used_as_a_unix_socket() -> None:
    with socket.socket() as activated:
        server = HttpServer(RecordingApp(), ServerLimits(), activated)
        with pytest.raises(ListenError, match="systemd passes a TCP socket"):
            server.listen("unix:/run/http.sock")


def test_a_unix_socket_of_systemd_serves_a_proxy_and_keeps_its_file(
    path: Path, console: ConsoleClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    with capture_logs(), socket.socket(socket.AF_UNIX) as activated:
        activated.bind(str(path))
        activated.listen()
        monkeypatch.setattr("reconciler.bootstrap.server.take_activated_socket", lambda _environment: activated)
        with ServiceServer(ServiceState(), lambda: None) as server:
            server.apply(build_settings(path), console.context)
            first = send(path, build_request(path="/api/v1/targets", host="localhost", **IDENTITY))
            with pytest.raises(SettingsError, match=r'server\.listen: must be "unix:.*", because the socket unit'):
                server.apply(Settings(), console.context)
            server.apply(Settings(server=ServerSettings(listen="")))
            disabled = path.exists()
            server.apply(build_settings(path), console.context)
            second = send(path, build_request(path="/healthz"))

    assert (first.status, disabled, second.status, path.exists()) == (200, True, 200, True)


@pytest.mark.parametrize("text", ["unix:", "unix:relative.sock", "unix:/folder/", "unix:/a\0b"])
def test_invalid_paths(text: str) -> None:
    with pytest.raises(ValueError, match="must contain the absolute path of a socket"):
        get_socket_path(text)


def test_a_unix_socket_has_no_tls() -> None:
    with pytest.raises(ValueError, match="must not contain `tls`, because `listen` is a Unix socket"):
        ServerSettings.model_validate({"listen": "unix:/a.sock", "tls": {"cert_file": "a", "key_file": "b"}})


@pytest.mark.parametrize(
    "group",
    [pytest.param({"auth": ["none"]}, id="none"), pytest.param({"auth": ["proxy"], "proxy": {}}, id="proxy")],
)
def test_these_modes_are_possible_on_a_socket_only(group: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "secret").write_text(SECRET)
    if "proxy" in group:
        group = {**group, "proxy": {"secret_file": str(tmp_path / "secret")}}
    settings, other = (
        Settings.model_validate({"console": group, "server": {"listen": listen}})
        for listen in ("unix:/run/http.sock", "192.0.2.1:8080")
    )

    build_authenticator(settings, lambda _person: ADMIN_PERMISSIONS, SignInState())
    with pytest.raises(SettingsError, match="Unix socket"):
        build_authenticator(other, lambda _person: ADMIN_PERMISSIONS, SignInState())


def test_the_health_client_uses_the_socket(path: Path) -> None:
    state = ServiceState()
    state.record_completed_pass(FleetView(1, state.clock(), PassRecord(0, 0, "success"), "c0ffee"))
    settings = build_settings(path)
    with capture_logs(), ServiceServer(state, lambda: None) as server:
        server.apply(settings)
        health = request_health(build_own_url(settings.listen_address, has_tls=False))

    assert health == ServiceHealth("ready")
