"""Tests of the renders of a change of a Kafka or a pool: only packages that can inherit the change are rendered."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from reconciler.catalog.files import FileTree
from reconciler.controllers.kafka_templates import pairing as pairs
from reconciler.controllers.kafka_templates.model import TemplateMergeRule
from reconciler.controllers.kafka_templates.pairing import TemplatePairs
from tests.support.git_repositories import git
from tests.support.policies import publish
from tests.support.prepared_worlds import begin
from tests.support.templates import LABELLED, URGENT, bundle, kafka, pool, template
from tests.support.world import World, catalog, package, repository, variant

KAFKAS = tuple(f"k{number:02}" for number in range(20))
# The renders of one change do not depend on the number of Kafkas. Therefore most tests use a few Kafkas.
FEW = KAFKAS[:8]
# Two of the six pools inherit both properties, two inherit only the pod, and one inherits only the pod set.
POOLS: Mapping[str, Any] = {
    "a": None,
    "b": {},
    "c": {"podSet": {}},
    "d": {"podSet": None, "pod": None, "kafkaContainer": {}},
    "e": {"pod": {}},
    "f": {"podSet": {}, "pod": URGENT},
}
OF_POD = ("a", "b", "c", "d")
BOTH = {"podSet": LABELLED, "pod": URGENT}
OTHERS = 50


def kafka_file(name: str) -> str:
    return f"kafkas/{name}.yaml"


def placed_kafka(name: str, template: Mapping[str, Any] | None) -> str:
    """Return a Kafka that is placed on the cluster, in its own namespace."""
    return kafka(template, name, name, on="berlin")


def kafka_pool(name: str, text: str, template: Any) -> str:
    return pool(text, template, of=name, namespace=name)


def pool_variant(name: str, text: str, revision: str = "v1") -> dict[str, str | None]:
    content = f"{name}-{text}"
    return {f"pools/{content}.yaml": variant(content, "berlin", content, revision)}


def create_large_fleet(folder: Path) -> World:
    """Return a cluster with twenty placed Kafkas and six published pool packages for each Kafka."""
    return create_fleet(KAFKAS, folder)


def create_small_fleet(folder: Path) -> World:
    """Return a cluster with the first eight Kafkas and their pools."""
    return create_fleet(FEW, folder)


def create_fleet(kafkas: tuple[str, ...], folder: Path) -> World:
    world = World.create(folder)
    files: dict[str, str | None] = {"catalog.yaml": catalog(), "berlin.yaml": repository("berlin")}
    for name in kafkas:
        files |= {kafka_file(name): placed_kafka(name, BOTH)}
        for item, own in POOLS.items():
            files |= pool_variant(name, item)
            world.release(f"{name}-{item}", "v1", bundle(item, pool=kafka_pool(name, item, own)))
    world.write(files)
    world.sync()
    publish(world, "berlin")
    return world


def pool_path(name: str, text: str) -> str:
    return f"{name}-{text}/pool.yaml"


@pytest.fixture
def world(tmp_path: Path) -> World:
    return begin(tmp_path, create_small_fleet)


def find_drafted(world: World) -> set[str]:
    """Return the packages that the draft changes."""
    paths = git(world.fleet, "diff", "--name-only", "clusters/berlin...drafts/berlin").splitlines()
    return {path.rpartition("/")[0] for path in paths if not path.startswith(".reconciler")}


@pytest.mark.quick_cases(every=6)
@pytest.mark.parametrize(
    ("parent", "pools"),
    [
        pytest.param({**BOTH, "pod": {}}, OF_POD, id="a-property-that-four-inherit"),
        pytest.param({"podSet": LABELLED}, OF_POD, id="a-property-goes"),
        pytest.param({**BOTH, "podSet": {}}, ("a", "b", "d", "e"), id="a-property-that-four-others-inherit"),
        pytest.param({**BOTH, "initContainer": {}}, (*POOLS,), id="an-unused-property"),
        pytest.param({**BOTH, "jmxSecret": {}}, (), id="a-property-of-the-kafka-alone"),
        pytest.param({"pod": URGENT, "podSet": LABELLED}, (), id="another-order"),
    ],
)
def test_kafka_change_updates_the_inheriting_pools_only(
    world: World, parent: Mapping[str, Any], pools: tuple[str, ...]
) -> None:
    check_kafka_change(world, parent, pools)


@pytest.mark.slow
def test_kafka_change_among_twenty_updates_the_inheriting_pools_only(tmp_path: Path) -> None:
    check_kafka_change(create_large_fleet(tmp_path / "world"), {**BOTH, "pod": {}}, OF_POD)


def check_kafka_change(world: World, parent: Mapping[str, Any], pools: tuple[str, ...]) -> None:
    world.write({kafka_file("k07"): placed_kafka("k07", parent)})

    after = world.sync()

    assert find_drafted(world) == {"resources/k07", *(f"k07-{item}" for item in pools)}
    # The daemon renders the Kafka, and all its pools if an inheritable property changes.
    assert after.report.render_count == (1 if not pools else 1 + len(POOLS))
    assert world.sync().is_unchanged


def test_change_without_effect_renders_no_pool(world: World) -> None:
    world.write({kafka_file("k07"): placed_kafka("k07", BOTH).replace("spec:", "# as agreed\nspec:")})

    assert world.sync().report.render_count == 1
    assert find_drafted(world) == {"resources/k07"}


def test_pool_change_renders_that_pool_only(world: World) -> None:
    world.release("k07-a", "v2", bundle("a", pool=kafka_pool("k07", "a", {"pod": {}})))
    world.write(pool_variant("k07", "a", "v2"))

    after = world.sync()

    assert (after.report.render_count, find_drafted(world)) == (1, {"k07-a"})
    assert template(world, "drafts/berlin", pool_path("k07", "a")) == {"podSet": LABELLED, "pod": {}}


@pytest.mark.slow
def test_change_of_all_kafkas_updates_all_inheriting_pools(world: World) -> None:
    world.write({kafka_file(name): placed_kafka(name, {**BOTH, "pod": {}}) for name in FEW})

    after = world.sync()

    assert after.report.render_count == len(FEW) * (1 + len(POOLS))
    assert len(find_drafted(world)) == len(FEW) * (1 + len(OF_POD))


def count_pairings(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Count the packages that are searched for roles, and the created pairings."""
    counter: Counter[str] = Counter()
    pair, roles = pairs.find_pairs, pairs.find_roles

    def count_pairing(packages: Mapping[str, FileTree], rules: tuple[TemplateMergeRule, ...]) -> TemplatePairs:
        counter["pairs"] += 1
        return pair(packages, rules)

    def count_roles(files: FileTree, rules: tuple[TemplateMergeRule, ...]) -> Any:
        counter["looks"] += 1
        return roles(files, rules)

    monkeypatch.setattr("reconciler.planning.render.templates.find_pairs", count_pairing)
    monkeypatch.setattr(pairs, "find_roles", count_roles)
    return counter


