"""The impact as people read it: risks first, equal changes once; nothing that people wrote breaks out."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace

import pytest

from reconciler.catalog.catalog import read_catalog
from reconciler.catalog.files import File, FileTree
from reconciler.krm.findings import Finding, Severity, SourceLocation
from reconciler.output.impact.formats import (
    COMMENT_MARKER,
    MAX_COMMENT_CHARACTERS,
    build_impact_data,
    find_risks,
    format_impact_markdown,
    format_impact_text,
)
from reconciler.output.impact.overview import FleetImpact, ImpactOverview, build_impact_overview
from reconciler.planning.attribution.impact import PackageImpact, ProjectedPackage, compare_plans
from reconciler.planning.decide.fleet_plan import FleetPlan
from tests.unit.output.world import (
    blocked,
    deployment,
    destination,
    destination_plan,
    draft,
    endpoints,
    fleet,
    leaving,
    secret,
    tree,
    variant,
)

Files = Mapping[str, str]
EU = {f"eu-{index}": {"region": "eu"} for index in range(1, 4)}
LABELS = {**EU, "us-1": {"region": "us"}}


def plan(files: Files, *clusters: str, objects: str = "") -> FleetPlan:
    """Return a fleet in which each cluster is to have a package of these files."""
    plans = (
        destination_plan(draft({}, files, desired_variant=variant(repository=cluster)), name=cluster)
        for cluster in clusters
    )
    return replace(fleet(*plans), objects=read_catalog(FileTree({"config.yaml": File(objects.encode())})).objects)


def seen(base: FleetPlan, head: FleetPlan, had: Files | None = None, has: Files | None = None) -> ImpactOverview:
    """Return what is told of two plans, of which each package had, and is to have, these files."""
    package_impacts = [
        replace(package_impact, files_before=tree(had or {}), files_after=tree(has or {}))
        for package_impact in compare_plans(base, head)
    ]
    return build_impact_overview(FleetImpact(base, head, tuple(package_impacts), LABELS))


def changed(had: Files, has: Files, *clusters: str) -> ImpactOverview:
    return seen(plan(had, *clusters), plan(has, *clusters), had, has)


ROLLED = ({"a.yaml": deployment(2, "web:1")}, {"a.yaml": deployment(2, "web:2")})


def test_equal_changes_are_told_once_by_the_label_of_their_clusters() -> None:
    where, field = "gw on all 3 clusters with region=eu", "template.spec.containers[web].image"
    why = "  why: upstream catalog/gateway: v4\n"

    headline, *values = format_impact_text(changed(*ROLLED, *EU)).split("\n\n")

    assert headline.endswith(": 3 packages on 3 clusters")
    assert values == [
        f"Risks\n  restarts pods: {where}: Deployment web: its pods are replaced: spec.{field} changed",
        f"changed: {where}\n  Deployment web: {field} web:1 → web:2\n{why}  on: eu-1, eu-2, eu-3\n",
    ]


def test_different_changes_are_told_apart_and_the_riskiest_come_first() -> None:
    base = plan({"a.yaml": deployment(1)}, "eu-1", "us-1")
    outcomes = [destination_plan(leaving=[leaving(package="gw")], name="us-1")]
    head = fleet(
        destination_plan(draft({}, {"a.yaml": deployment(2)}, desired_variant=variant()), name="eu-1"), *outcomes
    )

    overview = seen(base, head, {"a.yaml": deployment(1)}, {"a.yaml": deployment(2)})

    assert [[package.target for package in group] for group in overview.groups] == [["us-1/gw"], ["eu-1/gw"]]
    assert [risk.kind for risk in find_risks(overview)] == ["removes"]
    assert overview.counts["removed"] == 1


@pytest.mark.parametrize(
    ("had", "has", "kinds"),
    [
        pytest.param({"a.yaml": deployment(2)}, {"a.yaml": deployment(3)}, [], id="no-risk"),
        pytest.param({"a.yaml": deployment(2)}, {"a.yaml": deployment(0)}, ["stops pods"], id="stops"),
        pytest.param({"a.yaml": endpoints()}, {}, ["removes"], id="a-resource-goes"),
        pytest.param(
            {"a.yaml": "apiVersion: v1\nkind: Namespace\nmetadata: {name: x}\n"}, {}, ["removes", "may destroy"],
            id="a-namespace-goes",
        ),
    ],
)  # fmt: skip
def test_risks_are_rows(had: Files, has: Files, kinds: list[str]) -> None:
    assert [risk.kind for risk in find_risks(changed(had, has, "eu-1"))] == kinds


def test_what_is_held_up_says_why_and_is_a_risk() -> None:
    base = plan({}, "eu-1")
    head = fleet(destination_plan(blocked(variant(), "the disk is full")))

    overview = seen(base, head)

    assert [(risk.kind, risk.reason) for risk in find_risks(overview)] == [
        ("holds up", "Error: the disk is full"),
        ("new error", "pv.yaml:7: error Broken: the disk is full"),
    ]
    assert "blocked: eu-1/gw\n  Error: the disk is full\n" in format_impact_text(overview)


def with_findings(*findings: Finding) -> FleetPlan:
    return replace(fleet(), findings=findings)


def error(line: int = 1, message: str = "a.yaml:1: odd", severity: Severity = Severity.ERROR) -> Finding:
    return Finding("Odd", message, SourceLocation("a.yaml", line), severity)


@pytest.mark.parametrize(
    ("before", "after", "values"),
    [
        pytest.param([], [error()], (1, 0, 0), id="new"),
        pytest.param([error()], [], (0, 1, 0), id="mended"),
        pytest.param([error()], [error()], (0, 0, 1), id="standing"),
        pytest.param([error()], [error(7, "a.yaml:7: odd")], (0, 0, 1), id="moved-by-some-lines"),
        pytest.param([error()], [error(message="odd in another way")], (1, 1, 0), id="another"),
        pytest.param([], [error(severity=Severity.WARNING)], (0, 0, 0), id="a-warning-is-no-error"),
    ],
)
def test_errors_are_new_mended_or_stood_before(
    before: list[Finding], after: list[Finding], values: tuple[int, int, int]
) -> None:
    overview = seen(with_findings(*before), with_findings(*after))

    assert tuple(overview.counts[name] for name in ("newErrors", "mendedErrors", "standingErrors")) == values


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
def test_the_config_that_is_different_is_named_and_is_why(before: str, after: str, values: list[str]) -> None:
    base, head = plan(ROLLED[0], "eu-1", objects=before), plan(ROLLED[1], "eu-1", objects=after)

    overview = seen(base, head, *ROLLED)

    assert [config_change.summary for config_change in overview.config] == values
    assert [config_change.summary for config_change in overview.affected[0].config_changes] == values


def test_names_of_clusters_are_no_difference_but_values_are() -> None:
    def settings(cluster: str, value: str) -> dict[str, str]:
        return {"a.yaml": endpoints(value).replace("name: endpoints", f"name: endpoints-{cluster}")}

    def both(values: Mapping[str, str]) -> ImpactOverview:
        base, head = plan({}, *values), plan({"a.yaml": endpoints()}, *values)
        package_impacts = [
            replace(package_impact, files_before=tree(settings(name, "old")), files_after=tree(settings(name, value)))
            for package_impact, (name, value) in zip(compare_plans(base, head), values.items(), strict=True)
        ]
        return build_impact_overview(FleetImpact(base, head, tuple(package_impacts), LABELS))

    alike = both({"eu-1": "new", "eu-2": "new"})
    assert len(alike.groups) == 1
    first, other = build_impact_data(alike)["packages"]
    assert "changes" not in first
    assert other["changes"]["objects"][0]["name"] == "endpoints-eu-2"
    assert len(both({"eu-1": "new", "eu-2": "newer"}).groups) == 2


def test_what_is_too_large_is_said_to_be() -> None:
    (package_impact,) = compare_plans(plan({}, "eu-1"), plan({"a": "b"}, "eu-1"))
    overview = build_impact_overview(
        FleetImpact(fleet(), fleet(), (replace(package_impact, files_before=None, files_after=None),), {})
    )

    assert "  too large to compare\n" in format_impact_text(overview)
    assert json.loads(json.dumps(build_impact_data(overview, 5)))["groups"][0]["changes"] is None


def test_markdown_is_marked_and_shows_what_people_wrote_as_code() -> None:
    overview = changed({"a.yaml": deployment(0, "a|b`</details>")}, {"a.yaml": deployment(0, "x|y")}, "eu-1")

    lines = format_impact_markdown(overview, 20).splitlines()

    assert lines[0] == COMMENT_MARKER
    assert "| restarts pods | `eu-1/gw` | `Deployment web: its pods are replaced: " in "\n".join(lines)
    assert "- ``Deployment web: template.spec.containers[web].image a|b`</details> → x|y``" in lines
    assert "<details><summary>Diff</summary>" in lines
    assert "## Changed: `eu-1/gw`" in lines


def test_markdown_fits_into_a_comment_and_counts_what_is_left_out() -> None:
    names = [f"cluster-{index}" for index in range(900)]
    base = plan({}, *names)
    head = fleet(
        *(
            destination_plan(blocked(variant(repository=item), f"{index} {'y' * 300}"), name=item)
            for index, item in enumerate(names)
        )
    )

    impact_markdown = format_impact_markdown(seen(base, head))

    assert len(impact_markdown) <= MAX_COMMENT_CHARACTERS
    assert "and 1770 more\n" in impact_markdown
    assert re.search(r"\n\d+ more groups of equal changes exceeded the limit of a comment\. .*\n\Z", impact_markdown)
    assert len(build_impact_data(seen(base, head))["packages"]) == 900


@pytest.mark.parametrize(
    "form",
    [format_impact_text, format_impact_markdown, lambda value, lines: json.dumps(build_impact_data(value, lines))],
)
def test_no_form_shows_a_secret(form: object) -> None:
    overview = changed({"a.yaml": secret("hunter2")}, {"a.yaml": secret("hunter3")}, "eu-1")

    result = form(overview, 50)  # type: ignore[operator]

    assert "hunter" not in result
    assert "*****" in result


def test_json_names_the_group_and_the_outlooks_of_each_package() -> None:
    data = build_impact_data(changed(*ROLLED, *EU), 20)

    assert [package["group"] for package in data["packages"]] == [0, 0, 0]
    assert data["packages"][0] == {
        "repository": "eu-1", "package": "gw", "change": "changed", "before": "wanted", "after": "wanted",
        "draft": True, "owner": data["packages"][0]["owner"], "causes": ["upstream catalog/gateway: v4"],
    } | {"group": 0}  # fmt: skip
    (group,) = data["groups"]
    assert (group["label"], group["clusters"]) == ("region=eu", [*EU])
    assert group["changes"]["objects"][0]["fields"][0]["after"] == "web:2"
    assert [consequence["level"] for consequence in group["consequences"]] == ["restarts"]
    assert "+        image: web:2" in group["diffs"][0]["diff"]


def test_nothing_different_is_said() -> None:
    overview = seen(fleet(), fleet())

    assert format_impact_text(overview).endswith(": no effect on any package\n")
    assert format_impact_markdown(overview).startswith(f"{COMMENT_MARKER}\n# Impact of ")


def test_an_owner_without_a_place_is_told_by_its_name() -> None:
    owner = variant().owner
    package_impact = PackageImpact(
        None, "", ProjectedPackage(), ProjectedPackage("stalled", owner, reason="Missing", message="it is not there")
    )

    impact_text = format_impact_text(build_impact_overview(FleetImpact(fleet(), fleet(), (package_impact,), {})))

    assert "blocked: PackageVariant default/edge-gw\n  Missing: it is not there\n" in impact_text
    assert destination().name not in impact_text
