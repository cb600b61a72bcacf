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
from tests.unit.output.world import (
    COMMIT,
    GROUP,
    TREE,
    blocked,
    destination_plan,
    draft,
    fleet,
    held,
    key,
    leaving,
    owner,
    unchanged,
    variant,
)

GW = "objects/default/PackageVariant/edge-gw.yaml"
SET = "objects/default/PackageVariantSet/edge.yaml"
REPOSITORY = "objects/default/Repository/eu-1.yaml"
THEN, NOW = 1_700_000_000, 1_800_000_000
THEN_TEXT, NOW_TEXT = "2023-11-14T22:13:20Z", "2027-01-15T08:00:00Z"
SET_READY = Condition("Ready", "True", "Reconciled", "package variants successfully reconciled")
SITE = "object x.io/v1 Site default berlin"
ASKED = {SITE: "sha256:1", "object x.io/v1 Site default paris": "absent", "variant": "sha256:2"}


def loaded(files: Mapping[str, bytes], path: str) -> dict[str, Any]:
    return parse_yaml(files[path]).documents[0].data


def status(files: Mapping[str, bytes], path: str) -> dict[str, Any]:
    return loaded(files, path)["status"]


def condition(files: Mapping[str, bytes], path: str, name: str) -> tuple[str, str]:
    result = next(item for item in status(files, path)["conditions"] if item["type"] == name)
    return result["status"], result["reason"]


def a_draft(rendered: PackageRender | None = None, **fields: Any) -> Draft:
    return draft({}, {"a": "x"}, task="clone", causes=("variant",), trace=ASKED, rendered=rendered, **fields)


def of_set(*names: str, ready: bool = True, remaining: bool = False) -> FleetPlan:
    """A set with children of these names; those that are not ready are blocked."""
    variants = [variant(name, package=name, made_by="edge") for name in names]
    outcomes = [unchanged(item) if ready else blocked(item) for item in variants]
    children = tuple(item.owner.key for item in variants)
    targets = [{"repo": "eu-1", "package": name, "packageVariant": name, "targetIndex": 0} for name in names]
    own = ConfigStatus(
        key("PackageVariantSet", "edge"), f"{GROUP}/v1alpha2", (SET_READY,), {"targets": targets}, children=children
    )
    config_statuses = [
        ConfigStatus(
            object_key, f"{GROUP}/v1alpha1", spec={"upstream": {"repo": "catalog"}}, metadata={"labels": {"a": "b"}}
        )
        for object_key in children
    ]
    room = ControllerResult(
        tuple(variants),
        statuses=(own, *config_statuses),
        kept_owners=frozenset({own.key}) if remaining else frozenset(),
    )
    return fleet(destination_plan(*outcomes), room=room)


def test_a_variant_written_by_hand_has_its_identity_and_its_status() -> None:
    files = build_status_files(fleet(destination_plan(a_draft())), {})

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


def test_a_generated_variant_stands_there_whole() -> None:
    data = loaded(build_status_files(of_set("one"), {}), "objects/default/PackageVariant/one.yaml")

    assert list(data) == ["apiVersion", "kind", "metadata", "spec", "status"]
    assert data["spec"] == {"upstream": {"repo": "catalog"}}
    assert data["metadata"] == {"name": "one", "namespace": "default", "labels": {"a": "b"}}


STALLED = (Condition("Stalled", "True", "ValidationError", "no"), Condition("Ready", "False", "Error", "no"))


@pytest.mark.parametrize(
    ("plan", "expected"),
    [
        pytest.param(fleet(destination_plan(a_draft())), [("True", "NoErrors"), ("False", "Valid")], id="drafted"),
        pytest.param(
            fleet(destination_plan(unchanged(variant()))), [("True", "NoErrors"), ("False", "Valid")], id="published"
        ),
        pytest.param(
            fleet(destination_plan(blocked(variant()))), [("False", "Error"), ("False", "Valid")], id="blocked"
        ),
        pytest.param(
            fleet(room=ControllerResult(stalled=(StalledVariant(owner(), STALLED, ()),))),
            [("False", "Error"), ("True", "ValidationError")],
            id="stalled",
        ),
        pytest.param(
            fleet(
                destination_plan(findings=[Finding("DestinationMissing", "it is gone")]),
                room=ControllerResult((variant(),)),
            ),
            [("False", "Error"), ("False", "Valid")],
            id="its-destination-is-gone",
        ),
    ],
)
def test_the_conditions_of_an_owner(plan: FleetPlan, expected: list[tuple[str, str]]) -> None:
    files = build_status_files(plan, {})

    assert [condition(files, GW, name) for name in ("Ready", "Stalled")] == expected


