"""What is odd about presets, overrides and definitions, though no Plugin stumbles over it."""

from __future__ import annotations

import pytest

from reconciler.cel import ExpressionLimits
from reconciler.controllers.clusters.inventory import read_inventory
from reconciler.controllers.plugin_presets.lint import lint_presets
from reconciler.controllers.repositories import read_repositories
from tests.support.policies import format_object
from tests.support.presets import GREENHOUSE, TEAM, cluster, definition, option, preset
from tests.unit.controllers.plugin_presets.presets_world import catalog_of, config

WORLD = (definition(), cluster("berlin", tier="edge"))


def lint(*texts: str, limits: ExpressionLimits | None = ExpressionLimits()) -> list[tuple[str, str]]:  # noqa: B008
    catalog = catalog_of(config(*WORLD, *texts))
    inventory = read_inventory(catalog, read_repositories(catalog)[0])
    return [(finding.code, finding.message) for finding in lint_presets(catalog, inventory, limits)]


def expression(name: str, text: str) -> dict[str, object]:
    return {"name": name, "expression": text}


def override(*options: dict[str, object], **selector: object) -> str:
    chosen = {"clusterSelector": [selector]} if selector else {}
    spec = {**chosen, "overrides": list(options)}
    return format_object("PluginOverride", "more", spec, TEAM, GREENHOUSE)


def test_a_preset_that_selects_no_cluster() -> None:
    start = "spec.clusterSelector matches no cluster, so that no Plugin is created"

    assert lint(preset(tiers=("egde",))) == [
        ("SelectorMatchesNothing", f"{start}: no Cluster of acme has tier=egde; there are edge")
    ]


def test_an_override_that_selects_no_cluster() -> None:
    result = override(option("storage", "x"), labelSelector={"matchLabels": {"teir": "edge"}})
    start = "spec.clusterSelector has a labelSelector that matches no cluster"

    assert lint(preset(), result) == [
        ("SelectorMatchesNothing", f"{start}: no Cluster of acme has a label teir; did you mean tier?")
    ]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        pytest.param("${nonsense(}", '"${nonsense(}" cannot be evaluated: the expression is incomplete', id="no-cel"),
        pytest.param("${cluster.name}", "undeclared variable 'cluster'; declared: global", id="an-unknown-variable"),
        pytest.param("", "an expression must not be empty", id="empty"),
    ],
)
def test_an_expression_that_no_cluster_reaches(text: str, why: str) -> None:
    # the preset has no cluster; the override is for none
    (idle, (code, message)) = lint(preset(tiers=("none",), options=[expression("storage", text)]))

    assert idle[0] == "SelectorMatchesNothing"
    assert code == "ExpressionUnusable"
    assert message.startswith("spec.plugin.optionValues[1] fails for every Plugin: ")
    assert why in message


def test_an_expression_of_an_override_of_a_plugin_and_of_an_organization() -> None:
    bad = expression("storage", "${1 +}")
    organization = format_object("Organization", TEAM, {"pluginOverrides": [bad]}, api=GREENHOUSE)
    spec = {"pluginDefinitionRef": {"kind": "ClusterPluginDefinition", "name": "logshipper"}, "clusterName": "berlin",
            "optionValues": [bad]}  # fmt: skip
    result = lint(override(bad), organization, format_object("Plugin", "own", spec, TEAM, GREENHOUSE))

    assert [message.partition(" fails for")[0] for _, message in result] == [
        "spec.optionValues[0]", "spec.pluginOverrides[0]", "spec.overrides[0]",
    ]  # fmt: skip


def test_what_is_wrong_with_a_secret_is_not_shown() -> None:
    ((_, message),) = lint(preset(options=[expression("token", "${hunter2}")]))

    assert "hunter2" not in message
    assert message.endswith("the error is not shown, because it may contain a secret")


def test_expressions_that_are_switched_off_are_not_looked_at() -> None:
    assert lint(preset(options=[expression("storage", "${1 +}")]), limits=None) == []


def test_an_old_spelling_of_a_definition() -> None:
    chart = {"name": "x", "repository": "oci://x.example.test", "version": "1"}
    old = format_object(
        "PluginDefinition", "x", {"version": "1", "helmChart": chart, "docMarkDownUrl": "u"}, TEAM, GREENHOUSE
    )

    assert lint(old) == [("Deprecated", "spec.docMarkDownUrl is deprecated; use spec.docsURL")]


def test_nothing_is_odd_about_what_is_right() -> None:
    right = expression("storage", "${global.greenhouse.clusterName}-fast")

    assert lint(preset(options=[right]), override(right, labelSelector={"matchLabels": {"tier": "edge"}})) == []
