"""Tests of the banner that shows the age of old data with the reason."""

from __future__ import annotations

import re
from dataclasses import replace
from html import unescape

import pytest

from reconciler.krm.selectors import LabelSelector
from reconciler.review.permissions import Permissions, RoleRule
from reconciler.server.console.people import Session
from reconciler.service.fleet_view import Failure, PassRecord
from reconciler.service.state import ServiceState
from tests.support.console import ADA, ConsoleClient, sign_in
from tests.support.manual_clock import ManualClock

EU_7 = Failure(0.0, "authentication failed", "https://git.example.com/eu-7.git")


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def console(fleet: ConsoleClient, clock: ManualClock) -> ConsoleClient:
    """The last pass has read all remotes, and both clocks have the time of its end."""
    view, index = fleet.context.state.view, fleet.context.index
    assert view is not None
    assert index is not None
    clock.now = 0.0
    state = ServiceState(clock)
    record = PassRecord(float(index.completed_at), 0.0, "success")
    state.record_completed_pass(replace(view, completed_at=0.0, last_pass=record, remote_failures=()))
    fleet.context = replace(fleet.context, state=state, clock=lambda: index.completed_at + clock.now)
    fleet.context.index_thread.error = ""
    return fleet


def read_banner(console: ConsoleClient) -> str:
    found = re.search(r'<div id="stale">(.*?)</div>', console.get("/targets").text, re.DOTALL)
    assert found
    return unescape(re.sub("<[^>]*>", "", found[1])).strip()


def set_remote_failures(console: ConsoleClient, *failures: Failure) -> None:
    view = console.context.state.view
    assert view is not None
    console.context.state.view = replace(view, remote_failures=failures)


def test_data_of_the_last_pass_has_no_banner(console: ConsoleClient, clock: ManualClock) -> None:
    clock.now = 120

    assert read_banner(console) == ""


def test_a_failed_pass_makes_the_data_old(console: ConsoleClient, clock: ManualClock) -> None:
    clock.now = 720
    console.context.state.record_failed_pass("the config cannot be fetched", has_read_config=False)

    assert read_banner(console) == "Data is 12 min old: the config cannot be fetched"


def test_a_service_without_passes_has_old_data(console: ConsoleClient, clock: ManualClock) -> None:
    clock.now = 3_600

    assert read_banner(console) == "Data is 1 h old: no pass was completed in the expected time"


def test_branches_that_cannot_be_read_make_the_data_old(console: ConsoleClient, clock: ManualClock) -> None:
    clock.now = 59
    console.context.index_thread.error = "the cache is full"

    assert read_banner(console) == "Data is 59 s old: the cache is full"


@pytest.mark.parametrize(
    ("others", "end"), [((), ""), ((replace(EU_7, since=30.0, name="other"),), " (and 1 more)")], ids=["one", "two"]
)
def test_a_remote_that_is_unavailable_makes_some_data_old(
    others: tuple[Failure, ...], end: str, console: ConsoleClient, clock: ManualClock
) -> None:
    clock.now = 90
    set_remote_failures(console, *others, EU_7)
    expected = (
        "Some data is 1 min old: the remote https://git.example.com/eu-7.git is unavailable: authentication failed"
    )

    assert read_banner(console) == expected + end


def test_the_banner_has_no_names_for_people_who_may_not_read_everything(console: ConsoleClient) -> None:
    set_remote_failures(console, EU_7)
    rule = RoleRule("viewer", targets=LabelSelector((("region", "south"),)))
    sign_in(console, Session(ADA, Permissions((rule,))))

    assert read_banner(console) == "Some data is 0 s old. The log of the service has the reason."


def test_an_unchanged_page_is_sent_again_with_the_banner(console: ConsoleClient) -> None:
    tag = console.get("/targets").headers["etag"]
    unchanged = console.get("/targets", if_none_match=tag)
    console.context.state.record_failed_pass("no connection", has_read_config=False)
    changed = console.get("/targets", if_none_match=tag)

    assert (unchanged.status_code, changed.status_code) == (304, 200)
