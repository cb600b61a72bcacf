from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from reconciler.catalog.files import FALLBACK_COMMIT_SECONDS, FileTree
from reconciler.controllers.results import ConfigStatus, ControllerResult, StalledVariant
from reconciler.krm.findings import Finding, Severity, SourceLocation
from reconciler.krm.objects import Condition
from reconciler.krm.yaml import parse_yaml
from reconciler.output.status.status_branch import StatusCache, build_status_files
from reconciler.planning.decide.fleet_plan import FleetPlan
from reconciler.planning.decide.package_decision import READY_CONDITION, VALID_CONDITION
from reconciler.planning.model.outcomes import Draft, PackageRender
from tests.unit.output.builders import (
    COMMIT,
    GROUP,
    TREE,
    build_blocked,
    build_draft,
    build_fleet_plan,
    build_held_removal,
    build_key,
    build_owner,
    build_removal,
    build_target_plan,
    build_unchanged,
    build_variant,
)

GW = "objects/default/PackageVariant/edge-gw.yaml"
SET = "objects/default/PackageVariantSet/edge.yaml"
REPOSITORY = "objects/default/Repository/eu-1.yaml"
THEN, NOW = 1_700_000_000, 1_800_000_000
THEN_TEXT, NOW_TEXT = "2023-11-14T22:13:20Z", "2027-01-15T08:00:00Z"
SET_READY = Condition("Ready", "True", "Reconciled", "package variants successfully reconciled")
SITE = "object x.io/v1 Site default berlin"
ASKED = {SITE: "sha256:1", "object x.io/v1 Site default paris": "absent", "variant": "sha256:2"}


def read_document(files: Mapping[str, bytes], path: str) -> dict[str, Any]:
    return parse_yaml(files[path]).documents[0].data


def read_status(files: Mapping[str, bytes], path: str) -> dict[str, Any]:
    return read_document(files, path)["status"]


def read_condition(files: Mapping[str, bytes], path: str, name: str) -> tuple[str, str]:
    result = next(item for item in read_status(files, path)["conditions"] if item["type"] == name)
    return result["status"], result["reason"]


def build_clone_draft(rendered: PackageRender | None = None, **fields: Any) -> Draft:
    return build_draft({}, {"a": "x"}, task="clone", causes=("variant",), trace=ASKED, rendered=rendered, **fields)


def build_set_plan(*names: str, ready: bool = True, remaining: bool = False) -> FleetPlan:
    """Return the plan of a set with these children. Children that are not ready are blocked."""
    variants = [build_variant(name, package=name, made_by="edge") for name in names]
    outcomes = [build_unchanged(item) if ready else build_blocked(item) for item in variants]
    children = tuple(item.owner.key for item in variants)
    targets = [{"repo": "eu-1", "package": name, "packageVariant": name, "targetIndex": 0} for name in names]
    own = ConfigStatus(
        build_key("PackageVariantSet", "edge"),
        f"{GROUP}/v1alpha2",
        (SET_READY,),
        {"targets": targets},
        children=children,
    )
    config_statuses = [
        ConfigStatus(
            object_key, f"{GROUP}/v1alpha1", spec={"upstream": {"repo": "catalog"}}, metadata={"labels": {"a": "b"}}
        )
        for object_key in children
    ]
    controller_result = ControllerResult(
        tuple(variants),
        statuses=(own, *config_statuses),
        kept_owners=frozenset({own.key}) if remaining else frozenset(),
    )
    return build_fleet_plan(build_target_plan(*outcomes), controller_result=controller_result)


