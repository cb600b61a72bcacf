"""`plan` after a `sync` that changed nothing prints the stored output of the pass, until an input changes."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.support.command_line import CommandResult, run_in
from tests.support.git_repositories import commit_files, git
from tests.support.programs import find_program
from tests.support.world import variant

CHART = "apiVersion: v2\nname: web\nversion: 1.0.0\n"
SERVICE = "apiVersion: v1\nkind: Service\nmetadata:\n  name: web\n"


@pytest.fixture
def demo(tmp_path: Path) -> Path:
    """Return the folder of a demo after a pass that changed nothing."""
    run(tmp_path, "demo", "demo")
    assert sync(tmp_path / "demo").returncode == 0
    return tmp_path / "demo"


def run(folder: Path, *arguments: str) -> CommandResult:
    cache = {"RECONCILER_CACHE": str(folder.parent / "cache"), "HOME": str(folder)}
    return run_in(folder, {"PATH": os.environ["PATH"], **cache}, *arguments)


def plan(demo: Path, *options: str) -> CommandResult:
    return run(demo, "plan", "config", "--fleet", "fleet.git", *options)


def sync(demo: Path) -> CommandResult:
    return run(demo, "sync", "config", "--fleet", "fleet.git")


def list_stored_passes(demo: Path) -> list[Path]:
    return [*(demo.parent / "cache" / "settled").iterdir()]


@pytest.mark.slow
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


def write_infos(demo: Path) -> None:
    """Write a chart in the config, and a package from a chart with a hook."""
    hook = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: check\n  annotations: {helm.sh/hook: test}\n"
    files = {"Chart.yaml": CHART, "templates/service.yaml": SERVICE, "templates/check.yaml": hook}
    data = {f"web/{path}": text.encode() for path, text in files.items()}
    commit = commit_files(demo / "catalog.git", "refs/heads/main", data)
    git(demo / "catalog.git", "update-ref", "refs/tags/web/v1", commit)
    folder = demo / "config" / "charts" / "web"
    folder.mkdir(parents=True)
    (folder / "Chart.yaml").write_text(CHART)
    (demo / "config" / "web.yaml").write_text(variant("web", "berlin", "web", extra="helm: {namespace: shop}"))
    (demo / "reconciler.yaml").write_text(f"sources: {{helm: {{program: {find_program('helm')}}}}}\n")


@pytest.mark.slow
@pytest.mark.parametrize("output", ["text", "markdown", "json"])
def test_the_stored_output_contains_infos(demo: Path, output: str) -> None:
    write_infos(demo)
    sync(demo)
    sync(demo)
    stored = plan(demo, "-o", output)
    stored_passes = list_stored_passes(demo)
    assert any(json.loads(file.read_text())["plan_texts"] for file in stored_passes)
    for file in stored_passes:
        file.unlink()

    assert stored == plan(demo, "-o", output)
    assert stored.returncode == 0
    assert "ChartInConfig" in stored.stdout
    assert "HookLeftOut" in stored.stdout


@pytest.mark.slow
def test_the_output_with_warnings_is_not_stored(demo: Path) -> None:
    policy = (demo / "config" / "image-mirror.yaml").read_text()
    unused = policy.replace("name: image-mirror", "name: unused").replace("name: gateway", "name: absent")
    (demo / "config" / "unused.yaml").write_text(unused)
    assert "PolicyUnused" in sync(demo).stdout
    sync(demo)

    (file,) = list_stored_passes(demo)
    assert json.loads(file.read_text())["plan_texts"] == {}
    assert "PolicyUnused" in plan(demo).stdout


@pytest.mark.slow
def test_a_changed_config_is_planned(demo: Path) -> None:
    regions = demo / "config" / "regions.yaml"
    regions.write_text(regions.read_text().replace("auth.eu-west", "login.eu-west"))

    assert plan(demo).returncode == 2


@pytest.mark.slow
def test_a_fleet_with_a_moved_branch_is_planned(demo: Path) -> None:
    change_stored_output(demo)
    git(demo / "fleet.git", "update-ref", "-d", "refs/heads/drafts/berlin")

    assert "14 unchanged" in plan(demo).stdout


@pytest.mark.slow
def test_other_settings_are_planned(demo: Path) -> None:
    change_stored_output(demo)
    (demo / "reconciler.yaml").write_text("guards: {max_delete_percent: 50}\n")

    assert "14 unchanged" in plan(demo).stdout
