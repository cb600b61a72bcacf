"""Tests of charts in Kustomize overlays: they are downloaded through Repositories before the build."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciler.krm.yaml import parse_yaml
from tests.scenarios.test_artifacts import describe_repository, pack_web, read_verdicts
from tests.support.archives import pack_chart, pack_files
from tests.support.artifact_servers import ArtifactServer, compute_digest, serve
from tests.support.charts import FakeKustomize, format_config_map
from tests.support.programs import find_program
from tests.support.world import World, small_world, variant

pytestmark = pytest.mark.second_pass

OPTIONS = "kustomize: {path: prod, helmCharts: render}"
DATE = format_config_map("built", '"{{ now | date "2006" }}"')


@pytest.fixture
def server() -> Iterator[ArtifactServer]:
    with serve(ArtifactServer()) as running:
        running.add_chart("web", "1.0.0", pack_web("1.0.0"))
        yield running


def write_overlay(server: ArtifactServer, **fields: str) -> dict[str, str]:
    """Return an overlay with one chart. `fields` replaces the fields of its entry; "" omits a field."""
    entry = {
        "name": "web", "version": "1.0.0", "repo": f"{server.url}/charts", "releaseName": "shop",
        "valuesInline": "{replicas: 3}", **fields,
    }  # fmt: skip
    text = ", ".join(f"{name}: {value}" for name, value in entry.items() if value)
    return {"prod/kustomization.yaml": f"commonAnnotations: {{team: a}}\nhelmCharts:\n  - {{{text}}}\n"}


def create_world(tmp_path: Path, server: ArtifactServer, program: str = "", helm: str = "", **fields: str) -> World:
    programs = {
        "kustomize": {"program": program or find_program("kustomize")}, "helm": {"program": helm or find_program("helm")}
    }  # fmt: skip
    world = small_world(tmp_path, sources={"poll_seconds": 0, **programs})
    world.release("apps/web", "v1", write_overlay(server, **fields))
    world.write({"web.yaml": variant("web", "berlin", "web", upstream="apps/web", extra=OPTIONS)})
    add_repository(world, server)
    return world


def add_repository(world: World, server: ArtifactServer) -> None:
    world.write({"charts.yaml": describe_repository("helm", f"{{url: {server.url}/charts}}")})


def add_chart(server: ArtifactServer, template: str, values: str = "{}\n") -> None:
    """Add the chart web 2.0.0 with one template."""
    files = {"templates/a.yaml": template, "values.yaml": values}
    server.add_chart("web", "2.0.0", pack_chart("web", "2.0.0", files))


@pytest.mark.slow
@pytest.mark.parametrize("program", ["kustomize", "kubectl"])
def test_overlay_contains_the_resources_of_the_chart(tmp_path: Path, server: ArtifactServer, program: str) -> None:
    world = create_world(tmp_path, server, find_program(program))

    result = world.sync()

    assert result.outcomes["berlin/web"] == "draft", result.findings
    files = world.files(world.fleet, "drafts/berlin", "web")
    deployment = parse_yaml(files["deployment-shop.yaml"]).documents[0].data
    assert deployment["spec"]["replicas"] == 3
    assert not any("Chart.yaml" in path for path in files)
    (dependency,) = world.package_status("drafts/berlin", "web")["upstream"]["to"]["dependencies"]
    assert dependency == {"name": "web", "version": "1.0.0", "digest": compute_digest(pack_web("1.0.0"))}
    server.requests.clear()
    assert world.sync_until_unchanged().report.render_count == 0
    assert not [path for path in server.paths if path.endswith(".tgz")]


@pytest.mark.slow
def test_published_package_can_be_verified(tmp_path: Path, server: ArtifactServer) -> None:
    world = create_world(tmp_path, server)
    world.sync()
    world.merge("berlin", delete=True)
    world.sync_until_unchanged()

    assert read_verdicts(world)["berlin/web"] == ("reproduced", "")


@pytest.mark.slow
def test_overlay_can_be_one_of_several_sources(tmp_path: Path, server: ArtifactServer) -> None:
    world = create_world(tmp_path, server)
    world.release("extra", "v1", {"extra.yaml": format_config_map("extra")})
    sources = (
        f"  sources:\n    - {{name: overlay, repo: catalog, package: apps/web, revision: v1, {OPTIONS}}}\n"
        "    - {name: extra, repo: catalog, package: extra, revision: v1}\n"
    )
    request = variant("web", "berlin", "web", upstream="apps/web")
    start, _, end = request.partition("  upstream:")
    world.write({"web.yaml": start + sources + end.partition("\n")[2], "charts.yaml": None})

    (finding,) = (finding for finding in world.sync().findings if finding.code == "DependencyRepositoryMissing")

    assert finding.message.startswith("source overlay: prod/kustomization.yaml:3: helmCharts[0] requires")
    add_repository(world, server)
    assert world.sync().outcomes["berlin/web"] == "draft"
    paths = world.paths(world.fleet, "drafts/berlin", "web")
    assert {"deployment-shop.yaml", "extra.yaml"} <= set(paths)
    assert world.sync_until_unchanged().report.render_count == 0


@pytest.mark.slow
def test_chart_with_new_content_is_a_draft(tmp_path: Path, server: ArtifactServer) -> None:
    world = create_world(tmp_path, server)
    world.sync()
    world.merge("berlin", delete=True)
    world.sync_until_unchanged()
    server.add_chart(
        "web",
        "1.0.0",
        pack_chart("web", "1.0.0", {"templates/a.yaml": format_config_map("new"), "values.yaml": "{}\n"}),
    )

    result = world.sync()

    assert result.outcomes["berlin/web"] == "draft", result.findings

    assert "configmap-new.yaml" in world.paths(world.fleet, "drafts/berlin", "web")
    assert world.sync_until_unchanged().report.render_count == 0


@pytest.mark.slow
def test_missing_repository_is_named_until_it_is_added(tmp_path: Path, server: ArtifactServer) -> None:
    world = create_world(tmp_path, server)
    world.write({"charts.yaml": None})

    (finding,) = (finding for finding in world.sync().findings if finding.code == "DependencyRepositoryMissing")

    assert (
        'prod/kustomization.yaml:3: helmCharts[0] requires version "1.0.0" of the chart "web", but the upstream package'
        in finding.message
    )
    assert (
        f'kind: Repository, metadata: {{name: web-charts}}, spec: {{type: helm, helm: {{url: "{server.url}/charts"'
        in (finding.message)
    )
    add_repository(world, server)
    result = world.sync()

    assert result.outcomes["berlin/web"] == "draft", result.findings


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize(
    ("fields", "code", "message"),
    [
        pytest.param(
            {"version": '"~1.0"'}, "ChartNotLocked",
            'prod/kustomization.yaml:3: helmCharts[0].version must be an exact version, such as "1.2.3", but is "~1.0',
            id="range",
        ),
        pytest.param({"version": ""}, "ChartNotLocked", "helmCharts[0].version must be an exact", id="no-version"),
        pytest.param({"version": "1.0"}, "ChartNotLocked", 'but is "1.0"', id="number"),
        pytest.param({"name": "../web"}, "KustomizeFailed", "helmCharts[0].name must be the name", id="name"),
        pytest.param(
            {"repo": ""}, "KustomizeFailed", 'refers to the chart "prod/charts/web", which the',
            id="no-repository",
        ),
        pytest.param(
            {"valuesFile": '"https://a.example/v.yaml"'}, "RemoteBaseRefused",
            'helmCharts[0] refers to the URL "https://a.example/v.yaml".', id="values-url",
        ),
        pytest.param(
            {"additionalValuesFiles": "[../../x]"}, "PathInvalid", '"../../x", which is outside of the upstream package',
            id="values-outside",
        ),
        pytest.param({"version": "9.0.0"}, "UpstreamNotFound", 'has no version "9.0.0" of the chart "web"', id="no-chart"),
    ],
)  # fmt: skip
def test_invalid_entry(tmp_path: Path, server: ArtifactServer, fields: dict[str, str], code: str, message: str) -> None:
    program = FakeKustomize(tmp_path / "bin")
    world = create_world(tmp_path, server, str(program.path), **fields)

    (finding,) = (finding for finding in world.sync().findings if finding.code == code)

    assert message in finding.message
    assert not program.calls()


def test_charts_are_refused_by_default(tmp_path: Path, server: ArtifactServer) -> None:
    program = FakeKustomize(tmp_path / "bin")
    world = create_world(tmp_path, server, str(program.path))
    world.write({"web.yaml": variant("web", "berlin", "web", upstream="apps/web", extra="kustomize: {path: prod}")})

    (finding,) = (finding for finding in world.sync().findings if finding.code == "KustomizeFailed")

    assert "helmCharts must not be set, because charts of an overlay are not rendered" in finding.message
    assert not program.calls()
    assert not [path for path in server.paths if path.endswith(".tgz")]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("template", "values", "inline", "place"),
    [
        pytest.param(DATE, "{}\n", "", "now (prod/charts/web-2.0.0/web/templates/a.yaml:6)", id="template"),
        pytest.param(
            format_config_map("x", '{{ tpl .Values.text . | quote }}'), "text: x\n", '{text: "{{ randAlphaNum 5 }}"}',
            "randAlphaNum (prod/kustomization.yaml:3)", id="inline-value",
        ),
    ],
)  # fmt: skip
def test_output_that_changes_with_each_build_is_refused(
    tmp_path: Path, server: ArtifactServer, template: str, values: str, inline: str, place: str
) -> None:
    add_chart(server, template, values)
    world = create_world(tmp_path, server, version="2.0.0", valuesInline=inline)

    (finding,) = (finding for finding in world.sync().findings if finding.code == "NondeterministicChart")

    assert f" depends on {place}, and can change with each render. Next step: set values" in finding.message
    assert "onNondeterminism" not in finding.message


@pytest.mark.slow
def test_unused_random_function_is_accepted(tmp_path: Path, server: ArtifactServer) -> None:
    add_chart(server, "{{ if .Values.random }}{{ randAlphaNum 5 }}{{ end }}\n" + format_config_map("x"))
    world = create_world(tmp_path, server, version="2.0.0", valuesInline="")

    result = world.sync()

    assert result.outcomes["berlin/web"] == "draft", result.findings


@pytest.mark.slow
def test_hooks_and_secrets_follow_the_rules_for_charts(tmp_path: Path, server: ArtifactServer) -> None:
    hook = format_config_map("hook").replace("name: hook", "name: hook\n  annotations: {helm.sh/hook: pre-delete}")
    add_chart(server, f"{format_config_map('x')}---\n{hook}")
    world = create_world(tmp_path, server, version="2.0.0", valuesInline="")

    result = world.sync()

    assert "HookLeftOut" in result.codes
    paths = world.paths(world.fleet, "drafts/berlin", "web")
    assert "configmap-x.yaml" in paths
    assert "configmap-hook.yaml" not in paths
    add_chart(server, "apiVersion: v1\nkind: Secret\nmetadata: {name: x}\nstringData: {password: hunter2hunter2}\n")
    (finding,) = (finding for finding in world.sync().findings if finding.code == "PlaintextSecret")
    assert "hunter2" not in finding.message


@pytest.mark.slow
def test_chart_with_a_missing_dependency_gets_it(tmp_path: Path, server: ArtifactServer) -> None:
    dependencies = f"dependencies: [{{name: common, version: 3.0.0, repository: {server.url}/charts}}]\n"
    chart = f"apiVersion: v2\nname: web\nversion: 2.0.0\n{dependencies}"
    server.add_chart("web", "2.0.0", pack_files({"web/Chart.yaml": chart, "web/values.yaml": ""}))
    server.add_chart("common", "3.0.0", pack_chart("common", "3.0.0", {"templates/a.yaml": format_config_map("sub")}))
    world = create_world(tmp_path, server, version="2.0.0", valuesInline="")

    result = world.sync()

    assert result.outcomes["berlin/web"] == "draft", result.findings

    assert "configmap-sub.yaml" in world.paths(world.fleet, "drafts/berlin", "web")
    status = world.package_status("drafts/berlin", "web")["upstream"]["to"]["dependencies"]
    assert [entry["name"] for entry in status] == ["web", "common"]


def test_failure_of_helm_names_the_template_without_temporary_folders(tmp_path: Path, server: ArtifactServer) -> None:
    add_chart(server, '{{ required "set the host" .Values.host }}')
    world = create_world(tmp_path, server, version="2.0.0", valuesInline="")

    (finding,) = (finding for finding in world.sync().findings if finding.code == "KustomizeFailed")

    assert "set the host" in finding.message
    assert "web/templates/a.yaml" in finding.message
    assert not any(text in finding.message for text in ("/dev/shm", "/tmp", "unable to run", "kustomize-helm"))


def test_missing_helm_blocks_the_overlay(tmp_path: Path, server: ArtifactServer) -> None:
    world = create_world(tmp_path, server, helm="/absent/helm")

    assert "HelmUnavailable" in world.sync().codes


def test_old_program_blocks_the_overlay(tmp_path: Path, server: ArtifactServer) -> None:
    program = FakeKustomize(tmp_path / "bin")
    program.behave(version="v5.3.0")
    world = create_world(tmp_path, server, str(program.path))

    (finding,) = (finding for finding in world.sync().findings if finding.code == "EngineUnsupported")

    assert (
        "the overlay prod has charts, and charts need kustomize >=5.4. Next step: install kustomize" in finding.message
    )
    assert not program.calls()
