"""Tests of confirmations: the required input, the time limit, and the limits of the store."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from reconciler.krm.selectors import LabelSelector
from reconciler.output.fleet.model import FleetIndex
from reconciler.output.fleet.risk import RiskClass
from reconciler.review.confirmations import Confirmation, ConfirmationStore, check_input
from reconciler.review.people import Reviewer
from reconciler.review.permissions import ADMIN_PERMISSIONS, Permissions, RoleRule
from reconciler.review.record_folder import RecordFolder
from reconciler.review.review_requests import ChangeSelection, ReviewRequest, ReviewRequestError, SelectedTarget
from tests.support.fleet_index import create_index, create_large_index, create_refusal, create_row, create_target
from tests.support.manual_clock import ManualClock

ANA = Reviewer("Ana", "ana@example.com")
LUIS = Reviewer("Luis", "luis@example.com")
WHOLE_CHANGE = ReviewRequest("approve", (ChangeSelection("update"),))
NORTH = LabelSelector((("region", "north"),))


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


def confirm(store: ConfirmationStore, index: FleetIndex, person: Reviewer = ANA) -> Confirmation:
    return store.create(index, person, ADMIN_PERMISSIONS, WHOLE_CHANGE)


def test_a_confirmation_expires_after_30_minutes(clock: ManualClock) -> None:
    store = ConfirmationStore(clock)
    confirmation = confirm(store, create_large_index(1))

    clock.now += 1_799
    assert store.find(confirmation.id, ANA) == confirmation
    clock.now += 1
    assert store.find(confirmation.id, ANA) is None


def test_an_expired_confirmation_can_be_created_again_for_a_day(clock: ManualClock) -> None:
    store = ConfirmationStore(clock)
    confirmation = confirm(store, create_large_index(1))

    clock.now += 1_800 + 86_399
    assert store.find_expired(confirmation.id, ANA) == confirmation
    assert store.find_expired(confirmation.id, LUIS) is None
    clock.now += 1
    assert store.find_expired(confirmation.id, ANA) is None


def test_a_later_process_reads_the_confirmations(clock: ManualClock, tmp_path: Path) -> None:
    folder = RecordFolder(tmp_path, Confirmation)
    store = ConfirmationStore(clock, folder=folder, max_per_person=2)
    first, second, third = (confirm(store, create_large_index(1)) for _ in range(3))
    store.keep_input(third.id, " because\x07 \n", 7)
    later = ConfirmationStore(clock, folder=folder)

    assert [later.find(confirmation.id, ANA) for confirmation in (first, second)] == [None, second]
    assert later.find(third.id, ANA) == replace(third, entered_reason="because", entered_count=7)
    assert later.find(second.id, LUIS) is None

    clock.now += 1_800 + 86_400
    assert later.find(second.id, ANA) is None
    assert list(tmp_path.iterdir()) == []


def test_input_of_an_unknown_confirmation_is_not_kept(clock: ManualClock) -> None:
    assert not ConfirmationStore(clock).keep_input("unknown", "reason", None)


def test_only_the_same_person_can_use_a_confirmation(clock: ManualClock) -> None:
    store = ConfirmationStore(clock)
    confirmation = confirm(store, create_large_index(1))

    assert store.find(confirmation.id, LUIS) is None
    assert store.find("unknown", ANA) is None


@pytest.mark.parametrize(
    ("targets", "risk", "typed_count"),
    [(50, "fields", None), (51, "fields", 51), (1, "restart", None), (2, "access", 2)],
    ids=["small", "large", "medium-risk", "high-risk"],
)
def test_the_number_of_targets_must_be_typed(
    clock: ManualClock, targets: int, risk: RiskClass, typed_count: int | None
) -> None:
    confirmation = confirm(ConfirmationStore(clock), create_large_index(targets, risk))

    assert confirmation.typed_count == typed_count
    if typed_count is not None:
        for wrong in (None, 0, typed_count + 1):
            with pytest.raises(ReviewRequestError, match=f"type the number of targets, {typed_count}"):
                check_input(confirmation, "tested", wrong)
    check_input(confirmation, "tested", typed_count)


@pytest.mark.parametrize(
    ("request_", "risk", "causes"),
    [
        pytest.param(WHOLE_CHANGE, "restart", (), id="medium-risk"),
        pytest.param(WHOLE_CHANGE, "deletion", ("high risk",), id="high-risk"),
        pytest.param(ReviewRequest("propose", WHOLE_CHANGE.selections), "fields", (), id="propose"),
        pytest.param(ReviewRequest("reject", WHOLE_CHANGE.selections), "fields", ("reject",), id="reject"),
    ],
)
def test_when_a_reason_is_required(
    clock: ManualClock, request_: ReviewRequest, risk: RiskClass, causes: tuple[str, ...]
) -> None:
    confirmation = ConfirmationStore(clock).create(create_large_index(1, risk), ANA, ADMIN_PERMISSIONS, request_)

    assert confirmation.reason_causes == causes
    if causes:
        with pytest.raises(ReviewRequestError, match="a reason is required"):
            check_input(confirmation, " \n", confirmation.typed_count)


def test_a_person_has_a_limited_number_of_confirmations(clock: ManualClock) -> None:
    store = ConfirmationStore(clock, max_per_person=2)
    other = confirm(store, create_large_index(1), LUIS)
    own = [confirm(store, create_large_index(1)) for _ in range(3)]

    assert [store.find(confirmation.id, ANA) is not None for confirmation in own] == [False, True, True]
    assert store.find(other.id, LUIS)


def test_the_number_of_all_confirmations_is_limited(clock: ManualClock) -> None:
    store = ConfirmationStore(clock, max_confirmations=2)
    people = [Reviewer("", f"{number}@example.com") for number in range(3)]
    created = [confirm(store, create_large_index(1), person) for person in people]

    found = [store.find(confirmation.id, confirmation.person) for confirmation in created]
    assert [confirmation is not None for confirmation in found] == [False, True, True]


def test_the_number_of_drafts_is_limited(clock: ManualClock) -> None:
    store = ConfirmationStore(clock, max_drafts=10)
    first, second = confirm(store, create_large_index(6)), confirm(store, create_large_index(6))

    assert store.find(first.id, ANA) is None
    assert store.find(second.id, ANA)
    with pytest.raises(ReviewRequestError, match="select at most 10 drafts"):
        confirm(store, create_large_index(11))


@pytest.mark.parametrize(
    ("selection", "permissions", "code"),
    [
        pytest.param(ChangeSelection("gone"), ADMIN_PERMISSIONS, "UnknownChange", id="unknown-change"),
        pytest.param(ChangeSelection("update"), Permissions(()), "UnknownChange", id="hidden-change"),
        pytest.param(
            ChangeSelection("update", frozenset({"gone"})), ADMIN_PERMISSIONS, "UnknownVariant", id="unknown-variant"
        ),
    ],
)
def test_a_change_that_the_person_cannot_see(
    clock: ManualClock, selection: ChangeSelection, permissions: Permissions, code: str
) -> None:
    with pytest.raises(ReviewRequestError) as raised:
        ConfirmationStore(clock).create(create_large_index(2), ANA, permissions, ReviewRequest("approve", (selection,)))

    assert raised.value.code == code


def test_selected_variants_and_targets_are_confirmed(clock: ManualClock) -> None:
    index = create_index(
        create_target(name, {}, create_row(name, "web", change="update", risk=risk))
        for name, risk in {"berlin": "fields", "lisbon": "fields", "porto": "restart"}.items()  # type: ignore[arg-type]
    )
    key = index.by_change["update"].variants[0].key
    targets = tuple(SelectedTarget(name) for name in ("lisbon", "porto", "unknown"))
    request = ReviewRequest("approve", (ChangeSelection("update", frozenset({key}), targets),))

    confirmation = ConfirmationStore(clock).create(index, ANA, ADMIN_PERMISSIONS, request)

    assert confirmation.targets == ("lisbon",)
    assert [(draft.target, draft.reason.reason) for draft in confirmation.excluded] == [
        ("porto", "DraftMoved"), ("unknown", "DraftMoved"),
    ]  # fmt: skip


def test_reasons_contain_no_names_of_hidden_targets(clock: ManualClock) -> None:
    refusals = (create_refusal("waits for lisbon"),)
    row = create_row("berlin", "web", change="update", risk="blocked", refusals=refusals)
    index = create_index([create_target("berlin", {"region": "north"}, row), create_target("lisbon", {})])
    permissions = Permissions((RoleRule("reviewer", targets=NORTH),))

    confirmation = ConfirmationStore(clock).create(index, ANA, permissions, WHOLE_CHANGE)

    (excluded,) = confirmation.excluded
    assert excluded.reason.reason == "GateNotMet"
    assert "lisbon" not in excluded.reason.message
