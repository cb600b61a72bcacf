"""Tests of the controller's cache: results are the same with and without it, and an unchanged Plugin is not built
again.
"""

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
from tests.support.examples import examples
from tests.unit.controllers.plugin_presets.controller_world import (
    UNREADABLE,
    Data,
    FakeBranches,
    build_cluster,
    build_definition,
    build_expression_value,
    build_option,
    build_organization,
    build_override,
    build_plugin,
    build_preset,
    build_value,
)

Files = Mapping[str, str]
OPTIONS = [build_option("size", "int", 1), build_option("word", default="none"), build_option("place")]
PLACE = build_expression_value("place", "${global.greenhouse.metadata.zone}")


RETAINED = {"greenhouse.sap/plugin-deletion": "Retain"}


def build_cluster_in_zone(name: str, zone: str = "a", tier: str = "edge", **more: Any) -> str:
    return build_cluster(name, {"tier": tier, "metadata.greenhouse.sap/zone": zone}, **more)


def build_federated_cluster(word: str) -> str:
    """Return another object for the cluster east, with its own labels."""
    labels = {"metadata.greenhouse.sap/more": word}
    metadata = {"name": "east", "labels": labels}
    return emit({"apiVersion": "core.kubeadmiral.io/v1alpha1", "kind": "FederatedCluster", "metadata": metadata})


FILES = {
    "acme.yaml": build_organization([build_value("word", "acme")]),
    "shipper.yaml": build_definition(OPTIONS),
    "sender.yaml": build_definition(OPTIONS, "sender"),
    **{f"{name}.yaml": build_cluster_in_zone(name) for name in ("east", "west", "north")},
    "logs.yaml": build_preset([build_value("size", 2), PLACE]),
    "events.yaml": build_preset([PLACE], "events", definition="sender", plugin={"releaseName": "events"}),
    "all.yaml": build_override([build_value("size", 3)], "all", mode="Default"),
    "west-only.yaml": build_override([build_value("word", "w")], "west-only", clusters={"clusterNames": ["west"]}),
    "shipper-only.yaml": build_override([build_value("other", 1)], "shipper-only", definitions=["shipper"]),
    "boards.yaml": build_plugin([build_value("place", "here")], releaseName="boards"),
    "more.yaml": build_federated_cluster("x"),
}
ALL = {f"{name}-{where}" for name in ("logs", "events") for where in ("east", "west", "north")} | {"boards"}


class CachingController:
    """Passes of the controller with a cache, as in a long-lived process."""

    def __init__(self) -> None:
        self.cache = PluginPresetCache()
        self.catalog: Catalog | None = None

    def run_pass(self, files: Files, branches: FakeBranches, **more: Any) -> ControllerResult:
        tree = FileTree({path: File(text.encode()) for path, text in files.items()})
        self.catalog = read_catalog(tree, previous=self.catalog)
        inventory = read_inventory(self.catalog, read_repositories(self.catalog)[0])
        return generate_plugins(self.catalog, inventory, PluginPresetInputs(branches, **more), self.cache)


