"""Tests of secrets in shared lists: a literal value is withheld from all Plugins if one definition declares the
option as secret.
"""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.krm.findings import Severity
from tests.unit.controllers.plugin_presets.controller_world import (
    EAST,
    WEST,
    build_cluster,
    build_definition,
    build_expression_value,
    build_option,
    build_organization,
    build_override,
    build_preset,
    build_secret_value,
    build_value,
    find_finding,
    list_codes,
    list_findings,
    list_plugins,
    list_steps,
    list_values,
    run_controller,
)

SECRET = "hunter2"
TOKEN = build_value("token", SECRET)
HAS = build_definition([build_option("token", "secret")])
LOGS, OTHERS = build_preset(), build_preset(name="others", definition="other")
OTHER = build_definition((), "other")
OTHER_BY_TYPE = {
    kind: build_definition([build_option("token", kind)], "other") for kind in ("string", "int", "bool", "list", "map")
}
BY_REFERENCE = build_override([build_secret_value("token")], "by-reference", definitions=["shipper"])


def format_result(result: Any) -> str:
    """Return all texts of a result as one string."""
    provenance = [
        (variant.provenance.list_layers(), variant.provenance.list_objects())
        for variant in result.variants
        if variant.provenance
    ]
    facts = [variant.dependencies for variant in result.variants]
    return repr([list_findings(result), result.stalled, result.statuses, list_plugins(result), provenance, facts])


@pytest.mark.parametrize("other", [OTHER, *OTHER_BY_TYPE.values()], ids=["undeclared", *OTHER_BY_TYPE])
@pytest.mark.parametrize(
    "plain",
    [
        pytest.param(build_organization([TOKEN]), id="organization"),
        pytest.param(build_cluster("east", overrides=[TOKEN]), id="cluster"),
        pytest.param(build_override([TOKEN], "all"), id="override"),
        pytest.param(build_override([TOKEN], "all", mode="Default"), id="default"),
        pytest.param(build_override([TOKEN], "all", clusters={"clusterNames": ["east"]}), id="override-of-a-cluster"),
        pytest.param(build_organization([build_expression_value("token", SECRET)]), id="expression"),
        pytest.param(
            build_organization([build_expression_value("token", SECRET + "${global.nothing}")]),
            id="expression-that-fails",
        ),
        pytest.param(build_organization([build_value("token", {"a": [SECRET]})]), id="map"),
    ],
)
def test_literal_secret_in_a_shared_list_is_withheld_from_all(other: str, plain: str) -> None:
    result = run_controller([*([] if "kind: Cluster" in plain else [EAST]), HAS, other, LOGS, OTHERS, plain])

    assert list_plugins(result) == {}
    assert SECRET not in format_result(result)
    assert {item.code for item in list_findings(result) if item.severity is Severity.ERROR} <= {
        "SecretLiteral",
        "ExpressionFailed",
    }


def test_finding_names_the_entry_and_the_definition() -> None:
    result = run_controller([EAST, HAS, OTHER, OTHERS, BY_REFERENCE, build_organization([TOKEN]), LOGS])

    (error,) = (item for item in list_findings(result) if item.severity is Severity.ERROR)
    assert error.location.pointer == "/spec/pluginOverrides/0"
    assert error.message == (
        'spec.pluginOverrides[0] sets "token", which PluginDefinition acme/shipper declares as "secret": the value must come'
        " from a secret, or be a string that contains vault+kvv2:///, but is *****"
    )
    assert list(list_plugins(result)) == ["east/logs-east"]
    assert SECRET not in format_result(result)


@pytest.mark.parametrize(
    "logs",
    [
        pytest.param(build_preset(spec={"clusterSelector": {}}), id="a-preset-with-an-empty-selector"),
        pytest.param(build_preset(spec={"plugin": 5}), id="a-preset-of-no-known-definition"),
        pytest.param("kind: [\n", id="a-file-that-cannot-be-read"),
        pytest.param(build_preset() + "---\n" + build_preset(), id="a-preset-twice"),
    ],
)
def test_literal_is_withheld_while_a_definition_is_unknown(logs: str) -> None:
    result = run_controller([EAST, HAS, OTHER, OTHERS, build_organization([TOKEN]), logs])

    assert list_plugins(result) == {}
    assert SECRET not in format_result(result)


