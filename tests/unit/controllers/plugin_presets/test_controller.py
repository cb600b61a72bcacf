"""The life of Plugins: whose they are, what becomes of those that nobody wants, what stays in doubt (greenhouse 12)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from reconciler.controllers.deletion_guards import PackageLocation, compute_deletion_hash
from reconciler.controllers.plugin_presets.status import complete_status
from reconciler.controllers.results import PackageOwner, PackageTarget
from reconciler.krm.findings import Severity
from reconciler.krm.objects import ObjectKey
from tests.unit.controllers.plugin_presets.presets_world import (
    EAST,
    UNREADABLE,
    WEST,
    Branches,
    cluster,
    conditions,
    config,
    definition,
    finding,
    given,
    option,
    organization,
    override,
    plugin,
    plugins,
    preset,
    preset_key,
    room,
    status,
    told,
    values,
    variant_of,
    written,
)

SIZE = definition([option("size", "int", 1)])
LABEL = "greenhouse.sap/pluginpreset"
TEN = [f"c-{number}" for number in range(10)]
WIDE = [cluster(name, {"tier": "edge", "at": name}) for name in TEN]
PUBLISHED = Branches.of(room([*WIDE, SIZE, preset()]))
GONE = [("c-8", "plugins/logs-c-8"), ("c-9", "plugins/logs-c-9")]


def choosing(count: int, **more: Any) -> str:
    values_of = TEN[:count] or ["moon"]
    selector = {"matchExpressions": [{"key": "at", "operator": "In", "values": values_of}]}
    return preset(selector=selector, **more)


def standing(
    name: str, labels: dict[str, str] | None = None, annotations: dict[str, str] | None = None
) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "acme", "labels": labels or {}, "annotations": annotations or {}}
    return {"apiVersion": "greenhouse.sap/v1alpha1", "kind": "Plugin", "metadata": metadata, "spec": {}}


def owned(result_units: Iterable[PackageLocation], maker: str = "logs") -> dict[PackageLocation, PackageOwner]:
    """Return owners of Plugins that a preset made."""
    mapping = {unit: unit[1].removeprefix("plugins/") for unit in result_units}
    return {unit: plugin_owner(name, maker) for unit, name in mapping.items()}


def plugin_owner(name: str, maker: str) -> PackageOwner:
    return PackageOwner(
        ObjectKey("greenhouse.sap", "Plugin", "acme", name), "greenhouse.sap/v1alpha1", preset_key(maker)
    )


def test_the_owner_is_the_plugin_and_the_preset_its_set() -> None:
    owner = variant_of(room([EAST, SIZE, preset()]), "east/logs-east").owner

    assert owner.as_data() == {
        "apiVersion": "greenhouse.sap/v1alpha1", "kind": "Plugin", "namespace": "acme", "name": "logs-east",
        "set": "logs",
    }  # fmt: skip


def test_a_plugin_of_its_own_owns_itself() -> None:
    variant = variant_of(room([EAST, SIZE, plugin()]), "east/boards")

    assert (str(variant.owner.key), variant.owner.parent) == ("Plugin/acme/boards", None)
    assert variant.target == PackageTarget("acme", "east", "plugins/boards")


@pytest.mark.parametrize(
    ("text", "released", "is_held"),
    [
        pytest.param(choosing(10), [], False, id="nothing-goes"),
        pytest.param(choosing(8), GONE, False, id="few-go"),
        pytest.param(choosing(6), [], True, id="many-are-held"),
        pytest.param(choosing(0), [], True, id="all-are-held"),
        pytest.param(
            choosing(8, annotations={"greenhouse.sap/prevent-deletion": "true"}), [], True, id="prevent-deletion"
        ),
        pytest.param(
            choosing(0, annotations={"reconciler.dev/ack-deletions": compute_deletion_hash(PUBLISHED.owners)}),
            sorted(PUBLISHED.owners),
            False,
            id="acknowledged",
        ),
    ],
)
def test_clusters_that_stop_matching(text: str, released: list[PackageLocation], is_held: bool) -> None:
    result = room([*WIDE, SIZE, text], PUBLISHED)

    guard = result.guards[preset_key()]
    assert guard.targets == {PackageTarget("acme", cluster_name, package) for cluster_name, package in released}
    assert ("DeletionHeld" in told(result)) == is_held
    rows: Any = status(result).fields["pluginStatuses"]
    states = {row["state"] for row in rows if row["clusterName"] in ("c-8", "c-9")}
    assert states == ({""} if text == choosing(10) else {"PendingDeletion"} if is_held else set())


def test_a_preset_that_lets_nothing_go_is_only_warned_of() -> None:
    result = room([*WIDE, SIZE, choosing(8, annotations={"greenhouse.sap/prevent-deletion": ""})], PUBLISHED)

    assert finding(result, "DeletionHeld").severity is Severity.WARNING


@pytest.mark.parametrize(
    ("text", "deletion"),
    [
        pytest.param(preset(), "delete", id="unless-anybody-says-so"),
        pytest.param(preset(spec={"deletionPolicy": "Retain"}), "orphan", id="17.12-the-preset-retains"),
    ],
)
def test_what_becomes_of_plugins_without_their_preset(text: str, deletion: str) -> None:
    assert variant_of(room([EAST, SIZE, text]), "east/logs-east").deletion == deletion


@pytest.mark.parametrize("value", ["Retain", "retain", "RETAIN"])
def test_a_cluster_may_retain_its_plugins(value: str) -> None:
    east = cluster("east", annotations={"greenhouse.sap/plugin-deletion": value})

    assert variant_of(room([east, SIZE, preset()]), "east/logs-east").deletion == "orphan"


def test_a_retained_plugin_is_taken_up_again() -> None:
    """17.12"""
    there = Branches({}, Branches.of(room([EAST, SIZE, preset()])).plugins)

    result = room([EAST, SIZE, preset()], there)

    assert variant_of(result, "east/logs-east").adoption == "adoptExisting"
    assert told(result) == []


COLLIDING = [
    cluster("b-c", {"at": "1"}),
    cluster("c", {"at": "2"}),
    SIZE,
    preset(name="a", selector={"matchLabels": {"at": "1"}}),
    preset(name="a-b", selector={"matchLabels": {"at": "2"}}),
]
LEFT, RIGHT = ("b-c", "plugins/a-b-c"), ("c", "plugins/a-b-c")


@pytest.mark.parametrize(
    ("branches", "winner"),
    [
        pytest.param(Branches(), "b-c/a-b-c", id="the-lesser-preset"),
        pytest.param(Branches(owned([RIGHT], "a-b")), "c/a-b-c", id="whoever-has-it"),
        pytest.param(Branches(owned([LEFT], "a")), "b-c/a-b-c", id="whoever-has-it-first"),
        pytest.param(Branches({}, {RIGHT: standing("a-b-c", {LABEL: "a-b"})}), "c/a-b-c", id="whose-label-is-there"),
    ],
)
def test_two_presets_may_want_one_name(branches: Branches, winner: str) -> None:
    result = room(COLLIDING, branches)

    assert list(plugins(result)) == [winner]
    assert told(result) == ["NameCollision"]
    loser = "a" if winner.startswith("c/") else "a-b"
    assert conditions(result, loser)["PluginSkipped"][0] == "True"


def test_a_plugin_in_the_config_goes_before_a_preset() -> None:
    result = room([EAST, SIZE, preset(), plugin(name="logs-east")])

    assert told(result) == ["PluginNotManaged"]
    assert variant_of(result, "east/logs-east").owner.parent is None


def test_a_plugin_in_the_config_may_be_given_to_a_preset() -> None:
    result = room([EAST, SIZE, preset(), plugin([given("size", 7)], name="logs-east", labels={LABEL: "logs"})])

    assert told(result) == []
    assert values(result, "east/logs-east") == {"size": 1}


@pytest.mark.parametrize(
    ("branches", "texts"),
    [
        pytest.param(
            PUBLISHED.with_plugin(
                ("c-1", "plugins/logs-c-1"), standing("logs-c-1", annotations={"greenhouse.sap/suspend": "true"})
            ),
            [preset()],
            id="on-the-branch",
        ),
        pytest.param(
            PUBLISHED, [plugin(cluster="c-1", annotations={"greenhouse.sap/suspend": ""})], id="in-the-config"
        ),
    ],
)
def test_a_plugin_may_rest(branches: Branches, texts: list[str]) -> None:
    result = room([*WIDE, SIZE, *texts], branches)

    (stalled,) = result.stalled
    assert told(result) == ["PluginSuspended"]
    assert stalled.conditions[0].type == "Suspended"
    assert stalled.target is not None
    assert stalled.target.repository == "c-1"


@pytest.mark.parametrize("text", [choosing(8), ""], ids=["not-selected", "the-preset-is-gone"])
def test_what_rests_is_not_removed(text: str) -> None:
    resting = standing("logs-c-9", annotations={"greenhouse.sap/suspend": "true"})
    there = PUBLISHED.with_plugin(GONE[1], resting)

    result = room([*WIDE, SIZE, *([text] if text else [])], there)

    guard = result.guards[preset_key()]
    assert guard.allows_deletion(PackageTarget("acme", *GONE[0]))
    assert not guard.allows_deletion(PackageTarget("acme", *GONE[1]))
    assert "suspended" in guard.reason


def test_a_preset_that_is_gone_has_no_guard() -> None:
    assert room([*WIDE, SIZE], PUBLISHED).guards == {}


@pytest.mark.parametrize(
    ("texts", "code"),
    [
        pytest.param([preset(selector={})], "SelectorEmpty", id="empty-selector"),
        pytest.param([preset(selector={"matchLabels": {}})], "SelectorEmpty", id="empty-labels"),
        pytest.param(
            [preset(selector={"matchExpressions": [{"key": "a", "operator": "Near", "values": ["b"]}]})],
            "SelectorInvalid",
            id="operator",
        ),
        pytest.param(
            [preset(selector={"matchExpressions": [{"key": "a", "operator": "In", "values": []}]})],
            "SelectorInvalid",
            id="no-values",
        ),
        pytest.param([preset(definition="")], "DefinitionRefMissing", id="no-definition"),
        pytest.param([preset(definition="nothing")], "PluginDefinitionNotFound", id="definition-not-there"),
        pytest.param(
            [preset(definition="bad"), definition([], "bad", version="")], "DefinitionInvalid", id="definition-invalid"
        ),
        pytest.param([preset(), preset()], "", id="twice"),
        pytest.param([preset(spec={"clusterSelektor": {}})], "PluginPresetInvalid", id="unknown-field"),
    ],
)
def test_a_preset_that_cannot_be_used_keeps_what_it_made(texts: list[str], code: str) -> None:
    result = room([*WIDE, SIZE, *texts], PUBLISHED)

    assert result.kept_owners == {preset_key()}
    assert preset_key() not in result.guards
    assert plugins(result) == {}
    assert not code or code in told(result)


@pytest.mark.parametrize(
    "texts",
    [
        pytest.param([override([given("size", 2), given("size", 3)])], id="twice-in-it"),
        pytest.param([override([given("size", 2)], colour="red")], id="unknown-field"),
        pytest.param([override([given("size", 2)]), override([given("size", 3)])], id="two-of-them"),
    ],
)
def test_an_override_in_doubt_leaves_what_is_there_and_is_ignored_for_what_is_new(texts: list[str]) -> None:
    there = Branches.of(room([EAST, SIZE, preset(), override([given("size", 2)])]))

    result = room([EAST, WEST, SIZE, preset(), *texts], there)

    assert list(plugins(result)) == ["west/logs-west"]
    assert values(result, "west/logs-west") == {"size": 1}
    assert [str(stalled_variant.owner.key) for stalled_variant in result.stalled] == ["Plugin/acme/logs-east"]


def test_an_override_in_doubt_spares_whom_it_is_not_for() -> None:
    there = Branches.of(room([EAST, WEST, SIZE, preset(), override([given("size", 2)])]))
    doubtful = override([given("size", 2), given("size", 3)], clusters={"clusterNames": ["west"]})

    result = room([EAST, WEST, SIZE, preset(), doubtful], there)

    assert list(plugins(result)) == ["east/logs-east"]


def test_an_organization_that_stands_twice_leaves_what_is_there() -> None:
    there = Branches.of(room([EAST, SIZE, preset(), organization([given("size", 3)])]))

    result = room([EAST, SIZE, preset(), organization([given("size", 3)]), organization()], there)

    assert plugins(result) == {}
    assert len(result.stalled) == 1


def test_a_cluster_that_stands_twice_keeps_what_it_has() -> None:
    there = Branches.of(room([EAST, WEST, SIZE, preset()]))
    repository = (
        "apiVersion: config.porch.kpt.dev/v1alpha1\nkind: Repository\nmetadata: {name: east, namespace: acme}\n"
        "spec: {type: git, deployment: true, git: {repo: https://example.test/e.git, branch: main}}\n"
    )

    result = room([EAST, EAST, WEST, repository, SIZE, preset()], there)

    assert list(plugins(result)) == ["west/logs-west"]
    assert [stalled_variant.target for stalled_variant in result.stalled] == [
        PackageTarget("acme", "east", "plugins/logs-east")
    ]
    assert not result.guards[preset_key()].targets


def test_no_override_is_called_unused_while_a_file_cannot_be_read() -> None:
    result = room({**config(EAST, SIZE, override([given("size", 2)])), "bad.yaml": UNREADABLE})

    assert "OverrideUnused" not in told(result)


def test_a_plugin_of_its_own_cannot_move_to_another_cluster() -> None:
    there = Branches.of(room([EAST, WEST, SIZE, plugin(cluster="east")]))

    result = room([EAST, WEST, SIZE, plugin(cluster="west")], there)

    assert told(result) == ["ImmutableFieldChanged"]
    assert result.variants == ()


def test_one_release_cannot_be_two_plugins() -> None:
    texts = [EAST, SIZE, preset(name="b"), preset(name="a")]

    fresh = room(texts)
    late = room(texts, Branches.of(room([EAST, SIZE, preset(name="b")])))

    assert (list(plugins(fresh)), list(plugins(late))) == (["east/a-east"], ["east/b-east"])
    assert told(fresh) == ["ReleaseNameConflict"]


def test_plugins_on_one_cluster_must_not_wait_in_a_circle() -> None:
    circle = [
        preset(name=name, plugin={"releaseName": name}, spec={"waitFor": [{"pluginRef": {"pluginPreset": awaited}}]})
        for name, awaited in (("a", "b"), ("b", "c"), ("c", "a"), ("d", "a"))
    ]

    result = room([EAST, SIZE, *circle])

    assert list(plugins(result)) == ["east/d-east"]
    assert "a-east waits for b-east waits for c-east waits for a-east" in finding(result, "WaitForCycle").message


@pytest.mark.parametrize(
    ("name", "code"),
    [
        pytest.param("a" * 64, "PluginNameInvalid", id="longer-than-a-label"),
        pytest.param("Logs", "PluginNameInvalid", id="no-name-of-a-folder"),
    ],
)
def test_names_of_presets(name: str, code: str) -> None:
    assert told(room([EAST, SIZE, preset(name=name)])) == [code]


def test_a_plugin_may_have_too_long_a_name_on_one_cluster() -> None:
    long = "c" * 200

    result = room([EAST, cluster(long), SIZE, preset(name="p" * 60)])

    assert told(result) == ["PluginNameInvalid"]
    assert list(plugins(result)) == [f"east/{'p' * 60}-east"]


@pytest.mark.parametrize(
    ("labels", "code"),
    [
        pytest.param({}, "OwnerLabelMissing", id="none"),
        pytest.param({"greenhouse.sap/owned-by": "nobody"}, "OwnerLabelNotExistingTeam", id="no-team"),
        pytest.param({"greenhouse.sap/owned-by": "crew"}, "OwnerLabelSetToNonSupportGroupTeam", id="no-support-group"),
        pytest.param({"greenhouse.sap/owned-by": "night"}, "", id="a-support-group"),
    ],
)
def test_the_owner_label(labels: dict[str, str], code: str) -> None:
    teams = [written("Team", "crew"), written("Team", "night", labels={"greenhouse.sap/support-group": "true"})]

    result = room([EAST, SIZE, preset(labels=labels), *teams])

    assert told(result) == ([code] if code else [])
    assert conditions(result)["OwnerLabelSet"] == (("False", code) if code else ("True", "OwnerLabelSet"))


def test_nobody_asks_for_owners_where_there_are_no_teams() -> None:
    assert "OwnerLabelSet" not in conditions(room([EAST, SIZE, preset()]))


@pytest.mark.parametrize(
    ("states", "ready", "all_ready"),
    [
        pytest.param({}, ("Unknown", "AllPluginsReady"), "Unknown", id="nothing-known"),
        pytest.param({"east": "UpToDate"}, ("Unknown", "AllPluginsReady"), "Unknown", id="half-known"),
        pytest.param({"east": "UpToDate", "west": "Draft"}, ("False", "AllPluginsReady"), "False", id="a-draft"),
        pytest.param({"east": "UpToDate", "west": "UpToDate"}, ("True", "Ready"), "True", id="all-published"),
    ],
)
def test_a_preset_is_ready_when_its_plugins_are(states: dict[str, Any], ready: Any, all_ready: str) -> None:
    result = room([EAST, WEST, SIZE, preset()])
    keys = {variant.target.repository: variant.owner.key for variant in result.variants}

    known = complete_status(status(result), {keys[name]: state for name, state in states.items()})

    mapping = {condition.type: (condition.status, condition.reason) for condition in known.conditions}
    assert mapping["Ready"] == ready
    assert mapping["AllPluginsReady"][0] == all_ready
    assert known.fields["totalPlugins"] == 2


def test_the_status_of_a_preset_has_a_row_for_each_cluster() -> None:
    result = room([EAST, WEST, SIZE, preset(on={"west": [given("size", "big")]})])

    rows: Any = status(result).fields["pluginStatuses"]
    east, west = rows
    assert east == {"pluginName": "logs-east", "clusterName": "east", "state": "", "codes": []}
    assert (west["state"], west["codes"]) == ("Failed", ["OptionTypeMismatch"])
    assert status(result).fields["pluginDefinitionVersion"] == "2.0.0"
    assert status(result).fields["matchedClusters"] == 2


def test_the_status_of_an_override_says_its_layer_and_how_far_it_reaches() -> None:
    result = room([EAST, WEST, SIZE, preset(), override([given("size", 2)], clusters={"clusterNames": ["east"]})])

    assert status(result, "PluginOverride", "ov").fields == {"layer": "override-cluster", "plugins": 1}


@pytest.mark.parametrize(
    ("own", "namespace", "code"),
    [
        pytest.param("c" * 64, "acme", "PluginNameInvalid", id="a-cluster-that-cannot-be-a-label"),
        pytest.param("far", "moon", "", id="a-cluster-of-another-organization"),
    ],
)
def test_clusters_that_get_no_plugin(own: str, namespace: str, code: str) -> None:
    result = room([EAST, cluster(own, namespace=namespace), SIZE, preset()])

    assert list(plugins(result)) == ["east/logs-east"]
    assert told(result) == ([code] if code else [])


def test_what_stands_on_a_branch_without_being_read_is_somebody_elses() -> None:
    result = room([EAST, SIZE, preset()], Branches().with_plugin(("east", "plugins/logs-east"), {}))

    assert told(result) == ["PluginNotManaged"]


@pytest.mark.parametrize(("mark", "adoption"), [("", "adoptNone"), ("true", "adoptExisting")])
def test_a_plugin_of_its_own_takes_over_what_its_author_says(mark: str, adoption: str) -> None:
    text = plugin(annotations={"reconciler.dev/adopt": mark} if mark else None)

    result = room([EAST, SIZE, text], Branches().with_plugin(("east", "plugins/boards"), standing("boards")))

    assert variant_of(result, "east/boards").adoption == adoption


@pytest.mark.parametrize(
    ("broken", "expected"),
    [
        pytest.param({"other.yaml": "kind: ["}, {"PluginOverrideInvalid"}, id="it-may-be-in-there"),
        pytest.param({}, set(), id="it-is-gone"),
    ],
)
def test_an_override_that_may_be_in_an_unreadable_file_is_not_taken_for_gone(
    broken: dict[str, str], expected: set[str]
) -> None:
    texts = [EAST, WEST, SIZE, preset()]
    before = Branches.of(room([*texts, override([given("size", 2)], clusters={"clusterNames": ["east"]})]))

    result = room({**config(*texts), **broken}, before)

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
def test_an_override_that_cannot_be_used_any_more(won_before: bool, expected: dict[str, str]) -> None:
    texts, where = [EAST, SIZE, preset()], {"clusterNames": ["east"]}
    sound = override([given("size", 2)], clusters=where)
    before = Branches.of(room([*texts, sound] if won_before else texts))
    broken = [*texts, override([given("size", 3)], clusters=where, priority="high")]

    result = room(broken, before)

    assert {
        stalled_variant.owner.key.name: stalled_variant.conditions[0].reason for stalled_variant in result.stalled
    } == expected
    # and so again, when what was drafted then stands
    assert "PluginOverrideInvalid" in told(result)


def test_each_branch_is_looked_at_once() -> None:
    items: list[str] = []

    class Noting(Branches):
        def read_published(self, cluster: str) -> Any:
            items.append(cluster)
            return super().read_published(cluster)

    room([*WIDE, SIZE, preset(), preset(name="b", plugin={"releaseName": "b"})], Noting())

    assert sorted(items) == TEN
