"""Lost state of packages with several sources, and the render of a base with the values of the recorded config."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from reconciler.bootstrap.controllers import CatalogServices
from tests.scenarios.test_artifacts import pack_web
from tests.scenarios.test_charts import chart
from tests.scenarios.test_charts import request as request_single
from tests.scenarios.test_lost_state import delete_state
from tests.scenarios.test_several_artifacts import SeveralArtifacts, chart_source
from tests.scenarios.test_several_sources import ALERT, CHART, EXTRAS, OUTPUT, RENDER, VALUES, request
from tests.support.artifact_servers import ArtifactServer, serve
from tests.support.charts import FakeHelm
from tests.support.git_repositories import commit_files, git, make_bare, read_refs
from tests.support.history_world import HistoryWorld, with_history
from tests.support.world import repository, small_world

SERVICE, DEPLOYMENT = "web/service-web.yaml", "web/deployment-web.yaml"
MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: sizes}}\ndata:\n  values.yaml: |\n    replicas: {}\n"
HELM = "helm: {namespace: shop, valuesFrom: [{kind: ConfigMap, name: sizes}]}"
SINGLE = request_single(extra=HELM)
SEVERAL = request(CHART, EXTRAS, extra=HELM)
SET = f"""apiVersion: config.porch.kpt.dev/v1alpha2
kind: PackageVariantSet
metadata: {{name: web}}
spec:
  sources:
    - {CHART}
    - {EXTRAS}
  targets:
    - repositories: [{{name: berlin}}]
      template:
        downstream: {{package: web}}
        {HELM}
