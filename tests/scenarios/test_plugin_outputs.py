"""The values and the HelmRelease beside a Plugin, through whole passes: on and off, edits, policies (greenhouse 11)."""

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


def with_outputs_published(folder: Path) -> World:
    world = preset_world(folder, rules=BOTH)
    world.sync()
    publish(world, *CLUSTERS)
    return world


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Everything is published, with all outputs."""
    return begin(tmp_path, with_outputs_published)


def switched(world: World, *outputs: str) -> World:
    """Return the same world under a daemon with other outputs."""
    return World(world.folder, rules={"plugin_outputs": list(outputs)})


def file(branch: str, name: str) -> str:
    return f"plugins/logs-{branch.partition('/')[2]}/{name}"


def text_of(world: World, branch: str, name: str) -> str:
    return world.text(branch, file(branch, name))


def data(world: World, branch: str, name: str) -> Any:
    return parse_yaml(text_of(world, branch, name)).documents[0].data


def names(world: World, branch: str) -> list[str]:
    """Return the files of the Plugin of `logs` on a branch."""
    return world.paths(world.fleet, branch, file(branch, "").rstrip("/"))


def tree(world: World, branch: str) -> str:
    return git(world.fleet, "rev-parse", f"{branch}:plugins")


# on and off


def test_outputs_come_and_go_and_the_plugin_stays_as_it_is(tmp_path: Path) -> None:
    world = begin(tmp_path, presets_published)
    before = {item: tree(world, f"clusters/{item}") for item in CLUSTERS}
    on = switched(world, "values", "helmrelease")

    coming = on.sync()

    assert coming.changed_branches == EVERYWHERE
    for cluster in CLUSTERS:
        assert names(on, f"drafts/{cluster}") == [RELEASE, PLUGIN, VALUES]
        assert text_of(on, f"drafts/{cluster}", PLUGIN) == text_of(on, f"clusters/{cluster}", PLUGIN)
    assert on.sync().is_unchanged
    publish(on, *CLUSTERS)
    assert on.sync_until_unchanged().is_unchanged
    off = switched(world)
    going = off.sync()
    assert going.changed_branches == EVERYWHERE
    assert off.sync().is_unchanged
    publish(off, *CLUSTERS)
    assert {item: tree(off, f"clusters/{item}") for item in CLUSTERS} == before
    assert off.sync_until_unchanged().is_unchanged
    assert_sound(off.fleet)


def test_a_draft_that_nobody_has_published_takes_what_is_wanted_now(tmp_path: Path) -> None:
    world = preset_world(tmp_path, rules=BOTH)
    world.sync()

    values = switched(world, "values")
    values.sync()
    assert names(values, "drafts/oslo") == [PLUGIN, VALUES]
    none = switched(world)
    none.sync()

    assert names(none, "drafts/oslo") == [PLUGIN]
    assert none.sync().is_unchanged


def test_values_and_release_say_the_same_and_no_secret(world: World) -> None:
    values, release = data(world, "clusters/berlin", VALUES), data(world, "clusters/berlin", RELEASE)

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
    assert "token" not in text_of(world, "clusters/berlin", VALUES)


def test_a_new_chart_moves_the_release_alone(world: World) -> None:
    world.write({SHIPPER: definition().replace("1.9.3", "1.9.4")})

    after = world.sync()

    assert after.changed_branches == EVERYWHERE
    assert git(world.fleet, "diff", "--name-only", "clusters/lisbon", "drafts/lisbon").split() == [
        ".reconciler/plugins/logs-lisbon.yaml",
        "plugins/logs-lisbon/helmrelease.yaml",
    ]
    assert data(world, "drafts/lisbon", RELEASE)["spec"]["chartRef"]["name"] == "logshipper-1.9.4"
    named = [item["name"] for item in world.package_status("drafts/lisbon", "plugins/logs-lisbon")["inputs"]["objects"]]
    assert "logshipper" in named
    assert world.sync().is_unchanged


def test_a_preset_that_goes_takes_all_files_along(world: World) -> None:
    world.write({LOGS: None})
    world.sync()
    world.merge("oslo", "squash", draft="removals/oslo")

    world.sync_until_unchanged()

    assert names(world, "clusters/oslo") == []
    assert world.sync_until_unchanged().is_unchanged


# what people change


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        pytest.param(VALUES, "size: 32", "size: 99", id="values"),
        pytest.param(VALUES, "storage: zfs", "storage: zfs\nmore: 1", id="values-of-theirs"),
        pytest.param(RELEASE, "interval: 5m", "interval: 1h", id="a-spec"),
        pytest.param(RELEASE, "suspend: false", "suspend: true", id="a-switch"),
    ],
)
def test_what_people_change_is_put_right(world: World, name: str, old: str, new: str) -> None:
    before = tree(world, "clusters/berlin")
    world.edit("clusters/berlin", file("clusters/berlin", name), old, new)

    after = world.sync()

    assert after.changed_branches == {"drafts/berlin"}
    assert tree(world, "drafts/berlin") != tree(world, "clusters/berlin")
    assert text_of(world, "drafts/berlin", name).count(old) == 1
    assert world.sync().is_unchanged
    publish(world, "berlin")
    assert git(world.fleet, "rev-parse", "clusters/berlin:plugins/logs-berlin") == git(
        world.fleet, "rev-parse", f"{before}:logs-berlin"
    )
    assert world.sync_until_unchanged().is_unchanged


def test_labels_of_people_stay_on_the_release_through_changes_of_ours(world: World) -> None:
    path = file("clusters/berlin", RELEASE)
    world.edit(
        "clusters/berlin", path, "\nspec:\n", '\n  labels:\n    on-call: night\n  annotations:\n    a: "1"\nspec:\n'
    )
    assert world.sync_until_unchanged().changed_branches == set()
    world.write({LOGS: preset(options=[option("buffer.size", 7), from_secret("token", "logs", "token")])})

    world.sync()

    result = data(world, "drafts/berlin", RELEASE)
    assert (result["metadata"]["labels"], result["metadata"]["annotations"]) == ({"on-call": "night"}, {"a": "1"})
    assert result["spec"]["values"]["buffer"] == {"size": 7}
    assert world.sync().is_unchanged


def test_a_plugin_that_is_suspended_rests_with_all_its_files(world: World) -> None:
    world.edit(
        "clusters/oslo",
        file("clusters/oslo", PLUGIN),
        "\nspec:\n",
        "\n  annotations:\n    greenhouse.sap/suspend: x\nspec:\n",
    )
    world.sync_until_unchanged()

    off = switched(world)
    off.sync()

    assert names(off, "drafts/berlin") == [PLUGIN]
    assert names(off, "drafts/oslo") == [RELEASE, PLUGIN, VALUES]
    assert off.sync().is_unchanged


# with override policies


def test_a_policy_that_people_attach_to_a_release_changes_it(world: World) -> None:
    world.write({"policies/slow.yaml": policy("slow", [patch("/spec/interval", "1h", {"clusters": ["oslo"]})])})
    path = file("clusters/oslo", RELEASE)
    world.edit("clusters/oslo", path, "\nspec:\n", f"\n  labels:\n    {ATTACHED}: slow\nspec:\n")
    world.sync()

    publish(world, "oslo")

    assert data(world, "clusters/oslo", RELEASE)["spec"]["interval"] == "1h"
    assert data(world, "clusters/berlin", RELEASE)["spec"]["interval"] == "5m"
    assert world.sync_until_unchanged().is_unchanged


# what is wrong


@pytest.mark.parametrize(
    ("rules", "code", "value"),
    [
        pytest.param("", 0, False, id="off"),
        pytest.param("rules: {plugin_outputs: [helmrelease]}\n", 1, True, id="on"),
    ],
)
def test_validate_tells_what_flux_would_refuse(tmp_path: Path, rules: str, code: int, value: bool) -> None:
    world = preset_world(tmp_path)
    world.write({LOGS: preset(options=[from_secret("to ken", "logs", "token")])})
    settings = f"config: {{url: {world.config}}}\nfleet: {{url: {world.fleet}}}\ncache: {tmp_path / 'cache'}\n"
    (tmp_path / "reconciler.yaml").write_text(settings + rules)

    ended = run_in(tmp_path, {"PATH": os.environ["PATH"], "HOME": "/nonexistent"}, "validate")

    assert (ended.returncode, "HelmReleaseInvalid: PluginPreset/acme/logs" in ended.stdout) == (code, value)


def test_what_flux_would_refuse_is_drafted_nowhere_and_stays_where_it_is_published(world: World) -> None:
    world.write({LOGS: preset(options=[from_secret("to ken", "logs", "token")])})

    after = world.sync()

    assert after.changed_branches == set()
    assert "HelmReleaseInvalid" in after.codes
    assert names(world, "clusters/oslo") == [RELEASE, PLUGIN, VALUES]
    assert world.sync().is_unchanged


def test_a_secret_that_a_list_shadows_is_left_out_and_told_on_the_draft(tmp_path: Path) -> None:
    world = preset_world(tmp_path, rules=BOTH)
    world.write({LOGS: preset(options=[from_secret("b[0].key", "logs", "b"), option("b[1].key", 2)])})

    world.sync()

    warnings = [warning["code"] for warning in world.package_status("drafts/oslo", "plugins/logs-oslo")["warnings"]]
    assert warnings.count("SecretPathShadowed") == 1
    assert "valuesFrom" not in data(world, "drafts/oslo", RELEASE)["spec"]
    assert data(world, "drafts/oslo", VALUES)["b"] == [None, {"key": 2}]
