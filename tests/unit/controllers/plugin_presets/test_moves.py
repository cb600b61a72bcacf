"""What moves when somebody changes something: the Plugins that it reaches, and no others (greenhouse 18)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.controllers.plugin_presets.presets_world import (
    by_expression,
    cluster,
    definition,
    given,
    option,
    organization,
    override,
    preset,
    room,
    told,
)

WORLD: dict[str, str] = {
    "east.yaml": cluster("east", {"tier": "edge", "zone": "e", "metadata.greenhouse.sap/region": "n"}),
    "west.yaml": cluster("west", {"tier": "edge", "zone": "w", "metadata.greenhouse.sap/region": "s"}),
    "shipper.yaml": definition([option("size", "int", 1), option("word"), option("where")]),
    "tracer.yaml": definition([option("size", "int", 1)], "tracer"),
    "logs.yaml": preset([given("word", "a"), by_expression("where", "${global.greenhouse.metadata.region}")]),
    "traces.yaml": preset(name="traces", definition="tracer"),
    "org.yaml": organization([given("word", "b")]),
    "west-override.yaml": override([given("size", 2)], "ov-west", clusters={"matchLabels": {"zone": "w"}}),
    "all.yaml": override([given("size", 3)], "ov-shipper", definitions=["shipper"]),
}


def facts(files: dict[str, str]) -> dict[str, Any]:
    return {
        f"{variant.target.repository}/{variant.owner.key.name}": dict(variant.dependencies)
        for variant in room(files).variants
    }


def moved(**changes: str) -> dict[str, list[str]]:
    """Return the Plugins that move when files change, each with what is told as the cause."""
    before, after = (
        facts(WORLD),
        facts({**WORLD, **{name.replace("_", "-") + ".yaml": text for name, text in changes.items()}}),
    )
    return {
        name: sorted(cause for cause, _ in before[name].items() ^ after[name].items())
        for name in before
        if before[name] != after[name]
    }


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        pytest.param(
            {"west_override": override([given("size", 9)], "ov-west", clusters={"matchLabels": {"zone": "w"}})},
            {"west/traces-west": ["PluginOverride/acme/ov-west"] * 2},
            id="an-override-that-wins-on-one-of-two",
        ),
        pytest.param(
            {"all": override([given("size", 9)], "ov-shipper", definitions=["shipper"])},
            {f"{item}/logs-{item}": ["PluginOverride/acme/ov-shipper"] * 2 for item in ("east", "west")},
            id="a-definition's",
        ),
        pytest.param(
            {"org": organization([given("word", "c")])},
            {
                f"{item}/{preset}-{item}": ["Organization/_cluster/acme"] * 2
                for item in ("east", "west")
                for preset in ("logs", "traces")
            },
            id="the-organization's",
        ),
        pytest.param(
            {"west": cluster("west", {"tier": "edge", "zone": "w", "metadata.greenhouse.sap/region": "x"})},
            {
                "west/logs-west": ["Cluster/acme/west"] * 2 + ["PluginPreset/acme/logs"] * 2,
                "west/traces-west": ["Cluster/acme/west"] * 2,
            },
            id="17.10-a-metadata-label",
        ),
        pytest.param(
            {"logs": preset([given("word", "z"), by_expression("where", "${global.greenhouse.metadata.region}")])},
            {},
            id="a-value-that-loses-everywhere",
        ),
        pytest.param(
            {
                "logs": preset(
                    [given("word", "a"), by_expression("where", "${global.greenhouse.metadata.region}")],
                    on={"west": [given("size", 7)]},
                )
            },
            {"west/logs-west": ["PluginOverride/acme/ov-shipper", "PluginPreset/acme/logs", "PluginPreset/acme/logs"]},
            id="one-cluster-of-a-preset",
        ),
        pytest.param(
            {"logs": preset([by_expression("where", "${global.greenhouse.metadata.region}"), given("word", "a")])},
            {},
            id="another-order",
        ),
        pytest.param({"org": "# a comment\n" + organization([given("word", "b")])}, {}, id="a-comment"),
        pytest.param(
            {"zz": override([given("size", 5)], "other", definitions=["nothing"])}, {}, id="an-override-for-nobody"
        ),
    ],
)
def test_a_change_moves_what_it_reaches(changes: dict[str, str], expected: dict[str, list[str]]) -> None:
    assert moved(**changes) == expected


def test_one_fault_is_told_once_however_many_plugins_it_spoils() -> None:
    result = room({**WORLD, "org.yaml": organization([given("size", "big")]), "all.yaml": "", "west-override.yaml": ""})

    told_of = [finding for stalled in result.stalled for finding in stalled.findings]
    assert len(result.stalled) == 4
    assert [finding.code for finding in told_of] == ["OptionTypeMismatch", "OptionTypeMismatch"]
    assert "OptionTypeMismatch" in told(result)
