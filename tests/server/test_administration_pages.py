"""The page of the effective settings: values, origins, and the rights of people."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from reconciler.bootstrap.shown_settings import list_shown_settings
from reconciler.cli.options import read_settings
from reconciler.redaction import Secret
from reconciler.review.permissions import Permissions, Role, RoleRule
from reconciler.server.console.people import Session
from reconciler.settings import Settings, load_settings
from tests.support.console import ADA, ConsoleClient, sign_in, strip_tags

FILE = """
poll_seconds: 5
git:
  author: Fleet <fleet@example.com>
  credentials:
  - {url: git.example.com, read: {token_file: /run/token}}
notifications:
  channels:
  - {name: ops, kind: webhook, url: "https://example.com/hook?token=abc123", secret_file: /run/secret}
"""


def load(folder: Path, text: str = FILE, **environment: str) -> Settings:
    (folder / "reconciler.yaml").write_text(text)
    return load_settings(None, environment, folder)


@pytest.fixture
def console(drafted_console: ConsoleClient, tmp_path: Path) -> Iterator[ConsoleClient]:
    """A console with settings of a file and of the environment. A test can sign other people in."""
    context, settings = drafted_console.context, load(tmp_path, RECONCILER_GIT__TIMEOUT_SECONDS="7")
    drafted_console.context = replace(context, list_settings=partial(list_shown_settings, settings))
    yield drafted_console
    drafted_console.context = context


def find_settings(settings: Settings) -> dict[str, tuple[str, str, str]]:
    """Return the value, the origin and the source of each setting, by name."""
    return {shown.name: (shown.value, shown.origin, shown.source) for shown in list_shown_settings(settings)}


def test_each_setting_has_its_origin(tmp_path: Path) -> None:
    found = find_settings(load(tmp_path, RECONCILER_GIT__TIMEOUT_SECONDS="7", KPT_IMAGE_PREFIX="example.com"))
    file = f"{tmp_path}/reconciler.yaml"

    assert found["poll_seconds"] == ("5.0", "file", f"{file}:2")
    assert found["git.author"] == ('"Fleet <fleet@example.com>"', "file", f"{file}:4")
    assert found["git.timeout_seconds"] == ("7", "environment", "RECONCILER_GIT__TIMEOUT_SECONDS")
    assert found["functions.image_prefix"] == ('"example.com"', "environment", "KPT_IMAGE_PREFIX")
    assert found["log.level"] == ('"info"', "default", "")
    assert found["git.credentials"] == (
        '[{"url": "git.example.com", "read": {"token_file": "/run/token"}}]', "file", f"{file}:5"
    )  # fmt: skip
    assert {origin for _, origin, _ in find_settings(Settings()).values()} == {"default"}


def test_options_of_the_command_are_origins(tmp_path: Path) -> None:
    file = tmp_path / "settings.yaml"
    file.write_text("cache: /var/cache\nshard: 1/2\n")
    found = find_settings(read_settings(str(file), config="/config", cache="/tmp/cache"))

    assert found["cache"] == ('"/tmp/cache"', "option", "--cache")
    assert found["config.url"] == ('"/config"', "option", "CONFIG")
    assert found["shard"] == ('"1/2"', "file", f"{file}:2")


def test_credentials_are_masked(tmp_path: Path) -> None:
    secret = Secret("registered-secret-value")
    try:
        text = str(find_settings(load(tmp_path, FILE + "log: {level: debug}\ncache: /x/registered-secret-value\n")))
    finally:
        secret.unregister()

    assert "abc123" not in text
    assert "registered-secret-value" not in text
    assert "/run/secret" in text


@pytest.mark.parametrize(
    ("query", "texts", "absent"),
    [
        pytest.param("q=author", ["git.author", "Fleet <fleet@example.com>"], "poll_seconds", id="text"),
        pytest.param("origin=file", ["poll_seconds", "reconciler.yaml:2"], "log.level", id="file"),
        pytest.param(
            "origin=environment", ["7", "RECONCILER_GIT__TIMEOUT_SECONDS", "1 to 1 of 1 setting"], "git.author",
            id="environment",
        ),
        pytest.param("q=nothing-like-this&origin=default", ["No setting matches 2 filters"], "git.author", id="without-a-match"),
    ],
)  # fmt: skip
def test_the_page_shows_the_selected_settings(
    query: str, texts: list[str], absent: str, console: ConsoleClient
) -> None:
    text = strip_tags(console.get(f"/system/settings?{query}").text)

    assert [part for part in texts if part not in text] == []
    assert absent not in text


@pytest.mark.parametrize("role", ["viewer", "reviewer"])
@pytest.mark.parametrize("path", ["/system/settings", "/system/tokens"])
def test_only_an_admin_reads_settings_and_tokens(path: str, role: Role, console: ConsoleClient) -> None:
    sign_in(console, Session(ADA, Permissions((RoleRule(role),))))
    response = console.get(path)
    overview = console.get("/system").text

    assert response.status_code == 403
    assert "you need the role admin" in response.text
    assert "git.author" not in response.text
    assert path not in overview
