"""Tests of the configured log: fields of all events, levels, and the redaction of secrets."""

from __future__ import annotations

import json
import re
import sys
from typing import Any

import pytest

from reconciler import __version__
from reconciler.telemetry.event_log import log
from reconciler.telemetry.log_setup import configure_log
from tests.support.logs import unchanged_logs


def log_events(capsys: pytest.CaptureFixture[str], *, as_json: bool) -> list[str]:
    """Log one event inside and one event outside of a pass at the level info, and return the lines of the log."""
    with unchanged_logs():
        configure_log("info", "2/3", as_json=as_json)
        with log.pass_scope("a1b2"):
            log.info("draft_pushed", remote="https://ada:correct-horse@example.com/a.git")
        log.debug("wakeup_received")
        log.warning("push_failed")
    return capsys.readouterr().err.splitlines()


def test_each_line_of_json_has_the_common_fields(capsys: pytest.CaptureFixture[str]) -> None:
    first, second = (json.loads(line) for line in log_events(capsys, as_json=True))

    common: dict[str, Any] = {"version": __version__, "shard": "2/3"}
    assert {**first, "timestamp": ""} == {
        **common, "level": "info", "event": "draft_pushed", "pass_id": "a1b2",
        "remote": "https://example.com/a.git", "timestamp": "",
    }  # fmt: skip
    assert {**second, "timestamp": ""} == {**common, "level": "warning", "event": "push_failed", "timestamp": ""}
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", first["timestamp"])


def test_all_events_of_a_request_have_its_id(capsys: pytest.CaptureFixture[str]) -> None:
    with unchanged_logs():
        configure_log("info", "1/1", as_json=True)
        with log.request_scope("run-7"):
            log.info("draft_pushed")
            log.info("review_action", request_id="run-6")
        log.info("draft_pushed")
    events = [json.loads(line) for line in capsys.readouterr().err.splitlines()]

    assert [event.get("request_id") for event in events] == ["run-7", "run-6", None]


def test_lines_of_text_omit_the_fields_with_constant_values(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: False)
    first, second = log_events(capsys, as_json=False)

    assert ("pass_id=a1b2" in first, "shard" in first, "version" in first) == (True, False, False)
    assert "pass_id" not in second
