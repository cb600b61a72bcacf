"""Tests of plugin presets through whole passes: add, change, remove, local changes and lost state."""

import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reconciler.krm.yaml import parse_yaml
from tests.support.command_line import CommandResult, run_in
from tests.support.git_repositories import assert_sound, git
from tests.support.policies import ATTACHED, format_object, patch, policy, publish
from tests.support.prepared_worlds import begin
from tests.support.presets import (
    CLUSTERS,
    GREENHOUSE,
    PRESET_LABEL,
    TEAM,
    cluster,
    definition,
    from_secret,
    option,
    organization,
    override,
    preset,
    preset_world,
    presets_drafted,
    presets_published,
    tier_selector,
)
from tests.support.world import MERGES, PassResult, World

LOGS, EDGE, SHIPPER = "presets/logs.yaml", "overrides/edge.yaml", "logshipper.yaml"
EVERYWHERE = {"drafts/berlin", "drafts/lisbon", "drafts/oslo"}


@pytest.fixture
def drafted(tmp_path: Path) -> World:
    """All Plugins are drafted: `logs` for three clusters, `metrics` for the two edge clusters."""
    return begin(tmp_path, presets_drafted)


@pytest.fixture
def world(tmp_path: Path) -> World:
    """The Plugins of `drafted`, all of them published."""
    return begin(tmp_path, presets_published)


def build_plugin_path(cluster: str, name: str = "logs") -> str:
    return f"plugins/{name}-{cluster}/plugin.yaml"


def read_plugin(world: World, branch: str, name: str = "logs") -> Any:
    """Return the Plugin of a preset on a branch."""
    return parse_yaml(world.text(branch, build_plugin_path(branch.partition("/")[2], name))).documents[0].data


def read_options(world: World, branch: str, name: str = "logs") -> dict[str, Any]:
    """Return the options of a Plugin on a branch. An option from a Secret has the reference as its value."""
    listed = read_plugin(world, branch, name)["spec"]["optionValues"]
    return {item["name"]: item.get("value", item.get("valueFrom")) for item in listed}


def build_logs(size: int = 32, **fields: Any) -> str:
    """Return the first version of the preset, with another size for Berlin."""
    values = [option("buffer.size", 128), from_secret("token", "logs", "token")]
    return preset(options=values, **{"overrides": {"berlin": [option("buffer.size", size)]}, **fields})


def list_plugins(world: World, branch: str) -> list[str]:
    """Return the Plugins on a branch."""
    return [path.partition("/")[0] for path in world.paths(world.fleet, branch, "plugins")]


def list_conflicts(world: World, branch: str, package: str) -> list[tuple[str, str]]:
    return [
        (conflict["file"], conflict.get("pointer", ""))
        for conflict in world.package_status(branch, package).get("conflicts", ())
    ]


def read_preset_status(world: World, name: str = "logs") -> Any:
    text = world.text("reconciler/status", f"objects/{TEAM}/PluginPreset/{name}.yaml")
    return parse_yaml(text).documents[0].data["status"]


def read_states(world: World, name: str = "logs") -> dict[str, str]:
    """Return the states of the Plugins of a preset, by cluster."""
    return {row["clusterName"]: row["state"] for row in read_preset_status(world, name)["pluginStatuses"]}


def read_condition(world: World, expected: str, name: str = "logs") -> tuple[str, str]:
    mapping = {item["type"]: item for item in read_preset_status(world, name)["conditions"]}
    return mapping[expected]["status"], mapping[expected]["message"]


# New Plugins


def test_a_preset_creates_a_plugin_on_each_selected_cluster(drafted: World) -> None:
    sizes = {item: read_options(drafted, f"drafts/{item}")["buffer.size"] for item in CLUSTERS}
    storage = {item: read_options(drafted, f"drafts/{item}")["storage"] for item in CLUSTERS}

    assert sizes == {"berlin": 32, "lisbon": 128, "oslo": 128}
    assert storage == {"berlin": "zfs", "lisbon": "fast", "oslo": "zfs"}
    assert list_plugins(drafted, "drafts/oslo") == ["logs-oslo", "metrics-oslo"]
    assert list_plugins(drafted, "drafts/lisbon") == ["logs-lisbon"]
    assert drafted.sync().is_unchanged
    assert_sound(drafted.fleet)


