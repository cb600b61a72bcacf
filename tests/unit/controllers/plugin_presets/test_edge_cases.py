"""The edge cases that the spec lists, each as a row (greenhouse 17), and its worked example (16)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from reconciler.controllers.plugin_presets.status import complete_status
from reconciler.krm.findings import Severity
from tests.unit.controllers.plugin_presets.presets_world import (
    CORE,
    EAST,
    WEST,
    Branches,
    by_expression,
    cluster,
    conditions,
    definition,
    finding,
    findings,
    given,
    option,
    organization,
    override,
    plugin,
    plugins,
    preset,
    room,
    secret,
    status,
    steps,
    told,
    values,
    variant_of,
    written,
)

SIZE = definition([option("size", "int", 1)])
EVERYTHING_SAYS = [
    definition([option("size", "int", 1)]),
    preset([given("size", 2)], on={"east": [given("size", 6)]}),
    organization([given("size", 3)]),
    override([given("size", 4)], "generic"),
    cluster("east", overrides=[given("size", 5)]),
    override([given("size", 7)], "both", clusters={"clusterNames": ["east"]}, definitions=["shipper"]),
]


def test_the_highest_layer_wins_over_all_others() -> None:
    """17.1: at org, cluster, generic, definition and preset-cluster at once."""
    result = room(EVERYTHING_SAYS)

    assert values(result, "east/logs-east") == {"size": 6}
    assert [(step["layer"], step["after"]) for step in steps(result, "east/logs-east", "size")] == [
        ("definition-default", 1),
        ("preset", 2),
        ("organization", 3),
        ("override-generic", 4),
        ("cluster", 5),
        ("override-cluster-definition", 7),
        ("preset-cluster", 6),
    ]


@pytest.mark.parametrize(
    ("first", "second", "winner"),
    [
        pytest.param({"priority": 1}, {"priority": 2}, 22, id="priority"),
        pytest.param({"priority": 2}, {"priority": 1}, 11, id="priority-whatever-the-name"),
        pytest.param({"priority": -1}, {}, 22, id="no-priority-is-nought"),
        pytest.param({"created": "2026-02-02T00:00:00Z"}, {"created": "2026-01-01T00:00:00Z"}, 11, id="then-time"),
        pytest.param({"created": "2026-02-02T00:00:00Z"}, {}, 11, id="no-time-is-before-all"),
        pytest.param({}, {}, 22, id="then-name"),
        pytest.param({"priority": 1}, {"created": "2026-01-01T00:00:00Z"}, 11, id="priority-before-time"),
    ],
)
def test_of_two_generic_overrides_one_is_applied_last(first: Any, second: Any, winner: int) -> None:
    """17.2"""
    overrides = [override([given("size", 11)], "a", **first), override([given("size", 22)], "b", **second)]

    result = room([EAST, SIZE, preset(), *overrides])

    assert values(result, "east/logs-east") == {"size": winner}
    assert told(result) == ["ConflictingOverrides"]
    message = finding(result, "ConflictingOverrides").message
    assert "PluginOverride/acme/a (spec.overrides[0]" in message
    assert "PluginOverride/acme/b (spec.overrides[0]" in message


def test_overrides_of_one_layer_that_agree_do_not_conflict() -> None:
    result = room([EAST, SIZE, preset(), override([given("size", 3)], "a"), override([given("size", 3)], "b")])

    assert told(result) == []


@pytest.mark.parametrize(
    ("clusters", "reached", "layer"),
    [
        pytest.param({"clusterNames": ["east"], "ignoreClusters": ["east"]}, [], "", id="17.3-named-and-ignored"),
        pytest.param({"ignoreClusters": ["east"]}, ["west"], "override-cluster", id="17.4-only-ignored"),
        pytest.param({}, ["east", "west"], "override-generic", id="nothing-said"),
        pytest.param({"labelSelector": {}}, ["east", "west"], "override-generic", id="an-empty-selector-is-none"),
        pytest.param([], ["east", "west"], "override-generic", id="an-empty-list"),
        pytest.param({"labelSelector": {"matchLabels": {"zone": "w"}}}, ["west"], "override-cluster", id="struct"),
        pytest.param({"matchLabels": {"zone": "w"}}, ["west"], "override-cluster", id="bare-selector"),
        pytest.param([{"matchLabels": {"zone": "w"}}], ["west"], "override-cluster", id="list-of-selectors"),
        pytest.param(
            [{"matchLabels": {"zone": "w"}}, {"clusterNames": ["east"]}], ["east", "west"], "override-cluster", id="or"
        ),
        pytest.param(
            [{"clusterNames": ["east", "west"]}, {"clusterNames": ["west"], "ignoreClusters": ["east"]}],
            ["west"],
            "override-cluster",
            id="what-any-item-ignores",
        ),
        pytest.param(
            {"labelSelector": {"matchLabels": {"zone": "w"}}, "clusterNames": ["east"]},
            ["east", "west"],
            "override-cluster",
            id="labels-or-names",
        ),
        pytest.param({"matchLabels": {"greenhouse.sap/cluster": "west"}}, ["west"], "override-cluster", id="own-name"),
    ],
)
def test_clusters_of_an_override(clusters: Any, reached: list[str], layer: str) -> None:
    world = [cluster("east"), cluster("west", {"tier": "edge", "zone": "w"}), SIZE, preset()]

    result = room([*world, override([given("size", 9)], clusters=clusters)])

    assert [name for name in ("east", "west") if values(result, f"{name}/logs-{name}") == {"size": 9}] == reached
    layers = {steps(result, f"{name}/logs-{name}", "size")[-1]["layer"] for name in reached}
    assert layers == ({layer} if layer else set())
    assert told(result) == ([] if reached else ["OverrideUnused"])


def test_cluster_entries_of_a_preset_for_others() -> None:
    """17.5"""
    result = room([EAST, CORE, SIZE, preset(on={"core": [given("size", 2)], "moon": [given("size", 3)]})])

    assert told(result) == ["OverrideClusterNotSelected", "OverrideClusterUnknown"]
    assert (
        finding(result, "OverrideClusterNotSelected").location.pointer == "/spec/clusterOptionOverrides/0/clusterName"
    )
    assert finding(result, "OverrideClusterUnknown").location.pointer == "/spec/clusterOptionOverrides/1/clusterName"
    assert list(plugins(result)) == ["east/logs-east"]


def test_a_required_option_is_asked_for_on_each_cluster() -> None:
    """17.6"""
    result = room(
        [EAST, WEST, definition([option("size", "int", required=True)]), preset(on={"east": [given("size", 2)]})]
    )

    assert list(plugins(result)) == ["east/logs-east"]
    assert conditions(result)["PluginFailed"] == ("True", "PluginReconcileFailed")
    message = finding(result, "RequiredOptionMissing").message
    assert "logs-west" in message
    assert '"size"' in message
    assert "PluginDefinition/acme/shipper" in message


@pytest.mark.parametrize(
    ("default", "over", "expected"),
    [
        pytest.param({"a": 1, "b": 2}, {"a": 3}, {"a": 3}, id="map"),
        pytest.param({"a": 1}, {}, {}, id="empty-map"),
        pytest.param([1, 2], [], [], id="empty-list"),
        pytest.param([1, 2], [3], [3], id="list"),
    ],
)
def test_a_value_is_replaced_whole(default: Any, over: Any, expected: Any) -> None:
    """17.7"""
    kind = "map" if isinstance(default, dict) else "list"

    result = room([EAST, definition([option("it", kind, default)]), preset(), override([given("it", over)])])

    assert values(result, "east/logs-east") == {"it": expected}


@pytest.mark.parametrize(
    ("options", "over", "codes"),
    [
        pytest.param([given("a", {"b": 9})], [given("a.b", 1)], ["UndeclaredOption"], id="a-higher-child"),
        pytest.param(
            [given("a.b", 1)],
            [given("a", {"b": 9, "c": 2})],
            ["OverlappingOptionPaths", "UndeclaredOption"],
            id="17.7-a-lower-child-masks-a-higher-parent",
        ),
        pytest.param([given("a", 1)], [given("a.b", 2)], ["ConflictingOptionPaths", "UndeclaredOption"], id="scalar"),
        pytest.param([secret("a")], [given("a.b", 2)], ["SecretPathShadowed", "UndeclaredOption"], id="below-a-secret"),
        pytest.param(
            [secret("a.b")], [given("a", {})], ["SecretPathShadowed", "UndeclaredOption"], id="above-a-secret"
        ),
        pytest.param(
            [given("a[0]", 1)], [given("a.b", 2)], ["ConflictingOptionPaths", "UndeclaredOption"], id="list-map"
        ),
    ],
)
def test_paths_that_overlap(options: Any, over: Any, codes: list[str]) -> None:
    result = room([EAST, definition(), preset(options, on={"east": over})])

    assert told(result) == codes
    if "ConflictingOptionPaths" in codes:
        message = finding(result, "ConflictingOptionPaths").message
        assert "spec.plugin.optionValues[0]" in message
        assert "spec.clusterOptionOverrides[0].overrides[0]" in message


def test_a_secret_may_stand_over_a_default_of_another_type() -> None:
    """17.8, and the defect of upstream that is not to be copied (5.6)"""
    result = room([EAST, definition([option("host", default="mail")]), preset([secret("host")])])

    entries = plugins(result)["east/logs-east"]["spec"]["optionValues"]
    assert secret("host") in entries


@pytest.mark.parametrize("value", ["hunter2-marked", ["hunter2-marked"], {"a": "hunter2-marked"}, 42_424_242])
def test_a_written_secret_is_shown_nowhere(value: Any) -> None:
    """17.8"""
    texts = [
        EAST,
        WEST,
        definition([option("key", "secret")]),
        preset([secret("key")], on={"east": [given("key", value)]}),
    ]

    result = room(texts)

    assert list(plugins(result)) == ["west/logs-west"]
    assert told(result) == ["SecretLiteral"]
    shown = repr([findings(result), result.stalled, result.statuses, variant_of(result, "west/logs-west").dependencies])
    shown += repr(steps(result, "west/logs-west", "key")) + repr(plugins(result))
    assert "hunter2" not in shown
    assert "42424242" not in shown
    assert "*****" in finding(result, "SecretLiteral").message


def test_a_secret_that_loses_is_shown_nowhere_either() -> None:
    texts = [EAST, definition([option("key", "secret")]), preset([given("key", "hunter2")]), override([secret("key")])]

    result = room(texts)

    assert [step["after"] for step in steps(result, "east/logs-east", "key")] == [
        "*****",
        {"secretRef": {"name": "keys", "key": "k"}},
    ]


@pytest.mark.parametrize("value", ["vault+kvv2:///a/b", "{{vault+kvv2:///p}}"])
def test_a_reference_to_a_vault_is_no_secret(value: str) -> None:
    result = room([EAST, definition([option("key", "secret", required=True)]), preset([given("key", value)])])

    assert values(result, "east/logs-east") == {"key": value}
    assert [step["after"] for step in steps(result, "east/logs-east", "key")] == ["*****"]


@pytest.mark.parametrize(
    ("options", "over", "expected", "codes"),
    [
        pytest.param(
            [given("it", "a")],
            [by_expression("it", "is ${global.greenhouse.clusterName}")],
            "is east",
            [],
            id="over-a-literal",
        ),
        pytest.param([by_expression("it", "${nonsense(")], [given("it", "a")], "a", [], id="a-broken-one-that-loses"),
        pytest.param([by_expression("it", "${global.nothing}")], [], None, ["ExpressionFailed"], id="a-missing-key"),
        pytest.param([by_expression("it", "5")], [], None, ["OptionTypeMismatch"], id="another-type"),
    ],
)
def test_only_the_expression_that_wins_is_evaluated(options: Any, over: Any, expected: Any, codes: list[str]) -> None:
    """17.9"""
    result = room([EAST, definition([option("it")]), preset(options, on={"east": over} if over else None)])

    assert told(result) == codes
    assert [values(result, name) for name in plugins(result)] == ([{"it": expected}] if expected else [])


@pytest.mark.parametrize(
    ("text", "value", "codes"),
    [
        pytest.param("${global.greenhouse.metadata.edition}", 1.1, ["ExpressionRetyped"], id="a-number"),
        pytest.param("'${global.greenhouse.metadata.edition}'", "1.10", [], id="in-quotes"),
        pytest.param("v${global.greenhouse.metadata.edition}", "v1.10", [], id="part-of-a-text"),
        pytest.param("${global.greenhouse.metadata.answer}", "yes", [], id="yes-is-a-text"),
    ],
)
def test_texts_that_expressions_put_in(text: str, value: Any, codes: list[str]) -> None:
    """8.1"""
    labels = {"metadata.greenhouse.sap/edition": "1.10", "metadata.greenhouse.sap/answer": "yes"}

    result = room([cluster("east", {"tier": "edge", **labels}), definition(), preset([by_expression("it", text)])])

    assert told(result) == [*codes, "UndeclaredOption"]
    assert values(result, "east/logs-east") == {"it": value}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("global.greenhouse.clusterName", id="injected"),
        pytest.param(r"global.green\house.clusterName", id="in-another-spelling"),
        pytest.param("global.greenhouse.teamNames", id="injected-no-more"),
        pytest.param("global.greenhouse.clusterNames[0]", id="below-one-injected-no-more"),
    ],
)
def test_what_is_injected_nobody_sets(name: str) -> None:
    """8.2"""
    result = room([EAST, SIZE, preset([given(name, "mine")])])

    assert told(result) == ["ReservedOption"]
    assert "mine" not in repr(plugins(result))
    assert finding(result, "ReservedOption").location.pointer == "/spec/plugin/optionValues/0"


def test_expressions_can_be_switched_off() -> None:
    result = room([EAST, definition([option("it")]), preset([by_expression("it", "a")])], can_use_expressions=False)

    assert told(result) == ["ExpressionDisabled"]
    assert "rules.expressions" in finding(result, "ExpressionDisabled").message


def test_labels_of_a_cluster_move_it_in_and_out() -> None:
    """17.10"""
    inside = room([cluster("east", {"tier": "edge", "metadata.greenhouse.sap/region": "n"}), SIZE, preset()])
    outside = room([cluster("east", {"tier": "core"}), SIZE, preset()])

    entries = plugins(inside)["east/logs-east"]["spec"]["optionValues"]
    assert given("global.greenhouse.metadata.region", "n") in entries
    assert plugins(outside) == {}
    assert conditions(outside)["ClusterListEmpty"] == ("True", "NoClusterMatches")


def test_metadata_of_a_cluster_changes_what_is_made_of_it_and_nothing_else() -> None:
    """17.10"""
    region = by_expression("host", "${global.greenhouse.metadata.region}.example")
    texts = [definition([option("host"), option("size", "int", 1)]), preset([region, given("x.y", True)])]
    labels = [{"tier": "edge", "metadata.greenhouse.sap/region": item} for item in ("north", "south")]

    before, after = (plugins(room([cluster("east", label), *texts]))["east/logs-east"] for label in labels)

    pairs = zip(before["spec"].pop("optionValues"), after["spec"].pop("optionValues"), strict=True)
    assert [item["name"] for item, other in pairs if item != other] == ["global.greenhouse.metadata.region", "host"]
    assert before == after


def test_a_label_that_nobody_reads_changes_nothing() -> None:
    before, after = (room([cluster("east", {"tier": "edge", "x": value}), SIZE, preset()]) for value in ("1", "2"))

    assert variant_of(before, "east/logs-east").dependencies == variant_of(after, "east/logs-east").dependencies


def test_a_plugin_of_somebody_else_is_skipped_until_it_has_the_label() -> None:
    """17.11"""
    theirs: dict[str, Any] = {"metadata": {"name": "logs-east", "labels": {}}, "spec": {}}
    ours = {"metadata": {"name": "logs-east", "labels": {"greenhouse.sap/pluginpreset": "logs"}}, "spec": {}}
    unit = ("east", "plugins/logs-east")

    skipped = room([EAST, SIZE, preset()], Branches().with_plugin(unit, theirs))
    adopted = room([EAST, SIZE, preset()], Branches().with_plugin(unit, ours))

    assert (plugins(skipped), told(skipped)) == ({}, ["PluginNotManaged"])
    assert conditions(skipped)["PluginSkipped"] == ("True", "ExistingPlugins")
    assert conditions(skipped)["PluginFailed"][0] == "False"
    assert variant_of(adopted, "east/logs-east").adoption == "adoptExisting"


def test_what_is_skipped_stays_so_whatever_becomes_of_another_of_its_name() -> None:
    """3.7: preset `a` on `b-c` and preset `a-b` on `c`, on two clusters"""
    output, other = cluster("b-c", {"tier": "edge"}), cluster("c", {"tier": "core"})
    result = room(
        [output, other, SIZE, preset(name="a"), preset(name="a-b", selector={"matchLabels": {"tier": "core"}})]
    )
    published: Any = dict.fromkeys((variant.owner.key for variant in result.variants), "UpToDate")

    told_of = {name: complete_status(status(result, name=name), published) for name in ("a", "a-b")}

    rows = {name: config_status.fields["pluginStatuses"] for name, config_status in told_of.items()}
    assert [(row["clusterName"], row["state"]) for row in rows["a"]] == [("b-c", "UpToDate")]
    assert [(row["clusterName"], row["state"]) for row in rows["a-b"]] == [("c", "Skipped")]
    assert told_of["a-b"].fields["totalPlugins"] == 0


def test_a_published_release_stays_in_its_namespace() -> None:
    """17.13"""
    there = Branches.of(room([EAST, SIZE, preset(plugin={"releaseNamespace": "a"})]))

    result = room([EAST, WEST, SIZE, preset(plugin={"releaseNamespace": "b"})], there)

    assert told(result) == ["ImmutableFieldChanged"]
    assert plugins(result)["west/logs-west"]["spec"]["releaseNamespace"] == "b"
    assert list(plugins(result)) == ["west/logs-west"]


def test_a_draft_that_nobody_published_may_go_to_another_namespace() -> None:
    drafted = Branches.of(room([EAST, SIZE, preset(plugin={"releaseNamespace": "a"})]))

    result = room([EAST, SIZE, preset(plugin={"releaseNamespace": "b"})], Branches(drafted.owners))

    assert plugins(result)["east/logs-east"]["spec"]["releaseNamespace"] == "b"


def test_the_same_again_is_the_same() -> None:
    """17.14"""
    first = room(EVERYTHING_SAYS)
    second = room(EVERYTHING_SAYS, Branches.of(first))

    assert plugins(first) == plugins(second)
    assert [variant.dependencies for variant in first.variants] == [variant.dependencies for variant in second.variants]


def test_a_definition_that_is_not_there_changes_nothing() -> None:
    """17.15"""
    without, controller_result = room([EAST, preset()]), room([EAST, SIZE, preset()])

    assert told(without) == ["PluginDefinitionNotFound"]
    assert {str(object_key) for object_key in without.kept_owners} == {"PluginPreset/acme/logs"}
    assert conditions(without)["PluginDefinitionNotFound"][0] == "True"
    assert conditions(without)["Ready"] == ("False", "PluginFailed")
    assert list(plugins(controller_result)) == ["east/logs-east"]


def test_a_default_that_changes_reaches_plugins() -> None:
    """17.15"""
    before, after = (room([EAST, definition([option("size", "int", size)]), preset()]) for size in (1, 2))

    moved = (
        variant_of(before, "east/logs-east").dependencies.items()
        ^ variant_of(after, "east/logs-east").dependencies.items()
    )
    assert {name for name, _ in moved} == {"PluginDefinition/acme/shipper"}


@pytest.mark.parametrize(
    ("waits", "codes"),
    [
        pytest.param([{"pluginRef": {"pluginPreset": "other"}}], [], id="met"),
        pytest.param([{"pluginRef": {"name": "other-east"}}], [], id="met-by-name"),
        pytest.param([{"pluginRef": {"pluginPreset": "far"}}], ["WaitForNeverMet"], id="17.17-another-cluster"),
        pytest.param([{"pluginRef": {"name": "nobody"}}], ["WaitForNeverMet"], id="nobody"),
        pytest.param([{"pluginRef": {"pluginPreset": "logs"}}], ["WaitForCycle"], id="itself"),
        pytest.param([{"pluginRef": {}}], ["WaitForInvalid"], id="neither"),
        pytest.param([{"pluginRef": {"name": "a", "pluginPreset": "b"}}], ["WaitForInvalid"], id="both"),
        pytest.param([{"pluginRef": {"name": "other-east"}}] * 2, ["WaitForDuplicate"], id="twice"),
    ],
)
def test_what_plugins_wait_for(waits: Any, codes: list[str]) -> None:
    far = preset(name="far", selector={"matchLabels": {"tier": "core"}}, plugin={"releaseName": "far"})
    other = preset(name="other", plugin={"releaseName": "other"})

    result = room([EAST, CORE, SIZE, other, far, preset(spec={"waitFor": waits})])

    assert told(result) == codes
    if not codes:
        assert plugins(result)["east/logs-east"]["spec"]["waitFor"] == waits


def test_two_entries_for_one_cluster_spoil_that_cluster() -> None:
    """17.18"""
    entries = [{"clusterName": "east", "overrides": [given("size", size)]} for size in (2, 3)]

    result = room([EAST, WEST, SIZE, preset(spec={"clusterOptionOverrides": entries})])

    assert told(result) == ["DuplicateClusterOverride"]
    assert list(plugins(result)) == ["west/logs-west"]


@pytest.mark.parametrize(
    ("texts", "code", "severity", "value"),
    [
        pytest.param(
            [preset([given("size", 2), given("size", 2)])], "DuplicateOption", "warning", True, id="preset-equal"
        ),
        pytest.param([preset([given("size", 2), given("size", 3)])], "DuplicateOption", "error", False, id="preset"),
        pytest.param(
            [preset(), organization([given("size", 2), given("size", 3)])],
            "DuplicateOption",
            "error",
            False,
            id="organization",
        ),
        pytest.param(
            [preset(), override([given("size", 2), given("size", 3)])],
            "DuplicateOverride",
            "error",
            True,
            id="override-is-ignored",
        ),
        pytest.param(
            [preset(), override([given("size", 2), given("size", 2)])],
            "DuplicateOverride",
            "warning",
            True,
            id="override-equal",
        ),
        pytest.param(
            [preset([given("size", 1), given("size", 1.0)])],
            "DuplicateOption",
            "error",
            False,
            id="numbers-of-two-types",
        ),
        pytest.param(
            [preset([given("x", True), given("x", 1)])], "DuplicateOption", "error", False, id="a-boolean-is-no-number"
        ),
    ],
)
def test_one_option_twice(texts: list[str], code: str, severity: str, value: bool) -> None:
    """17.18"""
    result = room([EAST, SIZE, *texts])

    assert finding(result, code).severity == Severity(severity)
    assert bool(result.variants) == value


@pytest.mark.parametrize(
    ("entry", "code"),
    [
        pytest.param({"name": "a", "value": None}, "NoValueSource", id="17.19-null"),
        pytest.param({"name": "a"}, "NoValueSource", id="17.19-no-source"),
        pytest.param({"name": "a", "value": 1, "expression": "2"}, "MultipleValueSources", id="17.19-two-sources"),
        pytest.param({"name": "a", "path": "b", "value": 1}, "AliasConflict", id="17.19-name-and-path"),
        pytest.param({"value": 1}, "OptionNameInvalid", id="no-name"),
        pytest.param({"name": "a", "valueFrom": {"secret": {"name": "s"}}}, "SecretRefIncomplete", id="no-key"),
        pytest.param({"name": "a", "valueFrom": {"secret": "s"}}, "SecretRefIncomplete", id="no-key-flat"),
        pytest.param({"name": "a", "valueFrom": {}}, "SecretRefIncomplete", id="nothing-in-it"),
        pytest.param(
            {"name": "a", "valueFrom": {"secret": {"name": "s", "key": "k"}, "key": "l"}},
            "AliasConflict",
            id="both-spellings",
        ),
        pytest.param(
            {"name": "a", "valueFrom": {"ref": {"name": "p", "expression": "object"}}},
            "UnsupportedValueSource",
            id="ref",
        ),
        pytest.param({"name": "a.", "value": 1}, "OptionNameInvalid", id="17.20-trailing-dot"),
        pytest.param(
            {"name": ".".join("abcdefghijklmnopqrstuvwxyzabcdef"), "value": 1}, "OptionNameInvalid", id="17.20-levels"
        ),
        pytest.param({"name": "a", "value": 1, "vaule": 2}, "PluginPresetInvalid", id="unknown-field"),
    ],
)
def test_an_entry_that_is_wrong(entry: Mapping[str, Any], code: str) -> None:
    result = room([EAST, definition(), preset([given("fine", 1), entry])])

    actual_finding = finding(result, code)
    assert actual_finding.severity is Severity.ERROR
    assert actual_finding.location.pointer.startswith("/spec/plugin/optionValues/1")
    assert actual_finding.location.line > 1
    assert result.variants == ()


@pytest.mark.parametrize(
    ("entry", "source"),
    [
        pytest.param({"path": "a", "value": 1}, {"value": 1}, id="path"),
        pytest.param({"name": "a", "path": "a", "value": 1}, {"value": 1}, id="both-equal"),
        pytest.param(
            {"name": "a", "valueFrom": {"secret": "s", "key": "k"}},
            {"valueFrom": {"secret": {"name": "s", "key": "k"}}},
            id="flat",
        ),
        pytest.param({"name": r"a\.b", "value": 1}, {"value": 1}, id="17.20-a-dot-that-is-none"),
        pytest.param({"name": "a[0]", "value": 1}, {"value": 1}, id="17.20-a-place-in-a-list"),
        pytest.param({"name": "a", "value": False}, {"value": False}, id="false-is-a-value"),
        pytest.param({"name": "a", "value": 0}, {"value": 0}, id="nought-is-a-value"),
        pytest.param({"name": "a", "value": ""}, {"value": ""}, id="an-empty-text-is-a-value"),
    ],
)
def test_spellings(entry: Mapping[str, Any], source: Any) -> None:
    result = room([EAST, definition(), preset([entry])])

    (written_entry,) = (
        option_value
        for option_value in plugins(result)["east/logs-east"]["spec"]["optionValues"]
        if not option_value["name"].startswith("global.")
    )
    assert written_entry == {"name": entry.get("name", entry.get("path")), **source}


def test_an_org_override_may_fit_one_definition_and_not_another() -> None:
    """17.21"""
    texts = [
        definition([option("size", "int")]),
        definition([option("size", "string")], "other"),
        organization([given("size", "big")]),
        preset(),
        preset(name="others", definition="other"),
    ]

    result = room([EAST, *texts])

    assert list(plugins(result)) == ["east/others-east"]
    assert told(result) == ["OptionTypeMismatch"]
    where = finding(result, "OptionTypeMismatch").location
    assert (where.object, where.pointer) == ("Organization/_cluster/acme", "/spec/pluginOverrides/0")


def test_an_override_where_nothing_is_is_unused() -> None:
    """17.22"""
    result = room([EAST, SIZE, preset(), override([given("size", 2)], namespace="moon")])

    assert told(result) == ["OverrideUnused"]
    assert finding(result, "OverrideUnused").severity is Severity.WARNING


def test_a_plugin_of_its_own_gets_overrides_and_no_cluster_entries() -> None:
    texts = [definition([option("size", "int", 1)]), override([given("size", 4)], definitions=["shipper"])]

    result = room([EAST, *texts, plugin([given("size", 2)], labels={"team": "a"})])

    assert values(result, "east/boards") == {"size": 4}
    assert plugins(result)["east/boards"]["metadata"]["labels"] == {"team": "a"}
    assert [step["layer"] for step in steps(result, "east/boards", "size")] == [
        "definition-default",
        "plugin",
        "override-definition",
    ]


def of_tier(name: str, tier: str, region: str, **more: Any) -> str:
    return cluster(name, {"tier": tier, "metadata.greenhouse.sap/region": region}, **more)


WORKED = [
    definition(
        [
            option("buffer.size", "int", 64),
            option("persistence.storageClass", default="standard"),
            option("alerting.smtpPassword", "secret", required=True),
            option("sinks", "list", []),
            option("endpoint", required=True),
        ],
        "logshipper",
        cluster_scoped=True,
    ),
    organization([
        given("global.imageRegistry", "registry.acme.example"),
        {"path": "alerting.smtpPassword", "valueFrom": {"secret": "acme-smtp", "key": "password"}},
    ]),
    of_tier("edge-01", "edge", "north-2", overrides=[given("persistence.storageClass", "local-path")]),
    of_tier("core-01", "core", "north-1"),
    of_tier("lab-01", "lab", "north-1"),
    override([given("buffer.size", 256)], "ov-all"),
    override(
        [given("persistence.storageClass", "zfs")], "ov-edge",
        clusters={"labelSelector": {"matchLabels": {"tier": "edge"}}},
    ),
    override([given("buffer.size", 512)], "ov-logshipper", definitions=["logshipper"]),
    override(
        [given("sinks", ["archive"])], "ov-edge-logshipper", definitions=["logshipper"],
        clusters=[{"matchLabels": {"tier": "edge"}}],
    ),
    preset(
        [
            by_expression(
                "endpoint",
                "https://in.${global.greenhouse.metadata.region}.logs.acme.example/${global.greenhouse.clusterName}",
            ),
            given("buffer.size", 128),
        ],
        definition="logshipper", kind="ClusterPluginDefinition",
        selector={"matchExpressions": [{"key": "tier", "operator": "In", "values": ["edge", "core"]}]},
        plugin={"releaseNamespace": "observability"},
        on={"edge-01": [given("buffer.size", 32)], "lab-01": [given("buffer.size", 8)]},
    ),
]  # fmt: skip
SMTP = {"secret": {"name": "acme-smtp", "key": "password"}}


def winners(name: str) -> dict[str, Any]:
    """Return value and layer of each option of a Plugin of the worked example, and what lost."""
    result = room(WORKED)
    options = values(result, name)
    told_of = {item: steps(result, name, item) for item in options}
    return {
        item: (value, told_of[item][-1]["layer"], [item["after"] for item in told_of[item][:-1]])
        for item, value in options.items()
    }


def test_the_worked_example_on_the_edge() -> None:
    """16"""
    assert winners("edge-01/logs-edge-01") == {
        "alerting.smtpPassword": (SMTP, "organization", []),
        "buffer.size": (32, "preset-cluster", [64, 128, 256, 512]),
        "endpoint": ("https://in.north-2.logs.acme.example/edge-01", "preset", []),
        "global.imageRegistry": ("registry.acme.example", "organization", []),
        "persistence.storageClass": ("zfs", "override-cluster", ["standard", "local-path"]),
        "sinks": (["archive"], "override-cluster-definition", [[]]),
    }


def test_the_worked_example_in_the_core() -> None:
    assert winners("core-01/logs-core-01") == {
        "alerting.smtpPassword": (SMTP, "organization", []),
        "buffer.size": (512, "override-definition", [64, 128, 256]),
        "endpoint": ("https://in.north-1.logs.acme.example/core-01", "preset", []),
        "global.imageRegistry": ("registry.acme.example", "organization", []),
        "persistence.storageClass": ("standard", "definition-default", []),
        "sinks": ([], "definition-default", []),
    }


def test_what_else_the_worked_example_says() -> None:
    result = room(WORKED)

    assert sorted(plugins(result)) == ["core-01/logs-core-01", "edge-01/logs-edge-01"]
    assert told(result) == ["OverrideClusterNotSelected", "UndeclaredOption"]
    assert finding(result, "UndeclaredOption").severity is Severity.INFO
    assert plugins(result)["edge-01/logs-edge-01"]["spec"]["releaseName"] == "logshipper-chart"
    provenance = variant_of(result, "edge-01/logs-edge-01").provenance
    assert provenance is not None
    assert [
        (applied_override["layer"], applied_override["name"])
        for applied_override in provenance.list_applied_overrides()
    ] == [
        ("organization", "acme"),
        ("override-generic", "ov-all"),
        ("cluster", "edge-01"),
        ("override-cluster", "ov-edge"),
        ("override-definition", "ov-logshipper"),
        ("override-cluster-definition", "ov-edge-logshipper"),
        ("preset-cluster", "logs"),
    ]


def test_every_finding_says_where() -> None:
    for item in findings(room([*WORKED, written("PluginOverride", "bad", {"overrides": 5})])):
        assert item.location.file
        assert item.location.line
        assert item.location.object