def test_hand_written_variant_has_only_identity_and_status() -> None:
    files = build_status_files(build_fleet_plan(build_target_plan(build_clone_draft())), {})

    assert files[GW].decode() == (
        "apiVersion: config.porch.kpt.dev/v1alpha1\n"
        "kind: PackageVariant\n"
        "metadata:\n"
        "  name: edge-gw\n"
        "  namespace: default\n"
        "status:\n"
        "  conditions:\n"
        "  - type: Ready\n"
        '    status: "True"\n'
        "    reason: NoErrors\n"
        "    message: successfully ensured downstream package variant\n"
        f'    lastTransitionTime: "{THEN_TEXT}"\n'
        "  - type: Stalled\n"
        '    status: "False"\n'
        "    reason: Valid\n"
        "    message: all validation checks passed\n"
        f'    lastTransitionTime: "{THEN_TEXT}"\n'
        "  downstreamTargets:\n"
        "  - name: eu-1.gw.packagevariant-3\n"
        "    renderStatus:\n"
        '      status: "True"\n'
        "      reason: Rendered\n"
        "  upstream:\n"
        "    ref: gateway/v4\n"
        f"    commit: {COMMIT}\n"
        f"    tree: {TREE}\n"
        "  contextDependencies:\n"
        "  - apiVersion: x.io/v1\n"
        "    kind: Site\n"
        "    namespace: default\n"
        "    name: berlin\n"
        "    found: true\n"
        "  - apiVersion: x.io/v1\n"
        "    kind: Site\n"
        "    namespace: default\n"
        "    name: paris\n"
        "    found: false\n"
        "  pending:\n"
        "  - the draft waits for review\n"
    )


def test_generated_variant_is_written_completely() -> None:
    data = read_document(build_status_files(build_set_plan("one"), {}), "objects/default/PackageVariant/one.yaml")

    assert list(data) == ["apiVersion", "kind", "metadata", "spec", "status"]
    assert data["spec"] == {"upstream": {"repo": "catalog"}}
    assert data["metadata"] == {"name": "one", "namespace": "default", "labels": {"a": "b"}}


STALLED = (Condition("Stalled", "True", "ValidationError", "no"), Condition("Ready", "False", "Error", "no"))


@pytest.mark.parametrize(
    ("plan", "expected"),
    [
        pytest.param(
            build_fleet_plan(build_target_plan(build_clone_draft())),
            [("True", "NoErrors"), ("False", "Valid")],
            id="drafted",
        ),
        pytest.param(
            build_fleet_plan(build_target_plan(build_unchanged(build_variant()))),
            [("True", "NoErrors"), ("False", "Valid")],
            id="published",
        ),
        pytest.param(
            build_fleet_plan(build_target_plan(build_blocked(build_variant()))),
            [("False", "Error"), ("False", "Valid")],
            id="blocked",
        ),
        pytest.param(
            build_fleet_plan(controller_result=ControllerResult(stalled=(StalledVariant(build_owner(), STALLED, ()),))),
            [("False", "Error"), ("True", "ValidationError")],
            id="stalled",
        ),
        pytest.param(
            build_fleet_plan(
                build_target_plan(findings=[Finding("DestinationMissing", "it is gone")]),
                controller_result=ControllerResult((build_variant(),)),
            ),
            [("False", "Error"), ("False", "Valid")],
            id="its-destination-is-gone",
        ),
    ],
)
def test_conditions_of_an_owner(plan: FleetPlan, expected: list[tuple[str, str]]) -> None:
    files = build_status_files(plan, {})

    assert [read_condition(files, GW, name) for name in ("Ready", "Stalled")] == expected


@pytest.mark.parametrize(
    ("package", "expected"),
    [
        pytest.param("gw", "eu-1.gw.packagevariant-3", id="plain"),
        pytest.param("edge/gw", "eu-1.edge.gw.packagevariant-3", id="slashes-become-dots"),
    ],
)
def test_name_of_a_downstream_target(package: str, expected: str) -> None:
    files = build_status_files(
        build_fleet_plan(build_target_plan(build_clone_draft(desired_variant=build_variant(package=package)))), {}
    )

    assert read_status(files, GW)["downstreamTargets"][0]["name"] == expected


def test_package_of_another_owner_is_no_target() -> None:
    target_plan = build_target_plan(build_blocked(build_variant()))
    other = build_unchanged(build_variant("other")).record
    target_plan = replace(target_plan, next_state=replace(target_plan.next_state, packages={"gw": other}))

    assert "downstreamTargets" not in read_status(build_status_files(build_fleet_plan(target_plan), {}), GW)