"""


@pytest.fixture
def server() -> Iterator[ArtifactServer]:
    with serve(ArtifactServer()) as running:
        running.add_chart("web", "1.0.0", pack_web("1.0.0"))
        yield running


def create_world(folder: Path, text: str) -> HistoryWorld:
    """Return a fleet with its config in Git, whose package is published and has a local change. Its state is lost."""
    helm = FakeHelm(folder / "bin")
    helm.behave(output=OUTPUT, code=RENDER)
    world = with_history(small_world(folder, sources={"helm": {"program": str(helm.path)}}))
    make_bare(folder / "team.git")
    write_values(world, 2)
    world.release("charts/web", "v1", chart("1.0.0"))
    world.release("alerts", "v1", {"alert.yaml": ALERT})
    team = repository("team", "./team.git", branch="main").replace("deployment: true", "deployment: false")
    world.change({"team.yaml": team, "sizes.yaml": MAP.format(2), "web.yaml": text})
    world.publish()
    world.edit("clusters/berlin", SERVICE, "ClusterIP", "NodePort")
    delete_state(world, "berlin")
    return world


def write_values(world: HistoryWorld, replicas: int) -> None:
    data: dict[str, bytes | None] = {"web.yaml": f"replicas: {replicas}\n".encode()}
    commit_files(world.folder / "team.git", "refs/heads/main", data, "values", 1_000_000_000)


def find_message(world: HistoryWorld) -> str:
    (message,) = (finding.message for finding in world.sync().findings if finding.code == "BaseUnavailable")
    return message


@pytest.mark.slow
def test_lost_state_changes_no_branch(tmp_path: Path) -> None:
    world = create_world(tmp_path, SEVERAL)

    result = world.sync()

    assert result.outcomes["berlin/web"] == "published"
    assert result.changed_branches == set()
    assert world.sync_until_unchanged().outcomes["berlin/web"] == "published"


def test_update_of_one_source_keeps_local_changes(tmp_path: Path) -> None:
    world = create_world(tmp_path, SEVERAL)
    world.release("alerts", "v2", {"alert.yaml": ALERT.replace("high", "low")})
    world.change({"web.yaml": SEVERAL.replace("package: alerts, revision: v1", "package: alerts, revision: v2")})

    assert world.sync_until_unchanged().outcomes["berlin/web"] == "drafted"

    assert "level: low" in world.text("drafts/berlin", "web/alerts/alert.yaml")
    assert "NodePort" in world.text("drafts/berlin", SERVICE)


@pytest.mark.quick_cases(every=3)
@pytest.mark.parametrize(
    "text",
    [
        pytest.param(SINGLE, id="one-source"),
        pytest.param(SEVERAL, id="several-sources"),
        pytest.param(SET, id="set-of-several-sources"),
    ],
)
def test_changed_values_are_read_from_the_recorded_config(tmp_path: Path, text: str) -> None:
    """The base has the values of the recorded config, so that a change of the values is an update."""
    world = create_world(tmp_path, text)
    world.change({"sizes.yaml": MAP.format(5)})

    assert world.sync_until_unchanged().outcomes["berlin/web"] == "drafted"

    assert "replicas: 5" in world.text("drafts/berlin", DEPLOYMENT)
    assert "NodePort" in world.text("drafts/berlin", SERVICE)
    world.merge("berlin", delete=True)
    assert world.sync_until_unchanged().outcomes["berlin/web"] == "published"


@pytest.mark.slow
def test_values_file_has_the_recorded_commit(tmp_path: Path) -> None:
    """A values file of another source is read at its recorded commit, although its branch has moved."""
    text = request(CHART, VALUES, EXTRAS, extra="helm: {namespace: shop, valuesFiles: [$values/web.yaml]}")
    world = create_world(tmp_path, text)
    write_values(world, 7)

    assert world.sync_until_unchanged().outcomes["berlin/web"] == "drafted"

    assert "replicas: 7" in world.text("drafts/berlin", DEPLOYMENT)
    assert "NodePort" in world.text("drafts/berlin", SERVICE)


def test_removed_source_is_a_part_of_the_base(tmp_path: Path) -> None:
    """If the sources have changed, the base has the sources of the recorded config."""
    world = create_world(tmp_path, SEVERAL)
    world.change({"web.yaml": request(CHART, extra=HELM)})

    assert world.sync_until_unchanged().outcomes["berlin/web"] == "drafted"

    assert "alerts/alert.yaml" not in world.paths(world.fleet, "drafts/berlin", "web")
    assert "NodePort" in world.text("drafts/berlin", SERVICE)


def replace_history(world: HistoryWorld) -> None:
    world.squash_config()


def name_other_branch(world: HistoryWorld) -> None:
    """Name a commit of another branch in the status file, which everyone can edit."""
    text = world.text("clusters/berlin", ".reconciler/web.yaml")
    files = {path: text for path, text in world.files(world.repo, "main").items() if path != "sizes.yaml"}
    other = world.change({**files, "sizes.yaml": MAP.format(2)}, branch="other")
    world.commit("clusters/berlin", {".reconciler/web.yaml": re.sub(r"config: \w{40}", f"config: {other}", text)})


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize("text", [pytest.param(SINGLE, id="one-source"), pytest.param(SEVERAL, id="several-sources")])
@pytest.mark.parametrize("hide", [replace_history, name_other_branch])
def test_missing_config_commit_needs_a_decision(
    tmp_path: Path, text: str, hide: Callable[[HistoryWorld], None]
) -> None:
    """Without the recorded config, the current values are used. If they have changed, the owner decides."""
    world = create_world(tmp_path, text)
    hide(world)
    assert world.sync().outcomes["berlin/web"] == "published"
    delete_state(world, "berlin")
    world.change({"sizes.yaml": MAP.format(5)})

    message = find_message(world)

    assert re.search(r"the values have changed since config \w{40}, and config \w{12} ", message)
    assert not world.head("drafts/berlin")
    (tree,) = re.findall(r"reconciler.dev/accept-base: (\w+)", message)
    name = f"  annotations: {{reconciler.dev/accept-base: {tree}}}\n"
    world.change({"web.yaml": re.sub(r"metadata:\s+\{?(name: [\w-]+)\}?\n", rf"metadata:\n  \1\n{name}", text)})
    assert world.sync_until_unchanged().outcomes["berlin/web"] == "published"
    assert "NodePort" in world.text("clusters/berlin", SERVICE)


def test_exception_in_the_recorded_config_blocks_only_its_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = create_world(tmp_path, SEVERAL)
    world.change({"sizes.yaml": MAP.format(5)})

    def fail(*_: object) -> None:
        raise ValueError("injected")

    monkeypatch.setattr(CatalogServices, "list_requested_variants", fail)

    result = world.sync()

    assert result.outcomes["berlin/web"] == "InternalError"
    assert result.outcomes["berlin/gateway"] == "published"


@pytest.mark.slow
def test_missing_source_of_the_base_writes_nothing(tmp_path: Path) -> None:
    world = create_world(tmp_path, SEVERAL)
    catalog = world.folder / "catalog.git"
    files = world.files(catalog, "main")
    for ref in read_refs(catalog):
        git(catalog, "update-ref", "-d", ref)
    world.prune_unreachable_objects(catalog)
    for name, version in (("metrics", "v1"), ("gateway", "v1"), ("charts/web", "v1"), ("alerts", "v2")):
        folder = {path.removeprefix(f"{name}/"): text for path, text in files.items() if path.startswith(f"{name}/")}
        world.release(name, version, {**folder, **({"more.yaml": MAP.format(1)} if name == "alerts" else {})})
    world.change({"web.yaml": SEVERAL.replace("package: alerts, revision: v1", "package: alerts, revision: v2")})

    result = world.sync()

    assert result.outcomes["berlin/web"] == "BaseUnavailable"
    assert not world.head("drafts/berlin")


@pytest.mark.slow
def test_missing_archive_of_one_source_writes_nothing(tmp_path: Path, server: ArtifactServer) -> None:
    fleet = SeveralArtifacts(tmp_path, server)
    fleet.request(chart_source("1.0.0"))
    fleet.publish()
    world = fleet.world
    world.edit("clusters/berlin", "web/alerts/alert.yaml", "level: high", "level: low")
    delete_state(world, "berlin")
    archive = server.files.pop("/charts/web-1.0.0.tgz")
    shutil.rmtree(world.folder / "cache/sources")
    server.add_chart("web", "2.0.0", pack_web("2.0.0"))
    fleet.request(chart_source("2.0.0"))

    result = world.sync()

    assert result.outcomes["berlin/web"] == "BaseUnavailable"
    assert result.changed_branches == set()
    server.files["/charts/web-1.0.0.tgz"] = archive
    assert world.sync().outcomes["berlin/web"] == "draft"
    assert "level: low" in world.text("drafts/berlin", "web/alerts/alert.yaml")
