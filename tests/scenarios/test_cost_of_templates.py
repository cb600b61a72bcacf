"""What an edit of a Kafka or a pool costs: as many renders as there are packages that can feel it, and no more."""

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
# what an edit of one costs does not depend on how many there are: most is counted among few
FEW = KAFKAS[:8]
# of six pools, two inherit both properties, two the pod alone, one the pod set alone, and one nothing
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


def at(name: str) -> str:
    return f"kafkas/{name}.yaml"


def placed(name: str, template: Mapping[str, Any] | None) -> str:
    """Return a Kafka that is placed on the cluster, in a namespace of its own."""
    return kafka(template, name, name, on="berlin")


def of(name: str, text: str, template: Any) -> str:
    return pool(text, template, of=name, namespace=name)


def want(name: str, text: str, revision: str = "v1") -> dict[str, str | None]:
    content = f"{name}-{text}"
    return {f"pools/{content}.yaml": variant(content, "berlin", content, revision)}


def large_fleet(folder: Path) -> World:
    """Return a cluster with twenty Kafkas that are placed, each with six pools in packages; all is published."""
    return fleet_of(KAFKAS, folder)


def small_fleet(folder: Path) -> World:
    """Return one with a few of them."""
    return fleet_of(FEW, folder)


def fleet_of(kafkas: tuple[str, ...], folder: Path) -> World:
    world = World.create(folder)
    files: dict[str, str | None] = {"catalog.yaml": catalog(), "berlin.yaml": repository("berlin")}
    for name in kafkas:
        files |= {at(name): placed(name, BOTH)}
        for item, own in POOLS.items():
            files |= want(name, item)
            world.release(f"{name}-{item}", "v1", bundle(item, pool=of(name, item, own)))
    world.write(files)
    world.sync()
    publish(world, "berlin")
    return world


def path_of(name: str, text: str) -> str:
    return f"{name}-{text}/pool.yaml"


@pytest.fixture
def world(tmp_path: Path) -> World:
    return begin(tmp_path, small_fleet)


def drafted(world: World) -> set[str]:
    """Return the packages that the draft changes."""
    paths = git(world.fleet, "diff", "--name-only", "clusters/berlin...drafts/berlin").splitlines()
    return {path.rpartition("/")[0] for path in paths if not path.startswith(".reconciler")}


@pytest.mark.parametrize(
    ("parent", "pools"),
    [
        pytest.param({**BOTH, "pod": {}}, OF_POD, id="a-property-that-four-inherit"),
        pytest.param({"podSet": LABELLED}, OF_POD, id="a-property-goes"),
        pytest.param({**BOTH, "podSet": {}}, ("a", "b", "d", "e"), id="a-property-that-four-others-inherit"),
        pytest.param({**BOTH, "initContainer": {}}, (*POOLS,), id="a-property-that-nobody-has"),
        pytest.param({**BOTH, "jmxSecret": {}}, (), id="a-property-of-the-kafka-alone"),
        pytest.param({"pod": URGENT, "podSet": LABELLED}, (), id="another-order"),
    ],
)
def test_a_kafka_moves_exactly_the_pools_that_inherit_what_changed(
    world: World, parent: Mapping[str, Any], pools: tuple[str, ...]
) -> None:
    check_an_edit(world, parent, pools)


def test_so_it_is_among_twenty(tmp_path: Path) -> None:
    check_an_edit(large_fleet(tmp_path / "world"), {**BOTH, "pod": {}}, OF_POD)


def check_an_edit(world: World, parent: Mapping[str, Any], pools: tuple[str, ...]) -> None:
    world.write({at("k07"): placed("k07", parent)})

    after = world.sync()

    assert drafted(world) == {"resources/k07", *(f"k07-{item}" for item in pools)}
    # the Kafka, and its pools if anything changed that any could inherit
    assert after.report.render_count == (1 if not pools else 1 + len(POOLS))
    assert world.sync().is_unchanged


def test_an_edit_that_says_the_same_renders_no_pool(world: World) -> None:
    world.write({at("k07"): placed("k07", BOTH).replace("spec:", "# as agreed\nspec:")})

    assert world.sync().report.render_count == 1
    assert drafted(world) == {"resources/k07"}


def test_an_edit_of_a_pool_renders_that_pool(world: World) -> None:
    world.release("k07-a", "v2", bundle("a", pool=of("k07", "a", {"pod": {}})))
    world.write(want("k07", "a", "v2"))

    after = world.sync()

    assert (after.report.render_count, drafted(world)) == (1, {"k07-a"})
    assert template(world, "drafts/berlin", path_of("k07", "a")) == {"podSet": LABELLED, "pod": {}}


def test_all_kafkas_at_once(world: World) -> None:
    world.write({at(name): placed(name, {**BOTH, "pod": {}}) for name in FEW})

    after = world.sync()

    assert after.report.render_count == len(FEW) * (1 + len(POOLS))
    assert len(drafted(world)) == len(FEW) * (1 + len(OF_POD))


def counted(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Count which packages are looked at for pairs, and how often pairs are put together."""
    counter: Counter[str] = Counter()
    pair, roles = pairs.find_pairs, pairs.find_roles

    def pairing(packages: Mapping[str, FileTree], rules: tuple[TemplateMergeRule, ...]) -> TemplatePairs:
        counter["pairs"] += 1
        return pair(packages, rules)

    def looking(files: FileTree, rules: tuple[TemplateMergeRule, ...]) -> Any:
        counter["looks"] += 1
        return roles(files, rules)

    monkeypatch.setattr("reconciler.planning.render.templates.find_pairs", pairing)
    monkeypatch.setattr(pairs, "find_roles", looking)
    return counter


def test_a_warm_service_does_not_look_again(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    passes = world.service()
    passes.run()
    counter = counted(monkeypatch)

    world.write({"more.yaml": kafka(None, "elsewhere", "elsewhere")})
    passes.run()
    world.write({"more.yaml": kafka(None, "elsewhere", "somewhere")})
    passes.run()

    assert not passes.summary.is_skipped
    assert counter == {}


def test_packages_without_kafka_cost_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
    counter = counted(monkeypatch)

    after = world.sync()

    assert (after.report.render_count, after.changed_branches) == (1, {"drafts/berlin"})
    # what is published, and what is to be: one package in each
    assert counter == {"pairs": 2, "looks": 2}
