"""Tests with random presets: the order matters only for lists with an order, and the next layer wins if one is
removed.
"""

from __future__ import annotations

import random
from collections.abc import Collection
from typing import Any

import pytest
from hypothesis import given as for_all
from hypothesis import settings
from hypothesis import strategies as st

from reconciler.controllers.plugin_presets.option_layers import LAYERS
from tests.support.examples import examples
from tests.unit.controllers.plugin_presets.controller_world import (
    FakeBranches,
    build_cluster,
    build_definition,
    build_option,
    build_organization,
    build_override,
    build_plugin,
    build_preset,
    build_value,
    find_status,
    list_codes,
    list_findings,
    list_plugins,
    list_steps,
    list_values,
    read_plugin,
    run_controller,
)

NAMES = ["a.b", "a.c", "size", "word"]
DEFINITION = build_definition(
    [build_option("size", "int", 0), build_option("word", default="none"), build_option("key", "secret")]
)
CLUSTERS = [build_cluster("east", {"tier": "edge", "zone": "e"}), build_cluster("west", {"tier": "edge", "zone": "w"})]
VALUES = {
    "size": st.integers(0, 9),
    "word": st.sampled_from(["x", "y", "z"]),
    "a.b": st.booleans(),
    "a.c": st.just([1]),
}


@st.composite
def draw_entries(draw: Any, least: int = 0) -> list[dict[str, Any]]:
    names = draw(st.lists(st.sampled_from(NAMES), unique=True, min_size=least))
    return [dict(build_value(name, draw(VALUES[name]))) for name in names]


CHOICES = st.sampled_from(
    [None, {"clusterNames": ["east"]}, [{"matchLabels": {"zone": "w"}}], {"ignoreClusters": ["west"]}]
)


@st.composite
def draw_overrides(draw: Any) -> list[str]:
    return [
        build_override(
            draw(draw_entries(1)), f"ov-{number}", clusters=draw(CHOICES),
            definitions=draw(st.sampled_from([(), ("shipper",), ("west_options",), ("PluginDefinition/shipper",)])),
            mode=draw(st.sampled_from(["Override", "Default"])), priority=draw(st.integers(-1, 1)),
        )
        for number in range(draw(st.integers(0, 4)))
    ]  # fmt: skip


@st.composite
def draw_configs(draw: Any) -> list[str]:
    """Return the texts of a config."""
    own = build_preset(draw(draw_entries()), on={"east": draw(draw_entries())})
    return [DEFINITION, *CLUSTERS, build_organization(draw(draw_entries())), own, *draw(draw_overrides())]


def normalize_result(result: Any) -> Any:
    """Return all results without the locations."""
    codes = sorted((finding.code, finding.message.partition(" at ")[0]) for finding in list_findings(result))
    return (
        list_plugins(result),
        [variant.dependencies for variant in result.variants],
        codes,
        find_status(result).fields,
    )


@settings(max_examples=examples(60), deadline=None)
@for_all(draw_configs(), st.randoms(use_true_random=False))
def test_order_of_files_does_not_matter(texts: list[str], shuffle: random.Random) -> None:
    shuffled = list(texts)
    shuffle.shuffle(shuffled)

    # Only the file names in messages about duplicates can differ.
    before, after = (
        run_controller({f"{number:02}.yaml": text for number, text in enumerate(items)}) for items in (texts, shuffled)
    )
    assert (list_plugins(before), find_status(before).fields) == (list_plugins(after), find_status(after).fields)
    assert [variant.dependencies for variant in before.variants] == [variant.dependencies for variant in after.variants]
    assert sorted(finding.code for finding in list_findings(before)) == sorted(
        finding.code for finding in list_findings(after)
    )


@settings(max_examples=examples(60), deadline=None)
@for_all(draw_entries(1), draw_overrides(), st.randoms(use_true_random=False))
def test_order_of_options_does_not_matter(
    options: list[dict[str, Any]], others: list[str], shuffle: random.Random
) -> None:
    shuffled = list(options)
    shuffle.shuffle(shuffled)

    before, after = (
        run_controller([DEFINITION, *CLUSTERS, build_preset(items), *others]) for items in (options, shuffled)
    )

    assert [variant.dependencies for variant in before.variants] == [variant.dependencies for variant in after.variants]
    assert list_plugins(before) == list_plugins(after)


