"""Fixtures for the tests of notifications."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.notifications.events import Event
from reconciler.notifications.routes import Route
from tests.support.notifications import NotificationHarness, observe


@pytest.fixture(autouse=True)
def no_expiring_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove the certificates and tokens that other tests of the process have used."""
    monkeypatch.setattr("reconciler.telemetry.credential_expiry._expiries", {})


@pytest.fixture
def harness(tmp_path: Path) -> NotificationHarness:
    """One route with all events. Its ledger exists, so that the first messages are not combined."""
    harness = NotificationHarness(tmp_path / "ledger.json", [Route("ops", tuple(Event))])
    assert harness.settle(observe()) == []
    return harness
