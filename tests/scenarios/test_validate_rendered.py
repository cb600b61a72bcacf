"""Tests of `validate --rendered`: invalid values are reported with the config line that sets them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import reconciler.bootstrap.pass_services as parts
from reconciler.bootstrap.renderer_factory import SettingsRendererFactory
from reconciler.bootstrap.schema_folder import build_schemas
from reconciler.bootstrap.services import build_services
from reconciler.executors.processes import ProcessExecutor
from reconciler.inspect.validate import ConformanceOptions, ValidatedConfig, validate_rendered
from reconciler.krm.schema.kubernetes_apis import KubernetesRelease
from reconciler.krm.schema.validation import list_installed_releases
from reconciler.output.findings.code_scanning import (
    FindingLocator,
    build_sarif_log,
    build_validation_result,
    format_validation_text,
    locate_findings,
)
from reconciler.reconcile.codes import ALL_CODES
from reconciler.settings import Settings
from tests.support.policies import ATTACHED, PLACED_ON, labelled, policy, replicas
from tests.support.world import World, catalog, deployment, package, repository, variant

pytestmark = pytest.mark.skipif(not list_installed_releases(), reason="the extra k8s-schemas is not installed")
NOT_INSTALLED = (
    "error NotValidated: 1 resource of built-in kinds in berlin/resources/edge was not validated, because the extra"
    " k8s-schemas contains the schemas of Kubernetes 1.25 to 1.37, but not of {}; use --schemas DIR"
)
SELECTED = "spec:\n  selector: {matchLabels: {a: b}}\n"
VERSION = "reconciler.dev/kubernetes-version"
SITE = """\
apiVersion: example.org/{version}
kind: Site
metadata: {{name: s, namespace: edge, annotations: {{{placed}: berlin}}}}
spec: {spec}
"""
CRD = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: sites.example.org}
spec:
  group: example.org
  names: {kind: Site}
  versions:
    - name: v1
      served: true
      schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: integer}}}}}}
"""


def add_selector(text: str) -> str:
    """Return a Deployment with the required selector."""
    return text.replace("spec:\n", SELECTED, 1)


def build_placed_object(api_version: str, kind: str, spec: str = "{}", clusters: str = "berlin") -> str:
    metadata = f"{{name: one, namespace: edge, annotations: {{{PLACED_ON}: '{clusters}'}}}}"
    return f"apiVersion: {api_version}\nkind: {kind}\nmetadata: {metadata}\nspec: {spec}\n"


def build_world(folder: Path, files: Mapping[str, str], release: str = "1.31") -> World:
    """Return a world of two clusters with a package `web`. Berlin has the given Kubernetes release."""
    world = World.create(folder)
    world.release("web", "v1", {**package("web"), "deployment.yaml": add_selector(labelled("web", "site"))})
    berlin = repository("berlin").replace("spec:", f"  annotations: {{{VERSION}: '{release}'}}\nspec:", 1)
    world.write({"catalog.yaml": catalog(), "berlin.yaml": berlin, "lisbon.yaml": repository("lisbon"), **files})
    return world


def validate_rendered_config(
    folder: Path, release: KubernetesRelease | None = (1, 37), **settings: object
) -> ValidatedConfig:
    location_settings = {"fleet": {"url": str(folder / "fleet.git")}, "cache": str(folder / "cache")}
    built = build_services(
        Settings.model_validate({**location_settings, **settings}),
        str(folder / "config"),
        should_treat_missing_as_empty=True,
    )
    with built.remotes as remotes:
        return validate_rendered(
            built.source, remotes, built.pass_services, ConformanceOptions(build_schemas(None), release)
        )


def format_findings(validation_result: ValidatedConfig) -> list[str]:
    locator = FindingLocator(validation_result.objects.values(), validation_result.owner_sets)
    located_findings = locate_findings(validation_result.findings, locator, "", "reconciler.yaml")
    return format_validation_text(build_validation_result(located_findings, "")).splitlines()


def test_a_valid_config_has_no_findings(tmp_path: Path) -> None:
    build_world(tmp_path, {"web.yaml": variant("web", "berlin", "web"), "policies.yaml": policy("site", [replicas(3)])})

    assert format_findings(validate_rendered_config(tmp_path)) == ["no findings"]


def test_an_invalid_value_is_reported_with_the_line_of_its_policy(tmp_path: Path) -> None:
    files = {"web.yaml": variant("web", "berlin", "web"), "policies.yaml": policy("site", [replicas("many")])}
    build_world(tmp_path, files)
    (line,) = format_findings(validate_rendered_config(tmp_path))

    assert line.startswith("berlin/web policies.yaml:4 (PackageVariant default/web): error ResourceInvalid: ")
    assert (
        'spec.replicas must have the type integer, but is "many", according to Kubernetes 1.31; ClusterOverridePolicy site '
        in line
    )
    assert line.endswith(" sets this value in deployment.yaml")