def normalize_result(result: ControllerResult) -> ControllerResult:
    """Return a result that can be compared: lazy values are computed."""
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
def draw_edits(draw: Any) -> Files:
    """Return a file name with its new content, or with "" to delete the file."""
    name, text = draw(st.sampled_from(sorted(FILES.items())))
    values = [
        st.just(""), st.just("# noted\n" + text), st.just(text), st.just(UNREADABLE),
        st.just(text + "---\n" + text), st.just(text.replace("size", "word")),
        st.just(text.replace("name: ", "name:  ")),
    ]  # fmt: skip
    own = {
        "acme.yaml": st.builds(lambda word: build_organization([build_value("word", word)]), WORDS),
        "shipper.yaml": st.builds(lambda size: build_definition([build_option("size", "int", size), *OPTIONS[1:]]), SIZES),
        "east.yaml": st.builds(
            lambda zone, keeps: build_cluster_in_zone("east", zone, annotations=keeps), WORDS, st.sampled_from([None, RETAINED])
        ),
        "more.yaml": st.builds(build_federated_cluster, WORDS),
        "north.yaml": st.builds(lambda tier: build_cluster_in_zone("north", tier=tier), st.sampled_from(["edge", "core"])),
        "west.yaml": st.builds(lambda word: build_cluster("west", overrides=[build_value("word", word)]), WORDS),
        "logs.yaml": st.builds(
            lambda size, on: build_preset([build_value("size", size), PLACE], on={"east": [build_value("size", on)]}), SIZES, SIZES
        ),
        "events.yaml": st.builds(
            lambda name, marks: build_preset([], name, definition="sender", annotations=marks),
            st.sampled_from(["events", "logs"]), st.sampled_from([{}, {"greenhouse.sap/propagate-labels": "a/*"}]),
        ),
        "all.yaml": st.builds(
            lambda size, where: build_override([build_value("size", size)], "all", clusters=where), SIZES, SOMEWHERE
        ),
        "boards.yaml": st.builds(lambda marks: build_plugin([], annotations=marks), st.sampled_from([None, SUSPENDED])),
    }  # fmt: skip
    return {name: draw(st.one_of(own.get(name, values[0]), *values))}


SETTINGS = st.sampled_from(
    [{}, {}, {"base_domain": "example.test"}, {"can_use_expressions": False}, {"central_cluster": "east"}]
)


def keep_branches(branches: FakeBranches, _: ControllerResult) -> FakeBranches:
    return branches


def keep_plugins(branches: FakeBranches, result: ControllerResult) -> FakeBranches:
    actual_branches = FakeBranches.of(result)
    return FakeBranches(actual_branches.owners, branches.plugins, actual_branches.input_keys)


def publish_result(_: FakeBranches, result: ControllerResult) -> FakeBranches:
    return FakeBranches.of(result)


def delete_owners(branches: FakeBranches, _: ControllerResult) -> FakeBranches:
    """Return branches with the same Plugins, and without owners."""
    return FakeBranches({}, branches.plugins, {})


def rename_releases(branches: FakeBranches, _: ControllerResult) -> FakeBranches:
    """Return branches on which each Plugin has another release name."""

    def renamed(mapping: Data) -> Data:
        return {**mapping, "spec": {**mapping["spec"], "releaseName": "old"}}

    plugins = {unit: renamed(item) for unit, item in branches.plugins.items()}
    return FakeBranches(branches.owners, plugins, branches.input_keys)


UPDATES = st.sampled_from([keep_branches, keep_plugins, publish_result, delete_owners, rename_releases])


@pytest.mark.slow
@settings(max_examples=examples(60), deadline=None)
@for_all(st.lists(st.tuples(draw_edits(), SETTINGS, UPDATES), min_size=1, max_size=6))
def test_pass_with_a_cache_has_the_same_result(
    history: list[tuple[Files, dict[str, Any], Callable[[FakeBranches, ControllerResult], FakeBranches]]],
) -> None:
    controller, files, branches = CachingController(), dict(FILES), FakeBranches()
    controller.run_pass(files, branches)
    for edit, options, update in history:
        files = {name: text for name, text in {**files, **edit}.items() if text}

        result = controller.run_pass(files, branches, **options)

        assert normalize_result(result) == normalize_result(CachingController().run_pass(files, branches, **options))
        branches = update(branches, result)


def list_rebuilt_plugins(
    files: Files, changed_files: Files, branches: FakeBranches | None = None, **settings: Any
) -> set[str]:
    """Return the Plugins that the second pass builds again."""
    controller, before = CachingController(), branches or FakeBranches()
    # The first result must stay in memory during the comparison, because Python can reuse the address of a deleted
    # object.
    first = controller.run_pass(files, before).variants
    second = controller.run_pass(changed_files, before, **settings).variants
    return {variant.owner.key.name for variant in second if not any(variant is other for other in first)}


