from __future__ import annotations

import json
from dataclasses import replace

import pytest

from reconciler.catalog.files import FileTree
from reconciler.controllers.results import ControllerResult, StalledVariant
from reconciler.krm.findings import Finding, Severity, SourceLocation
from reconciler.krm.objects import Condition
from reconciler.output.plan.formats import build_plan_data, format_plan_markdown, format_plan_text
from reconciler.planning.decide.fleet_plan import FleetPlan
from reconciler.planning.model.outcomes import Draft, PackageRender
from tests.unit.output.world import (
    COMMIT,
    CONFIG,
    OLD_COMMIT,
    TREE,
    blocked,
    deployment,
    destination_plan,
    draft,
    endpoints,
    fleet,
    held,
    kptfile,
    leaving,
    owner,
    secret,
    unchanged,
    variant,
)

OLD = {"Kptfile": kptfile("v3", OLD_COMMIT), "a.yaml": deployment(3)}
NEW = {"Kptfile": kptfile("v4", COMMIT), "a.yaml": deployment(5)}
KPTFILE_LINE = f"Kptfile: upstream gateway@v3 ({OLD_COMMIT[:7]}) → gateway@v4 ({COMMIT[:7]})"


def update(name: str = "edge-gw", repository: str = "eu-1", **fields: object) -> Draft:
    new_draft = draft(OLD, NEW, desired_variant=variant(name, repository))
    return replace(new_draft, **fields)  # type: ignore[arg-type]


def whole() -> FleetPlan:
    """One of everything."""
    warned = Finding("Alias", "old spelling", SourceLocation("pv.yaml", 3), Severity.WARNING)
    stalled = StalledVariant(owner("odd"), (Condition("Stalled", "True", "ValidationError", "name it"),), ())
    target_plan = destination_plan(update(), blocked(variant("ill", package="ill")), holding=[held()])
    other = destination_plan(update("us-gw", "us-1"), unchanged(variant("calm", "us-1", "calm")), name="us-1")
    plan = fleet(target_plan, other)
    return replace(plan, controller_result=replace(plan.controller_result, stalled=(stalled,)), findings=(warned,))


def test_the_plan_as_text() -> None:
    assert format_plan_text(whole(), max_diff_lines=12) == (
        f"Plan for {CONFIG}: 2 drafts for 2 targets, 1 unchanged, 1 blocked, 1 stalled, 1 held, 2 errors\n"
        "\n"
        "PackageVariant default/old: error DeletionHeld: package old is not wanted any more\n"
        "  held: eu-1/old (PackageVariant default/old)\n"
        "pv.yaml:3: warning Alias: old spelling\n"
        "pv.yaml:7: error Broken: it cannot be\n"
        "  blocked: eu-1/ill (PackageVariant default/ill)\n"
        "stalled (PackageVariant default/odd): ValidationError: name it\n"
        "\n"
        "update eu-1/gw (PackageVariant default/edge-gw)\n"
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


def test_the_plan_as_markdown() -> None:
    new_draft = draft({"b.yaml": endpoints("a")}, {"b.yaml": endpoints("b")}, causes=("variant",), task="edit")

    assert format_plan_markdown(
        fleet(destination_plan(new_draft, blocked(variant("ill", package="ill"), "`x` is\n<b>no</b>")))
    ) == (
        f"# Plan for {CONFIG}: 1 draft for 1 target, 1 blocked, 1 error\n"
        "\n"
        "## Findings\n"
        "\n"
        "- ``pv.yaml:7: error Broken: `x` is⏎<b>no</b>``\n"
        "  - `blocked: eu-1/ill (PackageVariant default/ill)`\n"
        "\n"
        "## `edit eu-1/gw (PackageVariant default/edge-gw)`\n"
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


def test_no_fence_in_a_file_ends_the_diff() -> None:
    new_draft = draft({"README.md": "x\n"}, {"README.md": "```\n</details>\n````\n"})

    assert "\n`````diff\n" in format_plan_markdown(fleet(destination_plan(new_draft)))


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        pytest.param("plain", ": plain`", id="one-tick"),
        pytest.param("`x` is", ": `x` is``", id="more-ticks-than-inside"),
        pytest.param("it is `x`", ": it is `x` ``", id="a-blank-between-ticks"),
    ],
)
def test_a_code_span_ends_where_it_should(message: str, expected: str) -> None:
    text = format_plan_markdown(fleet(destination_plan(blocked(variant(), message))))

    assert f"{expected}\n" in text


