"""Tests of `reconciler explain --at`: it explains a package at an earlier commit with the config of that time."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.support.command_line import CommandResult, run_in
from tests.support.git_repositories import git, read_refs
from tests.support.history_world import HistoryWorld, history_published
from tests.support.prepared_worlds import begin
from tests.support.world import World, config_map

API = ("berlin/gateway", "ConfigMap/endpoints", "/data/api")
ENVIRONMENT = {"PATH": os.environ["PATH"], "HOME": "/nonexistent"}


@pytest.fixture
def world(tmp_path: Path) -> HistoryWorld:
    return begin(tmp_path, history_published)


def run_explain(world: World, *arguments: str) -> CommandResult:
    places = ("--config", world.source, "--fleet", str(world.fleet), "--cache", str(world.folder / "cache"))
    return run_in(world.folder, ENVIRONMENT, "explain", *arguments, *places)


def explain_steps(world: World, *arguments: str) -> list[dict[str, Any]]:
    result = run_explain(world, *arguments, "-o", "json")
    assert result.returncode == 0, result.stderr
    (value,) = json.loads(result.stdout)["items"]
    entry: list[dict[str, Any]] = value["steps"]
    return entry


def read_head(world: HistoryWorld) -> str:
    return git(world.fleet, "rev-parse", "clusters/berlin")


def test_earlier_commit_is_explained_with_its_config(world: HistoryWorld) -> None:
    then = read_head(world)
    before = explain_steps(world, *API)
    world.change({"regions/north.yaml": "# moved down\n" + config_map("region-north", api="elsewhere")})
    world.publish()

    now, past = explain_steps(world, *API), explain_steps(world, *API, "--at", then)

    assert (now[-1]["after"], now[-1]["line"]) == ("elsewhere", before[-1]["line"] + 1)
    assert [(item["layer"], item["after"], item.get("line")) for item in past] == [
        (item["layer"], item["after"], item.get("line")) for item in before
    ]


def test_later_local_change_is_the_last_step(world: HistoryWorld) -> None:
    commit = world.edit("clusters/berlin", "gateway/deployment.yaml", "replicas: 2", "replicas: 7")

    result = explain_steps(world, "berlin/gateway", "Deployment/gateway", "/spec/replicas", "--at", commit)

    assert [(item["layer"], item["after"], item["without"]) for item in result] == [
        ("upstream", 2, {"value": 7}),
        ("edit", 7, {"value": 2}),
    ]


def test_ablation_of_a_local_change_is_the_value_of_the_last_layer(world: HistoryWorld) -> None:
    commit = world.edit("clusters/berlin", "gateway/endpoints.yaml", "api.north", "ours")

    result = explain_steps(world, *API, "--at", commit)

    assert [(item["layer"], item["after"], item["without"]["value"]) for item in result] == [
        ("upstream", "none", "ours"),
        ("injection", "api.north", "ours"),
        ("edit", "ours", "api.north"),
    ]


def test_earlier_commit_is_explained_offline(world: HistoryWorld, tmp_path: Path) -> None:
    then, expected = read_head(world), explain_steps(world, *API, "--at", "clusters/berlin")
    refs = read_refs(world.fleet)
    for path in (world.fleet, world.catalog):
        shutil.move(path, tmp_path / f"away-{path.name}")

    assert explain_steps(world, *API, "--at", then, "--offline") == expected
    assert refs["refs/heads/clusters/berlin"] == then


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        pytest.param(["berlin/gateway", "--at", "nowhere"], "nowhere", id="commit"),
        pytest.param(
            ["berlin/gatewoy", "--at", "clusters/berlin"],
            "this package has no status file at",
            id="package",
        ),
        pytest.param(["berlino/gateway", "--at", "clusters/berlin"], "there is no Repository or cluster", id="cluster"),
    ],
)
def test_unknown_name_is_reported(world: HistoryWorld, arguments: list[str], text: str) -> None:
    result = run_explain(world, *arguments)

    assert result.returncode == 3
    assert text in result.stderr


def test_unreadable_recorded_config_is_reported(world: HistoryWorld) -> None:
    status = world.text("clusters/berlin", ".reconciler/gateway.yaml")
    (config,) = (line.split()[-1] for line in status.splitlines() if line.strip().startswith("config:"))
    world.commit("clusters/berlin", {".reconciler/gateway.yaml": status.replace(config, "0b" * 20)})

    result = run_explain(world, "berlin/gateway", "--at", "clusters/berlin")

    assert result.returncode == 1
    assert "the re-render is not possible: the recorded config 0b0b0b0b0b0b cannot be read" in result.stdout
