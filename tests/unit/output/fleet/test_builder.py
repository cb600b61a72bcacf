"""Tests of the changes and variants of the fleet index."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.output.fleet.builder import build_fleet_index
from reconciler.output.fleet.model import FleetIndex, VariantContent
from reconciler.output.fleet.risk import RiskClass
from reconciler.output.fleet.variants import DraftEffect, VariantPool, list_noise
from tests.unit.output.builders import build_package_changes, format_deployment
from tests.unit.output.fleet.builders import (
    AFTER,
    BEFORE,
    DAY,
    build_draft,
    build_index,
    build_owner,
    build_plugin_owner,
    index_target,
    index_targets,
    list_groups,
)
from tests.unit.output.report.builders import CONFLICT, HEAD

CLUSTERS = [f"cluster-{number}" for number in range(98)]
LOCAL = 'metadata: {name: tool, annotations: {config.kubernetes.io/local-config: "true"}}'
TOOL = f"apiVersion: v1\nkind: ConfigMap\n{LOCAL}\ndata: {{a: 1}}\n"


def plugin(cluster: str, size: int = 1) -> dict[str, str]:
    """Return the files of a Plugin with the name of its cluster."""
    text = (
        f"apiVersion: greenhouse.sap/v1alpha1\nkind: Plugin\nmetadata: {{name: logs-{cluster}}}\n"
        f"spec: {{clusterName: {cluster}, size: {size}, host: logs.{cluster}.example}}\n"
    )
    return {"plugin.yaml": text}


@pytest.mark.parametrize("preset", ["logs", "eu", "eu-1", "eu-logs"])
def test_plugins_of_one_preset_are_one_change_with_one_column(preset: str) -> None:
    clusters = [*CLUSTERS, "eu", "eu-1"]
    index = build_index(*(
        build_draft(
            cluster, {}, plugin(cluster), package=f"plugins/{preset}-{cluster}", is_published=False,
            owner=build_plugin_owner(cluster, preset),
        )
        for cluster in clusters
    ))  # fmt: skip

    (change,) = index.changes
    (variant,) = change.variants
    assert [member.target for member in variant.members] == sorted(clusters)
    assert {row.column for target in index.targets for row in target.packages} == {f"plugins/{preset}-*"}
    assert (change.title, change.owner) == (f"install plugins/{preset}-* v2", f"PluginPreset acme/{preset}")


def test_presets_are_different_changes() -> None:
    drafts = [
        build_draft(cluster, {}, plugin(cluster), package="plugins/x", owner=build_plugin_owner(cluster, preset))
        for cluster, preset in (("eu", "logs"), ("us", "metrics"))
    ]

    assert list_groups(*drafts) == [[["eu"]], [["us"]]]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param("apps/web", "apps/web", id="equal-path"),
        pytest.param("apps/eu", "apps/us", id="path-with-the-target"),
        pytest.param("eu/apps/eu-web", "us/apps/us-web", id="path-with-the-target-twice"),
    ],
)
def test_packages_with_equal_paths_except_for_the_target_are_one_change(first: str, second: str) -> None:
    one, two = build_draft("eu", package=first), build_draft("us", package=second)

    assert list_groups(one, two) == [[["eu", "us"]]]


def test_name_of_one_target_in_a_path_of_another_target_is_not_replaced() -> None:
    one, two = build_draft("eu", package="apps/us"), build_draft("us", package="apps/us")

    assert list_groups(one, two) == [[["eu"]], [["us"]]]


@pytest.mark.parametrize(
    ("changed", "groups"),
    [
        pytest.param({}, [[["eu", "us"]]], id="equal"),
        pytest.param({"after": {"d.yaml": format_deployment(image="web:3")}}, [[["eu"], ["us"]]], id="edited-content"),
        pytest.param({"before": {"d.yaml": format_deployment(image="web:0")}}, [[["eu"], ["us"]]], id="other-base"),
        pytest.param({"after": {**AFTER, "README.md": "new"}}, [[["eu"], ["us"]]], id="file-of-a-person"),
        pytest.param({"conflicts": [CONFLICT]}, [[["eu"], ["us"]]], id="conflict"),
        pytest.param({"unmet_gates": ["tested"]}, [[["eu"], ["us"]]], id="unmet-gate"),
        pytest.param({"is_removal": True}, [[["eu"]], [["us"]]], id="removal"),
        pytest.param({"is_published": False}, [[["eu"]], [["us"]]], id="installation"),
        pytest.param({"has_version": False}, [[["eu"]], [["us"]]], id="only-local-changes"),
        pytest.param({"owner": build_owner("other")}, [[["eu"]], [["us"]]], id="other-owner"),
        pytest.param({"after": {**AFTER, "tool.yaml": TOOL}}, [[["eu", "us"]]], id="local-config"),
        pytest.param({"after": {"d.yaml": f"# text\n{AFTER['d.yaml']}"}}, [[["eu", "us"]]], id="comment"),
        pytest.param({"templates": ("pods restart",)}, [[["eu"], ["us"]]], id="template-effects"),
        pytest.param({"proposed_head": HEAD, "is_edited": True}, [[["eu", "us"]]], id="lifecycle"),
        pytest.param({"rejection": "not now"}, [[["eu", "us"]]], id="rejection"),
    ],
)
def test_groups_of_two_drafts(changed: dict[str, Any], groups: list[list[list[str]]]) -> None:
    assert list_groups(build_draft("eu"), build_draft("us", **changed)) == groups


def test_equal_conflicts_and_gates_are_one_variant() -> None:
    drafts = [build_draft(cluster, conflicts=[CONFLICT], unmet_gates=["tested"]) for cluster in ("eu", "us")]

    (change,) = build_index(*drafts).changes
    (variant,) = change.variants
    assert (variant.content.risk.risk_class, change.conflict_count, change.state) == ("blocked", 2, "blocked")
    assert variant.content.risk.reasons[:2] == ("1 conflict", "gw: tested is not reported")


def test_removals_of_equal_packages_are_one_variant() -> None:
    (change,) = build_index(*(build_draft(cluster, is_removal=True) for cluster in ("eu", "us"))).changes

    assert (change.title, len(change.variants), change.level) == ("delete gw", 1, "high")
    assert change.variants[0].content.action == "remove"


def test_draft_without_a_version_contains_local_changes() -> None:
    (change,) = build_index(build_draft("eu", has_version=False)).changes

    assert change.title == "edit gw v1"


def test_number_of_other_resources_is_part_of_the_effect() -> None:
    # In "eu", the only resource is deleted. In "us", one of three resources is deleted.
    others = {f"{name}.yaml": f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\n" for name in "ab"}
    one, two = build_draft("eu", BEFORE, {}), build_draft("us", {**BEFORE, **others}, others)

    assert list_groups(one, two) == [[["eu"], ["us"]]]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param("1", "2", id="number"),
        pytest.param("v1", "v2", id="version"),
        pytest.param("true", "false", id="boolean"),
    ],
)
def test_targets_named_like_values_share_no_variant_with_other_values(first: str, second: str) -> None:
    one, two = (
        build_draft(
            name, {}, {"a.yaml": f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a}}\ndata: {{a: {name}}}\n"}
        )
        for name in (first, second)
    )

    assert list_groups(one, two) == [sorted([[first], [second]])]


# Noise


@pytest.mark.parametrize(
    ("before", "after", "noise"),
    [
        pytest.param("", "upstreamLock: {type: git}", ("Kptfile",), id="lock"),
        pytest.param("info: {description: a}", "info: {description: b}", ("Kptfile",), id="information"),
        pytest.param("", "pipeline: {mutators: [{image: set-labels}]}", (), id="functions"),
        pytest.param("", "info: {readinessGates: [{conditionType: tested}]}", (), id="gates"),
    ],
)
def test_kptfile_is_noise_without_a_change_of_functions_and_gates(
    before: str, after: str, noise: tuple[str, ...]
) -> None:
    kind = "apiVersion: kpt.dev/v1\nkind: Kptfile\n"

    assert list_noise(build_package_changes({"Kptfile": kind + before}, {"Kptfile": kind + after})) == noise


def test_each_file_without_an_effect_is_noise() -> None:
    context = TOOL.replace("tool", "kptfile.kpt.dev")
    two_tools = f"{TOOL}---\n{TOOL.replace('tool', 'tool-2')}"
    before = {"package-context.yaml": context, "tools.yaml": two_tools, **BEFORE}
    changed = {path: text.replace("a: 1", "a: 2") for path, text in before.items()}
    after = {**changed, "d.yaml": f"# more\n{BEFORE['d.yaml']}"}

    assert list_noise(build_package_changes(before, after)) == ("d.yaml", "package-context.yaml", "tools.yaml")


def test_file_with_a_changed_resource_is_not_noise() -> None:
    before, after = {"d.yaml": f"{BEFORE['d.yaml']}---\n{TOOL}"}, {"d.yaml": AFTER["d.yaml"]}

    assert list_noise(build_package_changes(before, after)) == ()


# The index


def test_variant_with_the_most_targets_is_first() -> None:
    other = {"d.yaml": format_deployment(image="web:9")}
    (change,) = build_index(build_draft("a", after=other), build_draft("b"), build_draft("c")).changes

    assert [[member.target for member in variant.members] for variant in change.variants] == [["b", "c"], ["a"]]


def test_order_of_targets_has_no_effect() -> None:
    drafts = [build_draft(name) for name in ("a", "b", "c")]

    first, second = build_index(*drafts), build_index(*reversed(drafts))

    assert [(change.key, change.members) for change in first.changes] == [
        (change.key, change.members) for change in second.changes
    ]
    assert first.targets == second.targets


def test_equal_drafts_share_the_parts_of_their_contents() -> None:
    one, two = index_targets(build_draft("eu"), build_draft("us"))

    first, second = (entry.drafts[0].content.changes.objects[0] for entry in (one, two))
    assert first is second


def test_index_contains_no_digests_of_objects() -> None:
    # A short value of a Secret can be guessed from a digest.
    for entry in index_targets(build_draft("eu"), build_draft("us", {}, AFTER)):
        assert {change.digest for change in entry.drafts[0].content.changes.objects} == {""}


def test_objects_with_different_changes_are_not_shared() -> None:
    other = {"d.yaml": format_deployment(image="web:3")}
    one, two = index_targets(build_draft("eu"), build_draft("us", after=other))

    lines = [entry.drafts[0].content.changes.format_summary_lines() for entry in (one, two)]
    assert ["web:2" in lines[0][0], "web:3" in lines[1][0]] == [True, True]


def test_fields_of_a_new_kptfile_are_omitted() -> None:
    kptfile = {"Kptfile": "kind: Kptfile\npipeline: {mutators: [{image: a}]}\n"}
    new, changed = index_targets(
        build_draft("eu", {}, kptfile), build_draft("us", {"Kptfile": "kind: Kptfile\n"}, kptfile)
    )

    fields = [entry.drafts[0].content.changes.kptfiles[0].fields for entry in (new, changed)]
    assert [len(found) for found in fields] == [0, 1]


def test_content_has_the_names_of_its_own_target() -> None:
    drafts = [build_draft(name, {}, plugin(name)) for name in ("eu", "us")]
    one, two = index_targets(*drafts)

    assert one.drafts[0].variant_digest == two.drafts[0].variant_digest
    assert [entry.drafts[0].content.changes.objects[0].key.name for entry in (one, two)] == ["logs-eu", "logs-us"]


def test_pool_keeps_only_used_variants(monkeypatch: pytest.MonkeyPatch) -> None:
    computed: list[str] = []
    compute = DraftEffect.compute_variant_digest

    def record(effect: DraftEffect, risk_class: RiskClass) -> str:
        computed.append(effect.names.cluster)
        return compute(effect, risk_class)

    monkeypatch.setattr(DraftEffect, "compute_variant_digest", record)
    pool, drafts = VariantPool(), [build_draft("eu"), build_draft("us", {}, AFTER), build_draft("asia")]
    used = [index_target(draft, pool).drafts[0].variant_digest for draft in drafts]
    pool.retain({used[1]})
    repeated = [index_target(draft, pool).drafts[0].variant_digest for draft in drafts]

    # "asia" is equal to "eu".
    assert computed == ["eu", "us", "eu"]
    assert repeated == used


def test_shared_contents_are_those_of_first_drafts(monkeypatch: pytest.MonkeyPatch) -> None:
    built: list[str] = []
    build = DraftEffect.build_content

    def record(effect: DraftEffect) -> VariantContent:
        built.append(effect.names.cluster)
        return build(effect)

    monkeypatch.setattr(DraftEffect, "build_content", record)
    pool = VariantPool(shares_contents=True)
    drafts = [build_draft("eu"), build_draft("us", {}, AFTER), build_draft("asia")]
    contents = [index_target(draft, pool).drafts[0].content for draft in drafts]

    assert built == ["eu", "us"]
    assert contents[0] is contents[2]


def test_number_of_resources_in_equal_files_separates_contents() -> None:
    # The removal of one of two resources has another risk than the removal of one of many.
    removed = {"d.yaml": BEFORE["d.yaml"]}
    kept = {"e.yaml": BEFORE["d.yaml"].replace("web", "api")}
    drafts = [build_draft("eu", removed, {}), build_draft("us", {**removed, **kept}, kept)]
    pool = VariantPool(shares_contents=True)
    risks = [index_target(draft, pool).drafts[0].content.risk.risk_class for draft in drafts]

    assert risks == ["deletion", "restart"]


def test_changes_are_sorted_by_risk() -> None:
    removal = build_draft("a", package="old", is_removal=True)
    drafts = [build_draft(name, {}, AFTER, package="new", is_published=False) for name in ("b", "c")]
    update = build_draft("d")

    index = build_index(*drafts, removal, update)

    assert [change.title for change in index.changes] == ["delete old", "update gw v1 → v2", "install new v2"]


def test_index_finds_targets_and_changes() -> None:
    index = build_index(build_draft("eu"))
    (change,) = index.changes

    assert index.by_change[change.key] is change
    assert index.by_target["eu"].by_package["gw"].draft
    assert (index.package_count, index.state_counts) == (1, {"draft": 1})


def test_empty_fleet_has_an_index() -> None:
    index: FleetIndex = build_fleet_index(1, DAY, "", (), ())

    assert (index.package_count, index.changes, index.by_target) == (0, (), {})
