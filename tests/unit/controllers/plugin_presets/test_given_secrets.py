"""What one definition declares as secret is withheld from all, where a list for many gives it as it is."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.krm.findings import Severity
from tests.unit.controllers.plugin_presets.presets_world import (
    EAST,
    WEST,
    by_expression,
    cluster,
    definition,
    finding,
    findings,
    given,
    option,
    organization,
    override,
    plugins,
    preset,
    room,
    secret,
    steps,
    told,
    values,
)

SECRET = "hunter2"
TOKEN = given("token", SECRET)
HAS = definition([option("token", "secret")])
LOGS, OTHERS = preset(), preset(name="others", definition="other")
OTHER = definition((), "other")
OTHER_BY_TYPE = {
    kind: definition([option("token", kind)], "other") for kind in ("string", "int", "bool", "list", "map")
}
BY_REFERENCE = override([secret("token")], "by-reference", definitions=["shipper"])


def everything(result: Any) -> str:
    """Return all that the room says or makes."""
    provenance = [
        (variant.provenance.list_layers(), variant.provenance.list_objects())
        for variant in result.variants
        if variant.provenance
    ]
    facts = [variant.dependencies for variant in result.variants]
    return repr([findings(result), result.stalled, result.statuses, plugins(result), provenance, facts])


@pytest.mark.parametrize("other", [OTHER, *OTHER_BY_TYPE.values()], ids=["undeclared", *OTHER_BY_TYPE])
@pytest.mark.parametrize(
    "plain",
    [
        pytest.param(organization([TOKEN]), id="organization"),
        pytest.param(cluster("east", overrides=[TOKEN]), id="cluster"),
        pytest.param(override([TOKEN], "all"), id="override"),
        pytest.param(override([TOKEN], "all", mode="Default"), id="default"),
        pytest.param(override([TOKEN], "all", clusters={"clusterNames": ["east"]}), id="override-of-a-cluster"),
        pytest.param(organization([by_expression("token", SECRET)]), id="expression"),
        pytest.param(organization([by_expression("token", SECRET + "${global.nothing}")]), id="expression-that-fails"),
        pytest.param(organization([given("token", {"a": [SECRET]})]), id="map"),
    ],
)
def test_nobody_gets_it(other: str, plain: str) -> None:
    result = room([*([] if "kind: Cluster" in plain else [EAST]), HAS, other, LOGS, OTHERS, plain])

    assert plugins(result) == {}
    assert SECRET not in everything(result)
    assert {item.code for item in findings(result) if item.severity is Severity.ERROR} <= {
        "SecretLiteral",
        "ExpressionFailed",
    }


def test_what_is_told_names_the_entry_and_who_declares_it() -> None:
    result = room([EAST, HAS, OTHER, OTHERS, BY_REFERENCE, organization([TOKEN]), LOGS])

    (told_of,) = (item for item in findings(result) if item.severity is Severity.ERROR)
    assert told_of.location.pointer == "/spec/pluginOverrides/0"
    assert told_of.message == (
        'spec.pluginOverrides[0] sets "token", which PluginDefinition/acme/shipper declares as secret: it must come'
        " from a secret, or be a string with vault+kvv2:///, not *****"
    )
    assert list(plugins(result)) == ["east/logs-east"]
    assert SECRET not in everything(result)


@pytest.mark.parametrize(
    "logs",
    [
        pytest.param(preset(spec={"clusterSelector": {}}), id="a-preset-for-nobody-knows-whom"),
        pytest.param(preset(spec={"plugin": 5}), id="a-preset-of-no-known-definition"),
        pytest.param("kind: [\n", id="a-file-that-cannot-be-read"),
        pytest.param(preset() + "---\n" + preset(), id="a-preset-twice"),
    ],
)
def test_while_not_all_is_known_nobody_gets_it_either(logs: str) -> None:
    result = room([EAST, HAS, OTHER, OTHERS, organization([TOKEN]), logs])

    assert plugins(result) == {}
    assert SECRET not in everything(result)


def test_an_invalid_definition_still_says_what_is_secret() -> None:
    invalid = definition([option("token", "secret"), option("size", "number")])

    result = room([EAST, invalid, OTHER, OTHERS, organization([TOKEN]), LOGS])

    assert plugins(result) == {}
    assert SECRET not in everything(result)


def test_a_preset_without_its_definition_withholds_nothing_from_others() -> None:
    result = room([EAST, OTHER_BY_TYPE["string"], HAS, OTHERS, preset(definition="gone"), organization([TOKEN])])

    assert values(result, "east/others-east") == {"token": SECRET}


def test_where_it_loses_it_is_not_shown() -> None:
    plain = override([given("token", "mine")], "plain", definitions=["other"])

    result = room([EAST, HAS, OTHER_BY_TYPE["string"], OTHERS, plain, organization([TOKEN])])
    with_secret = room([EAST, HAS, LOGS, OTHER_BY_TYPE["string"], OTHERS, plain, organization([TOKEN])])

    assert steps(result, "east/others-east", "token")[-2]["after"] == SECRET
    assert values(with_secret, "east/others-east") == {"token": "mine"}
    assert [step["after"] for step in steps(with_secret, "east/others-east", "token")] == ["*****", "*****"]
    assert SECRET not in everything(with_secret)


@pytest.mark.parametrize(
    "texts",
    [
        pytest.param([OTHERS, organization([TOKEN])], id="no-plugin-of-the-definition"),
        pytest.param([LOGS, OTHERS, override([TOKEN], "ov", definitions=["other"])], id="not-for-the-definition"),
        pytest.param(
            [preset(selector={"matchLabels": {"greenhouse.sap/cluster": "west"}}), OTHERS, WEST,
             override([TOKEN], "ov", clusters={"clusterNames": ["east"]})],
            id="not-on-its-clusters",
        ),
        pytest.param([LOGS, preset([TOKEN], "others", definition="other")], id="in-the-list-of-a-preset"),
        pytest.param([LOGS, OTHERS, organization([given("token", "vault+kvv2:///a")])], id="an-address-of-a-vault"),
        pytest.param([LOGS, OTHERS, organization([by_expression("token", "vault+kvv2:///a")])], id="an-address-made"),
        pytest.param([LOGS, OTHERS, organization([secret("token")])], id="a-reference"),
    ],
)  # fmt: skip
def test_what_is_no_secret_of_anybody_is_written(texts: list[str]) -> None:
    result = room([EAST, HAS, OTHER_BY_TYPE["string"], *texts])

    assert "east/others-east" in plugins(result)
    assert "SecretLiteral" not in told(result)


def test_it_heals_when_the_list_says_for_whom_it_is() -> None:
    texts = [EAST, HAS, OTHER_BY_TYPE["string"], LOGS, OTHERS]

    assert list(plugins(room([*texts, override([TOKEN], "ov")]))) == []
    assert list(plugins(room([*texts, override([TOKEN], "ov", definitions=["other"])]))) == [
        "east/logs-east",
        "east/others-east",
    ]


def test_findings_of_other_options_are_kept() -> None:
    other = definition([option("token"), option("word", regex="^a")], "other")

    result = room(
        [EAST, HAS, other, LOGS, preset([given("word", "b")], "others", definition="other"), organization([TOKEN])]
    )

    assert told(result) == ["RegexMismatch", "SecretLiteral"]
    assert "word" in finding(result, "RegexMismatch").message
    assert result.variants == ()
