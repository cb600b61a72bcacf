"""Tests of edge cases of presets, overrides and option values, and of one large example."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from reconciler.controllers.plugin_presets.status import complete_status
from reconciler.krm.findings import Severity
from tests.unit.controllers.plugin_presets.controller_world import (
    CORE,
    EAST,
    WEST,
    FakeBranches,
    build_cluster,
    build_definition,
    build_expression_value,
    build_object,
    build_option,
    build_organization,
    build_override,
    build_plugin,
    build_preset,
    build_secret_value,
    build_value,
    find_finding,
    find_status,
    find_variant,
    list_codes,
    list_conditions,
    list_findings,
    list_plugins,
    list_steps,
    list_values,
    run_controller,
)

SIZE = build_definition([build_option("size", "int", 1)])
EVERYTHING_SAYS = [
    build_definition([build_option("size", "int", 1)]),
    build_preset([build_value("size", 2)], on={"east": [build_value("size", 6)]}),
    build_organization([build_value("size", 3)]),
    build_override([build_value("size", 4)], "generic"),
    build_cluster("east", overrides=[build_value("size", 5)]),
    build_override([build_value("size", 7)], "both", clusters={"clusterNames": ["east"]}, definitions=["shipper"]),
]


def test_highest_layer_wins() -> None:
    """The organization, the cluster, a generic override, a definition override and a cluster entry set the option
    together.
    """
    result = run_controller(EVERYTHING_SAYS)

    assert list_values(result, "east/logs-east") == {"size": 6}
    assert [(step["layer"], step["after"]) for step in list_steps(result, "east/logs-east", "size")] == [
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
def test_precedence_of_generic_overrides(first: Any, second: Any, winner: int) -> None:
    overrides = [
        build_override([build_value("size", 11)], "a", **first),
        build_override([build_value("size", 22)], "b", **second),
    ]

    result = run_controller([EAST, SIZE, build_preset(), *overrides])

    assert list_values(result, "east/logs-east") == {"size": winner}
    assert list_codes(result) == ["ConflictingOverrides"]
    message = find_finding(result, "ConflictingOverrides").message
    assert "PluginOverride acme/a (spec.overrides[0]" in message
    assert "PluginOverride acme/b (spec.overrides[0]" in message


def test_equal_overrides_of_one_layer_do_not_conflict() -> None:
    result = run_controller(
        [
            EAST,
            SIZE,
            build_preset(),
            build_override([build_value("size", 3)], "a"),
            build_override([build_value("size", 3)], "b"),
        ]
    )

    assert list_codes(result) == []


@pytest.mark.parametrize(
    ("clusters", "reached", "layer"),
    [
        pytest.param({"clusterNames": ["east"], "ignoreClusters": ["east"]}, [], "", id="named-and-ignored"),
        pytest.param({"ignoreClusters": ["east"]}, ["west"], "override-cluster", id="only-ignored"),
        pytest.param({}, ["east", "west"], "override-generic", id="no-selection"),
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
def test_clusters_of_an_override_are_selected(clusters: Any, reached: list[str], layer: str) -> None:
    documents = [build_cluster("east"), build_cluster("west", {"tier": "edge", "zone": "w"}), SIZE, build_preset()]

    result = run_controller([*documents, build_override([build_value("size", 9)], clusters=clusters)])

    assert [name for name in ("east", "west") if list_values(result, f"{name}/logs-{name}") == {"size": 9}] == reached
    layers = {list_steps(result, f"{name}/logs-{name}", "size")[-1]["layer"] for name in reached}
    assert layers == ({layer} if layer else set())
    assert list_codes(result) == ([] if reached else ["OverrideUnused"])


def test_cluster_entry_for_another_cluster_is_reported() -> None:
    result = run_controller(
        [EAST, CORE, SIZE, build_preset(on={"core": [build_value("size", 2)], "moon": [build_value("size", 3)]})]
    )

    assert list_codes(result) == ["OverrideClusterNotSelected", "OverrideClusterUnknown"]
    assert (
        find_finding(result, "OverrideClusterNotSelected").location.pointer
        == "/spec/clusterOptionOverrides/0/clusterName"
    )
    assert (
        find_finding(result, "OverrideClusterUnknown").location.pointer == "/spec/clusterOptionOverrides/1/clusterName"
    )
    assert list(list_plugins(result)) == ["east/logs-east"]


def test_required_option_is_checked_on_each_cluster() -> None:
    result = run_controller(
        [
            EAST,
            WEST,
            build_definition([build_option("size", "int", required=True)]),
            build_preset(on={"east": [build_value("size", 2)]}),
        ]
    )

    assert list(list_plugins(result)) == ["east/logs-east"]
    assert list_conditions(result)["PluginFailed"] == ("True", "PluginReconcileFailed")
    message = find_finding(result, "RequiredOptionMissing").message
    assert "logs-west" in message
    assert '"size"' in message
    assert "PluginDefinition acme/shipper" in message


@pytest.mark.parametrize(
    ("default", "override_options", "expected"),
    [
        pytest.param({"a": 1, "b": 2}, {"a": 3}, {"a": 3}, id="map"),
        pytest.param({"a": 1}, {}, {}, id="empty-map"),
        pytest.param([1, 2], [], [], id="empty-list"),
        pytest.param([1, 2], [3], [3], id="list"),
    ],
)
def test_value_is_replaced_as_a_whole(default: Any, override_options: Any, expected: Any) -> None:
    kind = "map" if isinstance(default, dict) else "list"

    result = run_controller(
        [
            EAST,
            build_definition([build_option("it", kind, default)]),
            build_preset(),
            build_override([build_value("it", override_options)]),
        ]
    )

    assert list_values(result, "east/logs-east") == {"it": expected}


@pytest.mark.parametrize(
    ("options", "override_options", "codes"),
    [
        pytest.param([build_value("a", {"b": 9})], [build_value("a.b", 1)], ["UndeclaredOption"], id="a-higher-child"),
        pytest.param(
            [build_value("a.b", 1)],
            [build_value("a", {"b": 9, "c": 2})],
            ["OverlappingOptionPaths", "UndeclaredOption"],
            id="a-lower-child-masks-a-higher-parent",
        ),
        pytest.param(
            [build_value("a", 1)], [build_value("a.b", 2)], ["ConflictingOptionPaths", "UndeclaredOption"], id="scalar"
        ),
        pytest.param(
            [build_secret_value("a")],
            [build_value("a.b", 2)],
            ["SecretPathShadowed", "UndeclaredOption"],
            id="below-a-secret",
        ),
        pytest.param(
            [build_secret_value("a.b")],
            [build_value("a", {})],
            ["SecretPathShadowed", "UndeclaredOption"],
            id="above-a-secret",
        ),
        pytest.param(
            [build_value("a[0]", 1)],
            [build_value("a.b", 2)],
            ["ConflictingOptionPaths", "UndeclaredOption"],
            id="list-map",
        ),
    ],
)
def test_overlapping_paths_are_reported(options: Any, override_options: Any, codes: list[str]) -> None:
    result = run_controller([EAST, build_definition(), build_preset(options, on={"east": override_options})])

    assert list_codes(result) == codes
    if "ConflictingOptionPaths" in codes:
        message = find_finding(result, "ConflictingOptionPaths").message
        assert "spec.plugin.optionValues[0]" in message
        assert "spec.clusterOptionOverrides[0].overrides[0]" in message


def test_secret_reference_replaces_a_default_of_another_type() -> None:
    """A reference to a Secret is not checked against the type of the option."""
    result = run_controller(
        [EAST, build_definition([build_option("host", default="mail")]), build_preset([build_secret_value("host")])]
    )

    entries = list_plugins(result)["east/logs-east"]["spec"]["optionValues"]
    assert build_secret_value("host") in entries


@pytest.mark.parametrize("value", ["hunter2-marked", ["hunter2-marked"], {"a": "hunter2-marked"}, 42_424_242])
def test_literal_secret_is_not_shown(value: Any) -> None:
    texts = [
        EAST,
        WEST,
        build_definition([build_option("key", "secret")]),
        build_preset([build_secret_value("key")], on={"east": [build_value("key", value)]}),
    ]

    result = run_controller(texts)

    assert list(list_plugins(result)) == ["west/logs-west"]
    assert list_codes(result) == ["SecretLiteral"]
    shown = repr(
        [list_findings(result), result.stalled, result.statuses, find_variant(result, "west/logs-west").dependencies]
    )
    shown += repr(list_steps(result, "west/logs-west", "key")) + repr(list_plugins(result))
    assert "hunter2" not in shown
    assert "42424242" not in shown
    assert "*****" in find_finding(result, "SecretLiteral").message


def test_literal_secret_that_loses_is_not_shown() -> None:
    texts = [
        EAST,
        build_definition([build_option("key", "secret")]),
        build_preset([build_value("key", "hunter2")]),
        build_override([build_secret_value("key")]),
    ]

    result = run_controller(texts)

    assert [step["after"] for step in list_steps(result, "east/logs-east", "key")] == [
        "*****",
        {"secretRef": {"name": "keys", "key": "k"}},
    ]


@pytest.mark.parametrize("value", ["vault+kvv2:///a/b", "{{vault+kvv2:///p}}"])
def test_vault_reference_is_not_a_literal_secret(value: str) -> None:
    result = run_controller(
        [
            EAST,
            build_definition([build_option("key", "secret", required=True)]),
            build_preset([build_value("key", value)]),
        ]
    )

    assert list_values(result, "east/logs-east") == {"key": value}
    assert [step["after"] for step in list_steps(result, "east/logs-east", "key")] == ["*****"]


@pytest.mark.parametrize(
    ("options", "override_options", "expected", "codes"),
    [
        pytest.param(
            [build_value("it", "a")],
            [build_expression_value("it", "is ${global.greenhouse.clusterName}")],
            "is east",
            [],
            id="over-a-literal",
        ),
        pytest.param(
            [build_expression_value("it", "${nonsense(")],
            [build_value("it", "a")],
            "a",
            [],
            id="a-broken-one-that-loses",
        ),
        pytest.param(
            [build_expression_value("it", "${global.nothing}")], [], None, ["ExpressionFailed"], id="a-missing-key"
        ),
        pytest.param([build_expression_value("it", "5")], [], None, ["OptionTypeMismatch"], id="another-type"),
    ],
)
def test_only_the_winning_expression_is_evaluated(
    options: Any, override_options: Any, expected: Any, codes: list[str]
) -> None:
    result = run_controller(
        [
            EAST,
            build_definition([build_option("it")]),
            build_preset(options, on={"east": override_options} if override_options else None),
        ]
    )

    assert list_codes(result) == codes
    assert [list_values(result, name) for name in list_plugins(result)] == ([{"it": expected}] if expected else [])


@pytest.mark.parametrize(
    ("text", "value", "codes"),
    [
        pytest.param("${global.greenhouse.metadata.edition}", 1.1, ["ExpressionRetyped"], id="a-number"),
        pytest.param("'${global.greenhouse.metadata.edition}'", "1.10", [], id="in-quotes"),
        pytest.param("v${global.greenhouse.metadata.edition}", "v1.10", [], id="part-of-a-text"),
        pytest.param("${global.greenhouse.metadata.answer}", "yes", [], id="yes-is-a-text"),
    ],
)
def test_text_of_an_expression_is_parsed_as_yaml(text: str, value: Any, codes: list[str]) -> None:
    labels = {"metadata.greenhouse.sap/edition": "1.10", "metadata.greenhouse.sap/answer": "yes"}

    result = run_controller(
        [
            build_cluster("east", {"tier": "edge", **labels}),
            build_definition(),
            build_preset([build_expression_value("it", text)]),
        ]
    )

    assert list_codes(result) == [*codes, "UndeclaredOption"]
    assert list_values(result, "east/logs-east") == {"it": value}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("global.greenhouse.clusterName", id="injected"),
        pytest.param(r"global.green\house.clusterName", id="in-another-spelling"),
        pytest.param("global.greenhouse.teamNames", id="injected-no-more"),
        pytest.param("global.greenhouse.clusterNames[0]", id="below-one-injected-no-more"),
    ],
)
def test_injected_option_cannot_be_set(name: str) -> None:
    result = run_controller([EAST, SIZE, build_preset([build_value(name, "mine")])])

    assert list_codes(result) == ["ReservedOption"]
    assert "mine" not in repr(list_plugins(result))
    assert find_finding(result, "ReservedOption").location.pointer == "/spec/plugin/optionValues/0"


def test_expressions_can_be_disabled() -> None:
    result = run_controller(
        [EAST, build_definition([build_option("it")]), build_preset([build_expression_value("it", "a")])],
        can_use_expressions=False,
    )

    assert list_codes(result) == ["ExpressionDisabled"]
    assert "rules.expressions" in find_finding(result, "ExpressionDisabled").message


def test_cluster_labels_select_the_cluster() -> None:
    inside = run_controller(
        [build_cluster("east", {"tier": "edge", "metadata.greenhouse.sap/region": "n"}), SIZE, build_preset()]
    )
    outside = run_controller([build_cluster("east", {"tier": "core"}), SIZE, build_preset()])

    entries = list_plugins(inside)["east/logs-east"]["spec"]["optionValues"]
    assert build_value("global.greenhouse.metadata.region", "n") in entries
    assert list_plugins(outside) == {}
    assert list_conditions(outside)["ClusterListEmpty"] == ("True", "NoClusterMatches")


def test_cluster_metadata_changes_only_the_values_that_use_it() -> None:
    region = build_expression_value("host", "${global.greenhouse.metadata.region}.example")
    texts = [
        build_definition([build_option("host"), build_option("size", "int", 1)]),
        build_preset([region, build_value("x.y", True)]),
    ]
    labels = [{"tier": "edge", "metadata.greenhouse.sap/region": item} for item in ("north", "south")]

    before, after = (
        list_plugins(run_controller([build_cluster("east", label), *texts]))["east/logs-east"] for label in labels
    )

    pairs = zip(before["spec"].pop("optionValues"), after["spec"].pop("optionValues"), strict=True)
    assert [item["name"] for item, other_target in pairs if item != other_target] == [
        "global.greenhouse.metadata.region",
        "host",
    ]
    assert before == after


def test_unused_label_changes_nothing() -> None:
    before, after = (
        run_controller([build_cluster("east", {"tier": "edge", "x": value}), SIZE, build_preset()])
        for value in ("1", "2")
    )

    assert find_variant(before, "east/logs-east").dependencies == find_variant(after, "east/logs-east").dependencies


def test_unmanaged_plugin_is_skipped_until_it_has_the_label() -> None:
    unmanaged_plugin: dict[str, Any] = {"metadata": {"name": "logs-east", "labels": {}}, "spec": {}}
    managed_plugin = {"metadata": {"name": "logs-east", "labels": {"greenhouse.sap/pluginpreset": "logs"}}, "spec": {}}
    unit = ("east", "plugins/logs-east")

    skipped = run_controller([EAST, SIZE, build_preset()], FakeBranches().with_plugin(unit, unmanaged_plugin))
    adopted = run_controller([EAST, SIZE, build_preset()], FakeBranches().with_plugin(unit, managed_plugin))

    assert (list_plugins(skipped), list_codes(skipped)) == ({}, ["PluginNotManaged"])
    assert list_conditions(skipped)["PluginSkipped"] == ("True", "ExistingPlugins")
    assert list_conditions(skipped)["PluginFailed"][0] == "False"
    assert find_variant(adopted, "east/logs-east").adoption == "adoptExisting"


def test_skipped_plugin_stays_skipped_when_the_other_owner_changes() -> None:
    """Preset `a` on cluster `b-c` and preset `a-b` on cluster `c` have the same Plugin name."""
    output, other_target = build_cluster("b-c", {"tier": "edge"}), build_cluster("c", {"tier": "core"})
    result = run_controller(
        [
            output,
            other_target,
            SIZE,
            build_preset(name="a"),
            build_preset(name="a-b", selector={"matchLabels": {"tier": "core"}}),
        ]
    )
    published: Any = dict.fromkeys((variant.owner.key for variant in result.variants), "UpToDate")

    details = {name: complete_status(find_status(result, name=name), published) for name in ("a", "a-b")}

    rows = {name: config_status.fields["pluginStatuses"] for name, config_status in details.items()}
    assert [(row["clusterName"], row["state"]) for row in rows["a"]] == [("b-c", "UpToDate")]
    assert [(row["clusterName"], row["state"]) for row in rows["a-b"]] == [("c", "Skipped")]
    assert details["a-b"].fields["totalPlugins"] == 0


def test_published_release_stays_in_its_namespace() -> None:
    published_branches = FakeBranches.of(run_controller([EAST, SIZE, build_preset(plugin={"releaseNamespace": "a"})]))

    result = run_controller([EAST, WEST, SIZE, build_preset(plugin={"releaseNamespace": "b"})], published_branches)

    assert list_codes(result) == ["ImmutableFieldChanged"]
    assert list_plugins(result)["west/logs-west"]["spec"]["releaseNamespace"] == "b"
    assert list(list_plugins(result)) == ["west/logs-west"]


def test_unpublished_release_can_change_its_namespace() -> None:
    drafted = FakeBranches.of(run_controller([EAST, SIZE, build_preset(plugin={"releaseNamespace": "a"})]))

    result = run_controller([EAST, SIZE, build_preset(plugin={"releaseNamespace": "b"})], FakeBranches(drafted.owners))

    assert list_plugins(result)["east/logs-east"]["spec"]["releaseNamespace"] == "b"


def test_second_pass_has_the_same_result() -> None:
    first = run_controller(EVERYTHING_SAYS)
    second = run_controller(EVERYTHING_SAYS, FakeBranches.of(first))

    assert list_plugins(first) == list_plugins(second)
    assert [variant.dependencies for variant in first.variants] == [variant.dependencies for variant in second.variants]


def test_missing_definition_keeps_the_plugins() -> None:
    without_definition, controller_result = (
        run_controller([EAST, build_preset()]),
        run_controller([EAST, SIZE, build_preset()]),
    )

    assert list_codes(without_definition) == ["PluginDefinitionNotFound"]
    assert {object_key.reference for object_key in without_definition.kept_owners} == {"PluginPreset/acme/logs"}
    assert list_conditions(without_definition)["PluginDefinitionNotFound"][0] == "True"
    assert list_conditions(without_definition)["Ready"] == ("False", "PluginFailed")
    assert list(list_plugins(controller_result)) == ["east/logs-east"]


def test_changed_default_changes_the_plugins() -> None:
    before, after = (
        run_controller([EAST, build_definition([build_option("size", "int", size)]), build_preset()]) for size in (1, 2)
    )

    changed_dependencies = (
        find_variant(before, "east/logs-east").dependencies.items()
        ^ find_variant(after, "east/logs-east").dependencies.items()
    )
    assert {name for name, _ in changed_dependencies} == {"PluginDefinition/acme/shipper"}


@pytest.mark.parametrize(
    ("waits", "codes"),
    [
        pytest.param([{"pluginRef": {"pluginPreset": "other"}}], [], id="met"),
        pytest.param([{"pluginRef": {"name": "other-east"}}], [], id="met-by-name"),
        pytest.param([{"pluginRef": {"pluginPreset": "far"}}], ["WaitForNeverMet"], id="another-cluster"),
        pytest.param([{"pluginRef": {"name": "nobody"}}], ["WaitForNeverMet"], id="a-plugin-that-does-not-exist"),
        pytest.param([{"pluginRef": {"pluginPreset": "logs"}}], ["WaitForCycle"], id="itself"),
        pytest.param([{"pluginRef": {}}], ["WaitForInvalid"], id="neither"),
        pytest.param([{"pluginRef": {"name": "a", "pluginPreset": "b"}}], ["WaitForInvalid"], id="both"),
        pytest.param([{"pluginRef": {"name": "other-east"}}] * 2, ["WaitForDuplicate"], id="twice"),
    ],
)
def test_wait_for_is_checked(waits: Any, codes: list[str]) -> None:
    far = build_preset(name="far", selector={"matchLabels": {"tier": "core"}}, plugin={"releaseName": "far"})
    other_target = build_preset(name="other", plugin={"releaseName": "other"})

    result = run_controller([EAST, CORE, SIZE, other_target, far, build_preset(spec={"waitFor": waits})])

    assert list_codes(result) == codes
    if not codes:
        assert list_plugins(result)["east/logs-east"]["spec"]["waitFor"] == waits


def test_two_entries_for_a_cluster_block_only_that_cluster() -> None:
    entries = [{"clusterName": "east", "overrides": [build_value("size", size)]} for size in (2, 3)]

    result = run_controller([EAST, WEST, SIZE, build_preset(spec={"clusterOptionOverrides": entries})])

    assert list_codes(result) == ["DuplicateClusterOverride"]
    assert list(list_plugins(result)) == ["west/logs-west"]


@pytest.mark.parametrize(
    ("texts", "code", "severity", "value"),
    [
        pytest.param(
            [build_preset([build_value("size", 2), build_value("size", 2)])],
            "DuplicateOption",
            "warning",
            True,
            id="preset-equal",
        ),
        pytest.param(
            [build_preset([build_value("size", 2), build_value("size", 3)])],
            "DuplicateOption",
            "error",
            False,
            id="preset",
        ),
        pytest.param(
            [build_preset(), build_organization([build_value("size", 2), build_value("size", 3)])],
            "DuplicateOption",
            "error",
            False,
            id="organization",
        ),
        pytest.param(
            [build_preset(), build_override([build_value("size", 2), build_value("size", 3)])],
            "DuplicateOverride",
            "error",
            True,
            id="override-is-ignored",
        ),
        pytest.param(
            [build_preset(), build_override([build_value("size", 2), build_value("size", 2)])],
            "DuplicateOverride",
            "warning",
            True,
            id="override-equal",
        ),
        pytest.param(
            [build_preset([build_value("size", 1), build_value("size", 1.0)])],
            "DuplicateOption",
            "error",
            False,
            id="numbers-of-two-types",
        ),
        pytest.param(
            [build_preset([build_value("x", True), build_value("x", 1)])],
            "DuplicateOption",
            "error",
            False,
            id="a-boolean-is-no-number",
        ),
    ],
)
def test_duplicate_option_is_reported(texts: list[str], code: str, severity: str, value: bool) -> None:
    result = run_controller([EAST, SIZE, *texts])

    assert find_finding(result, code).severity == Severity(severity)
    assert bool(result.variants) == value


@pytest.mark.parametrize(
    ("entry", "code"),
    [
        pytest.param({"name": "a", "value": None}, "NoValueSource", id="null"),
        pytest.param({"name": "a"}, "NoValueSource", id="no-source"),
        pytest.param({"name": "a", "value": 1, "expression": "2"}, "MultipleValueSources", id="two-sources"),
        pytest.param({"name": "a", "path": "b", "value": 1}, "AliasConflict", id="name-and-path"),
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
        pytest.param({"name": "a.", "value": 1}, "OptionNameInvalid", id="trailing-dot"),
        pytest.param(
            {"name": ".".join("abcdefghijklmnopqrstuvwxyzabcdef"), "value": 1}, "OptionNameInvalid", id="levels"
        ),
        pytest.param({"name": "a", "value": 1, "vaule": 2}, "PluginPresetInvalid", id="unknown-field"),
    ],
)
def test_invalid_option_entry_is_reported(entry: Mapping[str, Any], code: str) -> None:
    result = run_controller([EAST, build_definition(), build_preset([build_value("fine", 1), entry])])

    actual_finding = find_finding(result, code)
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
        pytest.param({"name": r"a\.b", "value": 1}, {"value": 1}, id="a-dot-that-is-none"),
        pytest.param({"name": "a[0]", "value": 1}, {"value": 1}, id="a-place-in-a-list"),
        pytest.param({"name": "a", "value": False}, {"value": False}, id="false-is-a-value"),
        pytest.param({"name": "a", "value": 0}, {"value": 0}, id="nought-is-a-value"),
        pytest.param({"name": "a", "value": ""}, {"value": ""}, id="an-empty-text-is-a-value"),
    ],
)
def test_option_source_has_several_forms(entry: Mapping[str, Any], source: Any) -> None:
    result = run_controller([EAST, build_definition(), build_preset([entry])])

    (written_entry,) = (
        option_value
        for option_value in list_plugins(result)["east/logs-east"]["spec"]["optionValues"]
        if not option_value["name"].startswith("global.")
    )
    assert written_entry == {"name": entry.get("name", entry.get("path")), **source}


def test_organization_override_can_match_only_one_definition() -> None:
    texts = [
        build_definition([build_option("size", "int")]),
        build_definition([build_option("size", "string")], "other"),
        build_organization([build_value("size", "big")]),
        build_preset(),
        build_preset(name="others", definition="other"),
    ]

    result = run_controller([EAST, *texts])

    assert list(list_plugins(result)) == ["east/others-east"]
    assert list_codes(result) == ["OptionTypeMismatch"]
    where = find_finding(result, "OptionTypeMismatch").location
    assert (where.object, where.pointer) == ("Organization/_cluster/acme", "/spec/pluginOverrides/0")


def test_override_without_plugin_is_unused() -> None:
    result = run_controller([EAST, SIZE, build_preset(), build_override([build_value("size", 2)], namespace="moon")])

    assert list_codes(result) == ["OverrideUnused"]
    assert find_finding(result, "OverrideUnused").severity is Severity.WARNING


def test_single_plugin_receives_overrides_but_no_cluster_entries() -> None:
    texts = [
        build_definition([build_option("size", "int", 1)]),
        build_override([build_value("size", 4)], definitions=["shipper"]),
    ]

    result = run_controller([EAST, *texts, build_plugin([build_value("size", 2)], labels={"team": "a"})])

    assert list_values(result, "east/boards") == {"size": 4}
    assert list_plugins(result)["east/boards"]["metadata"]["labels"] == {"team": "a"}
    assert [step["layer"] for step in list_steps(result, "east/boards", "size")] == [
        "definition-default",
        "plugin",
        "override-definition",
    ]


def build_cluster_of_tier(name: str, tier: str, region: str, **more: Any) -> str:
    return build_cluster(name, {"tier": tier, "metadata.greenhouse.sap/region": region}, **more)


WORKED = [
    build_definition(
        [
            build_option("buffer.size", "int", 64),
            build_option("persistence.storageClass", default="standard"),
            build_option("alerting.smtpPassword", "secret", required=True),
            build_option("sinks", "list", []),
            build_option("endpoint", required=True),
        ],
        "logshipper",
        cluster_scoped=True,
    ),
    build_organization([
        build_value("global.imageRegistry", "registry.acme.example"),
        {"path": "alerting.smtpPassword", "valueFrom": {"secret": "acme-smtp", "key": "password"}},
    ]),
    build_cluster_of_tier("edge-01", "edge", "north-2", overrides=[build_value("persistence.storageClass", "local-path")]),
    build_cluster_of_tier("core-01", "core", "north-1"),
    build_cluster_of_tier("lab-01", "lab", "north-1"),
    build_override([build_value("buffer.size", 256)], "ov-all"),
    build_override(
        [build_value("persistence.storageClass", "zfs")], "ov-edge",
        clusters={"labelSelector": {"matchLabels": {"tier": "edge"}}},
    ),
    build_override([build_value("buffer.size", 512)], "ov-logshipper", definitions=["logshipper"]),
    build_override(
        [build_value("sinks", ["archive"])], "ov-edge-logshipper", definitions=["logshipper"],
        clusters=[{"matchLabels": {"tier": "edge"}}],
    ),
    build_preset(
        [
            build_expression_value(
                "endpoint",
                "https://in.${global.greenhouse.metadata.region}.logs.acme.example/${global.greenhouse.clusterName}",
            ),
            build_value("buffer.size", 128),
        ],
        definition="logshipper", kind="ClusterPluginDefinition",
        selector={"matchExpressions": [{"key": "tier", "operator": "In", "values": ["edge", "core"]}]},
        plugin={"releaseNamespace": "observability"},
        on={"edge-01": [build_value("buffer.size", 32)], "lab-01": [build_value("buffer.size", 8)]},
    ),
]  # fmt: skip
SMTP = {"secret": {"name": "acme-smtp", "key": "password"}}


def list_winning_layers(name: str) -> dict[str, Any]:
    """Return the value and layer of each option of a Plugin of the large example, with the replaced values."""
    result = run_controller(WORKED)
    options = list_values(result, name)
    details = {item: list_steps(result, name, item) for item in options}
    return {
        item: (value, details[item][-1]["layer"], [item["after"] for item in details[item][:-1]])
        for item, value in options.items()
    }


def test_large_example_on_an_edge_cluster() -> None:
    assert list_winning_layers("edge-01/logs-edge-01") == {
        "alerting.smtpPassword": (SMTP, "organization", []),
        "buffer.size": (32, "preset-cluster", [64, 128, 256, 512]),
        "endpoint": ("https://in.north-2.logs.acme.example/edge-01", "preset", []),
        "global.imageRegistry": ("registry.acme.example", "organization", []),
        "persistence.storageClass": ("zfs", "override-cluster", ["standard", "local-path"]),
        "sinks": (["archive"], "override-cluster-definition", [[]]),
    }


def test_large_example_on_a_core_cluster() -> None:
    assert list_winning_layers("core-01/logs-core-01") == {
        "alerting.smtpPassword": (SMTP, "organization", []),
        "buffer.size": (512, "override-definition", [64, 128, 256]),
        "endpoint": ("https://in.north-1.logs.acme.example/core-01", "preset", []),
        "global.imageRegistry": ("registry.acme.example", "organization", []),
        "persistence.storageClass": ("standard", "definition-default", []),
        "sinks": ([], "definition-default", []),
    }


def test_findings_and_names_of_the_large_example() -> None:
    result = run_controller(WORKED)

    assert sorted(list_plugins(result)) == ["core-01/logs-core-01", "edge-01/logs-edge-01"]
    assert list_codes(result) == ["OverrideClusterNotSelected", "UndeclaredOption"]
    assert find_finding(result, "UndeclaredOption").severity is Severity.INFO
    assert list_plugins(result)["edge-01/logs-edge-01"]["spec"]["releaseName"] == "logshipper-chart"
    provenance = find_variant(result, "edge-01/logs-edge-01").provenance
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


def test_each_finding_has_a_location() -> None:
    for item in list_findings(run_controller([*WORKED, build_object("PluginOverride", "bad", {"overrides": 5})])):
        assert item.location.file
        assert item.location.line
        assert item.location.object
