"""A patch must not create a field that a built-in Kubernetes kind does not have."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.controllers.override_policies.json_patch import apply_patch_item
from reconciler.controllers.override_policies.model import PatchItem
from reconciler.krm.json_pointer import parse_pointer
from reconciler.krm.schema.kubernetes_apis import find_unknown_field

DEPLOYMENT = ("apps/v1", "Deployment")
POD = "/spec/template/spec"


def deployment() -> dict[str, Any]:
    container = {"name": "web", "image": "web:1"}
    pod = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container]}}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": {"template": pod}}


@pytest.mark.parametrize("operator", ["replace", "add", "set"])
@pytest.mark.parametrize(
    ("pointer", "message"),
    [
        pytest.param(
            "/spec/replcias",
            'the patch must not add /spec/replcias, because apps/v1 Deployment has no field "replcias" there; did you mean "replicas"?',
            id="in-spec",
        ),
        pytest.param(
            "/spce",
            'the patch must not add /spce, because apps/v1 Deployment has no field "spce" there; did you mean "spec"?',
            id="at-the-root",
        ),
        pytest.param(
            "/metadata/anotations",
            'the patch must not add /metadata/anotations, because apps/v1 Deployment has no field "anotations" there; did you mean "annotations"?',
            id="in-metadata",
        ),
        pytest.param(
            f"{POD}/containers/0/imagePullPolcy",
            f'the patch must not add {POD}/containers/0/imagePullPolcy, because apps/v1 Deployment has no field "imagePullPolcy" there;'
            ' did you mean "imagePullPolicy"?',
            id="in-a-list-item",
        ),
        pytest.param(
            f"{POD}/containers/[name=web]/livenessprobe",
            f'the patch must not add {POD}/containers/[name=web]/livenessprobe, because apps/v1 Deployment has no field "livenessprobe" there;'
            ' did you mean "livenessProbe"?',
            id="in-an-item-by-filter",
        ),
    ],
)
def test_unknown_field_of_a_builtin_kind_is_an_error(operator: Any, pointer: str, message: str) -> None:
    data = deployment()
    effect = apply_patch_item(data, item(operator, pointer))

    assert [(note.code.name, note.message) for note in effect.issues] == [("PatchFieldUnknown", message)]
    assert effect.data is data


def test_unknown_field_in_the_middle_of_a_set_path_is_an_error() -> None:
    effect = apply_patch_item(deployment(), item("set", "/spec/stratgy/rollingUpdate/maxSurge"))

    assert effect.has_errors
    assert effect.issues[0].message.startswith("the patch must not add /spec/stratgy, ")


def test_known_fields_are_listed_without_a_similar_name() -> None:
    (note,) = apply_patch_item(deployment(), item("add", "/spec/template/xyzzy")).issues

    assert note.message.endswith('has no field "xyzzy" there; allowed fields: metadata, spec')


@pytest.mark.parametrize(
    ("pointer", "codes"),
    [
        pytest.param("/spec/paused", ["ReplaceCreatedMember"], id="a-field-that-the-resource-lacks"),
        pytest.param("/spec/template/metadata/labels/any", ["ReplaceCreatedMember"], id="labels"),
        pytest.param(f"{POD}/containers/0/image", [], id="a-field-that-the-resource-has"),
    ],
)
def test_known_field_is_replaced(pointer: str, codes: list[str]) -> None:
    effect = apply_patch_item(deployment(), item("replace", pointer))

    assert [note.code.name for note in effect.issues] == codes
    assert not effect.has_errors


def test_existing_unknown_field_can_be_changed_and_removed() -> None:
    data = deployment()
    data["spec"]["replcias"] = 3

    assert not apply_patch_item(data, item("replace", "/spec/replcias")).has_errors
    assert "replcias" not in apply_patch_item(data, item("remove", "/spec/replcias")).data["spec"]


@pytest.mark.parametrize(
    ("api_version", "kind", "pointer"),
    [
        pytest.param(*DEPLOYMENT, f"{POD}/nodeSelector/example.org~1pool", id="node-selector"),
        pytest.param(*DEPLOYMENT, "/metadata/annotations/any", id="annotations"),
        pytest.param(*DEPLOYMENT, f"{POD}/containers/0/resources/limits/example.org~1gpu", id="resource-names"),
        pytest.param(*DEPLOYMENT, "/spec/selector/matchLabels/any", id="match-labels"),
        pytest.param(*DEPLOYMENT, f"{POD}/containers/-", id="end-of-a-list"),
        pytest.param(*DEPLOYMENT, "/status/replicas", id="status"),
        pytest.param("v1", "ConfigMap", "/binaryData/any", id="data-of-a-config-map"),
        pytest.param("v1", "Secret", "/stringData/any", id="data-of-a-secret"),
        pytest.param("v1", "Namespace", "/metadata/finalizers/-", id="finalizers"),
        pytest.param(
            "networking.k8s.io/v1", "NetworkPolicy", "/spec/ingress/0/from/0/podSelector", id="network-policy"
        ),
        pytest.param(
            "apiextensions.k8s.io/v1",
            "CustomResourceDefinition",
            "/spec/versions/0/schema/openAPIV3Schema/properties/spec/anything",
            id="schema-of-a-definition",
        ),
        pytest.param("example.org/v1", "Deployment", "/spec/replcias", id="kind-of-another-group"),
        pytest.param("apps/v9", "Deployment", "/spec/replcias", id="unknown-version"),
        pytest.param("extensions/v1beta1", "Ingress", "/spec/backend", id="version-without-schema"),
        pytest.param("autoscaling/v2beta2", "HorizontalPodAutoscaler", "/spec/metrics", id="version-of-an-old-release"),
    ],
)
def test_existing_and_free_form_fields_are_allowed(api_version: str, kind: str, pointer: str) -> None:
    steps = [str(step) for step in parse_pointer(pointer)]

    assert find_unknown_field(api_version, kind, steps) is None


def item(operator: Any, pointer: str) -> PatchItem:
    return PatchItem(operator, tuple(str(step) for step in parse_pointer(pointer)), 1)
