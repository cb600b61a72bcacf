"""Whatever people write: order matters only where it is said to, what goes shows the next, secrets never show."""

from __future__ import annotations

import random
from typing import Any

from hypothesis import given as for_all
from hypothesis import settings
from hypothesis import strategies as st

from reconciler.krm.yaml import emit
from tests.unit.rules.presets.presets_world import (
    Branches,
    cluster,
    data_of,
    definition,
    findings,
    given,
    option,
    organization,
    override,
    plugins,
    preset,
    room,
    secret,
    status,
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
    codes = sorted((one.code, one.message.partition(" at ")[0]) for one in findings(result))
    return plugins(result), [one.facts for one in result.variants], codes, status(result).fields


@settings(max_examples=60, deadline=None)
@for_all(worlds(), st.randoms(use_true_random=False))
def test_the_order_of_files_does_not_matter(texts: list[str], shuffle: random.Random) -> None:
    mixed = list(texts)
    shuffle.shuffle(mixed)

    # which copy of a message names which file is all that may differ
    before, after = (room({f"{number:02}.yaml": text for number, text in enumerate(some)}) for some in (texts, mixed))
    assert (plugins(before), status(before).fields) == (plugins(after), status(after).fields)
    assert [one.facts for one in before.variants] == [one.facts for one in after.variants]
    assert sorted(one.code for one in findings(before)) == sorted(one.code for one in findings(after))


@settings(max_examples=60, deadline=None)
@for_all(entries(1), overrides(), st.randoms(use_true_random=False))
def test_the_order_of_a_list_does_not_matter(
    options: list[dict[str, Any]], others: list[str], shuffle: random.Random
) -> None:
    mixed = list(options)
    shuffle.shuffle(mixed)

    before, after = (room([DEFINITION, *CLUSTERS, preset(some), *others]) for some in (options, mixed))

    assert [one.facts for one in before.variants] == [one.facts for one in after.variants]
    assert plugins(before) == plugins(after)


@settings(max_examples=60, deadline=None)
@for_all(worlds(), st.data())
def test_a_layer_that_goes_shows_the_next(texts: list[str], data: st.DataObject) -> None:
    """Removing the statement that wins gives what the one below it says."""
    result = room(texts)
    assert result.variants
    variant = data.draw(st.sampled_from(result.variants))
    assert variant.provenance is not None
    told_of = [
        one for one in variant.provenance.layers() if not one["option"].startswith("global.") and len(one["steps"]) > 1
    ]
    if not told_of:
        return
    one = data.draw(st.sampled_from(told_of))
    winner, below = one["steps"][-1], one["steps"][-2]
    number = int(winner["file"].removesuffix(".yaml"))
    without = [text for at, text in enumerate(texts) if at != number]
    if winner["by"].startswith("PluginOverride/"):
        name = f"{variant.place.repository}/{variant.owner.key.name}"
        assert values(room(without), name)[one["option"]] == below["after"]


@settings(max_examples=60, deadline=None)
@for_all(worlds())
def test_the_same_again_is_silent(texts: list[str]) -> None:
    first = room(texts)

    second = room(texts, Branches.of(first))

    assert shown(first) == shown(second)
    assert [data_of(one, data_of(one)) for one in first.variants] == [data_of(one) for one in first.variants]


MARK = "marked-secret-7316"
SECRETS = st.sampled_from([MARK, [MARK], {"a": MARK}, {MARK: 1}])


@settings(max_examples=80, deadline=None)
@for_all(SECRETS, st.integers(0, 4), st.booleans(), worlds())
def test_no_secret_is_ever_shown(value: Any, place: int, covered: bool, texts: list[str]) -> None:
    """Whatever layer a secret is written on, and whether or not a reference covers it."""
    bad = given("key", value)
    by_expression = {"name": "key", "expression": emit(value) + " ${global.nothing}"}
    layers = [
        preset([bad]),
        preset(on={"east": [bad]}),
        organization([bad]),
        override([bad], "bad"),
        preset([by_expression]),
    ]
    rest = [text for text in texts if not (place in (0, 1, 4) and "kind: PluginPreset" in text)]
    rest = [text for text in rest if not (place == 2 and "kind: Organization" in text)]
    above = [override([secret("key")], "z", priority=9, definitions=["shipper"])] if covered else []

    result = room([*rest, layers[place], *above])

    provenance = [one.provenance.layers() for one in result.variants if one.provenance]
    everything = [findings(result), result.stalled, result.statuses, result.findings, plugins(result), provenance]
    assert MARK not in repr(everything) + repr([one.facts for one in result.variants])
