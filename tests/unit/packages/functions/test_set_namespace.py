"""Tests of set-namespace: which fields each version changes, in both profiles."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from reconciler.api.profile import Profile
from reconciler.packages.functions.function import FunctionContext, FunctionOutput, FunctionVersion, get_value_at
from reconciler.packages.functions.set_namespace import set_namespace
from tests.unit.packages.builders import build_config, list_messages, run_function

TO_NEW = build_config("ConfigMap", {"namespace": "new"})
API_SERVICE = "apiVersion: apiregistration.k8s.io/v1\nkind: APIService\nmetadata: {name: a}\n"
CRD = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: a}\n"
RBAC = "apiVersion: rbac.authorization.k8s.io/v1\n"
BINDING = (
    RBAC
    + """\
kind: {kind}
metadata: {{name: b}}
subjects:
- {{kind: ServiceAccount, name: default, namespace: old}}
- {{kind: ServiceAccount, name: robot, namespace: old}}
- {{kind: ServiceAccount, name: bare}}
- {{kind: Group, name: admins, namespace: old}}
---
apiVersion: v1
kind: ServiceAccount
metadata: {{name: robot, namespace: new}}
"""
)
OLD, V3, V41, HEAD = (0, 1, 0), (0, 3, 0), (0, 4, 1), (0, 4, 5)


def list_namespaces(output: FunctionOutput) -> list[Any]:
    return [item.data["metadata"].get("namespace") for item in output.items]


@pytest.mark.parametrize(
    ("resource", "path", "expected"),
    [
        pytest.param(
            "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\n", "metadata.namespace", "new", id="created"
        ),
        pytest.param(
            "apiVersion: v1\nkind: Service\nmetadata: {name: a, namespace: old}\n",
            "metadata.namespace",
            "new",
            id="changed",
        ),
        pytest.param(
            "apiVersion: v1\nkind: Namespace\nmetadata: {name: old}\n", "metadata.name", "new", id="namespace-object"
        ),
        pytest.param(
            "apiVersion: x.io/v1\nkind: X\nmetadata: {name: a}\n", "metadata.namespace", None, id="custom-without"
        ),
        pytest.param(
            "apiVersion: x.io/v1\nkind: X\nmetadata: {name: a, namespace: o}\n",
            "metadata.namespace",
            "new",
            id="custom-with",
        ),
        pytest.param(
            RBAC + "kind: ClusterRole\nmetadata: {name: a}\n", "metadata.namespace", None, id="cluster-scoped"
        ),
        pytest.param(
            "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy\nmetadata: {name: a}\n",
            "metadata.namespace",
            None,
            id="newer-cluster-scoped-kind",
        ),
        pytest.param(
            "apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: a}\n",
            "metadata.namespace",
            "new",
            id="newer-version-of-a-namespaced-kind",
        ),
        pytest.param(
            "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n  annotations: "
            "{config.kubernetes.io/local-config: 'true'}\n",
            "metadata.namespace",
            None,
            id="local-config",
        ),
        pytest.param(
            API_SERVICE + "spec: {service: {name: s}}\n",
            "spec.service.namespace",
            "new",
            id="api-service",
        ),
        pytest.param(
            API_SERVICE + "spec: {group: g}\n",
            "spec.service.namespace",
            None,
            id="local-api-service",
        ),
        pytest.param(
            CRD + "spec: {group: g}\n",
            "spec.conversion",
            None,
            id="no-webhook-is-invented",
        ),
        pytest.param(
            CRD + "spec:\n  conversion: {webhook: {clientConfig: {service: {name: s, namespace: old}}}}\n",
            "spec.conversion.webhook.clientConfig.service.namespace",
            "new",
            id="webhook-of-a-crd",
        ),
    ],
)
@pytest.mark.parametrize("version", [pytest.param(V41, id="v0.4.1"), pytest.param(HEAD, id="head")])
def test_safe_fields(resource: str, path: str, expected: str | None, version: FunctionVersion) -> None:
    output = run_function(set_namespace, resource, TO_NEW, "safe", version)

    assert get_value_at(output.items[0].data, tuple(path.split("."))) == expected
    function_output = set_namespace(output.items, TO_NEW, FunctionContext("safe", version))
    assert [item.data for item in function_output.items] == [item.data for item in output.items]


@pytest.mark.parametrize(
    ("profile", "version", "kind", "expected"),
    [
        pytest.param("safe", HEAD, "RoleBinding", ["new", "new", None, "old"], id="safe-role-binding"),
        pytest.param("safe", V41, "ClusterRoleBinding", ["new", "new", None, "old"], id="safe-cluster-role-binding"),
        pytest.param("compat", HEAD, "RoleBinding", ["old", "old", None, "old"], id="head-skips-role-bindings"),
        pytest.param("compat", HEAD, "ClusterRoleBinding", ["new", "new", None, "new"], id="head-changes-groups"),
        pytest.param("compat", V41, "RoleBinding", ["new", "new", None, "new"], id="v0.4.1"),
        pytest.param("compat", OLD, "RoleBinding", ["new", "old", None, "old"], id="v0.1-only-default"),
        pytest.param(
            "compat", (0, 2, 0), "RoleBinding", ["new", "new", None, "old"], id="v0.2-accounts-of-the-package"
        ),
    ],
)
def test_subjects(profile: Profile, version: FunctionVersion, kind: str, expected: list[str | None]) -> None:
    output = run_function(set_namespace, BINDING.format(kind=kind), TO_NEW, profile, version)

    assert [subject.get("namespace") for subject in output.items[0].data["subjects"]] == expected


@pytest.mark.parametrize(
    ("configuration", "expected"),
    [
        pytest.param(build_config("ConfigMap", {"namespace": "new"}), "new", id="config-map"),
        pytest.param(build_config("SetNamespace", {"namespace": "new"}), "new", id="own-kind"),
        pytest.param(
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kptfile.kpt.dev"}, "data": {"name": "pkg"}},
            "pkg",
            id="package-context",
        ),
        pytest.param(None, "FunctionConfig is missing", id="none"),
        pytest.param(build_config("ConfigMap", {"name": "x"}), "`data.namespace` should not be empty", id="empty"),
        pytest.param(build_config("SetNamespace", {}), "`namespace` should not be empty", id="own-kind-empty"),
        pytest.param(build_config("Other", {}), "unknown functionConfig Kind=Other", id="other-kind"),
    ],
)
def test_configuration(configuration: dict[str, Any] | None, expected: str) -> None:
    output = run_function(
        set_namespace, "apiVersion: v1\nkind: Service\nmetadata: {name: a, namespace: old}\n", configuration
    )

    values = [message[: len(expected)] for severity, message in list_messages(output) if severity == "error"]
    assert (values or list_namespaces(output)) == [expected]


TWO = """\
apiVersion: v1
kind: Service
metadata: {{name: a, namespace: {}}}
---
apiVersion: v1
kind: Service
metadata: {{name: b, namespace: {}}}
"""


@pytest.mark.parametrize(
    ("profile", "version", "extra", "expected"),
    [
        pytest.param("safe", HEAD, {}, ["new", "new"], id="all"),
        pytest.param("safe", HEAD, {"namespaceMatcher": "x"}, ["new", "y"], id="matcher"),
        pytest.param("compat", V3, {}, ["x", "y"], id="v0.3-ambiguous"),
        pytest.param("compat", V3, {"namespaceMatcher": "y"}, ["x", "new"], id="v0.3-matcher"),
        pytest.param("compat", V41, {}, ["new", "new"], id="v0.4.1-all"),
        pytest.param("compat", HEAD, {"namespaceMatcher": "y"}, ["x", "new"], id="head-matcher"),
    ],
)
def test_namespace_matcher(
    profile: Profile, version: FunctionVersion, extra: dict[str, str], expected: list[str]
) -> None:
    configuration = build_config("ConfigMap", {"namespace": "new", **extra})

    assert (
        list_namespaces(run_function(set_namespace, TWO.format("x", "y"), configuration, profile, version)) == expected
    )


NAMESPACE = "apiVersion: v1\nkind: Namespace\nmetadata: {{name: {}}}\n---\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(NAMESPACE.format("x") + TWO.format("x", "y"), ["new", "y"], id="that-of-the-namespace-object"),
        pytest.param(TWO.format("x", "x"), ["new", "new"], id="the-only-one-in-use"),
        pytest.param(TWO.format('""', '""'), ["", ""], id="none-in-use"),
    ],
)
def test_one_namespace_is_replaced(text: str, expected: list[str]) -> None:
    output = run_function(set_namespace, text, TO_NEW, "compat", V3)

    assert [item.namespace for item in output.items if item.kind == "Service"] == expected
    assert list_messages(output) == [("info", "namespace updated")]


UNSET = "apiVersion: v1\nkind: Service\nmetadata: {name: a}\n"


@pytest.mark.parametrize(
    ("profile", "data", "expected"),
    [
        pytest.param("compat", {"namespace": "new", "namespaceMatcher": "x"}, "default", id="upstream-writes-default"),
        pytest.param("compat", {"namespace": "new", "namespaceMatcher": "default"}, "new", id="matches-default"),
        pytest.param("safe", {"namespace": "new", "namespaceMatcher": "x"}, "", id="here-it-stays-unset"),
        pytest.param("safe", {"namespace": "new"}, "new", id="without-matcher"),
    ],
)
def test_unset_namespaces(profile: Profile, data: dict[str, str], expected: str) -> None:
    assert (
        run_function(set_namespace, UNSET, build_config("ConfigMap", data), profile, HEAD).items[0].namespace
        == expected
    )


CRD = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: a}\n"


@pytest.mark.parametrize(
    ("profile", "version", "expected"),
    [
        pytest.param("compat", HEAD, "new", id="head-invents-a-webhook"),
        pytest.param("compat", V41, None, id="older-ones-do-not"),
        pytest.param("safe", HEAD, None, id="safe-does-not"),
    ],
)
def test_webhooks_of_crds(profile: Profile, version: FunctionVersion, expected: str | None) -> None:
    path = ("spec", "conversion", "webhook", "clientConfig", "service", "namespace")

    assert get_value_at(run_function(set_namespace, CRD, TO_NEW, profile, version).items[0].data, path) == expected


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        pytest.param((0, 1, 4), "new", id="v0.1"),
        pytest.param((0, 2, 0), "new", id="v0.2"),
        pytest.param(V3, "old", id="v0.3"),
        pytest.param(V41, "new", id="v0.4.1"),
        pytest.param(HEAD, "old", id="head"),
    ],
)
def test_local_config_in_compat(version: FunctionVersion, expected: str) -> None:
    noted = "annotations: {config.kubernetes.io/local-config: 'true'}"
    text = f"apiVersion: v1\nkind: Service\nmetadata: {{name: a, namespace: old, {noted}}}\n"

    assert list_namespaces(run_function(set_namespace, text, TO_NEW, "compat", version)) == [expected]


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        pytest.param((0, 1, 4), "new", id="v0.1"),
        pytest.param((0, 2, 0), "new", id="v0.2"),
        pytest.param(V41, None, id="v0.4.1"),
        pytest.param(HEAD, None, id="head"),
    ],
)
def test_custom_kinds_in_compat(version: FunctionVersion, expected: str | None) -> None:
    text = "apiVersion: x.io/v1\nkind: X\nmetadata: {name: a}\n"

    assert list_namespaces(run_function(set_namespace, text, TO_NEW, "compat", version)) == [expected]


def test_different_original_namespaces_are_an_error() -> None:
    resources = [
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "a", "annotations": {"internal.kpt.dev/upstream-identifier": f"|Service|{ns}|a"}},
        }
        for ns in ("x", "y")
    ]

    output = run_function(set_namespace, yaml.safe_dump_all(resources), TO_NEW)
    (severity, message), *rest = list_messages(output)

    assert severity == "error"
    assert "found [x y]. please switch to use `namespaceMatcher`" in message
    assert not rest
    assert list_namespaces(output) == [None, None]


def test_depends_on_annotation_is_updated() -> None:
    text = """\
        apiVersion: v1
        kind: Service
        metadata: {name: a, namespace: old}
        ---
        apiVersion: v1
        kind: Service
        metadata:
          name: b
          namespace: old
          annotations:
            config.kubernetes.io/depends-on: /namespaces/old/Service/a,/namespaces/old/Service/elsewhere
        """

    output = run_function(set_namespace, text, TO_NEW)

    annotation = output.items[1].annotations["config.kubernetes.io/depends-on"]
    assert annotation == "/namespaces/new/Service/a,/namespaces/old/Service/elsewhere"
    assert [message for _, message in list_messages(output)] == [
        'namespace [old] updated to "new", 2 value(s) changed',
        '`depends-on` annotation namespace [old] updated to "new", 1 value(s) changed',
    ]


def test_additional_fields() -> None:
    fields = [{"kind": "X", "path": "spec/target/namespace", "create": True}]
    output = run_function(
        set_namespace,
        "apiVersion: x.io/v1\nkind: X\nmetadata: {name: a}\n",
        build_config("SetNamespace", {"namespace": "new", "additionalNamespaceFields": fields}),
    )

    assert output.items[0].data["spec"] == {"target": {"namespace": "new"}}