def test_expressions_are_evaluated_and_secrets_stay_references(drafted: World) -> None:
    result = read_options(drafted, "drafts/oslo")

    assert result["endpoint"] == "https://oslo-1.example.test"
    assert result["token"] == {"secret": {"name": "logs", "key": "token"}}


@pytest.mark.parametrize("merge_method", MERGES)
def test_plugins_are_published_with_every_merge_method(drafted: World, merge_method: str) -> None:
    drafted.merge("oslo", merge_method)

    after = drafted.sync()

    assert after.outcomes["oslo/plugins/logs-oslo"] == "published"
    assert drafted.record("oslo", "plugins/logs-oslo")["revision"] == 1
    assert drafted.sync().is_unchanged


def test_a_new_cluster_gets_its_plugins(world: World) -> None:
    world.write({"clusters/rome.yaml": cluster("rome", "edge")})

    after = world.sync()

    assert after.changed_branches == {"clusters/rome", "drafts/rome"}
    assert list_plugins(world, "drafts/rome") == ["logs-rome", "metrics-rome"]
    assert world.sync().is_unchanged


# Changes of the config


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize(
    ("files", "renders", "moved"),
    [
        pytest.param({LOGS: build_logs(16)}, 1, {"drafts/berlin"}, id="an-override-for-one-cluster"),
        pytest.param(
            {EDGE: override("edge", [option("storage", "btrfs")], clusterSelector=tier_selector("edge"))},
            4, {"drafts/berlin", "drafts/oslo"}, id="an-override-for-a-tier",
        ),
        pytest.param({"acme.yaml": organization(option("storage", "slow"))}, 1, {"drafts/lisbon"}, id="shadowed"),
        pytest.param({SHIPPER: definition(storage="slow")}, 0, set(), id="a-default-that-all-clusters-override"),
        pytest.param({SHIPPER: definition(size=65)}, 2, {"drafts/berlin", "drafts/oslo"}, id="a-default-of-two-clusters"),
        pytest.param({EDGE: None}, 4, {"drafts/berlin", "drafts/oslo"}, id="a-deleted-override"),
        pytest.param(
            {"clusters/oslo.yaml": cluster("oslo").replace("oslo-1", "oslo-2")}, 2, {"drafts/oslo"}, id="a-label"
        ),
        pytest.param(
            {"clusters/oslo.yaml": cluster("oslo", overrides=[option("buffer.size", 9)])}, 2, {"drafts/oslo"},
            id="an-override-of-a-cluster",
        ),
    ],
)  # fmt: skip
def test_a_config_change_updates_only_the_affected_drafts(
    world: World, files: dict[str, str | None], renders: int, moved: set[str]
) -> None:
    world.write(files)

    after = world.sync()

    assert (after.report.render_count, after.changed_branches) == (renders, moved)
    assert world.sync().is_unchanged


TWO_OVERRIDES = {"berlin": [option("buffer.size", 32)], "oslo": [option("storage", "nfs"), option("buffer.size", 8)]}
REVERSED = {name: list(reversed(item)) for name, item in reversed(TWO_OVERRIDES.items())}


@pytest.mark.parametrize(
    "files",
    [
        pytest.param({LOGS: build_logs(overrides=REVERSED)}, id="overrides-in-another-order"),
        pytest.param({LOGS: "# for all of us\n" + build_logs(overrides=TWO_OVERRIDES)}, id="a-comment"),
        pytest.param({LOGS: None, "moved/all.yaml": build_logs(overrides=TWO_OVERRIDES)}, id="another-file"),
        pytest.param(
            {"overrides/none.yaml": override("none", [option("storage", "x")], pluginDefinitionNames=["none"])},
            id="an-override-without-plugins",
        ),
    ],
)  # fmt: skip
def test_an_equivalent_config_change_renders_nothing(tmp_path: Path, files: dict[str, str | None]) -> None:
    world = begin(tmp_path, _build_world_with_two_overrides)
    world.write(files)

    after = world.sync()

    assert (after.report.render_count, after.changed_branches) == (0, set())
    assert world.sync().is_unchanged


def _build_world_with_two_overrides(folder: Path) -> World:
    world = preset_world(folder)
    world.write({LOGS: build_logs(overrides=TWO_OVERRIDES)})
    world.sync()
    publish(world, *CLUSTERS)
    return world


# Removed Plugins


