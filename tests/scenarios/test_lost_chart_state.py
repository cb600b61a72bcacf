"""Packages of charts and artifacts after their state was lost: the base is rendered again, or nothing is written."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciler.catalog.files import FileTree
from reconciler.controllers.results import UpstreamPackage
from reconciler.planning.model.sources import SourceContent
from reconciler.sources.package_sources import PackageSources
from tests.scenarios.test_artifacts import (
    CLUSTERS,
    OUTPUT,
    describe_repository,
    pack_web,
    publish,
    request,
)
from tests.scenarios.test_charts import chart
from tests.scenarios.test_held_resources import CRD, RESOURCES, ChartWorld
from tests.scenarios.test_lost_state import delete_state
from tests.support.archives import pack_files
from tests.support.artifact_servers import ArtifactServer, serve
from tests.support.charts import FakeHelm
from tests.support.world import World, small_world

pytestmark = pytest.mark.second_pass

SERVICE = "service-web.yaml"


@pytest.fixture
def fleet(tmp_path: Path) -> ChartWorld:
    """Return a published chart with a local change, and without recorded state."""
    fleet = ChartWorld(tmp_path)
    fleet.release("v1", "crd", "deployment", "service")
    fleet.request("v1")
    fleet.publish()
    fleet.world.edit("clusters/berlin", f"web/{SERVICE}", "kind: Service", "kind: Service # local")
    delete_state(fleet.world, "berlin")
    return fleet


def test_lost_state_of_a_chart_changes_no_branch(fleet: ChartWorld) -> None:
    result = fleet.world.sync()

    assert result.outcomes["berlin/web"] == "published"
    assert result.changed_branches == set()
    assert fleet.world.sync_until_unchanged().outcomes["berlin/web"] == "published"


@pytest.mark.slow
def test_update_after_a_lost_state_keeps_local_changes(fleet: ChartWorld) -> None:
    fleet.release("v2", "crd", "service")
    fleet.request("v2")

    assert fleet.world.sync_until_unchanged().outcomes["berlin/web"] == "drafted"

    assert "deployment-web.yaml" not in fleet.drafted()
    assert "# local" in fleet.world.text("drafts/berlin", f"web/{SERVICE}")
    fleet.world.merge("berlin", delete=True)
    assert fleet.world.sync_until_unchanged().outcomes["berlin/web"] == "published"


@pytest.mark.slow
def test_lost_state_with_an_open_draft_keeps_its_local_changes(fleet: ChartWorld) -> None:
    fleet.release("v2", "crd", "service")
    fleet.request("v2")
    fleet.world.sync()
    fleet.world.edit("drafts/berlin", f"web/{CRD}", "kind: C", "# in the draft\nkind: C")
    delete_state(fleet.world, "berlin")
    fleet.release("v3", "crd", "service", "kept")
    fleet.request("v3")

    assert fleet.world.sync_until_unchanged().outcomes["berlin/web"] == "drafted"

    assert "# in the draft" in fleet.world.text("drafts/berlin", f"web/{CRD}")
    assert "# local" in fleet.world.text("drafts/berlin", f"web/{SERVICE}")
    assert "configmap-kept.yaml" in fleet.drafted()


@pytest.mark.slow
def test_held_resource_is_a_part_of_the_restored_base(tmp_path: Path) -> None:
    fleet = ChartWorld(tmp_path)
    fleet.release("v1", "crd", "service")
    fleet.request("v1")
    fleet.publish()
    fleet.release("v2", "service")
    fleet.request("v2")
    fleet.publish()
    delete_state(fleet.world, "berlin")

    result = fleet.world.sync()

    assert result.outcomes["berlin/web"] == "published"
    assert {"CRDRemovalHeld"} == result.codes & {"CRDRemovalHeld", "BaseUnavailable"}


@pytest.mark.slow
def test_other_output_of_the_engine_needs_a_decision(fleet: ChartWorld) -> None:
    program = fleet.helm.path
    program.write_text(f"{program.read_text()}# another build\n")
    shutil.rmtree(fleet.world.folder / "cache/renders")
    service = RESOURCES["service"]
    fleet.helm.behave(output=f"---\n# Source: web/templates/service.yaml\n{service}spec: {{}}\n")

    result = fleet.world.sync()

    assert result.outcomes["berlin/web"] == "BaseUnavailable"
    assert result.changed_branches == set()
    (finding,) = (finding for finding in result.findings if finding.code == "BaseUnavailable")
    assert "the render program is helm/3.22 sha256:" in finding.message
    (tree,) = re.findall(r"reconciler.dev/accept-base: (\w+)", finding.message)
    fleet.request("v1", f"reconciler.dev/accept-base: {tree}")
    assert fleet.world.sync_until_unchanged().outcomes["berlin/web"] == "published"
    assert "# local" in fleet.world.text("clusters/berlin", f"web/{SERVICE}")


@pytest.mark.slow
@pytest.mark.parametrize("is_lost", [False, True])
def test_renamed_release_is_reported_until_it_is_published(tmp_path: Path, is_lost: bool) -> None:
    fleet = ChartWorld(tmp_path)
    fleet.release("v1", "service")
    fleet.request("v1")
    fleet.publish()
    if is_lost:
        delete_state(fleet.world, "berlin")
    fleet.release("v2", "service", "deployment")
    fleet.request("v2")
    text = (fleet.world.config / "web.yaml").read_text()
    fleet.world.write({"web.yaml": text.replace("namespace: shop", "namespace: shop, releaseName: new")})

    (finding,) = (finding for finding in fleet.world.sync().findings if finding.code == "ReleaseRenamed")

    assert 'changes from "shop/web" to "shop/new".' in finding.message
    assert "ReleaseRenamed" in fleet.world.sync_until_unchanged().codes
    fleet.world.merge("berlin", delete=True)
    assert "ReleaseRenamed" not in fleet.world.sync_until_unchanged().codes


def test_changed_values_are_named(fleet: ChartWorld) -> None:
    fleet.helm.behave(output="")
    text = (fleet.world.config / "web.yaml").read_text()
    fleet.world.write({"web.yaml": text.replace("namespace: shop", "namespace: shop, values: {a: 1}")})

    result = fleet.world.sync()

    (finding,) = (finding for finding in result.findings if finding.code == "BaseUnavailable")
    assert "the values have changed since config" in finding.message


def test_exception_in_the_render_of_a_base_blocks_only_its_package(
    fleet: ChartWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = PackageSources.render

    def fail_for_web(self: PackageSources, upstream: UpstreamPackage, files: FileTree) -> SourceContent:
        if upstream.chart:
            raise ValueError("injected")
        return original(self, upstream, files)

    monkeypatch.setattr(PackageSources, "render", fail_for_web)

    result = fleet.world.sync()

    assert result.outcomes["berlin/web"] == "InternalError"
    assert result.outcomes["berlin/gateway"] == "published"


@pytest.mark.slow
def test_new_engine_with_equal_output_changes_nothing(tmp_path: Path) -> None:
    fleet = ChartWorld(tmp_path)
    fleet.release("v1", "crd", "service")
    fleet.request("v1")
    fleet.publish()
    fleet.helm.path.write_text(f"{fleet.helm.path.read_text()}# another build\n")
    calls = len(fleet.helm.calls())

    result = fleet.world.sync()

    assert len(fleet.helm.calls()) > calls
    assert result.outcomes["berlin/web"] == "published"
    assert result.changed_branches == set()
    assert fleet.world.sync().is_unchanged


@pytest.fixture
def world(tmp_path: Path, server: ArtifactServer) -> World:
    """Return published packages of a chart whose archive and state do not exist any more."""
    helm = FakeHelm(tmp_path / "bin")
    helm.behave(output=OUTPUT)
    world = small_world(tmp_path, sources={"poll_seconds": 0, "helm": {"program": str(helm.path)}})
    world.write({
        "charts.yaml": describe_repository("helm", f"{{url: {server.url}/charts}}"),
        **{f"{name}.yaml": request('chart: web, version: "1.0.0"', name) for name in CLUSTERS},
    })  # fmt: skip
    publish(world)
    world.edit("clusters/berlin", "web/service-web.yaml", "ClusterIP", "NodePort")
    delete_state(world, "berlin")
    del server.files["/charts/web-1.0.0.tgz"]
    shutil.rmtree(world.folder / "cache/sources")
    server.add_chart("web", "2.0.0", pack_web("2.0.0"))
    world.write({"berlin.yaml": request('chart: web, version: "2.0.0"', "berlin")})
    return world


@pytest.mark.slow
def test_missing_archive_of_the_base_writes_nothing(world: World, server: ArtifactServer) -> None:
    result = world.sync()

    assert result.outcomes["berlin/web"] == "BaseUnavailable"
    assert result.changed_branches == set()
    server.add_chart("web", "1.0.0", pack_web("1.0.0"))
    assert world.sync().outcomes["berlin/web"] == "draft"
    assert "NodePort" in world.text("drafts/berlin", "web/service-web.yaml")


@pytest.mark.slow
def test_owner_can_replace_local_changes_if_the_base_is_missing(world: World) -> None:
    helm = "updateStrategy: force-delete-replace\n  helm: {namespace: shop}"
    world.write({"berlin.yaml": request('chart: web, version: "2.0.0"', "berlin", helm)})

    assert world.sync_until_unchanged().outcomes["berlin/web"] == "drafted"

    assert "NodePort" not in world.text("drafts/berlin", "web/service-web.yaml")


@pytest.fixture
def server() -> Iterator[ArtifactServer]:
    with serve(ArtifactServer()) as running:
        running.add_chart("web", "1.0.0", pack_web("1.0.0"))
        yield running


@pytest.mark.slow
def test_base_has_the_recorded_versions_of_required_charts(tmp_path: Path, server: ArtifactServer) -> None:
    helm = FakeHelm(tmp_path / "bin")
    code = (
        'text = pathlib.Path("chart/charts/common/Chart.yaml").read_text()\n'
        'behavior["output"] = behavior["output"] + "  selector: {" + text.splitlines()[2] + "}\\n"'
    )
    helm.behave(output=OUTPUT, code=code)
    world = small_world(tmp_path, sources={"poll_seconds": 0, "helm": {"program": str(helm.path)}})
    for number in (1, 2):
        common = f"apiVersion: v2\nname: common\nversion: {number}.0.0\n"
        server.add_chart("common", f"{number}.0.0", pack_files({"common/Chart.yaml": common}))
        required = f"- name: common\n  version: {number}.0.0\n  repository: {server.url}/charts\n"
        files = chart(f"{number}.0.0")
        world.release("app", f"v{number}", {**files, "Chart.yaml": f"{files['Chart.yaml']}dependencies:\n{required}"})
    world.write({"charts.yaml": describe_repository("helm", f"{{url: {server.url}/charts}}")})

    def select(revision: str) -> None:
        upstream = f"repo: catalog, package: app, revision: {revision}"
        world.write({"web.yaml": request("").replace("{repo: charts, }", f"{{{upstream}}}")})

    select("v1")
    world.sync()
    world.merge("berlin", delete=True)
    world.sync_until_unchanged()
    assert "selector: {version: 1.0.0}" in world.text("clusters/berlin", "web/service-web.yaml")
    world.edit("clusters/berlin", "web/service-web.yaml", "ClusterIP", "NodePort")
    delete_state(world, "berlin")
    select("v2")

    assert world.sync_until_unchanged().outcomes["berlin/web"] == "drafted"

    text = world.text("drafts/berlin", "web/service-web.yaml")
    assert "NodePort" in text
    assert "selector: {version: 2.0.0}" in text
