"""Tests of actions on several changes that a person selects in the list of changes."""

from __future__ import annotations

import re
from dataclasses import replace
from html import unescape
from pathlib import Path

import pytest

from reconciler.krm.selectors import LabelSelector
from reconciler.output.fleet.builder import build_fleet_index
from reconciler.output.fleet.model import FleetIndex
from reconciler.review.permissions import Permissions, RoleRule
from reconciler.review.stages import Stage
from reconciler.server.console.people import Session
from tests.support.console import ADA, ConsoleClient, find_value, open_console, sign_in
from tests.support.console_server import add_targets
from tests.support.fleet_index import create_row, create_target
from tests.support.git_repositories import git
from tests.support.prepared_worlds import begin, drafted
from tests.support.world import World

STAGES = (
    Stage("canary", LabelSelector((("region", "south"),))),
    Stage("production", LabelSelector((("region", "north"),))),
)


@pytest.fixture
def world(tmp_path: Path) -> World:
    """All packages are drafted: gateway on Berlin and Lisbon, and metrics on Berlin."""
    return begin(tmp_path, drafted)


@pytest.fixture
def console(world: World) -> ConsoleClient:
    client = open_console(world)
    client.update()
    return client


def get_index(console: ConsoleClient) -> FleetIndex:
    index = console.context.index
    assert index is not None
    return index


def find_row(console: ConsoleClient, rows: list[str], title: str) -> str:
    return next(row for row in rows if get_index(console).by_change[row.split()[0]].title == title)


def list_rows(text: str) -> list[str]:
    return re.findall(r'name="row" value="([^"]*)"', text)


def open_confirmation(console: ConsoleClient, rows: list[str], **fields: str) -> str:
    created = console.post("/changes/confirm", {"verb": "approve", "chosen": "row", "row": rows, **fields})
    return console.get(created.headers["location"]).text


@pytest.mark.slow
def test_one_confirmation_publishes_all_selected_changes(world: World, console: ConsoleClient) -> None:
    rows = list_rows(console.get("/changes").text)
    text = open_confirmation(console, rows)
    page = console.confirm({"verb": "approve", "chosen": "row", "row": rows}, reason="reviewed with Luis")
    console.update()

    assert len(rows) == 2
    assert "Approve 3 packages on 2 targets?" in text
    assert "install gateway v1" in text
    assert "install metrics v1" in text
    assert "skipped" in page.text
    assert "0 skipped · 0 failed" in page.text
    assert {"gateway/deployment.yaml", "metrics/deployment.yaml"} <= set(world.paths(world.fleet, "clusters/berlin"))
    assert "reviewed with Luis" in git(world.fleet, "log", "-1", "--format=%B", "clusters/lisbon")
    assert list_rows(console.get("/changes").text) == []


def test_a_form_without_selected_changes_applies_to_nothing(console: ConsoleClient) -> None:
    response = console.post("/changes/confirm", {"verb": "approve", "chosen": "row"})

    assert response.status_code == 409
    assert "choose at least one change" in response.text


def test_a_link_selects_the_page_without_scripts(console: ConsoleClient) -> None:
    text = console.get("/changes").text
    (link,) = re.findall(r'data-select-page href="([^"]*)"', text)
    selected = console.get(f"/changes{unescape(link)}").text

    assert text.count(" checked") == 0
    assert selected.count(" checked") == len(list_rows(selected)) == 2
    # Links to other filters select nothing.
    assert "select=page" not in selected.replace("data-select-page", "")


@pytest.mark.quick_cases(every=2)
@pytest.mark.parametrize("verb", ["approve", "reject"])
def test_a_change_with_other_targets_than_the_list_showed_is_skipped(verb: str, console: ConsoleClient) -> None:
    rows = list_rows(console.get("/changes").text)
    index = get_index(console)
    change = index.by_change[find_row(console, rows, "install metrics v1").split()[0]]
    row = replace(create_row("porto", "metrics", change=change.key), draft=None)
    draft = index.by_target["berlin"].by_package["metrics"].draft
    assert draft
    other = replace(row, draft=replace(draft, member=replace(draft.member, target="porto")))
    add_targets(console, [create_target("porto", {}, other)], ())
    text = open_confirmation(console, rows, verb=verb)

    assert f"{verb.capitalize()} 2 packages on 2 targets?" in text
    assert "the targets or effects of the change install metrics v1 have changed since you selected the change" in text
    assert "berlin/metrics, porto/metrics" in text


@pytest.mark.slow
def test_a_change_that_was_published_meanwhile_is_skipped(console: ConsoleClient) -> None:
    rows = list_rows(console.get("/changes").text)
    published = find_row(console, rows, "install metrics v1")
    console.confirm({"verb": "approve", "change": published.split()[0]})
    console.update()
    text = open_confirmation(console, rows)

    assert "Approve 2 packages on 2 targets?" in text
    assert f"change {published.split()[0]}" in text
    assert "the change was published, withdrawn or replaced after you selected it" in text


def test_a_moved_branch_with_equal_effects_is_not_skipped(console: ConsoleClient) -> None:
    rows = list_rows(console.get("/changes").text)
    index = get_index(console)
    targets = [
        replace(
            target,
            packages=tuple(
                replace(row, draft=replace(row.draft, member=replace(row.draft.member, head="f" * 40)))
                for row in target.packages
                if row.draft
            ),
        )
        for target in index.targets
    ]
    console.context.index_thread.index = build_fleet_index(index.number + 1, 0, index.config, targets, ())

    assert "Approve 3 packages on 2 targets?" in open_confirmation(console, rows)


def test_selected_changes_can_be_limited_to_a_stage(console: ConsoleClient) -> None:
    console.context = replace(console.context, stages=STAGES)
    rows = list_rows(console.get("/changes").text)
    text = open_confirmation(console, rows)
    fields = {"verb": find_value(text, "verb"), "stage": "canary"}
    part = open_confirmation(console, list_rows(text), **fields)

    assert "Only stage canary: 1 target" in text
    assert list_rows(text) == rows * (len(list_rows(text)) // 2)
    assert "Approve 1 package on 1 target?" in part
    assert "berlin" not in part


def test_a_stage_does_not_include_rejected_drafts(console: ConsoleClient) -> None:
    console.context = replace(console.context, stages=STAGES)
    rows = list_rows(console.get("/changes").text)
    change = find_row(console, rows, "install gateway v1").split()[0]
    console.confirm({"verb": "reject", "change": change}, reason="too early")
    console.update()
    rows = list_rows(console.get("/changes").text)
    text = open_confirmation(console, [row for row in rows if row.startswith(change)], stage="canary")

    assert "Approve 0 packages on 0 targets?" in text
    assert "drafts/lisbon&#34; was rejected by Ada Example: too early" in text


@pytest.mark.parametrize(
    ("role", "can_select"),
    [("viewer", False), ("reviewer", True), ("admin", True)],
    ids=["viewer", "reviewer", "admin"],
)
def test_only_reviewers_can_select_changes(role: str, can_select: bool, drafted_console: ConsoleClient) -> None:
    context = drafted_console.context
    sign_in(drafted_console, Session(ADA, Permissions((RoleRule(role, users=("ada@example.com",)),))))  # type: ignore[arg-type]
    text = drafted_console.get("/changes").text
    drafted_console.context = context

    assert bool(list_rows(text)) is can_select
    assert ("You need the role reviewer" in text) is not can_select


def test_a_standby_shows_no_actions(console: ConsoleClient) -> None:
    console.context.state.is_read_only = True
    text = console.get("/changes").text

    assert "install gateway v1" in text
    assert "Approve…" not in text
    assert list_rows(text) == []
