"""Tests of the pages of the console: their content, their headers, and their state before the first pass."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from reconciler.review.permissions import Permissions, RoleRule
from reconciler.server.console.people import Session
from tests.support.console import ADA, ConsoleClient, open_console, sign_in
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


def test_the_first_page_lists_the_changes_that_wait(drafted_console: ConsoleClient) -> None:
    response = drafted_console.get("/")

    assert response.status_code == 200
    assert "2 targets · 3 packages" in response.text
    assert "install gateway v1" in response.text
    assert "No authentication" in response.text


def test_before_the_first_pass_a_page_shows_the_progress(world: World) -> None:
    response = open_console(world).get("/")

    assert response.status_code == 200
    assert "The first pass is not complete" in response.text


def test_before_the_first_pass_an_admin_can_start_a_pass_and_reload_the_settings(world: World) -> None:
    console = open_console(world)
    page = console.get("/changes").text
    responses = [console.post(path, {}) for path in ("/system/pass", "/system/reload")]
    refused = console.post("/system/pass", {"csrf": ""})
    sign_in(console, Session(ADA, Permissions((RoleRule("reviewer"),))))
    as_reviewer = console.post("/system/pass", {})

    assert 'action="/system/pass"' in page
    assert 'action="/system/reload"' in page
    assert [response.headers["location"] for response in responses] == ["/system", "/system"]
    assert (console.requested_passes, console.requested_reloads) == (1, 1)
    assert (refused.status_code, as_reviewer.status_code) == (403, 403)
    assert "/system/pass" not in console.get("/changes").text


def test_a_form_before_the_first_pass_leads_back_to_its_page(world: World, console: ConsoleClient) -> None:
    index = console.context.index
    assert index is not None
    form = {"verb": "reject", "change": index.changes[0].key}
    path = console.post("/changes/confirm", form).headers["location"]
    # After a restart, there is no index until the first pass is complete.
    restarted = open_console(world)
    restarted.context = replace(restarted.context, confirmations=console.context.confirmations)
    kept = restarted.post(f"{path}/submit", {"key": "1", "reason": "too early"})
    other = restarted.post("/changes/confirm", form, referer="http://127.0.0.1/changes?risk=high")
    restarted.update()

    assert f'href="{path}">Load again' in kept.text
    assert 'href="/changes?risk=high">Load again' in other.text
    assert "too early</textarea>" in restarted.get(path).text


def test_every_response_has_the_security_headers(drafted_console: ConsoleClient) -> None:
    for path in ("/", "/static/console.css", "/static/missing.css"):
        headers = drafted_console.get(path).headers

        assert "default-src 'none'" in headers["content-security-policy"], path
        assert headers["x-content-type-options"] == "nosniff", path


@pytest.mark.parametrize("path", ["/static/..%2fpage.py", "/static/console.py", "/static/%2e%2e", "/static/a/b.css"])
def test_files_outside_the_static_folder_are_not_sent(path: str, drafted_console: ConsoleClient) -> None:
    assert drafted_console.get(path).status_code == 404


@pytest.mark.parametrize(
    ("query", "titles"),
    [
        pytest.param("", {"install gateway v1", "install metrics v1"}, id="all"),
        pytest.param("?q=METRICS", {"install metrics v1"}, id="text"),
        pytest.param("?state=waiting&risk=low", {"install gateway v1", "install metrics v1"}, id="state-and-risk"),
        pytest.param("?state=proposed", set(), id="no-proposal"),
        pytest.param("?target=region%3Dsouth", {"install gateway v1"}, id="selector"),
        pytest.param("?sort=targets&page=99", {"install gateway v1", "install metrics v1"}, id="page-after-the-last"),
        pytest.param("?state=unknown&page=x", {"install gateway v1", "install metrics v1"}, id="invalid-values"),
    ],
)
def test_the_inbox_has_filters(query: str, titles: set[str], drafted_console: ConsoleClient) -> None:
    text = drafted_console.get(f"/changes{query}").text

    assert {title for title in ("install gateway v1", "install metrics v1") if title in text} == titles


def test_an_invalid_selector_is_reported(drafted_console: ConsoleClient) -> None:
    response = drafted_console.get("/changes?target=region+in+(")

    assert response.status_code == 200
    assert "Labels of targets:" in response.text


def test_a_change_shows_its_resources_and_targets(drafted_console: ConsoleClient) -> None:
    change = drafted_console.find_change("install gateway v1")
    text = drafted_console.get(f"/changes/{change.key}").text

    assert "Deployment gateway" in text
    assert "PackageVariantSet default/gateway" in text
    assert "without effect on the cluster" in text
    assert [name for name in ("drafts/berlin", "drafts/lisbon") if name in text] == ["drafts/berlin", "drafts/lisbon"]


def test_a_change_shows_the_variant_of_a_target(drafted_console: ConsoleClient) -> None:
    change = drafted_console.find_change("install gateway v1")

    assert "api.north" in drafted_console.get(f"/changes/{change.key}?target=berlin").text
    assert "api.south" in drafted_console.get(f"/changes/{change.key}?target=lisbon&view=split").text


def test_a_change_describes_its_other_variants(drafted_console: ConsoleClient) -> None:
    change = drafted_console.find_change("install gateway v1")

    assert "different values in the same resources" in drafted_console.get(f"/changes/{change.key}").text


def test_a_change_shows_the_draft_of_a_target_and_its_neighbors(drafted_console: ConsoleClient) -> None:
    change = drafted_console.find_change("install gateway v1")
    text = drafted_console.get(f"/changes/{change.key}?target=lisbon").text

    assert "Differences on lisbon" in text
    assert "Previous target: berlin" in text
    assert "Next target" not in text
    assert "Reject only lisbon…" in text


def test_a_read_only_standby_shows_no_actions(console: ConsoleClient) -> None:
    change = console.find_change("install gateway v1")
    console.context.state.is_read_only = True
    text = console.get(f"/changes/{change.key}").text

    assert "read-only standby" in text
    assert "Approve" not in text


def test_a_change_that_is_not_open_has_a_page(drafted_console: ConsoleClient) -> None:
    response = drafted_console.get("/changes/0123456789ab")

    assert response.status_code == 410
    assert "0123456789ab is not open" in response.text


@pytest.mark.slow
def test_a_draft_that_moved_after_the_pass_is_reported(world: World, console: ConsoleClient) -> None:
    change = console.find_change("install metrics v1")
    world.edit("drafts/berlin", "metrics/deployment.yaml", "replicas: 2", "replicas: 5")
    world.observe_pass()

    assert "The draft has changed since the last pass" in console.get(f"/changes/{change.key}").text


def test_all_targets_of_a_change_have_a_page(drafted_console: ConsoleClient) -> None:
    change = drafted_console.find_change("install gateway v1")
    text = drafted_console.get(f"/changes/{change.key}/targets").text

    assert "1 to 2 of 2 targets" in text


def test_names_are_escaped(world: World, console: ConsoleClient) -> None:
    text = console.get('/changes?q="><script>alert(1)</script>').text

    assert "<script>alert" not in text
    assert "&lt;script&gt;alert(1)" in text
