"""A service remembers what the room came to: nothing comes out otherwise, and what is not touched is not made again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given as for_all
from hypothesis import settings
from hypothesis import strategies as st

from reconciler.catalog.catalog import Catalog, read_catalog
from reconciler.catalog.files import File, FileTree
from reconciler.controllers.clusters.inventory import read_inventory
from reconciler.controllers.plugin_presets.controller import PluginPresetCache, PluginPresetInputs, generate_plugins
from reconciler.controllers.repositories import read_repositories
from reconciler.controllers.results import ControllerResult, Variant
from reconciler.krm.yaml import emit
from tests.unit.controllers.plugin_presets.presets_world import (
    UNREADABLE,
    Branches,
    Data,
    by_expression,
    cluster,
    definition,
    given,
    option,
    organization,
    override,
    plugin,
    preset,
)

Files = Mapping[str, str]
OPTIONS = [option("size", "int", 1), option("word", default="none"), option("place")]
PLACE = by_expression("place", "${global.greenhouse.metadata.zone}")


RETAINED = {"greenhouse.sap/plugin-deletion": "Retain"}


def in_zone(name: str, zone: str = "a", tier: str = "edge", **more: Any) -> str:
    return cluster(name, {"tier": tier, "metadata.greenhouse.sap/zone": zone}, **more)


def more_of_east(word: str) -> str:
    """Return another object that speaks of the cluster, with labels of its own."""
    labels = {"metadata.greenhouse.sap/more": word}
    metadata = {"name": "east", "labels": labels}
    return emit({"apiVersion": "core.kubeadmiral.io/v1alpha1", "kind": "FederatedCluster", "metadata": metadata})


WORLD = {
    "acme.yaml": organization([given("word", "acme")]),
    "shipper.yaml": definition(OPTIONS),
    "sender.yaml": definition(OPTIONS, "sender"),
    **{f"{name}.yaml": in_zone(name) for name in ("east", "west", "north")},
    "logs.yaml": preset([given("size", 2), PLACE]),
    "events.yaml": preset([PLACE], "events", definition="sender", plugin={"releaseName": "events"}),
    "all.yaml": override([given("size", 3)], "all", mode="Default"),
    "west-only.yaml": override([given("word", "w")], "west-only", clusters={"clusterNames": ["west"]}),
    "shipper-only.yaml": override([given("other", 1)], "shipper-only", definitions=["shipper"]),
    "boards.yaml": plugin([given("place", "here")], releaseName="boards"),
    "more.yaml": more_of_east("x"),
}
ALL = {f"{name}-{where}" for name in ("logs", "events") for where in ("east", "west", "north")} | {"boards"}


class Service:
    """Passes of the room that remember, as those of a long-lived process do."""

    def __init__(self) -> None:
        self.memory = PluginPresetCache()
        self.catalog: Catalog | None = None

    def look(self, files: Files, branches: Branches, **more: Any) -> ControllerResult:
        tree = FileTree({path: File(text.encode()) for path, text in files.items()})
        self.catalog = read_catalog(tree, previous=self.catalog)
        inventory = read_inventory(self.catalog, read_repositories(self.catalog)[0])
        return generate_plugins(self.catalog, inventory, PluginPresetInputs(branches, **more), self.memory)


def shape(result: ControllerResult) -> ControllerResult:
    """Return a result as it can be compared: what is worked out of it only on demand is worked out."""
    return replace(result, variants=tuple(map(_plain, result.variants)))


def _plain(variant: Variant) -> Variant:
    assert variant.provenance is not None
    mapping = {
        "layers": str(variant.provenance.list_layers()),
        "applied": str(variant.provenance.list_applied_overrides()),
    }
    return replace(variant, provenance=None, labels=mapping)


WORDS = st.sampled_from(["x", "y"])
SIZES = st.integers(1, 3)
SOMEWHERE = st.sampled_from([None, {"clusterNames": ["east"]}, {"ignoreClusters": ["west"]}])
SUSPENDED = {"greenhouse.sap/suspend": "true"}


@st.composite
def edits(draw: Any) -> Files:
    """Return a file with what is to stand in it, "" for nothing any more."""
    name, text = draw(st.sampled_from(sorted(WORLD.items())))
    values = [
        st.just(""), st.just("# noted\n" + text), st.just(text), st.just(UNREADABLE),
        st.just(text + "---\n" + text), st.just(text.replace("size", "word")),
        st.just(text.replace("name: ", "name:  ")),
    ]  # fmt: skip
    own = {
        "acme.yaml": st.builds(lambda word: organization([given("word", word)]), WORDS),
        "shipper.yaml": st.builds(lambda size: definition([option("size", "int", size), *OPTIONS[1:]]), SIZES),
        "east.yaml": st.builds(
            lambda zone, keeps: in_zone("east", zone, annotations=keeps), WORDS, st.sampled_from([None, RETAINED])
        ),
        "more.yaml": st.builds(more_of_east, WORDS),
        "north.yaml": st.builds(lambda tier: in_zone("north", tier=tier), st.sampled_from(["edge", "core"])),
        "west.yaml": st.builds(lambda word: cluster("west", overrides=[given("word", word)]), WORDS),
        "logs.yaml": st.builds(
            lambda size, on: preset([given("size", size), PLACE], on={"east": [given("size", on)]}), SIZES, SIZES
        ),
        "events.yaml": st.builds(
            lambda name, marks: preset([], name, definition="sender", annotations=marks),
            st.sampled_from(["events", "logs"]), st.sampled_from([{}, {"greenhouse.sap/propagate-labels": "a/*"}]),
        ),
        "all.yaml": st.builds(
            lambda size, where: override([given("size", size)], "all", clusters=where), SIZES, SOMEWHERE
        ),
        "boards.yaml": st.builds(lambda marks: plugin([], annotations=marks), st.sampled_from([None, SUSPENDED])),
    }  # fmt: skip
    return {name: draw(st.one_of(own.get(name, values[0]), *values))}


AROUND = st.sampled_from(
    [{}, {}, {"base_domain": "example.test"}, {"can_use_expressions": False}, {"central_cluster": "east"}]
)


def as_found(branches: Branches, _: ControllerResult) -> Branches:
    return branches


def drafted(branches: Branches, result: ControllerResult) -> Branches:
    actual_branches = Branches.of(result)
    return Branches(actual_branches.owners, branches.plugins, actual_branches.made_of)


def published(_: Branches, result: ControllerResult) -> Branches:
    return Branches.of(result)


def taken_by_people(branches: Branches, _: ControllerResult) -> Branches:
    """Return the branches where everything that stands there is people's."""
    return Branches({}, branches.plugins, {})