@pytest.mark.parametrize(
    ("package", "expected"),
    [
        pytest.param("gw", "eu-1.gw.packagevariant-3", id="plain"),
        pytest.param("edge/gw", "eu-1.edge.gw.packagevariant-3", id="slashes-become-dots"),
    ],
)
def test_the_name_of_a_downstream_target(package: str, expected: str) -> None:
    files = build_status_files(fleet(destination_plan(a_draft(desired_variant=variant(package=package)))), {})

    assert status(files, GW)["downstreamTargets"][0]["name"] == expected


def test_a_package_that_belongs_to_somebody_else_is_no_target() -> None:
    target_plan = destination_plan(blocked(variant()))
    other = unchanged(variant("other")).record
    target_plan = replace(target_plan, next_state=replace(target_plan.next_state, packages={"gw": other}))

    assert "downstreamTargets" not in status(build_status_files(fleet(target_plan), {}), GW)


def test_what_waits_for_a_proposal_says_so() -> None:
    waiting = Condition("Ready", "False", "DownstreamProposed", "it is proposed")
    outcome = replace(blocked(variant()), conditions=(VALID_CONDITION, waiting))

    assert status(build_status_files(fleet(destination_plan(outcome)), {}), GW)["pending"] == ["it is proposed"]


def gated() -> PackageRender:
    return PackageRender(FileTree(), (Condition("Rendered", "False", "RenderFailed", "no starlark"),), ("Rendered",))


@pytest.mark.parametrize("rendered", [pytest.param(None, id="rendered"), pytest.param(gated(), id="gated")])
def test_a_second_pass_over_the_same_world_writes_nothing(rendered: PackageRender | None) -> None:
    first = a_draft(rendered)
    plan = destination_plan(first)
    drafted = replace(
        unchanged(variant(), "drafted"), record=replace(unchanged(variant(), "drafted").record, trace=ASKED)
    )
    before = build_status_files(fleet(plan, as_of=THEN), {})

    assert build_status_files(fleet(destination_plan(drafted), as_of=NOW), before) == before


def test_times_move_only_with_the_status_of_their_condition() -> None:
    before = build_status_files(fleet(destination_plan(blocked(variant(), "no")), as_of=THEN), {})
    other_words = build_status_files(fleet(destination_plan(blocked(variant(), "still no")), as_of=NOW), before)
    cured = build_status_files(fleet(destination_plan(unchanged(variant())), as_of=NOW), before)

    assert [item["lastTransitionTime"] for item in status(other_words, GW)["conditions"]] == [THEN_TEXT, THEN_TEXT]
    assert [item["lastTransitionTime"] for item in status(cured, GW)["conditions"]] == [NOW_TEXT, THEN_TEXT]


def times(files: Mapping[str, bytes]) -> list[str | None]:
    return [item.get("lastTransitionTime") for item in status(files, GW)["conditions"]]


def test_an_unknown_date_is_omitted() -> None:
    undated = build_status_files(fleet(destination_plan(blocked(variant())), as_of=FALLBACK_COMMIT_SECONDS), {})
    dated = build_status_files(fleet(destination_plan(unchanged(variant())), as_of=NOW), undated)

    assert b"lastTransitionTime" not in undated[GW]
    # Ready became True at a known date. The date of Stalled stays unknown, because its status is the same.
    assert times(dated) == [NOW_TEXT, None]


def test_a_second_pass_without_a_date_writes_nothing() -> None:
    plan = fleet(destination_plan(blocked(variant())), as_of=FALLBACK_COMMIT_SECONDS)
    before = build_status_files(plan, {})

    assert build_status_files(plan, before) is before
    assert build_status_files(replace(plan, latest_commit_seconds=NOW), before) is before


def test_a_known_date_stays_when_a_pass_reads_no_commit_with_a_date() -> None:
    before = build_status_files(fleet(destination_plan(blocked(variant())), as_of=THEN), {})
    cured = build_status_files(fleet(destination_plan(unchanged(variant())), as_of=FALLBACK_COMMIT_SECONDS), before)

    assert times(cured) == [None, THEN_TEXT]


