from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import pytest

from reconciler.catalog.files import CommitId, FileTree
from reconciler.controllers.results import ControllerResult, StalledVariant
from reconciler.krm.findings import Finding, Severity, SourceLocation
from reconciler.krm.objects import Condition
from reconciler.output.changes.diffs import MAX_DIFF_LINES
from reconciler.output.plan import formats
from reconciler.output.plan.overview import build_plan_result
from reconciler.planning.decide.fleet_plan import FleetPlan, TargetPlan
from reconciler.planning.layout.refs import PushCommits
from reconciler.planning.model.outcomes import Draft, PackageRender
from tests.unit.output.builders import (
    COMMIT,
    CONFIG,
    OLD_COMMIT,
    TREE,
    build_blocked,
    build_draft,
    build_fleet_plan,
    build_held_removal,
    build_owner,
    build_removal,
    build_target_plan,
    build_unchanged,
    build_variant,
    format_deployment,
    format_endpoints,
    format_kptfile,
    format_secret,
    read_json,
)

OLD = {"Kptfile": format_kptfile("v3", OLD_COMMIT), "a.yaml": format_deployment(3)}
NEW = {"Kptfile": format_kptfile("v4", COMMIT), "a.yaml": format_deployment(5)}
KPTFILE_LINE = f"Kptfile: upstream gateway@v3 ({OLD_COMMIT[:7]}) → gateway@v4 ({COMMIT[:7]})"


def build_update(name: str = "edge-gw", repository: str = "eu-1", **fields: object) -> Draft:
    new_draft = build_draft(OLD, NEW, desired_variant=build_variant(name, repository))
    return replace(new_draft, **fields)  # type: ignore[arg-type]


def format_plan_text(plan: FleetPlan, max_diff_lines: int = MAX_DIFF_LINES, *, has_color: bool = False) -> str:
    return formats.format_plan_text(build_plan_result(plan, max_diff_lines), has_color=has_color)


def format_plan_markdown(plan: FleetPlan) -> str:
    return formats.format_plan_markdown(build_plan_result(plan, MAX_DIFF_LINES))


def build_plan_data(plan: FleetPlan) -> dict[str, Any]:
    return read_json(build_plan_result(plan, MAX_DIFF_LINES))


def build_full_plan() -> FleetPlan:
    """Return a plan with one outcome of each kind."""
    warned = Finding("Alias", "old spelling", SourceLocation("pv.yaml", 3), Severity.WARNING)
    stalled = StalledVariant(build_owner("odd"), (Condition("Stalled", "True", "ValidationError", "name it"),), ())
    target_plan = build_target_plan(
        build_update(), build_blocked(build_variant("ill", package="ill")), holding=[build_held_removal()]
    )
    other = build_target_plan(
        build_update("us-gw", "us-1"), build_unchanged(build_variant("calm", "us-1", "calm")), name="us-1"
    )
    plan = build_fleet_plan(target_plan, other)
    return replace(plan, controller_result=replace(plan.controller_result, stalled=(stalled,)), findings=(warned,))


def test_plan_as_text() -> None:
    assert format_plan_text(build_full_plan(), max_diff_lines=12) == (
        "Plan: 2 packages to update on 2 clusters; 1 blocked; 1 stalled; 1 held; 2 errors; 1 unchanged\n"
        f"Config: {CONFIG}\n"
        "\n"
        "PackageVariant default/old: error DeletionHeld: package old is not wanted any more\n"
        "  held: eu-1/old (PackageVariant default/old)\n"
        "pv.yaml:3: warning Alias: old spelling\n"
        "pv.yaml:7: error Broken: it cannot be\n"
        "  blocked: eu-1/ill (PackageVariant default/ill)\n"
        "stalled (PackageVariant default/odd): ValidationError: name it\n"
        "\n"
        "update eu-1/gw v3 → v4 (PackageVariant default/edge-gw)\n"
        "  Deployment web: replicas 3 → 5\n"
        f"  {KPTFILE_LINE}\n"
        "  why: upstream catalog/gateway: v3 → v4\n"
        "  same change on 1 other target: us-1/gw\n"
        "--- a/gw/Kptfile\n"
        "+++ b/gw/Kptfile\n"
        "@@ -7,5 +7,5 @@\n"
        "   git:\n"
        "     repo: https://git.example/catalog.git\n"
        "     directory: gateway\n"
        "-    ref: gateway/v3\n"
        f"-    commit: {OLD_COMMIT}\n"
        "+    ref: gateway/v4\n"
        f"+    commit: {COMMIT}\n"
        "--- a/gw/a.yaml\n"
        "+++ b/gw/a.yaml\n"
        "@@ -3,7 +3,7 @@\n"
        " metadata:\n"
        "   name: web\n"
        " spec:\n"
        "-  replicas: 3\n"
        "+  replicas: 5\n"
        "   template:\n"
        "     spec:\n"
        "       containers:\n"
    )