def another_release(branches: Branches, _: ControllerResult) -> Branches:
    """Return the branches where every Plugin has been released under another name."""

    def renamed(mapping: Data) -> Data:
        return {**mapping, "spec": {**mapping["spec"], "releaseName": "old"}}

    plugins = {unit: renamed(item) for unit, item in branches.plugins.items()}
    return Branches(branches.owners, plugins, branches.made_of)


HAPPENS = st.sampled_from([as_found, drafted, published, taken_by_people, another_release])


@settings(max_examples=60, deadline=None)
@for_all(st.lists(st.tuples(edits(), AROUND, HAPPENS), min_size=1, max_size=6))
def test_a_pass_that_remembers_comes_to_what_one_does_that_does_not(
    history: list[tuple[Files, dict[str, Any], Callable[[Branches, ControllerResult], Branches]]],
) -> None:
    service, files, branches = Service(), dict(WORLD), Branches()
    service.look(files, branches)
    for edit, around, happens in history:
        files = {name: text for name, text in {**files, **edit}.items() if text}

        result = service.look(files, branches, **around)

        assert shape(result) == shape(Service().look(files, branches, **around))
        branches = happens(branches, result)


def made_again(files: Files, then: Files, branches: Branches | None = None, **around: Any) -> set[str]:
    """Return the Plugins that the second pass does not take over from the first."""
    service, before = Service(), branches or Branches()
    # held for as long as they are compared: what is forgotten may have its place in memory taken
    first = service.look(files, before).variants
    second = service.look(then, before, **around).variants
    return {variant.owner.key.name for variant in second if not any(variant is other for other in first)}