def test_the_substitute_date_of_earlier_versions_is_removed() -> None:
    plan = fleet(destination_plan(blocked(variant())), as_of=THEN)
    before = {
        path: status_file.replace(THEN_TEXT.encode(), b"2000-01-01T00:00:00Z")
        for path, status_file in build_status_files(plan, {}).items()
    }

    assert times(build_status_files(plan, before)) == [None, None]


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
def test_a_spoilt_file_is_written_anew(content: bytes) -> None:
    plan = fleet(destination_plan(a_draft()))

    assert build_status_files(plan, {GW: content}) == build_status_files(plan, {})


def test_what_is_no_more_is_dropped() -> None:
    assert GW not in build_status_files(fleet(), build_status_files(fleet(destination_plan(a_draft())), {}))


def test_what_an_unreadable_file_may_still_hold_stays() -> None:
    before = build_status_files(fleet(destination_plan(a_draft())), {})

    assert build_status_files(replace(fleet(), is_complete=False), before)[GW] == before[GW]


@pytest.mark.parametrize(
    ("ready", "variants_ready", "counts"),
    [
        pytest.param(True, ("True", "AllReady"), (2, 2, 0), id="all-ready"),
        pytest.param(False, ("False", "NotReady"), (2, 0, 2), id="none-ready"),
    ],
)
def test_a_set_knows_how_its_variants_stand(
    ready: bool, variants_ready: tuple[str, str], counts: tuple[int, int, int]
) -> None:
    files = build_status_files(of_set("one", "two", ready=ready), {})
    result = status(files, SET)

    assert condition(files, SET, "VariantsReady") == variants_ready
    assert condition(files, SET, "Ready") == ("True", "Reconciled")
    assert (result["desired"], result["ready"], result["failed"]) == counts
    assert [target["ready"] for target in result["targets"]] == [ready, ready]


@pytest.mark.parametrize(
    ("plan", "limit", "written"),
    [
        pytest.param(of_set("one", "two"), 2, 2, id="up-to-the-limit-all-are-written"),
        pytest.param(of_set("one", "two"), 1, 0, id="above-it-healthy-ones-are-counted"),
        pytest.param(of_set("one", "two", ready=False), 1, 2, id="the-others-are-always-written"),
    ],
)
def test_a_large_sets_healthy_variants_are_counted(plan: FleetPlan, limit: int, written: int) -> None:
    files = build_status_files(plan, {}, limit)

    assert sum("/PackageVariant/" in path for path in files) == written
    assert status(files, SET)["desired"] == 2


def test_a_gated_variant_of_a_large_set_is_written() -> None:
    plan = of_set("one", "two")
    outcome = replace(a_draft(gated()), variant=plan.controller_result.variants[0])
    outcome = replace(outcome, record=replace(outcome.record, owner=outcome.variant.owner))
    files = build_status_files(
        replace(plan, targets=(destination_plan(outcome, *plan.targets[0].outcomes[1:]),)), {}, 1
    )

    assert [path for path in files if "/PackageVariant/" in path] == ["objects/default/PackageVariant/one.yaml"]


def test_a_maker_that_lists_no_targets_counts_its_children() -> None:
    plan = of_set("one")
    own, config_status = plan.controller_result.statuses
    files = build_status_files(
        replace(
            plan, controller_result=replace(plan.controller_result, statuses=(replace(own, fields={}), config_status))
        ),
        {},
    )

    assert "targets" not in status(files, SET)
    assert status(files, SET)["ready"] == 1


def test_a_name_with_blanks_is_one_name() -> None:
    requested_draft = draft({}, {"a": "x"}, trace={"object v1 ConfigMap default a b": "absent"})

    assert (
        status(build_status_files(fleet(destination_plan(requested_draft)), {}), GW)["contextDependencies"][0]["name"]
        == "a b"
    )


