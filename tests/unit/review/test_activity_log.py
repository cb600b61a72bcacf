"""The file with the activity: later processes read it, its size is limited, and errors cause only warnings."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from reconciler.output.fleet.activity import ActivityEvent
from reconciler.output.fleet.model import FleetIndex
from reconciler.output.fleet.publications import Publication
from reconciler.review import activity_log
from reconciler.review.activity_log import DAY_SECONDS, ActivityLog
from tests.support.fleet_index import create_index, create_row, create_target

NOW = 100 * DAY_SECONDS


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "activity.jsonl"


def open_log(file: Path, days: float = 0) -> ActivityLog:
    """Return the log of a process that runs this number of days later."""
    return ActivityLog(file, lambda: NOW + days * DAY_SECONDS)


def create_event(package: str, days: int = 0, text: str = "") -> ActivityEvent:
    seconds = NOW + days * DAY_SECONDS
    return ActivityEvent(("rejected",), seconds, seconds, "lisbon", package, "Ada", reason=text)


def index_publication(number: int, age_days: int = 0) -> FleetIndex:
    publication = Publication(number, f"c{number}", "Ada", NOW - age_days * DAY_SECONDS, f"publish v{number}", "agreed")
    return create_index([create_target("lisbon", {}, create_row("lisbon", "web", publication=publication))])


def list_packages(log: ActivityLog) -> list[str]:
    return [event.package for event in log.read()]


def test_a_later_process_reads_all_fields(file: Path) -> None:
    event = ActivityEvent(("approved", "published"), NOW, NOW, "lisbon", "web", "Ada", "publish", "agreed", "c1", 2)
    open_log(file).append([event])

    assert open_log(file).read() == (event,)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_events_are_appended_before_and_after_the_file_is_read(file: Path) -> None:
    log = open_log(file)
    log.append([create_event("first")])
    before = list_packages(log)
    log.append([create_event("second"), create_event("third")])

    assert before == ["first"]
    assert list_packages(log) == list_packages(open_log(file)) == ["first", "second", "third"]


def test_no_event_writes_no_file(file: Path) -> None:
    log = open_log(file)
    log.append([])
    log.update(create_index([]))

    assert not file.exists()


@pytest.mark.emits("activity_unreadable")
def test_damaged_lines_cause_one_warning_and_less_history(file: Path) -> None:
    open_log(file).append([create_event("first"), create_event("second")])
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(lines[0] + b'{"actions":["unknown"]}\n\xff\xfe\n[]\n' + lines[1])
    with capture_logs() as logs:
        log = open_log(file)

        assert list_packages(log) == list_packages(log) == ["first", "second"]
    assert [entry["event"] for entry in logs] == ["activity_unreadable"]
    assert logs[0]["message"].startswith("3 of 5 lines")


def test_an_interrupted_write_damages_no_later_event(file: Path) -> None:
    open_log(file).append([create_event("first"), create_event("second")])
    file.write_bytes(file.read_bytes()[:-10])
    open_log(file).append([create_event("third")])

    with capture_logs():
        assert list_packages(open_log(file)) == ["first", "third"]


@pytest.mark.emits("activity_store_failed", "activity_unreadable")
def test_a_file_that_cannot_be_used_causes_only_warnings(file: Path) -> None:
    file.mkdir(parents=True)
    with capture_logs() as logs:
        log = open_log(file)
        read = log.read()
        log.append([create_event("first")])

    assert read == ()
    assert [entry["event"] for entry in logs] == ["activity_unreadable", "activity_store_failed"]
    assert list_packages(log) == ["first"]
    file.rmdir()
    log.append([create_event("second")])
    assert list_packages(open_log(file)) == ["second"]


def test_events_of_the_last_30_days_are_kept(file: Path) -> None:
    open_log(file).append([create_event("old", 0), create_event("new", 20)])
    later = open_log(file, days=40)
    visible = list_packages(later)
    later.append([create_event("newest", 40)])

    assert visible == ["new"]
    assert list_packages(later) == ["new", "newest"]
    assert b'"old"' not in file.read_bytes()


def test_the_oldest_events_are_deleted_at_the_maximum_size(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(activity_log, "MAX_BYTES", 2_000)
    log = open_log(file)
    for number in range(50):
        log.append([create_event(f"package-{number}")])
        assert file.stat().st_size <= 2_000

    kept = list_packages(log)
    assert kept == list_packages(open_log(file)) == [f"package-{number}" for number in range(50 - len(kept), 50)]
    assert len(kept) > 5


def test_long_texts_are_shortened(file: Path) -> None:
    log = open_log(file)
    log.append([create_event("web", text="é" * 5_000)])

    assert [len(event.reason) for event in log.read()] == [1_000]


def test_a_replaced_publication_stays_in_the_log(file: Path) -> None:
    log = open_log(file)
    for index in (index_publication(1), index_publication(1), index_publication(2)):
        log.update(index)
    later = open_log(file)
    later.update(index_publication(2))

    assert [(event.revision, event.person, event.reason) for event in later.read()] == [
        (1, "Ada", "agreed"), (2, "Ada", "agreed"),
    ]  # fmt: skip


def test_an_old_publication_is_only_in_the_index(file: Path) -> None:
    log = open_log(file)
    log.update(index_publication(1, age_days=31))

    assert log.read() == ()
