"""Tests of the rules for rendered packages: which functions and resources a tenant may use."""

import json

import pytest

from reconciler.api.tenancy import TenantSpec
from reconciler.catalog.files import File, FileTree
from reconciler.catalog.tenants import Tenant
from reconciler.krm.findings import SourceLocation
from reconciler.tenancy.render_rules import check_functions, check_resources
from tests.support.sops import ciphertext, seal_text

ALLOW = {"functions": {"images": ["**"], "starlark": False}}
TENANT = Tenant(
    "payments",
    TenantSpec.model_validate({"directories": ["teams/payments/**"], "allow": ALLOW}),
    SourceLocation("tenants/payments.yaml", 1),
)


@pytest.mark.parametrize(
    ("image", "is_allowed"),
    [
        ("starlark", False),
        ("starlark:v0.4", False),
        ("ghcr.io/kptdev/krm-functions-catalog/starlark:v0.4@sha256:0a", False),
        ("ghcr.io/kptdev/krm-functions-catalog/starlark@sha256/0a", False),
        ("ghcr.io/kptdev/krm-functions-catalog/set-labels:v0.1", True),
        ("ghcr.io/starlark/set-labels:v0.1", True),
    ],
)
def test_starlark_is_refused_in_every_notation_of_its_image(image: str, is_allowed: bool) -> None:
    kptfile = (
        "apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata: {name: app}\n"
        f"pipeline: {{mutators: [{{image: '{image}'}}]}}\n"
    )

    findings = check_functions(FileTree({"Kptfile": File(kptfile.encode())}), TENANT)

    assert [finding.code for finding in findings] == ([] if is_allowed else ["TenantForbidden"])


@pytest.mark.parametrize(
    ("kind", "namespace", "cluster_scoped", "is_allowed"),
    [
        ("Secret", "payments", [], True),
        ("Secret", "other", [], False),
        (ciphertext("kind"), "payments", [], False),
        ("Secret", ciphertext("namespace"), [], False),
        (ciphertext("kind"), "payments", ["**"], True),
        (ciphertext("kind"), "payments", ["Namespace"], False),
    ],
    ids=["plain", "other-namespace", "kind", "namespace", "all-allowed", "some-allowed"],
)
def test_encrypted_identity_is_refused(kind: str, namespace: str, cluster_scoped: list[str], is_allowed: bool) -> None:
    allow = {"namespaces": ["payments", "default"], "clusterScopedResources": cluster_scoped}
    spec = TenantSpec.model_validate({"directories": ["teams/payments/**"], "allow": allow})
    text = f"apiVersion: v1\nkind: {kind}\nmetadata:\n  name: db\n  namespace: {namespace}\n"
    files = FileTree({"s.yaml": File(seal_text(text).encode())})

    findings = check_resources(files, Tenant("payments", spec, SourceLocation("tenants/payments.yaml", 1)))

    assert [finding.code for finding in findings] == ([] if is_allowed else ["TenantForbidden"])
    assert all("AES256" not in f"{finding.message}{finding.location}" for finding in findings)


CLUSTER_ROLE = "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: admin}}\n"
LOCAL = "annotations: {config.kubernetes.io/local-config: 'true'}"


@pytest.mark.parametrize(
    ("path", "text", "subject"),
    [
        pytest.param("a.yaml", CLUSTER_ROLE, "ClusterRole", id="cluster-scoped"),
        pytest.param("a.json", json.dumps({"apiVersion": "v1", "kind": "Namespace"}), "Namespace", id="json"),
        pytest.param(
            "a.yaml",
            f"{{apiVersion: v1, kind: List, metadata: {{name: a, namespace: payments}}, items: [{CLUSTER_ROLE}]}}",
            "ClusterRole",
            id="list-with-a-namespace",
        ),
        pytest.param(
            "a.yaml",
            "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleList, metadata: {name: a, namespace: payments},"
            " items: [{metadata: {name: admin}}]}",
            "ClusterRole",
            id="typed-list-with-a-name",
        ),
        pytest.param(
            "a.yaml",
            "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: payments}, items: ["
            f"{{apiVersion: v1, kind: List, items: [{CLUSTER_ROLE}]}}]}}",
            "ClusterRole",
            id="items-of-another-kind",
        ),
        pytest.param(
            "a.yaml",
            f"{{apiVersion: v1, kind: Namespace, metadata: {{name: a, {LOCAL}}}}}",
            "Namespace",
            id="cluster-scoped-local-config",
        ),
        pytest.param(
            "a.yaml",
            f"{{apiVersion: v1, kind: Secret, metadata: {{name: a, namespace: kube-system, {LOCAL}}}}}",
            "kube-system",
            id="local-config-with-a-namespace",
        ),
        pytest.param("a.yaml", "{apiVersion: example.com/v1, kind: Kptfile}", "Kptfile", id="kptfile-of-another-group"),
        pytest.param("a.yaml", "a: [\n", "cannot be parsed", id="invalid-yaml"),
        pytest.param("a.json", "kind: Namespace\n", "cannot be parsed", id="yaml-in-json"),
        pytest.param("a.yaml", "a: 1\n", "without apiVersion and kind", id="no-kind"),
        pytest.param(
            "kustomization.yaml", "resources: [https://example.com/a]\n", "kustomization.yaml", id="kustomize"
        ),
        pytest.param("in/Chart.yaml", "name: a\n", "Chart.yaml", id="helm"),
        pytest.param("a.jsonnet", "{}", "a.jsonnet", id="jsonnet"),
        pytest.param("a.yaml", f"{{apiVersion: v1, kind: ConfigMap, metadata: {{name: a, {LOCAL}}}}}", "", id="local"),
        pytest.param("Kptfile", "{apiVersion: kpt.dev/v1, kind: Kptfile, metadata: {name: a}}", "", id="kptfile"),
        pytest.param("a.yaml", "# empty\n", "", id="empty"),
        pytest.param("README.md", "a: [\n", "", id="text"),
        pytest.param(
            "a.yaml",
            "{apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: Secret, metadata: {namespace: payments}}]}",
            "",
            id="allowed-list",
        ),
    ],
)
def test_resources_that_other_tools_apply_are_checked(path: str, text: str, subject: str) -> None:
    spec = TenantSpec.model_validate({"directories": ["teams/payments/**"], "allow": {"namespaces": ["payments"]}})
    # The file is checked although the functions ignore it.
    files = FileTree({path: File(text.encode()), ".krmignore": File(b"*\n")})

    findings = check_resources(files, Tenant("payments", spec, SourceLocation("tenants/payments.yaml", 1)))

    assert [finding.code for finding in findings] == (["TenantForbidden"] if subject else [])
    assert all(subject in finding.message for finding in findings)
