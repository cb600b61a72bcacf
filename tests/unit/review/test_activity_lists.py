"""Each person reads only events about readable packages, and all pages of a list come from one index."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconciler.krm.selectors import parse_label_query
from reconciler.output.fleet.activity import ActivityEvent
from reconciler.review.activity_lists import ActivityLists
from reconciler.review.permissions import ADMIN_PERMISSIONS, Permissions, RoleRule
from reconciler.review.restricted_index import HIDDEN_TEXT, restrict_index
from tests.support.fleet_index import create_index, create_row, create_target

INDEX = create_index([
    create_target("lisbon", {"region": "south"}, create_row("lisbon", "web"), create_row("lisbon", "secret")),
    create_target("berlin", {"region": "north"}, create_row("berlin", "web")),
])  # fmt: skip
SOUTH = Permissions((RoleRule("viewer", targets=parse_label_query("region=south"), packages=("web",)),))


def create_event(target: str, package: str = "web", reason: str = "", recorded_at: int = 500) -> ActivityEvent:
    return ActivityEvent(("rejected",), 500, recorded_at, target, package, reason=reason)


def list_events(event: ActivityEvent, permissions: Permissions) -> list[tuple[str, str, str]]:
    lists = ActivityLists(lambda: (event,))
    found = lists.list_events(INDEX, restrict_index(INDEX, permissions), permissions)
    return [(item.target, item.package, item.reason) for item in found]


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        pytest.param(create_event("lisbon"), [("lisbon", "web", "")], id="readable"),
        pytest.param(create_event("berlin"), [], id="hidden-target"),
        pytest.param(create_event("lisbon", "secret"), [], id="hidden-package"),
        pytest.param(create_event("porto"), [], id="deleted-target"),
        pytest.param(create_event("", ""), [], id="pass"),
        pytest.param(create_event("lisbon", "web", "as on berlin"), [("lisbon", "web", HIDDEN_TEXT)], id="name-in-text"),
        pytest.param(create_event("lisbon", "web", "as on lisbon"), [("lisbon", "web", "as on lisbon")], id="own-name"),
    ],
)  # fmt: skip
def test_a_person_reads_events_about_readable_packages(
    event: ActivityEvent, expected: list[tuple[str, str, str]]
) -> None:
    assert list_events(event, SOUTH) == expected
    assert list_events(event, ADMIN_PERMISSIONS) == [(event.target, event.package, event.reason)]


def test_names_of_deleted_targets_are_hidden() -> None:
    events = (create_event("porto"), create_event("lisbon", "web", "as on porto"))
    found = ActivityLists(lambda: events).list_events(INDEX, restrict_index(INDEX, SOUTH), SOUTH)

    assert [(event.target, event.reason) for event in found] == [("lisbon", HIDDEN_TEXT)]


def test_a_list_does_not_change_until_the_next_index() -> None:
    events = [create_event("lisbon")]
    lists = ActivityLists(lambda: tuple(events))
    before = lists.list_events(INDEX, INDEX, ADMIN_PERMISSIONS)
    events.append(create_event("berlin", recorded_at=INDEX.completed_at + 1))

    assert lists.list_events(INDEX, INDEX, ADMIN_PERMISSIONS) == before
    assert ActivityLists(lambda: tuple(events)).list_events(INDEX, INDEX, ADMIN_PERMISSIONS) == before
    newer = replace(INDEX, number=2, completed_at=INDEX.completed_at + 1)
    assert len(lists.list_events(newer, newer, ADMIN_PERMISSIONS)) == 2
