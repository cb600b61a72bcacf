"""Tests of the pages of the console: their content, their headers, and their state before the first pass."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.console import ConsoleClient, open_console
from tests.support.prepared_worlds import begin, drafted
from tests.support.world import World


@pytest.fixture
def world(tmp_path: Path) -> World:
    """All packages are drafted, and no package is published."""
    return begin(tmp_path, drafted)


@pytest.fixture
def console(world: World) -> ConsoleClient:
    client = open_console(world)
    client.update()
    return client


def test_the_first_page_lists_the_changes_that_wait(console: ConsoleClient) -> None:
    response = console.get("/")

    assert response.status_code == 200
    assert "2 targets · 3 packages" in response.text
    assert "install gateway v1" in response.text
    assert "No authentication" in response.text


def test_before_the_first_pass_a_page_shows_the_progress(world: World) -> None:
    response = open_console(world).get("/")

    assert response.status_code == 200
    assert "The first pass is not complete" in response.text


def test_every_response_has_the_security_headers(console: ConsoleClient) -> None:
    for path in ("/", "/static/console.css", "/static/missing.css"):
        headers = console.get(path).headers

        assert "default-src 'none'" in headers["content-security-policy"], path
        assert headers["x-content-type-options"] == "nosniff", path


@pytest.mark.parametrize("path", ["/static/..%2fpage.py", "/static/console.py", "/static/%2e%2e", "/static/a/b.css"])
def test_files_outside_the_static_folder_are_not_sent(path: str, console: ConsoleClient) -> None:
    assert console.get(path).status_code == 404