def test_plan_as_markdown() -> None:
    new_draft = build_draft(
        {"b.yaml": format_endpoints("a")}, {"b.yaml": format_endpoints("b")}, causes=("variant",), task="edit"
    )

    assert format_plan_markdown(
        build_fleet_plan(
            build_target_plan(new_draft, build_blocked(build_variant("ill", package="ill"), "`x` is\n<b>no</b>"))
        )
    ) == (
        "# Plan: 1 package to update on 1 cluster; 1 blocked; 1 error\n"
        "\n"
        f"Config: `{CONFIG}`\n"
        "\n"
        "## Findings\n"
        "\n"
        "- ``pv.yaml:7: error Broken: `x` is⏎<b>no</b>``\n"
        "  - `blocked: eu-1/ill (PackageVariant default/ill)`\n"
        "\n"
        "## `re-render eu-1/gw (PackageVariant default/edge-gw)`\n"
        "\n"
        "- `ConfigMap endpoints: data.api a → b`\n"
        "- `why: PackageVariant default/edge-gw changed`\n"
        "\n"
        "<details><summary>Diff</summary>\n"
        "\n"
        "```diff\n"
        "--- a/gw/b.yaml\n"
        "+++ b/gw/b.yaml\n"
        "@@ -3,4 +3,4 @@\n"
        " metadata:\n"
        "   name: endpoints\n"
        " data:\n"
        "-  api: a\n"
        "+  api: b\n"
        "```\n"
        "\n"
        "</details>\n"
    )


def test_code_fence_in_a_file_does_not_end_the_diff() -> None:
    new_draft = build_draft({"README.md": "x\n"}, {"README.md": "```\n</details>\n````\n"})

    assert "\n`````diff\n" in format_plan_markdown(build_fleet_plan(build_target_plan(new_draft)))


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        pytest.param("plain", ": plain`", id="one-tick"),
        pytest.param("`x` is", ": `x` is``", id="more-ticks-than-inside"),
        pytest.param("it is `x`", ": it is `x` ``", id="a-blank-between-ticks"),
    ],
)
def test_code_span_is_closed_correctly(message: str, expected: str) -> None:
    text = format_plan_markdown(build_fleet_plan(build_target_plan(build_blocked(build_variant(), message))))

    assert f"{expected}\n" in text


def test_plan_as_data() -> None:
    data = build_plan_data(build_full_plan())
    (change,) = select_items(data, "change")
    blocked = select_items(data, "blocked")

    assert (data["apiVersion"], data["kind"], data["next"]) == ("reconciler.dev/v1", "Plan", None)
    assert data["metadata"] == {"source": "cli", "config": CONFIG}
    assert data["summary"] == {
        "install": 0, "update": 2, "delete": 0, "withdraw": 0, "orphan": 0, "blocked": 1, "conflicts": 0, "errors": 2,
        "targets": 2, "clusters": 2, "unchanged": 1, "stalled": 1, "held": 1,
    }  # fmt: skip
    assert (change["action"], change["task"], change["version"]) == ("update", "update", "v3 → v4")
    assert [(package["target"], package["package"]) for package in change["packages"]] == [
        ("eu-1", "gw"),
        ("us-1", "gw"),
    ]
    assert change["packages"][1] == {
        "target": "us-1",
        "package": "gw",
        "owner": {
            "apiVersion": "config.porch.kpt.dev/v1alpha1",
            "kind": "PackageVariant",
            "namespace": "default",
            "name": "us-gw",
        },
        "causes": ["upstream catalog/gateway: v3 → v4"],
    }
    assert change["changes"]["objects"] == [
        {
            "object": {"group": "apps", "kind": "Deployment", "namespace": "", "name": "web"},
            "change": "changed",
            "files": ["a.yaml"],
            "fields": [{"path": "spec.replicas", "before": 3, "after": 5}],
        }
    ]
    assert [diff["path"] for diff in change["diffs"]] == ["Kptfile", "a.yaml"]
    assert [item["state"] for item in blocked] == ["blocked", "stalled", "held"]
    assert blocked[0] == {
        "type": "blocked",
        "state": "blocked",
        "target": "eu-1",
        "package": "ill",
        "owner": {
            "apiVersion": "config.porch.kpt.dev/v1alpha1", "kind": "PackageVariant", "namespace": "default", "name": "ill"
        },
        "reason": "Error",
        "message": "it cannot be",
        "causedBy": [{"code": "Broken", "file": "pv.yaml", "line": 7, "object": "PackageVariant/default/ill"}],
    }  # fmt: skip
    assert [finding["code"] for finding in data["findings"]] == ["DeletionHeld", "Alias", "Broken"]


