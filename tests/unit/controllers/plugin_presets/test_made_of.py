"""What a status file names as the objects that a Plugin was made of (design 10.28, 10.29)."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tests.unit.controllers.plugin_presets.presets_world import (
    EAST,
    cluster,
    definition,
    given,
    option,
    organization,
    override,
    preset,
    room,
    secret,
    variant_of,
)

FILES = {
    "east.yaml": cluster("east", {"tier": "edge", "metadata.greenhouse.sap/region": "north"}),
    "acme.yaml": organization([given("size", 2)]),
    "shipper.yaml": definition([option("size", "int", 1), option("mode", default="fast"), option("key", "secret")]),
    "logs.yaml": preset([given("size", 3)]),
    "loses.yaml": override([given("size", 4)], "loses", mode="Default"),
}


def objects(files: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """Return them by kind and name."""
    provenance = variant_of(room(files), "east/logs-east").provenance
    assert provenance is not None
    return {f"{item['kind']}/{item['name']}": item for item in provenance.list_objects()}


def test_they_are_those_whose_word_counts() -> None:
    assert {name: (item["namespace"], item["file"]) for name, item in objects(FILES).items()} == {
        "Cluster/east": ("acme", "east.yaml"),
        "Organization/acme": ("", "acme.yaml"),
        "PluginDefinition/shipper": ("acme", "shipper.yaml"),
        "PluginPreset/logs": ("acme", "logs.yaml"),
    }


def test_a_comment_and_a_moved_file_are_no_other_input() -> None:
    """Design 10.9"""
    moved = {**FILES, "org/acme.yaml": "# ours\n" + FILES["acme.yaml"]}
    del moved["acme.yaml"]

    before, after = objects(FILES), objects(moved)

    assert after.pop("Organization/acme") == {**before.pop("Organization/acme"), "file": "org/acme.yaml"}
    assert after == before
    facts = [variant_of(room(files), "east/logs-east").dependencies for files in (FILES, moved)]
    assert facts[0] == facts[1]


def test_what_is_said_to_the_plugin_is_another_hash() -> None:
    changed = objects({**FILES, "acme.yaml": organization([given("size", 5)])})
    unchanged = objects({**FILES, "loses.yaml": override([given("size", 9)], "loses", mode="Default")})

    hashes = {name: item["hash"] for name, item in objects(FILES).items()}
    assert {name for name, item in changed.items() if item["hash"] != hashes[name]} == {"Organization/acme"}
    assert {name: item["hash"] for name, item in unchanged.items()} == hashes


@pytest.mark.parametrize(
    ("entry", "is_masked"),
    [
        pytest.param(given("key", "vault+kvv2:///a/b"), True, id="what-a-vault-resolves"),
        pytest.param(secret("key"), False, id="reference"),
    ],
)
def test_the_hash_of_what_a_secret_option_holds_is_not_told(entry: Mapping[str, object], is_masked: bool) -> None:
    files = {**FILES, "east.yaml": EAST, "logs.yaml": preset([entry])}

    assert (objects(files)["PluginPreset/logs"]["hash"] == "*****") is is_masked