def unselect_oslo(world: World) -> None:
    """Remove the edge label from Oslo, which has a Plugin of each preset."""
    world.write({"clusters/oslo.yaml": cluster("oslo", "-")})


def read_acknowledgement_hash(after: PassResult) -> str:
    """Return the hash that acknowledges the deletion of Plugins."""
    result = next(finding.message for finding in after.findings if finding.code == "DeletionHeld")
    match = re.search(r'ack-deletions: "(\w+)"', result)
    assert match, result
    return match[1]


def build_acknowledgement(deletion_hash: str) -> dict[str, dict[str, str]]:
    return {"annotations": {"reconciler.dev/ack-deletions": deletion_hash}}


def test_a_cluster_that_stops_matching_loses_its_plugins(world: World) -> None:
    unselect_oslo(world)

    after = world.sync()

    assert after.outcomes["oslo/plugins/logs-oslo"] == "proposed"
    assert (after.changed_branches, read_states(world)["oslo"]) == ({"removals/oslo"}, "PendingDeletion")
    assert world.sync().is_unchanged
    assert (read_states(world)["oslo"], read_condition(world, "Ready")[0]) == ("PendingDeletion", "True")
    world.merge("oslo", "squash", draft="removals/oslo")
    world.sync_until_unchanged()
    assert (list_plugins(world, "clusters/oslo"), "oslo" in read_states(world)) == ([], False)


def test_an_unpublished_plugin_is_withdrawn_from_its_draft(drafted: World) -> None:
    unselect_oslo(drafted)

    after = drafted.sync()

    assert (after.changed_branches, drafted.head("drafts/oslo")) == ({"drafts/oslo"}, "")
    assert drafted.sync().is_unchanged


def test_a_cluster_that_matches_again_keeps_its_plugins(world: World) -> None:
    unselect_oslo(world)
    world.sync()
    world.write({"clusters/oslo.yaml": cluster("oslo")})

    after = world.sync()

    assert (world.head("removals/oslo"), after.outcomes["oslo/plugins/logs-oslo"]) == ("", "published")
    assert after.changed_branches == {"removals/oslo"}
    assert world.sync().is_unchanged


def test_deletions_on_many_clusters_are_held_until_they_are_acknowledged(world: World) -> None:
    world = world.with_settings(guards={"max_delete_percent": 30})
    world.write({LOGS: build_logs(tiers=["core"])})
    held = world.sync()
    assert world.sync().is_unchanged
    result = read_condition(world, "DeletionHeld")
    world.write({LOGS: build_logs(tiers=["core"], marks=build_acknowledgement(read_acknowledgement_hash(held)))})

    after = world.sync()

    assert (held.outcomes["oslo/plugins/logs-oslo"], held.changed_branches) == ("DeletionHeld", set())
    assert (result[0], "2 of 3 Plugins" in result[1]) == ("True", True)
    assert (after.outcomes["oslo/plugins/logs-oslo"], after.changed_branches) == (
        "proposed",
        {"removals/berlin", "removals/oslo"},
    )
    assert world.sync().is_unchanged
    world.merge("oslo", "squash", draft="removals/oslo")
    world.sync_until_unchanged()
    assert list_plugins(world, "clusters/oslo") == ["metrics-oslo"]


def test_with_retain_a_cluster_that_stops_matching_keeps_the_file(world: World) -> None:
    world.write({LOGS: build_logs(deletionPolicy="Retain")})
    retaining = world.sync()
    unselect_oslo(world)

    after = world.sync()

    assert (retaining.changed_branches, after.outcomes["oslo/plugins/logs-oslo"]) == (set(), "orphaned")
    assert after.outcomes["oslo/plugins/metrics-oslo"] == "proposed"
    assert read_states(world) == {"berlin": "UpToDate", "lisbon": "UpToDate", "oslo": "Orphaned"}
    assert world.sync().is_unchanged
    world.merge("oslo", "squash", draft="removals/oslo")
    world.sync_until_unchanged()
    assert list_plugins(world, "clusters/oslo") == ["logs-oslo"]
    assert world.sync_until_unchanged().is_unchanged


