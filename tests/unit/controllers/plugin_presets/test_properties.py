"""Whatever people write: order matters only where it is said to, and what goes shows the next."""

from __future__ import annotations

import random
from collections.abc import Collection
from typing import Any

import pytest
from hypothesis import given as for_all
from hypothesis import settings
from hypothesis import strategies as st

from reconciler.controllers.plugin_presets.option_layers import LAYERS
from tests.unit.controllers.plugin_presets.presets_world import (
    Branches,
    cluster,
    data_of,
    definition,
    findings,
    given,
    option,
    organization,
    override,
    plugin,
    plugins,
    preset,
    room,
    status,
    steps,
    told,
    values,
)

NAMES = ["a.b", "a.c", "size", "word"]
DEFINITION = definition([option("size", "int", 0), option("word", default="none"), option("key", "secret")])
CLUSTERS = [cluster("east", {"tier": "edge", "zone": "e"}), cluster("west", {"tier": "edge", "zone": "w"})]
VALUES = {
    "size": st.integers(0, 9),
    "word": st.sampled_from(["x", "y", "z"]),
    "a.b": st.booleans(),
    "a.c": st.just([1]),
}


@st.composite
def entries(draw: Any, least: int = 0) -> list[dict[str, Any]]:
    names = draw(st.lists(st.sampled_from(NAMES), unique=True, min_size=least))
    return [dict(given(name, draw(VALUES[name]))) for name in names]


CHOICES = st.sampled_from(
    [None, {"clusterNames": ["east"]}, [{"matchLabels": {"zone": "w"}}], {"ignoreClusters": ["west"]}]
)


@st.composite
def overrides(draw: Any) -> list[str]:
    return [
        override(
            draw(entries(1)), f"ov-{number}", clusters=draw(CHOICES),
            definitions=draw(st.sampled_from([(), ("shipper",), ("other",), ("PluginDefinition/shipper",)])),
            mode=draw(st.sampled_from(["Override", "Default"])), priority=draw(st.integers(-1, 1)),
        )
        for number in range(draw(st.integers(0, 4)))
    ]  # fmt: skip


@st.composite
def worlds(draw: Any) -> list[str]:
    """Return the texts of a world."""
    own = preset(draw(entries()), on={"east": draw(entries())})
    return [DEFINITION, *CLUSTERS, organization(draw(entries())), own, *draw(overrides())]


def shown(result: Any) -> Any:
    """Return all that comes out, places in files aside."""
    codes = sorted((finding.code, finding.message.partition(" at ")[0]) for finding in findings(result))
    return plugins(result), [variant.dependencies for variant in result.variants], codes, status(result).fields


@settings(max_examples=60, deadline=None)
@for_all(worlds(), st.randoms(use_true_random=False))
def test_the_order_of_files_does_not_matter(texts: list[str], shuffle: random.Random) -> None:
    mixed = list(texts)
    shuffle.shuffle(mixed)

    # which copy of a message names which file is all that may differ
    before, after = (room({f"{number:02}.yaml": text for number, text in enumerate(some)}) for some in (texts, mixed))
    assert (plugins(before), status(before).fields) == (plugins(after), status(after).fields)
    assert [variant.dependencies for variant in before.variants] == [variant.dependencies for variant in after.variants]
    assert sorted(finding.code for finding in findings(before)) == sorted(finding.code for finding in findings(after))


@settings(max_examples=60, deadline=None)
@for_all(entries(1), overrides(), st.randoms(use_true_random=False))
def test_the_order_of_a_list_does_not_matter(
    options: list[dict[str, Any]], others: list[str], shuffle: random.Random
) -> None:
    mixed = list(options)
    shuffle.shuffle(mixed)

    before, after = (room([DEFINITION, *CLUSTERS, preset(some), *others]) for some in (options, mixed))

    assert [variant.dependencies for variant in before.variants] == [variant.dependencies for variant in after.variants]
    assert plugins(before) == plugins(after)


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


def stack(kind: str, layers: Collection[str]) -> list[str]:
    """Return a world in which each of these layers says its own rank of the option `size`, and no other one does."""
    mapping = {
        option_layer.id: [given("size", rank)] if option_layer.id in layers else []
        for rank, option_layer in enumerate(LAYERS)
    }
    default = mapping["definition-default"][0]["value"] if mapping["definition-default"] else None
    subject = preset(mapping["preset"], on={"east": mapping["preset-cluster"]})
    return [
        definition([option("size", "int", default)]),
        cluster("east", overrides=mapping["cluster"]),
        organization(mapping["organization"]),
        plugin(mapping["plugin"]) if kind == "plugin" else subject,
        *(override(mapping[name], name, **reach) for name, reach in OVERRIDES.items() if mapping[name]),
    ]


@settings(max_examples=40, deadline=None)
@for_all(st.data())
@pytest.mark.parametrize("kind", LADDERS)
def test_a_layer_that_goes_shows_the_next(kind: str, data: st.DataObject) -> None:
    """Any of them, taken away one by one from above."""
    ladder = LADDERS[kind]
    layers = data.draw(st.lists(st.sampled_from(ladder), unique=True, min_size=1))
    left = sorted(layers, key=ladder.index)
    while left:
        controller_result = room(data.draw(st.permutations(stack(kind, left))))
        (name,) = plugins(controller_result)
        assert values(controller_result, name) == {"size": [option_layer.id for option_layer in LAYERS].index(left[-1])}
        assert [step["layer"] for step in steps(controller_result, name, "size")] == left
        left.pop()


@settings(max_examples=40, deadline=None)
@for_all(entries(1), entries(1), st.data())
def test_the_order_of_other_lists_does_not_matter(
    one: list[dict[str, Any]], other: list[dict[str, Any]], data: st.DataObject
) -> None:
    """Of cluster entries, of choices of clusters, and of names of clusters and definitions."""

    def world(mix: Any) -> Any:
        choices: Any = [
            {"clusterNames": mix(["east", "moon"])},
            {"matchLabels": {"zone": "w"}},
            {"ignoreClusters": ["x"]},
        ]
        entries_of = [{"clusterName": name, "overrides": item} for name, item in (("east", one), ("west", other))]
        waits = [{"pluginRef": {"name": name}} for name in ("a", "b")]
        return room([
            DEFINITION, *CLUSTERS, override(mix(other), clusters=mix(choices), definitions=mix(["shipper", "gone"])),
            preset(spec={"clusterOptionOverrides": mix(entries_of), "waitFor": waits}),
        ])  # fmt: skip

    before, after = world(list), world(lambda items: data.draw(st.permutations(items)))

    assert (plugins(before), told(before)) == (plugins(after), told(after))


@settings(max_examples=60, deadline=None)
@for_all(worlds())
def test_the_same_again_is_silent(texts: list[str]) -> None:
    first = room(texts)

    second = room(texts, Branches.of(first))

    assert shown(first) == shown(second)
    assert [data_of(variant, data_of(variant)) for variant in first.variants] == [
        data_of(variant) for variant in first.variants
    ]
