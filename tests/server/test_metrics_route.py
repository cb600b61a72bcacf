"""The path `/metrics`: its content, its format and its tokens."""

from __future__ import annotations

from collections.abc import Iterator
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from reconciler.bootstrap.server import ServiceServer
from reconciler.service.state import ServiceState
from reconciler.settings import Settings, SettingsError
from reconciler.settings.metrics import MetricsSettings
from reconciler.settings.server import ServerSettings
from reconciler.telemetry.metrics import REGISTRY, SHARD_INDEX

OPENMETRICS = "application/openmetrics-text; version=1.0.0"


@pytest.fixture
def server() -> Iterator[ServiceServer]:
    with capture_logs(), REGISTRY.export(), ServiceServer(ServiceState(), lambda: None) as created:
        yield created


def apply(server: ServiceServer, token_file: str = "") -> None:
    server.apply(Settings(server=ServerSettings(listen="127.0.0.1:0"), metrics=MetricsSettings(token_file=token_file)))


def request(server: ServiceServer, **headers: str) -> tuple[HTTPResponse, str]:
    connection = HTTPConnection("127.0.0.1", server.port, timeout=60)
    try:
        connection.request("GET", "/metrics", headers=headers)
        response = connection.getresponse()
        return response, response.read().decode()
    finally:
        connection.close()


@pytest.mark.parametrize(
    ("accept", "content_type", "last_line"),
    [
        pytest.param("*/*", "text/plain; version=0.0.4; charset=utf-8", "reconciler_shard_index 2.0", id="text"),
        pytest.param(OPENMETRICS, f"{OPENMETRICS}; charset=utf-8; escaping=underscores", "# EOF", id="openmetrics"),
    ],
)
def test_the_header_selects_the_format(server: ServiceServer, accept: str, content_type: str, last_line: str) -> None:
    apply(server)
    SHARD_INDEX.set(2)
    response, body = request(server, Accept=accept)

    assert (response.status, response.headers["content-type"]) == (200, content_type)
    assert {"reconciler_shard_index 2.0", last_line} <= set(body.splitlines())


@pytest.mark.parametrize(
    ("authorization", "status"),
    [
        pytest.param("Bearer second-token", 200, id="a-token-of-the-file"),
        pytest.param("bearer first-token", 200, id="scheme-in-lower-case"),
        pytest.param("Bearer first-token2", 401, id="another-token"),
        pytest.param("Bearer", 401, id="no-token"),
        pytest.param("Bearer ", 401, id="an-empty-token"),
        pytest.param("Basic first-token", 401, id="another-scheme"),
        pytest.param("", 401, id="no-header"),
    ],
)
def test_requests_need_a_token(server: ServiceServer, tmp_path: Path, authorization: str, status: int) -> None:
    (tmp_path / "tokens").write_text("first-token\n\nsecond-token\n")
    apply(server, str(tmp_path / "tokens"))
    response, body = request(server, Authorization=authorization)

    assert response.status == status
    assert ("reconciler_" in body, response.headers["www-authenticate"]) == (
        status == 200, None if status == 200 else "Bearer"
    )  # fmt: skip


@pytest.mark.emits("metrics_token_unreadable")
def test_a_new_token_is_valid_without_a_reload(server: ServiceServer, tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    file.write_text("old")
    apply(server, str(file))
    file.write_text("new")
    statuses = [request(server, Authorization=f"Bearer {token}")[0].status for token in ("old", "new")]
    file.unlink()
    with capture_logs() as events:
        statuses.append(request(server, Authorization="Bearer new")[0].status)

    assert statuses == [401, 200, 401]
    errors = [event["event"] for event in events if event["log_level"] == "error"]
    assert errors == ["metrics_token_unreadable"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param(None, "the secret file must be readable: No such file or directory", id="missing"),
        pytest.param(" \n", "must contain at least one secret, one per line", id="empty"),
    ],
)
def test_an_unusable_token_file_is_an_error_of_the_settings(
    server: ServiceServer, tmp_path: Path, content: str | None, message: str
) -> None:
    file = tmp_path / "tokens"
    if content is not None:
        file.write_text(content)

    with pytest.raises(SettingsError, match=f"metrics.token_file: {file}: {message}"):
        apply(server, str(file))