def test_a_cluster_annotation_retains_its_plugins(world: World) -> None:
    marked = cluster("oslo").replace(
        '"labels"', '"annotations": {"greenhouse.sap/plugin-deletion": "retain"}, "labels"'
    )
    world.write({"clusters/oslo.yaml": marked})
    world.sync_until_unchanged()
    world.write({"clusters/oslo.yaml": marked.replace('"tier": "edge"', '"tier": "-"')})

    after = world.sync()

    assert (after.outcomes["oslo/plugins/logs-oslo"], after.changed_branches) == ("orphaned", set())
    assert read_states(world)["oslo"] == "Orphaned"
    assert world.sync().is_unchanged


def test_deleting_a_preset_removes_its_plugins(world: World) -> None:
    world.write({LOGS: None})

    after = world.sync()

    assert {after.outcomes[f"{entry}/plugins/logs-{entry}"] for entry in CLUSTERS} == {"proposed"}
    assert after.changed_branches == {f"removals/{entry}" for entry in CLUSTERS}
    assert world.sync().is_unchanged
    for item in CLUSTERS:
        world.merge(item, "squash", draft=f"removals/{item}")
    world.sync_until_unchanged()
    assert [list_plugins(world, f"clusters/{entry}") for entry in CLUSTERS] == [
        ["metrics-berlin"],
        [],
        ["metrics-oslo"],
    ]


def test_plugins_of_a_retaining_preset_stay_and_are_adopted_when_it_returns(world: World) -> None:
    world.write({LOGS: build_logs(deletionPolicy="Retain")})
    world.sync()
    world.write({LOGS: None})
    pass_result = world.sync()
    assert world.sync_until_unchanged().is_unchanged
    retained = world.head("removals/oslo")
    world.write({LOGS: build_logs(16, deletionPolicy="Retain")})

    after = world.sync()

    assert (pass_result.changed_branches, retained) == (set(), "")
    assert pass_result.outcomes["oslo/plugins/logs-oslo"] == "orphaned"
    assert (after.outcomes["oslo/plugins/logs-oslo"], after.changed_branches) == ("adopted", {"drafts/berlin"})
    assert read_options(world, "drafts/berlin")["buffer.size"] == 16
    assert world.sync_until_unchanged().is_unchanged


def test_a_preset_can_prevent_all_deletions(world: World) -> None:
    prevented = {"annotations": {"greenhouse.sap/prevent-deletion": "true"}}
    world.write({LOGS: build_logs(marks=prevented)})
    world.sync()
    world.write({"clusters/lisbon.yaml": cluster("lisbon", "-")})

    after = world.sync()

    assert (after.outcomes["lisbon/plugins/logs-lisbon"], after.changed_branches) == ("DeletionHeld", set())
    assert "prevent-deletion" in read_condition(world, "DeletionHeld")[1]
    assert world.sync().is_unchanged


# Foreign Plugins and local changes


FOREIGN = format_object("Plugin", "logs-oslo", {"optionValues": [], "own": True}, TEAM, GREENHOUSE, labels={"a": "b"})


def _build_world_with_foreign_plugin(folder: Path) -> World:
    world = preset_world(folder)
    world.write({"clusters/oslo.yaml": cluster("oslo", "-")})
    world.sync()
    world.commit("clusters/oslo", {build_plugin_path("oslo"): FOREIGN})
    world.write({"clusters/oslo.yaml": cluster("oslo")})
    return world


def test_a_foreign_plugin_is_skipped_and_adopted_by_its_label(tmp_path: Path) -> None:
    world = begin(tmp_path, _build_world_with_foreign_plugin)
    skipped = world.sync()
    result = read_condition(world, "PluginSkipped")
    assert world.sync().is_unchanged
    labelled = FOREIGN.replace('"a": "b"', f'"a": "b", "{PRESET_LABEL}": "logs"')
    world.commit("clusters/oslo", {build_plugin_path("oslo"): labelled})

    after = world.sync()

    assert result == ("True", "Skipped existing plugins: logs-oslo")
    assert "PluginNotManaged" in skipped.codes
    assert world.text("clusters/oslo", build_plugin_path("oslo")) == labelled
    assert after.outcomes["oslo/plugins/logs-oslo"] == "draft"
    assert read_options(world, "drafts/oslo")["storage"] == "zfs"
    assert read_plugin(world, "drafts/oslo")["metadata"]["labels"]["a"] == "b"
    assert "own" not in read_plugin(world, "drafts/oslo")["spec"]
    assert world.sync_until_unchanged().is_unchanged
    publish(world, "oslo")
    assert world.record("oslo", "plugins/logs-oslo")["owned"]


