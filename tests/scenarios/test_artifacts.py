"""Tests of charts and packages from chart repositories and OCI registries as upstreams of packages."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciler.krm.yaml import parse_yaml
from tests.scenarios.test_charts import SERVICE, chart
from tests.scenarios.test_plain_folders import MANIFEST
from tests.support.archives import pack_files
from tests.support.artifact_servers import (
    CHART_LAYER,
    FLUX_LAYER,
    Answer,
    ArtifactServer,
    RegistryServer,
    compute_digest,
    serve,
)
from tests.support.charts import FakeHelm
from tests.support.command_line import run_in
from tests.support.git_repositories import git
from tests.support.world import World, package, repository, small_world, variant

pytestmark = pytest.mark.second_pass

OUTPUT = "---\n# Source: web/templates/service.yaml\n" + SERVICE.replace("{{ .Release.Name }}", "web")
CLUSTERS = ("berlin", "lisbon")
ENVIRONMENT = {"PATH": os.environ["PATH"], "HOME": "/nonexistent"}


def describe_repository(repository_type: str, block: str, name: str = "charts") -> str:
    return (
        f"apiVersion: config.porch.kpt.dev/v1alpha1\nkind: Repository\nmetadata: {{name: {name}}}\n"
        f"spec:\n  type: {repository_type}\n  {repository_type}: {block}\n"
    )


def request(upstream: str, cluster: str = "berlin", helm: str = "helm: {namespace: shop}") -> str:
    return (
        f"apiVersion: config.porch.kpt.dev/v1alpha1\nkind: PackageVariant\nmetadata: {{name: web-{cluster}}}\n"
        f"spec:\n  upstream: {{repo: charts, {upstream}}}\n  downstream: {{repo: {cluster}, package: web}}\n  {helm}\n"
    )


def pack_web(version: str, seconds: int = 0) -> bytes:
    """Return the archive of the chart web. `seconds` changes the archive, but not its files."""
    return pack_files({f"web/{path}": text for path, text in chart(version).items()}, seconds)


@pytest.fixture
def server() -> Iterator[ArtifactServer]:
    with serve(ArtifactServer()) as running:
        running.add_chart("web", "1.0.0", pack_web("1.0.0"), created="2017-07-01T00:00:00Z")
        yield running


@pytest.fixture
def helm(tmp_path: Path) -> FakeHelm:
    program = FakeHelm(tmp_path / "bin")
    program.behave(output=OUTPUT)
    return program


SELECTING_SET = """apiVersion: config.porch.kpt.dev/v1alpha2
kind: PackageVariantSet
metadata: {name: web}
spec:
  upstream: {repo: charts, chart: web, version: "~1.0"}
  targets:
    - repositorySelector: {matchLabels: {region: north}}
      template: {helm: {namespace: shop}}
