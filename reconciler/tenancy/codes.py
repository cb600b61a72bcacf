"""Finding codes about tenants."""

from __future__ import annotations

from reconciler.krm.findings import CodeTable, FindingScope, error, info

PACKAGE = FindingScope.PACKAGE
CONFIG = FindingScope.CONFIG


class TenancyCodes(CodeTable):
    """Finding codes about tenants and about the objects that they may not use."""

    TARGETS_NOT_ALLOWED = info(
        "A selector also matches targets that the tenant may not deploy to. These targets are skipped."
    )
    TENANT_FORBIDDEN = error(
        "A tenant uses a kind, repository, target, namespace, package or function that it may not use. The published"
        " packages do not change.",
        PACKAGE,
    )
    TENANT_INVALID = error(
        "A Tenant is invalid, is not in the folder for Tenants, or has a folder that overlaps with a folder "
        "of another Tenant. Files that may belong to this Tenant have no effect.",
        CONFIG,
    )
    TENANT_LIMIT_EXCEEDED = error(
        "A tenant requests more packages than its limit allows. Existing packages stay, and no new package is created.",
        PACKAGE,
    )
