"""Tests of Helm charts as upstreams: the package contains the rendered resources, and updates keep local changes."""

import json
from pathlib import Path

import pytest

from reconciler.krm.yaml import parse_yaml
from tests.support.charts import FakeHelm, read_source
from tests.support.programs import find_program
from tests.support.world import World, small_world, variant

pytestmark = pytest.mark.second_pass

WEB = read_source("web")
DEPLOYMENT, SERVICE = WEB["templates/deployment.yaml"], WEB["templates/service.yaml"]
HELM = "helm:\n  namespace: shop\n  values: {replicas: 3}"


def chart(version: str, **templates: str) -> dict[str, str]:
    """Return the files of a small chart. `templates` adds or replaces templates by name."""
    return {**read_source("web", version), **{f"templates/{name}.yaml": text for name, text in templates.items()}}


def request(revision: str = "v1", extra: str = HELM, name: str = "web", cluster: str = "berlin") -> str:
    return variant(name, cluster, "web", revision, upstream="charts/web", extra=extra)


def create_world(tmp_path: Path, program: str) -> World:
    world = small_world(tmp_path, sources={"helm": {"program": program}})
    world.release("charts/web", "v1", chart("1.0.0"))
    world.write({"web.yaml": request()})
    return world


@pytest.fixture
def world(tmp_path: Path) -> World:
    return create_world(tmp_path, find_program("helm"))


def test_package_contains_the_rendered_resources(world: World) -> None:
    result = world.sync()

    assert result.outcomes["berlin/web"] == "draft"
    assert world.paths(world.fleet, "drafts/berlin", "web") == [
        "Kptfile",
        "deployment-web.yaml",
        "package-context.yaml",
        "service-web.yaml",
    ]
    text = world.text("drafts/berlin", "web/deployment-web.yaml")
    assert "  replicas: 3 # as in the values\n" in text
    assert "  namespace: shop\n" in text
    assert "# Source" not in text
    assert "kpt-merge" not in text


def test_kptfile_has_a_generic_lock(world: World) -> None:
    world.sync()

    kptfile = parse_yaml(world.text("drafts/berlin", "web/Kptfile")).documents[0].data
    assert "upstream" not in kptfile
    assert kptfile["upstreamLock"]["type"] == "generic"
    lock = kptfile["upstreamLock"]["generic"]
    assert lock["storeID"] == "helm"
    assert lock["resourceID"].endswith("/catalog.git/charts/web")
    assert lock["resourceVersion"].startswith("charts/web/v1@")
    assert kptfile["info"]["description"] == "A small web server"


def test_unchanged_package_renders_nothing(world: World) -> None:
    world.sync()

    assert world.sync_until_unchanged().report.render_count == 0


@pytest.mark.slow
def test_local_change_survives_an_update(world: World) -> None:
    world.sync()
    world.merge("berlin", delete=True)
    world.sync()
    world.edit("clusters/berlin", "web/deployment-web.yaml", "replicas: 3 #", "replicas: 5 #")
    world.release("charts/web", "v2", chart("2.0.0"))
    world.write({"web.yaml": request("v2")})

    world.sync()

    text = world.text("drafts/berlin", "web/deployment-web.yaml")
    assert "replicas: 5 # as in the values" in text
    assert "example.com/web:2.0.0" in text
    assert world.sync_until_unchanged().report.render_count == 0


@pytest.mark.slow
@pytest.mark.parametrize(("policy", "replicas"), [("local", 5), ("upstream", 4)])
def test_conflict_of_a_local_change_with_the_chart(world: World, policy: str, replicas: int) -> None:
    world.sync()
    world.merge("berlin", delete=True)
    world.sync()
    world.edit("clusters/berlin", "web/deployment-web.yaml", "replicas: 3 #", "replicas: 5 #")
    world.write({"web.yaml": request(extra=f"{HELM.replace('3', '4')}\nconflictPolicy: {policy}")})

    world.sync()

    assert f"replicas: {replicas} # as in the values" in world.text("drafts/berlin", "web/deployment-web.yaml")
    (conflict,) = world.package_status("drafts/berlin", "web")["conflicts"]
    assert (conflict["pointer"], conflict["base"], conflict["local"], conflict["upstream"], conflict["chosen"]) == (
        "/spec/replicas", 3, 5, 4, policy
    )  # fmt: skip


