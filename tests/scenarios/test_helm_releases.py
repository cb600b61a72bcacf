"""Tests of charts with `output: helmRelease`: the package contains a HelmRelease of Flux instead of resources."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reconciler.krm.yaml import parse_yaml
from tests.scenarios.test_artifacts import describe_repository, pack_web, request
from tests.support.artifact_servers import CHART_LAYER, ArtifactServer, RegistryServer, compute_digest, serve
from tests.support.charts import FakeHelm
from tests.support.world import World, small_world

pytestmark = pytest.mark.second_pass

RELEASE = "{namespace: shop, output: helmRelease, releaseName: shop-web, %s}"
MAPS = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\ndata:\n  values.yaml: 'replicas: 2'\n"
VALUES = "values: {region: eu}, valuesFrom: [{kind: ConfigMap, name: web}]"
SECRET = "apiVersion: v1\nkind: Secret\nmetadata: {name: db}\nstringData: {password: correct-horse-battery}\n"
SECRET_VALUES = (
    "values: {db: {name: orders}}, valuesFrom: "
    "[{kind: Secret, name: db, valuesKey: password, targetPath: db.password, optional: true}]"
)


@pytest.fixture
def server() -> Iterator[ArtifactServer]:
    with serve(ArtifactServer()) as running:
        running.add_chart("web", "1.0.0", pack_web("1.0.0"))
        yield running


@pytest.fixture
def helm(tmp_path: Path) -> FakeHelm:
    return FakeHelm(tmp_path / "bin")


@pytest.fixture
def world(tmp_path: Path, server: ArtifactServer, helm: FakeHelm) -> World:
    world = small_world(tmp_path, sources={"poll_seconds": 0, "helm": {"program": str(helm.path)}})
    world.write({"charts.yaml": describe_repository("helm", f"{{url: {server.url}/charts}}"), "maps.yaml": MAPS})
    return world


def write_release(world: World, options: str, upstream: str = 'chart: web, version: "1.0.0"') -> None:
    world.write({"web.yaml": request(upstream, helm=f"helm: {RELEASE % options}")})


def read(world: World, file: str) -> Any:
    return parse_yaml(world.text("drafts/berlin", f"web/{file}")).documents[0].data


def test_chart_of_a_chart_repository(world: World, server: ArtifactServer) -> None:
    """The package contains a HelmRepository, and a HelmRelease with the exact version and the merged values."""
    write_release(world, VALUES)

    result = world.sync()

    assert result.outcomes["berlin/web"] == "draft"
    assert world.paths(world.fleet, "drafts/berlin", "web") == [
        "Kptfile", "helmrelease-shop-web.yaml", "helmrepository-shop-web.yaml", "package-context.yaml",
    ]  # fmt: skip
    assert read(world, "helmrepository-shop-web.yaml")["spec"] == {"interval": "5m", "url": f"{server.url}/charts"}
    release = read(world, "helmrelease-shop-web.yaml")
    assert (release["apiVersion"], release["metadata"]) == (
        "helm.toolkit.fluxcd.io/v2", {"name": "shop-web", "namespace": "shop"}
    )  # fmt: skip
    assert release["spec"] == {
        "interval": "5m",
        "releaseName": "shop-web",
        "targetNamespace": "shop",
        "storageNamespace": "shop",
        "chart": {
            "spec": {"chart": "web", "version": "1.0.0", "sourceRef": {"kind": "HelmRepository", "name": "shop-web"}}
        },
        "install": {"crds": "Create"},
        "upgrade": {"crds": "CreateReplace"},
        "values": {"region": "eu", "replicas": 2},
    }
    assert world.sync_until_unchanged().report.render_count == 0


def test_chart_of_a_registry(tmp_path: Path, registry: RegistryServer) -> None:
    """The OCIRepository names the digest of the manifest."""
    registry.push("team/web", "1.0.0", pack_web("1.0.0"), CHART_LAYER)
    world = small_world(tmp_path, sources={"poll_seconds": 0, "helm": {"program": str(tmp_path / "absent")}})
    url = f"oci://{registry.host}/team"
    world.write({"charts.yaml": describe_repository("helm", f"{{url: '{url}', insecure: true}}")})
    write_release(world, "createNamespace: true, includeCRDs: false, hooks: drop, skipSchemaValidation: true")

    assert world.sync().outcomes["berlin/web"] == "draft"

    spec = read(world, "ocirepository-shop-web.yaml")["spec"]
    digest = compute_digest(registry.manifests["team/web", "1.0.0"])
    assert (spec["url"], spec["ref"], spec["insecure"]) == (f"{url}/web", {"tag": "1.0.0", "digest": digest}, True)
    assert spec["layerSelector"]["operation"] == "copy"
    release = read(world, "helmrelease-shop-web.yaml")["spec"]
    assert release["chartRef"] == {"kind": "OCIRepository", "name": "shop-web"}
    options = {"crds": "Skip", "disableHooks": True, "disableSchemaValidation": True}
    assert (release["install"], release["upgrade"]) == (options, options)
    assert "values" not in release
    assert read(world, "namespace-shop.yaml")["metadata"] == {"name": "shop"}


def test_secret_is_a_reference(world: World) -> None:
    """The HelmRelease contains the reference to the Secret. Its value is in no file, also if the config contains it."""
    world.write({"db.yaml": SECRET})
    write_release(world, SECRET_VALUES)

    result = world.sync()

    assert result.outcomes["berlin/web"] == "draft"
    spec = read(world, "helmrelease-shop-web.yaml")["spec"]
    assert spec["valuesFrom"] == [
        {"kind": "Secret", "name": "db", "valuesKey": "password", "targetPath": "db.password", "optional": True}
    ]
    assert spec["values"] == {"db": {"name": "orders"}}
    assert not any("correct-horse" in text for text in world.files(world.fleet, "drafts/berlin").values())
    assert "SecretPathShadowed" not in result.codes


@pytest.mark.parametrize("path", ["db", "db.name", "db.name.first"])
def test_value_that_replaces_a_secret(world: World, path: str) -> None:
    """Values of a HelmRelease override Secrets at the same path, and above and below it."""
    write_release(
        world, f"values: {{db: {{name: orders}}}}, valuesFrom: [{{kind: Secret, name: db, targetPath: {path}}}]"
    )

    (finding,) = (finding for finding in world.sync().findings if finding.code == "SecretPathShadowed")

    assert finding.message.startswith(
        f"spec.helm.valuesFrom[0]: Flux replaces the value of Secret/default/db at {path},"
    )


SCHEMA_ERROR = (
    "Error: values don't meet the specifications of the schema(s) in the following chart(s):\n"
    "web:\n- at '/region': got string, want integer\n"
)


def test_values_are_validated(world: World, helm: FakeHelm) -> None:
    """The chart is rendered to validate the values. With values from a Secret, an error is only a warning."""
    helm.behave(stderr=SCHEMA_ERROR, exit_code=1)
    write_release(world, VALUES)
    assert world.sync().outcomes["berlin/web"] == "ValuesInvalid"

    write_release(world, f"{SECRET_VALUES}, parameters: [{{name: region, value: eu}}]")
    result = world.sync()

    assert result.outcomes["berlin/web"] == "draft"
    (finding,) = (finding for finding in result.findings if finding.code == "ValuesInvalid")
    assert finding.severity == "warning"


def test_changed_values_render_again(world: World) -> None:
    """A changed value and a changed reference are drafted."""
    write_release(world, VALUES)
    world.sync()
    write_release(world, VALUES.replace("region: eu", "region: us"))
    world.sync()
    assert read(world, "helmrelease-shop-web.yaml")["spec"]["values"]["region"] == "us"

    write_release(world, f"{VALUES[:-1]}, {{kind: Secret, name: db}}]")
    world.sync()
    assert read(world, "helmrelease-shop-web.yaml")["spec"]["valuesFrom"] == [
        {"kind": "Secret", "name": "db", "valuesKey": "values.yaml"}
    ]


def test_chart_in_git_is_refused(world: World) -> None:
    """Flux cannot download a chart from a Repository of type git by digest."""
    world.release("charts/web", "v1", {"Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.0.0\n"})
    text = request("package: charts/web, revision: v1", helm="helm: {namespace: shop, output: helmRelease}")
    world.write({"web.yaml": text.replace("repo: charts", "repo: catalog")})

    (finding,) = (finding for finding in world.sync().findings if finding.code == "ValidationError")

    assert finding.message == (
        'spec.helm.output "helmRelease" requires an upstream Repository of the type "helm" or "oci", because Flux downloads the chart; Repository "catalog" has the type "git"'
    )
