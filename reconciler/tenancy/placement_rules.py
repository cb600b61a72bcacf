"""The rule for placed resources: a package contains only resources of the tenant that owns the package.

The placement controller writes all placed resources of a namespace to one package. Without this rule, a resource of
another tenant would change this package.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from reconciler.catalog.catalog import Catalog, ConfigObject
from reconciler.catalog.codes import CatalogCodes
from reconciler.catalog.tenants import Tenants
from reconciler.controllers.placement.model import build_package_path
from reconciler.controllers.placement.resources import get_package_namespace, has_placement, is_controller_input
from reconciler.krm.findings import Finding
from reconciler.lazy_dataclasses import dataclass

FindRecordedTenants = Callable[[str], frozenset[str] | None]
"""Function that returns the tenants of the recorded packages of a namespace. The platform team has the name "".

It returns an empty set if no package is recorded, and None if the tenant of a recorded package is unknown.
"""


@dataclass(frozen=True)
class PlaceableResources:
    """A catalog for the placement controller, and an error for each excluded resource."""

    catalog: Catalog
    findings: tuple[Finding, ...] = ()


def exclude_foreign_resources(catalog: Catalog, find_recorded_tenants: FindRecordedTenants) -> PlaceableResources:
    """Return the catalog without the placed resources in the namespaces of other tenants.

    A resource is excluded if its tenant does not own the package of its namespace. The owner of the package is the
    first of these that exists:

    1. the recorded owner of the package
    2. the platform team, if it has a placed resource in the namespace
    3. the only tenant whose resources are placed in the namespace
    4. the tenant that owns the namespace

    If there is no owner, all resources are excluded. If the recorded owner is unknown, no resource is excluded.
    """
    if not catalog.tenants:
        return PlaceableResources(catalog)
    excluded: dict[ConfigObject, str] = {}
    for namespace, resources in _group_by_namespace(catalog).items():
        tenants = {catalog.tenants.find_owner(resource.file) for resource in resources}
        recorded = find_recorded_tenants(namespace)
        if recorded is None or (not recorded and len(tenants) == 1):
            # Exclude no resources. If the recorded owner is unknown (None), an exclusion could remove published
            # resources of this owner. If no owner is recorded, all resources belong to the same tenant.
            continue
        owners = recorded or _find_owners(namespace, tenants, catalog.tenants)
        excluded |= {
            resource: _format_owners(owners)
            for resource in resources
            if catalog.tenants.find_owner(resource.file) not in owners
        }
    findings = tuple(_create_finding(resource, owner) for resource, owner in excluded.items())
    return PlaceableResources(catalog.hide_objects(resource.key for resource in excluded), findings)


def _group_by_namespace(catalog: Catalog) -> Mapping[str, list[ConfigObject]]:
    resources: dict[str, list[ConfigObject]] = {}
    for value in catalog.objects.values():
        if not is_controller_input(value.key) and has_placement(value):
            resources.setdefault(get_package_namespace(value.key), []).append(value)
    return resources


def _find_owners(namespace: str, candidates: Iterable[str], tenants: Tenants) -> frozenset[str]:
    if "" in candidates:
        return frozenset({""})
    owner = tenants.find_namespace_owner(namespace)
    return frozenset({owner} if owner else ())


def _format_owners(owners: frozenset[str]) -> str:
    names = [f"tenant {name}" if name else "the platform team" for name in sorted(owners)]
    return f"belongs to {' and '.join(names)}" if names else "is requested by several tenants"


def _create_finding(resource: ConfigObject, owner: str) -> Finding:
    package = build_package_path(get_package_namespace(resource.key))
    message = f"{resource.key} is not placed, because the package {package} {owner}. Next step: use another namespace"
    return CatalogCodes.CLAIM_CONFLICT.finding(message, resource.location)
