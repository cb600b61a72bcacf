"""Tests of the lint of components: unused objects, and environments that select no cluster."""

from __future__ import annotations

import pytest

from reconciler.controllers.clusters.inventory import read_inventory
from reconciler.controllers.components.inputs import ComponentControllerInputs
from reconciler.controllers.components.lint import lint_components
from reconciler.controllers.repositories import read_repositories
from tests.unit.controllers.components.component_builders import (
    PublishedPackages,
    catalog_of,
    component_type,
    definition,
    full_config,
    name_files,
)

ENVIRONMENT = "apiVersion: reconciler.dev/v1alpha1\nkind: Environment\nmetadata: {name: stage}\nspec: "
ADDON = """\
apiVersion: platform/v1alpha1
kind: Addon
metadata: {name: spare}
spec:
  creates: [{id: a, resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: "${metadata.name}-x"}}}]
"""
DEFINITION = """\
apiVersion: platform/v1alpha1
kind: ComponentDefinition
metadata: {name: spare}
spec:
  resources: [{id: a, template: {apiVersion: v1, kind: ConfigMap, metadata: {name: "${metadata.name}"}}}]
"""
TYPE = """\
apiVersion: platform/v1alpha1
kind: ComponentType
metadata: {name: spare-thing}
spec: {componentDefinitionRef: {name: spare}, platformAddons: [{name: spare, instanceId: main}]}
"""


def build(name: str) -> str:
    return (
        f"apiVersion: reconciler.dev/v1alpha1\nkind: Build\nmetadata: {{name: {name}, namespace: square}}\nspec: {{}}\n"
    )


def lint(*texts: str, on: str = "") -> list[str]:
    catalog = catalog_of(name_files(full_config(definition(), component_type(), *texts, on=on)))
    inventory = read_inventory(catalog, read_repositories(catalog)[0])
    return [
        f"{finding.code}: {finding.message}"
        for finding in lint_components(catalog, inventory, ComponentControllerInputs(PublishedPackages()))
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(ADDON, "Unused: Addon spare is not used, because no ComponentType or Component uses this addon",
                     id="an-addon"),
        pytest.param(DEFINITION, "Unused: ComponentDefinition spare is not used, because no ComponentType or"
                     " Component uses this definition", id="a-definition"),
        pytest.param(f"{ADDON}---\n{DEFINITION}---\n{TYPE}",
                     "Unused: ComponentType spare-thing is not used, because no component has the kind \"SpareThing\"", id="a-type"),
        pytest.param(f"{ENVIRONMENT}{{clusters: [east]}}\n",
                     "Unused: Environment stage is not used, because no EnvBinding refers to this environment", id="an-environment"),
        pytest.param(build("bred"), "BuildUnused: Build square/bred is not used, because no component in namespace \"square\" has the name \"bred\"; existing names: \"bread\"; did you mean \"bread\"?", id="a-build-without-a-component"),
        pytest.param(build("bread.fare"), "BuildUnused: Build square/bread.fare is not used, because its name refers to the environment \"fare\", but the component \"bread\" runs only in the environment \"fair\"; did you mean \"fair\"?", id="a-build-for-another-environment"),
        pytest.param(build("bread.fair"), "", id="a-build-for-its-environment"),
        pytest.param(build("bread"), "", id="a-build-for-all"),
    ],
)  # fmt: skip
def test_unused_object_is_reported(text: str, expected: str) -> None:
    assert lint(text) == ([expected] if expected else [])


def test_environment_without_clusters_is_reported() -> None:
    (item,) = lint(f"{ENVIRONMENT}{{clusterSelector: {{matchLabels: {{nothing: here}}}}}}\n")

    assert item.startswith(
        'SelectorMatchesNothing: spec.clusterSelector matches no cluster, because no cluster has the label "nothing"'
    )


def test_component_without_binding_is_reported() -> None:
    second = "apiVersion: platform/v1alpha1\nkind: MarketStall\nmetadata: {name: milk, namespace: square}\nspec: {}\n"

    assert [item for item in lint(second) if "milk" in item] == [
        "Unused: MarketStall square/milk is not used, because no EnvBinding refers to this component, so that the component runs in no environment"
    ]


def test_invalid_binding_prevents_findings_about_unused_objects() -> None:
    lost = "apiVersion: platform/v1alpha1\nkind: EnvBinding\nmetadata: {name: lost, namespace: square}\nspec: %s\n"
    stage = f"{ENVIRONMENT}{{clusters: [east]}}\n"

    assert lint(stage, lost % "{environment: stage, owner: {componentName: nobody}}") == []
