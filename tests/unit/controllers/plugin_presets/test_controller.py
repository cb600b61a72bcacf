"""Tests of the Plugins of presets: their owners, deletions, adoptions, name collisions and uncertain inputs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from reconciler.controllers.deletion_guards import PackageLocation, compute_deletion_hash
from reconciler.controllers.plugin_presets.status import complete_status
from reconciler.controllers.results import PackageOwner, PackageTarget
from reconciler.krm.findings import Severity
from reconciler.krm.objects import ObjectKey
from tests.unit.controllers.plugin_presets.controller_world import (
    EAST,
    UNREADABLE,
    WEST,
    FakeBranches,
    build_cluster,
    build_definition,
    build_files,
    build_object,
    build_option,
    build_organization,
    build_override,
    build_plugin,
    build_preset,
    build_preset_key,
    build_value,
    find_finding,
    find_status,
    find_variant,
    list_codes,
    list_conditions,
    list_plugins,
    list_values,
    run_controller,
)

SIZE = build_definition([build_option("size", "int", 1)])
LABEL = "greenhouse.sap/pluginpreset"
TEN = [f"c-{number}" for number in range(10)]
WIDE = [build_cluster(name, {"tier": "edge", "at": name}) for name in TEN]
PUBLISHED = FakeBranches.of(run_controller([*WIDE, SIZE, build_preset()]))
GONE = [("c-8", "plugins/logs-c-8"), ("c-9", "plugins/logs-c-9")]


def build_preset_for_clusters(count: int, **more: Any) -> str:
    values_of = TEN[:count] or ["moon"]
    selector = {"matchExpressions": [{"key": "at", "operator": "In", "values": values_of}]}
    return build_preset(selector=selector, **more)


def build_published_plugin(
    name: str, labels: dict[str, str] | None = None, annotations: dict[str, str] | None = None
) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "acme", "labels": labels or {}, "annotations": annotations or {}}
    return {"apiVersion": "greenhouse.sap/v1alpha1", "kind": "Plugin", "metadata": metadata, "spec": {}}


def build_owners(result_units: Iterable[PackageLocation], maker: str = "logs") -> dict[PackageLocation, PackageOwner]:
    """Return owners of Plugins that a preset created."""
    mapping = {unit: unit[1].removeprefix("plugins/") for unit in result_units}
    return {unit: build_plugin_owner(name, maker) for unit, name in mapping.items()}


def build_plugin_owner(name: str, maker: str) -> PackageOwner:
    return PackageOwner(
        ObjectKey("greenhouse.sap", "Plugin", "acme", name), "greenhouse.sap/v1alpha1", build_preset_key(maker)
    )


def test_owner_is_the_plugin_and_its_parent_is_the_preset() -> None:
    owner = find_variant(run_controller([EAST, SIZE, build_preset()]), "east/logs-east").owner

    assert owner.as_data() == {
        "apiVersion": "greenhouse.sap/v1alpha1", "kind": "Plugin", "namespace": "acme", "name": "logs-east",
        "set": "logs",
    }  # fmt: skip


def test_single_plugin_owns_itself() -> None:
    variant = find_variant(run_controller([EAST, SIZE, build_plugin()]), "east/boards")

    assert (variant.owner.key.reference, variant.owner.parent) == ("Plugin/acme/boards", None)
    assert variant.target == PackageTarget("acme", "east", "plugins/boards")


@pytest.mark.parametrize(
    ("text", "released", "is_held"),
    [
        pytest.param(build_preset_for_clusters(10), [], False, id="no-deletions"),
        pytest.param(build_preset_for_clusters(8), GONE, False, id="few-deletions"),
        pytest.param(build_preset_for_clusters(6), [], True, id="many-are-held"),
        pytest.param(build_preset_for_clusters(0), [], True, id="all-are-held"),
        pytest.param(
            build_preset_for_clusters(8, annotations={"greenhouse.sap/prevent-deletion": "true"}),
            [],
            True,
            id="prevent-deletion",
        ),
        pytest.param(
            build_preset_for_clusters(
                0, annotations={"reconciler.dev/ack-deletions": compute_deletion_hash(PUBLISHED.owners)}
            ),
            sorted(PUBLISHED.owners),
            False,
            id="acknowledged",
        ),
    ],
)
def test_deletions_on_clusters_that_stop_matching_are_guarded(
    text: str, released: list[PackageLocation], is_held: bool
) -> None:
    result = run_controller([*WIDE, SIZE, text], PUBLISHED)

    guard = result.guards[build_preset_key()]
    assert guard.targets == {PackageTarget("acme", cluster_name, package) for cluster_name, package in released}
    assert ("DeletionHeld" in list_codes(result)) == is_held
    rows: Any = find_status(result).fields["pluginStatuses"]
    states = {row["state"] for row in rows if row["clusterName"] in ("c-8", "c-9")}
    assert states == ({""} if text == build_preset_for_clusters(10) else {"PendingDeletion"} if is_held else set())


def test_prevented_deletion_is_only_a_warning() -> None:
    result = run_controller(
        [*WIDE, SIZE, build_preset_for_clusters(8, annotations={"greenhouse.sap/prevent-deletion": ""})], PUBLISHED
    )

    assert find_finding(result, "DeletionHeld").severity is Severity.WARNING


@pytest.mark.parametrize(
    ("text", "deletion"),
    [
        pytest.param(build_preset(), "delete", id="the-default"),
        pytest.param(build_preset(spec={"deletionPolicy": "Retain"}), "orphan", id="the-preset-retains"),
    ],
)
def test_deletion_policy_of_plugins_without_their_preset(text: str, deletion: str) -> None:
    assert find_variant(run_controller([EAST, SIZE, text]), "east/logs-east").deletion == deletion


@pytest.mark.parametrize("value", ["Retain", "retain", "RETAIN"])
def test_cluster_annotation_retains_plugins(value: str) -> None:
    east = build_cluster("east", annotations={"greenhouse.sap/plugin-deletion": value})

    assert find_variant(run_controller([east, SIZE, build_preset()]), "east/logs-east").deletion == "orphan"


def test_retained_plugin_is_adopted_again() -> None:
    branches = FakeBranches({}, FakeBranches.of(run_controller([EAST, SIZE, build_preset()])).plugins)

    result = run_controller([EAST, SIZE, build_preset()], branches)

    assert find_variant(result, "east/logs-east").adoption == "adoptExisting"
    assert list_codes(result) == []


COLLIDING = [
    build_cluster("b-c", {"at": "1"}),
    build_cluster("c", {"at": "2"}),
    SIZE,
    build_preset(name="a", selector={"matchLabels": {"at": "1"}}),
    build_preset(name="a-b", selector={"matchLabels": {"at": "2"}}),
]
LEFT, RIGHT = ("b-c", "plugins/a-b-c"), ("c", "plugins/a-b-c")


@pytest.mark.parametrize(
    ("branches", "winner"),
    [
        pytest.param(FakeBranches(), "b-c/a-b-c", id="the-lesser-preset"),
        pytest.param(FakeBranches(build_owners([RIGHT], "a-b")), "c/a-b-c", id="the-owner-of-the-published-package"),
        pytest.param(
            FakeBranches(build_owners([LEFT], "a")), "b-c/a-b-c", id="the-first-owner-of-the-published-package"
        ),
        pytest.param(
            FakeBranches({}, {RIGHT: build_published_plugin("a-b-c", {LABEL: "a-b"})}),
            "c/a-b-c",
            id="the-preset-of-the-published-label",
        ),
    ],
)
def test_only_one_of_two_presets_with_the_same_plugin_name_wins(branches: FakeBranches, winner: str) -> None:
    result = run_controller(COLLIDING, branches)

    assert list(list_plugins(result)) == [winner]
    assert list_codes(result) == ["NameCollision"]
    skipped_preset = "a" if winner.startswith("c/") else "a-b"
    assert list_conditions(result, skipped_preset)["PluginSkipped"][0] == "True"


def test_plugin_in_the_config_precedes_a_preset() -> None:
    result = run_controller([EAST, SIZE, build_preset(), build_plugin(name="logs-east")])

    assert list_codes(result) == ["PluginNotManaged"]
    assert find_variant(result, "east/logs-east").owner.parent is None


def test_plugin_in_the_config_with_the_preset_label_is_managed() -> None:
    result = run_controller(
        [EAST, SIZE, build_preset(), build_plugin([build_value("size", 7)], name="logs-east", labels={LABEL: "logs"})]
    )

    assert list_codes(result) == []
    assert list_values(result, "east/logs-east") == {"size": 1}


@pytest.mark.parametrize(
    ("branches", "texts"),
    [
        pytest.param(
            PUBLISHED.with_plugin(
                ("c-1", "plugins/logs-c-1"),
                build_published_plugin("logs-c-1", annotations={"greenhouse.sap/suspend": "true"}),
            ),
            [build_preset()],
            id="on-the-branch",
        ),
        pytest.param(
            PUBLISHED, [build_plugin(cluster="c-1", annotations={"greenhouse.sap/suspend": ""})], id="in-the-config"
        ),
    ],
)
def test_plugin_is_suspended_by_annotation(branches: FakeBranches, texts: list[str]) -> None:
    result = run_controller([*WIDE, SIZE, *texts], branches)

    (stalled,) = result.stalled
    assert list_codes(result) == ["PluginSuspended"]
    assert stalled.conditions[0].type == "Suspended"
    assert stalled.target is not None
    assert stalled.target.repository == "c-1"


@pytest.mark.parametrize("text", [build_preset_for_clusters(8), ""], ids=["not-selected", "the-preset-is-gone"])
def test_suspended_plugin_is_not_deleted(text: str) -> None:
    suspended_plugin = build_published_plugin("logs-c-9", annotations={"greenhouse.sap/suspend": "true"})
    branches = PUBLISHED.with_plugin(GONE[1], suspended_plugin)

    result = run_controller([*WIDE, SIZE, *([text] if text else [])], branches)

    guard = result.guards[build_preset_key()]
    assert guard.allows_deletion(PackageTarget("acme", *GONE[0]))
    assert not guard.allows_deletion(PackageTarget("acme", *GONE[1]))
    assert "suspended" in guard.reason


def test_deleted_preset_has_no_guard() -> None:
    assert run_controller([*WIDE, SIZE], PUBLISHED).guards == {}


@pytest.mark.parametrize(
    ("texts", "code"),
    [
        pytest.param([build_preset(selector={})], "SelectorEmpty", id="empty-selector"),
        pytest.param([build_preset(selector={"matchLabels": {}})], "SelectorEmpty", id="empty-labels"),
        pytest.param(
            [build_preset(selector={"matchExpressions": [{"key": "a", "operator": "Near", "values": ["b"]}]})],
            "SelectorInvalid",
            id="operator",
        ),
        pytest.param(
            [build_preset(selector={"matchExpressions": [{"key": "a", "operator": "In", "values": []}]})],
            "SelectorInvalid",
            id="no-values",
        ),
        pytest.param([build_preset(definition="")], "DefinitionRefMissing", id="no-definition"),
        pytest.param([build_preset(definition="nothing")], "PluginDefinitionNotFound", id="definition-not-there"),
        pytest.param(
            [build_preset(definition="bad"), build_definition([], "bad", version="")],
            "DefinitionInvalid",
            id="definition-invalid",
        ),
        pytest.param([build_preset(), build_preset()], "", id="twice"),
        pytest.param([build_preset(spec={"clusterSelektor": {}})], "PluginPresetInvalid", id="unknown-field"),
    ],
)
def test_invalid_preset_keeps_its_plugins(texts: list[str], code: str) -> None:
    result = run_controller([*WIDE, SIZE, *texts], PUBLISHED)

    assert result.kept_owners == {build_preset_key()}
    assert build_preset_key() not in result.guards
    assert list_plugins(result) == {}
    assert not code or code in list_codes(result)


@pytest.mark.parametrize(
    "texts",
    [
        pytest.param([build_override([build_value("size", 2), build_value("size", 3)])], id="twice-in-it"),
        pytest.param([build_override([build_value("size", 2)], colour="red")], id="unknown-field"),
        pytest.param(
            [build_override([build_value("size", 2)]), build_override([build_value("size", 3)])], id="two-of-them"
        ),
    ],
)
def test_uncertain_override_stalls_published_plugins_and_is_ignored_for_new_ones(texts: list[str]) -> None:
    branches = FakeBranches.of(run_controller([EAST, SIZE, build_preset(), build_override([build_value("size", 2)])]))

    result = run_controller([EAST, WEST, SIZE, build_preset(), *texts], branches)

    assert list(list_plugins(result)) == ["west/logs-west"]
    assert list_values(result, "west/logs-west") == {"size": 1}
    assert [stalled_variant.owner.key.reference for stalled_variant in result.stalled] == ["Plugin/acme/logs-east"]


def test_uncertain_override_does_not_affect_other_clusters() -> None:
    branches = FakeBranches.of(
        run_controller([EAST, WEST, SIZE, build_preset(), build_override([build_value("size", 2)])])
    )
    uncertain_override = build_override(
        [build_value("size", 2), build_value("size", 3)], clusters={"clusterNames": ["west"]}
    )

    result = run_controller([EAST, WEST, SIZE, build_preset(), uncertain_override], branches)

    assert list(list_plugins(result)) == ["east/logs-east"]


def test_duplicate_organization_stalls_published_plugins() -> None:
    branches = FakeBranches.of(
        run_controller([EAST, SIZE, build_preset(), build_organization([build_value("size", 3)])])
    )

    result = run_controller(
        [EAST, SIZE, build_preset(), build_organization([build_value("size", 3)]), build_organization()], branches
    )

    assert list_plugins(result) == {}
    assert len(result.stalled) == 1


def test_duplicate_cluster_keeps_its_plugins() -> None:
    branches = FakeBranches.of(run_controller([EAST, WEST, SIZE, build_preset()]))
    repository = (
        "apiVersion: config.porch.kpt.dev/v1alpha1\nkind: Repository\nmetadata: {name: east, namespace: acme}\n"
        "spec: {type: git, deployment: true, git: {repo: https://example.test/e.git, branch: main}}\n"
    )

    result = run_controller([EAST, EAST, WEST, repository, SIZE, build_preset()], branches)

    assert list(list_plugins(result)) == ["west/logs-west"]
    assert [stalled_variant.target for stalled_variant in result.stalled] == [
        PackageTarget("acme", "east", "plugins/logs-east")
    ]
    assert not result.guards[build_preset_key()].targets


def test_override_is_not_reported_as_unused_with_an_unreadable_file() -> None:
    result = run_controller(
        {**build_files(EAST, SIZE, build_override([build_value("size", 2)])), "bad.yaml": UNREADABLE}
    )

    assert "OverrideUnused" not in list_codes(result)


def test_single_plugin_cannot_move_to_another_cluster() -> None:
    branches = FakeBranches.of(run_controller([EAST, WEST, SIZE, build_plugin(cluster="east")]))

    result = run_controller([EAST, WEST, SIZE, build_plugin(cluster="west")], branches)

    assert list_codes(result) == ["ImmutableFieldChanged"]
    assert result.variants == ()


def test_two_plugins_cannot_have_the_same_release() -> None:
    texts = [EAST, SIZE, build_preset(name="b"), build_preset(name="a")]

    fresh = run_controller(texts)
    late = run_controller(texts, FakeBranches.of(run_controller([EAST, SIZE, build_preset(name="b")])))

    assert (list(list_plugins(fresh)), list(list_plugins(late))) == (["east/a-east"], ["east/b-east"])
    assert list_codes(fresh) == ["ReleaseNameConflict"]


def test_cycle_of_waiting_plugins_on_a_cluster_is_reported() -> None:
    circle = [
        build_preset(
            name=name,
            plugin={"releaseName": name},
            spec={"waitFor": [{"pluginRef": {"pluginPreset": required_preset}}]},
        )
        for name, required_preset in (("a", "b"), ("b", "c"), ("c", "a"), ("d", "a"))
    ]

    result = run_controller([EAST, SIZE, *circle])

    assert list(list_plugins(result)) == ["east/d-east"]
    assert (
        'a-east on cluster "east" must not wait for itself, but "a-east" waits for "b-east", which waits for'
        ' "c-east", which waits for "a-east"' in find_finding(result, "WaitForCycle").message
    )


@pytest.mark.parametrize(
    ("name", "code"),
    [
        pytest.param("a" * 64, "PluginNameInvalid", id="longer-than-a-label"),
        pytest.param("Logs", "PluginNameInvalid", id="no-name-of-a-folder"),
    ],
)
def test_invalid_preset_name_is_reported(name: str, code: str) -> None:
    assert list_codes(run_controller([EAST, SIZE, build_preset(name=name)])) == [code]


def test_plugin_name_that_is_too_long_is_reported_for_its_cluster() -> None:
    long = "c" * 200

    result = run_controller([EAST, build_cluster(long), SIZE, build_preset(name="p" * 60)])

    assert list_codes(result) == ["PluginNameInvalid"]
    assert list(list_plugins(result)) == [f"east/{'p' * 60}-east"]


@pytest.mark.parametrize(
    ("labels", "code"),
    [
        pytest.param({}, "OwnerLabelMissing", id="none"),
        pytest.param({"greenhouse.sap/owned-by": "nobody"}, "OwnerLabelNotExistingTeam", id="no-team"),
        pytest.param({"greenhouse.sap/owned-by": "crew"}, "OwnerLabelSetToNonSupportGroupTeam", id="no-support-group"),
        pytest.param({"greenhouse.sap/owned-by": "night"}, "", id="a-support-group"),
    ],
)
def test_owner_label_is_checked(labels: dict[str, str], code: str) -> None:
    teams = [
        build_object("Team", "crew"),
        build_object("Team", "night", labels={"greenhouse.sap/support-group": "true"}),
    ]

    result = run_controller([EAST, SIZE, build_preset(labels=labels), *teams])

    assert list_codes(result) == ([code] if code else [])
    assert list_conditions(result)["OwnerLabelSet"] == (("False", code) if code else ("True", "OwnerLabelSet"))


def test_owner_label_is_not_checked_without_teams() -> None:
    assert "OwnerLabelSet" not in list_conditions(run_controller([EAST, SIZE, build_preset()]))


@pytest.mark.parametrize(
    ("states", "ready", "all_ready"),
    [
        pytest.param({}, ("Unknown", "AllPluginsReady"), "Unknown", id="nothing-known"),
        pytest.param({"east": "UpToDate"}, ("Unknown", "AllPluginsReady"), "Unknown", id="half-known"),
        pytest.param({"east": "UpToDate", "west": "Draft"}, ("False", "AllPluginsReady"), "False", id="a-draft"),
        pytest.param({"east": "UpToDate", "west": "UpToDate"}, ("True", "Ready"), "True", id="all-published"),
    ],
)
def test_preset_is_ready_when_its_plugins_are_ready(states: dict[str, Any], ready: Any, all_ready: str) -> None:
    result = run_controller([EAST, WEST, SIZE, build_preset()])
    keys = {variant.target.repository: variant.owner.key for variant in result.variants}

    known = complete_status(find_status(result), {keys[name]: state for name, state in states.items()})

    mapping = {condition.type: (condition.status, condition.reason) for condition in known.conditions}
    assert mapping["Ready"] == ready
    assert mapping["AllPluginsReady"][0] == all_ready
    assert known.fields["totalPlugins"] == 2


def test_status_of_a_preset_has_a_row_for_each_cluster() -> None:
    result = run_controller([EAST, WEST, SIZE, build_preset(on={"west": [build_value("size", "big")]})])

    rows: Any = find_status(result).fields["pluginStatuses"]
    east, west = rows
    assert east == {"pluginName": "logs-east", "clusterName": "east", "state": "", "codes": []}
    assert (west["state"], west["codes"]) == ("Failed", ["OptionTypeMismatch"])
    assert find_status(result).fields["pluginDefinitionVersion"] == "2.0.0"
    assert find_status(result).fields["matchedClusters"] == 2


def test_status_of_an_override_contains_its_layer_and_plugin_count() -> None:
    result = run_controller(
        [
            EAST,
            WEST,
            SIZE,
            build_preset(),
            build_override([build_value("size", 2)], clusters={"clusterNames": ["east"]}),
        ]
    )

    assert find_status(result, "PluginOverride", "ov").fields == {"layer": "override-cluster", "plugins": 1}


@pytest.mark.parametrize(
    ("own", "namespace", "code"),
    [
        pytest.param("c" * 64, "acme", "PluginNameInvalid", id="a-cluster-that-cannot-be-a-label"),
        pytest.param("far", "moon", "", id="a-cluster-of-another-organization"),
    ],
)
def test_clusters_without_a_plugin(own: str, namespace: str, code: str) -> None:
    result = run_controller([EAST, build_cluster(own, namespace=namespace), SIZE, build_preset()])

    assert list(list_plugins(result)) == ["east/logs-east"]
    assert list_codes(result) == ([code] if code else [])


def test_plugin_without_readable_labels_is_not_managed() -> None:
    result = run_controller([EAST, SIZE, build_preset()], FakeBranches().with_plugin(("east", "plugins/logs-east"), {}))

    assert list_codes(result) == ["PluginNotManaged"]


@pytest.mark.parametrize(("mark", "adoption"), [("", "adoptNone"), ("true", "adoptExisting")])
def test_single_plugin_uses_the_adoption_annotation(mark: str, adoption: str) -> None:
    text = build_plugin(annotations={"reconciler.dev/adopt": mark} if mark else None)

    result = run_controller(
        [EAST, SIZE, text], FakeBranches().with_plugin(("east", "plugins/boards"), build_published_plugin("boards"))
    )

    assert find_variant(result, "east/boards").adoption == adoption


@pytest.mark.parametrize(
    ("broken", "expected"),
    [
        pytest.param({"other.yaml": "kind: ["}, {"PluginOverrideInvalid"}, id="it-may-be-in-there"),
        pytest.param({}, set(), id="it-is-gone"),
    ],
)
def test_override_that_an_unreadable_file_may_contain_is_not_treated_as_deleted(
    broken: dict[str, str], expected: set[str]
) -> None:
    texts = [EAST, WEST, SIZE, build_preset()]
    before = FakeBranches.of(
        run_controller([*texts, build_override([build_value("size", 2)], clusters={"clusterNames": ["east"]})])
    )

    result = run_controller({**build_files(*texts), **broken}, before)

    reasons = {
        (stalled_variant.target and stalled_variant.target.repository, stalled_variant.conditions[0].reason)
        for stalled_variant in result.stalled
    }
    assert reasons == {("east", code) for code in expected}


@pytest.mark.parametrize(
    ("won_before", "expected"),
    [
        pytest.param(True, {"logs-east": "PluginOverrideInvalid"}, id="what-it-won-before-is-not-taken-back"),
        pytest.param(False, {}, id="one-that-never-had-a-say-is-ignored"),
    ],
)
def test_invalid_override_keeps_the_effect_of_its_published_version(won_before: bool, expected: dict[str, str]) -> None:
    texts, where = [EAST, SIZE, build_preset()], {"clusterNames": ["east"]}
    valid_override = build_override([build_value("size", 2)], clusters=where)
    before = FakeBranches.of(run_controller([*texts, valid_override] if won_before else texts))
    broken = [*texts, build_override([build_value("size", 3)], clusters=where, priority="high")]

    result = run_controller(broken, before)

    assert {
        stalled_variant.owner.key.name: stalled_variant.conditions[0].reason for stalled_variant in result.stalled
    } == expected
    # The result is the same in the next pass, when the draft is published.
    assert "PluginOverrideInvalid" in list_codes(result)


def test_each_branch_is_read_once() -> None:
    items: list[str] = []

    class RecordingBranches(FakeBranches):
        def read_published(self, cluster: str) -> Any:
            items.append(cluster)
            return super().read_published(cluster)

    run_controller(
        [*WIDE, SIZE, build_preset(), build_preset(name="b", plugin={"releaseName": "b"})], RecordingBranches()
    )

    assert sorted(items) == TEN
