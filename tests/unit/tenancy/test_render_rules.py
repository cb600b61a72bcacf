"""Tests of the rules for rendered packages: which functions a tenant may run."""

import pytest

from reconciler.api.tenancy import TenantSpec
from reconciler.catalog.files import File, FileTree
from reconciler.catalog.tenants import Tenant
from reconciler.krm.findings import SourceLocation
from reconciler.tenancy.render_rules import check_functions

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