@pytest.mark.parametrize(
    ("edit", "values"),
    [
        pytest.param({}, set(), id="nothing"),
        pytest.param({"note.yaml": "kind: Note\n"}, set(), id="a-file-beside"),
        pytest.param(
            {"west-only.yaml": override([given("word", "v")], "west-only", clusters={"clusterNames": ["west"]})},
            {"logs-west", "events-west"}, id="an-override-for-a-cluster",
        ),
        pytest.param(
            {"shipper-only.yaml": override([given("other", 2)], "shipper-only", definitions=["shipper"])},
            {"logs-east", "logs-west", "logs-north", "boards"}, id="an-override-for-a-definition",
        ),
        pytest.param(
            {"logs.yaml": preset([given("size", 4), PLACE])}, {"logs-east", "logs-west", "logs-north"}, id="a-preset"
        ),
        pytest.param({"east.yaml": in_zone("east", "b")}, {"logs-east", "events-east", "boards"}, id="a-label"),
        pytest.param(
            {"east.yaml": in_zone("east", annotations=RETAINED)}, {"logs-east", "events-east", "boards"},
            id="an-annotation-of-a-cluster",
        ),
        pytest.param({"more.yaml": more_of_east("y")}, {"logs-east", "events-east", "boards"}, id="a-label-elsewhere"),
        pytest.param({"boards.yaml": plugin([given("place", "there")])}, {"boards"}, id="a-plugin"),
        pytest.param({"sender.yaml": definition(OPTIONS, "sender", version="3")},
                     {"events-east", "events-west", "events-north"}, id="a-definition"),
        pytest.param({"acme.yaml": organization()}, ALL, id="what-all-have"),
    ],
)  # fmt: skip
def test_what_an_edit_cannot_reach_is_the_very_same(edit: Files, values: set[str]) -> None:
    assert made_again(WORLD, {**WORLD, **edit}) == values


def test_other_settings_make_everything_again() -> None:
    assert made_again(WORLD, WORLD, base_domain="example.test") == ALL


def test_what_is_published_makes_its_plugins_again() -> None:
    service = Service()
    drafted = service.look(WORLD, Branches())
    variant = next(item for item in drafted.variants if item.owner.key.name == "logs-east")
    branches = replace_published(Branches(), variant)

    controller_result = service.look(WORLD, branches)

    fresh = [
        new.owner.key.name for new in controller_result.variants if not any(new is old for old in drafted.variants)
    ]
    assert fresh == ["logs-east"]
    assert made_again(WORLD, WORLD, branches) == set()


def replace_published(branches: Branches, variant: Variant) -> Branches:
    unit = (variant.target.repository, variant.target.package)
    return branches.with_plugin(unit, Branches.of(ControllerResult((variant,))).plugins[unit])


def test_what_was_adopted_is_not_adopted_again() -> None:
    service = Service()
    ours = Branches.of(service.look(WORLD, Branches()))

    controller_results = [service.look(WORLD, branches) for branches in (Branches({}, ours.plugins, {}), ours)]

    adoptions = [
        [variant.adoption for variant in result.variants if variant.owner.parent] for result in controller_results
    ]
    assert adoptions == [["adoptExisting"] * 6, ["adoptNone"] * 6]


def test_no_more_is_remembered_than_the_last_pass_asked_for() -> None:
    service, sizes = Service(), set()
    for size in range(8):
        service.look({**WORLD, "logs.yaml": preset([given("size", size), PLACE])}, Branches())
        sizes.add(len(service.memory.plugins))

    assert sizes == {len(ALL)}
