"""The page of the activity: passes, drafts, reviews and publications, also of changes that were replaced since."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from reconciler.catalog.files import CommitId
from reconciler.krm.times import format_rfc3339
from tests.support.console import ConsoleClient, open_console, strip_tags
from tests.support.git_environment import SECONDS
from tests.support.prepared_worlds import begin, drafted, published
from tests.support.world import package, variant

DAY = 24 * 60 * 60


@pytest.fixture
def console(tmp_path: Path) -> ConsoleClient:
    client = open_console(begin(tmp_path, drafted))
    client.update()
    return client


def list_events(console: ConsoleClient, query: str = "") -> list[dict[str, Any]]:
    response = console.get(f"/api/v1/activity?{query}")
    assert response.status_code == 200, response.text
    items: list[dict[str, Any]] = response.json()["items"]
    return items


def describe(console: ConsoleClient, query: str = "") -> list[str]:
    return [
        " ".join([*event["actions"], f"{event.get('target', '')}/{event.get('package', '')}"])
        for event in list_events(console, query)
    ]


def release_metrics(console: ConsoleClient, version: str) -> None:
    world = console.world
    world.release("metrics", version, package("metrics", int(version[1:]) + 2, "1.1"), 1_200_000_000)
    world.write({"metrics.yaml": variant("metrics-berlin", "berlin", "metrics", version)})
    console.update()


def approve_metrics(console: ConsoleClient, version: str, reason: str) -> None:
    operation = "install metrics v1" if version == "v1" else "update metrics v1 → v2"
    console.confirm({"verb": "approve", "change": console.find_change(operation).key}, reason=reason)
    console.world.sync()
    console.update()


def get_day(console: ConsoleClient) -> str:
    return format_rfc3339(console.world.now)[:10]


@pytest.mark.slow
def test_an_approval_of_a_replaced_change_is_found_by_day_and_action(console: ConsoleClient) -> None:
    """Task 9 of reviewers: who approved a change last Tuesday, and why."""
    tuesday = get_day(console)
    approve_metrics(console, "v1", "agreed with Luis")
    console.world.now += 3 * DAY
    release_metrics(console, "v2")
    approve_metrics(console, "v2", "a later reason")
    (event,) = list_events(console, f"action=approved&from={tuesday}&to={tuesday}")
    page = console.get(f"/activity?action=approved&from={tuesday}&to={tuesday}").text

    assert (event["by"], event["reason"], event["revision"]) == ("Ada Example", "agreed with Luis", 1)
    assert "approved, published" in page
    assert [text in page for text in ("Ada Example", "agreed with Luis", "a later reason")] == [True, True, False]
    assert describe(console, "action=published&target=berlin") == ["approved published berlin/metrics"] * 2


@pytest.mark.slow
def test_passes_record_the_drafts_that_they_change(console: ConsoleClient) -> None:
    release_metrics(console, "v2")
    console.world.write({"metrics.yaml": None})
    console.world.now += 1
    console.update()
    console.update()

    assert describe(console) == [
        "pass /", "draft-withdrawn berlin/metrics", "pass /", "draft-updated berlin/metrics",
    ]  # fmt: skip
    assert [event["subject"] for event in list_events(console, "action=pass")] == [
        "1 draft withdrawn", "1 draft updated",
    ]  # fmt: skip


@pytest.fixture
def removing_console(tmp_path: Path) -> ConsoleClient:
    """A console with an open draft that removes the published package `metrics` on berlin."""
    world = begin(tmp_path, published)
    console = open_console(world)
    console.update()
    world.write({"metrics.yaml": None})
    console.update()
    return console


def list_removals(console: ConsoleClient) -> list[tuple[Any, ...]]:
    fields = ("actions", "target", "package", "by", "reason", "commit", "subject")
    return [tuple(event.get(field, "") for field in fields) for event in list_events(console, "action=removed")]


GONE = "PackageVariant default/metrics-berlin does not exist any more"


@pytest.mark.slow
def test_a_merged_removal_has_its_commit_and_author(removing_console: ConsoleClient) -> None:
    console, world = removing_console, removing_console.world
    world.merge("berlin", "merge", draft="removals/berlin")
    commit = world.head("clusters/berlin")
    world.edit("clusters/berlin", "gateway/deployment.yaml", "replicas: 2", "replicas: 3")
    # The commits of people have this date in tests, and the log contains the last 30 days.
    world.now = SECONDS + DAY
    console.update()

    assert list_removals(console) == [(["removed"], "berlin", "metrics", "Ada", "", commit, GONE)]
    assert describe(console, "action=draft-withdrawn") == []
    assert "1 package removed" in list_events(console, "action=pass")[0]["subject"]
    assert "removed berlin/metrics" in strip_tags(console.get("/activity?action=removed").text)
    assert "removed berlin/metrics" in strip_tags(console.get("/targets/berlin?view=history").text)


@pytest.mark.slow
def test_an_approved_removal_is_one_event(removing_console: ConsoleClient) -> None:
    console = removing_console
    change = console.find_change("delete metrics")
    console.confirm({"verb": "approve", "change": change.key, "removals": "yes"}, reason="obsolete", count="1")
    commit = console.world.head("clusters/berlin")
    console.update()
    console.update()

    assert list_removals(console) == [
        (["approved", "removed"], "berlin", "metrics", "Ada Example", "obsolete", commit, GONE)
    ]  # fmt: skip


@pytest.mark.slow
def test_a_removal_whose_commit_cannot_be_read_has_no_author(removing_console: ConsoleClient) -> None:
    console, world = removing_console, removing_console.world
    world.merge("berlin", "merge", draft="removals/berlin")
    observed = world.observe_pass()
    (removal,) = observed.removals
    broken = replace(removal, since=None, until=CommitId("0" * 40))
    console.context.index_thread.build(replace(observed, removals=(broken,)))

    assert list_removals(console) == [(["removed"], "berlin", "metrics", "", "", "", GONE)]


@pytest.mark.slow
def test_a_removal_is_found_again_after_an_index_that_cannot_be_built(
    removing_console: ConsoleClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    console, world = removing_console, removing_console.world
    world.merge("berlin", "merge", draft="removals/berlin")
    with monkeypatch.context() as patch:
        patch.setattr("reconciler.inspect.fleet_index.read_cluster", lambda *_: 1 / 0)
        patch.setattr("reconciler.inspect.fleet_index.read_removal_event", lambda *_: 1 / 0)
        console.update()
    before = list_removals(console)
    world.now = SECONDS + DAY
    console.update()

    assert before == []
    assert [event[2] for event in list_removals(console)] == ["metrics"]


@pytest.mark.slow
def test_a_draft_with_a_conflict_has_both_actions(tmp_path: Path) -> None:
    world = begin(tmp_path, published)
    world.edit("clusters/berlin", "metrics/deployment.yaml", "replicas: 2", "replicas: 5")
    console = open_console(world)
    release_metrics(console, "v2")

    assert describe(console, "action=conflict") == ["draft-created conflict berlin/metrics"]
    assert [event["subject"] for event in list_events(console, "action=pass")] == [
        "1 draft created, 1 draft with conflicts",
    ]  # fmt: skip


@pytest.mark.slow
def test_reviews_record_the_person_and_the_reason(console: ConsoleClient) -> None:
    key = console.find_change("install metrics v1").key
    for verb in ("propose", "reject"):
        console.confirm({"verb": verb, "change": key}, reason=f"{verb} it")
        console.update()
    events = list_events(console, "q=berlin/metrics")

    assert sorted((*event["actions"], event["by"], event["reason"]) for event in events) == [
        ("proposed", "Ada Example", "propose it"), ("rejected", "Ada Example", "reject it"),
    ]  # fmt: skip


@pytest.mark.quick_cases(every=6)
@pytest.mark.parametrize("path", ["/api/v1/activity", "/activity.csv", "/activity.json"])
@pytest.mark.parametrize("query", ["from=yesterday", "to=2024-02-30"])
def test_a_day_that_does_not_exist_is_refused(path: str, query: str, console: ConsoleClient) -> None:
    assert console.get(f"{path}?{query}").status_code == 400


def test_the_page_explains_a_day_that_does_not_exist(console: ConsoleClient) -> None:
    page = console.get("/activity?from=2024-02-30")

    assert page.status_code == 200
    assert "from: must be a day in UTC such as &#34;2024-05-31" in page.text