def select_items(data: dict[str, Any], item_type: str) -> list[dict[str, Any]]:
    return [item for item in data["items"] if item["type"] == item_type]


def test_diffs_are_colored_as_by_git() -> None:
    plan = build_fleet_plan(build_target_plan(build_update()))
    text = format_plan_text(plan, has_color=True)

    assert "\x1b[1m--- a/gw/a.yaml\x1b[0m\n" in text
    assert "\x1b[31m-  replicas: 3\x1b[0m\n" in text
    assert "\x1b[32m+  replicas: 5\x1b[0m\n" in text
    assert "\x1b[36m@@ -3,7 +3,7 @@\x1b[0m\n" in text
    assert re.sub(r"\x1b\[[0-9]*m", "", text) == format_plan_text(plan)


def test_empty_plan_has_a_message() -> None:
    assert (
        format_plan_text(build_fleet_plan(build_target_plan(build_unchanged(build_variant()))))
        == f"Plan: no changes; 1 unchanged\nConfig: {CONFIG}\n"
    )


def list_groups(*drafts: Draft) -> list[list[str]]:
    result = build_plan_result(build_fleet_plan(*map(build_target_plan, drafts)), MAX_DIFF_LINES)
    return [[package.title for package in change.packages] for change in result.changes]


PIPELINE = "pipeline: {{mutators: [{{name: PackageVariant.{}.ns.0, image: set-namespace}}]}}\n"


@pytest.mark.parametrize(
    ("value", "other", "same"),
    [
        pytest.param(build_update(), build_update("us-gw", "us-1"), True, id="equal-changes"),
        pytest.param(build_update(), build_update("us-gw", "us-1", task="upgrade"), False, id="another-task"),
        pytest.param(
            build_draft({"a.yaml": format_deployment(3) + "# eu\n"}, {"a.yaml": format_deployment(5) + "# eu\n"}),
            build_draft(
                {"a.yaml": format_deployment(3)},
                {"a.yaml": format_deployment(5)},
                desired_variant=build_variant("us-gw", "us-1"),
            ),
            True,
            id="what-did-not-change-may-differ",
        ),
        pytest.param(
            build_draft({}, {"a.yaml": format_deployment(3)}),
            build_draft({}, {"a.yaml": format_deployment(4)}, desired_variant=build_variant("us-gw", "us-1")),
            False,
            id="another-content-of-what-is-new",
        ),
        pytest.param(
            build_draft({"a.yaml": format_secret("a")}, {"a.yaml": format_secret("b")}),
            build_draft(
                {"a.yaml": format_secret("a")},
                {"a.yaml": format_secret("c")},
                desired_variant=build_variant("us-gw", "us-1"),
            ),
            False,
            id="another-value-of-a-secret",
        ),
        pytest.param(
            build_draft({"Kptfile": "a: 1"}, {"Kptfile": "a: 1\n" + PIPELINE.format("edge-gw")}),
            build_draft(
                {"Kptfile": "a: 1"},
                {"Kptfile": "a: 1\n" + PIPELINE.format("us-gw")},
                desired_variant=build_variant("us-gw", "us-1"),
            ),
            True,
            id="author-of-the-function-is-no-difference",
        ),
        pytest.param(
            build_draft({"x.md": "1"}, {"x.md": "2"}),
            build_draft({"x.md": "1"}, {"x.md": "3"}, desired_variant=build_variant("us-gw", "us-1")),
            False,
            id="another-content-of-a-file",
        ),
        pytest.param(
            build_update(),
            build_update("us-gw", "us-1", rendered=replace(build_update().rendered, readiness_gates=("here",))),
            False,
            id="one-that-waits-for-a-gate",
        ),
    ],
)
def test_equal_changes_are_grouped(value: Draft, other: Draft, same: bool) -> None:
    assert list_groups(value, other) == ([["eu-1/gw", "us-1/gw"]] if same else [["eu-1/gw"], ["us-1/gw"]])


def test_largest_group_comes_first_and_its_targets_are_counted() -> None:
    alone = build_draft({}, {"z.yaml": format_endpoints()}, desired_variant=build_variant("aa", "aa-1"))
    same = [build_update(f"gw-{number}", f"eu-{number}") for number in range(8)]
    text = format_plan_text(build_fleet_plan(*map(build_target_plan, [alone, *same])), max_diff_lines=0)

    assert "same change on 7 other targets: eu-1/gw, eu-2/gw, eu-3/gw, eu-4/gw, eu-5/gw and 2 more\n" in text
    assert text.index("update eu-0/gw") < text.index("install aa-1/gw")


def test_unmet_gate_of_a_draft_is_shown() -> None:
    rendered = PackageRender(
        FileTree(), (Condition("Rendered", "False", "RenderFailed", "no starlark"),), ("Rendered",)
    )
    text = format_plan_text(build_fleet_plan(build_target_plan(build_draft(OLD, NEW, rendered=rendered))))

    assert "  blocks publication: Rendered is False: no starlark\n" in text