def test_package_with_a_proposed_draft_is_pending() -> None:
    waiting = Condition("Ready", "False", "DownstreamProposed", "it is proposed")
    outcome = replace(build_blocked(build_variant()), conditions=(VALID_CONDITION, waiting))

    assert read_status(build_status_files(build_fleet_plan(build_target_plan(outcome)), {}), GW)["pending"] == [
        "it is proposed"
    ]


def build_gated_render() -> PackageRender:
    return PackageRender(FileTree(), (Condition("Rendered", "False", "RenderFailed", "no starlark"),), ("Rendered",))


@pytest.mark.parametrize(
    "rendered", [pytest.param(None, id="rendered"), pytest.param(build_gated_render(), id="gated")]
)
def test_second_pass_over_the_same_fleet_writes_nothing(rendered: PackageRender | None) -> None:
    first = build_clone_draft(rendered)
    plan = build_target_plan(first)
    drafted = replace(
        build_unchanged(build_variant(), "drafted"),
        record=replace(build_unchanged(build_variant(), "drafted").record, trace=ASKED),
    )
    before = build_status_files(build_fleet_plan(plan, as_of=THEN), {})

    assert build_status_files(build_fleet_plan(build_target_plan(drafted), as_of=NOW), before) == before


def test_times_change_only_with_the_status_of_their_condition() -> None:
    before = build_status_files(
        build_fleet_plan(build_target_plan(build_blocked(build_variant(), "no")), as_of=THEN), {}
    )
    other_words = build_status_files(
        build_fleet_plan(build_target_plan(build_blocked(build_variant(), "still no")), as_of=NOW), before
    )
    cured = build_status_files(build_fleet_plan(build_target_plan(build_unchanged(build_variant())), as_of=NOW), before)

    assert [item["lastTransitionTime"] for item in read_status(other_words, GW)["conditions"]] == [THEN_TEXT, THEN_TEXT]
    assert [item["lastTransitionTime"] for item in read_status(cured, GW)["conditions"]] == [NOW_TEXT, THEN_TEXT]


def test_renamed_condition_keeps_its_time() -> None:
    key = build_key("ComponentType", "stand")
    flattened = ConfigStatus(key, "platform/v1alpha1", (Condition("Flattened", "True", "Flattened"), SET_READY))
    controller_result = ControllerResult(statuses=(flattened,))
    path = "objects/default/ComponentType/stand.yaml"
    first = build_status_files(build_fleet_plan(controller_result=controller_result, as_of=THEN), {})
    earlier = {**first, path: first[path].replace(b": Flattened", b": Baked")}
    upgraded = build_status_files(build_fleet_plan(controller_result=controller_result, as_of=NOW), earlier)

    assert earlier[path] != first[path]
    assert upgraded[path] == first[path]


def list_transition_times(files: Mapping[str, bytes]) -> list[str | None]:
    return [item.get("lastTransitionTime") for item in read_status(files, GW)["conditions"]]


def test_an_unknown_date_is_omitted() -> None:
    undated = build_status_files(
        build_fleet_plan(build_target_plan(build_blocked(build_variant())), as_of=FALLBACK_COMMIT_SECONDS), {}
    )
    dated = build_status_files(
        build_fleet_plan(build_target_plan(build_unchanged(build_variant())), as_of=NOW), undated
    )

    assert b"lastTransitionTime" not in undated[GW]
    # Ready became True at a known date. The date of Stalled stays unknown, because its status is the same.
    assert list_transition_times(dated) == [NOW_TEXT, None]


def test_a_second_pass_without_a_date_writes_nothing() -> None:
    plan = build_fleet_plan(build_target_plan(build_blocked(build_variant())), as_of=FALLBACK_COMMIT_SECONDS)
    before = build_status_files(plan, {})

    assert build_status_files(plan, before) is before
    assert build_status_files(replace(plan, latest_commit_seconds=NOW), before) is before


def test_a_known_date_stays_when_a_pass_reads_no_commit_with_a_date() -> None:
    before = build_status_files(build_fleet_plan(build_target_plan(build_blocked(build_variant())), as_of=THEN), {})
    cured = build_status_files(
        build_fleet_plan(build_target_plan(build_unchanged(build_variant())), as_of=FALLBACK_COMMIT_SECONDS), before
    )

    assert list_transition_times(cured) == [None, THEN_TEXT]


