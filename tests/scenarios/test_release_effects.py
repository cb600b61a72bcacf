"""Tests of the effects of changed HelmReleases: `plan` shows the resources that Flux creates, which Git does not have."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.scenarios.test_artifacts import ENVIRONMENT, describe_repository, pack_web
from tests.scenarios.test_charts import chart
from tests.support.archives import pack_files
from tests.support.artifact_servers import CHART_LAYER, ArtifactServer, RegistryServer, serve
from tests.support.charts import FakeHelm
from tests.support.command_line import run_in
from tests.support.world import World, small_world

# The resources contain the version of the chart, the values, and a Secret.
RENDER = """
values = json.loads(pathlib.Path("values.json").read_text())
version = pathlib.Path("chart/Chart.yaml").read_text().partition("version: ")[2].split()[0]
resources = [
    {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
     "spec": {"replicas": values.get("replicas", 1)}},
    {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web"}, "data": {"version": version}},
    {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "db"}, "stringData": {"password": "horse-" + version}},
]
if values.get("ingress"):
    resources.append({"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"name": "web"}})
print("\\n---\\n".join(["", *map(json.dumps, resources)]))
"""
RELEASE = """apiVersion: config.porch.kpt.dev/v1alpha1
kind: PackageVariant
metadata: {name: web-%(cluster)s}
spec:
  upstream: {repo: charts, chart: web, version: "%(version)s"}
  downstream: {repo: %(cluster)s, package: web}
  helm: {namespace: shop, output: %(output)s, values: {%(values)s}%(options)s}
"""
CLUSTERS = ("berlin", "lisbon")
PREFIX = "effect of the release shop/web: "


@pytest.fixture
def server() -> Iterator[ArtifactServer]:
    with serve(ArtifactServer()) as running:
        running.add_chart("web", "1.0.0", pack_web("1.0.0"))
        running.add_chart("web", "2.0.0", pack_web("2.0.0"))
        yield running


@pytest.fixture
def helm(tmp_path: Path) -> FakeHelm:
    helm = FakeHelm(tmp_path / "bin")
    helm.behave(code=RENDER)
    return helm


@pytest.fixture
def world(tmp_path: Path, server: ArtifactServer, helm: FakeHelm) -> World:
    world = small_world(tmp_path, sources={"poll_seconds": 0, "helm": {"program": str(helm.path)}})
    world.write({"charts.yaml": describe_repository("helm", f"{{url: {server.url}/charts}}")})
    return world


def write_release(
    world: World,
    values: str = "replicas: 2",
    *,
    version: str = "1.0.0",
    output: str = "helmRelease",
    options: str = "",
    clusters: Sequence[str] = ("berlin",),
) -> None:
    for cluster in clusters:
        fields = {"cluster": cluster, "version": version, "output": output, "values": values, "options": options}
        world.write({f"{cluster}.yaml": RELEASE % fields})


def publish(world: World, clusters: Sequence[str] = ("berlin",)) -> None:
    world.sync()
    for cluster in clusters:
        world.merge(cluster, delete=True)
    world.sync_until_unchanged()


def _read_environment(world: World) -> dict[str, str]:
    """Return the variables with which a command uses the charts of the fleet."""
    settings = {
        "RECONCILER_SOURCES__HELM__PROGRAM": str(world.folder / "bin/helm"),
        "RECONCILER_SOURCES__POLL_SECONDS": "0",
    }
    return {**ENVIRONMENT, **settings}


def plan(world: World, output: str = "text") -> str:
    options = ("--fleet", str(world.fleet), "--cache", str(world.folder / "cache"), "-o", output)
    result = run_in(world.folder, _read_environment(world), "plan", world.source, *options)
    assert result.returncode in {0, 2}, result.stderr
    return result.stdout


def list_effects(world: World) -> list[str]:
    """Return the lines about effects in the text of the plan."""
    return [line.strip() for line in plan(world).splitlines() if line.strip().startswith("effect of")]


@pytest.mark.slow
def test_changed_value(world: World, helm: FakeHelm) -> None:
    """The plan shows the field that changes on the cluster, once for all clusters with the same change."""
    write_release(world, clusters=CLUSTERS)
    publish(world, CLUSTERS)
    write_release(world, "replicas: 3, ingress: true", clusters=CLUSTERS)
    calls = len(helm.calls())

    text, markdown, data = plan(world), plan(world, "markdown"), json.loads(plan(world, "json"))

    lines = [f"{PREFIX}Deployment shop/web: replicas 2 → 3", f"{PREFIX}Ingress shop/web: added"]
    assert [line.strip() for line in text.splitlines() if PREFIX in line] == lines
    assert [line for line in markdown.splitlines() if PREFIX in line] == [f"- `{line}`" for line in lines]
    assert "same change on 1 other target" in text
    (change,) = (item for item in data["items"] if item["type"] == "change")
    (effect,) = change["releaseEffects"]
    assert effect["release"] == "shop/web"
    assert [entry["object"]["kind"] for entry in effect["changes"]["objects"]] == ["Deployment", "Ingress"]
    # The render of the published version is in the cache, and both clusters share the render of the new version.
    assert len(helm.calls()) == calls + 1


@pytest.mark.slow
def test_new_version(world: World) -> None:
    """The published chart is read with its recorded digest. The values of Secrets are not compared and not shown."""
    write_release(world)
    publish(world)
    write_release(world, version="2.0.0")

    assert list_effects(world) == [f"{PREFIX}ConfigMap shop/web: data.version 1.0.0 → 2.0.0"]
    assert "horse-" not in plan(world, "json")
    assert not any("horse-" in file.read_text() for file in (world.folder / "cache/renders").iterdir())


def test_new_package(world: World) -> None:
    write_release(world)
    assert list_effects(world) == [
        f"{PREFIX}Deployment shop/web: added", f"{PREFIX}ConfigMap shop/web: added", f"{PREFIX}Secret shop/db: added"
    ]  # fmt: skip


@pytest.mark.slow
def test_local_change_of_the_release(world: World) -> None:
    """The effect is that of the HelmReleases on the branches, and not only that of the values in the config."""
    write_release(world)
    publish(world)
    file = "web/helmrelease-web.yaml"
    world.edit("clusters/berlin", file, "replicas: 2", "replicas: 7")
    write_release(world, "replicas: 2, ingress: true")

    assert list_effects(world) == [f"{PREFIX}Ingress shop/web: added"]


@pytest.mark.slow
def test_change_without_an_effect(world: World) -> None:
    write_release(world)
    publish(world)
    write_release(world, "replicas: 2, unused: true")
    assert list_effects(world) == [f"{PREFIX}no resource changes"]


@pytest.mark.slow
def test_values_of_secrets_are_not_included(world: World) -> None:
    options = ", valuesFrom: [{kind: Secret, name: db}]"
    write_release(world, options=options)
    publish(world)
    write_release(world, "replicas: 3", options=options)
    assert list_effects(world) == [
        f"{PREFIX}Deployment shop/web: replicas 2 → 3", f"{PREFIX}values from Secrets are not included"
    ]  # fmt: skip


def test_resources_become_a_release(world: World, helm: FakeHelm) -> None:
    """The published resources are the version before, so that the change of the output has no effect."""
    helm.behave(code=RENDER.replace('"stringData": {"password": "horse-" + version}', '"type": "Opaque"'))
    write_release(world, output="manifests")
    publish(world)
    write_release(world)
    assert list_effects(world) == [f"{PREFIX}no resource changes"]


@pytest.mark.slow
def test_random_values_have_placeholders(world: World, helm: FakeHelm, server: ArtifactServer) -> None:
    """A chart with random values, which `output: manifests` refuses, has an effect without the random values."""
    for version in ("1.0.0", "2.0.0"):
        files = {**chart(version), "templates/secret.yaml": "password: {{ randAlphaNum 8 }}\n"}
        server.add_chart("web", version, pack_files({f"web/{path}": text for path, text in files.items()}))
    random = 'str(time.time_ns()) if "randAlphaNum" in template else template.split("`")[1]'
    code = f"template = pathlib.Path('chart/templates/secret.yaml').read_text()\nvalue = {random}\n{RENDER}"
    helm.behave(code=code.replace('"data": {"version": version}', '"data": {"version": version, "random": value}'))
    write_release(world)
    publish(world)
    write_release(world, version="2.0.0")
    assert list_effects(world) == [f"{PREFIX}ConfigMap shop/web: data.version 1.0.0 → 2.0.0"]


def test_without_helm(world: World, helm: FakeHelm) -> None:
    """The effect is unknown, and all other parts of the plan are shown."""
    write_release(world)
    publish(world)
    write_release(world, "replicas: 3")
    helm.path.unlink()

    (line,) = list_effects(world)

    assert line.startswith("effect of the release shop/web is unknown: chart web 1.0.0 needs the program helm")
    assert "\n+    replicas: 3\n" in plan(world)


def test_published_chart_that_is_gone(world: World, server: ArtifactServer) -> None:
    write_release(world)
    publish(world)
    for file in (world.folder / "cache/sources/sha256").iterdir():
        file.unlink()
    server.files.pop("/charts/web-1.0.0.tgz")
    write_release(world, version="2.0.0")

    (line,) = list_effects(world)

    assert line.startswith("effect of the release shop/web is unknown: chart web 1.0.0 in Repository charts: ")


@pytest.mark.slow
def test_chart_of_a_registry(tmp_path: Path, helm: FakeHelm, registry: RegistryServer) -> None:
    for version in ("1.0.0", "2.0.0"):
        registry.push("team/web", version, pack_web(version), CHART_LAYER)
    world = small_world(tmp_path, sources={"poll_seconds": 0, "helm": {"program": str(helm.path)}})
    world.write({"charts.yaml": describe_repository("helm", f"{{url: 'oci://{registry.host}/team', insecure: true}}")})
    write_release(world)
    publish(world)
    write_release(world, version="2.0.0")
    assert list_effects(world) == [f"{PREFIX}ConfigMap shop/web: data.version 1.0.0 → 2.0.0"]


SEVERAL = """apiVersion: config.porch.kpt.dev/v1alpha1
kind: PackageVariant
metadata: {name: web}
spec:
  sources:
    - {name: web, repo: charts, chart: web, version: "%s", directory: web}
    - {name: api, repo: charts, chart: web, version: "1.0.0", directory: api, helm: {namespace: shop, releaseName: api, output: helmRelease, values: {replicas: %d}}}
  downstream: {repo: berlin, package: web}
  helm: {namespace: shop, releaseName: web, output: helmRelease}
"""


@pytest.mark.slow
def test_releases_of_several_sources(world: World) -> None:
    """Each changed release has its own effect. A release without a change is not rendered and has no line."""
    world.write({"web.yaml": SEVERAL % ("1.0.0", 1)})
    world.sync()
    world.merge("berlin", delete=True)
    world.sync_until_unchanged()
    world.write({"web.yaml": SEVERAL % ("2.0.0", 1)})
    assert list_effects(world) == [f"{PREFIX}ConfigMap shop/web: data.version 1.0.0 → 2.0.0"]

    world.write({"web.yaml": SEVERAL % ("2.0.0", 4)})
    assert list_effects(world) == [
        f"{PREFIX}ConfigMap shop/web: data.version 1.0.0 → 2.0.0",
        "effect of the release shop/api: Deployment shop/web: replicas 1 → 4",
    ]


def show(world: World, *options: str) -> str:
    """Return the output of `reconciler show` for the package of a cluster."""
    result = run_in(world.folder, _read_environment(world), "show", "berlin/web", *world.command_options, *options)
    assert result.returncode == 0, result.stderr
    return result.stdout


def list_shown_effects(world: World) -> list[str]:
    return [line.strip() for line in show(world, "--effects").splitlines() if line.strip().startswith("effect of")]


def test_open_draft(world: World) -> None:
    write_release(world)
    world.sync()
    assert list_shown_effects(world) == [
        f"{PREFIX}Deployment shop/web: added", f"{PREFIX}ConfigMap shop/web: added", f"{PREFIX}Secret shop/db: added"
    ]  # fmt: skip
    assert "effect of" not in show(world)


@pytest.mark.slow
def test_open_draft_of_an_older_version(world: World) -> None:
    """The effects of an open draft are those of its version, also if the config requests a newer version."""
    write_release(world)
    publish(world)
    write_release(world, "replicas: 3", version="2.0.0")
    world.sync()
    planned = [
        f"{PREFIX}Deployment shop/web: replicas 2 → 3",
        f"{PREFIX}ConfigMap shop/web: data.version 1.0.0 → 2.0.0",
    ]
    assert list_shown_effects(world) == planned

    write_release(world, "replicas: 9")
    assert list_shown_effects(world) == planned

    data = json.loads(show(world, "--effects", "--offline", "-o", "json"))
    (effect,) = data["items"][0]["packages"][0]["content"]["releaseEffects"]
    assert effect["summary"] == [line.removeprefix(PREFIX) for line in planned]


def test_open_draft_whose_package_is_not_requested_any_more(world: World) -> None:
    write_release(world)
    world.sync()
    world.write({"berlin.yaml": None})
    (line,) = list_shown_effects(world)
    assert (
        line
        == f"{PREFIX.strip(': ')} is unknown: the current config requests no package with this release and the chart of the draft"
    )