"""


def describe_sources(helm: FakeHelm) -> dict[str, object]:
    return {"poll_seconds": 0, "helm": {"program": str(helm.path)}}


@pytest.fixture
def world(tmp_path: Path, server: ArtifactServer, helm: FakeHelm) -> World:
    world = small_world(tmp_path, sources=describe_sources(helm))
    world.write(
        {
            "charts.yaml": describe_repository("helm", f"{{url: {server.url}/charts}}"),
            **{f"{name}.yaml": request('chart: web, version: "~1.0"', name) for name in CLUSTERS},
        }
    )
    return world


def publish(world: World) -> None:
    """Publish the drafts of all clusters, and record the publications."""
    world.sync()
    for name in CLUSTERS:
        world.merge(name, delete=True)
    world.sync_until_unchanged()


def test_chart_is_drafted_with_a_digest(world: World, server: ArtifactServer, helm: FakeHelm) -> None:
    result = world.sync()

    assert {name: result.outcomes[f"{name}/web"] for name in CLUSTERS} == dict.fromkeys(CLUSTERS, "draft")
    digest = compute_digest(pack_web("1.0.0"))
    lock = parse_yaml(world.text("drafts/berlin", "web/Kptfile")).documents[0].data["upstreamLock"]
    assert lock["generic"] == {
        "storeID": "helm",
        "resourceID": f"{server.url}/charts/web",
        "resourceVersion": f"1.0.0@{digest}",
    }
    upstream = world.package_status("drafts/berlin", "web")["upstream"]["to"]
    assert (upstream["chart"], upstream["version"], upstream["digest"]) == ("web", "1.0.0", digest)
    assert len(helm.calls()) == 1
    assert world.sync_until_unchanged().report.render_count == 0
    assert len(helm.calls()) == 1


def test_explanation_names_the_template_and_the_digest(world: World, helm: FakeHelm) -> None:
    world.sync()
    environment = {**ENVIRONMENT, "RECONCILER_SOURCES__HELM__PROGRAM": str(helm.path)}

    result = run_in(
        world.folder, environment, "explain", "berlin/web", "Service/web", "/spec/type", "-o", "json",
        *world.command_options,
    )  # fmt: skip

    assert result.returncode == 0, result.stderr
    (value,) = json.loads(result.stdout)["items"]
    (step,) = value["steps"]
    assert (step["layer"], step["file"]) == ("upstream", "web/templates/service.yaml")
    assert compute_digest(pack_web("1.0.0")) in json.dumps(step)


@pytest.mark.slow
def test_highest_version_of_a_range_is_used(world: World, server: ArtifactServer) -> None:
    publish(world)
    server.add_chart("web", "1.0.1", pack_web("1.0.1"))
    server.add_chart("web", "1.1.0", pack_web("1.1.0"))

    result = world.sync()

    assert result.outcomes["berlin/web"] == "draft"
    assert world.package_status("drafts/berlin", "web")["upstream"]["to"]["version"] == "1.0.1"
    assert world.package_status("drafts/berlin", "web")["upstream"]["from"]["version"] == "1.0.0"


@pytest.mark.slow
def test_lower_version_after_a_withdrawal_is_marked_as_a_downgrade(world: World, server: ArtifactServer) -> None:
    index = server.files["/charts/index.yaml"]
    server.add_chart("web", "1.0.1", pack_web("1.0.1"))
    publish(world)
    server.files["/charts/index.yaml"] = index

    result = world.sync()

    assert result.outcomes["berlin/web"] == "draft"
    assert world.package_status("drafts/berlin", "web")["upstream"]["to"]["version"] == "1.0.0"
    assert "downgrade" in git(world.fleet, "log", "-1", "--format=%B", "drafts/berlin")


@pytest.mark.slow
def test_new_version_waits_until_it_has_settled(world: World, server: ArtifactServer) -> None:
    upstream = 'chart: web, version: "~1.0", tagPolicy: {settle: 1h}'
    world.write({f"{name}.yaml": request(upstream, name) for name in CLUSTERS})
    publish(world)
    server.add_chart("web", "1.0.1", pack_web("1.0.1"), created="2017-07-14T02:30:00Z")

    result = world.sync()

    assert "UpstreamSettling" in result.codes
    assert result.outcomes["berlin/web"] == "published"
    world.now += 3600
    assert world.sync().outcomes["berlin/web"] == "draft"


def test_archive_with_equal_files_changes_nothing(world: World, server: ArtifactServer) -> None:
    publish(world)
    server.add_chart("web", "1.0.0", pack_web("1.0.0", seconds=1))

    result = world.sync()

    assert result.outcomes["berlin/web"] == "published"
    assert result.changed_branches == set()


@pytest.mark.quick_cases(every=7)
@pytest.mark.parametrize(
    ("answer", "code"),
    [
        pytest.param(Answer(500), "SourceUnreachable", id="server-error"),
        pytest.param(Answer(behavior="hang"), "SourceUnreachable", id="no-response"),
        pytest.param(Answer(behavior="drip", body=b"entries: {}" * 1000), "SourceUnreachable", id="slow-response"),
        pytest.param(Answer(401), "SourceUnauthorized", id="unauthorized"),
        pytest.param(Answer(404), "UpstreamNotFound", id="not-found"),
        pytest.param(Answer(200, {}, b"entries: {}"), "UpstreamNotFound", id="empty-index"),
        pytest.param(Answer(200, {}, b"<html>"), "SourceInvalid", id="no-index"),
    ],
)
def test_unreadable_repository_changes_and_removes_nothing(
    world: World, server: ArtifactServer, helm: FakeHelm, answer: Answer, code: str
) -> None:
    publish(world)
    server.overrides["index.yaml"] = answer
    world.write({"lisbon.yaml": None})

    result = world.with_settings(sources={**describe_sources(helm), "timeout_seconds": 0.5}).sync()

    assert result.outcomes.get("berlin/web", "published") == "published"
    assert result.changed_branches == {"removals/lisbon"}
    assert code in result.codes
    server.overrides.clear()
    world.now += 600
    assert world.sync().outcomes["berlin/web"] == "published"


def test_stopped_repository_changes_only_what_needs_it_not(tmp_path: Path, helm: FakeHelm) -> None:
    """Clusters that leave the selector are removed. Published packages and open drafts of the chart stay."""
    names = ("a", "b", "c", "d")
    world = small_world(tmp_path, sources=describe_sources(helm))
    with serve(ArtifactServer()) as server:
        server.add_chart("web", "1.0.0", pack_web("1.0.0"))
        world.write(
            {
                **dict.fromkeys(("gateway.yaml", "clusters/berlin.yaml", "clusters/lisbon.yaml")),
                **{f"clusters/{name}.yaml": repository(name) for name in names},
                "charts.yaml": describe_repository("helm", f"{{url: {server.url}/charts}}"),
                "set.yaml": SELECTING_SET,
                "metrics.yaml": variant("metrics-a", "a", "metrics"),
            }
        )
        world.sync()
        for name in names:
            world.merge(name, delete=True)
        world.sync_until_unchanged()
        server.add_chart("web", "1.0.1", pack_web("1.0.1"))
        helm.behave(output=OUTPUT.replace("ClusterIP", "NodePort"))
        assert world.sync().outcomes["a/web"] == "draft"
    host = server.host
    drafts = {name: world.head(f"drafts/{name}") for name in names}
    left = {f"clusters/{name}.yaml": repository(name).replace("region: north", "region: none") for name in ("c", "d")}
    world.release("metrics", "v2", package("metrics", image="2.0"))
    world.write({**left, "metrics.yaml": variant("metrics-a", "a", "metrics", "v2")})

    result = world.sync()

    messages = [finding.message for finding in result.findings if finding.code == "SourceUnreachable"]
    assert messages
    assert all(host in message for message in messages)
    assert result.changed_branches == {"drafts/a", "drafts/c", "drafts/d", "removals/c", "removals/d"}
    assert (result.outcomes["a/metrics"], result.outcomes["a/web"], result.outcomes["b/web"]) == (
        "draft", "drafted", "drafted"
    )  # fmt: skip
    assert world.head("drafts/b") == drafts["b"]
    assert "NodePort" in world.text("drafts/a", "web/service-web.yaml")
    assert all("web/service-web.yaml" in world.paths(world.fleet, f"clusters/{name}") for name in names)


def test_new_package_of_an_unreachable_repository_is_stalled(world: World, server: ArtifactServer) -> None:
    server.overrides["index.yaml"] = Answer(500)

    result = world.sync()

    assert "berlin/web" not in result.outcomes
    assert world.reason("web-berlin", "Stalled") == "SourceUnreachable"


def test_missing_version_is_reported_with_the_newest(world: World) -> None:
    world.write({"berlin.yaml": request('chart: web, version: "^9"')})

    result = world.sync()

    (message,) = (finding.message for finding in result.findings if finding.code == "UpstreamNotFound")
    assert message == 'no version of chart "web" in Repository charts matches "^9"; the newest are 1.0.0'


def test_pinned_digest_is_required(world: World) -> None:
    digest = "sha256:" + "0" * 64
    world.write({"berlin.yaml": request(f'chart: web, version: "1.0.0", digest: "{digest}"')})

    result = world.sync()

    assert "DigestMismatch" in result.codes
    assert world.reason("web-berlin", "Stalled") == "DigestMismatch"


@pytest.mark.slow
def test_unchanged_service_pass_is_skipped(world: World, server: ArtifactServer) -> None:
    publish(world)
    service = world.service()
    for _ in range(3):
        service.run()
    assert service.summary.is_skipped

    server.add_chart("web", "1.0.1", pack_web("1.0.1"))
    service.run()

    assert not service.summary.is_skipped
    assert service.summary.changes.update == len(CLUSTERS)


def test_package_of_a_registry_keeps_its_kptfile(tmp_path: Path, registry: RegistryServer) -> None:
    world = small_world(tmp_path, sources={"poll_seconds": 0})
    registry.push("team/web", "v1", pack_files(package("web")))
    world.write(
        {
            "charts.yaml": describe_repository("oci", f"{{registry: {registry.host}/team, insecure: true}}"),
            "web.yaml": request("package: web, tag: v1", helm=""),
        }
    )

    result = world.sync()

    assert result.outcomes["berlin/web"] == "draft"
    kptfile = parse_yaml(world.text("drafts/berlin", "web/Kptfile")).documents[0].data
    assert kptfile["upstreamLock"]["generic"]["storeID"] == "oci"
    world.merge("berlin", delete=True)
    world.sync_until_unchanged()
    world.edit("clusters/berlin", "web/deployment.yaml", "replicas: 2", "replicas: 7")
    registry.push("team/web", "v1", pack_files(package("web", image="2.0")))
    world.sync()
    text = world.text("drafts/berlin", "web/deployment.yaml")
    assert "replicas: 7" in text
    assert "image: example.com/web:2.0" in text


def test_plaintext_secret_of_a_registry_is_refused(tmp_path: Path, registry: RegistryServer) -> None:
    secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: db}\nstringData: {password: hunter2-pw}\n"
    registry.push("team/web", "v1", pack_files(package("web", secret=secret)))
    world = small_world(tmp_path, sources={"poll_seconds": 0})
    world.write(
        {
            "charts.yaml": describe_repository("oci", f"{{registry: {registry.host}/team, insecure: true}}"),
            "web.yaml": request("package: web, tag: v1", helm=""),
        }
    )

    assert world.sync().outcomes["berlin/web"] == "PlaintextSecret"


def test_range_of_a_registry_uses_the_tags(tmp_path: Path, registry: RegistryServer) -> None:
    world = small_world(tmp_path, sources={"poll_seconds": 0})
    for version in ("1.0.0", "1.2.0", "2.0.0"):
        registry.push("team/web", version, pack_files(package("web", image=version)))
    world.write(
        {
            "charts.yaml": describe_repository("oci", f"{{registry: {registry.host}/team, insecure: true}}"),
            "web.yaml": request('package: web, version: "1.x"', helm=""),
        }
    )

    world.sync()

    assert "image: example.com/web:1.2.0" in world.text("drafts/berlin", "web/deployment.yaml")


def test_cache_keeps_the_archives_of_published_packages(tmp_path: Path, registry: RegistryServer) -> None:
    world = small_world(tmp_path, sources={"poll_seconds": 0, "cache_bytes": 0})
    archives = {version: pack_files(package("web", image=version)) for version in ("1.0.0", "1.1.0")}
    registry.push("team/web", "1.0.0", archives["1.0.0"])
    world.write(
        {
            "charts.yaml": describe_repository("oci", f"{{registry: {registry.host}/team, insecure: true}}"),
            "web.yaml": request('package: web, version: "1.0.0"', helm=""),
        }
    )
    world.sync()
    world.merge("berlin", delete=True)
    world.sync_until_unchanged()
    registry.push("team/web", "1.1.0", archives["1.1.0"])
    world.write({"web.yaml": request('package: web, version: "1.1.0"', helm="")})
    world.sync()
    world.sync()

    folder = tmp_path / "cache/sources/sha256"
    digests = {compute_digest(archive).removeprefix("sha256:") for archive in archives.values()}
    assert digests <= {file.name for file in folder.iterdir()}


def request_app(world: World, server: ArtifactServer) -> None:
    """Request a chart in Git that requires the chart common 2.0.0 of the server."""
    lock = f"dependencies:\n- name: common\n  version: 2.0.0\n  repository: {server.url}/charts\n"
    files = {**chart("1.0.0"), "Chart.lock": lock}
    files["Chart.yaml"] += lock.replace("2.0.0", "2.x.x")
    world.release("app", "v1", files)
    upstream = "repo: catalog, package: app, revision: v1"
    berlin = request("").replace("{repo: charts, }", f"{{{upstream}}}")
    world.write({"berlin.yaml": berlin, "lisbon.yaml": None})


def pack_common(text: str = "") -> bytes:
    return pack_files({"common/Chart.yaml": f"apiVersion: v2\nname: common\nversion: 2.0.0\n{text}"})


def test_missing_dependency_is_downloaded_at_its_locked_version(
    world: World, server: ArtifactServer, helm: FakeHelm
) -> None:
    request_app(world, server)
    world.write({"charts.yaml": None})

    result = world.sync()

    (finding,) = (finding for finding in result.findings if finding.code == "DependencyRepositoryMissing")
    assert f'url: "{server.url}/charts"' in finding.message
    world.write({"charts.yaml": describe_repository("helm", f"{{url: {server.url}/charts}}")})
    assert "UpstreamNotFound" in world.sync().codes
    subchart = pack_common()
    server.add_chart("common", "2.0.0", subchart)
    server.add_chart("common", "2.1.0", b"not used")
    result = world.sync()
    assert result.outcomes["berlin/web"] == "draft"
    assert "chart/charts/common/Chart.yaml" in helm.inputs()["files"]
    (dependency,) = world.package_status("drafts/berlin", "web")["upstream"]["to"]["dependencies"]
    assert dependency == {"name": "common", "version": "2.0.0", "digest": compute_digest(subchart)}
    assert world.sync_until_unchanged().report.render_count == 0


@pytest.mark.slow
def test_dependency_must_not_get_other_content(world: World, server: ArtifactServer, helm: FakeHelm) -> None:
    """`Chart.lock` locks versions. The package keeps the content that it uses, or is blocked if this content is gone."""
    server.add_chart("common", "2.0.0", pack_common())
    request_app(world, server)
    world.sync()
    world.merge("berlin", delete=True)
    world.sync_until_unchanged()
    other = pack_common("description: other\n")
    server.add_chart("common", "2.0.0", other)

    result = world.sync()

    (message,) = (finding.message for finding in result.findings if finding.code == "DigestMismatch")
    assert f"must have the digest {compute_digest(pack_common())}, but now it has {compute_digest(other)}" in message
    assert (result.outcomes["berlin/web"], result.changed_branches) == ("published", set())
    text = (world.config / "berlin.yaml").read_text()
    world.write({"berlin.yaml": text.replace("namespace: shop", "namespace: shop, values: {a: 1}")})
    calls = len(helm.calls())
    assert world.sync().outcomes["berlin/web"] == "published"
    assert len(helm.calls()) == calls + 1
    assert "other" not in helm.inputs()["files"]["chart/charts/common/Chart.yaml"]
    shutil.rmtree(world.folder / "cache")
    world.write({"berlin.yaml": text.replace("namespace: shop", "namespace: shop, values: {a: 2}")})
    for _ in range(2):
        result = world.sync()
        assert (result.outcomes["berlin/web"], result.changed_branches) == ("DigestMismatch", set())
        world.now += 600


def test_set_uses_a_chart_for_all_clusters(world: World, server: ArtifactServer, helm: FakeHelm) -> None:
    world.write({f"{name}.yaml": None for name in CLUSTERS})
    # A chart repository can be at the root of a server.
    server.files["/index.yaml"] = server.files["/charts/index.yaml"]
    server.files["/web-1.0.0.tgz"] = server.files["/charts/web-1.0.0.tgz"]
    world.write(
        {
            "charts.yaml": describe_repository("helm", f'{{url: "{server.url}"}}'),
            "set.yaml": (
                "apiVersion: config.porch.kpt.dev/v1alpha2\nkind: PackageVariantSet\nmetadata: {name: web}\n"
                'spec:\n  upstream: {repo: charts, chart: web, version: "~1.0"}\n  targets:\n'
                "    - repositories: [{name: berlin}, {name: lisbon}]\n"
                "      template: {helm: {namespaceExpr: \"'shop-' + repository.labels['region']\"}}\n"
            ),
        }
    )

    result = world.sync()

    assert {name: result.outcomes[f"{name}/web"] for name in CLUSTERS} == dict.fromkeys(CLUSTERS, "draft")
    assert {call[call.index("--namespace") + 1] for call in helm.calls()} == {"shop-north", "shop-south"}
    assert world.sync_until_unchanged().report.render_count == 0


def read_verdicts(world: World, package: str = "web") -> dict[str, tuple[str, str]]:
    """Return the verdict and the reason or notes of `verify` for a package of each cluster."""
    settings = {"cache": str(world.folder / "cache"), "fleet": {"url": str(world.fleet)}, **world._settings}
    (world.folder / "settings.yaml").write_text(json.dumps(settings))
    result = run_in(
        world.folder, ENVIRONMENT, "verify", "--config", world.source, "--settings", "settings.yaml", "-o", "json"
    )
    items = json.loads(result.stdout)["items"]
    return {
        item["package"]: (
            item["verdict"],
            " ".join([item["rerender"].get("reason", ""), *item["rerender"].get("notes", ())]).strip(),
        )
        for item in items
        if item["package"].endswith(f"/{package}")
    }


@pytest.mark.slow
def test_charts_are_verified_from_their_digest(world: World, server: ArtifactServer, helm: FakeHelm) -> None:
    publish(world)
    source = world.package_status("clusters/berlin", "web")["inputs"]["source"]
    assert (source["kind"], source["engine"]["name"], source["namespace"]) == ("helm", "helm", "shop")

    assert {verdict for verdict, _ in read_verdicts(world).values()} == {"reproduced"}

    helm.path.write_text(helm.path.read_text() + "# another build\n")
    verdict, note = read_verdicts(world)["berlin/web"]
    assert (verdict, note.partition(":")[0]) == ("reproduced", "EngineDiffers")
    helm.behave(output=OUTPUT.replace("ClusterIP", "NodePort"))
    shutil.rmtree(world.folder / "cache/renders")
    verdict, note = read_verdicts(world)["berlin/web"]
    assert (verdict, "EngineDiffers" in note) == ("differs", True)

    shutil.rmtree(world.folder / "cache")
    server.files.pop("/charts/web-1.0.0.tgz")
    verdict, note = read_verdicts(world)["berlin/web"]
    assert verdict == "unknowable"
    assert "does not contain the archive" in note
    assert world.sync().changed_branches == set()


def test_withdrawn_version_stays_published(world: World, server: ArtifactServer) -> None:
    world.write({f"{name}.yaml": request('chart: web, version: "1.0.0"', name) for name in CLUSTERS})
    publish(world)
    server.files.pop("/charts/index.yaml")
    server.add_chart("web", "1.1.0", pack_web("1.1.0"))

    result = world.sync()

    assert result.outcomes["berlin/web"] == "published"
    assert "VersionWithdrawn" in result.codes
    assert result.changed_branches == set()
    assert world.sync().after == result.after


@pytest.mark.slow
def test_unavailable_archive_changes_no_package_that_needs_no_render(world: World, server: ArtifactServer) -> None:
    publish(world)
    shutil.rmtree(world.folder / "cache")
    server.overrides[".tgz"] = Answer(503)

    result = world.sync()

    assert result.outcomes["berlin/web"] == "published"
    assert "SourceUnreachable" in result.codes
    world.write({"berlin.yaml": request('chart: web, version: "~1.0"', helm="helm: {namespace: other}")})
    world.now += 600
    result = world.sync()
    assert result.outcomes["berlin/web"] == "SourceUnreachable"
    assert result.changed_branches == set()


@pytest.mark.slow
def test_other_files_for_a_version_are_reported_and_drafted(world: World, server: ArtifactServer) -> None:
    world.write({f"{name}.yaml": request('chart: web, version: "1.0.0"', name) for name in CLUSTERS})
    publish(world)
    files = {f"web/{path}": text for path, text in chart("1.0.0", other="kind: Other\n").items()}
    server.add_chart("web", "1.0.0", pack_files(files))

    result = world.sync()

    messages = [finding.message for finding in result.findings if finding.code == "VersionRewritten"]
    assert len(messages) == len(CLUSTERS)
    assert compute_digest(pack_web("1.0.0")) in messages[0]
    assert compute_digest(pack_files(files)) in messages[0]
    assert result.outcomes["berlin/web"] == "draft"
    upstream = world.package_status("drafts/berlin", "web")["upstream"]
    assert [upstream[side]["digest"] for side in ("from", "to")] == [
        compute_digest(pack_web("1.0.0")), compute_digest(pack_files(files)),
    ]  # fmt: skip


def test_other_files_for_a_pinned_version_are_refused(world: World, server: ArtifactServer) -> None:
    digest = compute_digest(pack_web("1.0.0"))
    upstream = f'chart: web, version: "1.0.0", digest: "{digest}"'
    world.write({f"{name}.yaml": request(upstream, name) for name in CLUSTERS})
    publish(world)
    files = {f"web/{path}": text for path, text in chart("1.0.0", other="kind: Other\n").items()}
    server.add_chart("web", "1.0.0", pack_files(files))
    shutil.rmtree(world.folder / "cache")

    result = world.sync()

    (message, *_) = (finding.message for finding in result.findings if finding.code == "DigestMismatch")
    assert digest in message
    assert compute_digest(pack_files(files)) in message
    assert result.changed_branches == set()


def push_chart(registry: RegistryServer, seconds: int = 0) -> str:
    return registry.push("charts/web", "1.0.0", pack_web("1.0.0", seconds), CHART_LAYER)


@pytest.mark.slow
def test_pinned_manifest_is_read_while_it_exists(tmp_path: Path, registry: RegistryServer, helm: FakeHelm) -> None:
    """A chart that was pushed again with equal files changes nothing, as long as the pinned manifest exists."""
    first = push_chart(registry)
    world = small_world(tmp_path, sources=describe_sources(helm))
    url = f"{{url: 'oci://{registry.host}/charts', insecure: true}}"
    pinned = request(f'chart: web, version: "1.0.0", digest: "{first}"')
    world.write({"charts.yaml": describe_repository("helm", url), "web.yaml": pinned})
    world.sync()
    world.merge("berlin", delete=True)
    world.sync_until_unchanged()
    second = push_chart(registry, seconds=1)

    assert world.sync().is_unchanged
    del registry.manifests["charts/web", first]
    shutil.rmtree(world.folder / "cache")
    result = world.sync()
    (message,) = (finding.message for finding in result.findings if finding.code == "DigestMismatch")
    assert (
        f"requires the digest {first}, but oci://{registry.host}/charts now contains only the digest {second}."
        in message
    )
    assert (result.outcomes["berlin/web"], result.changed_branches) == ("published", set())


def test_pinned_manifest_of_a_new_package_is_gone(tmp_path: Path, registry: RegistryServer, helm: FakeHelm) -> None:
    first = push_chart(registry)
    del registry.manifests["charts/web", first]
    push_chart(registry, seconds=1)
    world = small_world(tmp_path, sources=describe_sources(helm))
    url = f"{{url: 'oci://{registry.host}/charts', insecure: true}}"
    pinned = request(f'chart: web, version: "1.0.0", digest: "{first}"')
    world.write({"charts.yaml": describe_repository("helm", url), "web.yaml": pinned})

    assert "DigestMismatch" in world.sync().codes
    assert world.reason("web-berlin", "Stalled") == "DigestMismatch"


def test_artifact_of_plain_manifests_keeps_its_bytes(tmp_path: Path, registry: RegistryServer) -> None:
    """An artifact with the layer type of Flux and without a Kptfile is copied byte for byte."""
    world = small_world(tmp_path, sources={"poll_seconds": 0})
    registry.push("team/shop", "v1", pack_files({"settings.yaml": MANIFEST}), FLUX_LAYER)
    world.write(
        {
            "charts.yaml": describe_repository("oci", f"{{registry: {registry.host}/team, insecure: true}}"),
            "web.yaml": request("package: shop, tag: v1", helm=""),
        }
    )
    world.sync()
    assert world.text("drafts/berlin", "web/settings.yaml") == MANIFEST
    world.merge("berlin", delete=True)
    world.sync_until_unchanged()
    world.edit("clusters/berlin", "web/settings.yaml", "color: red", "color: blue # agreed")
    registry.push("team/shop", "v1", pack_files({"settings.yaml": MANIFEST.replace('"1"', '"2"')}), FLUX_LAYER)

    world.sync()

    expected = MANIFEST.replace('"1"', '"2"').replace("color: red", "color: blue # agreed")
    assert world.text("drafts/berlin", "web/settings.yaml") == expected