def test_the_plan_as_data() -> None:
    data = build_plan_data(whole())

    assert json.loads(json.dumps(data)) == data
    assert data["counts"] == {
        "drafts": 2, "destinations": 2, "removals": 0, "unchanged": 1, "blocked": 1, "stalled": 1, "held": 1,
        "errors": 2,
    }  # fmt: skip
    assert data["drafts"][1] == {
        "repository": "us-1",
        "package": "gw",
        "owner": {
            "apiVersion": "config.porch.kpt.dev/v1alpha1",
            "kind": "PackageVariant",
            "namespace": "default",
            "name": "us-gw",
        },
        "task": "update",
        "causes": ["upstream catalog/gateway: v3 → v4"],
        "group": 0,
    }
    assert data["groups"][0]["packages"] == ["eu-1/gw", "us-1/gw"]
    assert data["groups"][0]["changes"]["objects"] == [
        {
            "group": "apps",
            "kind": "Deployment",
            "namespace": "",
            "name": "web",
            "change": "changed",
            "files": ["a.yaml"],
            "fields": [{"path": "spec.replicas", "before": 3, "after": 5}],
        }
    ]
    assert data["troubles"][0] == {
        "kind": "blocked",
        "place": "eu-1/ill",
        "owner": "PackageVariant default/ill",
        "reason": "Error",
        "message": "it cannot be",
        "causedBy": [{"code": "Broken", "file": "pv.yaml", "line": 7, "object": "PackageVariant/default/ill"}],
    }
    assert [finding["code"] for finding in data["findings"]] == ["DeletionHeld", "Alias", "Broken"]


def test_a_plan_without_anything_to_do_says_so() -> None:
    assert (
        format_plan_text(fleet(destination_plan(unchanged(variant()))))
        == f"Plan for {CONFIG}: nothing to draft, 1 unchanged\n"
    )


def groups(*drafts: Draft) -> list[list[str]]:
    return [group["packages"] for group in build_plan_data(fleet(*map(destination_plan, drafts)))["groups"]]


PIPELINE = "pipeline: {{mutators: [{{name: PackageVariant.{}.ns.0, image: set-namespace}}]}}\n"


@pytest.mark.parametrize(
    ("value", "other", "same"),
    [
        pytest.param(update(), update("us-gw", "us-1"), True, id="equal-changes"),
        pytest.param(update(), update("us-gw", "us-1", task="upgrade"), False, id="another-task"),
        pytest.param(
            draft({"a.yaml": deployment(3) + "# eu\n"}, {"a.yaml": deployment(5) + "# eu\n"}),
            draft({"a.yaml": deployment(3)}, {"a.yaml": deployment(5)}, desired_variant=variant("us-gw", "us-1")),
            True,
            id="what-did-not-change-may-differ",
        ),
        pytest.param(
            draft({}, {"a.yaml": deployment(3)}),
            draft({}, {"a.yaml": deployment(4)}, desired_variant=variant("us-gw", "us-1")),
            False,
            id="another-content-of-what-is-new",
        ),
        pytest.param(
            draft({"a.yaml": secret("a")}, {"a.yaml": secret("b")}),
            draft({"a.yaml": secret("a")}, {"a.yaml": secret("c")}, desired_variant=variant("us-gw", "us-1")),
            False,
            id="another-value-of-a-secret",
        ),
        pytest.param(
            draft({"Kptfile": "a: 1"}, {"Kptfile": "a: 1\n" + PIPELINE.format("edge-gw")}),
            draft(
                {"Kptfile": "a: 1"},
                {"Kptfile": "a: 1\n" + PIPELINE.format("us-gw")},
                desired_variant=variant("us-gw", "us-1"),
            ),
            True,
            id="whose-function-it-is-is-no-difference",
        ),
        pytest.param(
            draft({"x.md": "1"}, {"x.md": "2"}),
            draft({"x.md": "1"}, {"x.md": "3"}, desired_variant=variant("us-gw", "us-1")),
            False,
            id="another-content-of-a-file",
        ),
        pytest.param(
            update(),
            update("us-gw", "us-1", rendered=replace(update().rendered, readiness_gates=("here",))),
            False,
            id="one-that-waits-for-a-gate",
        ),
    ],
)
def test_equal_changes_are_told_once(value: Draft, other: Draft, same: bool) -> None:
    assert groups(value, other) == ([["eu-1/gw", "us-1/gw"]] if same else [["eu-1/gw"], ["us-1/gw"]])


