"""Events follow the configuration of the log, and have no cost if the log is disabled."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor, wait
from threading import Event

import pytest
from structlog.testing import capture_logs

from reconciler.telemetry.event_log import EventLog


@pytest.mark.parametrize("level", ["debug", "info", "warning", "error"])
def test_an_event_is_logged_with_its_fields(level: str) -> None:
    with capture_logs() as log_events:
        getattr(EventLog(), level)("draft_pushed", target="berlin")

    assert log_events == [{"event": "draft_pushed", "target": "berlin", "log_level": level}]


def test_the_log_is_configured_before_the_first_event_and_on_request() -> None:
    events, values = EventLog(), []
    events.configure_with(lambda: values.append("first"))
    assert values == []

    with capture_logs():
        events.info("one")
        events.info("two")
        events.configure_with(lambda: values.append("second"))
        events.info("three")

    assert values == ["first", "second"]


def test_a_second_thread_waits_until_it_is_set_up() -> None:
    events, begun, go, values = EventLog(), Event(), Event(), []

    def configure() -> None:
        begun.set()
        assert go.wait(10)
        values.append("set up")

    def second() -> None:
        events.info("two")
        values.append("two")

    events.configure_with(configure)
    with capture_logs(), ThreadPoolExecutor(2) as pool:
        first = pool.submit(events.info, "one")
        assert begun.wait(10)
        other = pool.submit(second)
        assert not wait([other], timeout=0.1).done
        go.set()
        first.result(10)
        other.result(10)

    assert values == ["set up", "two"]


def test_a_command_does_not_load_what_tells_events() -> None:
    program = "import sys, reconciler.cli.sync; sys.exit('structlog' in sys.modules or 'rich' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
