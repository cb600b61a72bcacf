"""Tests of conflicts between definitions of several tenants: which definition has an effect without a history."""

import pytest

from reconciler.catalog.catalog import read_catalog
from reconciler.catalog.definition_conflicts import find_duplicates
from reconciler.catalog.files import File, FileTree
from reconciler.catalog.tenants import NO_TENANTS, Tenants
from tests.support.tenants import build_tenants

OBJECT = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: payments}\n"
WITHOUT_NAMESPACE = "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: a}\n"


@pytest.mark.parametrize(
    ("tenants", "files", "text", "holder"),
    [
        pytest.param(
            build_tenants(pay="payments", shop="**"),
            "teams/pay/a.yaml teams/shop/a.yaml",
            OBJECT,
            "teams/pay/a.yaml",
            id="named",
        ),
        pytest.param(
            build_tenants(pay="pay*", shop="s*"),
            "teams/pay/a.yaml teams/shop/a.yaml",
            OBJECT,
            "teams/pay/a.yaml",
            id="pattern",
        ),
        pytest.param(
            build_tenants(pay="pay*", shop="**"), "teams/pay/a.yaml teams/shop/a.yaml", OBJECT, "", id="two-patterns"
        ),
        pytest.param(build_tenants(pay="payments"), "teams/pay/a.yaml teams/pay/b.yaml", OBJECT, "", id="one-tenant"),
        pytest.param(
            build_tenants(pay="payments", shop="**"), "teams/pay/a.yaml a.yaml", OBJECT, "a.yaml", id="platform"
        ),
        pytest.param(build_tenants(pay="payments"), "teams/pay/a.yaml a.yaml b.yaml", OBJECT, "", id="platform-twice"),
        pytest.param(
            build_tenants(pay="**", shop="s*"),
            "teams/pay/a.yaml teams/shop/a.yaml",
            WITHOUT_NAMESPACE,
            "",
            id="cluster",
        ),
        pytest.param(NO_TENANTS, "teams/pay/a.yaml teams/shop/a.yaml", OBJECT, "", id="no-tenants"),
    ],
)
def test_tenant_of_the_namespace_keeps_an_object(tenants: Tenants, files: str, text: str, holder: str) -> None:
    catalog = read_catalog(FileTree({path: File(text.encode()) for path in files.split()}))
    (conflict,) = find_duplicates(catalog)

    resolution = conflict.resolve_by_tenant(tenants)

    assert [file for file, _ in resolution.effective_definitions.values()] == ([holder] if holder else [])
    assert {finding.location.file for finding in resolution.findings} == (
        {*files.split()} - {holder} if holder else set()
    )
    assert all(f"at {holder}:1 belongs to" in finding.message for finding in resolution.findings)
