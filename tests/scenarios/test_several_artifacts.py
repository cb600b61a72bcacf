"""Tests of packages with several sources from a chart repository, which changes or is unreachable."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.scenarios.test_artifacts import OUTPUT, describe_repository, describe_sources, pack_web
from tests.scenarios.test_charts import chart
from tests.scenarios.test_several_sources import ALERT, EXTRAS, VALUES, request
from tests.support.archives import pack_files
from tests.support.artifact_servers import Answer, ArtifactServer, RegistryServer, compute_digest, serve
from tests.support.charts import FakeHelm
from tests.support.git_repositories import commit_files, make_bare
from tests.support.world import repository, small_world

pytestmark = pytest.mark.second_pass

HELM = "helm: {namespace: shop, valuesFiles: [$values/web.yaml]}"


def chart_source(version: str = "~1.0", policy: str = "") -> str:
    return f'{{name: chart, repo: charts, chart: web, version: "{version}"{policy}}}'


class SeveralArtifacts:
    """A package from a chart of a repository, values of a team in Git, and a folder of the catalog."""

    def __init__(self, folder: Path, server: ArtifactServer) -> None:
        self.helm = FakeHelm(folder / "bin")
        self.helm.behave(output=OUTPUT)
        self.server = server
        self.world = small_world(folder, sources=describe_sources(self.helm))
        self.team = folder / "team.git"
        make_bare(self.team)
        self.write_values("replicas: 1\n")
        self.world.release("alerts", "v1", {"alert.yaml": ALERT})
        team = repository("team", "./team.git", branch="main").replace("deployment: true", "deployment: false")
        self.world.write(
            {"charts.yaml": describe_repository("helm", f"{{url: {server.url}/charts}}"), "team.yaml": team}
        )
        self.request()

    def request(self, chart: str = chart_source(), extra: str = HELM) -> None:
        self.world.write({"web.yaml": request(chart, VALUES, EXTRAS, extra=extra)})

    def write_values(self, text: str) -> None:
        commit_files(self.team, "refs/heads/main", {"web.yaml": text.encode()}, "values", 1_000_000_000)

    def publish(self) -> None:
        self.world.sync()
        self.world.merge("berlin", delete=True)
        self.world.sync_until_unchanged()

    def read_versions(self, branch: str = "drafts/berlin") -> dict[str, str]:
        """Return the version or ref of each source of the package on a branch."""
        sources = self.world.package_status(branch, "web")["upstream"]["to"]["sources"]
        return {source["name"]: source.get("version") or source["ref"] for source in sources}

    def read_digest(self, branch: str) -> str:
        """Return the digest of the chart of the package on a branch."""
        digest: str = self.world.package_status(branch, "web")["upstream"]["to"]["sources"][0]["digest"]
        return digest


@pytest.fixture
def server() -> Iterator[ArtifactServer]:
    with serve(ArtifactServer()) as running:
        running.add_chart("web", "1.0.0", pack_web("1.0.0"), created="2017-07-01T00:00:00Z")
        yield running


@pytest.fixture
def fleet(tmp_path: Path, server: ArtifactServer) -> SeveralArtifacts:
    return SeveralArtifacts(tmp_path, server)


@pytest.mark.slow
def test_range_moves_in_one_source(fleet: SeveralArtifacts, server: ArtifactServer) -> None:
    fleet.publish()
    server.add_chart("web", "1.0.1", pack_web("1.0.1"))
    server.add_chart("web", "1.1.0", pack_web("1.1.0"))

    assert fleet.world.sync().outcomes["berlin/web"] == "draft"

    assert fleet.read_versions() == {"chart": "1.0.1", "values": "main", "extras": "alerts/v1"}
    before = fleet.world.package_status("drafts/berlin", "web")["upstream"]["from"]["sources"]
    assert [source.get("version") or source["ref"] for source in before] == ["1.0.0", "main", "alerts/v1"]
    assert fleet.world.sync_until_unchanged().report.render_count == 0


@pytest.mark.slow
def test_new_version_of_one_source_settles(fleet: SeveralArtifacts, server: ArtifactServer) -> None:
    fleet.request(chart_source(policy=", tagPolicy: {settle: 1h}"))
    fleet.publish()
    server.add_chart("web", "1.0.1", pack_web("1.0.1"), created="2017-07-14T02:30:00Z")

    result = fleet.world.sync()

    (finding,) = (finding for finding in result.findings if finding.code == "UpstreamSettling")
    assert "1.0.1" in finding.message
    assert result.outcomes["berlin/web"] == "published"
    fleet.world.now += 3600
    assert fleet.world.sync().outcomes["berlin/web"] == "draft"
    assert fleet.read_versions()["chart"] == "1.0.1"


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize(
    ("answer", "code"),
    [
        pytest.param(Answer(500), "SourceUnreachable", id="server-error"),
        pytest.param(Answer(401), "SourceUnauthorized", id="unauthorized"),
        pytest.param(Answer(404), "UpstreamNotFound", id="not-found"),
        pytest.param(Answer(200, {}, b"entries: {}"), "UpstreamNotFound", id="empty-index"),
    ],
)
def test_unreachable_source_changes_and_removes_nothing(
    fleet: SeveralArtifacts, server: ArtifactServer, answer: Answer, code: str
) -> None:
    fleet.publish()
    server.overrides["index.yaml"] = answer

    result = fleet.world.sync()

    assert result.outcomes.get("berlin/web", "published") == "published"
    assert result.changed_branches == set()
    assert code in result.codes
    server.overrides.clear()
    fleet.world.now += 600
    assert fleet.world.sync().outcomes["berlin/web"] == "published"


def test_unreachable_source_of_a_new_package_is_named(fleet: SeveralArtifacts, server: ArtifactServer) -> None:
    server.overrides["index.yaml"] = Answer(500)

    result = fleet.world.sync()

    assert "berlin/web" not in result.outcomes
    assert fleet.world.reason("web-berlin", "Stalled") == "SourceUnreachable"
    assert any("source chart: " in finding.message for finding in result.findings)


@pytest.mark.slow
def test_unavailable_archive_changes_no_package_that_needs_no_render(
    fleet: SeveralArtifacts, server: ArtifactServer
) -> None:
    fleet.publish()
    shutil.rmtree(fleet.world.folder / "cache")
    server.overrides[".tgz"] = Answer(503)

    result = fleet.world.sync()

    assert result.outcomes["berlin/web"] == "published"
    assert "SourceUnreachable" in result.codes
    fleet.write_values("replicas: 2\n")
    fleet.world.now += 600
    result = fleet.world.sync()
    assert result.outcomes["berlin/web"] == "SourceUnreachable"
    assert result.changed_branches == set()


@pytest.mark.slow
def test_unavailable_values_of_a_registry_change_nothing(fleet: SeveralArtifacts, registry: RegistryServer) -> None:
    """The content of values from a registry is not recorded. Without them, the published package stays."""
    registry.push("team/values", "v1", pack_files({"web.yaml": "replicas: 1\n"}))
    url = f"{{registry: {registry.host}/team, insecure: true}}"
    values = "{name: values, repo: oci, package: values, tag: v1, ref: true}"
    fleet.world.write(
        {"oci.yaml": describe_repository("oci", url, "oci"), "web.yaml": request(chart_source(), values, extra=HELM)}
    )
    fleet.publish()
    assert fleet.world.sync().outcomes["berlin/web"] == "published"
    shutil.rmtree(fleet.world.folder / "cache")
    registry.overrides["/v2/"] = Answer(503)

    result = fleet.world.sync()

    assert result.changed_branches == set()
    assert fleet.world.reason("web-berlin", "Stalled") == "SourceUnreachable"
    registry.overrides.clear()
    fleet.world.now += 600
    assert fleet.world.sync().outcomes["berlin/web"] == "published"


@pytest.mark.slow
def test_withdrawn_version_of_one_source_stays_published(fleet: SeveralArtifacts, server: ArtifactServer) -> None:
    fleet.request(chart_source("1.0.0"))
    fleet.publish()
    server.files.pop("/charts/index.yaml")
    server.add_chart("web", "1.1.0", pack_web("1.1.0"))

    result = fleet.world.sync()

    assert result.outcomes["berlin/web"] == "published"
    assert "VersionWithdrawn" in result.codes
    assert result.changed_branches == set()


@pytest.mark.slow
def test_withdrawn_version_of_values_stays_published(fleet: SeveralArtifacts, registry: RegistryServer) -> None:
    """The lock of a source with values files has its digest, with which the files are read."""
    registry.push("team/values", "1.0.0", pack_files({"web.yaml": "replicas: 1\n"}))
    registry.push("team/values", "2.0.0", pack_files({"web.yaml": "replicas: 2\n"}))
    url = f"{{registry: {registry.host}/team, insecure: true}}"
    values = '{name: values, repo: oci, package: values, version: "1.0.0", ref: true}'
    fleet.world.write(
        {"oci.yaml": describe_repository("oci", url, "oci"), "web.yaml": request(chart_source(), values, extra=HELM)}
    )
    fleet.publish()
    del registry.manifests["team/values", "1.0.0"]
    fleet.world.now += 600
    # The record of the tag is not in the cache any more.
    shutil.rmtree(fleet.world.folder / "cache/sources/index")

    result = fleet.world.sync()

    assert "VersionWithdrawn" in result.codes, result.findings
    assert (result.outcomes["berlin/web"], result.changed_branches) == ("published", set())


@pytest.mark.slow
def test_rewritten_version_of_one_source_is_reported(fleet: SeveralArtifacts, server: ArtifactServer) -> None:
    fleet.request(chart_source("1.0.0"))
    fleet.publish()
    files = {f"web/{path}": text for path, text in chart("1.0.0", other="kind: Other\n").items()}
    server.add_chart("web", "1.0.0", pack_files(files))

    result = fleet.world.sync()

    (message,) = (finding.message for finding in result.findings if finding.code == "VersionRewritten")
    assert compute_digest(pack_web("1.0.0")) in message
    assert compute_digest(pack_files(files)) in message


@pytest.mark.slow
def test_archive_with_equal_files_keeps_its_digest(fleet: SeveralArtifacts, server: ArtifactServer) -> None:
    """An archive that was packed again is no move, also if another source changes."""
    fleet.publish()
    server.add_chart("web", "1.0.0", pack_web("1.0.0", seconds=1))
    assert fleet.world.sync().changed_branches == set()
    world = fleet.world
    world.release("alerts", "v2", {"alert.yaml": ALERT.replace("high", "low")})
    world.write({"web.yaml": request(chart_source(), VALUES, EXTRAS.replace("v1", "v2"), extra=HELM)})

    assert world.sync().outcomes["berlin/web"] == "draft"

    digest = compute_digest(pack_web("1.0.0"))
    assert fleet.read_versions() == {"chart": "1.0.0", "values": "main", "extras": "alerts/v2"}
    assert fleet.read_digest("drafts/berlin") == fleet.read_digest("clusters/berlin") == digest
