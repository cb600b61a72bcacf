"""Tests of the rules for rendered packages: which functions and resources a tenant may use."""

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
