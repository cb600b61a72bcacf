"""Tenants for unit tests."""

from reconciler.api.tenancy import TenantSpec
from reconciler.catalog.tenants import Tenant, Tenants
from reconciler.krm.findings import SourceLocation


def build_tenants(**namespaces: str) -> Tenants:
    """Return tenants by name, with patterns for the namespaces that they may use. Each tenant owns `teams/<name>/`."""
    specs = {
        name: TenantSpec.model_validate({"directories": [f"teams/{name}/**"], "allow": {"namespaces": text.split()}})
        for name, text in namespaces.items()
    }
    return Tenants({name: Tenant(name, spec, SourceLocation("tenants.yaml", 1)) for name, spec in specs.items()})
