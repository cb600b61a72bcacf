"""The time since when drafts exist: the cache stores it for the next process."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.reconcile.cache_files import FirstSeenTimes


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "first_seen.json"


def test_an_unchanged_draft_keeps_its_first_time(file: Path) -> None:
    times = FirstSeenTimes(file)
    times.update("berlin", {"gw": "t1"}, 100)

    assert times.update("berlin", {"gw": "t1", "db": "t5"}, 200) == {"gw": 100, "db": 200}
    assert times.update("berlin", {"gw": "t2", "db": "t5"}, 300) == {"gw": 300, "db": 200}
    assert times.update("lisbon", {"gw": "t1"}, 400) == {"gw": 400}


def test_a_draft_that_returns_has_a_new_time(file: Path) -> None:
    times = FirstSeenTimes(file)
    times.update("berlin", {"gw": "t1"}, 100)
    times.update("berlin", {}, 200)

    assert times.update("berlin", {"gw": "t1"}, 300) == {"gw": 300}


def test_the_next_process_reads_the_time(file: Path) -> None:
    times = FirstSeenTimes(file)
    times.update("berlin", {"gw": "t1"}, 100)
    times.update("lisbon", {}, 100)
    times.store()

    assert FirstSeenTimes(file).update("berlin", {"gw": "t1"}, 200) == {"gw": 100}
    assert "lisbon" not in file.read_text()


def test_nothing_new_is_not_written(file: Path) -> None:
    times = FirstSeenTimes(file)
    times.update("berlin", {}, 100)
    times.store()

    assert not file.exists()


def test_an_existing_draft_has_the_given_start_time(file: Path) -> None:
    times = FirstSeenTimes(file)

    assert times.update("berlin", {"gw": "t1"}, 100, start=0) == {"gw": 0}
    assert times.update("berlin", {"gw": "t2", "web": "t1"}, 200, start=0) == {"gw": 200, "web": 200}


def test_the_absence_of_drafts_is_stored(file: Path) -> None:
    times = FirstSeenTimes(file)
    times.update("berlin", {}, 100, start=0)
    times.store()

    assert FirstSeenTimes(file).update("berlin", {"gw": "t1"}, 200, start=0) == {"gw": 200}


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="empty"),
        pytest.param("{", id="cut-off"),
        pytest.param("[]", id="a-list"),
        pytest.param('{"berlin": []}', id="no-packages"),
        pytest.param('{"berlin": {"gw": 7}}', id="no-pair"),
        pytest.param('{"berlin": {"gw": ["t1"]}}', id="half-a-pair"),
        pytest.param('{"berlin": {"gw": ["t1", "x"]}}', id="no-time"),
    ],
)
def test_an_invalid_file_counts_as_missing(file: Path, text: str) -> None:
    file.parent.mkdir()
    file.write_text(text)

    assert FirstSeenTimes(file).update("berlin", {"gw": "t1"}, 200) == {"gw": 200}


@pytest.mark.emits("first_seen_store_failed")
def test_an_unwritable_folder_stops_no_pass(file: Path) -> None:
    file.parent.write_text("in the way")
    times = FirstSeenTimes(file)
    times.update("berlin", {"gw": "t1"}, 100)

    times.store()

    assert times.update("berlin", {"gw": "t1"}, 200) == {"gw": 100}
