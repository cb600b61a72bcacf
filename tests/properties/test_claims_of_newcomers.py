"""For any config C and added files N, the desired packages of C are the same with and without N.

N contains copies of objects of C: with the same identity, or with another one and the same name, path or file.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from reconciler.krm.yaml import parse_yaml
from tests.support.components import STAGING, binding, component_world
from tests.support.git_repositories import commit_files, git, make_bare, read_refs
from tests.support.policies import placement_world, policy_world
from tests.support.presets import preset_world
from tests.support.templates import template_world
from tests.support.world import World, small_world

WORLD_FACTORIES = (small_world, policy_world, placement_world, preset_world, component_world, template_world)
Object = dict[str, Any]
Newcomer = Callable[[Object], Object]


def with_metadata(**fields: object) -> Newcomer:
    def change(mapping: Object) -> Object:
        return {**mapping, "metadata": {**mapping["metadata"], **fields}}

    return change


def emptied(mapping: Object) -> Object:
    return {key: {} if key in ("spec", "data") else value for key, value in mapping.items()}


def in_list(mapping: Object) -> Object:
    return {"apiVersion": "v1", "kind": "List", "items": [emptied(mapping)]}


def in_typed_list(mapping: Object) -> Object:
    return {"apiVersion": mapping["apiVersion"], "kind": f"{mapping['kind']}List", "items": [emptied(mapping)]}


NEWCOMERS: Mapping[str, Newcomer] = {
    "emptied copy": emptied,
    "changed copy": with_metadata(labels={"newcomer": "true"}),
    "in a list": in_list,
    "in a typed list": in_typed_list,
    "earlier namespace": with_metadata(namespace="aa"),
    "later namespace": with_metadata(namespace="zz"),
}


class GitWorld(World):
    """A test fleet whose config is a branch."""

    @property
    def source(self) -> str:
        return str(self.folder / "config.git")

    def commit_config(self, files: Mapping[str, bytes]) -> None:
        commit_files(self.folder / "config.git", "refs/heads/main", dict(files), "by hand", 1_200_000_000)

    def forget(self, refs: Mapping[str, str]) -> None:
        """Reset the fleet to these refs, and delete the cache."""
        for ref in read_refs(self.fleet).keys() - refs.keys():
            git(self.fleet, "update-ref", "-d", ref)
        for ref, commit in refs.items():
            self.set_ref(ref, commit)
        shutil.rmtree(self.folder / "cache", ignore_errors=True)


def in_git(folder: Path, make: Callable[[Path], World]) -> GitWorld:
    """Return a test fleet with a committed config."""
    new_world = make(folder)
    make_bare(folder / "config.git")
    world = GitWorld(folder, **new_world._settings)
    world.commit_config(config_of(world))
    return world


def config_of(world: World) -> dict[str, bytes]:
    generator_type = (path for path in world.config.rglob("*") if path.is_file())
    return {path.relative_to(world.config).as_posix(): path.read_bytes() for path in generator_type}


def newcomers_of(config: Mapping[str, bytes], name: str) -> dict[str, bytes]:
    """Return a copy of each object of a config, in files that sort before and after those of the config."""
    documents = [document for _, content in sorted(config.items()) for document in parse_yaml(content).documents]
    values = [json.dumps(NEWCOMERS[name](document.data)).encode() for document in documents]
    return {f"{'0' if number % 2 else 'zz'}/{number}.yaml": item for number, item in enumerate(values)}


def desired(world: World) -> dict[str, str | None]:
    """Return what the drafts of a first pass contain, by cluster and package."""
    outcomes = world.sync().outcomes
    places = (place.split("/", 1) for place in outcomes)
    return {f"{item}/{package}": world.tree(f"drafts/{item}", package) for item, package in places}


def of_first(mapping: Mapping[str, str | None], config: Mapping[str, str | None]) -> dict[str, str | None]:
    return {place: mapping.get(place) for place in config}


CASES = [(small_world, name) for name in NEWCOMERS] + [
    (make, name) for make in WORLD_FACTORIES[1:] for name in ("emptied copy", "earlier namespace")
]


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize(("make", "name"), CASES, ids=lambda value: value if isinstance(value, str) else value.__name__)
def test_newcomers_change_nothing_that_the_history_shows_to_be_older(
    tmp_path: Path, make: Callable[[Path], World], name: str
) -> None:
    world = in_git(tmp_path / "world", make)
    refs, config = read_refs(world.fleet), config_of(world)
    undisturbed = desired(world)
    world.forget(refs)

    world.commit_config(newcomers_of(config, name))
    disturbed = desired(world)

    assert None not in undisturbed.values()
    assert {place: disturbed.get(place) for place in undisturbed} == undisturbed


@pytest.mark.parametrize("make", [placement_world, preset_world, component_world], ids=lambda value: value.__name__)
def test_newcomers_of_other_namespaces_change_nothing_that_packages_are_recorded_to_come_from(
    tmp_path: Path, make: Callable[[Path], World]
) -> None:
    world = make(tmp_path / "world")
    before = world.sync()
    refs = read_refs(world.fleet)

    for name in ("earlier namespace", "later namespace"):
        newcomers = newcomers_of(config_of(world), name)
        recorded = {path: newcomer.decode() for path, newcomer in newcomers.items() if is_of_recorded_kind(newcomer)}
        world.write(recorded)
        after = world.plan().outcomes
        world.write(dict.fromkeys(recorded))

        assert {place: after.get(place) for place in before.outcomes} == dict.fromkeys(before.outcomes, "drafted"), name
    assert read_refs(world.fleet) == refs


def is_of_recorded_kind(content: bytes) -> bool:
    return json.loads(content)["kind"] in ("Cluster", "Environment", "Namespace")


def test_a_second_binding_does_not_stop_a_component(tmp_path: Path) -> None:
    world = component_world(tmp_path / "world")
    undisturbed = dict.fromkeys(world.sync().outcomes, "drafted")
    second = binding("cart", STAGING).replace('"name": "cart-staging"', '"name": "aaa"')
    of_other_namespace = second.replace('"namespace": "shop"', '"namespace": "aa"')
    world.write({"a.yaml": second, "b.yaml": of_other_namespace})

    after = world.plan()

    assert after.outcomes == undisturbed
    assert {(finding.code, finding.location.file) for finding in after.findings} >= {("ClaimConflict", "a.yaml")}