def test_the_variants_of_a_set_that_failed_stay_as_they_are() -> None:
    whole = of_set("one")
    reference = {"ownerReferences": [{"kind": "PackageVariantSet", "name": "edge"}]}
    own, config_status = whole.controller_result.statuses
    room = replace(whole.controller_result, statuses=(own, replace(config_status, metadata=reference)))
    before = build_status_files(replace(whole, controller_result=room), {})
    failed = replace(own, conditions=(Condition("Ready", "False", "RenderError", "no"),), fields={}, children=())
    after = fleet(room=ControllerResult(statuses=(failed,), kept_owners=frozenset({own.key})))

    text = "objects/default/PackageVariant/one.yaml"
    assert build_status_files(after, before)[text] == before[text]
    assert text not in build_status_files(
        replace(after, controller_result=replace(after.controller_result, kept_owners=frozenset())), before
    )


def test_an_object_that_is_told_of_twice_is_listed_by_its_last_word() -> None:
    target_plan = destination_plan(findings=[Finding("DestinationMissing", "it is gone")])
    ready = Condition("Ready", "True", "Reconciled", "fine")
    config_status = ConfigStatus(target_plan.target.key, "config.porch.kpt.dev/v1alpha1", (ready,))

    def listed(room: ControllerResult) -> object:
        return loaded(build_status_files(fleet(target_plan, room=room), {}), "summary.yaml")["totals"]["notReady"]

    assert (listed(ControllerResult()), listed(ControllerResult(statuses=(config_status,)))) == (1, 0)


def test_an_owner_with_two_packages_that_are_blocked_is_listed_once() -> None:
    target_plan, other = (destination_plan(blocked(variant(repository=name)), name=name) for name in ("eu-1", "eu-2"))
    memory = StatusCache()
    before = build_status_files(fleet(target_plan, other), {}, cache=memory)

    for files in (before, build_status_files(fleet(target_plan, other), before, cache=memory)):
        assert loaded(files, "summary.yaml")["totals"]["notReady"] == 1


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
def test_a_repository_that_receives_packages(findings: list[Finding], expected: tuple[str, str]) -> None:
    files = build_status_files(fleet(destination_plan(findings=findings)), {})

    assert condition(files, REPOSITORY, "Ready") == expected
    assert status(files, REPOSITORY)["branch"] == "clusters/eu-1"


def test_the_summary() -> None:
    ill, behind_gate = variant("ill", package="ill"), variant("slow", package="slow")
    alias = Finding("Alias", "old spelling", SourceLocation("pv.yaml", 3), Severity.WARNING)
    outcomes = (
        replace(unchanged(variant()), findings=(alias,)),
        blocked(ill),
        a_draft(gated(), desired_variant=behind_gate),
        unchanged(variant(package="x"), "declined"),
    )
    plan = fleet(destination_plan(*outcomes, holding=[held()], leaving=[leaving(), leaving("withdrawn", "new")]))

    assert build_status_files(plan, {})["summary.yaml"].decode() == (
        "totals:\n"
        "  destinations: 1\n"
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
        "  reason: PackageVariant/default/old is gone\n"
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


def test_a_long_list_of_the_summary_ends_and_is_counted() -> None:
    many = tuple(Finding("Odd", f"no {number:04}") for number in range(1_200))
    summary = loaded(build_status_files(replace(fleet(), findings=many), {}), "summary.yaml")

    assert summary["totals"]["findings"] == 1_200
    assert len(summary["findings"]) == 1_000


def test_no_name_leaves_the_folder() -> None:
    evil = StalledVariant(
        replace(owner(), key=key("PackageVariant", "../../../x")), (VALID_CONDITION, READY_CONDITION), ()
    )

    assert "objects/default/PackageVariant/%2E.%2F..%2F..%2Fx.yaml" in build_status_files(
        fleet(room=ControllerResult(stalled=(evil,))), {}
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
def test_files_of_an_object_beside_its_status(files: dict[str, bytes] | None, expected: dict[str, bytes]) -> None:
    before = {f"types/default/{name}.yaml": b"old" for name in ("web/crd", "web/plan", "webs/crd")}
    config_status = ConfigStatus(
        key("ComponentType", "web"), "platform/v1alpha1", (READY_CONDITION,), folder="types", files=files
    )

    after = build_status_files(fleet(room=ControllerResult(statuses=(config_status,))), before)

    assert {path: content for path, content in after.items() if path.startswith("types/")} == expected


def test_files_of_an_object_stay_while_it_may_be_in_an_unreadable_file() -> None:
    before = {"types/default/web/crd.yaml": b"old"}

    assert build_status_files(replace(fleet(), is_complete=False), before)["types/default/web/crd.yaml"] == b"old"
