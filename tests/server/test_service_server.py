"""The server of the service follows its settings, and settings that it cannot use change nothing."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from reconciler.bootstrap.server import ServiceServer
from reconciler.service.state import ServiceState
from reconciler.settings import Settings, SettingsError
from reconciler.settings.deprecations import list_deprecated_settings
from reconciler.settings.server import ServerSettings, TlsSettings
from reconciler.settings.webhooks import WebhookSettings
from reconciler.telemetry.metrics import REGISTRY
from tests.support.http_connection import SECRET, build_request, build_webhook, parse, send


class Service:
    """A server with the settings of a test. Port 0 selects any free port."""

    def __init__(self, folder: Path) -> None:
        self.secret_file = folder / "secrets"
        self.secret_file.write_bytes(SECRET)
        self.webhooks = 0
        self.server = ServiceServer(ServiceState(), self.count_webhook)

    def count_webhook(self) -> None:
        self.webhooks += 1

    def apply(self, listen: str = "127.0.0.1:0", secret_file: str | None = None) -> None:
        webhooks = WebhookSettings(secret_file=str(self.secret_file) if secret_file is None else secret_file)
        self.server.apply(Settings(server=ServerSettings(listen=listen), webhooks=webhooks))

    def post(self, body: bytes, secret: bytes = SECRET) -> int:
        return parse(send(self.server.port, build_webhook(body, secret=secret))).status


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    with capture_logs():
        created = Service(tmp_path)
        with created.server:
            yield created


def test_reload_keeps_the_address_and_the_known_webhooks(service: Service, tmp_path: Path) -> None:
    service.apply()
    port = service.server.port
    first = service.post(b"1")
    (tmp_path / "new").write_bytes(b"new\n" + SECRET)
    service.apply(secret_file=str(tmp_path / "new"))

    assert service.server.port == port
    assert [first, service.post(b"1"), service.post(b"2", b"new")] == [202, 200, 202]
    assert service.webhooks == 2


def test_reload_changes_the_allowed_hosts(service: Service) -> None:
    service.apply()
    request = build_request(host="console.example.com")
    before = parse(send(service.server.port, request)).status
    options = ServerSettings(listen="127.0.0.1:0", external_url="https://console.example.com")
    service.server.apply(Settings(server=options))

    assert (before, parse(send(service.server.port, request)).status) == (421, 404)


def test_metrics_are_served_in_the_requested_format(service: Service) -> None:
    service.apply()
    with REGISTRY.export():
        text, openmetrics = (
            parse(send(service.server.port, build_request(path="/metrics", accept=accept)))
            for accept in ("text/plain", "application/openmetrics-text")
        )

    assert "reconciler_build_info" in text.body.decode()
    assert text.headers["content-type"].startswith("text/plain")
    assert openmetrics.headers["content-type"].startswith("application/openmetrics-text")
    assert openmetrics.body.endswith(b"# EOF\n")


def test_removed_secret_file_ends_webhooks(service: Service) -> None:
    service.apply()
    service.apply(secret_file="")

    assert service.post(b"1") == 404


def test_unusable_settings_change_nothing(service: Service, tmp_path: Path) -> None:
    service.apply()
    with socket.create_server(("127.0.0.1", 0)) as other:
        address = f"127.0.0.1:{other.getsockname()[1]}"
        with pytest.raises(SettingsError) as used:
            service.apply(address, secret_file="")
    tls = TlsSettings(cert_file="none.pem", key_file="none.pem")
    with pytest.raises(SettingsError, match="must be a certificate chain"):
        service.server.apply(Settings(server=ServerSettings(listen="127.0.0.1:0", tls=tls)))
    with pytest.raises(SettingsError) as unreadable:
        service.apply("", str(tmp_path / "none"))

    assert str(used.value) == (
        f'server.listen: must be a free address of this machine, but is "{address}": Address already in use'
    )
    assert str(unreadable.value) == (
        f"webhooks.secret_file: {tmp_path}/none: the secret file must be readable: No such file or directory"
    )
    assert service.post(b"1") == 202


@pytest.mark.emits("server_not_started")
def test_used_default_address_is_a_warning(service: Service) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other, capture_logs() as log_events:
        address = f"127.0.0.1:{other.getsockname()[1]}"
        server = ServerSettings.model_construct(_fields_set=set(), listen=address)
        service.server.apply(Settings().model_copy(update={"server": server}))

    assert service.server.port == 0
    assert [(item["event"], item["log_level"]) for item in log_events] == [("server_not_started", "warning")]


def test_deprecated_address_is_used(service: Service) -> None:
    webhooks = WebhookSettings(listen="127.0.0.1:0", secret_file=str(service.secret_file))
    settings = Settings(server=ServerSettings(listen=""), webhooks=webhooks)
    service.server.apply(settings)

    assert service.post(b"1") == 202
    assert [*list_deprecated_settings(settings)] == [("webhooks.listen", "`server.listen`")]


@pytest.mark.parametrize(
    ("address", "modes", "is_allowed"),
    [
        pytest.param("127.0.0.1", ["none"], True, id="this-machine"),
        pytest.param("0.0.0.0", ["none"], False, id="all-machines"),
        pytest.param("0.0.0.0", ["tokens"], True, id="authentication"),
    ],
)
def test_a_console_without_authentication_is_not_served_to_other_machines(
    address: str, modes: list[str], is_allowed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    console: Any = object()
    settings = Settings.model_validate({
        "server": {"listen": "127.0.0.1:8080"},
        "console": {"enabled": True, "auth": modes, "token_file": "tokens"},
    })  # fmt: skip
    with socket.create_server((address, 0)) as activated:
        monkeypatch.setattr("reconciler.bootstrap.server.take_activated_socket", lambda _environment: activated)
        with ServiceServer(ServiceState(), lambda: None) as server:
            if is_allowed:
                server.apply(settings, console)
            else:
                with pytest.raises(SettingsError, match=r"socket unit must listen on an address .* but is \"0.0.0.0\""):
                    server.apply(settings, console)

            assert (server.port != 0) is is_allowed
