"""Tests of the flattened definition among the status files of a component type."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.catalog.catalog import read_catalog
from reconciler.catalog.files import File, FileTree
from reconciler.controllers.clusters.inventory import read_inventory
from reconciler.controllers.components.controller import reconcile_components
from reconciler.controllers.components.inputs import ComponentControllerInputs
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


class EmptyPackages:
    def get_owned_packages(self) -> dict[PackageLocation, PackageOwner]:
        return {}

    def get_recorded_inputs(self) -> dict[PackageLocation, list[str]]:
        return {}


def reconcile(text: str) -> ControllerResult:
    catalog = read_catalog(FileTree({"all.yaml": File(text.encode())}))
    inventory = read_inventory(catalog, read_repositories(catalog)[0])
    return reconcile_components(catalog, inventory, ComponentControllerInputs(EmptyPackages()))


def find_type_status(result: ControllerResult) -> ConfigStatus:
    return next(config_status for config_status in result.statuses if config_status.key.kind == "ComponentType")


def read_conditions(status: ConfigStatus) -> dict[str, Any]:
    return {condition.type: (condition.status, condition.reason) for condition in status.conditions}


def test_requested_definition_is_a_status_file() -> None:
    status = find_type_status(reconcile(CATALOGUE.replace("VALUE", '"${spec.text}"')))

    assert status.files is not None
    assert sorted(status.files) == ["crd.yaml", "definition.yaml", "plan.yaml", "schema.json"]
    definition = parse_yaml(status.files["definition.yaml"]).documents[0].data
    assert (definition["kind"], definition["metadata"]["name"]) == ("ComponentDefinition", "badged-kiosk")
    assert read_conditions(status)["Flattened"] == ("True", "Flattened")


@pytest.mark.parametrize("value", ['"${resources[0].kind}"'])
def test_type_that_cannot_be_flattened_stays_ready(value: str) -> None:
    result = reconcile(CATALOGUE.replace("VALUE", value))

    status = find_type_status(result)
    assert status.files is not None
    assert sorted(status.files) == ["crd.yaml", "plan.yaml", "schema.json"]
    assert read_conditions(status) == {
        "Ready": ("True", "Compiled"), "InstancesValid": ("True", "Valid"), "Flattened": ("False", "NotBakeable"),
    }  # fmt: skip
    assert [finding.code for finding in result.findings] == ["NotBakeable"]
