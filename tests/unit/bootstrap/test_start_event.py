"""The first event of the daemon: the settings file and the optional parts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from reconciler.bootstrap.start_event import log_start
from reconciler.settings import Settings


@pytest.mark.parametrize(
    ("data", "features"),
    [
        pytest.param({}, [], id="default"),
        pytest.param(
            {
                "notifications": {
                    "channels": [{"name": "ops", "kind": "slack", "url_file": "a"}], "routes": [{"channel": "ops"}]
                },
                "tracing": {"endpoint": "http://localhost:4318"},
                "status": {"heartbeat_minutes": 5},
                "signing": {"verify_inputs": "warn", "allowed_signers_file": "a"},
            },
            ["notifications", "signing.verify_inputs", "status.heartbeat_minutes", "tracing"],
            id="optional-parts",
        ),
    ],
)  # fmt: skip
def test_the_event_lists_the_optional_parts(data: dict[str, Any], features: list[str]) -> None:
    with capture_logs() as events:
        log_start(Settings.model_validate(data), "a.yaml")

    assert (events[0]["features"], events[0]["settings_file"]) == (features, "a.yaml")


def test_the_event_names_the_default_settings_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with capture_logs() as events:
        log_start(Settings(), None)
        (tmp_path / "reconciler.yaml").touch()
        log_start(Settings(), None)

    assert [event["settings_file"] for event in events] == ["", "reconciler.yaml"]