@pytest.mark.slow
def test_later_pass_of_a_service_repeats_no_pairing(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    passes = world.service()
    passes.run()
    counter = count_pairings(monkeypatch)

    world.write({"more.yaml": kafka(None, "elsewhere", "elsewhere")})
    passes.run()
    world.write({"more.yaml": kafka(None, "elsewhere", "somewhere")})
    passes.run()

    assert not passes.summary.is_skipped
    assert counter == {}


@pytest.mark.slow
def test_packages_without_kafka_need_no_pairing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = World.create(tmp_path / "world")
    names = [f"other-{number}" for number in range(OTHERS)]
    world.release("other", "v1", package("other"))
    world.release("bus", "v1", bundle("bus", kafka=kafka(BOTH), pool=pool("a")))
    world.write(
        {
            "catalog.yaml": catalog(),
            "berlin.yaml": repository("berlin"),
            "bus.yaml": variant("bus", "berlin", "bus"),
            **{f"others/{name}.yaml": variant(name, "berlin", name, upstream="other") for name in names},
        }
    )
    assert world.sync().report.render_count == 1 + OTHERS
    publish(world, "berlin")
    world.release("bus", "v2", bundle("bus", kafka=kafka({}), pool=pool("a")))
    world.write({"bus.yaml": variant("bus", "berlin", "bus", "v2")})
    counter = count_pairings(monkeypatch)

    after = world.sync()

    assert (after.report.render_count, after.changed_branches) == (1, {"drafts/berlin"})
    # The daemon pairs the published package and the new package.
    assert counter == {"pairs": 2, "looks": 2}
