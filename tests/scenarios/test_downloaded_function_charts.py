"""Tests of the function render-helm-chart with charts of repositories, which are downloaded before the render."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.scenarios.test_artifacts import describe_repository, pack_web, read_verdicts
from tests.scenarios.test_render_helm_chart import KPTFILE
from tests.support.archives import pack_chart, pack_files
from tests.support.artifact_servers import CHART_LAYER, ArtifactServer, RegistryServer, compute_digest, serve
from tests.support.charts import format_config_map
from tests.support.programs import find_program
from tests.support.world import World, small_world, variant

PLAIN_KPTFILE = "apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata: {name: shop}\n"


@pytest.fixture
def server() -> Iterator[ArtifactServer]:
    with serve(ArtifactServer()) as running:
        running.add_chart("web", "1.0.0", pack_web("1.0.0"))
        yield running


def write_config(field: str, version: str = "1.0.0") -> str:
    return f"""apiVersion: fn.kpt.dev/v1alpha1
kind: RenderHelmChart
metadata:
  name: charts
  annotations: {{config.kubernetes.io/local-config: "true"}}
helmCharts:
  - chartArgs: {{name: web, version: {version}, {field}}}
    templateOptions: {{releaseName: web, namespace: shop, values: {{valuesInline: {{replicas: 3}}}}}}
