"""Tests of `reconciler validate`: each error and warning of a config is reported once, with or without packages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pytest

from reconciler.bootstrap.services import build_services
from reconciler.controllers.codes import ControllerCodes
from reconciler.controllers.components.codes import ComponentCodes
from reconciler.controllers.plugin_presets.codes import PluginCodes
from reconciler.inspect.validate import validate
from reconciler.krm.findings import Finding
from reconciler.settings import Settings
from tests.cases.case_world import Case, CaseWorld, find_cases
from tests.support.policies import ATTACHED, PLACED_BY, PLACED_ON, labelled, policy, propagation, replicas, resource
from tests.support.presets import option, preset, preset_world
from tests.support.world import World, catalog, package, repository, variant

# Only `validate` reports these codes.
OF_LINT = {
    finding_code.name
    for finding_code in (
        ControllerCodes.SELECTOR_MATCHES_NOTHING,
        ControllerCodes.UNUSED,
        PluginCodes.EXPRESSION_UNUSABLE,
        ComponentCodes.BUILD_UNUSED,
    )
}
MADE = [
    case for case in find_cases() if case.name.startswith(("composition/", "presets/")) and "before" not in case.data
]


def validate_config(folder: Path, **settings: object) -> tuple[Finding, ...]:
    """Return the findings of a config folder."""
    locations = {"fleet": {"url": str(folder / "fleet.git")}, "cache": str(folder / "cache")}
    services = build_services(Settings.model_validate({**locations, **settings}), str(folder / "config"))
    with services.remotes as remotes:
        return validate(services.source, remotes, services.pass_services).findings


def list_config_findings(findings: tuple[Finding, ...]) -> list[tuple[str, str]]:
    """Return sorted codes and messages of the findings about the config, without findings about package content."""
    return sorted(
        (finding.code, finding.message)
        for finding in findings
        if not finding.location.package and finding.code not in OF_LINT
    )


def build_world_with_unknown_option(folder: Path) -> World:
    """Return a preset for three clusters with an option that its definition does not have."""
    world = preset_world(folder)
    world.write({"presets/logs.yaml": preset(options=[option("colour", "red")])})
    return world


def test_a_warning_about_a_renderable_package_is_reported(tmp_path: Path) -> None:
    build_world_with_unknown_option(tmp_path)

    assert {finding.code for finding in validate_config(tmp_path)} == {"UndeclaredOption"}


def test_two_repositories_with_the_same_target_are_reported(tmp_path: Path) -> None:
    twin = repository("twin", branch="clusters/twin")
    build_world_with_unknown_option(tmp_path).write(
        {"a.yaml": twin, "b.yaml": twin.replace("name: twin", "name: twin\n  namespace: b")}
    )

    assert [finding.code for finding in validate_config(tmp_path)].count("DestinationConflict") == 2


def test_each_finding_is_reported_once(tmp_path: Path) -> None:
    build_world_with_unknown_option(tmp_path)

    assert set(Counter(validate_config(tmp_path)).values()) == {1}


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize("case", MADE, ids=lambda case: case.name)
def test_validate_and_a_pass_report_the_same_findings(case: Case, tmp_path: Path) -> None:
    world = CaseWorld(case, tmp_path)
    report, _ = world.sync()

    assert list_config_findings(validate_config(tmp_path, **case.data.get("settings", {}))) == list_config_findings(
        report.plan.list_findings()
    )


def build_two_clusters(folder: Path, files: Mapping[str, str]) -> World:
    """Return a world of two clusters with these additional files in its config."""
    world = World.create(folder)
    world.release("web", "v1", package("web"))
    world.write({"berlin.yaml": repository("berlin"), "lisbon.yaml": repository("lisbon"), **files})
    return world


def format_findings(findings: tuple[Finding, ...]) -> list[str]:
    return sorted(
        f"{finding.location.file}:{finding.location.line} {finding.code}: {finding.message}" for finding in findings
    )


def build_placed_config_map(name: str, **labels: str) -> str:
    """Return a ConfigMap of the namespace edge that is placed on Berlin."""
    marks = f"annotations: {{{PLACED_ON}: berlin}}, labels: {dict(labels)}"
    return f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, namespace: edge, {marks}}}\ndata: {{a: b}}\n"


def test_a_placed_resource_with_a_missing_policy_is_an_error(tmp_path: Path) -> None:
    config_text = f"# two\n---\n{build_placed_config_map('right', **{ATTACHED: 'site'})}---\n{build_placed_config_map('wrong', **{ATTACHED: 'sites'})}"
    build_two_clusters(tmp_path, {"policies.yaml": policy("site", [replicas(3)]), "placed.yaml": config_text})
    (line,) = format_findings(validate_config(tmp_path))

    assert line.startswith(f"placed.yaml:8 PolicyNotFound: the label {ATTACHED} refers to ")
    assert line.endswith(
        'ClusterOverridePolicy sites, but this policy does not exist; did you mean "ClusterOverridePolicy site"?'
    )


def test_a_missing_policy_is_reported_while_a_file_is_unreadable(tmp_path: Path) -> None:
    build_two_clusters(
        tmp_path, {"placed.yaml": build_placed_config_map("right", **{ATTACHED: "site"}), "broken.yaml": "a: [\n"}
    )

    codes = [finding.code for finding in validate_config(tmp_path)]
    assert "YamlSyntax" in codes
    assert "PolicyNotFound" in codes
    assert not {*codes} & OF_LINT


def test_clusters_are_not_reported_as_missing_while_a_file_is_unreadable(tmp_path: Path) -> None:
    rules = [replicas(3, {"clusters": ["oslo"]}), replicas(4, {"clusterSelector": {"region": "east"}})]
    resource_text = resource("ConfigMap", "lost", on="oslo")
    world = build_two_clusters(tmp_path, {"policies.yaml": policy("site", rules), "placed.yaml": resource_text})
    absent = {"UnknownCluster", "RuleMatchesNoCluster"}

    assert absent <= {finding.code for finding in validate_config(tmp_path)}
    for broken in ("a: [\n", "apiVersion: greenhouse.sap/v1alpha1\nkind: Cluster\n"):
        world.write({"broken.yaml": broken})
        assert not absent & {finding.code for finding in validate_config(tmp_path)}


def test_an_ignored_missing_policy_is_not_reported(tmp_path: Path) -> None:
    build_two_clusters(tmp_path, {"placed.yaml": build_placed_config_map("right", **{ATTACHED: "site"})})

    assert validate_config(tmp_path, rules={"on_missing_policy": "ignore"}) == ()


def test_two_variants_of_one_package_are_a_conflict(tmp_path: Path) -> None:
    files = {f"{item}.yaml": variant(item, "berlin", "web") for item in ("first", "second")}
    files["nested.yaml"] = variant("third", "berlin", "web/inside", upstream="web")
    build_two_clusters(tmp_path, {"catalog.yaml": catalog(), **files})

    by = "is not written, because PackageVariant default/first requests"
    step = "Next step: change the package name in one of the two objects"
    assert [line for line in format_findings(validate_config(tmp_path)) if "DownstreamConflict" in line] == [
        f"nested.yaml:1 DownstreamConflict: package berlin/web/inside {by} package berlin/web, and packages cannot be nested. {step}",
        f"second.yaml:1 DownstreamConflict: package berlin/web {by} the same package. {step}",
    ]


def test_an_unavailable_function_is_reported(tmp_path: Path) -> None:
    pipeline = "pipeline:\n  mutators:\n    - image: set-labels:v0.2\n    - image: nobodys:v1"
    files = {"catalog.yaml": catalog(),
             "web.yaml": variant("web", "berlin", "web", extra=pipeline)}  # fmt: skip
    build_two_clusters(tmp_path, files)

    (line,) = format_findings(validate_config(tmp_path))
    assert line.startswith(
        "web.yaml:11 FunctionUnavailable: the function nobodys:v1 in spec.pipeline.mutators[1] cannot run"
    )


def test_a_selector_without_clusters_is_reported_with_the_existing_labels(tmp_path: Path) -> None:
    files = {
        "policies.yaml": policy("site", [replicas(3, {"clusterSelector": {"region": "nort"}})]),
        "places.yaml": propagation("all", {"clusterSelector": {"regoin": "north"}}),
        "placed.yaml": labelled("web", "site").replace("labels: {", f"labels: {{{PLACED_BY}: all, "),
    }
    build_two_clusters(tmp_path, files)

    text = "\n".join(finding.message for finding in validate_config(tmp_path))
    assert 'no cluster has the label "region=nort"; existing values: "north", "south"; did you mean "north"?' in text
    assert 'no cluster has the label "regoin"; did you mean "region"?' in text


@pytest.mark.parametrize(
    ("written", "text"),
    [
        pytest.param("  deploymnt: true", 'spec.deploymnt is an unknown field; did you mean "deployment"?', id="spec"),
        pytest.param("    branche: x", 'spec.git.branche is an unknown field; did you mean "branch"?', id="git"),
        pytest.param("  description: ours", "", id="a-field-of-porch"),
        pytest.param("  owner: us", "", id="an-unknown-field"),
    ],
)
def test_a_misspelled_field_of_a_repository_is_reported(written: str, text: str, tmp_path: Path) -> None:
    build_two_clusters(tmp_path, {"oslo.yaml": f"{repository('oslo')}{written}\n"})

    assert [finding.message for finding in validate_config(tmp_path) if finding.code == "FieldMisspelt"] == (
        [text] if text else []
    )


def _list_errors(folder: Path, **settings: object) -> list[tuple[str, str]]:
    findings = validate_config(folder, **settings)
    return [
        (finding.location.object or finding.location.pointer, finding.code)
        for finding in findings
        if finding.severity == "error"
    ]


@pytest.mark.parametrize(
    "url",
    [
        pytest.param("nowhere.git", id="a-missing-folder"),
        pytest.param("config", id="a-folder-without-repository"),
        pytest.param("http://git.example.com/fleet", id="a-scheme-that-is-not-allowed"),
        pytest.param("ftp://git.example.com/fleet", id="an-unknown-scheme"),
    ],
)
@pytest.mark.parametrize("setting", ["fleet", "status"])
def test_an_unreadable_repository_of_the_settings_is_an_error(tmp_path: Path, setting: str, url: str) -> None:
    build_two_clusters(tmp_path, {})
    address = url if "://" in url else str(tmp_path / url)
    code = "UrlRefused" if "://" in url else "RepositoryUnreachable"

    assert _list_errors(tmp_path, **{setting: {"url": address}}) == [(f"{setting}.url", code)]


def test_a_wrong_fleet_url_is_one_error_for_all_its_clusters(tmp_path: Path) -> None:
    world = build_two_clusters(tmp_path, {})
    world.write({f"{name}.yaml": build_cluster(name) for name in ("berlin", "lisbon")})

    result = _list_errors(tmp_path, fleet={"url": str(tmp_path / "nowhere.git")})

    assert result == [("fleet.url", "RepositoryUnreachable")]


def test_an_unreadable_cluster_repository_is_an_error(tmp_path: Path) -> None:
    build_two_clusters(tmp_path, {"lisbon.yaml": repository("lisbon", "./nowhere.git")})

    assert _list_errors(tmp_path) == [("Repository/default/lisbon", "RepositoryUnreachable")]


def build_cluster(name: str) -> str:
    """Return a Cluster without a Repository, which uses the fleet repository."""
    return f"apiVersion: greenhouse.sap/v1alpha1\nkind: Cluster\nmetadata: {{name: {name}, namespace: default}}\n"
