"""The command `report`: output to a file or to standard output, as a page or as JSON, and invalid arguments."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.end_to_end.test_cli import run, template

__all__ = ["template"]
WHERE = ("config", "--fleet", "fleet.git", "--cache", ".cache")


@pytest.mark.slow
def test_a_page_is_written_and_names_commands_for_this_fleet(template: Path, tmp_path: Path) -> None:
    file = tmp_path / "fleet.html"
    result = run(template, "report", *WHERE, "--output", str(file))
    text = file.read_text(encoding="utf-8")

    assert (result.returncode, result.stdout) == (0, f"{file}: 17 packages on 4 clusters\n"), result.stderr
    assert text.startswith("<!doctype html>")
    assert "reconciler propose berlin/gateway --config config --fleet fleet.git" in text


@pytest.mark.slow
def test_the_same_is_there_as_json_with_the_totals_of_the_last_pass(template: Path) -> None:
    result = run(template, "report", *WHERE, "-o", "json")
    data = json.loads(result.stdout)

    assert result.returncode == 0, result.stderr
    assert (data["summary"]["packages"], data["summary"]["status"]["drafted"]) == ({"draft": 17}, 17)
    assert [item["cluster"]["cluster"] for item in data["items"] if item["type"] == "cluster"] == [
        "berlin",
        "boston",
        "chicago",
        "lisbon",
    ]


def test_without_a_status_location_the_report_contains_the_rest(template: Path) -> None:
    result = run(template, "report", "config", "--cache", ".cache", "-o", "json")

    assert (result.returncode, "status" in json.loads(result.stdout)["summary"]) == (0, False), result.stderr


def test_a_terminal_is_no_place_for_a_page(template: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reconciler.cli.report.sys", SimpleNamespace(stdout=SimpleNamespace(isatty=lambda: True)))
    result = run(template, "report", *WHERE)

    assert result.returncode == 3
    assert "--output FILE" in result.stderr


def test_a_missing_folder_is_a_clear_error(template: Path, tmp_path: Path) -> None:
    result = run(template, "report", *WHERE, "--output", str(tmp_path / "no" / "fleet.html"))

    assert result.returncode == 3
    assert "No such file or directory" in result.stderr
    assert "Traceback" not in result.stderr
