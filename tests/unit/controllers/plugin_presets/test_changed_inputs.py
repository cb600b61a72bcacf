"""Tests of the dependencies of Plugins: a change of the config changes only the Plugins that use the changed input."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.controllers.plugin_presets.controller_world import (
    build_cluster,
    build_definition,
    build_expression_value,
    build_option,
    build_organization,
    build_override,
    build_preset,
    build_value,
    list_codes,
    run_controller,
)

FILES: dict[str, str] = {
    "east.yaml": build_cluster("east", {"tier": "edge", "zone": "e", "metadata.greenhouse.sap/region": "n"}),
    "west.yaml": build_cluster("west", {"tier": "edge", "zone": "w", "metadata.greenhouse.sap/region": "s"}),
    "shipper.yaml": build_definition([build_option("size", "int", 1), build_option("word"), build_option("where")]),
    "tracer.yaml": build_definition([build_option("size", "int", 1)], "tracer"),
    "logs.yaml": build_preset(
        [build_value("word", "a"), build_expression_value("where", "${global.greenhouse.metadata.region}")]
    ),
    "traces.yaml": build_preset(name="traces", definition="tracer"),
    "org.yaml": build_organization([build_value("word", "b")]),
    "west-override.yaml": build_override([build_value("size", 2)], "ov-west", clusters={"matchLabels": {"zone": "w"}}),
    "all.yaml": build_override([build_value("size", 3)], "ov-shipper", definitions=["shipper"]),
}


def list_dependencies(files: dict[str, str]) -> dict[str, Any]:
    return {
        f"{variant.target.repository}/{variant.owner.key.name}": dict(variant.dependencies)
        for variant in run_controller(files).variants
    }


def list_changed_plugins(**changes: str) -> dict[str, list[str]]:
    """Return the Plugins whose dependencies change when files change, with the names of the dependencies."""
    before, after = (
        list_dependencies(FILES),
        list_dependencies({**FILES, **{name.replace("_", "-") + ".yaml": text for name, text in changes.items()}}),
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
            {
                "west_override": build_override(
                    [build_value("size", 9)], "ov-west", clusters={"matchLabels": {"zone": "w"}}
                )
            },
            {"west/traces-west": ["PluginOverride/acme/ov-west"] * 2},
            id="an-override-that-wins-on-one-of-two",
        ),
        pytest.param(
            {"all": build_override([build_value("size", 9)], "ov-shipper", definitions=["shipper"])},
            {f"{item}/logs-{item}": ["PluginOverride/acme/ov-shipper"] * 2 for item in ("east", "west")},
            id="a-definition's",
        ),
        pytest.param(
            {"org": build_organization([build_value("word", "c")])},
            {
                f"{item}/{preset}-{item}": ["Organization/_cluster/acme"] * 2
                for item in ("east", "west")
                for preset in ("logs", "traces")
            },
            id="the-organization's",
        ),
        pytest.param(
            {"west": build_cluster("west", {"tier": "edge", "zone": "w", "metadata.greenhouse.sap/region": "x"})},
            {
                "west/logs-west": ["Cluster/acme/west"] * 2 + ["PluginPreset/acme/logs"] * 2,
                "west/traces-west": ["Cluster/acme/west"] * 2,
            },
            id="a-metadata-label",
        ),
        pytest.param(
            {
                "logs": build_preset(
                    [build_value("word", "z"), build_expression_value("where", "${global.greenhouse.metadata.region}")]
                )
            },
            {},
            id="a-value-that-loses-everywhere",
        ),
        pytest.param(
            {
                "logs": build_preset(
                    [build_value("word", "a"), build_expression_value("where", "${global.greenhouse.metadata.region}")],
                    on={"west": [build_value("size", 7)]},
                )
            },
            {"west/logs-west": ["PluginOverride/acme/ov-shipper", "PluginPreset/acme/logs", "PluginPreset/acme/logs"]},
            id="one-cluster-of-a-preset",
        ),
        pytest.param(
            {
                "logs": build_preset(
                    [build_expression_value("where", "${global.greenhouse.metadata.region}"), build_value("word", "a")]
                )
            },
            {},
            id="another-order",
        ),
        pytest.param({"org": "# a comment\n" + build_organization([build_value("word", "b")])}, {}, id="a-comment"),
        pytest.param(
            {"zz": build_override([build_value("size", 5)], "other", definitions=["nothing"])},
            {},
            id="an-override-for-no-plugin",
        ),
    ],
)
def test_change_affects_only_the_plugins_that_use_it(changes: dict[str, str], expected: dict[str, list[str]]) -> None:
    assert list_changed_plugins(**changes) == expected


def test_shared_error_is_reported_once_for_all_plugins() -> None:
    result = run_controller(
        {
            **FILES,
            "org.yaml": build_organization([build_value("size", "big")]),
            "all.yaml": "",
            "west-override.yaml": "",
        }
    )

    stalled_findings = [finding for stalled in result.stalled for finding in stalled.findings]
    assert len(result.stalled) == 4
    assert [finding.code for finding in stalled_findings] == ["OptionTypeMismatch", "OptionTypeMismatch"]
    assert "OptionTypeMismatch" in list_codes(result)
