"""Tests of `reconciler impact` with complete fleets: the impact of a change is compared with the drafts of a pass."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from reconciler.bootstrap.services import build_services
from reconciler.controllers.results import Variant
from reconciler.inspect.impact import CommitRange, ConfigVersions, compute_impact
from reconciler.output.impact.formats import format_impact_text
from reconciler.output.impact.overview import ImpactOverview, build_impact_overview
from reconciler.output.impact.result import build_impact_result, find_risks
from reconciler.planning.model.outcomes import PackageRender
from reconciler.planning.model.sources import RenderInputs
from reconciler.planning.render.renderer import PackageRenderer
from reconciler.settings import Settings
from tests.support.command_line import CommandResult, run_in
from tests.support.components import (
    BACKEND,
    CART,
    FENCE,
    PRODUCED,
    PRODUCTION,
    binding,
    component,
    component_type,
    components_drafted,
    components_published,
    environment,
    fence,
    platform_addon,
    service,
)
from tests.support.git_repositories import git, read_refs
from tests.support.policies import (
    greenhouse_cluster,
    placements_published,
    policies_drafted,
    policies_published,
    policy,
    replicas,
    resource,
)
from tests.support.prepared_worlds import begin, drafted, published
from tests.support.presets import from_secret, option, preset, presets_published
from tests.support.templates import bundle, kafka, templates_published
from tests.support.world import CLUSTERS, Files, World, config_map, injected_set, package, repository, variant

Make = Callable[[Path], World]


def commit_config(world: World, *, first: bool = False) -> str:
    """Commit the config folder, and return the ID of the commit."""
    if first:
        git(world.config, "init", "--quiet", "--initial-branch=main")
    git(world.config, "add", "--all")
    git(world.config, "commit", "--quiet", "--allow-empty", "-m", "change")
    return git(world.config, "rev-parse", "HEAD")


def commit_change(world: World, files: Files) -> None:
    """Commit the config, write files, and commit again."""
    commit_config(world, first=True)
    world.write(files)
    commit_config(world)


def compute_overview(world: World, base: str = "HEAD~1", head: str = "HEAD", *, forks: bool = False) -> ImpactOverview:
    """Return the impact of a range, computed with new services."""
    guards = {"max_delete_percent": 100}
    own = {"fleet": {"url": str(world.fleet)}, "cache": str(world.folder / "cache"), "guards": guards}
    settings = Settings.model_validate(own)
    parts = build_services(settings, world.source, should_treat_missing_as_empty=True, clock=lambda: world.now)
    with parts.remotes as remotes:
        configs = ConfigVersions(parts.source, parts.open_config_history(), settings.config.branch)
        return build_impact_overview(
            compute_impact(CommitRange(base, head, forks), configs, remotes, parts.pass_services)
        )


def find_kinds(overview: ImpactOverview) -> dict[str, str]:
    return {item.target: item.kind for item in overview.affected}


def find_drafts(overview: ImpactOverview) -> set[str]:
    return {item.target for item in overview.affected if item.effect.creates_draft}


SITE, BANNER, LOGS_FILE, METRICS = "policies/site.yaml", "placed/banner.yaml", "presets/logs.yaml", "metrics.yaml"
BERLIN, NORTH = "clusters/berlin.yaml", "regions/north.yaml"
PLACED = resource("ConfigMap", "banner", by="north", text="x")
REFUSED, FEWER = component("cart", replicas=0), environment(PRODUCTION, "oslo")
WITHOUT_BERLIN = {BERLIN: None, "gateway.yaml": injected_set("gateway", ["lisbon"]), METRICS: None}
UNFENCED = component_type("backend", "service", [], ["trace-agent"])
TEMPLATED = injected_set("gateway", CLUSTERS).replace(
    "      template:\n", "      template:\n        packageContext: {data: {zone: b}}\n"
)
NEXT = variant("metrics-berlin", "berlin", "metrics", "v2")
RULE = replicas(7, {"clusters": ["lisbon"]})
LOGS = [option("buffer.size", 256), from_secret("token", "logs", "token")]


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize(
    ("make", "files", "number"),
    [
        pytest.param(
            published, {"regions/north.yaml": config_map("region-north", api="x")}, 1, id="an-injected-object"
        ),
        pytest.param(drafted, {"gateway.yaml": TEMPLATED}, 2, id="a-template-of-a-set"),
        pytest.param(policies_published, {SITE: policy("site", [RULE])}, 2, id="a-policy"),
        pytest.param(policies_drafted, {SITE: policy("site", [RULE])}, 2, id="a-policy-on-drafts"),
        pytest.param(policies_published, {SITE: None}, 0, id="a-policy-that-is-missed"),
        pytest.param(
            placements_published,
            {BANNER: resource("ConfigMap", "banner", by="north", text="x")},
            1,
            id="a-placed-resource",
        ),
        pytest.param(presets_published, {LOGS_FILE: preset(options=LOGS)}, 3, id="a-preset"),
        pytest.param(presets_published, {LOGS_FILE: preset(tiers=["edge"])}, 2, id="a-preset-for-fewer"),
        pytest.param(components_published, {FENCE: fence(8443)}, 6, id="an-addon-of-the-platform"),
        pytest.param(components_drafted, {FENCE: fence(8443)}, 6, id="an-addon-on-drafts"),
        pytest.param(components_published, {PRODUCED: FEWER}, 0, id="an-environment-of-fewer"),
        pytest.param(components_published, {BACKEND: UNFENCED}, 6, id="an-addon-leaves-the-type"),
        pytest.param(components_published, {FENCE: "spec: ["}, 0, id="an-unreadable-file"),
    ],
)
def test_impact_contains_exactly_the_drafts_of_the_next_pass(
    make: Make, files: Files, number: int, tmp_path: Path
) -> None:
    world = begin(tmp_path, make)
    commit_change(world, files)

    overview = compute_overview(world)

    after = world.sync()
    synced = {place for place, outcome in after.outcomes.items() if outcome == "draft"}
    assert (find_drafts(overview), len(synced)) == (synced, number)


@pytest.mark.slow
def test_impact_groups_the_drafts_of_a_large_fleet(tmp_path: Path) -> None:
    fleet = [f"c-{index:03}" for index in range(500)]
    # Most clusters have no package, because pushes take time.
    live, staged = fleet[:100], fleet[100:120]
    world = World.create(tmp_path / "world")
    world.write(
        {
            "clusters.yaml": "---\n".join(
                greenhouse_cluster(item, role="edge" if item in live else "core") for item in fleet
            ),
            "environments.yaml": "---\n".join([environment("live", *live), environment("staged", *staged)]),
            "catalogue.yaml": "---\n".join(
                [service(), component_type("backend", "service", [platform_addon("fence")])]
            ),
            "plain.yaml": component_type("plain", "service"),
            FENCE: fence(),
            "shop.yaml": "---\n".join(
                [component("cart"), component("till", "Plain"), binding("cart", "live"), binding("till", "staged")]
            ),
        }
    )
    world.sync()
    commit_change(world, {FENCE: fence(8443)})

    overview = compute_overview(world)

    synced = {place for place, outcome in world.sync().outcomes.items() if outcome == "draft"}
    assert len(synced) == 100
    assert find_drafts(overview) == synced
    assert len(overview.groups) == 1
    impact_text = format_impact_text(build_impact_result(overview))
    assert "changed: components/live/shop/cart on all 100 clusters with role=edge\n" in impact_text
    assert "why: Addon fence changed (catalogue/fence.yaml)\n" in impact_text


def test_undrafted_content_of_the_first_config_is_the_base(tmp_path: Path) -> None:
    world = begin(tmp_path, policies_published)
    world.write({SITE: policy("site", [replicas(6)])})
    commit_change(world, {SITE: policy("site", [replicas(6), replicas(8, {"clusters": ["lisbon"]})])})

    overview = compute_overview(world)

    (item,) = overview.affected
    assert item.target == "lisbon/web"
    assert item.changes
    assert item.changes.format_summary_lines() == ("Deployment web: replicas 6 → 8",)
    assert [config_change.summary for config_change in item.config_changes] == [
        "ClusterOverridePolicy site changed (policies/site.yaml)"
    ]


def test_return_to_published_content_is_reported_without_a_draft(tmp_path: Path) -> None:
    world = begin(tmp_path, policies_published)
    before = world.config.joinpath(SITE).read_text()
    world.write({SITE: policy("site", [replicas(6)])})
    world.sync()
    commit_change(world, {SITE: before})

    overview = compute_overview(world)

    assert (find_kinds(overview), find_drafts(overview)) == ({"berlin/web": "changed", "lisbon/web": "changed"}, set())
    assert [item.changes.format_summary_lines() for item in overview.affected if item.changes] == [
        ("Deployment web: replicas 6 → 5",), ("Deployment web: replicas 6 → 2",),
    ]  # fmt: skip
    assert "draft" not in set(world.sync().outcomes.values())


@pytest.mark.parametrize(
    ("files", "rendered"),
    [
        pytest.param({SITE: policy("site", [RULE])}, ["berlin/web", "lisbon/web"], id="what-is-different"),
        pytest.param({"notes.yaml": config_map("notes", a="b")}, [], id="nothing-for-an-object-beside"),
    ],
)
def test_unaffected_packages_are_not_rendered(
    files: Files, rendered: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = begin(tmp_path, policies_published)
    commit_change(world, files)
    values: list[str] = []
    render = PackageRenderer.__call__

    def record_render(self: PackageRenderer, variant: Variant, render_inputs: RenderInputs) -> PackageRender:
        values.append(str(variant.target))
        return render(self, variant, render_inputs)

    monkeypatch.setattr(PackageRenderer, "__call__", record_render)

    compute_overview(world)

    assert values == rendered


def test_conflict_is_listed_only_if_the_change_causes_it(tmp_path: Path) -> None:
    world = begin(tmp_path, published)
    world.release("metrics", "v2", package("metrics", replicas=4))
    world.edit("clusters/berlin", "metrics/deployment.yaml", "replicas: 2", "replicas: 5")
    commit_change(world, {METRICS: NEXT})

    overview = compute_overview(world)

    (item,) = overview.affected
    place = "deployment.yaml: Deployment metrics: spec.replicas"
    assert item.conflicts == (f"{place}: local 5 is kept, upstream 4 is not applied",)
    assert build_impact_result(overview).summary.conflicts == 1
    world.sync()
    commit_config(world)
    world.write({METRICS: NEXT + "  packageContext: {data: {zone: b}}\n"})
    commit_config(world)
    assert [entry.conflicts for entry in compute_overview(world).affected] == [()]


@pytest.mark.quick_cases(every=7)
@pytest.mark.parametrize(
    ("make", "files", "mapping", "counted"),
    [
        pytest.param(published, {METRICS: None}, {"berlin/metrics": "removed"}, {"delete": 1}, id="published"),
        pytest.param(drafted, {METRICS: None}, {"berlin/metrics": "unrendered"}, {"withdraw": 1}, id="only-drafted"),
        pytest.param(
            published, {"more.yaml": variant("more", "lisbon", "more", upstream="metrics")},
            {"lisbon/more": "new"}, {"install": 1}, id="new",
        ),
        pytest.param(
            published, {METRICS: variant("metrics-berlin", "berlin", "metrics", "v9")},
            {"berlin/metrics": "blocked"}, {"blocked": 1, "errors": 1}, id="an-upstream-that-is-not-there",
        ),
        pytest.param(
            published, WITHOUT_BERLIN,
            {"berlin/gateway": "orphaned", "berlin/metrics": "orphaned"}, {"orphan": 2}, id="a-cluster-that-goes",
        ),
        pytest.param(
            published, {BERLIN: repository("berlin", branch="elsewhere")},
            {"berlin/gateway": "blocked", "berlin/metrics": "blocked"}, {"blocked": 2, "errors": 1},
            id="a-branch-that-moves",
        ),
        pytest.param(
            components_published, {CART: REFUSED},
            {f"{cluster}/components/{env}/shop/cart": "blocked"
             for cluster, env in (("berlin", "staging"), ("lisbon", "production"), ("oslo", "production"))},
            {"blocked": 3, "errors": 1}, id="an-owner-that-cannot-be-worked-out",
        ),
    ],
)  # fmt: skip
def test_effect_of_a_change_on_a_package(
    make: Make, files: Files, mapping: dict[str, str], counted: dict[str, int], tmp_path: Path
) -> None:
    world = begin(tmp_path, make)
    commit_change(world, files)

    forth, back = compute_overview(world), compute_overview(world, "HEAD", "HEAD~1")

    assert find_kinds(forth) == mapping
    summary = build_impact_result(forth).summary
    assert {name: getattr(summary, name) for name in counted} == counted
    assert find_kinds(back).keys() == (
        set() if "orphaned" in mapping.values() and "changed" in mapping.values() else mapping.keys()
    )
    assert not set(find_kinds(back).values()) & {"blocked", "removed"}
    assert {finding.code for finding in back.fixed_findings} == {finding.code for finding in forth.new_findings}


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize(
    ("make", "path", "old", "code"),
    [
        pytest.param(presets_published, LOGS_FILE, '"name": "logs", ', "NameMissing", id="a-preset-without-a-name"),
        pytest.param(components_published, CART, '"name": "cart", ', "NameMissing", id="a-component-without-a-name"),
        pytest.param(placements_published, BANNER, '"name": "banner", ', "NameMissing", id="a-resource-without-a-name"),
        pytest.param(published, METRICS, "}", "YamlSyntax", id="a-file-that-breaks"),
    ],
)
def test_unreadable_object_is_not_reported_as_deleted(
    make: Make, path: str, old: str, code: str, tmp_path: Path
) -> None:
    world = begin(tmp_path, make)
    text = (world.config / path).read_text()
    commit_change(world, {path: text.replace(old, "", 1)})

    overview = compute_overview(world)

    assert code in {finding.code for finding in overview.new_errors}
    assert {*find_kinds(overview).values()} <= {"blocked"}
    assert world.sync().changed_branches == set()


def test_template_change_reports_the_pods_that_restart(tmp_path: Path) -> None:
    world = begin(tmp_path, templates_published)
    calm = kafka({"pod": {"priorityClassName": "calm"}})
    world.release("kafka", "v2", bundle("kafka", kafka=calm))
    commit_change(world, {"kafka/berlin.yaml": variant("kafka-berlin", "berlin", "kafka", "v2")})

    overview = compute_overview(world)

    synced = {place for place, outcome in world.sync().outcomes.items() if outcome == "draft"}
    assert find_drafts(overview) == synced == {"berlin/kafka", "berlin/brokers", "berlin/readers"}
    risks = [risk for risk in find_risks(overview) if risk.kind == "restarts pods"]
    assert {risk.packages for risk in risks} == {"berlin/brokers"}
    assert all("pods restart" in risk.reason for risk in risks)


def run_impact(world: World, *arguments: str) -> CommandResult:
    options = ("--config", str(world.config), "--fleet", str(world.fleet), "--cache", str(world.folder / "cache"))
    environment = {"PATH": os.environ["PATH"], "HOME": "/nonexistent"}
    return run_in(world.folder, environment, "impact", *arguments, *options)


@pytest.mark.quick_cases(every=7)
@pytest.mark.parametrize(
    ("text", "values"),
    [
        pytest.param("main~1..main", ["lisbon/web"], id="two-commits"),
        pytest.param("v1..", ["berlin/web", "lisbon/web"], id="what-is-on-disk"),
        pytest.param("..", ["berlin/web"], id="on-disk-against-the-branch"),
        pytest.param("..topic", ["berlin/web", "lisbon/web"], id="against-the-branch"),
        pytest.param("main...topic", ["berlin/web"], id="since-they-parted"),
        pytest.param("topic...", ["berlin/web", "lisbon/web"], id="on-disk-since-they-parted"),
        pytest.param("main..main", [], id="the-same"),
    ],
)
def test_range_has_the_semantics_of_git(text: str, values: list[str], tmp_path: Path) -> None:
    world = begin(tmp_path, policies_published)
    commit_config(world, first=True)
    git(world.config, "tag", "v1")
    git(world.config, "checkout", "--quiet", "-b", "topic")
    world.write({SITE: policy("site", [replicas(9, {"clusters": ["berlin"]})])})
    commit_config(world)
    git(world.config, "checkout", "--quiet", "main")
    world.write({SITE: policy("site", [replicas(5, {"clusters": ["berlin"]}), RULE])})
    commit_config(world)
    world.write({SITE: policy("site", [replicas(8, {"clusters": ["berlin"]}), RULE])})

    result = run_impact(world, text, "-o", "json")

    changes = [item for item in json.loads(result.stdout)["items"] if item["type"] == "change"]
    packages = [package for change in changes for package in change["packages"]]
    assert sorted(f"{package['target']}/{package['package']}" for package in packages) == values
    assert result.returncode == (2 if values else 0)


@pytest.mark.parametrize(
    ("text", "expected_message"),
    [
        pytest.param("nowhere..", "there is no commit 'nowhere' in ", id="a-commit-that-is-not-there"),
        pytest.param("main", "must be BASE..HEAD or BASE...HEAD", id="no-range"),
        pytest.param("a..b..c", "must be BASE..HEAD or BASE...HEAD", id="two-ranges"),
        pytest.param("main...other", "have no common ancestor", id="nothing-in-common"),
    ],
)
def test_invalid_range_exits_with_3(text: str, expected_message: str, tmp_path: Path) -> None:
    world = begin(tmp_path, policies_published)
    commit_config(world, first=True)
    git(world.config, "checkout", "--quiet", "--orphan", "other")
    world.write({SITE: policy("site", [RULE])})
    commit_config(world)

    result = run_impact(world, text)

    assert (result.returncode, result.stdout) == (3, "")
    assert expected_message in result.stderr


def test_missing_branch_from_the_settings_names_the_setting(tmp_path: Path) -> None:
    world = begin(tmp_path, policies_published)
    commit_config(world, first=True)
    git(world.config, "branch", "--move", "trunk")

    result = run_impact(world, "..trunk")

    assert (result.returncode, "; set `config.branch` to an existing branch" in result.stderr) == (3, True), (
        result.stderr
    )


@pytest.mark.parametrize("text", ["main~1..main", "main~1..", "..refs/pull/7/head"])
def test_config_can_be_a_repository(text: str, tmp_path: Path) -> None:
    world = begin(tmp_path, policies_published)
    commit_change(world, {SITE: policy("site", [replicas(5, {"clusters": ["berlin"]}), RULE])})
    git(world.folder, "clone", "--quiet", "--bare", str(world.config), "config.git")
    # This is the state on a forge with an open pull request.
    if "pull" in text:
        git(world.folder / "config.git", "update-ref", "refs/pull/7/head", "main")
        git(world.folder / "config.git", "update-ref", "refs/heads/main", "main~1")
    places = ("--config", "config.git", "--fleet", str(world.fleet), "--cache", "cache")

    result = run_in(world.folder, {"PATH": os.environ["PATH"], "HOME": "/nonexistent"}, "impact", text, *places)

    assert result.returncode == 2, result.stderr
    assert "changed: lisbon/web\n  Deployment web: replicas 2 → 7\n" in result.stdout


def test_config_folder_without_git_is_reported(tmp_path: Path) -> None:
    world = begin(tmp_path, policies_published)

    result = run_impact(world, "main..")

    assert result.returncode == 3
    assert "must be in the work tree of a Git repository" in result.stderr


def test_existing_error_does_not_fail_the_command(tmp_path: Path) -> None:
    world = begin(tmp_path, policies_published)
    world.write({"broken.yaml": policy("broken", [{"targetClusters": {"clusters": "berlin"}}])})
    commit_change(world, {"broken.yaml": "# moved by a line\n" + (world.config / "broken.yaml").read_text()})

    result = run_impact(world, "HEAD~1..HEAD")

    assert result.returncode == 0
    assert "Impact: no changes; " in result.stdout
    assert "error that existed before" in result.stdout


def test_new_error_exits_with_1_without_other_effects(tmp_path: Path) -> None:
    world = begin(tmp_path, policies_published)
    commit_change(world, {"broken.yaml": policy("broken", [{"targetClusters": {"clusters": "berlin"}}])})

    result = run_impact(world, "HEAD~1..HEAD")

    assert result.returncode == 1
    assert "new error: config: broken.yaml:" in result.stdout


@pytest.mark.parametrize("output", ["text", "markdown", "json"])
def test_impact_is_repeatable_and_changes_nothing(output: str, tmp_path: Path) -> None:
    world = begin(tmp_path, components_drafted)
    commit_change(world, {FENCE: fence(8443)})
    refs, files = read_refs(world.fleet), git(world.config, "status", "--porcelain")

    results = [run_impact(world, "HEAD~1..HEAD", "-o", output, "--diff-lines", "20") for _ in range(2)]

    assert results[0] == results[1]
    assert results[0].returncode == 2
    assert (read_refs(world.fleet), git(world.config, "status", "--porcelain")) == (refs, files)


# The tests of this section have unreachable repositories.


def _remove_repository(world: World, repository: Path, *, with_cache: bool) -> None:
    repository.rename(repository.with_suffix(".gone"))
    if with_cache:
        shutil.rmtree(world.folder / "cache", ignore_errors=True)


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize("with_cache", [pytest.param(True, id="never-read"), pytest.param(False, id="read-before")])
@pytest.mark.parametrize("lost", ["fleet", "catalog"])
def test_unreachable_repository_makes_the_impact_unknown(tmp_path: Path, lost: str, with_cache: bool) -> None:
    world = begin(tmp_path, published)
    commit_change(world, {"comment.yaml": "# nothing else\n"})
    run_impact(world, "HEAD~1..HEAD")
    _remove_repository(world, getattr(world, lost), with_cache=with_cache)

    result = run_impact(world, "HEAD~1..HEAD")

    assert result.returncode == 1, result.stderr
    assert "Impact: no known changes; " in result.stdout
    assert "the impact is unknown on 2 clusters (berlin, lisbon)" in result.stdout
    assert "next step" in result.stdout


def test_unknown_impact_is_in_the_json_output(tmp_path: Path) -> None:
    world = begin(tmp_path, published)
    commit_change(world, {"comment.yaml": "# nothing else\n"})
    _remove_repository(world, world.fleet, with_cache=True)

    result = run_impact(world, "HEAD~1..HEAD", "-o", "json")

    data = json.loads(result.stdout)
    assert (result.returncode, data["summary"]["isUnknown"]) == (1, True)
    assert data["summary"]["unknownClusters"] == ["berlin", "lisbon"]
    assert {(finding["code"], finding["status"]) for finding in data["findings"]} == {
        ("RepositoryUnreachable", "unknown")
    }


def test_effects_on_other_clusters_do_not_hide_an_unknown_impact(tmp_path: Path) -> None:
    world = begin(tmp_path, published)
    other = repository("lisbon", "./other.git")
    commit_change(world, {"clusters/lisbon.yaml": other, "metrics.yaml": None})

    result = run_impact(world, "HEAD~1..HEAD")

    assert result.returncode == 1
    assert "1 blocked; 1 error; the impact is unknown on 1 cluster (lisbon)\n" in result.stdout
