"""Resources that a new version of a chart no longer has: some kinds are kept until a person confirms their deletion."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.scenarios.test_charts import chart
from tests.support.charts import FakeHelm
from tests.support.world import CLUSTERS, package, small_world, variant

pytestmark = pytest.mark.second_pass

HELM = "helm: {namespace: shop}"
CRD = "crds/customresourcedefinition-webs.example.com.yaml"
RESOURCES = {
    "crd": "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: webs.example.com}\n",
    "claim": "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data, namespace: shop}\n",
    "other-claim": "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data, namespace: other}\n",
    "deployment": "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, namespace: shop}\n",
    "service": "apiVersion: v1\nkind: Service\nmetadata: {name: web, namespace: shop}\n",
    "kept": (
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: kept\n  namespace: shop\n"
        "  annotations: {helm.sh/resource-policy: keep}\n"
    ),
}


class ChartWorld:
    """A fleet with one chart. `release` sets its version and the resources that this version renders."""

    def __init__(self, folder: Path) -> None:
        self.helm = FakeHelm(folder / "bin")
        self.outputs: dict[str, str] = {}
        self.world = small_world(folder, sources={"helm": {"program": str(self.helm.path)}})

    def release(self, version: str, *resources: str) -> None:
        """Release a chart that writes these resources."""
        text = "".join(f"---\n# Source: web/templates/{name}.yaml\n{RESOURCES[name]}" for name in resources)
        self.outputs[version] = text
        manifest = "[text for path, text in files.items() if path.endswith('Chart.yaml')][0]"
        self.helm.behave(code=f"print({self.outputs!r}[{manifest}.split()[-1]])")
        self.world.release("charts/web", version, {"Chart.yaml": f"{chart(version)['Chart.yaml']}# {version}\n"})

    def request(self, version: str, annotations: str = "") -> None:
        text = variant("web", "berlin", "web", version, upstream="charts/web", extra=HELM)
        self.world.write(
            {"web.yaml": text.replace("  name: web\n", f"  name: web\n  annotations: {{{annotations}}}\n")}
        )

    def publish(self) -> None:
        self.world.sync()
        self.world.merge("berlin", delete=True)
        self.world.sync_until_unchanged()

    def drafted(self) -> set[str]:
        return set(self.world.paths(self.world.fleet, "drafts/berlin", "web"))


@pytest.fixture
def fleet(tmp_path: Path) -> ChartWorld:
    fleet = ChartWorld(tmp_path)
    fleet.release("v1", "crd", "claim", "deployment", "service", "kept")
    fleet.request("v1")
    fleet.publish()
    return fleet


@pytest.mark.slow
def test_definition_is_kept_until_its_deletion_is_confirmed(fleet: ChartWorld) -> None:
    fleet.release("v2", "claim", "service", "kept")
    fleet.request("v2")

    result = fleet.world.sync()

    assert CRD in fleet.drafted()
    assert "deployment-web.yaml" not in fleet.drafted()
    (finding,) = (finding for finding in result.findings if finding.code == "CRDRemovalHeld")
    assert "does not contain CustomResourceDefinition webs.example.com." in finding.message
    assert finding.severity == "warning"
    fleet.world.merge("berlin", delete=True)
    assert "CRDRemovalHeld" in fleet.world.sync_until_unchanged().codes
    (token,) = re.findall(r'ack-deletions: "(\w+)"', finding.message)
    fleet.request("v2", f"reconciler.dev/ack-deletions: {token}")
    result = fleet.world.sync()
    assert CRD not in fleet.drafted()
    assert "CRDRemovalHeld" not in result.codes
    fleet.world.merge("berlin", delete=True)
    fleet.world.sync_until_unchanged()
    assert CRD not in fleet.world.paths(fleet.world.fleet, "clusters/berlin", "web")


def test_other_kinds_and_kept_resources_are_held(fleet: ChartWorld) -> None:
    fleet.release("v2", "crd", "service")
    fleet.request("v2")

    result = fleet.world.sync()

    messages = {finding.code: finding.message for finding in result.findings}
    assert "PersistentVolumeClaim shop/data." in messages["CRDRemovalHeld"]
    assert "ConfigMap shop/kept." in messages["ResourceKept"]
    assert {"persistentvolumeclaim-data.yaml", "configmap-kept.yaml"} <= fleet.drafted()


def test_held_resource_gets_another_file_if_its_name_is_in_use(fleet: ChartWorld) -> None:
    fleet.release("v2", "crd", "other-claim", "kept")
    fleet.request("v2")

    fleet.world.sync()

    files = {"persistentvolumeclaim-data.yaml": "other", "persistentvolumeclaim-shop%2Fdata.yaml": "shop"}
    for name, namespace in files.items():
        assert f"namespace: {namespace}" in fleet.world.text("drafts/berlin", f"web/{name}")


def test_settings_select_the_held_kinds(fleet: ChartWorld) -> None:
    guards = {"max_delete_percent": 100, "hold_kinds": ["Deployment.apps"]}
    fleet.world = fleet.world.with_settings(guards=guards)
    fleet.release("v2", "service")
    fleet.request("v2")

    fleet.world.sync()

    assert CRD not in fleet.drafted()
    assert "deployment-web.yaml" in fleet.drafted()


def test_local_change_of_a_held_resource_is_kept(fleet: ChartWorld) -> None:
    fleet.world.edit(
        "clusters/berlin", f"web/{CRD}", "{name: webs.example.com}", "{name: webs.example.com, labels: {a: b}}"
    )
    fleet.release("v2", "claim", "service", "kept")
    fleet.request("v2")

    fleet.world.sync()

    assert "labels: {a: b}" in fleet.world.text("drafts/berlin", f"web/{CRD}")


def test_resource_that_a_person_deleted_is_not_held(fleet: ChartWorld) -> None:
    fleet.world.commit("clusters/berlin", {f"web/{CRD}": None})
    fleet.release("v2", "claim", "service", "kept")
    fleet.request("v2")

    result = fleet.world.sync()

    assert CRD not in fleet.drafted()
    assert "CRDRemovalHeld" not in result.codes


@pytest.mark.slow
def test_confirmation_of_a_set_is_valid_for_all_clusters(tmp_path: Path) -> None:
    fleet = ChartWorld(tmp_path)

    def request(version: str, annotations: str = "") -> None:
        fleet.world.write({
            "web.yaml": "apiVersion: config.porch.kpt.dev/v1alpha2\nkind: PackageVariantSet\n"
            f"metadata: {{name: web, annotations: {{{annotations}}}}}\nspec:\n"
            f"  upstream: {{repo: catalog, package: charts/web, revision: {version}}}\n"
            "  targets:\n    - repositories: [{name: berlin}, {name: lisbon}]\n"
            "      template: {helm: {namespace: shop}}\n"
        })  # fmt: skip

    def publish() -> None:
        fleet.world.sync()
        for cluster in CLUSTERS:
            fleet.world.merge(cluster, delete=True)
        fleet.world.sync_until_unchanged()

    fleet.release("v1", "crd", "service")
    request("v1")
    publish()
    fleet.release("v2", "service")
    request("v2")
    held = {finding.message for finding in fleet.world.sync().findings if finding.code == "CRDRemovalHeld"}
    (token,) = {token for message in held for token in re.findall(r'annotate \S+ \S+/web with \S+: "(\w+)"', message)}

    request("v2", f'reconciler.dev/ack-deletions: "0000000000000000, {token}"')
    publish()

    for cluster in CLUSTERS:
        paths = fleet.world.paths(fleet.world.fleet, f"clusters/{cluster}", "charts/web")
        assert "service-web.yaml" in paths
        assert CRD not in paths


@pytest.mark.slow
def test_definition_in_two_packages_is_reported(fleet: ChartWorld) -> None:
    world = fleet.world
    world.release("definitions", "v1", package("definitions", crd=RESOURCES["crd"]))
    world.write({"definitions.yaml": variant("definitions", "berlin", "definitions")})

    result = world.sync()

    (finding,) = (finding for finding in result.findings if finding.code == "CRDInTwoPackages")
    assert finding.message.startswith(
        'the CustomResourceDefinition "webs.example.com" is in package berlin/web, and also in definitions. '
    )
    world.merge("berlin", delete=True)
    assert "CRDInTwoPackages" in world.sync_until_unchanged().codes
    world.write({"definitions.yaml": None})
    world.sync()
    assert "CRDInTwoPackages" not in world.sync().codes