@pytest.mark.parametrize("format_", [pytest.param(format_plan_text, id="text"), pytest.param(format_plan_markdown, id="markdown"),
                                     pytest.param(lambda plan: json.dumps(build_plan_data(plan)), id="json")])  # fmt: skip
def test_secret_values_are_masked_in_every_format(format_) -> None:  # type: ignore[no-untyped-def]
    new_draft = build_draft({"a.yaml": format_secret("hunter2")}, {"a.yaml": format_secret("correct-horse")})
    text = format_(build_fleet_plan(build_target_plan(new_draft)))

    assert "login" in text
    assert "hunter2" not in text
    assert "horse" not in text


def test_order_of_targets_does_not_change_the_text() -> None:
    plan = build_full_plan()

    assert format_plan_text(replace(plan, targets=plan.targets[::-1])) == format_plan_text(plan)


def test_stalled_owner_with_a_known_target_shows_the_target() -> None:
    stalled = StalledVariant(
        build_owner(), (Condition("Stalled", "True", "UpstreamNotFound", "no"),), (), build_variant().target
    )

    assert "stalled eu-1/gw (PackageVariant default/edge-gw): UpstreamNotFound: no" in format_plan_text(
        build_fleet_plan(controller_result=ControllerResult(stalled=(stalled,)))
    )


@pytest.fixture
def plan_with_removals() -> FleetPlan:
    ways = [
        build_removal("proposed", "new", before=TREE),
        build_removal("proposed", "waiting"),
        build_removal("declined", "spared"),
        build_removal("withdrawn", "unborn"),
        build_removal("orphaned", "free"),
    ]
    return build_fleet_plan(build_target_plan(leaving=ways))


def test_removals_are_listed_in_the_text(plan_with_removals: FleetPlan) -> None:
    assert format_plan_text(plan_with_removals) == (
        "Plan: 1 package to delete, 1 to withdraw, 1 to orphan on 1 cluster\n"
        f"Config: {CONFIG}\n"
        "\n"
        "orphan eu-1/free (PackageVariant default/old)\n"
        "  why: PackageVariant default/old is gone\n"
        "propose removal of eu-1/new (PackageVariant default/old)\n"
        "  why: PackageVariant default/old is gone\n"
        "withdraw the draft of eu-1/unborn (PackageVariant default/old)\n"
        "  why: PackageVariant default/old is gone\n"
    )


def test_removals_are_listed_in_markdown(plan_with_removals: FleetPlan) -> None:
    plan_markdown = format_plan_markdown(plan_with_removals)

    assert "## Removals\n\n- `orphan eu-1/free (PackageVariant default/old): " in plan_markdown


def test_data_contains_all_removals_with_their_state(plan_with_removals: FleetPlan) -> None:
    removals = select_items(build_plan_data(plan_with_removals), "removal")

    assert [(removal["package"], removal["state"], removal.get("branch")) for removal in removals] == [
        ("free", "orphaned", None),
        ("new", "proposed", "removals/eu-1"),
        ("spared", "declined", "removals/eu-1"),
        ("unborn", "withdrawn", None),
        ("waiting", "proposed", "removals/eu-1"),
    ]
    assert [removal["package"] for removal in removals if removal["isNew"]] == ["free", "new", "unborn"]


def build_new_target(name: str) -> TargetPlan:
    """Return the plan of a target whose branch does not exist, with a draft of one package."""
    push = PushCommits(f"drafts/{name}", None, CommitId(COMMIT), CommitId(COMMIT), ())
    plan = build_target_plan(build_update(repository=name), name=name)
    return replace(plan, heads=replace(plan.heads, is_absent=True), branch_actions=(push,))


def test_a_plan_lists_new_target_branches() -> None:
    nothing_to_push = replace(build_new_target("idle"), outcomes=(), branch_actions=())
    plan = build_fleet_plan(*(build_new_target(f"eu-{number}") for number in range(7)), nothing_to_push)
    line = (
        "new target branches: clusters/eu-0 (eu-0), clusters/eu-1 (eu-1), clusters/eu-2 (eu-2), clusters/eu-3 (eu-3), "
        "clusters/eu-4 (eu-4) and 2 more"
    )
    entries = [item for item in build_plan_data(plan)["items"] if item["type"] == "targetBranch"]

    assert line in format_plan_text(plan).splitlines()
    assert f"`{line}`" in format_plan_markdown(plan).splitlines()
    assert len(entries) == 7
    assert entries[0] == {
        "type": "targetBranch", "target": "eu-0", "remote": "https://git.example/fleet.git", "branch": "clusters/eu-0"
    }  # fmt: skip
