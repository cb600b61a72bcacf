"""Tests of packages with several sources: a chart, values files from Git, and folders with more resources."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.krm.yaml import parse_yaml
from tests.scenarios.test_charts import DEPLOYMENT, SERVICE, chart
from tests.scenarios.test_charts import request as request_single
from tests.support.charts import FakeHelm
from tests.support.programs import find_program
from tests.support.world import commit_files, make_bare, repository, small_world

pytestmark = pytest.mark.second_pass

# The chart with the values, as the program helm renders it.
OUTPUT = (
    "".join(
        f"---\n# Source: web/templates/{name}.yaml\n{text}"
        for name, text in (
            ("deployment", DEPLOYMENT.replace("{{ .Values.replicas }}", "REPLICAS")),
            ("service", SERVICE),
        )
    )
    .replace("{{ .Release.Name }}", "web")
    .replace("{{ .Chart.AppVersion }}", "1.0.0")
)
RENDER = (
    'values = json.loads(pathlib.Path("values.json").read_text())\n'
    'behavior["output"] = behavior["output"].replace("REPLICAS", str(values.get("replicas", 1)))'
)
ALERT = (
    "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: alerts\n  namespace: shop\ndata: {level: high}  # as written\n"
)
SERVICE_OF_TEAM = "apiVersion: v1\nkind: Service\nmetadata:\n  name: web\n  namespace: shop\nspec:\n  type: NodePort\n"
CHART = "{name: chart, repo: catalog, package: charts/web, revision: v1}"
VALUES = "{name: values, repo: team, revision: main, ref: true}"
EXTRAS = "{name: extras, repo: catalog, package: alerts, revision: v1, directory: alerts}"
HELM = "helm: {namespace: shop, valuesFiles: [$values/web/berlin.yaml]}"


def request(*sources: str, cluster: str = "berlin", extra: str = HELM) -> str:
    """Return a PackageVariant with several sources. `extra` contains more lines of its spec."""
    lines = [*(f"    - {source}" for source in sources), f"  downstream: {{repo: {cluster}, package: web}}"]
    return (
        f"apiVersion: config.porch.kpt.dev/v1alpha1\nkind: PackageVariant\nmetadata: {{name: web-{cluster}}}\n"
        "spec:\n  sources:\n" + "\n".join([*lines, *(f"  {line}" for line in extra.splitlines())]) + "\n"
    )


class Fleet:
    """A small fleet with a chart, a repository with values, and a folder of plain manifests."""

    def __init__(self, folder: Path) -> None:
        self.helm = FakeHelm(folder / "bin")
        self.helm.behave(output=OUTPUT, code=RENDER)
        self.world = small_world(folder, sources={"helm": {"program": str(self.helm.path)}})
        self.team = self.world.config.parent / "team.git"
        make_bare(self.team)
        self.world.release("charts/web", "v1", chart("1.0.0"))
        self.world.release("alerts", "v1", {"alert.yaml": ALERT})
        self.write_team({"web/berlin.yaml": "replicas: 3\n"})
        team = repository("team", "./team.git", branch="main").replace("deployment: true", "deployment: false")
        self.world.write({"team.yaml": team, "web.yaml": request(CHART, VALUES, EXTRAS)})

    def write_team(self, files: dict[str, str | None]) -> str:
        """Commit files to the repository with values."""
        data = {path: None if text is None else text.encode() for path, text in files.items()}
        return commit_files(self.team, "refs/heads/main", data, "values", 1_000_000_000)

    def publish(self) -> None:
        """Publish the draft of Berlin."""
        self.world.sync()
        self.world.merge("berlin", delete=True)
        self.world.sync_until_unchanged()


@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    return Fleet(tmp_path)


def test_files_of_all_sources_are_one_package(fleet: Fleet) -> None:
    world = fleet.world
    result = world.sync()

    assert result.outcomes["berlin/web"] == "draft"
    assert world.paths(world.fleet, "drafts/berlin", "web") == [
        "Kptfile",
        "alerts/alert.yaml",
        "deployment-web.yaml",
        "package-context.yaml",
        "service-web.yaml",
    ]
    assert "replicas: 3 # as in the values" in world.text("drafts/berlin", "web/deployment-web.yaml")
    assert world.text("drafts/berlin", "web/alerts/alert.yaml") == ALERT
    assert len(fleet.helm.calls()) == 1
    assert world.sync_until_unchanged().report.render_count == 0
    assert len(fleet.helm.calls()) == 1


def test_lock_records_each_source(fleet: Fleet) -> None:
    fleet.world.sync()

    kptfile = parse_yaml(fleet.world.text("drafts/berlin", "web/Kptfile")).documents[0].data
    lock = kptfile["upstreamLock"]["generic"]
    assert kptfile["info"]["description"] == "A small web server"
    assert "upstream" not in kptfile
    assert lock["storeID"] == "sources"
    assert [entry.partition("=")[0] for entry in lock["resourceID"].split(",")] == ["chart", "values", "extras"]
    assert [entry.partition("@")[0] for entry in lock["resourceVersion"].split(",")] == [
        "chart=charts/web/v1",
        "values=main",
        "extras=alerts/v1",
    ]
    upstream = fleet.world.package_status("drafts/berlin", "web")["upstream"]["to"]
    assert [source["name"] for source in upstream["sources"]] == ["chart", "values", "extras"]
    assert [source["ref"] for source in upstream["sources"]] == ["charts/web/v1", "main", "alerts/v1"]


@pytest.mark.slow
def test_only_used_values_files_change_the_package(fleet: Fleet) -> None:
    fleet.publish()
    fleet.write_team({"web/lisbon.yaml": "replicas: 9\n"})

    assert fleet.world.sync().changed_branches == set()
    fleet.write_team({"web/berlin.yaml": "replicas: 4\n"})
    assert fleet.world.sync().outcomes["berlin/web"] == "draft"
    assert "replicas: 4" in fleet.world.text("drafts/berlin", "web/deployment-web.yaml")


def test_repeated_resource_is_an_error_or_the_last_wins(fleet: Fleet) -> None:
    world = fleet.world
    fleet.publish()
    world.release("alerts", "v2", {"alert.yaml": ALERT, "service.yaml": SERVICE_OF_TEAM})
    extras = EXTRAS.replace("v1", "v2")
    world.write({"web.yaml": request(CHART, VALUES, extras)})

    result = world.sync()

    assert result.outcomes["berlin/web"] == "ResourceRepeated"
    (finding,) = (finding for finding in result.findings if finding.code == "ResourceRepeated")
    assert 'service-web.yaml of source "chart"' in finding.message
    assert 'alerts/service.yaml of source "extras"' in finding.message

    world.write({"web.yaml": request(CHART, VALUES, extras, extra=f"{HELM}\nonRepeatedResource: lastWins")})
    result = world.sync()

    assert result.outcomes["berlin/web"] == "draft"
    assert "ResourceRepeated" in result.codes
    assert world.text("drafts/berlin", "web/alerts/service.yaml") == SERVICE_OF_TEAM
    assert "service-web.yaml" not in world.paths(world.fleet, "drafts/berlin", "web")


def test_moved_resource_keeps_local_changes(fleet: Fleet) -> None:
    world = fleet.world
    fleet.publish()
    world.edit("clusters/berlin", "web/alerts/alert.yaml", "level: high", "level: low")
    world.release("notices", "v1", {"alert.yaml": ALERT})
    world.write({"web.yaml": request(CHART, VALUES, EXTRAS.replace("package: alerts", "package: notices"))})

    world.sync()

    assert "level: low" in world.text("drafts/berlin", "web/alerts/alert.yaml")


@pytest.mark.slow
def test_renamed_release_of_a_source_is_reported(fleet: Fleet) -> None:
    world = fleet.world
    fleet.publish()
    renamed = HELM.replace("namespace: shop", "namespace: store")
    other = CHART.replace("name: chart", "name: main").replace("}", ", helm: {namespace: shop, releaseName: new}}")

    for request_text, names in (
        (request(CHART, VALUES, EXTRAS, extra=renamed), 'from "shop/web" to "store/web".'),
        (request(other, EXTRAS, extra=""), 'from "shop/web" to "shop/new".'),
        (request_single(extra="helm: {namespace: other}").replace("name: web", "name: web-berlin"), 'to "other/web".'),
    ):
        world.write({"web.yaml": request_text})
        messages = [finding.message for finding in world.sync().findings if finding.code == "ReleaseRenamed"]
        assert [names in message for message in messages] == [True]
    world.write({"web.yaml": request(CHART, VALUES, EXTRAS)})
    assert "ReleaseRenamed" not in world.sync().codes


@pytest.mark.quick_cases(every=7)
@pytest.mark.parametrize(
    ("sources", "extra", "outcome", "message"),
    [
        pytest.param(
            (CHART, VALUES, EXTRAS.replace("v1", "v7")), HELM, "UpstreamNotFound", "source extras: ", id="unresolved"
        ),
        pytest.param(
            (CHART, EXTRAS), HELM, "ValuesNotFound", 'the package has no source "values"', id="unknown-values-source"
        ),
        pytest.param(
            (CHART, VALUES), HELM.replace("berlin.yaml", "paris.yaml"), "ValuesNotFound",
            'the source "values" contains no file "web/paris.yaml"', id="missing-file",
        ),
        pytest.param(
            (EXTRAS, VALUES), HELM, "ValidationError", "spec.helm is not allowed, because no source", id="no-chart"
        ),
        pytest.param(
            (CHART, EXTRAS), "", "ValidationError", 'spec.helm.namespace must be set, because source "chart"', id="no-helm"
        ),
        pytest.param(
            (EXTRAS, EXTRAS.replace("name: extras", "name: more")), "", "FileRepeated",
            'the sources "extras" and "more" both contain the file', id="same-file",
        ),
        pytest.param(
            tuple(EXTRAS.replace("name: extras", f"name: extras-{number}") for number in range(9)), "",
            "ValidationError", "spec.sources has 9 sources, and the setting `sources.max_per_package` allows 8",
            id="too-many",
        ),
    ],
)  # fmt: skip
def test_error_of_a_source_blocks_the_package(
    fleet: Fleet, sources: tuple[str, ...], extra: str, outcome: str, message: str
) -> None:
    fleet.world.write({"web.yaml": request(*sources, extra=extra)})

    result = fleet.world.sync()

    assert any(message in finding.message for finding in result.findings if finding.code == outcome)
    assert not fleet.world.paths(fleet.world.fleet, "drafts/berlin", "web")


def test_set_creates_a_package_with_all_sources_on_each_target(fleet: Fleet) -> None:
    fleet.write_team({"web/lisbon.yaml": "replicas: 5\n"})
    fleet.world.write(
        {
            "web.yaml": (
                "apiVersion: config.porch.kpt.dev/v1alpha2\nkind: PackageVariantSet\nmetadata: {name: web}\n"
                f"spec:\n  sources:\n    - {CHART}\n    - {VALUES}\n    - {EXTRAS}\n  targets:\n"
                "    - repositories: [{name: berlin}, {name: lisbon}]\n      template:\n"
                "        downstream: {package: web}\n        helm:\n          namespace: shop\n"
                "          valuesFilesExprs: [\"'$values/web/' + repository.name + '.yaml'\"]\n"
            )
        }
    )

    fleet.world.sync()

    for cluster, replicas in (("berlin", 3), ("lisbon", 5)):
        assert f"replicas: {replicas}" in fleet.world.text(f"drafts/{cluster}", "web/deployment-web.yaml")
    assert fleet.world.sync_until_unchanged().report.render_count == 0


@pytest.mark.slow
def test_fixed_values_are_those_of_a_single_source(tmp_path: Path) -> None:
    """A fixed value depends on the location of the package, and not on the number of its sources."""
    world = small_world(tmp_path, sources={"helm": {"program": find_program("helm")}})
    stamp = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: stamp}\ndata: {instance: '{{ uuidv4 }}'}\n"
    world.release("charts/web", "v1", chart("1.0.0", stamp=stamp))
    options = "helm: {namespace: shop, onNondeterminism: fixed}"
    texts = []

    for text in (request_single(extra=options), request(CHART, extra=options)):
        world.write({"web.yaml": text})
        assert world.sync().outcomes["berlin/web"] == "draft"
        texts.append(world.text("drafts/berlin", "web/configmap-stamp.yaml"))

    assert texts[0] == texts[1]
