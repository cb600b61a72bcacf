"""Tests of the rules for config files: which objects of a tenant have an effect."""

import pytest

from reconciler.catalog.catalog import Catalog, read_catalog
from reconciler.catalog.files import File, FileTree
from reconciler.tenancy.config_rules import TenancyOptions, apply_config_rules

TENANT = """\
apiVersion: reconciler.dev/v1alpha1
kind: Tenant
metadata: {name: payments}
spec:
  directories: [teams/payments/**]
  allow: {kinds: [ConfigMap], namespaces: [payments]}
"""


def config_map(name: str, namespace: str) -> str:
    return f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, namespace: {namespace}}}\n"


def read(files: dict[str, str]) -> Catalog:
    """Return the catalog of a config with the tenant payments, after the rules for tenants are applied."""
    texts = {"tenants/payments.yaml": TENANT, **files}
    tree = FileTree({path: File(text.encode()) for path, text in texts.items()})
    return apply_config_rules(read_catalog(tree), TenancyOptions())


REFUSED = {"teams/payments/refused.yaml": config_map("refused", "other")}
RIVALS = {
    "platform/shared.yaml": config_map("shared", "payments"),
    "teams/payments/shared.yaml": config_map("shared", "payments"),
}
MISPLACED = {"platform/tenant.yaml": TENANT.replace("name: payments", "name: misplaced")}


@pytest.mark.parametrize(
    ("files", "objects", "codes"),
    [
        pytest.param(REFUSED, [], ["TenantForbidden"], id="refused"),
        pytest.param(RIVALS, ["platform/shared.yaml"], ["ClaimConflict"], id="rival"),
        pytest.param(MISPLACED, [], ["TenantInvalid"], id="misplaced-tenant"),
        pytest.param(
            {**REFUSED, **RIVALS},
            ["platform/shared.yaml"],
            ["ClaimConflict", "TenantForbidden"],
            id="refused-and-rival",
        ),
        pytest.param(
            {**REFUSED, **RIVALS, **MISPLACED},
            ["platform/shared.yaml"],
            ["ClaimConflict", "TenantForbidden", "TenantInvalid"],
            id="all",
        ),
    ],
)
def test_objects_that_break_a_rule_have_no_effect(files: dict[str, str], objects: list[str], codes: list[str]) -> None:
    catalog = read(files)

    assert sorted(value.file for value in catalog.objects.values()) == sorted([*objects, "tenants/payments.yaml"])
    assert sorted(finding.code for finding in catalog.findings) == codes


def test_refused_object_counts_as_present_beside_a_rival() -> None:
    catalog = read({**REFUSED, **RIVALS})

    (refused,) = catalog.duplicates
    assert refused.reference == "ConfigMap/other/refused"
    assert catalog.contains(refused)