def test_labels_of_people_survive_config_changes(world: World) -> None:
    world.edit("clusters/oslo", build_plugin_path("oslo"), "  labels:\n", "  labels:\n    pager: night # until May\n")
    world.sync_until_unchanged()
    world.write({LOGS: preset(options=[option("buffer.size", 7)])})

    world.sync()

    assert "pager: night # until May" in world.text("drafts/oslo", build_plugin_path("oslo"))
    assert read_options(world, "drafts/oslo")["buffer.size"] == 7
    assert list_conflicts(world, "drafts/oslo", "plugins/logs-oslo") == []
    assert world.sync().is_unchanged
    publish(world, "oslo")
    assert read_plugin(world, "clusters/oslo")["metadata"]["labels"]["pager"] == "night"


@pytest.mark.parametrize("branch", ["clusters/oslo", "drafts/oslo"])
def test_an_option_of_the_config_is_restored_with_a_conflict_record(tmp_path: Path, branch: str) -> None:
    world = begin(tmp_path, presets_drafted if branch.startswith("drafts") else presets_published)
    world.edit(branch, build_plugin_path("oslo"), "value: zfs", "value: nfs")

    world.sync()

    assert read_options(world, "drafts/oslo")["storage"] == "zfs"
    assert [conflict[0] for conflict in list_conflicts(world, "drafts/oslo", "plugins/logs-oslo")] == ["plugin.yaml"]
    assert world.sync().is_unchanged
    publish(world, "oslo")
    assert read_options(world, "clusters/oslo")["storage"] == "zfs"
    assert world.sync().is_unchanged


def test_a_plugin_that_people_delete_is_drafted_again(world: World) -> None:
    world.commit("clusters/oslo", {build_plugin_path("oslo"): None})

    after = world.sync()

    assert (after.outcomes["oslo/plugins/logs-oslo"], after.changed_branches) == ("draft", {"drafts/oslo"})
    assert world.sync().is_unchanged


def test_a_suspended_plugin_is_neither_changed_nor_removed(world: World) -> None:
    world.edit(
        "clusters/oslo", build_plugin_path("oslo"), "  labels:\n",
        '  annotations: {greenhouse.sap/suspend: "true"}\n  labels:\n',
    )  # fmt: skip
    world.sync_until_unchanged()
    world.write({LOGS: preset(options=[option("buffer.size", 7)])})
    changed = world.sync()
    assert world.sync_until_unchanged().is_unchanged
    world.write({LOGS: None})

    after = world.sync()

    assert changed.changed_branches == {"drafts/berlin", "drafts/lisbon"}
    assert after.outcomes["oslo/plugins/logs-oslo"] == "DeletionHeld"
    assert world.head("removals/oslo") == ""
    assert world.sync_until_unchanged().is_unchanged


# Missing objects


def test_without_its_definition_a_preset_waits_until_the_definition_exists(tmp_path: Path) -> None:
    world = preset_world(tmp_path)
    world.write({SHIPPER: None})
    first = world.sync()
    assert world.sync().is_unchanged
    result = read_condition(world, "PluginDefinitionNotFound")
    world.write({SHIPPER: definition()})

    after = world.sync()

    assert ("PluginDefinitionNotFound" in first.codes, result[0]) == (True, "True")
    assert first.outcomes == {}
    assert set(after.outcomes.values()) == {"draft"}
    assert after.changed_branches >= EVERYWHERE
    assert world.sync().is_unchanged


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize(
    "files",
    [
        pytest.param({SHIPPER: None}, id="no-definition"),
        pytest.param({SHIPPER: "kind: ["}, id="a-definition-that-cannot-be-read"),
        pytest.param({LOGS: "kind: ["}, id="a-preset-that-cannot-be-read"),
        pytest.param({LOGS: build_logs(clusterSelector={})}, id="a-preset-without-selector"),
        pytest.param({"clusters/oslo.yaml": "kind: ["}, id="a-cluster-that-cannot-be-read"),
        pytest.param({EDGE: override("edge", [{"name": "storage"}])}, id="an-override-without-value"),
        pytest.param({EDGE: "kind: ["}, id="an-override-that-cannot-be-read"),
        pytest.param({"acme.yaml": "kind: ["}, id="an-organization-that-cannot-be-read"),
        pytest.param({"copy.yaml": build_logs()}, id="a-preset-defined-twice"),
        pytest.param({"other.yaml": "kind: ["}, id="an-unrelated-unreadable-file"),
    ],
)
def test_plugins_stay_while_config_objects_are_missing_or_unreadable(
    world: World, files: dict[str, str | None]
) -> None:
    before = {path: (world.config / path).read_text() for path in files if (world.config / path).exists()}
    heads = {item: world.head(f"clusters/{item}") for item in CLUSTERS}
    world.write(files)

    after = world.sync()

    assert after.changed_branches == set()
    assert after.findings
    assert world.sync_until_unchanged().is_unchanged
    world.write({**dict.fromkeys(files), **before})
    repaired = world.sync()
    assert repaired.changed_branches == set()
    assert set(repaired.outcomes.values()) == {"published"}
    assert {item: world.head(f"clusters/{item}") for item in CLUSTERS} == heads
    assert world.sync_until_unchanged().is_unchanged