@pytest.mark.parametrize(
    ("edit", "values"),
    [
        pytest.param({}, set(), id="nothing"),
        pytest.param({"note.yaml": "kind: Note\n"}, set(), id="a-file-beside"),
        pytest.param(
            {"west-only.yaml": build_override([build_value("word", "v")], "west-only", clusters={"clusterNames": ["west"]})},
            {"logs-west", "events-west"}, id="an-override-for-a-cluster",
        ),
        pytest.param(
            {"shipper-only.yaml": build_override([build_value("other", 2)], "shipper-only", definitions=["shipper"])},
            {"logs-east", "logs-west", "logs-north", "boards"}, id="an-override-for-a-definition",
        ),
        pytest.param(
            {"logs.yaml": build_preset([build_value("size", 4), PLACE])}, {"logs-east", "logs-west", "logs-north"}, id="a-preset"
        ),
        pytest.param({"east.yaml": build_cluster_in_zone("east", "b")}, {"logs-east", "events-east", "boards"}, id="a-label"),
        pytest.param(
            {"east.yaml": build_cluster_in_zone("east", annotations=RETAINED)}, {"logs-east", "events-east", "boards"},
            id="an-annotation-of-a-cluster",
        ),
        pytest.param({"more.yaml": build_federated_cluster("y")}, {"logs-east", "events-east", "boards"}, id="a-label-elsewhere"),
        pytest.param({"boards.yaml": build_plugin([build_value("place", "there")])}, {"boards"}, id="a-plugin"),
        pytest.param({"sender.yaml": build_definition(OPTIONS, "sender", version="3")},
                     {"events-east", "events-west", "events-north"}, id="a-definition"),
        pytest.param({"acme.yaml": build_organization()}, ALL, id="what-all-have"),
    ],
)  # fmt: skip
def test_plugin_is_reused_after_an_unrelated_edit(edit: Files, values: set[str]) -> None:
    assert list_rebuilt_plugins(FILES, {**FILES, **edit}) == values


def test_changed_settings_rebuild_all_plugins() -> None:
    assert list_rebuilt_plugins(FILES, FILES, base_domain="example.test") == ALL


def test_changed_branch_rebuilds_its_plugins() -> None:
    controller = CachingController()
    drafted = controller.run_pass(FILES, FakeBranches())
    variant = next(item for item in drafted.variants if item.owner.key.name == "logs-east")
    branches = replace_published(FakeBranches(), variant)

    controller_result = controller.run_pass(FILES, branches)

    fresh = [
        new.owner.key.name for new in controller_result.variants if not any(new is old for old in drafted.variants)
    ]
    assert fresh == ["logs-east"]
    assert list_rebuilt_plugins(FILES, FILES, branches) == set()


def replace_published(branches: FakeBranches, variant: Variant) -> FakeBranches:
    unit = (variant.target.repository, variant.target.package)
    return branches.with_plugin(unit, FakeBranches.of(ControllerResult((variant,))).plugins[unit])


def test_adopted_plugin_is_not_adopted_again() -> None:
    controller = CachingController()
    adopted = FakeBranches.of(controller.run_pass(FILES, FakeBranches()))

    controller_results = [
        controller.run_pass(FILES, branches) for branches in (FakeBranches({}, adopted.plugins, {}), adopted)
    ]

    adoptions = [
        [variant.adoption for variant in result.variants if variant.owner.parent] for result in controller_results
    ]
    assert adoptions == [["adoptExisting"] * 6, ["adoptNone"] * 6]


def test_cache_contains_only_plugins_of_the_last_passes() -> None:
    controller, sizes = CachingController(), set()
    for size in range(8):
        controller.run_pass({**FILES, "logs.yaml": build_preset([build_value("size", size), PLACE])}, FakeBranches())
        sizes.add(len(controller.cache.plugins))

    assert sizes == {len(ALL)}
