"""Tests of tenants that use charts and packages of chart repositories and OCI registries."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.scenarios.test_artifacts import describe_repository, describe_sources, pack_web
from tests.scenarios.test_artifacts import helm as helm
from tests.scenarios.test_charts import chart
from tests.scenarios.test_tenancy import list_messages, tenant
from tests.support.archives import pack_files
from tests.support.artifact_servers import ArtifactServer, RegistryServer, serve
from tests.support.charts import FakeHelm
from tests.support.world import World, package, small_world


@pytest.fixture
def server() -> Iterator[ArtifactServer]:
    with serve(ArtifactServer()) as running:
        running.add_chart("web", "1.0.0", pack_web("1.0.0"))
        yield running


@pytest.fixture
def registry() -> Iterator[RegistryServer]:
    with serve(RegistryServer()) as running:
        running.push("team/web", "v1", pack_files(package("web")))
        yield running


@pytest.fixture
def world(tmp_path: Path, server: ArtifactServer, registry: RegistryServer, helm: FakeHelm) -> World:
    world = small_world(tmp_path, sources=describe_sources(helm))
    world.write(
        {
            "charts.yaml": describe_repository("helm", f"{{url: {server.url}/charts}}"),
            "packages.yaml": describe_repository("oci", f"{{registry: {registry.host}/team, insecure: true}}", "oci"),
            "tenants/payments.yaml": tenant(),
        }
    )
    return world


def request(upstream: str) -> str:
    helm = "" if "package:" in upstream and "app" not in upstream else "  helm: {namespace: payments}\n"
    return (
        "apiVersion: config.porch.kpt.dev/v1alpha1\nkind: PackageVariant\nmetadata: {name: pay}\n"
        f"spec:\n  upstream: {{{upstream}}}\n  downstream: {{repo: berlin, package: payments/web}}\n{helm}"
    )


def request_with_sources(*upstreams: str) -> str:
    sources = "".join(f"  - {{name: s{index}, {upstream}}}\n" for index, upstream in enumerate(upstreams))
    return (
        "apiVersion: config.porch.kpt.dev/v1alpha1\nkind: PackageVariant\nmetadata: {name: pay}\n"
        f"spec:\n  sources:\n{sources}  downstream: {{repo: berlin, package: payments/web}}\n"
        "  helm: {namespace: payments}\n"
    )


def request_set(upstream: str, expression: str) -> str:
    return (
        "apiVersion: config.porch.kpt.dev/v1alpha2\nkind: PackageVariantSet\nmetadata: {name: pay}\n"
        f"spec:\n  upstream: {{{upstream}}}\n  targets:\n  - repositories: [{{name: berlin}}]\n"
        f'    template: {{downstream: {{packageExpr: "{expression}"}}, helm: {{namespace: payments}}}}\n'
    )


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize(
    "text",
    [
        pytest.param(request('repo: charts, chart: web, version: "1.0.0"'), id="chart"),
        pytest.param(request('repo: charts, chart: web, version: "^9"'), id="range-without-a-match"),
        pytest.param(request("repo: oci, package: web, tag: v1"), id="tag"),
        pytest.param(request('repo: oci, package: web, version: "^9"'), id="range-of-tags"),
        pytest.param(
            request_with_sources('repo: charts, chart: web, version: "1.0.0"', "repo: oci, package: web, tag: v1"),
            id="sources",
        ),
        pytest.param(
            request_set('repo: charts, chart: web, version: "^9"', "'payments/' + upstream.revision"), id="set"
        ),
    ],
)
@pytest.mark.parametrize("command", ["sync", "validate"])
def test_forbidden_source_is_not_requested(
    world: World, server: ArtifactServer, registry: RegistryServer, text: str, command: str
) -> None:
    world.write({"teams/payments/web.yaml": text})

    all_findings = world.sync().findings if command == "sync" else world.validate()

    findings = [finding for finding in all_findings if finding.location.file == "teams/payments/web.yaml"]
    assert "spec.allow.upstreams" in " ".join(finding.message for finding in findings)
    assert not any("1.0.0" in finding.message for finding in findings)
    assert [server.paths, registry.paths] == [[], []]


def test_forbidden_dependency_is_not_requested(world: World, server: ArtifactServer, helm: FakeHelm) -> None:
    server.add_chart(
        "common", "2.0.0", pack_files({"common/Chart.yaml": "apiVersion: v2\nname: common\nversion: 2.0.0\n"})
    )
    dependency = f"dependencies:\n- name: common\n  version: 2.0.0\n  repository: {server.url}/charts\n"
    files = chart("1.0.0")
    world.release("app", "v1", {**files, "Chart.yaml": files["Chart.yaml"] + dependency})
    world.write({"teams/payments/web.yaml": request("repo: catalog, package: app, revision: v1")})

    result = world.sync()

    (message,) = list_messages(result, "DependencyRepositoryMissing")
    assert "spec.allow.upstreams" in message
    assert server.paths == []
    world.write({"tenants/payments.yaml": tenant(upstreams="['**/catalog', '127.0.0.1:*/charts']")})
    assert world.sync().outcomes["berlin/payments/web"] == "draft"
    # The package needs the right for the dependency in each pass.
    world.write({"tenants/payments.yaml": tenant()})
    result = world.sync()
    assert "spec.allow.upstreams" in " ".join(finding.message for finding in result.findings)


def test_allowed_source_is_used_after_the_right_is_granted(world: World, server: ArtifactServer) -> None:
    world.write({"teams/payments/web.yaml": request('repo: charts, chart: web, version: "1.0.0"')})
    assert len(list_messages(world.sync())) == 1
    world.write({"tenants/payments.yaml": tenant(upstreams="['127.0.0.1:*/charts']")})

    result = world.sync()

    assert list_messages(result) == []
    assert result.outcomes["berlin/payments/web"] == "draft"


@pytest.mark.parametrize("url", ["SERVER/secret/web.tgz", "../secret/web.tgz"])
def test_tenant_cannot_use_the_credentials_of_the_settings_for_other_charts(
    world: World, server: ArtifactServer, helm: FakeHelm, url: str
) -> None:
    """The tenant writes the index of its repository. The index names the chart of another team on the same host."""
    server.login = ("reader", "a-long-password")
    (world.folder / "credentials").write_text(f"http://reader:a-long-password@{server.host}\n")
    world = world.with_settings(
        sources={**describe_sources(helm), "credentials_file": str(world.folder / "credentials")}
    )
    server.files["/secret/web.tgz"] = pack_web("1.0.0")
    server.add_chart("web", "1.0.0", pack_web("1.0.0"), urls=[url.replace("SERVER", server.url)])
    server.add_chart("app", "1.0.0", pack_web("1.0.0"))
    world.write(
        {
            "tenants/payments.yaml": tenant(upstreams="['127.0.0.1:*/charts']"),
            "teams/payments/web.yaml": request('repo: charts, chart: web, version: "1.0.0"'),
        }
    )

    result = world.sync()

    (message,) = list_messages(result, "SourceUnauthorized")
    assert "passCredentials" in message
    assert "berlin/payments/web" not in result.outcomes
    sent = [request.path for request in server.requests if "authorization" in request.headers]
    assert sent
    assert all(path.startswith("/charts/") for path in sent)
    # The charts in the folder of the index are available.
    world.write({"teams/payments/web.yaml": request('repo: charts, chart: app, version: "1.0.0"')})
    assert world.sync().outcomes["berlin/payments/web"] == "draft"
