"""`plan` after a `sync` that changed nothing prints the stored output of the pass, until an input changes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.command_line import CommandResult, run_in
from tests.support.git_repositories import git


@pytest.fixture
def demo(tmp_path: Path) -> Path:
    """Return the folder of a demo after a pass that changed nothing."""
    run(tmp_path, "demo", "demo")
    assert run(tmp_path / "demo", "sync", "config", "--fleet", "fleet.git").returncode == 0
    return tmp_path / "demo"


def run(folder: Path, *arguments: str) -> CommandResult:
    cache = {"RECONCILER_CACHE": str(folder.parent / "cache"), "HOME": str(folder)}
    return run_in(folder, {"PATH": os.environ["PATH"], **cache}, *arguments)


def plan(demo: Path, *options: str) -> CommandResult:
    return run(demo, "plan", "config", "--fleet", "fleet.git", *options)


def list_stored_passes(demo: Path) -> list[Path]:
    return [*(demo.parent / "cache" / "settled").iterdir()]


@pytest.mark.parametrize("output", ["text", "markdown", "json"])
def test_the_stored_output_equals_a_new_plan(demo: Path, output: str) -> None:
    stored = plan(demo, "-o", output)
    for file in list_stored_passes(demo):
        file.unlink()

    assert stored == plan(demo, "-o", output)
    assert stored.returncode == 0


def change_stored_output(demo: Path) -> None:
    (file,) = list_stored_passes(demo)
    file.write_text(file.read_text().replace("14 unchanged", "14 stored"))


def test_the_stored_output_is_used(demo: Path) -> None:
    change_stored_output(demo)

    assert "14 stored" in plan(demo).stdout


def test_a_changed_config_is_planned(demo: Path) -> None:
    regions = demo / "config" / "regions.yaml"
    regions.write_text(regions.read_text().replace("auth.eu-west", "login.eu-west"))

    assert plan(demo).returncode == 2


def test_a_fleet_with_a_moved_branch_is_planned(demo: Path) -> None:
    change_stored_output(demo)
    git(demo / "fleet.git", "update-ref", "-d", "refs/heads/drafts/berlin")

    assert "14 unchanged" in plan(demo).stdout


def test_other_settings_are_planned(demo: Path) -> None:
    change_stored_output(demo)
    (demo / "reconciler.yaml").write_text("guards: {max_delete_percent: 50}\n")

    assert "14 unchanged" in plan(demo).stdout