def test_the_substitute_date_of_earlier_versions_is_removed() -> None:
    plan = build_fleet_plan(build_target_plan(build_blocked(build_variant())), as_of=THEN)
    before = {
        path: status_file.replace(THEN_TEXT.encode(), b"2000-01-01T00:00:00Z")
        for path, status_file in build_status_files(plan, {}).items()
    }

    assert list_transition_times(build_status_files(plan, before)) == [None, None]


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"a: [", id="unreadable"),
        pytest.param(b"- 1", id="a-list"),
        pytest.param(b"status: 3", id="no-status"),
        pytest.param(b"status: {conditions: [1, {type: Ready}], downstreamTargets: {}}", id="another-form"),
        pytest.param(b"status: {conditions: [{type: [1]}], downstreamTargets: [{name: {}}]}", id="lists-for-names"),
    ],
)
def test_invalid_status_file_is_written_again(content: bytes) -> None:
    plan = build_fleet_plan(build_target_plan(build_clone_draft()))

    assert build_status_files(plan, {GW: content}) == build_status_files(plan, {})


def test_status_of_a_deleted_object_is_removed() -> None:
    assert GW not in build_status_files(
        build_fleet_plan(), build_status_files(build_fleet_plan(build_target_plan(build_clone_draft())), {})
    )


def test_status_of_an_object_in_an_unreadable_file_stays() -> None:
    before = build_status_files(build_fleet_plan(build_target_plan(build_clone_draft())), {})

    assert build_status_files(replace(build_fleet_plan(), uncertain_tenants=frozenset({""})), before)[GW] == before[GW]


@pytest.mark.parametrize(
    ("ready", "variants_ready", "counts"),
    [
        pytest.param(True, ("True", "AllReady"), (2, 2, 0), id="all-ready"),
        pytest.param(False, ("False", "NotReady"), (2, 0, 2), id="none-ready"),
    ],
)
def test_set_counts_its_ready_and_failed_variants(
    ready: bool, variants_ready: tuple[str, str], counts: tuple[int, int, int]
) -> None:
    files = build_status_files(build_set_plan("one", "two", ready=ready), {})
    result = read_status(files, SET)

    assert read_condition(files, SET, "VariantsReady") == variants_ready
    assert read_condition(files, SET, "Ready") == ("True", "Reconciled")
    assert (result["desired"], result["ready"], result["failed"]) == counts
    assert [target["ready"] for target in result["targets"]] == [ready, ready]


@pytest.mark.parametrize(
    ("plan", "limit", "written"),
    [
        pytest.param(build_set_plan("one", "two"), 2, 2, id="up-to-the-limit-all-are-written"),
        pytest.param(build_set_plan("one", "two"), 1, 0, id="above-it-healthy-ones-are-counted"),
        pytest.param(build_set_plan("one", "two", ready=False), 1, 2, id="the-others-are-always-written"),
    ],
)
def test_ready_variants_of_a_large_set_are_only_counted(plan: FleetPlan, limit: int, written: int) -> None:
    files = build_status_files(plan, {}, limit)

    assert sum("/PackageVariant/" in path for path in files) == written
    assert read_status(files, SET)["desired"] == 2


def test_gated_variant_of_a_large_set_is_written() -> None:
    plan = build_set_plan("one", "two")
    outcome = replace(build_clone_draft(build_gated_render()), variant=plan.controller_result.variants[0])
    outcome = replace(outcome, record=replace(outcome.record, owner=outcome.variant.owner))
    files = build_status_files(
        replace(plan, targets=(build_target_plan(outcome, *plan.targets[0].outcomes[1:]),)), {}, 1
    )

    assert [path for path in files if "/PackageVariant/" in path] == ["objects/default/PackageVariant/one.yaml"]


