"""`status --server --token-file` reads the fleet from the API of a running service."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner
from structlog.testing import capture_logs

from reconciler.cli.status import command
from reconciler.review.permissions import Permissions, RoleRule
from reconciler.server.api_client import ApiClient
from reconciler.server.console.people import Session
from reconciler.server.http_server import HttpServer
from reconciler.server.limits import ServerLimits
from tests.support.console import ADA, open_console
from tests.support.prepared_worlds import begin, published
from tests.support.world import variant

TOKEN = "rcr_token-of-a-program"


class TokenSession:
    def authenticate(self, request: object, *, extends_session: bool = True) -> Session | None:
        headers = getattr(request, "headers", {})
        is_known = headers.get("authorization") == f"Bearer {TOKEN}"
        return Session(ADA, Permissions((RoleRule("viewer"),)), mode="token") if is_known else None


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SimpleNamespace]:
    """A service with published packages and an object with an error."""
    folder = tmp_path_factory.mktemp("fleet")
    world = begin(folder, published)
    world.write({"broken.yaml": variant("broken", "berlin", "missing")})
    console = open_console(world)
    console.update()
    console.context = replace(console.context, authenticator=TokenSession())
    token_file = folder / "token"
    token_file.write_text(f"{TOKEN}\n")
    with capture_logs(), HttpServer(console.app, ServerLimits()) as http_server:
        http_server.listen("127.0.0.1:0")
        yield SimpleNamespace(url=f"http://127.0.0.1:{http_server.port}", token_file=token_file, folder=folder)


def run(*arguments: object) -> tuple[int | str | None, str]:
    result = CliRunner().invoke(command, [*map(str, arguments)], standalone_mode=False)
    return (str(result.exception) if result.exception else result.return_value), result.output


@pytest.mark.slow
def test_the_state_of_the_fleet(server: SimpleNamespace) -> None:
    status, text = run("--server", server.url, "--token-file", server.token_file)
    lines = text.splitlines()

    assert status == 1
    assert lines[0].startswith("last pass: 20")
    assert lines[1].startswith("2 targets; packages: 3 published; ")
    assert any(line.startswith("error      broken.yaml:") and "UpstreamNotFound" in line for line in lines[2:])


def test_the_json_data_of_the_fleet(server: SimpleNamespace) -> None:
    status, text = run("--server", server.url, "--token-file", server.token_file, "-o", "json")

    assert (status, json.loads(text)["kind"]) == (1, "Fleet")


@pytest.mark.parametrize(
    ("token", "message"),
    [
        pytest.param("wrong", "the request has no valid token. Send a token .* \\(status 401\\)", id="wrong-token"),
        pytest.param("", "must contain at least one secret", id="empty-file"),
    ],
)
def test_a_refused_token(token: str, message: str, server: SimpleNamespace, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(token)
    error, _ = run("--server", server.url, "--token-file", file)

    assert isinstance(error, str)
    assert re.search(message, error)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param(["--token-file", "f"], "requires --server", id="no-server"),
        pytest.param(["--token-file", "f", "--server", "http://a", "--tenant", "t"], "--tenant", id="tenant"),
    ],
)
def test_options_that_exclude_each_other(arguments: list[str], message: str) -> None:
    error, _ = run(*arguments)

    assert message in str(error)


@pytest.mark.parametrize("url", ["http://reconciler.example.com", "http://10.0.0.1:8080"])
def test_a_token_is_not_sent_without_encryption(url: str) -> None:
    with pytest.raises(ValueError, match="must start with https://"):
        ApiClient(url, TOKEN)


def test_a_client_does_not_show_its_token() -> None:
    assert TOKEN not in repr(ApiClient("https://reconciler.example.com", TOKEN))
