"""Validating: everything that is wrong or odd about a config is told, once, whether or not packages come of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pytest

from reconciler.bootstrap import build_services
from reconciler.controllers.codes import SELECTOR_MATCHES_NOTHING, UNUSED
from reconciler.controllers.components.codes import BUILD_UNUSED
from reconciler.controllers.plugin_presets.codes import EXPRESSION_UNUSABLE
from reconciler.inspect.validate import validate
from reconciler.krm.findings import Finding
from reconciler.settings import Settings
from tests.cases.case_world import Case, CaseWorld, find_cases
from tests.support.policies import ATTACHED, PLACED_BY, PLACED_ON, labelled, policy, propagation, replicas, resource
from tests.support.presets import option, preset, preset_world
from tests.support.world import World, catalog, package, repository, variant

# what validating alone tells
OF_LINT = {finding_code.name for finding_code in (SELECTOR_MATCHES_NOTHING, UNUSED, EXPRESSION_UNUSABLE, BUILD_UNUSED)}
MADE = [
    case for case in find_cases() if case.name.startswith(("composition/", "presets/")) and "before" not in case.data
]


def validated(folder: Path, **settings: object) -> tuple[Finding, ...]:
    """Return the findings of a config folder."""
    places = {"fleet": {"url": str(folder / "fleet.git")}, "cache": str(folder / "cache")}
    parts = build_services(Settings.model_validate({**places, **settings}), str(folder / "config"))
    with parts.remotes as remotes:
        return validate(parts.source, remotes, parts.pass_services).findings


def told(findings: tuple[Finding, ...]) -> list[tuple[str, str]]:
    """Return what is told of the config, in an order of its own; what packages hold is not."""
    return sorted(
        (finding.code, finding.message)
        for finding in findings
        if not finding.location.package and finding.code not in OF_LINT
    )


def odd_options(folder: Path) -> World:
    """Return a preset for three clusters with an option that its definition does not have."""
    world = preset_world(folder)
    world.write({"presets/logs.yaml": preset(options=[option("colour", "red")])})
    return world


def test_what_is_odd_about_packages_that_can_be_made_is_told(tmp_path: Path) -> None:
    odd_options(tmp_path)

    assert {finding.code for finding in validated(tmp_path)} == {"UndeclaredOption"}


def test_clusters_that_cannot_be_told_apart_are_told(tmp_path: Path) -> None:
    twin = repository("twin", branch="clusters/twin")
    odd_options(tmp_path).write({"a.yaml": twin, "b.yaml": twin.replace("name: twin", "name: twin\n  namespace: b")})

    assert [finding.code for finding in validated(tmp_path)].count("DestinationConflict") == 2


def test_each_finding_is_told_once(tmp_path: Path) -> None:
    odd_options(tmp_path)

    assert set(Counter(validated(tmp_path)).values()) == {1}


@pytest.mark.parametrize("case", MADE, ids=lambda case: case.name)
def test_validating_tells_what_a_pass_tells(case: Case, tmp_path: Path) -> None:
    world = CaseWorld(case, tmp_path)
    report, _ = world.sync()

    assert told(validated(tmp_path, **case.data.get("settings", {}))) == told(report.plan.list_findings())


def small_world(folder: Path, files: Mapping[str, str]) -> World:
    """Return a world of two clusters with these files in its config beside their Repositories."""
    world = World.create(folder)
    world.release("web", "v1", package("web"))
    world.write({"berlin.yaml": repository("berlin"), "lisbon.yaml": repository("lisbon"), **files})
    return world


def lines(findings: tuple[Finding, ...]) -> list[str]:
    return sorted(
        f"{finding.location.file}:{finding.location.line} {finding.code}: {finding.message}" for finding in findings
    )


def placed(name: str, **labels: str) -> str:
    """Return a ConfigMap of namespace edge that goes to Berlin."""
    marks = f"annotations: {{{PLACED_ON}: berlin}}, labels: {dict(labels)}"
    return f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, namespace: edge, {marks}}}\ndata: {{a: b}}\n"


def test_the_policy_that_a_placed_resource_names_must_be_there(tmp_path: Path) -> None:
    two = f"# two\n---\n{placed('right', **{ATTACHED: 'site'})}---\n{placed('wrong', **{ATTACHED: 'sites'})}"
    small_world(tmp_path, {"policies.yaml": policy("site", [replicas(3)]), "placed.yaml": two})
    (line,) = lines(validated(tmp_path))

    assert line.startswith(
        f"placed.yaml:8 PolicyNotFound: {ATTACHED} names ClusterOverridePolicy/_cluster/sites, which"
    )
    assert line.endswith("does not exist; did you mean ClusterOverridePolicy/_cluster/site?")


def test_a_policy_that_may_be_in_a_file_that_cannot_be_read_is_not_missed(tmp_path: Path) -> None:
    small_world(tmp_path, {"placed.yaml": placed("right", **{ATTACHED: "site"}), "broken.yaml": "a: [\n"})

    codes = [finding.code for finding in validated(tmp_path)]
    assert "YamlSyntax" in codes
    assert "PolicyNotFound" in codes
    assert not {*codes} & OF_LINT


def test_nothing_is_called_missing_while_a_file_cannot_be_read(tmp_path: Path) -> None:
    rules = [replicas(3, {"clusters": ["oslo"]}), replicas(4, {"clusterSelector": {"region": "east"}})]
    lost = resource("ConfigMap", "lost", on="oslo")
    world = small_world(tmp_path, {"policies.yaml": policy("site", rules), "placed.yaml": lost})
    absent = {"UnknownCluster", "RuleMatchesNoCluster"}

    assert absent <= {finding.code for finding in validated(tmp_path)}
    for broken in ("a: [\n", "apiVersion: greenhouse.sap/v1alpha1\nkind: Cluster\n"):
        world.write({"broken.yaml": broken})
        assert not absent & {finding.code for finding in validated(tmp_path)}


def test_where_a_missing_policy_is_ignored_nobody_is_told(tmp_path: Path) -> None:
    small_world(tmp_path, {"placed.yaml": placed("right", **{ATTACHED: "site"})})

    assert validated(tmp_path, rules={"on_missing_policy": "ignore"}) == ()


def test_one_package_that_two_want(tmp_path: Path) -> None:
    files = {f"{item}.yaml": variant(item, "berlin", "web") for item in ("first", "second")}
    files["nested.yaml"] = variant("third", "berlin", "web/inside", upstream="web")
    small_world(tmp_path, {"catalog.yaml": catalog(), **files})

    by = "is also requested by PackageVariant/default/first as web"
    assert [line for line in lines(validated(tmp_path)) if "DownstreamConflict" in line] == [
        f"nested.yaml:1 DownstreamConflict: package berlin/web/inside {by}",
        f"second.yaml:1 DownstreamConflict: package berlin/web {by}",
    ]


def test_a_function_that_cannot_run(tmp_path: Path) -> None:
    pipeline = "pipeline:\n  mutators:\n    - image: set-labels:v0.2\n    - image: nobodys:v1"
    files = {"catalog.yaml": catalog(),
             "web.yaml": variant("web", "berlin", "web", extra=pipeline)}  # fmt: skip
    small_world(tmp_path, files)

    (line,) = lines(validated(tmp_path))
    assert line.startswith("web.yaml:11 FunctionUnavailable: spec.pipeline.mutators[1]: function nobodys:v1 cannot run")


def test_what_selects_no_cluster_is_told_with_what_there_is(tmp_path: Path) -> None:
    files = {
        "policies.yaml": policy("site", [replicas(3, {"clusterSelector": {"region": "nort"}})]),
        "places.yaml": propagation("all", {"clusterSelector": {"regoin": "north"}}),
        "placed.yaml": labelled("web", "site").replace("labels: {", f"labels: {{{PLACED_BY}: all, "),
    }
    small_world(tmp_path, files)

    text = "\n".join(finding.message for finding in validated(tmp_path))
    assert "no cluster has region=nort; there are north, south; did you mean north?" in text
    assert "no cluster has a label regoin; did you mean region?" in text


@pytest.mark.parametrize(
    ("written", "text"),
    [
        pytest.param("  deploymnt: true", "spec.deploymnt: unknown field; did you mean deployment?", id="spec"),
        pytest.param("    branche: x", "spec.git.branche: unknown field; did you mean branch?", id="git"),
        pytest.param("  description: ours", "", id="one-of-others"),
        pytest.param("  owner: us", "", id="one-of-nobody"),
    ],
)
def test_a_field_of_a_repository_that_is_almost_one(written: str, text: str, tmp_path: Path) -> None:
    small_world(tmp_path, {"oslo.yaml": f"{repository('oslo')}{written}\n"})

    assert [finding.message for finding in validated(tmp_path) if finding.code == "FieldMisspelt"] == (
        [text] if text else []
    )


def _unreadable(folder: Path, **settings: object) -> list[tuple[str, str]]:
    findings = validated(folder, **settings)
    return [
        (finding.location.object or finding.location.pointer, finding.code)
        for finding in findings
        if finding.severity == "error"
    ]


@pytest.mark.parametrize(
    "url",
    [
        pytest.param("nowhere.git", id="nothing-there"),
        pytest.param("config", id="a-folder-that-is-no-repository"),
        pytest.param("http://git.example.com/fleet", id="a-scheme-that-is-not-allowed"),
        pytest.param("ftp://git.example.com/fleet", id="a-scheme-that-git-does-not-have"),
    ],
)
@pytest.mark.parametrize("setting", ["fleet", "status"])
def test_a_repository_of_the_settings_that_cannot_be_read_is_an_error(tmp_path: Path, setting: str, url: str) -> None:
    small_world(tmp_path, {})
    address = url if "://" in url else str(tmp_path / url)
    code = "UrlRefused" if "://" in url else "RepositoryUnreachable"

    assert _unreadable(tmp_path, **{setting: {"url": address}}) == [(f"{setting}.url", code)]


def test_a_wrong_fleet_url_is_one_error_for_all_its_clusters(tmp_path: Path) -> None:
    world = small_world(tmp_path, {})
    world.write({f"{name}.yaml": cluster(name) for name in ("berlin", "lisbon")})

    result = _unreadable(tmp_path, fleet={"url": str(tmp_path / "nowhere.git")})

    assert result == [("fleet.url", "RepositoryUnreachable")]


def test_a_cluster_repository_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    small_world(tmp_path, {"lisbon.yaml": repository("lisbon", "./nowhere.git")})

    assert _unreadable(tmp_path) == [("Repository/default/lisbon", "RepositoryUnreachable")]


def cluster(name: str) -> str:
    """Return a Cluster without a Repository, which lives in the fleet repository."""
    return f"apiVersion: greenhouse.sap/v1alpha1\nkind: Cluster\nmetadata: {{name: {name}, namespace: default}}\n"
