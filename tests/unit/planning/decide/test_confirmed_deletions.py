"""Tests of confirmed deletions: confirmed packages are released although some are already deleted; others stay."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.controllers.deletion_guards import ACK_DELETIONS, format_deletion_message
from reconciler.controllers.results import DeletionGuard, PackageTarget
from reconciler.krm.objects import ObjectKey
from reconciler.planning.decide.deletion_safety import apply_acknowledged_deletions
from reconciler.planning.model.state import PackageRecord
from tests.unit.planning.builders import GROUP, build_record, build_state, build_target

SET = ObjectKey(GROUP, "PackageVariantSet", "default", "gw")
DELETION_MESSAGE = format_deletion_message([("berlin", "gw"), ("lisbon", "gw"), ("oslo", "gw")], 3, "packages", "it")
TOKEN = DELETION_MESSAGE.rpartition(f'{ACK_DELETIONS}: "')[2].rstrip('"')


def build_held_record(message: str = DELETION_MESSAGE, kind: str = "held") -> PackageRecord:
    return build_record(outcome={"kind": kind, "findings": [{"message": message}], "existing": 3})


def build_package_target(name: str) -> PackageTarget:
    return PackageTarget("default", name, "gw")


@pytest.mark.parametrize(
    ("records", "guard", "released"),
    [
        pytest.param(
            {"berlin": build_held_record(), "lisbon": build_held_record()}, {}, True, id="all-were-held-under-that-hash"
        ),
        pytest.param(
            {"berlin": build_held_record(), "lisbon": build_held_record("another")},
            {},
            False,
            id="one-was-held-for-another-reason",
        ),
        pytest.param(
            {"berlin": build_held_record(), "lisbon": build_held_record(kind="drafted")},
            {},
            False,
            id="one-was-not-held",
        ),
        pytest.param(
            {"berlin": build_held_record(), "lisbon": build_record()}, {}, False, id="unrequested-confirmation"
        ),
        pytest.param({"berlin": build_held_record()}, {}, False, id="one-whose-state-cannot-be-read"),
        pytest.param(
            {"berlin": build_held_record(), "lisbon": build_held_record()},
            {"acknowledged_hashes": frozenset()},
            False,
            id="no-word",
        ),
        pytest.param(
            {"berlin": build_held_record(), "lisbon": build_held_record()},
            {"acknowledged_hashes": frozenset({""})},
            False,
            id="empty-word",
        ),
        pytest.param(
            {"berlin": build_held_record(), "lisbon": build_held_record()},
            {"acknowledged_hashes": frozenset({"1"})},
            False,
            id="other-word",
        ),
        pytest.param(
            {"berlin": build_held_record(), "lisbon": build_held_record()},
            {"unconfirmed": frozenset()},
            False,
            id="nothing-waits",
        ),
    ],
)
def test_confirmed_deletions_are_released(
    records: dict[str, PackageRecord], guard: dict[str, Any], released: bool
) -> None:
    waiting = frozenset({build_package_target("berlin"), build_package_target("lisbon")})
    whole = DeletionGuard(
        **{"reason": DELETION_MESSAGE, "unconfirmed": waiting, "acknowledged_hashes": frozenset({TOKEN}), **guard}
    )
    states = {
        build_target(name): build_state(packages={"gw": package_record}) for name, package_record in records.items()
    }

    deletion_guard = apply_acknowledged_deletions({SET: whole}, states)[SET]

    assert [deletion_guard.allows_deletion(build_package_target(name)) for name in ("berlin", "lisbon", "oslo")] == [
        released,
        released,
        False,
    ]
