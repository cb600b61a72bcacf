"""A definition that a type's author asks for is among the files of the type (openchoreo 13.3, design 10.22)."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.catalog.catalog import read_catalog
from reconciler.catalog.files import File, FileTree
from reconciler.controllers.clusters.inventory import read_inventory
from reconciler.controllers.components.controller import ComponentControllerInputs, reconcile_components
from reconciler.controllers.deletion_guards import PackageLocation
from reconciler.controllers.repositories import read_repositories
from reconciler.controllers.results import ConfigStatus, ControllerResult, PackageOwner
from reconciler.krm.yaml import parse_yaml

CATALOGUE = """
apiVersion: platform/v1alpha1
kind: ComponentDefinition
metadata: {name: kiosk}
spec:
  resources:
    - id: pod
      template: {apiVersion: v1, kind: Pod, metadata: {name: "${metadata.name}"}}
---
apiVersion: platform/v1alpha1
kind: Addon
metadata: {name: badge}
spec:
  schema: {parameters: {text: "string | default=hello"}}
  patches:
    - target: {resourceType: Pod}
      patch: {op: merge, path: /metadata/annotations, value: {badge: VALUE}}
---
apiVersion: platform/v1alpha1
kind: ComponentType
metadata: {name: stand, namespace: fair, annotations: {reconciler.dev/bake: badged-kiosk}}
spec:
  componentDefinitionRef: {name: kiosk}
  platformAddons: [{name: badge, instanceId: only}]
"""


class Nothing:
    def get_owned_packages(self) -> dict[PackageLocation, PackageOwner]:
        return {}

    def get_recorded_inputs(self) -> dict[PackageLocation, list[str]]:
        return {}


def room(text: str) -> ControllerResult:
    catalog = read_catalog(FileTree({"all.yaml": File(text.encode())}))
    inventory = read_inventory(catalog, read_repositories(catalog)[0])
    return reconcile_components(catalog, inventory, ComponentControllerInputs(Nothing()))


def status_of_type(result: ControllerResult) -> ConfigStatus:
    return next(config_status for config_status in result.statuses if config_status.key.kind == "ComponentType")


def conditions(status: ConfigStatus) -> dict[str, Any]:
    return {condition.type: (condition.status, condition.reason) for condition in status.conditions}


def test_a_definition_that_is_asked_for_stands_beside_the_crd() -> None:
    status = status_of_type(room(CATALOGUE.replace("VALUE", '"${spec.text}"')))

    assert status.files is not None
    assert sorted(status.files) == ["crd.yaml", "definition.yaml", "plan.yaml", "schema.json"]
    definition = parse_yaml(status.files["definition.yaml"]).documents[0].data
    assert (definition["kind"], definition["metadata"]["name"]) == ("ComponentDefinition", "badged-kiosk")
    assert conditions(status)["Baked"] == ("True", "Baked")


@pytest.mark.parametrize("value", ['"${resources[0].kind}"'])
def test_what_cannot_be_baked_is_told_and_the_type_stays_ready(value: str) -> None:
    result = room(CATALOGUE.replace("VALUE", value))

    status = status_of_type(result)
    assert status.files is not None
    assert sorted(status.files) == ["crd.yaml", "plan.yaml", "schema.json"]
    assert conditions(status) == {
        "Ready": ("True", "Compiled"), "InstancesValid": ("True", "Valid"), "Baked": ("False", "NotBakeable"),
    }  # fmt: skip
    assert [finding.code for finding in result.findings] == ["NotBakeable"]