def test_parent_without_targets_counts_its_children() -> None:
    plan = build_set_plan("one")
    own, config_status = plan.controller_result.statuses
    files = build_status_files(
        replace(
            plan, controller_result=replace(plan.controller_result, statuses=(replace(own, fields={}), config_status))
        ),
        {},
    )

    assert "targets" not in read_status(files, SET)
    assert read_status(files, SET)["ready"] == 1


def test_name_with_blanks_is_one_name() -> None:
    requested_draft = build_draft({}, {"a": "x"}, trace={"object v1 ConfigMap default a b": "absent"})

    assert (
        read_status(build_status_files(build_fleet_plan(build_target_plan(requested_draft)), {}), GW)[
            "contextDependencies"
        ][0]["name"]
        == "a b"
    )


def test_variant_status_of_a_failed_set_stays() -> None:
    whole = build_set_plan("one")
    reference = {"ownerReferences": [{"kind": "PackageVariantSet", "name": "edge"}]}
    own, config_status = whole.controller_result.statuses
    controller_result = replace(whole.controller_result, statuses=(own, replace(config_status, metadata=reference)))
    before = build_status_files(replace(whole, controller_result=controller_result), {})
    failed = replace(own, conditions=(Condition("Ready", "False", "RenderError", "no"),), fields={}, children=())
    after = build_fleet_plan(controller_result=ControllerResult(statuses=(failed,), kept_owners=frozenset({own.key})))

    text = "objects/default/PackageVariant/one.yaml"
    assert build_status_files(after, before)[text] == before[text]
    assert text not in build_status_files(
        replace(after, controller_result=replace(after.controller_result, kept_owners=frozenset())), before
    )


def test_object_with_two_statuses_is_listed_by_the_last_status() -> None:
    target_plan = build_target_plan(findings=[Finding("DestinationMissing", "it is gone")])
    ready = Condition("Ready", "True", "Reconciled", "fine")
    config_status = ConfigStatus(target_plan.target.key, "config.porch.kpt.dev/v1alpha1", (ready,))

    def count_not_ready(controller_result: ControllerResult) -> object:
        return read_document(
            build_status_files(build_fleet_plan(target_plan, controller_result=controller_result), {}), "summary.yaml"
        )["totals"]["notReady"]

    assert (count_not_ready(ControllerResult()), count_not_ready(ControllerResult(statuses=(config_status,)))) == (1, 0)


def test_owner_with_two_blocked_packages_is_listed_once() -> None:
    target_plan, other = (
        build_target_plan(build_blocked(build_variant(repository=name)), name=name) for name in ("eu-1", "eu-2")
    )
    memory = StatusCache()
    before = build_status_files(build_fleet_plan(target_plan, other), {}, cache=memory)

    for files in (before, build_status_files(build_fleet_plan(target_plan, other), before, cache=memory)):
        assert read_document(files, "summary.yaml")["totals"]["notReady"] == 1


@pytest.mark.parametrize(
    ("findings", "expected"),
    [
        pytest.param([], ("True", "Planned"), id="read"),
        pytest.param([Finding("DestinationMissing", "it is gone")], ("False", "DestinationMissing"), id="gone"),
        pytest.param(
            [Finding("Odd", "hm", severity=Severity.WARNING)], ("True", "Planned"), id="a-warning-is-no-fault"
        ),
    ],
)
def test_status_of_a_deployment_repository(findings: list[Finding], expected: tuple[str, str]) -> None:
    files = build_status_files(build_fleet_plan(build_target_plan(findings=findings)), {})

    assert read_condition(files, REPOSITORY, "Ready") == expected
    assert read_status(files, REPOSITORY)["branch"] == "clusters/eu-1"