def test_a_process_executor_reports_the_same_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {"web.yaml": variant("web", "berlin", "web"), "policies.yaml": policy("site", [replicas("many")])}
    build_world(tmp_path, files)
    expected = format_findings(validate_rendered_config(tmp_path))
    renderer_factory = SettingsRendererFactory(Settings().model_dump_json(), "")
    monkeypatch.setattr(
        parts, "build_executor", lambda settings, search_path: ProcessExecutor(2, renderer_factory, min_jobs=1)
    )

    assert format_findings(validate_rendered_config(tmp_path)) == expected


def test_a_second_run_after_a_pass_reports_the_same(tmp_path: Path) -> None:
    files = {"web.yaml": variant("web", "berlin", "web"), "policies.yaml": policy("site", [replicas("many")])}
    world = build_world(tmp_path, files)
    before = format_findings(validate_rendered_config(tmp_path))
    world.sync()

    assert format_findings(validate_rendered_config(tmp_path)) == before


def test_an_invalid_placed_resource_is_reported_with_its_field(tmp_path: Path) -> None:
    build_world(
        tmp_path,
        {"door.yaml": build_placed_object("v1", "Service", "\n  ports:\n    - port: '80'\n      prot: TCP", "*")},
    )

    in_ports = "(Placement edge): {} Service edge/one: spec.ports[0].{} {}"
    wrong, unknown = (
        'port must have the type integer, but is "80", according to Kubernetes',
        "prot is an unknown field, according to Kubernetes",
    )
    assert format_findings(validate_rendered_config(tmp_path)) == [
        f"{cluster}/resources/edge door.yaml:{line} {in_ports.format(code, what, release)}"
        for cluster, release in (("berlin", "1.31"), ("lisbon", "1.37"))
        for line, code, what in ((6, "error ResourceInvalid:", wrong), (7, "warning FieldNotInSchema:", unknown))
    ]


@pytest.mark.parametrize(
    ("api_version", "kind", "release", "expected"),
    [
        pytest.param("extensions/v1beta1", "Ingress", "1.31",
                     "error ApiNotServed: Ingress edge/one: apiVersion is extensions/v1beta1, which"
                     " was removed in Kubernetes 1.22 (the cluster runs Kubernetes 1.31); use networking.k8s.io/v1", id="removed-version"),
        pytest.param("policy/v1beta1", "PodDisruptionBudget", "1.24",
                     f"{NOT_INSTALLED.format('1.24')}\n"
                     "warning ApiDeprecated: PodDisruptionBudget edge/one: apiVersion is policy/v1beta1, which is"
                     " deprecated since Kubernetes 1.21, and removed in 1.25; use policy/v1", id="deprecated-version"),
        pytest.param("networking.k8s.io/v1", "ServiceCIDR", "1.31",
                     "error ApiNotServed: ServiceCIDR edge/one: apiVersion is networking.k8s.io/v1, but"
                     " Kubernetes 1.31 has no ServiceCIDR in this API version", id="later-version"),
        pytest.param("example.org/v1", "Nobody", "1.31",
                     "info SchemaMissing: 1 resource of example.org/v1 Nobody in berlin/resources/edge was not validated,"
                     " because no schema of this kind is known", id="unknown-kind"),
        pytest.param("v1", "Service", "1.20",
                     NOT_INSTALLED.format("1.20"), id="unknown-release"),
    ],
)  # fmt: skip
def test_removed_and_deprecated_apis_are_reported_by_release(
    api_version: str, kind: str, release: str, expected: str, tmp_path: Path
) -> None:
    build_world(tmp_path, {"one.yaml": build_placed_object(api_version, kind)}, release)

    assert [
        line.partition("): ")[2] for line in format_findings(validate_rendered_config(tmp_path))
    ] == expected.splitlines()


