"""What people confirmed goes though a part of it is gone already; what they did not confirm stays."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.controllers.deletion_guards import ACK_DELETIONS, format_deletion_message
from reconciler.controllers.results import DeletionGuard, PackageTarget
from reconciler.krm.objects import ObjectKey
from reconciler.planning.decide.deletion_safety import apply_acknowledged_deletions
from reconciler.planning.model.state import PackageRecord
from tests.unit.planning.values import GROUP, destination, record, state

SET = ObjectKey(GROUP, "PackageVariantSet", "default", "gw")
TOLD = format_deletion_message([("berlin", "gw"), ("lisbon", "gw"), ("oslo", "gw")], 3, "packages", "it")
TOKEN = TOLD.rpartition(f'{ACK_DELETIONS}: "')[2].rstrip('"')


def held(message: str = TOLD, kind: str = "held") -> PackageRecord:
    return record(outcome={"kind": kind, "findings": [{"message": message}], "existing": 3})


def place(name: str) -> PackageTarget:
    return PackageTarget("default", name, "gw")


@pytest.mark.parametrize(
    ("records", "guard", "released"),
    [
        pytest.param({"berlin": held(), "lisbon": held()}, {}, True, id="all-were-held-under-that-hash"),
        pytest.param({"berlin": held(), "lisbon": held("another")}, {}, False, id="one-was-held-for-another-reason"),
        pytest.param({"berlin": held(), "lisbon": held(kind="drafted")}, {}, False, id="one-was-not-held"),
        pytest.param({"berlin": held(), "lisbon": record()}, {}, False, id="one-that-nobody-asked-about"),
        pytest.param({"berlin": held()}, {}, False, id="one-whose-state-cannot-be-read"),
        pytest.param({"berlin": held(), "lisbon": held()}, {"acknowledged_hashes": frozenset()}, False, id="no-word"),
        pytest.param(
            {"berlin": held(), "lisbon": held()}, {"acknowledged_hashes": frozenset({""})}, False, id="empty-word"
        ),
        pytest.param(
            {"berlin": held(), "lisbon": held()}, {"acknowledged_hashes": frozenset({"1"})}, False, id="other-word"
        ),
        pytest.param({"berlin": held(), "lisbon": held()}, {"unconfirmed": frozenset()}, False, id="nothing-waits"),
    ],
)
def test_confirmed(records: dict[str, PackageRecord], guard: dict[str, Any], released: bool) -> None:
    waiting = frozenset({place("berlin"), place("lisbon")})
    whole = DeletionGuard(
        **{"reason": TOLD, "unconfirmed": waiting, "acknowledged_hashes": frozenset({TOKEN}), **guard}
    )
    states = {destination(name): state(packages={"gw": package_record}) for name, package_record in records.items()}

    deletion_guard = apply_acknowledged_deletions({SET: whole}, states)[SET]

    assert [deletion_guard.allows_deletion(place(name)) for name in ("berlin", "lisbon", "oslo")] == [
        released,
        released,
        False,
    ]
