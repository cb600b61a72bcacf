"""The page of a change that is not open any more: what happened, and the change that follows."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.krm.selectors import parse_label_query
from reconciler.review.permissions import Permissions, RoleRule
from reconciler.server.console.people import Session
from tests.support.console import ADA, ConsoleClient, open_console, sign_in
from tests.support.prepared_worlds import begin, drafted
from tests.support.world import package, variant


@pytest.fixture
def console(tmp_path: Path) -> ConsoleClient:
    client = open_console(begin(tmp_path, drafted))
    client.update()
    return client


@pytest.mark.slow
def test_a_published_change_shows_its_publications(console: ConsoleClient) -> None:
    key = console.find_change("install gateway v1").key
    job = console.confirm({"verb": "approve", "change": key}, reason="reviewed with Luis")
    console.world.sync()
    console.update()
    page, problem = console.get(f"/changes/{key}"), console.get(f"/api/v1/changes/{key}")

    assert page.status_code == problem.status_code == console.get(f"/changes/{key}/targets").status_code == 410
    assert f'href="/changes/{key}">Show the change install gateway v1</a>' in console.get(str(job.url.path)).text
    assert "install gateway v1" in page.text
    assert "2 drafts published" in page.text
    assert page.text.count("published as v1") == page.text.count("by Ada Example") == 2
    assert 'href="/targets/lisbon/packages/gateway"' in page.text
    message = f"the change {key} (install gateway v1) is not open any more; its drafts: 2 drafts published"
    assert problem.json()["detail"] == message


def release_next_version(console: ConsoleClient) -> None:
    world = console.world
    world.release("metrics", "v2", package("metrics", 4, "1.1"), 1_200_000_000)
    world.write({"metrics.yaml": variant("metrics-berlin", "berlin", "metrics", "v2")})
    world.sync_until_unchanged()
    console.update()


def test_a_replaced_change_links_to_the_newer_change_and_shows_the_difference(console: ConsoleClient) -> None:
    key = console.find_change("install metrics v1").key
    release_next_version(console)
    newer = console.find_change("install metrics v2").key
    page, problem = console.get(f"/changes/{key}"), console.get(f"/api/v1/changes/{key}")

    assert page.status_code == 410
    assert "A newer version of this change exists" in page.text
    assert f'<a href="/changes/{newer}">install metrics v2</a>' in page.text
    assert "Approve" not in page.text
    assert problem.json()["supersededBy"] == [newer]


@pytest.mark.slow
def test_a_change_that_follows_and_is_published_too_is_still_linked(console: ConsoleClient) -> None:
    key = console.find_change("install metrics v1").key
    release_next_version(console)
    newer = console.find_change("install metrics v2").key
    console.confirm({"verb": "approve", "change": newer}, reason="agreed")
    console.world.sync()
    console.update()

    assert f'<a href="/changes/{newer}">install metrics v2</a>' in console.get(f"/changes/{key}").text
    assert "1 draft published" in console.get(f"/changes/{newer}").text


@pytest.mark.slow
def test_a_person_sees_nothing_of_past_changes_of_other_targets(console: ConsoleClient) -> None:
    keys = [console.find_change(title).key for title in ("install gateway v1", "install metrics v1")]
    for key in keys:
        console.confirm({"verb": "approve", "change": key}, reason="agreed")
    console.world.sync()
    console.update()
    south = Permissions((RoleRule("viewer", groups=("g",), targets=parse_label_query("region=south")),))
    sign_in(console, Session(ADA, south))
    gateway, metrics = (console.get(f"/changes/{key}") for key in keys)

    assert "1 draft published" in gateway.text
    assert "lisbon" in gateway.text
    assert "berlin" not in gateway.text
    assert metrics.status_code == 410
    assert "install metrics" not in metrics.text
    assert "berlin" not in metrics.text