def test_deleting_a_cluster_removes_no_plugins(world: World) -> None:
    world.write({"clusters/oslo.yaml": None})

    after = world.sync()

    assert (after.changed_branches, list_plugins(world, "clusters/oslo")) == (set(), ["logs-oslo", "metrics-oslo"])
    assert world.sync_until_unchanged().is_unchanged
    world.write({"clusters/oslo.yaml": cluster("oslo")})
    assert world.sync().outcomes["oslo/plugins/logs-oslo"] == "published"
    assert world.sync_until_unchanged().is_unchanged


# Lost state


@pytest.mark.parametrize("start", [presets_drafted, presets_published])
def test_with_lost_state_all_plugins_are_recognized(tmp_path: Path, start: Callable[[Path], World]) -> None:
    world = begin(tmp_path, start)
    before = {item: (world.head(f"clusters/{item}"), world.head(f"drafts/{item}")) for item in CLUSTERS}
    git(world.fleet, "update-ref", "-d", "refs/reconciler/state/oslo")

    world.sync()

    assert {item: (world.head(f"clusters/{item}"), world.head(f"drafts/{item}")) for item in CLUSTERS} == before
    assert world.sync_until_unchanged().is_unchanged
    world.write({LOGS: build_logs(16)})
    assert world.sync().changed_branches == {"drafts/berlin"}
    assert world.sync().is_unchanged


def test_a_second_daemon_during_a_pass_produces_one_commit(world: World) -> None:
    world.write({LOGS: build_logs(16)})

    world.sync_while(world.sync)

    assert git(world.fleet, "rev-list", "--count", "clusters/berlin..drafts/berlin") == "1"
    assert world.sync_until_unchanged().is_unchanged


# Override policies


def test_a_policy_that_a_preset_propagates_by_label_overrides_its_plugins(world: World) -> None:
    labels_and_annotations = {
        "labels": {ATTACHED: "slow"},
        "annotations": {"greenhouse.sap/propagate-labels": ATTACHED},
    }
    slow = policy("slow", [patch("/spec/displayName", "slow logs", {"clusters": ["oslo"]})])
    world.write({LOGS: build_logs(marks=labels_and_annotations), "policies/slow.yaml": slow})
    world.sync()

    publish(world, *CLUSTERS)

    assert read_plugin(world, "clusters/oslo")["spec"]["displayName"] == "slow logs"
    assert read_plugin(world, "clusters/berlin")["spec"]["displayName"] == "logs berlin"
    assert read_plugin(world, "clusters/oslo")["metadata"]["labels"].get(ATTACHED) is None
    world.write({"policies/slow.yaml": slow.replace("slow logs", "slower logs")})
    after = world.sync()
    assert (after.report.render_count, after.changed_branches) == (1, {"drafts/oslo"})
    assert world.sync().is_unchanged


# Secrets


