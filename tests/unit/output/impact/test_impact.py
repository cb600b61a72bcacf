"""Tests of the impact report: risks come first, equal changes are grouped, and hostile input is escaped."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from reconciler.catalog.catalog import read_catalog
from reconciler.catalog.files import File, FileTree
from reconciler.krm.findings import Finding, Severity, SourceLocation
from reconciler.output.impact import formats
from reconciler.output.impact.formats import COMMENT_MARKER, MAX_COMMENT_CHARACTERS
from reconciler.output.impact.overview import FleetImpact, ImpactOverview, build_impact_overview
from reconciler.output.impact.result import build_impact_result, find_risks
from reconciler.planning.attribution.impact import PackageImpact, ProjectedPackage, compare_plans
from reconciler.planning.decide.fleet_plan import FleetPlan
from tests.unit.output.builders import (
    build_blocked,
    build_draft,
    build_fleet_plan,
    build_removal,
    build_target,
    build_target_plan,
    build_tree,
    build_variant,
    format_deployment,
    format_endpoints,
    format_secret,
    read_json,
)

Files = Mapping[str, str]
EU = {f"eu-{index}": {"region": "eu"} for index in range(1, 4)}
LABELS = {**EU, "us-1": {"region": "us"}}


def build_plan(files: Files, *clusters: str, objects: str = "") -> FleetPlan:
    """Return a fleet plan in which each cluster receives a package with these files."""
    plans = (
        build_target_plan(build_draft({}, files, desired_variant=build_variant(repository=cluster)), name=cluster)
        for cluster in clusters
    )
    return replace(
        build_fleet_plan(*plans), objects=read_catalog(FileTree({"config.yaml": File(objects.encode())})).objects
    )


def build_overview(
    base: FleetPlan, head: FleetPlan, had: Files | None = None, has: Files | None = None
) -> ImpactOverview:
    """Return the impact of two plans, with these files before and after for each package."""
    package_impacts = [
        replace(package_impact, files_before=build_tree(had or {}), files_after=build_tree(has or {}))
        for package_impact in compare_plans(base, head)
    ]
    return build_impact_overview(FleetImpact(base, head, tuple(package_impacts), LABELS))


def build_changed_overview(had: Files, has: Files, *clusters: str) -> ImpactOverview:
    return build_overview(build_plan(had, *clusters), build_plan(has, *clusters), had, has)


def format_impact_text(overview: ImpactOverview, max_diff_lines: int = 0) -> str:
    return formats.format_impact_text(build_impact_result(overview, max_diff_lines))


def format_impact_markdown(overview: ImpactOverview, max_diff_lines: int = 0) -> str:
    return formats.format_impact_markdown(build_impact_result(overview, max_diff_lines))


def build_impact_data(overview: ImpactOverview, max_diff_lines: int = 0) -> dict[str, Any]:
    return read_json(build_impact_result(overview, max_diff_lines))


def list_changes(data: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [item for item in data["items"] if item["type"] == "change"]


ROLLED = ({"a.yaml": format_deployment(2, "web:1")}, {"a.yaml": format_deployment(2, "web:2")})


def test_equal_changes_are_grouped_by_the_label_of_their_clusters() -> None:
    where, field = "gw on all 3 clusters with region=eu", "template.spec.containers[web].image"
    why = "  why: upstream catalog/gateway: v4\n"

    headline, *values = format_impact_text(build_changed_overview(*ROLLED, *EU)).split("\n\n")

    assert headline.splitlines()[0] == "Impact: 3 packages to update on 3 clusters"
    assert headline.splitlines()[1].startswith("Config: ")
    assert values == [
        f"Risks\n  restarts pods: {where}: Deployment web: its pods are replaced, because spec.{field} changed",
        f"changed: {where}\n  Deployment web: {field} web:1 → web:2\n{why}  on: eu-1, eu-2, eu-3\n",
    ]


def test_different_changes_are_separate_and_the_highest_risk_comes_first() -> None:
    base = build_plan({"a.yaml": format_deployment(1)}, "eu-1", "us-1")
    outcomes = [build_target_plan(leaving=[build_removal(package="gw")], name="us-1")]
    head = build_fleet_plan(
        build_target_plan(
            build_draft({}, {"a.yaml": format_deployment(2)}, desired_variant=build_variant()), name="eu-1"
        ),
        *outcomes,
    )

    overview = build_overview(base, head, {"a.yaml": format_deployment(1)}, {"a.yaml": format_deployment(2)})

    assert [[package.target for package in group] for group in overview.groups] == [["us-1/gw"], ["eu-1/gw"]]
    assert [risk.kind for risk in find_risks(overview)] == ["removes"]
    assert build_impact_result(overview).summary.delete == 1


@pytest.mark.parametrize(
    ("had", "has", "kinds"),
    [
        pytest.param({"a.yaml": format_deployment(2)}, {"a.yaml": format_deployment(3)}, [], id="no-risk"),
        pytest.param({"a.yaml": format_deployment(2)}, {"a.yaml": format_deployment(0)}, ["stops pods"], id="stops"),
        pytest.param({"a.yaml": format_endpoints()}, {}, ["removes"], id="a-resource-goes"),
        pytest.param(
            {"a.yaml": "apiVersion: v1\nkind: Namespace\nmetadata: {name: x}\n"}, {}, ["removes", "may destroy"],
            id="a-namespace-goes",
        ),
    ],
)  # fmt: skip
def test_risks_are_rows(had: Files, has: Files, kinds: list[str]) -> None:
    assert [risk.kind for risk in find_risks(build_changed_overview(had, has, "eu-1"))] == kinds


def test_blocked_package_has_its_reason_and_is_a_risk() -> None:
    base = build_plan({}, "eu-1")
    head = build_fleet_plan(build_target_plan(build_blocked(build_variant(), "the disk is full")))

    overview = build_overview(base, head)

    assert [(risk.kind, risk.reason) for risk in find_risks(overview)] == [
        ("blocked", "Error: the disk is full"),
        ("new error", "pv.yaml:7: error Broken: the disk is full"),
    ]
    assert "blocked: eu-1/gw\n  Error: the disk is full\n" in format_impact_text(overview)


def build_plan_with_findings(*findings: Finding) -> FleetPlan:
    return replace(build_fleet_plan(), findings=findings)


def build_error(line: int = 1, message: str = "a.yaml:1: odd", severity: Severity = Severity.ERROR) -> Finding:
    return Finding("Odd", message, SourceLocation("a.yaml", line), severity)


@pytest.mark.parametrize(
    ("before", "after", "values"),
    [
        pytest.param([], [build_error()], (1, 0, 0), id="new"),
        pytest.param([build_error()], [], (0, 1, 0), id="fixed"),
        pytest.param([build_error()], [build_error()], (0, 0, 1), id="in-both"),
        pytest.param([build_error()], [build_error(7, "a.yaml:7: odd")], (0, 0, 1), id="moved-by-some-lines"),
        pytest.param([build_error()], [build_error(message="odd in another way")], (1, 1, 0), id="another"),
        pytest.param([], [build_error(severity=Severity.WARNING)], (0, 0, 0), id="a-warning-is-no-error"),
    ],
)
def test_errors_are_counted_as_new_fixed_or_unchanged(
    before: list[Finding], after: list[Finding], values: tuple[int, int, int]
) -> None:
    overview = build_overview(build_plan_with_findings(*before), build_plan_with_findings(*after))

    summary = build_impact_result(overview).summary
    assert (summary.errors, summary.fixed_errors, summary.existing_errors) == values


CONFIG = "apiVersion: config.porch.kpt.dev/v1alpha1\nkind: PackageVariant\nmetadata: {name: edge-gw}\nspec: {a: 1}\n"


@pytest.mark.parametrize(
    ("before", "after", "values"),
    [
        pytest.param(CONFIG, CONFIG, [], id="the-same"),
        pytest.param(CONFIG, "# moved\n---\n" + CONFIG, [], id="moved"),
        pytest.param(
            CONFIG, CONFIG.replace("1}", "2}"), ["PackageVariant default/edge-gw changed (config.yaml)"], id="changed"
        ),
        pytest.param("", CONFIG, ["PackageVariant default/edge-gw added (config.yaml)"], id="added"),
        pytest.param(CONFIG, "", ["PackageVariant default/edge-gw removed (config.yaml)"], id="removed"),
    ],
)
def test_changed_config_is_listed_as_the_cause(before: str, after: str, values: list[str]) -> None:
    base, head = build_plan(ROLLED[0], "eu-1", objects=before), build_plan(ROLLED[1], "eu-1", objects=after)

    overview = build_overview(base, head, *ROLLED)

    assert [config_change.summary for config_change in overview.config] == values
    assert [config_change.summary for config_change in overview.affected[0].config_changes] == values


def test_cluster_names_are_no_difference_but_values_are() -> None:
    def build_settings(cluster: str, value: str) -> dict[str, str]:
        return {"a.yaml": format_endpoints(value).replace("name: endpoints", f"name: endpoints-{cluster}")}

    def build_settings_overview(values: Mapping[str, str]) -> ImpactOverview:
        base, head = build_plan({}, *values), build_plan({"a.yaml": format_endpoints()}, *values)
        package_impacts = [
            replace(
                package_impact,
                files_before=build_tree(build_settings(name, "old")),
                files_after=build_tree(build_settings(name, value)),
            )
            for package_impact, (name, value) in zip(compare_plans(base, head), values.items(), strict=True)
        ]
        return build_impact_overview(FleetImpact(base, head, tuple(package_impacts), LABELS))

    alike = build_settings_overview({"eu-1": "new", "eu-2": "new"})
    assert len(alike.groups) == 1
    (change,) = list_changes(build_impact_data(alike))
    first, other = change["packages"]
    assert "changes" not in first
    assert other["changes"]["objects"][0]["object"]["name"] == "endpoints-eu-2"
    assert len(build_settings_overview({"eu-1": "new", "eu-2": "newer"}).groups) == 2


def test_omitted_large_files_are_reported() -> None:
    (package_impact,) = compare_plans(build_plan({}, "eu-1"), build_plan({"a": "b"}, "eu-1"))
    overview = build_impact_overview(
        FleetImpact(
            build_fleet_plan(), build_fleet_plan(), (replace(package_impact, files_before=None, files_after=None),), {}
        )
    )

    assert "  too large to compare\n" in format_impact_text(overview)
    assert "changes" not in list_changes(build_impact_data(overview, 5))[0]


def test_markdown_has_a_marker_and_escapes_config_text() -> None:
    overview = build_changed_overview(
        {"a.yaml": format_deployment(0, "a|b`</details>")}, {"a.yaml": format_deployment(0, "x|y")}, "eu-1"
    )

    lines = format_impact_markdown(overview, 20).splitlines()

    assert lines[0] == COMMENT_MARKER
    assert "| restarts pods | `eu-1/gw` | `Deployment web: its pods are replaced, because " in "\n".join(lines)
    assert "- ``Deployment web: template.spec.containers[web].image a|b`</details> → x|y``" in lines
    assert "<details><summary>Diff</summary>" in lines
    assert "## Changed: `eu-1/gw`" in lines


@pytest.mark.slow
def test_markdown_is_limited_to_the_size_of_a_comment() -> None:
    names = [f"cluster-{index}" for index in range(900)]
    base = build_plan({}, *names)
    head = build_fleet_plan(
        *(
            build_target_plan(build_blocked(build_variant(repository=item), f"{index} {'y' * 300}"), name=item)
            for index, item in enumerate(names)
        )
    )

    impact_markdown = format_impact_markdown(build_overview(base, head))

    assert len(impact_markdown) <= MAX_COMMENT_CHARACTERS
    assert "and 1770 more\n" in impact_markdown
    assert re.search(r"\n\d+ more groups of equal changes did not fit into this comment\. .*\n\Z", impact_markdown)
    assert build_impact_data(build_overview(base, head))["summary"]["packages"] == 900


@pytest.mark.parametrize(
    "form",
    [format_impact_text, format_impact_markdown, lambda value, lines: json.dumps(build_impact_data(value, lines))],
)
def test_secret_values_are_masked_in_every_format(form: object) -> None:
    overview = build_changed_overview(
        {"a.yaml": format_secret("hunter2")}, {"a.yaml": format_secret("hunter3")}, "eu-1"
    )

    result = form(overview, 50)  # type: ignore[operator]

    assert "hunter" not in result
    assert "*****" in result


def test_json_contains_the_group_and_the_consequences_of_each_package() -> None:
    data = build_impact_data(build_changed_overview(*ROLLED, *EU), 20)

    (change,) = list_changes(data)
    assert [package["target"] for package in change["packages"]] == [*EU]
    assert change["packages"][0] == {
        "target": "eu-1", "package": "gw", "before": "requested", "after": "requested", "createsDraft": True,
        "owner": {
            "apiVersion": "config.porch.kpt.dev/v1alpha1", "kind": "PackageVariant", "namespace": "default",
            "name": "edge-gw",
        },
        "causes": ["upstream catalog/gateway: v4"],
    }  # fmt: skip
    assert (change["kind"], change["label"], change["clusters"]) == ("changed", "region=eu", [*EU])
    assert change["changes"]["objects"][0]["fields"][0]["after"] == "web:2"
    assert [consequence["level"] for consequence in change["consequences"]] == ["restarts"]
    assert "+        image: web:2" in change["diffs"][0]["diff"]
    assert [item["kind"] for item in data["items"] if item["type"] == "risk"] == ["restarts pods"]
    assert (data["kind"], data["summary"]["update"], data["summary"]["restarts"]) == ("Impact", 3, 3)


def test_impact_without_changes_has_a_message() -> None:
    overview = build_overview(build_fleet_plan(), build_fleet_plan())

    assert format_impact_text(overview).splitlines()[0] == "Impact: no changes"
    assert format_impact_markdown(overview).startswith(f"{COMMENT_MARKER}\n# Impact: no changes\n\nConfig: ")


def test_owner_without_target_is_shown_by_its_name() -> None:
    owner = build_variant().owner
    package_impact = PackageImpact(
        None, "", ProjectedPackage(), ProjectedPackage("stalled", owner, reason="Missing", message="it is not there")
    )

    impact_text = format_impact_text(
        build_impact_overview(FleetImpact(build_fleet_plan(), build_fleet_plan(), (package_impact,), {}))
    )

    assert "blocked: PackageVariant default/edge-gw\n  Missing: it is not there\n" in impact_text
    assert build_target().name not in impact_text
