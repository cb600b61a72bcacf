"""Tests of the objects of a Plugin in its status file: names, files and hashes."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tests.unit.controllers.plugin_presets.controller_world import (
    EAST,
    build_cluster,
    build_definition,
    build_option,
    build_organization,
    build_override,
    build_preset,
    build_secret_value,
    build_value,
    find_variant,
    run_controller,
)

FILES = {
    "east.yaml": build_cluster("east", {"tier": "edge", "metadata.greenhouse.sap/region": "north"}),
    "acme.yaml": build_organization([build_value("size", 2)]),
    "shipper.yaml": build_definition(
        [build_option("size", "int", 1), build_option("mode", default="fast"), build_option("key", "secret")]
    ),
    "logs.yaml": build_preset([build_value("size", 3)]),
    "loses.yaml": build_override([build_value("size", 4)], "loses", mode="Default"),
}


def list_used_objects(files: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """Return the objects of a Plugin by kind and name."""
    provenance = find_variant(run_controller(files), "east/logs-east").provenance
    assert provenance is not None
    return {f"{item['kind']}/{item['name']}": item for item in provenance.list_objects()}


def test_objects_with_an_effect_are_listed() -> None:
    assert {name: (item["namespace"], item["file"]) for name, item in list_used_objects(FILES).items()} == {
        "Cluster/east": ("acme", "east.yaml"),
        "Organization/acme": ("", "acme.yaml"),
        "PluginDefinition/shipper": ("acme", "shipper.yaml"),
        "PluginPreset/logs": ("acme", "logs.yaml"),
    }


def test_comment_and_moved_file_do_not_change_the_hash() -> None:
    moved_files = {**FILES, "org/acme.yaml": "# ours\n" + FILES["acme.yaml"]}
    del moved_files["acme.yaml"]

    before, after = list_used_objects(FILES), list_used_objects(moved_files)

    assert after.pop("Organization/acme") == {**before.pop("Organization/acme"), "file": "org/acme.yaml"}
    assert after == before
    facts = [find_variant(run_controller(files), "east/logs-east").dependencies for files in (FILES, moved_files)]
    assert facts[0] == facts[1]


def test_hash_covers_only_options_of_the_plugin() -> None:
    changed = list_used_objects({**FILES, "acme.yaml": build_organization([build_value("size", 5)])})
    unchanged = list_used_objects(
        {**FILES, "loses.yaml": build_override([build_value("size", 9)], "loses", mode="Default")}
    )

    hashes = {name: item["hash"] for name, item in list_used_objects(FILES).items()}
    assert {name for name, item in changed.items() if item["hash"] != hashes[name]} == {"Organization/acme"}
    assert {name: item["hash"] for name, item in unchanged.items()} == hashes


@pytest.mark.parametrize(
    ("entry", "is_masked"),
    [
        pytest.param(build_value("key", "vault+kvv2:///a/b"), True, id="a-vault-reference"),
        pytest.param(build_secret_value("key"), False, id="reference"),
    ],
)
def test_hash_of_a_literal_secret_is_masked(entry: Mapping[str, object], is_masked: bool) -> None:
    files = {**FILES, "east.yaml": EAST, "logs.yaml": build_preset([entry])}

    assert (list_used_objects(files)["PluginPreset/logs"]["hash"] == "*****") is is_masked
