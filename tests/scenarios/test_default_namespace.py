"""Tests of namespaced objects without a namespace: their namespace is `default`."""

from __future__ import annotations

from pathlib import Path

from reconciler.krm.yaml import parse_yaml
from tests.support.components import component_world
from tests.support.presets import definition, preset_world
from tests.support.world import World, repository


def remove_namespace(world: World, namespace: str) -> None:
    """Remove a namespace from all objects of a config."""
    for file in world.config.rglob("*.yaml"):
        file.write_text(file.read_text().replace(f', "namespace": "{namespace}"', ""))


def list_drafted_files(world: World, cluster: str) -> list[str]:
    return [path for path in world.paths(world.fleet, f"drafts/{cluster}") if not path.startswith(".reconciler/")]


def test_greenhouse_objects_without_a_namespace_create_the_same_packages(tmp_path: Path) -> None:
    stated, unstated = preset_world(tmp_path / "stated"), preset_world(tmp_path / "unstated")
    remove_namespace(unstated, "acme")
    for world in (stated, unstated):
        world.write({"definition.yaml": definition("other").replace("ClusterPluginDefinition", "PluginDefinition")})
        world.sync()

    assert list_drafted_files(unstated, "berlin") == list_drafted_files(stated, "berlin") != []
    # Oslo has no Repository. Its Cluster object defines the target.
    assert list_drafted_files(unstated, "oslo") == list_drafted_files(stated, "oslo") != []
    (path,) = (path for path in list_drafted_files(unstated, "oslo") if path.startswith("plugins/logs-oslo/plugin"))
    assert parse_yaml(unstated.text("drafts/oslo", path)).documents[0].data["metadata"]["namespace"] == "default"
    assert unstated.sync_until_unchanged().is_unchanged


def test_components_without_a_namespace_are_in_default(tmp_path: Path) -> None:
    world = component_world(tmp_path)
    remove_namespace(world, "shop")

    result = world.sync()

    assert {finding.severity.value for finding in result.findings} <= {"info", "warning"}
    assert "components/staging/default/cart/deployment-cart.yaml" in list_drafted_files(world, "berlin")
    assert world.sync_until_unchanged().is_unchanged


def test_override_policy_without_a_namespace_applies_to_resources_in_default(tmp_path: Path) -> None:
    world = World.create(tmp_path)
    policy = (
        "apiVersion: core.kubeadmiral.io/v1alpha1\nkind: OverridePolicy\nmetadata: {name: big}\n"
        "spec: {overrideRules: [{overriders: {labels: [{operator: addIfAbsent, value: {size: big}}]}}]}\n"
    )
    label = {"kubeadmiral.io/override-policy-name": "big"}
    world.write(
        {
            "berlin.yaml": repository("berlin"),
            "policy.yaml": policy,
            "stated.yaml": placed_config_map("stated", ", namespace: default", label),
            "unstated.yaml": placed_config_map("unstated", "", {}),
        }
    )

    world.sync()

    # A placed resource keeps its own namespace. A resource without a namespace is in `_cluster`.
    paths = ["resources/_cluster/configmap-unstated.yaml", "resources/default/configmap-stated.yaml"]
    assert list_drafted_files(world, "berlin") == paths
    assert "size: big" in world.text("drafts/berlin", paths[1])


def placed_config_map(name: str, namespace: str, labels: dict[str, str]) -> str:
    metadata = f"name: {name}{namespace}, annotations: {{reconciler.dev/clusters: berlin}}, labels: {labels}"
    return f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{{metadata}}}\n"