def test_the_largest_group_comes_first_and_its_places_are_counted() -> None:
    alone = draft({}, {"z.yaml": endpoints()}, desired_variant=variant("aa", "aa-1"))
    same = [update(f"gw-{number}", f"eu-{number}") for number in range(8)]
    text = format_plan_text(fleet(*map(destination_plan, [alone, *same])), max_diff_lines=0)

    assert "same change on 7 other targets: eu-1/gw, eu-2/gw, eu-3/gw, eu-4/gw, eu-5/gw and 2 more\n" in text
    assert text.index("update eu-0/gw") < text.index("update aa-1/gw")


def test_what_a_draft_waits_for_is_told() -> None:
    rendered = PackageRender(
        FileTree(), (Condition("Rendered", "False", "RenderFailed", "no starlark"),), ("Rendered",)
    )
    text = format_plan_text(fleet(destination_plan(draft(OLD, NEW, rendered=rendered))))

    assert "  blocks publication: Rendered is False: no starlark\n" in text


@pytest.mark.parametrize("format_", [pytest.param(format_plan_text, id="text"), pytest.param(format_plan_markdown, id="markdown"),
                                     pytest.param(lambda plan: json.dumps(build_plan_data(plan)), id="json")])  # fmt: skip
def test_no_value_of_a_secret_is_in_any_format(format_) -> None:  # type: ignore[no-untyped-def]
    new_draft = draft({"a.yaml": secret("hunter2")}, {"a.yaml": secret("correct-horse")})
    text = format_(fleet(destination_plan(new_draft)))

    assert "login" in text
    assert "hunter2" not in text
    assert "horse" not in text


def test_the_order_of_destinations_does_not_matter() -> None:
    plan = whole()

    assert format_plan_text(replace(plan, targets=plan.targets[::-1])) == format_plan_text(plan)


def test_a_stalled_owner_with_a_known_place_names_it() -> None:
    stalled = StalledVariant(owner(), (Condition("Stalled", "True", "UpstreamNotFound", "no"),), (), variant().target)

    assert "stalled eu-1/gw (PackageVariant default/edge-gw): UpstreamNotFound: no" in format_plan_text(
        fleet(room=ControllerResult(stalled=(stalled,)))
    )


@pytest.fixture
def given_up() -> FleetPlan:
    ways = [
        leaving("proposed", "new", before=TREE),
        leaving("proposed", "waiting"),
        leaving("declined", "spared"),
        leaving("withdrawn", "unborn"),
        leaving("orphaned", "free"),
    ]
    return fleet(destination_plan(leaving=ways))


def test_what_is_done_about_packages_that_nothing_wants_is_told(given_up: FleetPlan) -> None:
    assert format_plan_text(given_up) == (
        f"Plan for {CONFIG}: nothing to draft, 3 removals\n"
        "\n"
        "orphan eu-1/free (PackageVariant default/old)\n"
        "  why: PackageVariant/default/old is gone\n"
        "propose removal of eu-1/new (PackageVariant default/old)\n"
        "  why: PackageVariant/default/old is gone\n"
        "withdraw the draft of eu-1/unborn (PackageVariant default/old)\n"
        "  why: PackageVariant/default/old is gone\n"
    )


def test_in_markdown_too(given_up: FleetPlan) -> None:
    plan_markdown = format_plan_markdown(given_up)

    assert "## Removals\n\n- `orphan eu-1/free (PackageVariant default/old): " in plan_markdown


def test_as_data_all_of_them_are_told_with_how_far_they_are(given_up: FleetPlan) -> None:
    removals = build_plan_data(given_up)["removals"]

    assert [(removal["package"], removal["state"], removal.get("branch")) for removal in removals] == [
        ("free", "orphaned", None),
        ("new", "proposed", "removals/eu-1"),
        ("spared", "declined", "removals/eu-1"),
        ("unborn", "withdrawn", None),
        ("waiting", "proposed", "removals/eu-1"),
    ]
