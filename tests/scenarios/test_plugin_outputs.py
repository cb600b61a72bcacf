"""Tests of the values and the HelmRelease beside a Plugin, through whole passes: settings and local changes."""

import os
from pathlib import Path
from typing import Any

import pytest

from reconciler.krm.yaml import parse_yaml
from tests.support.command_line import run_in
from tests.support.git_repositories import assert_sound, git
from tests.support.policies import ATTACHED, patch, policy, publish
from tests.support.prepared_worlds import begin
from tests.support.presets import CLUSTERS, definition, from_secret, option, preset, preset_world, presets_published
from tests.support.world import World

LOGS, SHIPPER = "presets/logs.yaml", "logshipper.yaml"
PLUGIN, VALUES, RELEASE = "plugin.yaml", "values.yaml", "helmrelease.yaml"
BOTH = {"plugin_outputs": ["values", "helmrelease"]}
EVERYWHERE = {f"drafts/{cluster}" for cluster in CLUSTERS}


def build_world_with_published_outputs(folder: Path) -> World:
    world = preset_world(folder, rules=BOTH)
    world.sync()
    publish(world, *CLUSTERS)
    return world


@pytest.fixture
def world(tmp_path: Path) -> World:
    """All packages are published, with all outputs."""
    return begin(tmp_path, build_world_with_published_outputs)


def set_outputs(world: World, *outputs: str) -> World:
    """Return the same world with a daemon that has other outputs."""
    return World(world.folder, rules={"plugin_outputs": list(outputs)})


def build_file_path(branch: str, name: str) -> str:
    return f"plugins/logs-{branch.partition('/')[2]}/{name}"


def read_file(world: World, branch: str, name: str) -> str:
    return world.text(branch, build_file_path(branch, name))


def read_data(world: World, branch: str, name: str) -> Any:
    return parse_yaml(read_file(world, branch, name)).documents[0].data


def list_files(world: World, branch: str) -> list[str]:
    """Return the files of the Plugin of `logs` on a branch."""
    return world.paths(world.fleet, branch, build_file_path(branch, "").rstrip("/"))


def read_tree(world: World, branch: str) -> str:
    return git(world.fleet, "rev-parse", f"{branch}:plugins")


# Switches


@pytest.mark.slow
def test_outputs_are_added_and_removed_and_the_plugin_stays_unchanged(tmp_path: Path) -> None:
    world = begin(tmp_path, presets_published)
    before = {item: read_tree(world, f"clusters/{item}") for item in CLUSTERS}
    on = set_outputs(world, "values", "helmrelease")

    added = on.sync()

    assert added.changed_branches == EVERYWHERE
    for cluster in CLUSTERS:
        assert list_files(on, f"drafts/{cluster}") == [RELEASE, PLUGIN, VALUES]
        assert read_file(on, f"drafts/{cluster}", PLUGIN) == read_file(on, f"clusters/{cluster}", PLUGIN)
    assert on.sync().is_unchanged
    publish(on, *CLUSTERS)
    assert on.sync_until_unchanged().is_unchanged
    off = set_outputs(world)
    removed = off.sync()
    assert removed.changed_branches == EVERYWHERE
    assert off.sync().is_unchanged
    publish(off, *CLUSTERS)
    assert {item: read_tree(off, f"clusters/{item}") for item in CLUSTERS} == before
    assert off.sync_until_unchanged().is_unchanged
    assert_sound(off.fleet)


def test_an_unpublished_draft_contains_only_the_current_outputs(tmp_path: Path) -> None:
    world = preset_world(tmp_path, rules=BOTH)
    world.sync()

    values = set_outputs(world, "values")
    values.sync()
    assert list_files(values, "drafts/oslo") == [PLUGIN, VALUES]
    none = set_outputs(world)
    none.sync()

    assert list_files(none, "drafts/oslo") == [PLUGIN]
    assert none.sync().is_unchanged


def test_values_and_release_are_equal_and_contain_no_secret(world: World) -> None:
    values, release = read_data(world, "clusters/berlin", VALUES), read_data(world, "clusters/berlin", RELEASE)

    assert values == {
        "buffer": {"size": 32},
        "endpoint": "https://berlin-1.example.test",
        "global": {
            "greenhouse": {"clusterName": "berlin", "metadata": {"region": "berlin-1"}, "organizationName": "acme"}
        },
        "storage": "zfs",
    }
    assert release["spec"]["values"] == values
    assert release["spec"]["valuesFrom"] == [
        {"kind": "Secret", "name": "logs", "valuesKey": "token", "targetPath": "token"}
    ]
    assert "token" not in read_file(world, "clusters/berlin", VALUES)


def test_a_new_chart_changes_only_the_release(world: World) -> None:
    world.write({SHIPPER: definition().replace("1.9.3", "1.9.4")})

    after = world.sync()

    assert after.changed_branches == EVERYWHERE
    assert git(world.fleet, "diff", "--name-only", "clusters/lisbon", "drafts/lisbon").split() == [
        ".reconciler/plugins/logs-lisbon.yaml",
        "plugins/logs-lisbon/helmrelease.yaml",
    ]
    assert read_data(world, "drafts/lisbon", RELEASE)["spec"]["chartRef"]["name"] == "logshipper-1.9.4"
    named = [item["name"] for item in world.package_status("drafts/lisbon", "plugins/logs-lisbon")["inputs"]["objects"]]
    assert "logshipper" in named
    assert world.sync().is_unchanged


def test_deleting_a_preset_removes_all_files(world: World) -> None:
    world.write({LOGS: None})
    world.sync()
    world.merge("oslo", "squash", draft="removals/oslo")

    world.sync_until_unchanged()

    assert list_files(world, "clusters/oslo") == []
    assert world.sync_until_unchanged().is_unchanged