PLANTED = "hunter2-in-plain-sight"
SHIPPER_REF = {"kind": "ClusterPluginDefinition", "name": "logshipper"}
PLANTED_BY = {
    "the-preset": {LOGS: preset(options=[option("token", PLANTED)])},
    "the-preset-for-one-cluster": {LOGS: build_logs(overrides={"berlin": [option("token", PLANTED)]})},
    "an-override-that-all-clusters-replace": {"overrides/all.yaml": override("all", [option("token", PLANTED)])},
    "an-override-of-all-clusters": {
        EDGE: override("edge", [option("token", PLANTED)], clusterSelector=tier_selector("edge"))
    },
    "the-organization": {"acme.yaml": organization(option("token", PLANTED))},
    "a-cluster": {"clusters/oslo.yaml": cluster("oslo", overrides=[option("token", PLANTED)])},
    "a-separate-plugin": {
        "alone.yaml": format_object(
            "Plugin",
            "alone",
            {"clusterName": "oslo", "pluginDefinitionRef": SHIPPER_REF, "optionValues": [option("token", PLANTED)]},
            TEAM,
            GREENHOUSE,
        )
    },
    "a-value-replaced-by-a-reference": {
        LOGS: preset(options=[option("token", PLANTED)]),
        "acme.yaml": organization(from_secret("token", "logs", "token")),
    },
    "a-value-replaced-by-a-reference-on-one-cluster": {
        LOGS: preset(options=[option("token", PLANTED)], overrides={"oslo": [from_secret("token", "logs", "oslo")]})
    },
    "two-sources": {"acme.yaml": organization({**from_secret("token", "logs", "token"), "value": PLANTED})},
    "two-names": {"acme.yaml": organization({"name": "token", "path": "tokens", "value": PLANTED})},
    "two-values": {"acme.yaml": organization(option("token", PLANTED), option("token", f"{PLANTED}-too"))},
    "two-values-of-an-override": {EDGE: override("edge", [option("token", PLANTED), option("token", "none")])},
    "an-unknown-field": {"acme.yaml": organization({"name": "token", "values": PLANTED})},
    "an-invalid-reference": {"acme.yaml": organization({"name": "token", "valueFrom": {"secret": PLANTED}})},
    "a-mapping-for-a-list": {
        "acme.yaml": format_object("Organization", TEAM, {"pluginOverrides": {"token": PLANTED}}, api=GREENHOUSE)
    },
    "a-mapping-for-the-list-of-clusters": {LOGS: build_logs(clusterOptionOverrides={"oslo": {"token": PLANTED}})},
    "a-text-for-a-list": {
        "acme.yaml": format_object("Organization", TEAM, {"pluginOverrides": PLANTED}, api=GREENHOUSE)
    },
    "invalid-yaml": {"acme.yaml": f"{organization()}    token: {PLANTED}: [\n"},
    "a-mapping-for-a-text": {"acme.yaml": organization(option("token", {"in": [PLANTED]}))},
    "an-expression": {"acme.yaml": organization({"name": "token", "expression": PLANTED})},
    "an-expression-that-fails": {
        "acme.yaml": organization({"name": "token", "expression": f"{PLANTED}-${{global.no}}"})
    },
    "the-definition": {SHIPPER: definition().replace('"type": "secret"', f'"type": "secret", "default": "{PLANTED}"')},
}


def read_all_objects(repository: Path) -> bytes:
    """Return every object of a repository, reachable or not, and every ref."""
    listed = [["cat-file", "--batch-all-objects", "--batch"], ["for-each-ref"]]
    values = [
        subprocess.run(["git", "-C", repository, *item], capture_output=True, check=True).stdout for item in listed
    ]
    return b"\n".join(values)


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize("files", PLANTED_BY.values(), ids=PLANTED_BY)
def test_a_plain_text_secret_is_not_written_anywhere(
    tmp_path: Path, files: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    world = begin(tmp_path, presets_published)
    world.write(files)
    after = world.sync()
    world.sync_until_unchanged()
    results = [run_command(world, "plan"), run_command(world, "validate"), run_command(world, "drafts")]
    results.append(run_command(world, "render", "--output", str(tmp_path / "out")))

    rendered = b"".join(path.read_bytes() for path in (tmp_path / "out").rglob("*") if path.is_file())
    text = "".join(result.stdout + result.stderr for result in results) + "".join(capsys.readouterr())
    repository_content = read_all_objects(world.fleet)
    assert b"logs-oslo" in repository_content
    assert PLANTED.encode() not in repository_content + rendered
    assert PLANTED not in text + str(after.findings)


def run_command(world: World, *arguments: str) -> CommandResult:
    """Run a command in the folder of the world."""
    (world.folder / "reconciler.yaml").write_text(
        f"config: {{url: {world.config}}}\nfleet: {{url: {world.fleet}}}\ncache: {world.folder / 'cache'}\n"
    )
    return run_in(world.folder, {"PATH": os.environ["PATH"], "HOME": "/nonexistent"}, *arguments)