ON_EAST: dict[str, Any] = {"clusters": {"clusterNames": ["east"]}}
OF_SHIPPER: dict[str, Any] = {"definitions": ["shipper"]}
REACH: dict[str, dict[str, Any]] = {
    "generic": {},
    "cluster": ON_EAST,
    "definition": OF_SHIPPER,
    "cluster-definition": {**ON_EAST, **OF_SHIPPER},
}
OVERRIDES = {
    **{f"default-{name}": {**reach, "mode": "Default"} for name, reach in REACH.items()},
    **{f"override-{name}": reach for name, reach in REACH.items()},
}
LADDERS = {kind: [option_layer.id for option_layer in LAYERS if option_layer.id not in without] for kind, without in (
    ("preset", {"plugin", "injected"}), ("plugin", {"preset", "preset-cluster", "injected"}),
)}  # fmt: skip


def build_layers(kind: str, layers: Collection[str]) -> list[str]:
    """Return a config in which exactly these layers set the option `size`, each to its own rank."""
    mapping = {
        option_layer.id: [build_value("size", rank)] if option_layer.id in layers else []
        for rank, option_layer in enumerate(LAYERS)
    }
    default = mapping["definition-default"][0]["value"] if mapping["definition-default"] else None
    subject = build_preset(mapping["preset"], on={"east": mapping["preset-cluster"]})
    return [
        build_definition([build_option("size", "int", default)]),
        build_cluster("east", overrides=mapping["cluster"]),
        build_organization(mapping["organization"]),
        build_plugin(mapping["plugin"]) if kind == "plugin" else subject,
        *(build_override(mapping[name], name, **reach) for name, reach in OVERRIDES.items() if mapping[name]),
    ]


@settings(max_examples=examples(40), deadline=None)
@for_all(st.data())
@pytest.mark.parametrize("kind", LADDERS)
def test_next_layer_wins_when_a_layer_is_removed(kind: str, data: st.DataObject) -> None:
    """The layers are removed one by one, from the highest to the lowest."""
    ladder = LADDERS[kind]
    layers = data.draw(st.lists(st.sampled_from(ladder), unique=True, min_size=1))
    remaining = sorted(layers, key=ladder.index)
    while remaining:
        controller_result = run_controller(data.draw(st.permutations(build_layers(kind, remaining))))
        (name,) = list_plugins(controller_result)
        assert list_values(controller_result, name) == {
            "size": [option_layer.id for option_layer in LAYERS].index(remaining[-1])
        }
        assert [step["layer"] for step in list_steps(controller_result, name, "size")] == remaining
        remaining.pop()


@settings(max_examples=examples(40), deadline=None)
@for_all(draw_entries(1), draw_entries(1), st.data())
def test_order_of_clusters_and_definitions_does_not_matter(
    east_options: list[dict[str, Any]], west_options: list[dict[str, Any]], data: st.DataObject
) -> None:
    """Covers cluster entries, cluster selectors, and lists of cluster names and definitions."""

    def build_config(reorder: Any) -> Any:
        choices: Any = [
            {"clusterNames": reorder(["east", "moon"])},
            {"matchLabels": {"zone": "w"}},
            {"ignoreClusters": ["x"]},
        ]
        entries_of = [
            {"clusterName": name, "overrides": item} for name, item in (("east", east_options), ("west", west_options))
        ]
        waits = [{"pluginRef": {"name": name}} for name in ("a", "b")]
        return run_controller([
            DEFINITION, *CLUSTERS, build_override(reorder(west_options), clusters=reorder(choices), definitions=reorder(["shipper", "gone"])),
            build_preset(spec={"clusterOptionOverrides": reorder(entries_of), "waitFor": waits}),
        ])  # fmt: skip

    before, after = build_config(list), build_config(lambda items: data.draw(st.permutations(items)))

    assert (list_plugins(before), list_codes(before)) == (list_plugins(after), list_codes(after))


@settings(max_examples=examples(60), deadline=None)
@for_all(draw_configs())
def test_second_pass_has_the_same_result(texts: list[str]) -> None:
    first = run_controller(texts)

    second = run_controller(texts, FakeBranches.of(first))

    assert normalize_result(first) == normalize_result(second)
    assert [read_plugin(variant, read_plugin(variant)) for variant in first.variants] == [
        read_plugin(variant) for variant in first.variants
    ]
