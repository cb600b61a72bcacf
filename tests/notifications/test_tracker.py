"""Which messages are sent: once per condition, grouped, limited, and not again after a restart."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.krm.findings import Severity
from reconciler.lazy_dataclasses import replace
from reconciler.notifications.events import Event
from reconciler.notifications.observation import Condition, Observation
from reconciler.notifications.routes import Route, parse_quiet_hours
from reconciler.notifications.tracker import MESSAGES_PER_HOUR
from reconciler.telemetry import metrics
from tests.support.examples import examples
from tests.support.notifications import NotificationHarness, blocked, drafts, item, observe, unreachable

HOUR = 3600.0
BLOCKED = "Blocked: PackageVariant web: Bad (1 package on 1 target)"
UNBLOCKED = "No longer blocked: PackageVariant web: Bad"


def conflict(draft: str) -> Condition:
    conflicts = (item(f"{draft} spec.replicas", parent=draft),)
    return Condition(Event.DRAFT_CONFLICT, "web spec.replicas", "web: spec.replicas", Severity.WARNING, conflicts)


def remote(hold_seconds: float = 900.0) -> Condition:
    items = (item("git", scope="/remote git", target="", package="", hold_seconds=hold_seconds),)
    return Condition(Event.REMOTE_UNAVAILABLE, "git", "git", Severity.ERROR, items)


@pytest.fixture
def metrics_text() -> Iterator[Callable[[], str]]:
    """Return a function that returns the current metrics as text."""
    with metrics.REGISTRY.export():
        yield lambda: metrics.render_metrics("text/plain")[0].decode()


def test_equal_drafts_are_one_message(harness: NotificationHarness) -> None:
    names = [f"t{number}/web@a" for number in range(1000)]

    assert harness.settle(observe(drafts(*names))) == ["Review update web v1 → v2 on 1000 targets"]


def test_a_condition_is_sent_after_the_gather_time(harness: NotificationHarness) -> None:
    assert harness.run(observe(blocked("a/web"))) == []
    assert harness.run(after=29) == []
    assert harness.run(after=1) == [BLOCKED]


def test_drafts_of_two_passes_within_the_gather_time_are_one_message(harness: NotificationHarness) -> None:
    first, second = observe(drafts("a/web@1")), observe(drafts("a/web@1", "b/web@1"))

    assert harness.run(first) == []
    assert harness.run(second, after=20) == []
    assert harness.run(second, after=10) == ["Review update web v1 → v2 on 2 targets"]


def test_a_condition_that_ends_within_the_gather_time_sends_nothing(harness: NotificationHarness) -> None:
    assert harness.run(observe(blocked("a/web"))) == []
    assert harness.run(observe(), after=20) == []
    assert harness.run(observe(), after=HOUR) == []


def test_the_gather_time_starts_again_after_an_interruption(harness: NotificationHarness) -> None:
    harness.run(observe(blocked("a/web")))
    harness.run(observe(), after=20)

    assert harness.run(observe(blocked("a/web")), after=5) == []
    assert harness.run(after=29) == []
    assert harness.run(after=1) == [BLOCKED]


def test_a_flapping_condition_sends_one_message(harness: NotificationHarness, metrics_text: Callable[[], str]) -> None:
    assert harness.settle(observe(blocked("a/web"))) == [BLOCKED]
    for _ in range(10):
        assert harness.run(observe(), after=10) == []
        assert harness.run(observe(blocked("a/web")), after=10) == []

    labels = 'channel="ops",event="package_blocked",result="deduplicated"'
    assert f"reconciler_notifications_total{{{labels}}} 10.0" in metrics_text()


def test_the_end_of_a_condition_is_sent_once(harness: NotificationHarness) -> None:
    assert harness.settle(observe(blocked("a/web"))) == [BLOCKED]
    assert harness.settle(observe()) == [UNBLOCKED]
    assert harness.settle(observe()) == []


def test_a_condition_that_begins_again_is_sent_again(harness: NotificationHarness) -> None:
    harness.settle(observe(blocked("a/web")))
    harness.settle(observe())

    assert harness.settle(observe(blocked("a/web"))) == [BLOCKED]


def test_the_end_of_a_condition_is_sent_only_when_all_items_have_ended(harness: NotificationHarness) -> None:
    harness.settle(observe(blocked("a/web", "b/web")))

    assert harness.settle(observe(blocked("b/web"))) == []
    assert harness.settle(observe()) == [UNBLOCKED]


def test_an_end_is_not_sent_to_a_route_that_did_not_send_the_start(tmp_path: Path) -> None:
    harness = NotificationHarness(
        tmp_path / "ledger.json", [Route("ops", (Event.PACKAGE_BLOCKED, Event.PACKAGE_UNBLOCKED), targets="stage=prod")]
    )
    labels = {"a": {"stage": "test"}}
    harness.settle(observe(labels=labels))

    assert harness.settle(observe(blocked("a/web"), labels=labels)) == []
    assert harness.settle(observe(labels=labels)) == []


def test_an_end_is_sent_to_the_routes_of_the_start_whatever_its_severity(tmp_path: Path) -> None:
    routes = [Route("ops", severity=Severity.ERROR, targets="stage=prod"), Route("ops", targets="stage=test")]
    harness = NotificationHarness(tmp_path / "ledger.json", routes)
    labels = {"a": {"stage": "prod"}}
    harness.settle(observe(labels=labels))
    harness.settle(observe(blocked("a/web"), labels=labels))
    harness.run(observe(labels=labels))
    harness.channel.errors = [unreachable()]
    harness.run(after=30)
    # The restart happens before the second attempt. Another condition changes the ledger before.
    later = observe(drafts("a/db@1"), labels=labels)
    assert harness.run(later) == []
    harness.restart()

    assert harness.settle(later) == [UNBLOCKED]
    assert len({message.route for message in harness.channel.messages}) == 1


def test_a_condition_that_has_ended_is_not_sent_to_a_later_route(tmp_path: Path) -> None:
    harness = NotificationHarness(
        tmp_path / "ledger.json", [Route("ops"), Route("ops", packages=("*",), digest_minutes=1)]
    )
    harness.settle(observe())
    assert harness.settle(observe(blocked("a/web"))) == [BLOCKED]
    assert harness.run(observe(), after=20) == []

    # The digest is due, and the end of the condition is not sent yet.
    assert harness.run(after=10) == []
    assert harness.run(after=20) == [UNBLOCKED]


def test_a_condition_that_ends_during_retries_is_followed_by_its_end(harness: NotificationHarness) -> None:
    harness.channel.errors = [unreachable(), unreachable()]
    harness.settle(observe(blocked("a/web")))
    assert harness.run(observe(), after=1) == []
    assert harness.run(after=5) == [BLOCKED]

    assert harness.run(after=30) == [UNBLOCKED]


@pytest.mark.parametrize("events", [(Event.PACKAGE_UNBLOCKED,), (Event.PACKAGE_BLOCKED,)], ids=str)
def test_a_route_receives_only_its_events(tmp_path: Path, events: tuple[Event, ...]) -> None:
    harness = NotificationHarness(tmp_path / "ledger.json", [Route("ops", events)])
    harness.settle(observe())
    sent = [*harness.settle(observe(blocked("a/web"))), *harness.settle(observe())]

    assert sent == ([BLOCKED] if events == (Event.PACKAGE_BLOCKED,) else [])


def test_a_target_that_cannot_be_read_keeps_its_conditions(harness: NotificationHarness) -> None:
    harness.settle(observe(drafts("a/web@1"), blocked("a/db")))

    assert harness.settle(observe(unknown_scopes=frozenset({"a"}))) == []
    assert harness.settle(observe(drafts("a/web@1"), blocked("a/db"))) == []


def test_a_failed_pass_keeps_all_conditions(harness: NotificationHarness) -> None:
    harness.settle(observe(drafts("a/web@1")))

    assert harness.settle(Observation((), only_scopes=frozenset({"/pass"}))) == []
    assert harness.settle(observe(drafts("a/web@1"))) == []


def test_a_new_version_of_a_draft_is_a_new_message(harness: NotificationHarness) -> None:
    harness.settle(observe(drafts("a/web@1", "b/web@1")))

    assert harness.settle(observe(drafts("a/web@2", "b/web@1"))) == ["Review update web v1 → v2 on 2 targets"]


def test_a_published_draft_sends_no_message_about_the_other_drafts(tmp_path: Path) -> None:
    harness = NotificationHarness(tmp_path / "ledger.json", [Route("ops")])
    harness.settle(observe())
    harness.settle(observe(drafts("a/web@1", "b/web@1")))

    assert harness.settle(observe(drafts("b/web@1"), published={"a/web@1": 2})) == []


def test_a_published_and_a_rejected_draft_are_sent_to_routes_that_select_them(harness: NotificationHarness) -> None:
    harness.settle(observe(drafts("a/web@1", "b/web@1")))
    sent = harness.settle(observe(published={"a/web@1": 2}, rejected=frozenset({"b/web@1"})))

    assert sent == ["Published on a: 1 package", "Rejected: update web v1 → v2 on 1 target"]
    assert harness.channel.messages[-2].lines == ("a/web: revision 2",)


def test_a_conflict_ends_with_its_draft(harness: NotificationHarness) -> None:
    observed = observe(drafts("a/web@1"), conflict("a/web@1"))
    assert harness.settle(observed)[1] == "Conflict in web: spec.replicas on 1 target"
    # Later passes do not observe the conflict again, because the package is unchanged.
    assert harness.settle(observe(drafts("a/web@1"))) == []
    assert harness.settle(observed) == []
    harness.settle(observe())

    assert len(harness.settle(observed)) == 2


def test_a_remote_must_be_unavailable_for_some_time(harness: NotificationHarness) -> None:
    assert harness.settle(observe(remote())) == []
    assert harness.run(observe(remote()), after=869) == []
    assert harness.run(observe(remote()), after=1) == ["Remote unavailable: git"]
    assert harness.settle(observe()) == ["Remote available again: git"]


def test_a_restart_sends_nothing(harness: NotificationHarness) -> None:
    observed = observe(drafts("a/web@1", "b/web@1"), blocked("a/db"), remote(0))
    assert len(harness.settle(observed)) == 3
    harness.restart()

    assert harness.settle(observed) == []


def test_a_restart_reports_the_end_of_a_condition(harness: NotificationHarness) -> None:
    harness.settle(observe(blocked("a/web")))
    harness.restart()

    assert harness.settle(observe()) == [UNBLOCKED]


def test_a_restart_before_a_message_is_sent_does_not_lose_an_action(harness: NotificationHarness) -> None:
    harness.settle(observe(drafts("a/web@1")))
    harness.run(observe(published={"a/web@1": 2}))
    harness.restart()

    assert harness.settle(observe(published={"a/web@1": 2})) == ["Published on a: 1 package"]


def test_an_action_is_not_lost_if_the_first_pass_after_a_restart_fails(tmp_path: Path) -> None:
    route = Route("ops", (Event.PUBLISHED,), targets="stage=prod", digest_minutes=60)
    harness = NotificationHarness(tmp_path / "ledger.json", [route])
    labels = {"a": {"stage": "prod"}}
    published = observe(published={"a/web@1": 2}, labels=labels)
    harness.settle(observe(drafts("a/web@1"), labels=labels))
    harness.settle(published)
    harness.settle(observe(drafts("a/other@1"), published={"a/web@1": 2}, labels=labels))
    harness.restart()

    assert harness.settle(Observation((), only_scopes=frozenset({"/pass"}))) == []
    assert harness.run(published, after=HOUR) == ["Published on a: 1 package"]


def test_a_restart_during_retries_does_not_lose_an_action(harness: NotificationHarness) -> None:
    harness.settle(observe(drafts("a/web@1")))
    published = observe(published={"a/web@1": 2})
    harness.channel.errors = [unreachable(), unreachable()]
    harness.settle(published)
    # The new draft changes the ledger during the retries.
    later = observe(drafts("b/web@1"), published={"a/web@1": 2})
    harness.run(later, after=0.5)
    harness.run(observe(drafts("b/web@1", "c/web@1"), published={"a/web@1": 2}))
    harness.restart()

    assert "Published on a: 1 package" in harness.settle(later)


def test_a_kill_between_delivery_and_ledger_repeats_one_message_with_the_same_id(harness: NotificationHarness) -> None:
    harness.run(observe(blocked("a/web")))
    before = harness.file.read_bytes()
    harness.run(after=30)
    harness.file.write_bytes(before)
    harness.restart()

    assert harness.settle(observe(blocked("a/web"))) == [BLOCKED]
    assert len({message.id for message in harness.channel.messages}) == 1
    assert harness.settle(observe(blocked("a/web"))) == []


def test_a_lost_ledger_repeats_the_conditions_as_one_message(harness: NotificationHarness) -> None:
    observed = observe(drafts("a/web@1"), blocked("a/db"), blocked("a/x", group="Bad x"))
    harness.settle(observed)
    harness.file.unlink()
    harness.restart()

    assert harness.settle(observed) == ["3 changes"]
    assert harness.settle(observed) == []


@pytest.mark.emits("notification_ledger_failed")
def test_a_damaged_ledger_is_like_a_lost_ledger(harness: NotificationHarness) -> None:
    observed = observe(drafts("a/web@1"), blocked("a/db"))
    harness.settle(observed)
    harness.file.write_text(harness.file.read_text()[:-20])
    harness.restart()

    assert harness.settle(observed) == ["2 changes"]


def test_a_route_sends_a_limited_number_of_messages_and_then_one_digest(
    harness: NotificationHarness, metrics_text: Callable[[], str]
) -> None:
    conditions = [blocked(f"a/p{number}", group=f"Bad {number}") for number in range(MESSAGES_PER_HOUR + 37)]
    assert len(harness.settle(observe(*conditions))) == MESSAGES_PER_HOUR
    # One more message is possible after each 180 seconds.
    assert harness.run(after=179) == []
    assert harness.run(after=1) == ["37 further changes"]
    assert len(harness.channel.messages[-1].lines) == 21
    assert harness.run(after=HOUR) == []
    text = metrics_text()
    assert 'reconciler_notifications_total{channel="ops",event="package_blocked",result="sent"} 20.0' in text
    assert 'reconciler_notifications_total{channel="ops",event="package_blocked",result="limited"} 37.0' in text
    assert 'reconciler_notifications_total{channel="ops",event="digest",result="sent"} 1.0' in text


def test_the_rate_limit_holds_after_a_restart(harness: NotificationHarness) -> None:
    harness.settle(observe(*(blocked(f"a/p{number}", group=f"Bad {number}") for number in range(MESSAGES_PER_HOUR))))
    harness.restart()

    assert harness.settle(observe(drafts("a/web@1"))) == []


def test_a_digest_route_collects_messages(tmp_path: Path) -> None:
    harness = NotificationHarness(tmp_path / "ledger.json", [Route("ops", digest_minutes=60)])
    harness.settle(observe())

    assert harness.settle(observe(blocked("a/web"))) == []
    assert harness.settle(observe(blocked("a/web"), drafts("b/web@1"))) == []
    assert harness.run(after=HOUR - 61) == []
    assert harness.run(after=1) == ["2 changes"]


def test_messages_of_quiet_hours_are_one_message_afterwards(tmp_path: Path) -> None:
    # The clock of the harness starts at 22:13:20 UTC.
    harness = NotificationHarness(
        tmp_path / "ledger.json", [Route("ops", quiet_hours=parse_quiet_hours("23:00-06:00"))]
    )
    harness.settle(observe())
    harness.run(after=HOUR)

    assert harness.settle(observe(blocked("a/web"), drafts("a/db@1"), blocked("a/x", group="Bad x"))) == []
    assert harness.settle(observe(blocked("a/web"), drafts("a/db@1"))) == []
    assert harness.run(after=6 * HOUR) == []
    assert harness.run(after=HOUR) == ["2 changes"]


def test_an_overdue_review_is_sent_once_per_day(tmp_path: Path) -> None:
    harness = NotificationHarness(tmp_path / "ledger.json", [Route("ops", (Event.REVIEW_OVERDUE,))])
    observed = observe(drafts("a/web@1", "b/web@1"))
    harness.settle(observed)

    assert harness.run(after=47 * HOUR) == []
    assert harness.run(after=HOUR) == ["Overdue review: 2 packages on 2 targets"]
    harness.restart()
    assert harness.settle(observed) == []
    assert harness.run(after=23 * HOUR) == []
    assert harness.run(after=HOUR) == ["Overdue review: 2 packages on 2 targets"]
    assert harness.run(after=24 * HOUR) == ["Overdue review: 2 packages on 2 targets"]
    harness.settle(observe())
    assert harness.run(after=48 * HOUR) == []


def test_a_failing_channel_does_not_lose_a_message(harness: NotificationHarness) -> None:
    harness.channel.errors = [unreachable(), unreachable()]

    assert harness.settle(observe(blocked("a/web"))) == []
    assert harness.run(after=1) == []
    assert harness.run(after=5) == [BLOCKED]
    assert harness.run(observe(blocked("a/web")), after=HOUR) == []


def test_later_messages_of_a_thread_receive_the_data_of_the_first(harness: NotificationHarness) -> None:
    harness.channel.posted = {"ts": "1"}
    harness.settle(observe(blocked("a/web")))
    harness.restart()
    harness.settle(observe(blocked("a/web", "b/web")))
    harness.settle(observe())

    assert [message.posted for message in harness.channel.messages] == [{}, {"ts": "1"}, {"ts": "1"}]
    assert len({message.thread for message in harness.channel.messages}) == 1


def test_the_data_of_a_digest_is_not_used_for_later_messages(tmp_path: Path) -> None:
    harness = NotificationHarness(tmp_path / "ledger.json", [Route("ops")])
    harness.channel.posted = {"ts": "1"}
    assert harness.settle(observe(blocked("a/web"), drafts("b/web@1"))) == ["2 changes"]
    harness.settle(observe(blocked("a/web", "b/web"), drafts("b/web@1")))

    assert harness.channel.messages[-1].posted == {}


@pytest.mark.parametrize(
    ("route", "expected"),
    [
        pytest.param(Route("ops"), 2, id="default"),
        pytest.param(Route("ops", (Event.DRAFTS_WAITING,)), 1, id="events"),
        pytest.param(Route("ops", severity=Severity.ERROR), 1, id="severity"),
        pytest.param(Route("ops", targets="stage=prod"), 1, id="targets"),
        pytest.param(Route("ops", packages=("w*",)), 1, id="packages"),
        pytest.param(Route("ops", targets="stage=none"), 0, id="no-target"),
        pytest.param(Route("ops", targets="!region"), 2, id="absent-label"),
        pytest.param(Route("ops", packages=("*",)), 2, id="all-packages"),
        pytest.param(Route("ops", tenants=("payments",)), 1, id="tenants"),
        pytest.param(Route("ops", tenants=("shop",)), 0, id="another-tenant"),
    ],
)
def test_a_route_selects_messages(tmp_path: Path, route: Route, expected: int) -> None:
    harness = NotificationHarness(tmp_path / "ledger.json", [route])
    labels = {"a": {"stage": "prod"}, "b": {"stage": "test"}}
    harness.settle(observe(labels=labels))

    # The last item is about the whole fleet. Only routes without `targets`, `packages` and `tenants` select it.
    fleet = Condition(Event.PASS_FAILING, "1/1", "shard 1/1", Severity.WARNING, (item("pass", target=""),))
    is_limited = route.targets or route.packages or route.tenants or route.events
    expected += not is_limited and route.severity is not Severity.ERROR
    of_tenant = blocked("a/web")
    of_tenant = replace(of_tenant, items=tuple(replace(own, tenant="payments") for own in of_tenant.items))
    assert len(harness.settle(observe(of_tenant, drafts("b/db@1"), fleet, labels=labels))) == expected


def test_several_routes_send_their_own_messages(tmp_path: Path) -> None:
    harness = NotificationHarness(
        tmp_path / "ledger.json", [Route("ops", targets="stage=prod"), Route("ops", severity=Severity.ERROR)]
    )
    labels = {"a": {"stage": "prod"}}
    harness.settle(observe(labels=labels))

    assert harness.settle(observe(blocked("a/web"), labels=labels)) == [BLOCKED, BLOCKED]


def test_the_ledger_keeps_the_latest_groups(harness: NotificationHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reconciler.notifications.ledger.MAX_GROUPS", 5)
    for number in range(10):
        harness.run(observe(blocked(f"a/p{number}", group=f"Bad {number}"), unknown_scopes=frozenset({"a"})))
    harness.restart()

    assert [group for _, group in harness.work.ledger.groups] == [f"Bad {number}" for number in range(5, 10)]


@settings(max_examples=examples(60), deadline=None)
@given(
    st.lists(
        st.sampled_from([drafts("a/web@1", "b/web@1"), blocked("a/db"), conflict("a/web@1"), remote(0), remote()]),
        unique_by=lambda condition: condition.event,
    ),
    st.lists(st.tuples(st.sampled_from([0.0, 1.0, 29.0, 31.0, 400.0]), st.booleans()), min_size=1, max_size=12),
)
def test_passes_over_equal_refs_send_nothing_more(
    tmp_path_factory: pytest.TempPathFactory, conditions: list[Condition], steps: list[tuple[float, bool]]
) -> None:
    events = tuple(event for event in Event if event is not Event.REVIEW_OVERDUE)
    harness = NotificationHarness(tmp_path_factory.mktemp("harness") / "ledger.json", [Route("ops", events)])
    observed = observe(*conditions)
    harness.settle(observed)
    harness.run(observed, after=1000)
    sent = len(harness.channel.messages)
    for seconds, is_restart in steps:
        if is_restart:
            harness.restart()
        harness.run(observed, after=seconds)

    assert len(harness.channel.messages) == sent
