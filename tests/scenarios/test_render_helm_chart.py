"""Tests of the function render-helm-chart in pipelines: a package contains a chart and gets its resources."""

import json
import os
from pathlib import Path

import pytest

from reconciler.telemetry.metrics import REGISTRY
from tests.scenarios.test_charts import chart
from tests.support.charts import FakeHelm
from tests.support.command_line import run_in
from tests.support.metric_samples import read_metric
from tests.support.programs import find_program
from tests.support.world import World, small_world, variant

pytestmark = pytest.mark.second_pass

KPTFILE = """apiVersion: kpt.dev/v1
kind: Kptfile
metadata: {name: shop}
pipeline:
  mutators:
    - image: ghcr.io/kptdev/krm-functions-catalog/render-helm-chart:v0.2.3
      configPath: charts.yaml
"""
CONFIG = """apiVersion: fn.kpt.dev/v1alpha1
kind: RenderHelmChart
metadata:
  name: charts
  annotations: {config.kubernetes.io/local-config: "true"}
helmGlobals: {chartHome: charts}
helmCharts:
  - chartArgs: {name: web, version: 1.0.0}
    templateOptions:
      releaseName: web
      namespace: shop
      values:
        valuesInline: {replicas: 3}
"""
CONFIG_MAP = """apiVersion: v1
kind: ConfigMap
metadata:
  name: charts
  annotations: {config.kubernetes.io/local-config: "true"}
data: {chartHome: charts, name: web, releaseName: web, valuesFile: charts/web/values.yaml}
"""


def package(config: str = CONFIG, version: str = "1.0.0") -> dict[str, str]:
    files = {f"charts/web/{path}": text for path, text in chart(version).items()}
    return {"Kptfile": KPTFILE, "charts.yaml": config, **files}


def create_world(tmp_path: Path, program: str, config: str = CONFIG) -> World:
    world = small_world(tmp_path, sources={"helm": {"program": program}})
    world.release("shop", "v1", package(config))
    world.write({"shop.yaml": variant("shop", "berlin", "shop")})
    return world


@pytest.fixture
def fake(tmp_path: Path) -> FakeHelm:
    helm = FakeHelm(tmp_path / "bin")
    helm.behave(output="---\n# Source: web/templates/a.yaml\napiVersion: v1\nkind: Service\nmetadata: {name: web}\n")
    return helm


@pytest.mark.parametrize(
    ("config", "replicas"), [pytest.param(CONFIG, 3, id="RenderHelmChart"), pytest.param(CONFIG_MAP, 1, id="ConfigMap")]
)
def test_package_contains_the_resources_and_the_chart(tmp_path: Path, config: str, replicas: int) -> None:
    world = create_world(tmp_path, find_program("helm"), config)

    result = world.sync()

    assert result.outcomes["berlin/shop"] == "draft", result.findings
    files = world.files(world.fleet, "drafts/berlin", "shop")
    assert f"replicas: {replicas}" in files["deployment_web.yaml"]
    assert "kind: Service" in files["service_web.yaml"]
    assert files["charts/web/templates/deployment.yaml"].strip() == chart("1.0.0")["templates/deployment.yaml"].strip()
    assert world.sync_until_unchanged().report.render_count == 0


def test_resource_of_the_chart_has_the_layer_of_the_function(tmp_path: Path) -> None:
    world = create_world(tmp_path, find_program("helm"))
    world.sync()
    environment = {"PATH": os.environ["PATH"], "RECONCILER_SOURCES__HELM__PROGRAM": find_program("helm")}

    result = run_in(
        tmp_path, environment, "explain", "berlin/shop", "Deployment/web", "/spec/replicas", "-o", "json",
        *world.command_options,
    )  # fmt: skip

    assert result.returncode == 0, result.stderr
    (value,) = json.loads(result.stdout)["items"]
    (step,) = value["steps"]
    assert (step["layer"], step["after"]) == ("function", 3)
    assert "render-helm-chart" in json.dumps(step)


