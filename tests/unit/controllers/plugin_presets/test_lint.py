"""Tests of the lint warnings about presets, overrides and definitions."""

from __future__ import annotations

import pytest

from reconciler.cel import ExpressionLimits
from reconciler.controllers.clusters.inventory import read_inventory
from reconciler.controllers.plugin_presets.lint import lint_presets
from reconciler.controllers.repositories import read_repositories
from tests.support.policies import format_object
from tests.support.presets import GREENHOUSE, TEAM, cluster, definition, option, preset
from tests.unit.controllers.plugin_presets.controller_world import build_catalog, build_files

BASE_TEXTS = (definition(), cluster("berlin", tier="edge"))


def lint(*texts: str, limits: ExpressionLimits | None = ExpressionLimits()) -> list[tuple[str, str]]:  # noqa: B008
    catalog = build_catalog(build_files(*BASE_TEXTS, *texts))
    inventory = read_inventory(catalog, read_repositories(catalog)[0])
    return [(finding.code, finding.message) for finding in lint_presets(catalog, inventory, limits)]


def build_expression(name: str, text: str) -> dict[str, object]:
    return {"name": name, "expression": text}


def build_override(*options: dict[str, object], **selector: object) -> str:
    chosen = {"clusterSelector": [selector]} if selector else {}
    spec = {**chosen, "overrides": list(options)}
    return format_object("PluginOverride", "more", spec, TEAM, GREENHOUSE)


def test_preset_without_matching_cluster_is_reported() -> None:
    start = "spec.clusterSelector matches no cluster and no Plugin is created"

    assert lint(preset(tiers=("egde",))) == [
        (
            "SelectorMatchesNothing",
            f'{start}, because no Cluster in namespace "acme" has the label "tier=egde"; existing values: "edge"',
        )
    ]


def test_override_without_matching_cluster_is_reported() -> None:
    result = build_override(option("storage", "x"), labelSelector={"matchLabels": {"teir": "edge"}})
    start = "spec.clusterSelector has a labelSelector that matches no cluster"

    assert lint(preset(), result) == [
        (
            "SelectorMatchesNothing",
            f'{start}, because no Cluster in namespace "acme" has the label "teir"; did you mean "tier"?',
        )
    ]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        pytest.param("${nonsense(}", '"${nonsense(}" cannot be evaluated: the expression is incomplete', id="no-cel"),
        pytest.param(
            "${cluster.name}",
            "the variable 'cluster' is not declared; declared variables: global",
            id="an-unknown-variable",
        ),
        pytest.param("", "an expression must not be empty", id="empty"),
    ],
)
def test_unused_expression_is_checked(text: str, reason: str) -> None:
    # The preset has no cluster, and no cluster uses the override.
    (idle, (code, message)) = lint(preset(tiers=("none",), options=[build_expression("storage", text)]))

    assert idle[0] == "SelectorMatchesNothing"
    assert code == "ExpressionUnusable"
    assert message.startswith("the expression in spec.plugin.optionValues[1] fails for every Plugin, because ")
    assert reason in message


def test_expressions_of_overrides_plugins_and_organizations_are_checked() -> None:
    bad = build_expression("storage", "${1 +}")
    organization = format_object("Organization", TEAM, {"pluginOverrides": [bad]}, api=GREENHOUSE)
    spec = {"pluginDefinitionRef": {"kind": "ClusterPluginDefinition", "name": "logshipper"}, "clusterName": "berlin",
            "optionValues": [bad]}  # fmt: skip
    result = lint(build_override(bad), organization, format_object("Plugin", "own", spec, TEAM, GREENHOUSE))

    assert [message.partition(" fails for")[0] for _, message in result] == [
        "the expression in spec.optionValues[0]",
        "the expression in spec.pluginOverrides[0]",
        "the expression in spec.overrides[0]",
    ]  # fmt: skip


def test_error_of_a_secret_expression_is_not_shown() -> None:
    ((_, message),) = lint(preset(options=[build_expression("token", "${hunter2}")]))

    assert "hunter2" not in message
    assert message.endswith(". The error is not shown, because it may contain a secret")


def test_disabled_expressions_are_not_checked() -> None:
    assert lint(preset(options=[build_expression("storage", "${1 +}")]), limits=None) == []


def test_deprecated_field_of_a_definition_is_reported() -> None:
    chart = {"name": "x", "repository": "oci://x.example.test", "version": "1"}
    old = format_object(
        "PluginDefinition", "x", {"version": "1", "helmChart": chart, "docMarkDownUrl": "u"}, TEAM, GREENHOUSE
    )

    assert lint(old) == [("Deprecated", "spec.docMarkDownUrl is deprecated; use spec.docsURL")]


def test_valid_preset_and_override_have_no_findings() -> None:
    right = build_expression("storage", "${global.greenhouse.clusterName}-fast")

    assert lint(preset(options=[right]), build_override(right, labelSelector={"matchLabels": {"tier": "edge"}})) == []
