"""Tests of people without a role, and of the settings of roles in the service."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

import pytest

from reconciler.bootstrap.console import build_console
from reconciler.bootstrap.console_authentication import SignInState
from reconciler.review.permissions import Permissions
from reconciler.server.console.people import Session
from reconciler.service.state import ServiceState
from reconciler.settings import Settings
from tests.support.console import ADA, NO_CONTROLS, ConsoleClient, open_console, sign_in
from tests.support.git_repositories import read_refs
from tests.support.prepared_worlds import begin, drafted


@pytest.fixture
def console(tmp_path: Path) -> ConsoleClient:
    client = open_console(begin(tmp_path, drafted))
    client.update()
    client.context = replace(client.context, contact="platform@example.com")
    return client


@pytest.mark.quick_cases(every=5)
@pytest.mark.parametrize("path", ["/", "/changes", "/targets/berlin", "/system", "/search?q=berlin"])
def test_a_person_without_a_role_gets_a_page_without_data(path: str, console: ConsoleClient) -> None:
    sign_in(console, Session(ADA, Permissions(())))
    response = console.get(path)

    assert response.status_code == 403
    assert "Ada Example has no role" in response.text
    assert "platform@example.com" in response.text
    assert not [name for name in ("berlin", "lisbon", "gateway", "metrics") if name in response.text]


def test_a_person_without_a_role_changes_nothing(console: ConsoleClient) -> None:
    sign_in(console, Session(ADA, Permissions(())))
    before = read_refs(console.world.fleet)

    assert console.post("/system/pass", {}).status_code == 403
    assert console.post("/changes/confirm", {"verb": "approve"}).status_code == 403
    assert (console.requested_passes, read_refs(console.world.fleet)) == (0, before)


def test_the_api_refuses_a_person_without_a_role(console: ConsoleClient) -> None:
    sign_in(console, Session(ADA, Permissions(())))
    response = console.get("/api/v1/targets")

    assert response.status_code == 403
    assert (response.json()["code"], response.json()["nextStep"]) == ("NoRole", "platform@example.com")


def test_the_console_has_the_contact_of_the_settings_and_starts_no_thread(tmp_path: Path) -> None:
    group = {"enabled": True, "contact": "platform@example.com"}
    settings = Settings.model_validate({"cache": str(tmp_path), "console": group})
    before = set(threading.enumerate())
    console = build_console(settings, str(tmp_path), ServiceState(), NO_CONTROLS, SignInState())
    assert console is not None
    built = set(threading.enumerate()) - before
    console.start()
    console.start()
    started = {thread.name for thread in threading.enumerate() if thread not in before}
    console.close()

    assert console.context.contact == "platform@example.com"
    assert built == set()
    assert started == {"console-index", "console-review"}
    assert set(threading.enumerate()) <= before