@pytest.mark.slow
def test_update_of_the_chart_replaces_and_removes_resources(tmp_path: Path) -> None:
    world = create_world(tmp_path, find_program("helm"))
    world.sync()
    world.merge("berlin", delete=True)
    world.sync()
    world.edit("clusters/berlin", "shop/deployment_web.yaml", "replicas: 3", "replicas: 7")
    updated = package(CONFIG.replace("version: 1.0.0", "version: 2.0.0"), "2.0.0")
    del updated["charts/web/templates/service.yaml"]
    world.release("shop", "v2", updated)
    world.write({"shop.yaml": variant("shop", "berlin", "shop", "v2")})

    result = world.sync()

    assert result.outcomes["berlin/shop"] == "draft", result.findings
    files = world.files(world.fleet, "drafts/berlin", "shop")
    assert "example.com/web:2.0.0" in files["deployment_web.yaml"]
    assert "service_web.yaml" not in files
    assert world.sync_until_unchanged().report.render_count == 0


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        pytest.param(
            "version: 1.0.0}", "auth: {kind: Secret, name: a}}",
            "the configuration's helmCharts[0].chartArgs.auth is not supported: use the chart as an upstream, with "
            "spec.upstream.chart of a PackageVariant",
            id="auth",
        ),
        pytest.param(
            "web, version: 1.0.0}", "db, repo: 'https://a.example', version: ~1.0}",
            'helmCharts[0].chartArgs.version must be an exact version, such as "1.2.3", but is "~1.0"', id="range",
        ),
        pytest.param(
            "web, version: 1.0.0}", "db, repo: '@charts', version: 1.0.0}",
            'helmCharts[0].chartArgs.repo must be the URL of a Repository with type helm, but is "@charts"', id="alias",
        ),
        pytest.param(
            "web, version: 1.0.0}", "db, repo: 'https://a.example', registry: a.example, version: 1.0.0}",
            "helmCharts[0].chartArgs must contain only one of repo and registry", id="repo-and-registry",
        ),
        pytest.param(
            "web, version: 1.0.0}", "db, registry: a.example/charts, version: 1.0.0}",
            "helmCharts[0].chartArgs requires version \"1.0.0\" of the chart \"db\", but the package does not contain it, and no Repository has the "
            "URL oci://a.example/charts. Next step: add this Repository to the config: {apiVersion: config.porch.kpt.dev/v1alpha1, kind: Repository",
            id="no-repository",
        ),
        pytest.param("chartHome: charts", "configHome: x", "helmGlobals.configHome", id="configHome"),
        pytest.param("releaseName: web", "nameTemplate: web", "templateOptions.nameTemplate", id="nameTemplate"),
        pytest.param(
            "releaseName: web", "skipTests: true", "helmCharts[0].templateOptions.releaseName must be set",
            id="no-release-name",
        ),
        pytest.param(
            "name: web,", "name: absent,",
            'helmCharts[0].chartArgs.name refers to the chart "charts/absent", which the package does not', id="no-chart",
        ),
        pytest.param(
            "version: 1.0.0", "version: 9.0.0", 'chartArgs.version is "9.0.0", and "charts/web" has version "1.0.0"',
            id="other-version",
        ),
        pytest.param(
            "chartHome: charts", "chartHome: ../charts",
            'helmGlobals.chartHome must be a path in the package, but is "../charts/web"', id="path-outside",
        ),
        pytest.param(
            "valuesInline: {replicas: 3}", "valuesFiles: ['https://a.example/v.yaml']",
            'valuesFiles must be a path in the package, but is "https://a.example/v.yaml"', id="values-url",
        ),
        pytest.param(
            "valuesInline: {replicas: 3}", "valuesFiles: [absent.yaml]", "the package contains no file \"absent.yaml",
            id="no-values-file",
        ),
        pytest.param(
            "kind: RenderHelmChart", "kind: Other",
            'the configuration must be a ConfigMap or a RenderHelmChart of fn.kpt.dev, but is "Other"', id="kind",
        ),
    ],
)  # fmt: skip
def test_invalid_configuration_is_an_error_result(
    tmp_path: Path, fake: FakeHelm, old: str, new: str, message: str
) -> None:
    assert old in CONFIG
    world = create_world(tmp_path, str(fake.path), CONFIG.replace(old, new))

    result = world.sync()

    (finding,) = (finding for finding in result.findings if finding.code == "RenderFailed")
    assert message in finding.message
    assert not fake.calls()


FILE_VALUES = "replicas: 2\nname: file\n"