@pytest.mark.parametrize(
    ("version", "spec", "expected"),
    [
        pytest.param("v1", "{size: 1}", [], id="valid"),
        pytest.param(
            "v1",
            "{size: big}",
            ['spec.size must have the type integer, but is "big", according to its CustomResourceDefinition'],
            id="invalid",
        ),
        pytest.param(
            "v2",
            "{}",
            ["apiVersion is example.org/v2, but its CustomResourceDefinition serves v1"],
            id="unknown-version",
        ),
    ],
)
@pytest.mark.parametrize("definition_location", ["config", "package"])
def test_a_custom_resource_is_validated_with_its_definition(
    version: str, spec: str, expected: list[str], definition_location: str, tmp_path: Path
) -> None:
    """The definition can be an object of the config or a resource of a package on the same cluster."""
    files = {"site.yaml": SITE.format(version=version, placed=PLACED_ON, spec=spec)}
    world = build_world(tmp_path, {**files, **({"crd.yaml": CRD} if definition_location == "config" else {})})
    if definition_location == "package":
        world.release("crds", "v1", {**package("crds", crd=CRD), "deployment.yaml": add_selector(deployment("crds"))})
        world.write({"crds.yaml": variant("crds", "berlin", "crds")})

    values = [line for line in format_findings(validate_rendered_config(tmp_path)) if "Site edge" in line]
    assert [line.partition("Site edge/s: ")[2] for line in values] == expected


def test_the_same_error_on_several_clusters_is_reported_once(tmp_path: Path) -> None:
    files = {f"{cluster}.yaml": repository(cluster) for cluster in ("lisbon", "oslo")}
    files |= {f"web-{cluster}.yaml": variant(f"web-{cluster}", cluster, "web") for cluster in ("lisbon", "oslo")}
    build_world(tmp_path, {**files, "policies.yaml": policy("site", [replicas("many")])})
    (line,) = format_findings(validate_rendered_config(tmp_path))

    assert line.startswith("lisbon/web ")
    assert line.endswith("; same violation in oslo/web")


def test_a_cluster_without_a_known_release_is_reported(tmp_path: Path) -> None:
    build_world(tmp_path, {"web.yaml": variant("web", "lisbon", "web"), "policies.yaml": policy("site", [replicas(3)])})
    (line,) = format_findings(validate_rendered_config(tmp_path, None))

    assert line.startswith(
        "lisbon.yaml:1: info KubernetesVersionUnknown: the Kubernetes version of lisbon is unknown, so validation uses Kubernetes"
    )


def test_unused_policies_and_unreached_rules_are_reported(tmp_path: Path) -> None:
    rules = [replicas(3, {"clusters": ["berlin"]}), replicas(4, {"clusters": ["lisbon"]})]
    used = {"web.yaml": variant("web", "berlin", "web"), "a.yaml": policy("site", rules)}
    build_world(tmp_path, {**used, "b.yaml": policy("idle", rules)})
    unreached, unused = format_findings(validate_rendered_config(tmp_path))

    assert unreached.startswith("a.yaml:4: warning RuleUnreached: spec.overrideRules[1] has no effect, because")
    assert unused.startswith("b.yaml:1: warning PolicyUnused: ClusterOverridePolicy ")


def test_values_of_secrets_are_not_shown(tmp_path: Path) -> None:
    secret = build_placed_object("v1", "Secret").replace("spec: {}", "data: {a: [hunter2], b: {c: hunter3}}")
    build_world(tmp_path, {"secret.yaml": secret})

    text = "\n".join(format_findings(validate_rendered_config(tmp_path)))
    assert "data.a must have the type string, but is *****" in text
    assert "hunter" not in text


def test_an_error_in_a_package_of_a_set_is_located_at_the_set(tmp_path: Path) -> None:
    fan: dict[str, Any] = {"targets": "[{repositories: [{name: lisbon}]}]"}
    text = (
        "apiVersion: config.porch.kpt.dev/v1alpha2\nkind: PackageVariantSet\nmetadata: {name: fan}\nspec:\n"
        f"  upstream: {{repo: catalog, package: bad, revision: v1}}\n  targets: {fan['targets']}\n"
    )
    world = build_world(tmp_path, {"fan.yaml": text})
    world.release("bad", "v1", package("bad"))
    validation_result = validate_rendered_config(tmp_path)
    located = locate_findings(
        validation_result.findings,
        FindingLocator(validation_result.objects.values(), validation_result.owner_sets),
        "",
        "reconciler.yaml",
    )
    (result,) = build_sarif_log(located, "1", ALL_CODES, "validate-rendered")["runs"][0]["results"]

    assert result["locations"][0]["physicalLocation"]["artifactLocation"] == {"uri": "fan.yaml"}
    assert result["message"]["text"].startswith("lisbon/bad deployment.yaml:5: Deployment bad: spec must have")


def test_a_missing_policy_in_a_label_is_the_only_finding_of_its_resource(tmp_path: Path) -> None:
    config_text = (
        f"{build_placed_object('v1', 'Service').replace('annotations', f'labels: {{{ATTACHED}: gone}}, annotations')}"
    )
    build_world(tmp_path, {"two.yaml": config_text})

    assert [
        line.partition(": ")[2].partition(":")[0] for line in format_findings(validate_rendered_config(tmp_path))
    ] == ["error PolicyNotFound"]
