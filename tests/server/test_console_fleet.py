"""Tests of the first page, and of the sections of a target's page."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from html import unescape

import pytest

from reconciler.output.fleet.activity import ActivityEvent
from reconciler.output.fleet.model import PackageRow, TargetEntry
from reconciler.output.fleet.publications import Publication
from reconciler.review.activity_lists import ActivityLists
from tests.support.console import ConsoleClient, strip_tags
from tests.support.console_server import add_targets
from tests.support.fleet_index import create_index, create_row, create_target

SECONDS = 3_000_000_000


@pytest.fixture
def console(published_fleet: ConsoleClient) -> Iterator[ConsoleClient]:
    """All packages are published. A test can add targets, and change the state of the service."""
    context, index, view = published_fleet.context, published_fleet.context.index, published_fleet.context.state.view
    yield published_fleet
    published_fleet.context = context
    context.index_thread.index = index
    context.state.view = view


def publish(target: str, package: str, number: int = 1, age: int = 0, reason: str = "") -> PackageRow:
    publication = Publication(number, "f" * 40, "Ana", SECONDS - age, f"{package}: publish v{number}", reason)
    return replace(create_row(target, package), version=number, publication=publication)


def create_published(name: str, *rows: PackageRow) -> TargetEntry:
    return create_target(name, {}, *rows)


def read_section(console: ConsoleClient, path: str, name: str) -> str:
    text = console.get(path).text
    (found,) = re.findall(rf'<section aria-labelledby="{name}">(.*?)</section>', text, re.DOTALL)
    return strip_tags(found)


def test_an_empty_fleet_has_no_table_of_packages(console: ConsoleClient) -> None:
    console.context.index_thread.index = create_index((), number=1_000)

    assert read_section(console, "/", "health") == "Packages There are no targets."


def test_equal_publications_of_several_targets_are_one_row(console: ConsoleClient) -> None:
    names = [f"edge-{number}" for number in range(3)]
    targets = [create_published(name, publish(name, "web", 2, reason="tested")) for name in names]
    add_targets(console, [*targets, create_published("other", publish("other", "web", 1, age=60))], ())
    text = read_section(console, "/", "activity")

    assert "Ana published web v2 on 3 targets tested" in text
    assert text.index("web v2 on 3 targets") < text.index("web v1 on other") < text.index("Ada published")


def test_recent_activity_has_ten_rows(console: ConsoleClient) -> None:
    rows = [publish("edge", f"package-{number:02}", age=number) for number in range(20)]
    add_targets(console, [create_published("edge", *rows)], ())
    text = read_section(console, "/", "activity")

    assert text.count("published package-") == 10
    assert "package-09" in text


def test_recent_activity_contains_reviews_and_passes(console: ConsoleClient) -> None:
    events = (
        ActivityEvent(("draft-created",), SECONDS, 0, "berlin", "gateway", message="install"),
        ActivityEvent(("pass",), SECONDS, 0, message="1 draft created"),
        ActivityEvent(("rejected",), SECONDS + 1, 0, "berlin", "gateway", "Ana", reason="too early"),
        ActivityEvent(("rejected",), SECONDS + 1, 0, "lisbon", "gateway", "Ana", reason="too early"),
        ActivityEvent(("proposed",), SECONDS + 2, 0, "berlin", "deleted", "Ana"),
    )
    console.context = replace(console.context, activity=ActivityLists(lambda: events))
    text = read_section(console, "/", "activity")
    page = console.get("/activity?action=rejected&actor=Ana&q=too%20early").text

    assert "Ana proposed deleted on berlin" in text
    assert "Ana rejected gateway on 2 targets too early" in text
    assert "pass: 1 draft created" in text
    assert "draft-created" not in text
    assert "1 to 2 of 2 events" in page


def test_links_of_recent_activity_lead_to_pages(console: ConsoleClient) -> None:
    targets = [create_published(name, publish(name, "web", 2)) for name in ("edge-1", "edge-2")]
    add_targets(console, targets, ())
    (section,) = re.findall(r'<section aria-labelledby="activity">(.*?)</section>', console.get("/").text, re.DOTALL)
    links = [unescape(link) for link in re.findall(r'href="([^"]*)"', section)]

    assert len(links) > 2
    assert {console.get(link).status_code for link in links} == {200}
    assert "1 to 2 of 2 events" in console.get(links[0]).text


def test_numbers_lead_to_the_packages_with_this_state(console: ConsoleClient) -> None:
    rows = [replace(create_row("edge", state), state=state) for state in ("blocked", "held")]  # type: ignore[arg-type]
    add_targets(console, [create_published("edge", *rows)], ())
    text = console.get("/").text

    for state, label in (("blocked", "blocked"), ("held", "on hold")):
        assert f'<a href="/targets?state={state}"><b>1</b> package {label}</a>' in text
        assert "1 to 1 of 1 target" in console.get(f"/targets?state={state}").text


def test_the_age_of_the_oldest_change_is_shown(console: ConsoleClient) -> None:
    now = int(console.context.clock())
    rows = [create_row("edge", name, change=name, since=now - age) for name, age in (("a", 7_300), ("b", 60))]
    add_targets(console, [create_published("edge", *rows)], ())

    assert read_section(console, "/", "waiting").startswith("Waiting for review 2 changes · the oldest 2 h ago")


def test_failed_checks_follow_the_blocked_packages(console: ConsoleClient) -> None:
    names = re.findall(r'<section aria-labelledby="([a-z]+)"', console.get("/").text)
    for _ in range(console.context.state.limits.failing_passes):
        console.context.state.record_failed_pass("no connection", has_read_config=True)
    failed = re.findall(r'<section aria-labelledby="([a-z]+)"', console.get("/").text)
    text = read_section(console, "/", "checks")
    console.context.state.failed_passes = None

    assert names == ["waiting", "blocked", "health", "activity"]
    assert failed == ["waiting", "blocked", "checks", "health", "activity"]
    assert "PassFailing no connection" in text


def test_a_target_has_its_changes_and_publications(console: ConsoleClient) -> None:
    rows = [publish("edge", f"package-{number:02}", age=number) for number in range(12)]
    add_targets(console, [create_published("edge", *rows, create_row("edge", "db", change="database"))], ())
    waiting, history = (read_section(console, f"/targets/edge?view={name}", name) for name in ("waiting", "history"))
    facts = strip_tags(console.get("/targets/edge").text)

    assert "LOW update db 1 target db waiting drafts/edge" in waiting
    assert history.count("published edge/package-") == 12
    assert history.index("package-00 v1") < history.index("package-09 v1")
    assert 'href="/changes/database?target=edge"' in console.get("/targets/edge?view=waiting").text
    assert "Last publication package-00 v1 by Ana," in facts
    assert "Packages 13 Waiting 1 Published resources History 12 Findings 0" in facts


def test_a_target_without_drafts_and_publications_has_a_note(console: ConsoleClient) -> None:
    add_targets(console, [create_target("empty", {}, create_row("empty", "web"))], ())

    assert "No draft of this target waits for a review." in read_section(
        console, "/targets/empty?view=waiting", "waiting"
    )
    assert "Nothing is published with a revision number." in read_section(
        console, "/targets/empty?view=history", "history"
    )