def create_values_world(tmp_path: Path, fake: FakeHelm, mode: str, files: str, content: str) -> World:
    """Return a world whose package has values files, and `charts/values.yaml` with a content."""
    inline = "valuesInline: {replicas: 3}\n"
    config = CONFIG.replace(inline, f"{inline}        valuesMerge: {mode}\n        valuesFiles: {files}\n")
    world = create_world(tmp_path, str(fake.path), config)
    world.release(
        "shop", "v2", {**package(config), "charts/values.yaml": content, ".krmignore": "charts/values.yaml\n"}
    )
    world.write({"shop.yaml": variant("shop", "berlin", "shop", "v2")})
    return world


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize(
    ("mode", "files", "values"),
    [
        pytest.param("override", "[charts/values.yaml]", {"replicas": 3, "name": "file"}, id="override"),
        pytest.param("merge", "[charts/values.yaml]", {"replicas": 2, "name": "file"}, id="merge"),
        pytest.param("replace", "[charts/values.yaml]", {"replicas": 3}, id="replace"),
        pytest.param("merge", "[]", {"replicas": 1}, id="merge-with-the-defaults-of-the-chart"),
    ],
)
def test_values(tmp_path: Path, fake: FakeHelm, mode: str, files: str, values: dict[str, object]) -> None:
    world = create_values_world(tmp_path, fake, mode, files, FILE_VALUES)

    assert world.sync().outcomes["berlin/shop"] == "draft"

    assert json.loads(fake.inputs()["files"]["values.json"]) == values


@pytest.mark.parametrize("content", ["", "# nothing\n", "---\n"], ids=["empty", "comment", "empty-document"])
def test_values_file_without_values_is_accepted(tmp_path: Path, fake: FakeHelm, content: str) -> None:
    world = create_values_world(tmp_path, fake, "override", "[charts/values.yaml]", content)

    assert world.sync().outcomes["berlin/shop"] == "draft"

    assert json.loads(fake.inputs()["files"]["values.json"]) == {"replicas": 3}


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param(
            "a: ENC[AES256_GCM,data:x,iv:x,tag:x,type:str]\nsops: {mac: x, lastmodified: '2026-01-01T00:00:00Z'}\n",
            "charts/values.yaml:1: a values file must not be encrypted with SOPS", id="encrypted",
        ),
        pytest.param(
            "a: 1\n---\nb: 1\n", "charts/values.yaml:3: a values file must contain one document",
            id="several-documents",
        ),
        pytest.param("[a]\n", "charts/values.yaml:1: a values file must contain a map", id="list"),
        pytest.param("a: [\n", "charts/values.yaml:2: ", id="syntax"),
    ],
)  # fmt: skip
def test_invalid_values_file_is_an_error_result(tmp_path: Path, fake: FakeHelm, content: str, message: str) -> None:
    world = create_values_world(tmp_path, fake, "override", "[charts/values.yaml]", content)

    (finding,) = (finding for finding in world.sync().findings if finding.code == "RenderFailed")

    assert f"helmCharts[0].templateOptions.values.valuesFiles: {message}" in finding.message
    assert not fake.calls()


def test_call_is_measured_as_a_builtin_function(tmp_path: Path, fake: FakeHelm) -> None:
    world = create_world(tmp_path, str(fake.path))
    with REGISTRY.export():
        world.sync()
        calls = read_metric("reconciler_function_duration_seconds_count")

    assert set(calls) == {'{result="success",runtime="builtin"}'}


def test_missing_program_is_reported_until_it_is_installed(tmp_path: Path, fake: FakeHelm) -> None:
    world = create_world(tmp_path, str(fake.path))
    fake.path.unlink()

    result = world.sync()

    (finding,) = (finding for finding in result.findings if finding.code == "FunctionUnavailable")
    assert "the program helm is not available; install it, or set `sources.helm.program`" in finding.message
    assert world.sync_until_unchanged().report.render_count == 0
    fake.install()
    world.sync()
    assert "service_web.yaml" in world.paths(world.fleet, "drafts/berlin", "shop")


def test_chart_folder_of_a_package_without_the_function_is_not_ignored(tmp_path: Path, fake: FakeHelm) -> None:
    world = create_world(tmp_path, str(fake.path))
    kptfile = "apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata: {name: shop}\n"
    world.release("shop", "v2", {**package(), "Kptfile": kptfile})
    world.write({"shop.yaml": variant("shop", "berlin", "shop", "v2")})

    assert "MergeCommentsSkipped" in world.sync().codes
