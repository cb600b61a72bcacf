"""The activity as files for auditors: with the filters of the page, and only with readable packages."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from reconciler.krm.selectors import LabelSelector
from reconciler.review.permissions import Permissions, RoleRule
from reconciler.server.console.people import Session
from tests.support.console import ADA, ConsoleClient, open_console, sign_in
from tests.support.prepared_worlds import begin, published


@pytest.fixture
def console(tmp_path: Path) -> ConsoleClient:
    client = open_console(begin(tmp_path, published))
    client.update()
    return client


def read_packages(console: ConsoleClient, path: str) -> list[str]:
    """Return the packages in a file."""
    text = console.get(path).text
    if path.startswith("/activity.csv"):
        return [f"{row['target']}/{row['package']}" for row in csv.DictReader(io.StringIO(text))]
    return [f"{item['target']}/{item['package']}" for item in json.loads(text)["items"]]


@pytest.mark.quick_cases(every=6)
@pytest.mark.parametrize("path", ["/activity.csv", "/activity.json"])
@pytest.mark.parametrize(
    ("query", "expected"),
    [
        pytest.param("", ["berlin/gateway", "berlin/metrics", "lisbon/gateway"], id="all"),
        pytest.param("?target=berlin&q=metrics", ["berlin/metrics"], id="filters"),
        pytest.param("?actor=nobody", [], id="none"),
    ],
)
def test_a_file_has_the_filters_of_the_page(path: str, query: str, expected: list[str], console: ConsoleClient) -> None:
    assert sorted(read_packages(console, path + query)) == expected


def test_the_page_links_to_the_files_of_its_filters(console: ConsoleClient) -> None:
    text = console.get("/activity?target=berlin&page=1").text

    assert 'href="/activity.csv?target=berlin"' in text
    assert 'href="/activity.json?target=berlin"' in text


def test_the_browser_stores_the_file(console: ConsoleClient) -> None:
    response = console.get("/activity.csv")

    assert response.headers["content-type"] == "text/csv; charset=utf-8"
    assert response.headers["content-disposition"] == 'attachment; filename="activity.csv"'
    assert response.text.splitlines()[0] == "time,person,target,package,revision,commit,message,reason,actions"


def test_the_json_file_is_the_result_of_the_api(console: ConsoleClient) -> None:
    assert console.get("/activity.json").json() == console.get("/api/v1/activity").json()


@pytest.mark.slow
@pytest.mark.parametrize("path", ["/activity.csv", "/activity.json"])
def test_a_file_contains_only_readable_targets(path: str, console: ConsoleClient) -> None:
    rule = RoleRule("viewer", targets=LabelSelector((("region", "south"),)))
    sign_in(console, Session(ADA, Permissions((rule,))))

    assert read_packages(console, path) == ["lisbon/gateway"]
    assert "berlin" not in console.get(path).text