@pytest.mark.slow
def test_moved_template_changes_no_file(world: World) -> None:
    world.sync()
    world.merge("berlin", delete=True)
    world.sync()
    moved = chart("1.0.0")
    moved["templates/other.yaml"] = (
        f"{moved.pop('templates/service.yaml')}---\n{moved.pop('templates/deployment.yaml')}"
    )
    world.release("charts/web", "v2", moved)
    world.write({"web.yaml": request("v2")})

    world.sync()

    published, drafted = (world.files(world.fleet, branch, "web") for branch in ("clusters/berlin", "drafts/berlin"))
    assert {path for path in drafted if drafted[path] != published.get(path)} == {"Kptfile"}


def test_failed_template_blocks_only_its_package(world: World) -> None:
    world.release("charts/web", "v2", chart("2.0.0", service="{{ .Values.absent.name }}"))
    world.write({"web.yaml": request("v2")})

    result = world.sync()

    assert result.outcomes["berlin/web"] == "ChartRenderFailed"
    (finding,) = (finding for finding in result.findings if finding.code == "ChartRenderFailed")
    assert "templates/service.yaml:1" in finding.message
    assert world.reason("web") == "ChartRenderFailed"
    assert world.sync_until_unchanged().report.render_count == 0


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        pytest.param("", "spec.helm.namespace must be set, because the upstream is a Helm chart", id="no-options"),
        pytest.param("helm: {}", "missing required field spec.helm.namespace", id="no-namespace"),
    ],
)
def test_options_of_a_chart_are_required(world: World, extra: str, message: str) -> None:
    world.write({"web.yaml": request(extra=extra)})

    result = world.sync()

    assert [finding.message for finding in result.findings if finding.code == "ValidationError"] == [message]


def test_missing_program_blocks_only_charts(tmp_path: Path) -> None:
    world = create_world(tmp_path, str(tmp_path / "absent/helm"))
    helm = FakeHelm(tmp_path / "absent")
    helm.path.unlink()

    result = world.sync()

    assert result.outcomes["berlin/metrics"] == "draft"
    assert result.outcomes["berlin/web"] == "HelmUnavailable"
    (finding,) = (finding for finding in result.findings if finding.code == "HelmUnavailable")
    assert "go install" in finding.message
    helm.install()
    helm.behave(output="---\n# Source: web/templates/service.yaml\n" + SERVICE.replace("{{ .Release.Name }}", "web"))
    assert world.sync().outcomes["berlin/web"] == "draft"


def test_equal_requests_of_clusters_start_one_program(tmp_path: Path) -> None:
    helm = FakeHelm(tmp_path / "bin")
    helm.behave(output="---\n# Source: web/templates/service.yaml\n" + SERVICE.replace("{{ .Release.Name }}", "web"))
    world = create_world(tmp_path, str(helm.path))
    world.write({"lisbon.yaml": request(name="lisbon", cluster="lisbon")})

    world.sync()

    assert len(helm.calls()) == 1
    assert json.loads(helm.inputs()["files"]["values.json"]) == {"replicas": 3}
    world.sync_until_unchanged()
    assert len(helm.calls()) == 1


def test_chart_in_the_config_is_no_config_and_deletes_nothing(world: World) -> None:
    world.write({"web.yaml": None, "apps/web.yaml": request()})
    world.sync()
    world.merge("berlin", delete=True)
    world.sync_until_unchanged()
    world.write({f"apps/chart/{path}": text for path, text in chart("1.0.0").items()})

    result = world.sync()

    assert [finding.message for finding in result.findings if finding.code == "ChartInConfig"] == [
        'the folder "apps/chart" contains a Helm chart, so its files are not read as config'
    ]
    assert "FileUnreadable" not in result.codes
    # A chart beside an object hides the object, but does not prove its deletion.
    world.write({"apps/Chart.yaml": WEB["Chart.yaml"]})
    result = world.sync()
    assert result.changed_branches == set()
    assert result.outcomes["berlin/web"] != "draft"


def test_setting_selects_the_hooks_of_charts(tmp_path: Path) -> None:
    helm = FakeHelm(tmp_path / "bin")
    hook = SERVICE.replace("metadata:\n", 'metadata:\n  annotations: {"helm.sh/hook": pre-install}\n')
    helm.behave(output="---\n# Source: web/templates/service.yaml\n" + hook.replace("{{ .Release.Name }}", "web"))
    world = create_world(tmp_path, str(helm.path))

    world.sync()
    assert "web/service-web.yaml" in world.paths(world.fleet, "drafts/berlin", "")
    world = world.with_settings(sources={"helm": {"program": str(helm.path), "hooks": "drop"}})
    world.sync()

    assert "web/service-web.yaml" not in world.paths(world.fleet, "drafts/berlin", "")