def test_summary() -> None:
    ill, behind_gate = build_variant("ill", package="ill"), build_variant("slow", package="slow")
    alias = Finding("Alias", "old spelling", SourceLocation("pv.yaml", 3), Severity.WARNING)
    outcomes = (
        replace(build_unchanged(build_variant()), findings=(alias,)),
        build_blocked(ill),
        build_clone_draft(build_gated_render(), desired_variant=behind_gate),
        build_unchanged(build_variant(package="x"), "declined"),
    )
    plan = build_fleet_plan(
        build_target_plan(
            *outcomes, holding=[build_held_removal()], leaving=[build_removal(), build_removal("withdrawn", "new")]
        )
    )

    assert build_status_files(plan, {})["summary.yaml"].decode() == (
        "totals:\n"
        "  targets: 1\n"
        "  packages: 6\n"
        "  published: 1\n"
        "  drafted: 1\n"
        "  declined: 1\n"
        "  blocked: 1\n"
        "  held: 1\n"
        "  leaving: 1\n"
        "  stalled: 0\n"
        "  notReady: 1\n"
        "  gated: 1\n"
        "  findings: 3\n"
        "notReady:\n"
        "- object: PackageVariant/default/ill\n"
        "  reason: Error\n"
        "  message: it cannot be\n"
        "gated:\n"
        "- object: PackageVariant/default/slow\n"
        "  target: eu-1.slow.packagevariant-3\n"
        "  reason: RenderFailed\n"
        "  message: no starlark\n"
        "  unmetGates:\n"
        "  - Rendered\n"
        "held:\n"
        "- package: eu-1/old\n"
        "  reason: DeletionHeld\n"
        "  message: package old is not wanted any more\n"
        "leaving:\n"
        "- package: eu-1/gone\n"
        "  state: proposed\n"
        "  branch: removals/eu-1\n"
        "  reason: PackageVariant default/old is gone\n"
        "findings:\n"
        "- severity: error\n"
        "  code: DeletionHeld\n"
        "  message: package old is not wanted any more\n"
        "  object: PackageVariant/default/old\n"
        "- severity: warning\n"
        "  code: Alias\n"
        "  message: old spelling\n"
        "  file: pv.yaml\n"
        "  line: 3\n"
        "- severity: error\n"
        "  code: Broken\n"
        "  message: it cannot be\n"
        "  file: pv.yaml\n"
        "  line: 7\n"
        "  object: PackageVariant/default/ill\n"
    )


def test_long_list_of_the_summary_is_limited_and_counted() -> None:
    many = tuple(Finding("Odd", f"no {number:04}") for number in range(1_200))
    summary = read_document(build_status_files(replace(build_fleet_plan(), findings=many), {}), "summary.yaml")

    assert summary["totals"]["findings"] == 1_200
    assert len(summary["findings"]) == 1_000


def test_object_name_cannot_leave_the_folder() -> None:
    evil = StalledVariant(
        replace(build_owner(), key=build_key("PackageVariant", "../../../x")), (VALID_CONDITION, READY_CONDITION), ()
    )

    assert "objects/default/PackageVariant/%2E.%2F..%2F..%2Fx.yaml" in build_status_files(
        build_fleet_plan(controller_result=ControllerResult(stalled=(evil,))), {}
    )


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        pytest.param({"crd.yaml": b"new"}, {"types/default/web/crd.yaml": b"new"}, id="its-files-are-written"),
        pytest.param({}, {}, id="those-that-it-has-no-more-go"),
        pytest.param(
            None, {"types/default/web/crd.yaml": b"old", "types/default/web/plan.yaml": b"old"},
            id="those-of-a-failed-one-stay",
        ),
    ],
)  # fmt: skip
def test_extra_files_of_an_object_are_replaced(files: dict[str, bytes] | None, expected: dict[str, bytes]) -> None:
    before = {f"types/default/{name}.yaml": b"old" for name in ("web/crd", "web/plan", "webs/crd")}
    config_status = ConfigStatus(
        build_key("ComponentType", "web"), "platform/v1alpha1", (READY_CONDITION,), folder="types", files=files
    )

    after = build_status_files(build_fleet_plan(controller_result=ControllerResult(statuses=(config_status,))), before)

    assert {path: content for path, content in after.items() if path.startswith("types/")} == expected


def test_extra_files_of_an_object_in_an_unreadable_file_stay() -> None:
    before = {"types/default/web/crd.yaml": b"old"}

    assert (
        build_status_files(replace(build_fleet_plan(), uncertain_tenants=frozenset({""})), before)[
            "types/default/web/crd.yaml"
        ]
        == b"old"
    )