# Local changes


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        pytest.param(VALUES, "size: 32", "size: 99", id="values"),
        pytest.param(VALUES, "storage: zfs", "storage: zfs\nmore: 1", id="added-values"),
        pytest.param(RELEASE, "interval: 5m", "interval: 1h", id="interval"),
        pytest.param(RELEASE, "suspend: false", "suspend: true", id="suspend"),
    ],
)
def test_local_changes_of_outputs_are_reverted(world: World, name: str, old: str, new: str) -> None:
    before = read_tree(world, "clusters/berlin")
    world.edit("clusters/berlin", build_file_path("clusters/berlin", name), old, new)

    after = world.sync()

    assert after.changed_branches == {"drafts/berlin"}
    assert read_tree(world, "drafts/berlin") != read_tree(world, "clusters/berlin")
    assert read_file(world, "drafts/berlin", name).count(old) == 1
    assert world.sync().is_unchanged
    publish(world, "berlin")
    assert git(world.fleet, "rev-parse", "clusters/berlin:plugins/logs-berlin") == git(
        world.fleet, "rev-parse", f"{before}:logs-berlin"
    )
    assert world.sync_until_unchanged().is_unchanged


def test_labels_of_people_on_the_release_survive_config_changes(world: World) -> None:
    path = build_file_path("clusters/berlin", RELEASE)
    world.edit(
        "clusters/berlin", path, "\nspec:\n", '\n  labels:\n    on-call: night\n  annotations:\n    a: "1"\nspec:\n'
    )
    assert world.sync_until_unchanged().changed_branches == set()
    world.write({LOGS: preset(options=[option("buffer.size", 7), from_secret("token", "logs", "token")])})

    world.sync()

    result = read_data(world, "drafts/berlin", RELEASE)
    assert (result["metadata"]["labels"], result["metadata"]["annotations"]) == ({"on-call": "night"}, {"a": "1"})
    assert result["spec"]["values"]["buffer"] == {"size": 7}
    assert world.sync().is_unchanged


def test_a_suspended_plugin_keeps_all_its_files(world: World) -> None:
    world.edit(
        "clusters/oslo",
        build_file_path("clusters/oslo", PLUGIN),
        "\nspec:\n",
        "\n  annotations:\n    greenhouse.sap/suspend: x\nspec:\n",
    )
    world.sync_until_unchanged()

    off = set_outputs(world)
    off.sync()

    assert list_files(off, "drafts/berlin") == [PLUGIN]
    assert list_files(off, "drafts/oslo") == [RELEASE, PLUGIN, VALUES]
    assert off.sync().is_unchanged


# Override policies


def test_a_policy_that_people_attach_to_a_release_changes_it(world: World) -> None:
    world.write({"policies/slow.yaml": policy("slow", [patch("/spec/interval", "1h", {"clusters": ["oslo"]})])})
    path = build_file_path("clusters/oslo", RELEASE)
    world.edit("clusters/oslo", path, "\nspec:\n", f"\n  labels:\n    {ATTACHED}: slow\nspec:\n")
    world.sync()

    publish(world, "oslo")

    assert read_data(world, "clusters/oslo", RELEASE)["spec"]["interval"] == "1h"
    assert read_data(world, "clusters/berlin", RELEASE)["spec"]["interval"] == "5m"
    assert world.sync_until_unchanged().is_unchanged


# Errors


@pytest.mark.parametrize(
    ("rules", "code", "value"),
    [
        pytest.param("", 0, False, id="off"),
        pytest.param("rules: {plugin_outputs: [helmrelease]}\n", 1, True, id="on"),
    ],
)
def test_validate_reports_a_release_that_flux_would_refuse(tmp_path: Path, rules: str, code: int, value: bool) -> None:
    world = preset_world(tmp_path)
    world.write({LOGS: preset(options=[from_secret("to ken", "logs", "token")])})
    settings = f"config: {{url: {world.config}}}\nfleet: {{url: {world.fleet}}}\ncache: {tmp_path / 'cache'}\n"
    (tmp_path / "reconciler.yaml").write_text(settings + rules)

    result = run_in(tmp_path, {"PATH": os.environ["PATH"], "HOME": "/nonexistent"}, "validate")

    assert (result.returncode, "HelmReleaseInvalid: PluginPreset acme/logs" in result.stdout) == (code, value)


def test_a_release_that_flux_would_refuse_is_not_drafted_and_published_files_stay(world: World) -> None:
    world.write({LOGS: preset(options=[from_secret("to ken", "logs", "token")])})

    after = world.sync()

    assert after.changed_branches == set()
    assert "HelmReleaseInvalid" in after.codes
    assert list_files(world, "clusters/oslo") == [RELEASE, PLUGIN, VALUES]
    assert world.sync().is_unchanged


def test_a_secret_with_the_path_of_a_list_is_omitted_and_reported_on_the_draft(tmp_path: Path) -> None:
    world = preset_world(tmp_path, rules=BOTH)
    world.write({LOGS: preset(options=[from_secret("b[0].key", "logs", "b"), option("b[1].key", 2)])})

    world.sync()

    warnings = [warning["code"] for warning in world.package_status("drafts/oslo", "plugins/logs-oslo")["warnings"]]
    assert warnings.count("SecretPathShadowed") == 1
    assert "valuesFrom" not in read_data(world, "drafts/oslo", RELEASE)["spec"]
    assert read_data(world, "drafts/oslo", VALUES)["b"] == [None, {"key": 2}]