def test_invalid_definition_still_declares_its_secrets() -> None:
    invalid = build_definition([build_option("token", "secret"), build_option("size", "number")])

    result = run_controller([EAST, invalid, OTHER, OTHERS, build_organization([TOKEN]), LOGS])

    assert list_plugins(result) == {}
    assert SECRET not in format_result(result)


def test_preset_without_definition_does_not_affect_others() -> None:
    result = run_controller(
        [EAST, OTHER_BY_TYPE["string"], HAS, OTHERS, build_preset(definition="gone"), build_organization([TOKEN])]
    )

    assert list_values(result, "east/others-east") == {"token": SECRET}


def test_literal_secret_that_loses_is_masked() -> None:
    plain = build_override([build_value("token", "mine")], "plain", definitions=["other"])

    result = run_controller([EAST, HAS, OTHER_BY_TYPE["string"], OTHERS, plain, build_organization([TOKEN])])
    with_secret = run_controller([EAST, HAS, LOGS, OTHER_BY_TYPE["string"], OTHERS, plain, build_organization([TOKEN])])

    assert list_steps(result, "east/others-east", "token")[-2]["after"] == SECRET
    assert list_values(with_secret, "east/others-east") == {"token": "mine"}
    assert [step["after"] for step in list_steps(with_secret, "east/others-east", "token")] == ["*****", "*****"]
    assert SECRET not in format_result(with_secret)


@pytest.mark.parametrize(
    "texts",
    [
        pytest.param([OTHERS, build_organization([TOKEN])], id="no-plugin-of-the-definition"),
        pytest.param([LOGS, OTHERS, build_override([TOKEN], "ov", definitions=["other"])], id="not-for-the-definition"),
        pytest.param(
            [build_preset(selector={"matchLabels": {"greenhouse.sap/cluster": "west"}}), OTHERS, WEST,
             build_override([TOKEN], "ov", clusters={"clusterNames": ["east"]})],
            id="not-on-its-clusters",
        ),
        pytest.param([LOGS, build_preset([TOKEN], "others", definition="other")], id="in-the-list-of-a-preset"),
        pytest.param([LOGS, OTHERS, build_organization([build_value("token", "vault+kvv2:///a")])], id="an-address-of-a-vault"),
        pytest.param([LOGS, OTHERS, build_organization([build_expression_value("token", "vault+kvv2:///a")])], id="an-address-made"),
        pytest.param([LOGS, OTHERS, build_organization([build_secret_value("token")])], id="a-reference"),
    ],
)  # fmt: skip
def test_literal_of_a_plain_option_is_written(texts: list[str]) -> None:
    result = run_controller([EAST, HAS, OTHER_BY_TYPE["string"], *texts])

    assert "east/others-east" in list_plugins(result)
    assert "SecretLiteral" not in list_codes(result)


def test_literal_is_written_when_its_list_selects_the_definition() -> None:
    texts = [EAST, HAS, OTHER_BY_TYPE["string"], LOGS, OTHERS]

    assert list(list_plugins(run_controller([*texts, build_override([TOKEN], "ov")]))) == []
    assert list(list_plugins(run_controller([*texts, build_override([TOKEN], "ov", definitions=["other"])]))) == [
        "east/logs-east",
        "east/others-east",
    ]


def test_findings_of_other_options_stay() -> None:
    other = build_definition([build_option("token"), build_option("word", regex="^a")], "other")

    result = run_controller(
        [
            EAST,
            HAS,
            other,
            LOGS,
            build_preset([build_value("word", "b")], "others", definition="other"),
            build_organization([TOKEN]),
        ]
    )

    assert list_codes(result) == ["RegexMismatch", "SecretLiteral"]
    assert "word" in find_finding(result, "RegexMismatch").message
    assert result.variants == ()