"""


def create_world(tmp_path: Path, server: ArtifactServer, files: dict[str, str] | None = None) -> World:
    world = small_world(tmp_path, sources={"poll_seconds": 0, "helm": {"program": find_program("helm")}})
    default = {"Kptfile": KPTFILE, "charts.yaml": write_config(f"repo: '{server.url}/charts'")}
    world.release("shop", "v1", files or default)
    world.write({"shop.yaml": variant("shop", "berlin", "shop"), "charts.yaml": describe_charts(server)})
    return world


def describe_charts(server: ArtifactServer) -> str:
    return describe_repository("helm", f"{{url: {server.url}/charts}}")


def assert_rendered(world: World, *paths: str) -> None:
    """Check that a draft contains the resources of the chart, but not its files, and that a second pass is quiet."""
    result = world.sync()
    assert result.outcomes.get("berlin/shop") == "draft", result.findings
    found = world.paths(world.fleet, "drafts/berlin", "shop")
    assert set(paths) <= set(found)
    assert not any("Chart.yaml" in path for path in found)
    assert world.sync_until_unchanged().report.render_count == 0


def test_package_contains_the_resources_of_a_downloaded_chart(tmp_path: Path, server: ArtifactServer) -> None:
    world = create_world(tmp_path, server)

    assert_rendered(world, "deployment_web.yaml", "service_web.yaml")

    assert "replicas: 3" in world.files(world.fleet, "drafts/berlin", "shop")["deployment_web.yaml"]
    (dependency,) = world.package_status("drafts/berlin", "shop")["upstream"]["to"]["dependencies"]
    assert dependency == {"name": "web", "version": "1.0.0", "digest": compute_digest(pack_web("1.0.0"))}
    server.requests.clear()
    world.sync()
    assert not [path for path in server.paths if path.endswith(".tgz")]


@pytest.mark.slow
def test_only_new_content_of_the_version_is_a_draft(tmp_path: Path, server: ArtifactServer) -> None:
    world = create_world(tmp_path, server)
    world.sync()
    world.merge("berlin", delete=True)
    world.sync_until_unchanged()

    server.add_chart("web", "1.0.0", pack_web("1.0.0", seconds=7))
    assert world.sync().outcomes["berlin/shop"] != "draft"
    server.add_chart("web", "1.0.0", pack_chart("web", "1.0.0", {"templates/a.yaml": format_config_map("new")}))
    assert world.sync().outcomes["berlin/shop"] == "draft"

    assert "configmap_new.yaml" in world.paths(world.fleet, "drafts/berlin", "shop")


def test_published_package_can_be_verified(tmp_path: Path, server: ArtifactServer) -> None:
    world = create_world(tmp_path, server)
    world.sync()
    world.merge("berlin", delete=True)
    world.sync_until_unchanged()

    assert read_verdicts(world, "shop") == {"berlin/shop": ("reproduced", "")}


def test_missing_repository_is_an_error_result_until_it_is_added(tmp_path: Path, server: ArtifactServer) -> None:
    world = create_world(tmp_path, server)
    world.write({"charts.yaml": None})

    (finding,) = (finding for finding in world.sync().findings if finding.code == "RenderFailed")

    assert f'spec: {{type: helm, helm: {{url: "{server.url}/charts"}}}}}}' in finding.message
    world.write({"charts.yaml": describe_charts(server)})
    assert_rendered(world, "deployment_web.yaml")


def test_unreachable_repository_does_not_change_the_package(tmp_path: Path, server: ArtifactServer) -> None:
    world = create_world(tmp_path, server)
    world.sync()
    world.merge("berlin", delete=True)
    world.sync_until_unchanged()
    published = world.files(world.fleet, "clusters/berlin", "shop")
    server.files.clear()

    assert world.sync().outcomes.get("berlin/shop") != "draft"

    assert world.files(world.fleet, "clusters/berlin", "shop") == published


def test_unknown_version_is_reported_before_the_render(tmp_path: Path, server: ArtifactServer) -> None:
    config = write_config(f"repo: '{server.url}/charts'", "9.0.0")
    world = create_world(tmp_path, server, {"Kptfile": KPTFILE, "charts.yaml": config})

    (finding,) = (finding for finding in world.sync().findings if finding.code == "UpstreamNotFound")

    assert 'has no version "9.0.0" of the chart "we' in finding.message


def test_function_of_a_subpackage_uses_its_chart(tmp_path: Path, server: ArtifactServer) -> None:
    files = {
        "Kptfile": PLAIN_KPTFILE,
        "sub/Kptfile": KPTFILE.replace("shop", "sub"),
        "sub/charts.yaml": write_config(f"repo: '{server.url}/charts'"),
    }
    assert_rendered(create_world(tmp_path, server, files), "sub/deployment_web.yaml")


def test_function_of_a_package_variant_uses_its_chart(tmp_path: Path, server: ArtifactServer) -> None:
    world = create_world(tmp_path, server, {"Kptfile": PLAIN_KPTFILE})
    data = f"{{name: web, version: 1.0.0, repo: '{server.url}/charts', releaseName: web}}"
    function = f"{{image: 'render-helm-chart:v0.2.3', configMap: {data}}}"
    extra = f"pipeline: {{mutators: [{function}]}}"
    world.write({"shop.yaml": variant("shop", "berlin", "shop", extra=extra)})

    assert_rendered(world, "deployment_web.yaml")


def test_package_can_be_one_of_several_sources(tmp_path: Path, server: ArtifactServer) -> None:
    world = create_world(tmp_path, server)
    world.release("extra", "v1", {"extra.yaml": format_config_map("extra")})
    sources = (
        "  sources:\n    - {name: shop, repo: catalog, package: shop, revision: v1}\n"
        "    - {name: extra, repo: catalog, package: extra, revision: v1}\n"
    )
    start, _, end = variant("shop", "berlin", "shop").partition("  upstream:")
    world.write({"shop.yaml": start + sources + end.partition("\n")[2]})

    assert_rendered(world, "deployment_web.yaml", "extra.yaml")


def test_chart_of_a_registry(tmp_path: Path) -> None:
    with serve(RegistryServer()) as server:
        assert isinstance(server, RegistryServer)
        server.push("charts/web", "1.0.0", pack_web("1.0.0"), CHART_LAYER)
        url = f"oci://{server.host}/charts"
        files = {"Kptfile": KPTFILE, "charts.yaml": write_config(f"registry: '{server.host}/charts'")}
        world = create_world(tmp_path, server, files)
        world.write({"charts.yaml": describe_repository("helm", f"{{url: '{url}', insecure: true}}")})

        assert_rendered(world, "deployment_web.yaml")


def test_chart_in_the_package_has_priority(tmp_path: Path, server: ArtifactServer) -> None:
    chart = {f"tmp/charts/web/{name}": text for name, text in {
        "Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.0.0\n", "templates/a.yaml": format_config_map("local"),
    }.items()}  # fmt: skip
    config = write_config(f"repo: '{server.url}/charts'")
    world = create_world(tmp_path, server, {"Kptfile": KPTFILE, "charts.yaml": config, **chart})

    assert world.sync().outcomes["berlin/shop"] == "draft"

    assert "configmap_local.yaml" in world.paths(world.fleet, "drafts/berlin", "shop")


def test_chart_with_a_missing_dependency_gets_it(tmp_path: Path, server: ArtifactServer) -> None:
    dependencies = f"dependencies: [{{name: common, version: 3.0.0, repository: {server.url}/charts}}]\n"
    chart = f"apiVersion: v2\nname: web\nversion: 1.0.0\n{dependencies}"
    server.add_chart("web", "1.0.0", pack_files({"web/Chart.yaml": chart}))
    server.add_chart("common", "3.0.0", pack_chart("common", "3.0.0", {"templates/a.yaml": format_config_map("sub")}))

    assert_rendered(create_world(tmp_path, server), "configmap_sub.yaml")
